package headless

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// maxRows bounds a table of findings in a ticket.
const maxRows = 40

// writeMarkdown writes the report for a ticket or a chat.
func writeMarkdown(b *bytes.Buffer, r *report.Report) {
	if m := preflightOf(r); m != nil {
		markdownPreflight(b, r, m)
		return
	}
	v := r.Verdict
	title := string(v.Attribution)
	if v.Workload != "" {
		title += ": " + string(v.Workload)
	}
	fmt.Fprintf(b, "# %s\n\n", escape(title))
	if v.Summary != "" {
		fmt.Fprintf(b, "%s\n\n", escape(string(v.Summary)))
	}
	main := mainWorkload(r)
	reasons := v
	if main != nil && main.Verdict.Attribution == v.Attribution && len(v.For)+len(v.Against)+len(v.Missing) == 0 {
		reasons = main.Verdict
	}
	item(b, "Confidence", string(v.Confidence))
	item(b, "Root cause", string(v.RootCause))
	item(b, "Contributing", joinCodes(v.Contributing))
	if n := r.Nodes; n.Total > 0 {
		item(b, "Nodes", fmt.Sprintf("%d: %d Ready, %d NotReady, %d Unknown, %d cordoned", n.Total, n.Ready, n.NotReady, n.Unknown, n.Cordoned))
	}
	source := string(r.Source.Type)
	for _, t := range []report.Text{r.Source.Context, r.Source.Version} {
		if t != "" {
			source += ", " + string(t)
		}
	}
	item(b, "As of", r.AsOf.UTC().Format(time.RFC3339)+", from "+source)
	if len(r.Waiting) > 0 {
		item(b, "Not final", "still reading "+listed(r.Waiting, len(r.Waiting)))
	}
	bullets(b, "Why", reasons.For)
	bullets(b, "Against", reasons.Against)
	bullets(b, "Missing", reasons.Missing)
	markdownDo(b, r.Recommendation)
	var stakes []report.Text
	for _, s := range stakesToTell(r) {
		stakes = append(stakes, s.Text)
	}
	bullets(b, "At stake", stakes)
	if main != nil {
		if facts := rolloutFacts(&main.Rollout, stamp); len(facts) > 0 {
			texts := make([]report.Text, len(facts))
			for i, f := range facts {
				texts[i] = report.Text(f)
			}
			bullets(b, "Rollout", texts)
		}
		markdownOwners(b, main)
		markdownMeasures(b, main.Measures)
	}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		fmt.Fprintf(b, "\n## %s\n", escape(fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name)))
		if w != main {
			line := string(w.Verdict.Attribution)
			if w.Verdict.RootCause != "" {
				line += ", root cause " + string(w.Verdict.RootCause)
			}
			if w.Verdict.Confidence != "" {
				line += ", " + string(w.Verdict.Confidence) + " confidence"
			}
			if w.Verdict.Summary != "" {
				line += ". " + string(w.Verdict.Summary)
			}
			fmt.Fprintf(b, "\n%s\n", escape(line))
		}
		if w.Coverage != nil {
			b.WriteByte('\n')
			for _, s := range append(coverageFacts(w.Coverage), invariantLines(w.Coverage)...) {
				fmt.Fprintf(b, "* %s\n", escape(s))
			}
		}
		table(b, w.Findings)
	}
	if len(r.ClusterFindings) > 0 {
		b.WriteString("\n## Cluster\n")
		table(b, r.ClusterFindings)
	}
	var missing []report.Text
	for _, n := range r.NotRead {
		t := n.Resource
		if n.Namespace != "" {
			t += " in " + n.Namespace
		}
		missing = append(missing, t+": "+report.Text(strings.ToLower(string(n.Reason))))
	}
	bullets(b, "Not read", missing)
}

