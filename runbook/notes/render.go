package notes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Markdown renders the notes as CommonMark with tables.
func (d *Document) Markdown() string {
	var m markdown
	m.line("# %s", esc(d.Title))
	m.line("")
	for _, f := range d.About {
		value := esc(f.Value)
		if f.Name == server { // an address, which would become a link
			value = code(string(f.Value))
		}
		m.line("- %s: %s", f.Name, value)
	}

	m.head("Summary")
	if v := d.Summary.Verdict; v == nil {
		m.line("No verdict was reached.")
	} else {
		cause := ""
		if v.RootCause != "" {
			cause = " Root cause: " + code(string(v.RootCause)) + "."
		}
		m.line("%s, confidence %s.%s %s", code(string(v.Attribution)), esc(report.Text(v.Confidence)), cause, esc(v.Summary))
		m.list("What speaks for it:", v.For)
		m.list("What speaks against it:", v.Against)
	}
	m.list("At the end:", d.Summary.End)

	m.head("Impact")
	m.items(d.Impact)

	m.head("Timeline")
	m.line("Times are the cluster's, in UTC.")
	m.line("")
	if len(d.Timeline) == 0 {
		m.line("Nothing was journalled.")
	} else {
		m.line("| Time | | |\n|---|---|---|")
	}
	for _, t := range d.Timeline {
		m.line("| %s | %s | %s |", t.At.UTC().Format(layout), t.Kind, esc(t.Text))
	}

	m.head("Findings")
	if len(d.Findings) == 0 {
		m.line("None.")
	}
	for _, f := range d.Findings {
		m.finding(f)
	}

	if len(d.Evidence) > 0 {
		m.head("Logs and consoles")
		m.line("Only the lines that tell something are kept.\n")
	}
	for _, e := range d.Evidence {
		m.heard(e)
	}

	m.head("Actions")
	if len(d.Actions) == 0 {
		m.line("Nothing was changed.")
	}
	for i, a := range d.Actions {
		m.action(i+1, a)
	}

	m.head("Still changed by hand")
	if len(d.Left) == 0 {
		m.line("Nothing that this session knows of.")
	}
	for _, l := range d.Left {
		m.items([]report.Text{l.Text})
		if l.Reverse != "" {
			m.line("  put back with %s", code(string(l.Reverse)))
		}
	}
	m.head("Open questions")
	m.itemsOr(d.Open, "None.")
	m.head("Commands")
	if len(d.Commands) == 0 {
		m.line("None were copied or carried out.")
	} else {
		m.fence("sh", d.Commands)
	}
	return m.String()
}

// markdown is the text as it grows.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	m.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (m *markdown) head(title string) { m.line("\n## %s\n", title) }

func (m *markdown) list(lead string, texts []report.Text) {
	if len(texts) > 0 {
		m.line("\n%s\n", lead)
		m.items(texts)
	}
}

func (m *markdown) items(texts []report.Text) {
	for _, t := range texts {
		m.line("- %s", cmp.Or(esc(t), "(empty)"))
	}
}

func (m *markdown) itemsOr(texts []report.Text, none string) {
	if len(texts) == 0 {
		m.line("%s", none)
	}
	m.items(texts)
}

func (m *markdown) finding(f Finding) {
	gone := ""
	if f.Gone {
		gone = ", gone at the end"
	}
	m.line("- %s (%s, %d found%s)", code(string(f.Code)), f.Severity, f.Count, gone)
	for _, x := range f.Examples {
		where := string(x.Object.Kind) + " " + strings.TrimPrefix(string(x.Object.Namespace)+"/"+string(x.Object.Name), "/")
		if x.Node != "" && x.Object.Kind != "Node" {
			where += " on " + string(x.Node)
		}
		at := ""
		if x.Since != nil {
			at = ", since " + x.Since.UTC().Format(layout)
		}
		m.line("  - %s%s: %s", esc(report.Text(where)), at, esc(x.Summary))
		for _, e := range x.Evidence {
			at = ""
			if e.At != nil {
				at = " at " + e.At.UTC().Format(layout)
			}
			m.line("    - %s: %s%s", code(string(e.Source)), code(string(e.Value)), at)
		}
	}
	if n := f.Count - len(f.Examples); n > 0 {
		m.line("  - and %d more", n)
	}
}

