// Package checklist is the page of a runbook being walked: the step that is open
// with what its probe shows, why it is asked, how to read it, the trap and the
// commands; beside it, where there is room, all steps.
package checklist

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/component/pager"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/timeline"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// mostCommand is how many lines of a command are shown; it is copied whole.
const mostCommand = 3

// wide is from how many cells on the list of steps stands at the left.
const wide = 100

// Page is the checklist page.
type Page struct {
	st    *incident.State
	step  string // the step that the scroll position belongs to
	pager pager.Pager
	hide  bool  // the texts
	side  int   // width of the list in the last View, 0 where it was not shown
	rows  []int // the step in each line of that list
}

// Set takes a new state; a new step is shown from its top.
func (p *Page) Set(st *incident.State) {
	p.st = st
	if s := p.Step(); s != nil && s.ID != p.step {
		p.step = s.ID
		p.pager.Top()
	}
}

// Step is the step that is open, nil without a checklist.
func (p *Page) Step() *runbook.StepView {
	if p.st == nil || p.st.Guide == nil {
		return nil
	}
	g := p.st.Guide
	if g.Current < 0 || g.Current >= len(g.Steps) {
		return nil
	}
	return &g.Steps[g.Current]
}

// Hidden tells whether the texts are hidden; Hide changes it.
func (p *Page) Hidden() bool { return p.hide }

// Hide hides the texts or shows them again.
func (p *Page) Hide(v bool) { p.hide = v }

// Move handles a movement; false where the command is none.
func (p *Page) Move(c keymap.Command) bool {
	switch c {
	case keymap.Up:
		p.pager.Move(-1)
	case keymap.Down:
		p.pager.Move(1)
	case keymap.PageUp:
		p.pager.Page(-1)
	case keymap.PageDown:
		p.pager.Page(1)
	case keymap.Top:
		p.pager.Top()
	case keymap.Bottom:
		p.pager.End()
	default:
		return false
	}
	return true
}

// Click is the step at column x, line y of the body, "" where there is none.
func (p *Page) Click(x, y int) string {
	if p.st.Guide == nil || x >= p.side || y < 0 || y >= len(p.rows) {
		return ""
	}
	return p.st.Guide.Steps[p.rows[y]].ID
}

// View is the body of the page: exactly h lines of at most w cells.
func (p *Page) View(w, h int, s *style.Styles) []string {
	step := p.Step()
	if step == nil {
		return draw.Fill([]string{" ◌ the checklist is being opened"}, w, h)
	}
	p.side = 0
	if w < wide {
		body := p.pager.View(p.body(step, w-2, h, s), w-2, h, s.Dim.Render)
		for i := range body {
			body[i] = " " + body[i]
		}
		return body
	}
	p.side = min(max(30, w/4), 46)
	left := p.steps(p.side-1, h, s)
	bw := w - p.side - 3
	right := p.pager.View(p.body(step, bw, h, s), bw, h, s.Dim.Render)
	out := make([]string, h)
	for i := range out {
		out[i] = draw.Pad(left[i], p.side-1) + " " + s.Rule.Render("│") + " " + draw.Fit(right[i], bw)
	}
	return out
}

// steps is the list at the left: titles in full where there is room, else one line
// each, the open step always in sight.
func (p *Page) steps(w, h int, s *style.Styles) []string {
	g := p.st.Guide
	for _, most := range []int{3, 2, 1} {
		var lines []string
		p.rows = p.rows[:0]
		current := 0
		for i := range g.Steps {
			if i == g.Current {
				current = len(lines)
			}
			for _, l := range stepLines(&g.Steps[i], i == g.Current, w, most, s) {
				lines = append(lines, l)
				p.rows = append(p.rows, i)
			}
		}
		if len(lines) > h && most > 1 {
			continue
		}
		from := max(0, min(current-h/2, len(lines)-h))
		p.rows = p.rows[from:]
		return draw.Fill(lines[from:], w, h)
	}
	return nil
}

// stepLines is a step in the list of steps, in at most most lines.
func stepLines(st *runbook.StepView, current bool, w, most int, s *style.Styles) []string {
	cursor, look := " ", s.Text
	switch {
	case current:
		cursor, look = s.Key.Render("▸"), s.Cursor
	case st.State == report.StepNotYet || st.State == report.StepSkipped:
		look = s.Dim
	}
	title := string(st.Title)
	if st.Changed != "" && !current {
		title += " (changed)"
	}
	prefix := " " + s.Mark(State(st)) + cursor + fmt.Sprintf("%2d ", st.Number)
	return draw.Clip(draw.Hang(prefix, title, w, look.Render), most, w)
}