func markdownDo(b *bytes.Buffer, c report.Recommendation) {
	if c.Action == "" || c.Action == report.ActionNone {
		return
	}
	b.WriteString("\n## Do now\n\n")
	n := 1
	for _, f := range c.First {
		fmt.Fprintf(b, "%d. %s\n", n, escape(described(f)))
		n++
	}
	action := string(c.Action)
	if c.ToRevision != nil {
		action += fmt.Sprintf(" to revision %d", *c.ToRevision)
	}
	if c.Pod != "" {
		action += " " + string(c.Pod)
	}
	if c.Why != "" {
		action += ": " + string(c.Why)
	}
	fmt.Fprintf(b, "%d. %s\n", n, escape(action))
	if len(c.Reachable)+len(c.Unreachable)+len(c.WatchOut) > 0 {
		b.WriteByte('\n')
	}
	if len(c.Reachable) > 0 {
		item(b, "Reaches", listed(c.Reachable, maxRows))
	}
	if len(c.Unreachable) > 0 {
		item(b, "Out of reach", listed(c.Unreachable, maxRows))
	}
	for _, t := range c.WatchOut {
		item(b, "Watch out", string(t))
	}
}

func markdownOwners(b *bytes.Buffer, m *report.Workload) {
	facts := ownerFacts(m)
	if len(facts) == 0 {
		return
	}
	b.WriteString("\n## Owner\n\n")
	for _, f := range facts {
		if f.detail {
			b.WriteString("  ")
		}
		fmt.Fprintf(b, "* %s\n", escape(f.text))
	}
}

func markdownMeasures(b *bytes.Buffer, m *report.Measures) {
	if m == nil || len(classes(m)) == 0 {
		return
	}
	b.WriteString("\n## Comparison\n\n| | fell | did not |\n|---|---|---|\n")
	fmt.Fprintf(b, "| on the new revision | %d | %d |\n", len(m.After), len(m.Healthy))
	fmt.Fprintf(b, "| on the old revision | %d | %d |\n\n", len(m.Old), len(m.Clean))
	if s := ratios(m); s != "" {
		fmt.Fprintf(b, "%s\n\n", escape(s))
	}
	for _, k := range classes(m) {
		item(b, fmt.Sprintf("%s (%d)", k.label, len(k.nodes)), listed(k.nodes, maxRows))
	}
	if m.Falsify != "" {
		item(b, "Wrong if", string(m.Falsify))
	}
}

func table(b *bytes.Buffer, list []report.Finding) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n| severity | finding | object | since | what | evidence |\n|---|---|---|---|---|---|\n")
	n := 0
	for _, g := range grouped(list) {
		for _, f := range g {
			if n++; n > maxRows {
				continue
			}
			object := objectName(f.Object)
			if f.Node != "" && f.Object.Kind != "Node" {
				object += " on " + string(f.Node)
			}
			since := ""
			if f.Since != nil {
				since = stamp(f.Since)
			}
			var evidence []string
			for i, e := range f.Evidence {
				if i == maxEvidence {
					evidence = append(evidence, fmt.Sprintf("and %d more", len(f.Evidence)-i))
					break
				}
				evidence = append(evidence, string(e.Source)+" = "+string(e.Value))
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", f.Severity, f.Code, escape(object), since, escape(string(f.Summary)), escape(strings.Join(evidence, "; ")))
		}
	}
	if n > maxRows {
		fmt.Fprintf(b, "\nand %d more findings\n", n-maxRows)
	}
}

func stamp(t *report.Time) string { return t.UTC().Format(time.RFC3339) }

func item(b *bytes.Buffer, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "* **%s**: %s\n", escape(name), escape(text))
	}
}

func bullets(b *bytes.Buffer, heading string, texts []report.Text) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", heading)
	for _, t := range texts {
		fmt.Fprintf(b, "* %s\n", escape(string(t)))
	}
}

// escape makes text mean nothing to Markdown and HTML: no emphasis, link, table
// cell, heading or mention comes out of an event's message.
func escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`, "~", `\~`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "&#64;", "\n", " ", "\r", " ",
)
