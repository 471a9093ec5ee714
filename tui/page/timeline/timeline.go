// Package timeline is what happened, one lane a node on one time axis: in a step
// of the checklist, and as a page of its own with a cursor in time.
package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/component/lanes"
	"github.com/rollcall-k8s/rollcall/tui/component/list"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// Page is the full-screen timeline of one workload.
type Page struct {
	Workload report.WorkloadKey
	t        *report.Timeline
	lanes    []report.Lane // after the filter
	chart    *lanes.Chart  // of them
	list     list.List
	fell     bool // only nodes that fell
	cursor   time.Time
	live     bool          // the cursor stays at the newest moment
	span     time.Duration // of the window; 0 shows everything
	from     time.Time     // of the window, where span is not 0
	top      int
	page     int
	width    int // columns of the last View's lanes
}

// New is the timeline of a workload, its cursor at the newest moment.
func New(k report.WorkloadKey, t *report.Timeline) *Page {
	p := &Page{Workload: k, live: true, width: 60}
	p.Set(t)
	return p
}

// Set takes a newer timeline; the window moves with it while the cursor is at its end.
func (p *Page) Set(t *report.Timeline) {
	if t == nil {
		return
	}
	node := p.node()
	p.t = t
	if p.live || p.cursor.IsZero() {
		p.cursor = t.To.Time
	}
	p.refilter(node)
}

func (p *Page) node() report.Text {
	if i := p.list.Cursor(len(p.lanes)); i >= 0 {
		return p.lanes[i].Node
	}
	return ""
}

func (p *Page) refilter(node report.Text) {
	p.lanes = nil
	for _, l := range p.t.Lanes {
		if p.fell && !fell(l) {
			continue
		}
		if l.Node == node {
			p.list.Select(len(p.lanes), len(p.lanes)+1)
		}
		p.lanes = append(p.lanes, l)
	}
	p.chart = Chart(&report.Timeline{From: p.t.From, To: p.t.To, Lanes: p.lanes, Lines: p.t.Lines})
}

func fell(l report.Lane) bool {
	for _, m := range l.Marks {
		if m.Kind == report.MarkNodeNotReady || m.Kind == report.MarkNodeUnknown {
			return true
		}
	}
	return false
}

// Do handles a command; false where it is not the page's.
func (p *Page) Do(c keymap.Command) bool {
	n := len(p.lanes)
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
	case keymap.Left:
		p.shift(-1)
	case keymap.Right:
		p.shift(1)
	case keymap.ZoomIn:
		p.zoom(0.5)
	case keymap.ZoomOut:
		p.zoom(2)
	case keymap.Filter:
		node := p.node()
		p.fell = !p.fell
		p.refilter(node)
	default:
		return false
	}
	return true
}

// Click selects the lane at line y of the body.
func (p *Page) Click(y int) {
	if i := p.list.At(y-p.top, len(p.lanes)); i >= 0 && y-p.top < p.page {
		p.list.Select(i, len(p.lanes))
	}
}

// window is the span of time that is looked at. The newest moment is its right end
// while the cursor is there; otherwise it moves only as far as the cursor needs.
func (p *Page) window() (from, to time.Time) {
	begin, end := p.t.From.Time, p.t.To.Time
	if p.span == 0 || p.span >= end.Sub(begin) {
		return begin, end
	}
	if p.live {
		p.from = end.Add(-p.span)
	}
	if p.cursor.Before(p.from) {
		p.from = p.cursor
	}
	if p.cursor.After(p.from.Add(p.span)) {
		p.from = p.cursor.Add(-p.span)
	}
	if p.from.Before(begin) {
		p.from = begin
	}
	if p.from.Add(p.span).After(end) {
		p.from = end.Add(-p.span)
	}
	return p.from, p.from.Add(p.span)
}

func (p *Page) shift(cells int) {
	from, to := p.window()
	cell := max(time.Millisecond, to.Sub(from)/time.Duration(max(1, p.width)))
	p.cursor = p.cursor.Add(time.Duration(cells) * cell)
	if p.cursor.Before(p.t.From.Time) {
		p.cursor = p.t.From.Time
	}
	p.live = !p.cursor.Before(p.t.To.Time)
	if p.live {
		p.cursor = p.t.To.Time
	}
}

func (p *Page) zoom(by float64) {
	from, to := p.window()
	all := p.t.To.Sub(p.t.From.Time)
	span := time.Duration(float64(to.Sub(from)) * by)
	span = max(span, 10*time.Second)
	if span >= all {
		p.span = 0
		return
	}
	p.span = span
	p.from = p.cursor.Add(-span / 2)
}