// State is the state of a step as it is drawn: a skipped one stays skipped.
func State(st *runbook.StepView) report.StepState {
	if st.Skipped != "" && st.State != report.StepAnomaly {
		return report.StepSkipped
	}
	return st.State
}

// body is everything about the step. What it found comes first; the lanes get the
// room that the rest leaves, but never too little to read.
func (p *Page) body(st *runbook.StepView, w, h int, s *style.Styles) []string {
	var top []string
	if st.Changed != "" {
		top = append(top, draw.Hang(s.Notice.Render("! "), "since you left: "+string(st.Changed), w, s.Notice.Render)...)
	}
	top = append(top, found(st, w, s)...)
	for _, l := range st.Result.Lines {
		prefix := fmt.Sprintf("%*s", 2*min(l.Indent, 4), "") + s.Mark(l.State) + " "
		if l.State == report.StepNotYet || l.State == "" {
			prefix = fmt.Sprintf("%*s", 2*min(l.Indent, 4)+2, "")
		}
		var look draw.Look
		if l.State == report.StepAnomaly {
			look = s.Strong.Render
		}
		top = append(top, draw.Hang(prefix, string(l.Text), w, look)...)
	}
	low := p.texts(st, w, s)
	if t := st.Result.Timeline; t != nil {
		room := min(max(7, h/3, h-len(top)-len(low)-1), len(t.Lanes)+4)
		top = append(top, timeline.Inline(t, w, room, s)...)
	}
	if len(top) > 0 && len(low) > 0 && len(top)+len(low) < h {
		top = append(top, "")
	}
	return append(top, low...)
}

// found is the line that stands where a probe has nothing to show.
func found(st *runbook.StepView, w int, s *style.Styles) []string {
	r := st.Result
	switch {
	case st.Skipped != "":
		return draw.Hang(s.Mark(report.StepSkipped)+" ", "skipped: "+string(st.Skipped), w, s.Dim.Render)
	case r.Reason != "" && len(r.Lines) > 0:
		return draw.Hang(s.Mark(report.StepUnknown)+" ", string(r.Reason), w, s.Unknown.Render)
	case len(r.Lines) > 0:
		return nil
	case r.Reason != "":
		return draw.Hang(s.Mark(report.StepUnknown)+" ", "could not look: "+string(r.Reason), w, s.Unknown.Render)
	case r.State == report.StepUnknown:
		return []string{s.Mark(report.StepUnknown) + " could not look"}
	case r.State == report.StepLooking || st.State == report.StepLooking:
		return []string{s.Mark(report.StepLooking) + " looking"}
	case r.State == report.StepOK:
		return []string{s.Mark(report.StepOK) + " nothing wrong"}
	}
	return []string{s.Dim.Render("· not looked at yet")}
}

// texts are why it is asked, how to read it, the trap, and the commands.
func (p *Page) texts(st *runbook.StepView, w int, s *style.Styles) []string {
	var out []string
	if !p.hide {
		for _, x := range []struct {
			label string
			text  report.Text
		}{{"Why", st.Why}, {"Read", st.Read}, {"Trap", st.Trap}} {
			if x.text == "" {
				continue
			}
			look := s.Label
			if x.label == "Trap" {
				look = s.Notice.Bold(true)
			}
			out = append(out, draw.Hang(look.Render(draw.Pad(x.label, 6)), string(x.text), min(w, 96), nil)...)
		}
	}
	if fits := actions(st); fits != "" {
		out = append(out, draw.Hang(s.Label.Render(draw.Pad("Act", 6)), s.Key.Render("[a]")+" "+fits, w, nil)...)
	}
	for i, c := range st.Commands {
		if i < len(st.Says) && st.Says[i] != "" && !p.hide {
			out = append(out, draw.Hang(s.Dim.Render("# "), string(st.Says[i]), w, s.Dim.Render)...)
		}
		out = append(out, draw.Clip(draw.Hang(s.Dim.Render("$ "), string(c), w, s.Code.Render), mostCommand, w)...)
	}
	return out
}

// actions names the actions that fit a step.
func actions(st *runbook.StepView) string {
	var out []string
	for _, a := range st.Actions {
		out = append(out, wording.ActionShort(action.Kind(a)))
	}
	return strings.Join(out, ", ")
}

// VerdictOf is a workload's verdict in a few words, for the header, and how many
// nodes fell, "" for none.
func VerdictOf(w *report.Workload, s *style.Styles) (verdict, fell string) {
	verdict = s.Of(wording.State(w.Verdict.Attribution)).Render(wording.Attribution(w.Verdict.Attribution))
	if w.Rollout.Spreading {
		verdict = s.BadBadge.Render("SPREADING")
	}
	if w.Measures != nil && len(w.Measures.After) > 0 {
		fell = fmt.Sprintf("%d fell", len(w.Measures.After))
	}
	return verdict, fell
}
