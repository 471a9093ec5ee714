// Package triage is the first page: what is wrong in the whole cluster, how sure
// that is, what to press now, and the workloads, the worst first.
package triage

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/component/field"
	"github.com/rollcall-k8s/rollcall/tui/component/list"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// Page is the triage page: the state that it shows and where the operator is in it.
type Page struct {
	st   *incident.State
	rows []*report.Workload // after the filter
	list list.List
	// selected is the workload that the operator has put the cursor on; it stays there
	// when the order changes. Until then the cursor is on the first row, whichever that is.
	selected report.WorkloadKey
	filter   *field.Field // nil while nothing is typed
	listTop  int          // first line of the list in the last View
	page     int          // its height
}

// Set takes a new state; the cursor stays on its workload.
func (p *Page) Set(st *incident.State) {
	p.st = st
	p.refilter()
}

func (p *Page) refilter() {
	p.rows = nil
	if p.st == nil || p.st.Report == nil {
		return
	}
	want := ""
	if p.filter != nil {
		want = strings.ToLower(p.filter.Value())
	}
	at := -1
	for i := range p.st.Report.Workloads {
		w := &p.st.Report.Workloads[i]
		if want != "" && !strings.Contains(strings.ToLower(w.Key().String()+" "+wording.Attribution(w.Verdict.Attribution)), want) {
			continue
		}
		if w.Key() == p.selected {
			at = len(p.rows)
		}
		p.rows = append(p.rows, w)
	}
	p.list.Select(max(at, 0), len(p.rows))
}

func (p *Page) remember() {
	if w := p.Selected(); w != nil {
		p.selected = w.Key()
	}
}

// Selected is the workload under the cursor, nil where there is none.
func (p *Page) Selected() *report.Workload {
	if i := p.list.Cursor(len(p.rows)); i >= 0 {
		return p.rows[i]
	}
	return nil
}

// Select puts the cursor on a workload, where it is listed.
func (p *Page) Select(k report.WorkloadKey) {
	p.selected = k
	p.refilter()
}

// Typing is the field that takes the keys, nil where the page has them itself.
func (p *Page) Typing() *field.Field { return p.filter }

// Filter opens the filter, or closes and clears it.
func (p *Page) Filter(open bool) {
	p.filter = nil
	if open {
		p.filter = field.New("part of a name, namespace or verdict", 64)
	}
	p.refilter()
}

// Filtered tells the page that the text of its field has changed.
func (p *Page) Filtered() { p.refilter() }

// Move handles a movement; false where the command is none.
func (p *Page) Move(c keymap.Command) bool {
	n := len(p.rows)
	switch c {
	case keymap.Up:
		p.list.Move(-1, n)
	case keymap.Down:
		p.list.Move(1, n)
	case keymap.PageUp:
		p.list.Move(-max(1, p.page-1), n)
	case keymap.PageDown:
		p.list.Move(max(1, p.page-1), n)
	case keymap.Top:
		p.list.Select(0, n)
	case keymap.Bottom:
		p.list.Select(n-1, n)
	default:
		return false
	}
	p.remember()
	return true
}

// Click selects the row at line y of the body; true where it was selected before.
func (p *Page) Click(y int) (again bool) {
	i := p.list.At(y-p.listTop, len(p.rows))
	if i < 0 || y-p.listTop >= p.page {
		return false
	}
	again = i == p.list.Cursor(len(p.rows))
	p.list.Select(i, len(p.rows))
	p.remember()
	return again
}

// View is the body of the page: exactly h lines of at most w cells.
func (p *Page) View(w, h int, s *style.Styles) []string {
	r := p.st.Report
	tail := p.tail(s, w)
	// The list keeps at least three rows, and half of what it needs beyond.
	least := min(len(p.rows), 3) + len(tail) + 1
	lines := panel(p.st, s, w, max(1, h-least))
	lines = append(lines, s.Rule.Render(draw.Rule("─", "", w)))
	if p.filter != nil {
		lines = append(lines, draw.Spread(" "+s.Label.Render("filter ")+p.filter.View(max(4, w/2), s),
			s.Dim.Render(fmt.Sprintf("%d of %d  esc clears ", len(p.rows), len(r.Workloads))), w))
	}
	p.listTop = len(lines)
	p.page = max(0, min(len(p.rows), h-len(lines)-len(tail)))
	lines = append(lines, p.table(w, p.page, s)...)
	lines = append(lines, tail...)
	lines = append(lines, p.detail(w, h-len(lines), s)...)
	return draw.Fill(lines, w, h)
}

// tail is what stands under the list.
func (p *Page) tail(s *style.Styles, w int) []string {
	r := p.st.Report
	var text string
	switch {
	case len(p.rows) == 0 && p.filter != nil:
		text = "no workload matches"
	case r.Quiet > 0 && len(r.Workloads) == 0 && r.Verdict.Attribution == report.Healthy: // the panel says it
	case r.Quiet > 0 && len(r.Workloads) == 0:
		text = wording.Count(r.Quiet, "workload") + " fine"
	case r.Quiet > 0:
		text = fmt.Sprintf("%d others fine", r.Quiet)
	case len(r.Workloads) == 0 && len(r.Waiting) == 0:
		text = "no workload was found"
	}
	if text == "" {
		return nil
	}
	if len(r.Waiting) > 0 {
		text += " so far"
	}
	return []string{s.Dim.Render(draw.Fit("     "+text, w))}
}
