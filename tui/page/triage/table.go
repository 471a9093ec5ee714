package triage

import (
	"fmt"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// column is one column of the list: from how many cells on it is shown, and what
// stands in it. The name has what is left.
type column struct {
	from  int
	most  int
	right bool
	cell  func(*report.Workload) string
	look  func(*style.Styles, *report.Workload) draw.Look
}

func dim(s *style.Styles, _ *report.Workload) draw.Look { return s.Dim.Render }

// columns stand after the name, in this order. On a narrow terminal those with
// the highest from are dropped first.
func (p *Page) columns() []column {
	now := p.st.Report.AsOf.Time
	soFar := ""
	if len(p.st.Report.Waiting) > 0 {
		soFar = draw.Ellipsis
	}
	return []column{
		{from: 72, most: 22, cell: func(w *report.Workload) string { return string(w.Namespace) }, look: dim},
		{from: 130, most: 11, cell: func(w *report.Workload) string { return string(w.Kind) }, look: dim},
		{from: 110, most: 9, cell: func(w *report.Workload) string { return wording.Revisions(w.Rollout) }, look: dim},
		{from: 48, most: 12, right: true, cell: func(w *report.Workload) string {
			return fmt.Sprintf("%d/%d%s", w.Rollout.Updated, w.Rollout.Desired, soFar)
		}},
		{from: 64, most: 12, cell: func(w *report.Workload) string { return wording.Rollout(w.Rollout.State) }, look: dim},
		{from: 0, most: 24, cell: func(w *report.Workload) string { return wording.Attribution(w.Verdict.Attribution) },
			look: func(s *style.Styles, w *report.Workload) draw.Look {
				return s.Of(wording.State(w.Verdict.Attribution)).Render
			}},
		{from: 78, most: 6, cell: func(w *report.Workload) string { return string(w.Verdict.Confidence) }, look: dim},
		{from: 100, most: 11, cell: func(w *report.Workload) string {
			if w.Rollout.StartedAt == nil {
				return ""
			}
			return wording.Moment(w.Rollout.StartedAt.Time, now)
		}, look: dim},
		{from: 140, most: 16, cell: func(w *report.Workload) string {
			if w.Rollout.ChangedBy == nil {
				return ""
			}
			return string(*w.Rollout.ChangedBy)
		}, look: dim},
		{from: 150, most: 34, cell: strategy, look: dim},
	}
}

func strategy(w *report.Workload) string {
	r := w.Rollout
	if r.Strategy != "RollingUpdate" {
		return string(r.Strategy)
	}
	out := fmt.Sprintf("%d unavailable", r.MaxUnavailableResolved)
	if r.MaxSurgeResolved > 0 {
		out = fmt.Sprintf("%d surge, ", r.MaxSurgeResolved) + out
	}
	return out + " allowed"
}

// table draws the rows in sight, their columns aligned over what is in sight.
func (p *Page) table(w, h int, s *style.Styles) []string {
	from, to := p.list.Window(len(p.rows), h)
	var cols []column
	var widths []int
	left := w - 5
	for _, c := range p.columns() {
		if w < c.from {
			continue
		}
		width := 0
		for _, x := range p.rows[from:to] {
			width = max(width, draw.Width(c.cell(x)))
		}
		if width == 0 {
			continue
		}
		width = min(width, c.most)
		cols, widths = append(cols, c), append(widths, width)
		left -= width + 2
	}
	name := 8
	for _, x := range p.rows[from:to] {
		name = max(name, draw.Width(string(x.Name)))
	}
	name = max(4, min(name, left))
	var out []string
	for i := from; i < to; i++ {
		x := p.rows[i]
		cursor, look := "  ", s.Text.Render
		if i == p.list.Cursor(len(p.rows)) {
			cursor, look = s.Key.Render("▸ "), s.Cursor.Render
		}
		line := " " + cursor + s.Mark(wording.State(x.Verdict.Attribution)) + " " + look(draw.Pad(draw.Middle(string(x.Name), name), name))
		for j, c := range cols {
			text := draw.Pad(c.cell(x), widths[j])
			if c.right {
				text = draw.PadLeft(c.cell(x), widths[j])
			}
			if c.look != nil {
				text = c.look(s, x)(text)
			}
			line += "  " + text
		}
		out = append(out, draw.Fit(line, w))
	}
	return out
}