func (m *markdown) action(n int, a Action) {
	m.line("### %d. %s\n", n, esc(a.Title))
	m.line("- Object: %s", esc(a.Object))
	m.line("- Outcome: %s", esc(a.Outcome))
	if a.Asked != nil {
		m.line("- Confirmed: %s", a.Asked.UTC().Format(layout))
	}
	if a.Done != nil {
		m.line("- Last answer: %s", a.Done.UTC().Format(layout))
	}
	for _, e := range a.Effect {
		m.line("- %s", esc(e))
	}
	if len(a.Diff) > 0 {
		m.line("\nBefore (-) and after (+):\n")
		m.fence("diff", a.Diff)
	}
	if a.Kubectl != "" {
		m.line("\nThe same by hand:\n")
		m.fence("sh", []report.Text{a.Kubectl})
	}
	switch {
	case strings.HasPrefix(string(a.Reverse), "kubectl "):
		m.line("\nHow to reverse it:\n")
		m.fence("sh", []report.Text{a.Reverse})
	case a.Reverse != "":
		m.line("\nHow to reverse it: %s", esc(a.Reverse))
	}
	for _, t := range a.GiveBack {
		m.line("\nTo be given back: %s", esc(t))
	}
	m.line("")
}

// fence is a code block that no line of it can close.
func (m *markdown) fence(language string, lines []report.Text) {
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(string(l) + "\n")
	}
	marks := strings.Repeat("`", max(3, longestRun(text.String())+1))
	m.line("%s%s", marks, language)
	m.WriteString(text.String())
	m.line("%s", marks)
}

func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// code is a code span; what it holds is shown as it is.
func code(s string) string {
	if s == "" {
		return "`(empty)`"
	}
	marks := strings.Repeat("`", longestRun(s)+1)
	pad := ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		pad = " "
	}
	return marks + pad + s + pad + marks
}

var (
	special = regexp.MustCompile("[\\\\`*_\\[\\]<#|~&$]")
	// starts of a line that would begin a list, a quote or a heading.
	opening = regexp.MustCompile(`^([-+=>]|\d+[.)])`)
	// bare addresses become links in many renderers.
	address = regexp.MustCompile(`(?i)(https?|ftp)://|www\.`)
)

// esc makes a text stand for itself in Markdown.
func esc(t report.Text) string {
	s := special.ReplaceAllString(strings.TrimSpace(string(t)), `\$0`)
	s = opening.ReplaceAllStringFunc(s, func(m string) string { return m[:len(m)-1] + `\` + m[len(m)-1:] })
	return address.ReplaceAllStringFunc(s, func(m string) string {
		return strings.NewReplacer("://", `:\//`, ".", `\.`).Replace(m)
	})
}

var page = template.Must(template.New("notes").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .1rem .6rem; vertical-align: top; text-align: left; border-bottom: 1px solid #ccc; }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; }
</style>
</head>
<body>
{{.Body}}</body>
</html>
`))

// HTML renders the notes as one page that loads nothing and runs nothing.
func (d *Document) HTML() (string, error) {
	var body, out bytes.Buffer
	// Raw HTML is left out by goldmark as it is set up here.
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(d.Markdown()), &body); err != nil {
		return "", fmt.Errorf("cannot render the notes as HTML: %w", err)
	}
	err := page.Execute(&out, map[string]any{"Title": string(d.Title), "Body": template.HTML(body.String())})
	if err != nil {
		return "", fmt.Errorf("cannot render the notes as HTML: %w", err)
	}
	return out.String(), nil
}

// JSON renders the notes as one indented document.
func (d *Document) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot render the notes as JSON: %w", err)
	}
	return append(b, '\n'), nil
}
