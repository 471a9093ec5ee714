package dialog

import (
	"fmt"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// gutter is the column of NOW, THEN, REVERSE and the others.
const gutter = 12

// mostDiff is how many lines a diff may have to stand whole before the prediction,
// which matters more; of a longer one mostChanges lines that change something do,
// and all of it at the end.
const (
	mostDiff    = 8
	mostChanges = 6
)

// View is the box.
func (c *Confirm) View(w, h int, s *style.Styles) []string {
	w = width(w, 110)
	in := w - 4
	title := string(c.d.Preview.Title)
	if title == "" {
		title = "An action"
	}
	if c.d.Loading {
		lines := []string{s.Mark(report.StepLooking) + " asking the API server what it would do", ""}
		return box(title, "", &c.pager, lines, []string{draw.Spread("", s.Key.Render("esc")+s.Dim.Render(" cancels"), in)}, w, h, s)
	}
	feet := c.prompt(in, s)
	if h > 12 {
		feet = append([]string{""}, feet...)
	}
	return box(title, "", &c.pager, c.lines(in, s), feet, w, h, s)
}

func (c *Confirm) lines(w int, s *style.Styles) []string {
	p := &c.d.Preview
	who := string(c.id.Context)
	if c.id.User != "" {
		who += " as " + string(c.id.User)
	}
	may, st := permission(p.Permission)
	facts := s.Mark(dryRun(p.DryRun)) + " dry run " + string(p.DryRun) + "   " + s.Mark(st) + " " + may
	lines := []string{draw.Spread(s.Strong.Render(who), facts, w)}
	if draw.Width(who)+draw.Width(facts)+2 > w {
		lines = []string{draw.Fit(s.Strong.Render(who), w), draw.Fit(facts, w)}
	}
	add := func(label string, look lipgloss.Style, text string) {
		if text != "" {
			lines = append(lines, draw.Hang(look.Render(draw.Pad(label, gutter)), text, w, nil)...)
		}
	}
	if p.DryRun != action.DryRunAccepted {
		add("DRY RUN", s.Bad, string(p.DryRunWhy))
	}
	if p.Permission == nil || !*p.Permission {
		add("PERMISSION", s.Bad, string(p.PermissionWhy))
	}
	short := changes(p.Diff)
	whole := len(p.Diff) <= mostDiff
	switch {
	case whole:
		lines = append(lines, diff(p.Diff, w, s)...)
	case len(short) > mostChanges:
		lines = append(lines, diff(short[:mostChanges], w, s)...)
		lines = append(lines, s.Dim.Render(draw.Fit(fmt.Sprintf("  … %d more lines change, see below", len(short)-mostChanges), w)))
	default:
		lines = append(lines, diff(short, w, s)...)
	}
	lines = append(lines, "")
	for _, t := range p.Prediction.Summary {
		label, rest := headed(string(t))
		add(label, s.Label, rest)
	}
	for i, t := range p.Prediction.Unknown {
		add(once("UNKNOWN", i), s.Unknown, string(t))
	}
	for i, t := range p.WatchOut {
		add(once("WATCH OUT", i), s.Notice.Bold(true), string(t))
	}
	add("REVERSE", s.Label, string(p.Reverse))
	for i, t := range p.GiveBack {
		add(once("GIVE BACK", i), s.Label, string(t))
	}
	for _, x := range []struct {
		label string
		nodes []report.Text
		most  int
	}{{"now", p.Prediction.Now, 5}, {"then", p.Prediction.Then, 5}, {"cannot", p.Prediction.OutOfReach, 8}, {"loses", p.Prediction.NeverBack, 8}} {
		for i, n := range x.nodes {
			if i == x.most {
				add("", s.Dim, fmt.Sprintf("and %d more", len(x.nodes)-i))
				break
			}
			lines = append(lines, draw.Hang(s.Dim.Render(draw.Pad(once("  "+x.label, i), gutter)), string(n), w, s.Dim.Render)...)
		}
	}
	add("SAME AS", s.Dim, string(p.Kubectl))
	if !whole {
		lines = append(lines, "", s.Label.Render("The whole change"))
		lines = append(lines, diff(p.Diff, w, s)...)
	}
	return lines
}

// changes are the lines of a diff that change something.
func changes(d []report.Text) []report.Text {
	var out []report.Text
	for _, l := range d {
		if strings.HasPrefix(string(l), "+") || strings.HasPrefix(string(l), "-") {
			out = append(out, l)
		}
	}
	return out
}

// diff draws the lines of a diff.
func diff(d []report.Text, w int, s *style.Styles) []string {
	var lines []string
	for _, l := range d {
		look := s.Dim
		switch {
		case strings.HasPrefix(string(l), "+"):
			look = s.Added
		case strings.HasPrefix(string(l), "-"):
			look = s.Removed
		}
		lines = append(lines, look.Render(draw.Fit(string(l), w)))
	}
	return lines
}

func once(label string, i int) string {
	if i > 0 {
		return ""
	}
	return label
}

// headed splits "NOW 0 Pods" into its label, the leading words in capitals, and the rest.
func headed(t string) (label, rest string) {
	words := strings.Split(t, " ")
	n := 0
	for n < len(words)-1 && len(words[n]) > 1 && strings.IndexFunc(words[n], func(r rune) bool { return !unicode.IsUpper(r) }) < 0 {
		n++
	}
	label = strings.Join(words[:n], " ")
	if len(label) >= gutter {
		return "", t
	}
	return label, strings.Join(words[n:], " ")
}

// prompt is the last line, always in sight: what confirms, and what cancels.
func (c *Confirm) prompt(w int, s *style.Styles) []string {
	p := &c.d.Preview
	cancel := s.Key.Render("esc") + s.Dim.Render(" cancels")
	switch {
	case c.blocked():
		return append(draw.Hang(s.Bad.Render("CANNOT BE APPLIED "), string(p.Blocked), w, nil),
			draw.Spread("", s.Key.Render("esc")+s.Dim.Render(" closes"), w))
	case !c.listens():
		return []string{draw.Spread(s.Dim.Render("◌ listens when the keyboard is quiet for a moment"), cancel, w)}
	case c.typed == nil:
		return []string{draw.Spread(s.Key.Render("y")+" "+s.Strong.Render("do it"), s.Dim.Render("any other key cancels"), w)}
	}
	ask := "Type " + s.Strong.Render(string(p.Word)) + " to confirm: "
	if draw.Width(ask) > w-24 {
		ask = "Type " + s.Strong.Render(draw.Fit(string(p.Word), max(8, w-40))) + ": "
	}
	if c.wrong {
		cancel = s.Bad.Render("✗ that is not it")
	}
	room := max(4, w-draw.Width(ask)-draw.Width(cancel)-2)
	return []string{draw.Spread(ask+c.typed.View(room, s), cancel, w)}
}