// View is the body of the page: exactly h lines of at most w cells.
func (p *Page) View(w, h int, s *style.Styles) []string {
	from, to := p.window()
	c := *p.chart
	c.From, c.To, c.Cursor = from, to, p.cursor
	shown := "all nodes"
	if p.fell {
		shown = "nodes that fell"
	}
	lines := []string{draw.Spread(" "+s.Strong.Render(string(p.Workload.Name))+s.Dim.Render(fmt.Sprintf("  %s: %d of %d lanes, by first trouble", shown, len(p.lanes), len(p.t.Lanes))),
		s.Dim.Render(wording.Clock(from)+" to "+wording.Clock(to)+" "), w)}
	legend := Legend(p.t, s, false, w-2)
	foot := 2 + len(legend)
	if h < 14 {
		legend, foot = nil, 1
	}
	p.page = max(1, h-len(lines)-1-foot)
	label := LabelWidth(p.lanes, w)
	p.width = max(1, w-label-4)
	lines = append(lines, "  "+strings.Repeat(" ", label+1)+c.Axis(p.width, Looks(s)))
	p.top = len(lines)
	a, b := p.list.Window(len(p.lanes), p.page)
	for i := a; i < b; i++ {
		name := draw.Pad(draw.Middle(string(p.lanes[i].Node), label), label)
		cursor := "  "
		if i == p.list.Cursor(len(p.lanes)) {
			cursor, name = s.Key.Render("▸ "), s.Cursor.Render(name)
		}
		lines = append(lines, cursor+name+" "+c.Row(i, p.width, Looks(s)))
	}
	if len(p.lanes) == 0 {
		lines = append(lines, s.Dim.Render("  no node fell; f shows all"))
	}
	out := draw.Fill(lines, w, h)
	foots := []string{" " + p.under(w-1, s)}
	if len(legend) > 0 {
		foots = append([]string{""}, foots...)
		for _, l := range legend {
			foots = append(foots, " "+l)
		}
	}
	copy(out[max(0, h-len(foots)):], draw.Fill(foots, w, min(h, len(foots))))
	return out
}

// under says what stands under the cursor: its moment, and the last thing that
// happened there.
func (p *Page) under(w int, s *style.Styles) string {
	text := s.Key.Render(string(lanes.Cursor)) + " " + s.Strong.Render(wording.Clock(p.cursor))
	if p.live {
		text += s.Dim.Render(" now")
	}
	if m, ok := p.last(); ok {
		text += "  " + string(m.Text) + s.Dim.Render(fmt.Sprintf(", %s before", wording.Duration(p.cursor.Sub(m.At.Time))))
	}
	return draw.Fit(text, w)
}

func (p *Page) last() (report.Mark, bool) {
	var last report.Mark
	found := false
	i := p.list.Cursor(len(p.lanes))
	if i < 0 {
		return last, false
	}
	for _, m := range p.lanes[i].Marks {
		if m.At.After(p.cursor) || found && m.At.Before(last.At.Time) {
			continue
		}
		last, found = m, true
	}
	return last, found
}

// Facts are the marks of the lane under the cursor, and those that concern every
// lane, in order of time; near is the index of the last one before the cursor, or -1.
func (p *Page) Facts() (lane report.Lane, lines []report.Mark, at time.Time, ok bool) {
	i := p.list.Cursor(len(p.lanes))
	if i < 0 {
		return lane, nil, p.cursor, false
	}
	return p.lanes[i], p.t.Lines, p.cursor, true
}

// LabelWidth is the room for the names of lanes in w cells.
func LabelWidth(ls []report.Lane, w int) int {
	n := 4
	for _, l := range ls {
		n = max(n, draw.Width(string(l.Node)))
	}
	return min(n, max(8, w*3/10))
}

// Inline draws the axis and the first lanes of a timeline in at most h lines of w
// cells; nil where that is too little to read.
func Inline(t *report.Timeline, w, h int, s *style.Styles) []string {
	if t == nil || len(t.Lanes) == 0 || h < 3 || w < 40 || !t.To.After(t.From.Time) {
		return nil
	}
	label := LabelWidth(t.Lanes, w)
	cols := w - label - 2
	legend := Legend(t, s, false, w-label-2)
	if h < 12 || len(legend) > 2 {
		legend = draw.Clip(Legend(t, s, true, w-label-2), 2, w)
	}
	room := h - 1 - len(legend)
	n := len(t.Lanes)
	if n > room {
		n = room - 1
	}
	c := Chart(&report.Timeline{From: t.From, To: t.To, Lanes: t.Lanes[:max(0, n)], Lines: t.Lines})
	lines := []string{strings.Repeat(" ", label+1) + c.Axis(cols, Looks(s))}
	for i := range max(0, n) {
		lines = append(lines, draw.Pad(draw.Middle(string(t.Lanes[i].Node), label), label)+" "+c.Row(i, cols, Looks(s)))
	}
	if n < len(t.Lanes) {
		lines = append(lines, s.Dim.Render(draw.Pad("", label)+fmt.Sprintf(" %d more lanes: ", len(t.Lanes)-n))+s.Key.Render("t"))
	}
	for _, l := range legend {
		lines = append(lines, draw.Fit(strings.Repeat(" ", label+1)+l, w))
	}
	return lines
}
