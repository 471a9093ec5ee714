package timeline

import (
	"slices"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/component/lanes"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// glyphs are the letters of the marks that are drawn; other kinds change a
// lane's state and need none.
var glyphs = []struct {
	kind  report.MarkKind
	glyph rune
	means string
}{
	{report.MarkPodDeleted, 'd', "deleted"},
	{report.MarkPodCreated, 'n', "new Pod"},
	{report.MarkPodReady, 'r', "Pod Ready"},
	{report.MarkTainted, 'T', "tainted"},
	{report.MarkRebooted, 'R', "rebooted"},
	{report.MarkAction, 'A', "action"},
	{report.MarkNote, 'N', "note"},
}

func glyph(k report.MarkKind) rune {
	for _, g := range glyphs {
		if g.kind == k {
			return g.glyph
		}
	}
	return 0
}

var states = []struct {
	state lanes.State
	means string
}{
	{lanes.Good, "Ready"}, {lanes.Failing, "failing"}, {lanes.Bad, "not Ready"}, {lanes.Silent, "Unknown"}, {lanes.Empty, "no Pod"},
}

// Chart is a report's timeline as lanes.
func Chart(t *report.Timeline) *lanes.Chart {
	c := &lanes.Chart{From: t.From.Time, To: t.To.Time}
	for _, l := range t.Lanes {
		c.Lanes = append(c.Lanes, lane(l, t.From.Time, t.To.Time))
	}
	for _, m := range t.Lines {
		c.Lines = append(c.Lines, m.At.Time)
	}
	return c
}

func lane(l report.Lane, from, to time.Time) lanes.Lane {
	out := lanes.Lane{Label: string(l.Node)}
	marks := slices.Clone(l.Marks)
	slices.SortStableFunc(marks, func(a, b report.Mark) int { return a.At.Compare(b.At.Time) })
	out.Spans = []lanes.Span{{From: from, State: first(l.Class, marks)}}
	var deleted time.Time
	for _, m := range marks {
		switch m.Kind {
		case report.MarkNodeReady:
			out.Spans = append(out.Spans, lanes.Span{From: m.At.Time, State: lanes.Good})
		case report.MarkNodeFailing:
			out.Spans = append(out.Spans, lanes.Span{From: m.At.Time, State: lanes.Failing})
		case report.MarkNodeNotReady:
			out.Spans = append(out.Spans, lanes.Span{From: m.At.Time, State: lanes.Bad})
		case report.MarkNodeUnknown:
			out.Spans = append(out.Spans, lanes.Span{From: m.At.Time, State: lanes.Silent})
		case report.MarkPodDeleted:
			deleted = m.At.Time
		case report.MarkPodCreated:
			if !deleted.IsZero() {
				out.Gaps = append(out.Gaps, lanes.Gap{From: deleted, To: m.At.Time})
				deleted = time.Time{}
			}
		}
		if g := glyph(m.Kind); g != 0 {
			mark := lanes.Mark{At: m.At.Time, Glyph: g}
			if m.Until != nil {
				mark.Until = m.Until.Time
			}
			out.Marks = append(out.Marks, mark)
		}
	}
	if !deleted.IsZero() {
		out.Gaps = append(out.Gaps, lanes.Gap{From: deleted, To: to.Add(time.Second)})
	}
	return out
}

// first is the state of a lane before its first mark: what the first mark of the
// node's condition ended, or Ready where it never changed and was not broken from before.
func first(class report.Text, marks []report.Mark) lanes.State {
	for _, m := range marks {
		switch m.Kind {
		case report.MarkNodeReady:
			return lanes.Bad
		case report.MarkNodeFailing, report.MarkNodeNotReady, report.MarkNodeUnknown:
			return lanes.Good
		}
	}
	if class == "prevalent" {
		return lanes.Bad
	}
	return lanes.Good
}

// Looks are the looks of a timeline.
func Looks(s *style.Styles) lanes.Looks {
	return lanes.Looks{
		State: func(st lanes.State) lipgloss.Style {
			switch st {
			case lanes.Good:
				return s.Good
			case lanes.Failing:
				return s.Notice
			case lanes.Bad:
				return s.Bad
			case lanes.Silent:
				return s.Unknown
			}
			return s.Dim
		},
		Mark: s.Strong, Line: s.Key, Cursor: s.Key, Axis: s.Dim,
	}
}

// Legend explains the characters of a timeline that are there; a short one leaves
// out what explains itself.
func Legend(t *report.Timeline, s *style.Styles, short bool, w int) []string {
	k := Looks(s)
	seen := map[report.MarkKind]bool{}
	there := map[lanes.State]bool{}
	span := false
	for _, l := range t.Lanes {
		there[first(l.Class, l.Marks)] = true
		for _, m := range l.Marks {
			if glyph(m.Kind) != 0 && m.At.Before(t.From.Time) {
				continue // not in the picture
			}
			seen[m.Kind] = true
			span = span || m.Until != nil && glyph(m.Kind) != 0
		}
	}
	there[lanes.Good] = there[lanes.Good] || seen[report.MarkNodeReady]
	there[lanes.Failing] = seen[report.MarkNodeFailing]
	there[lanes.Bad] = there[lanes.Bad] || seen[report.MarkNodeNotReady]
	there[lanes.Silent] = seen[report.MarkNodeUnknown]
	there[lanes.Empty] = seen[report.MarkPodDeleted]
	var parts []string
	for _, st := range states {
		if there[st.state] && !(short && st.state == lanes.Empty) {
			parts = append(parts, k.State(st.state).Render(string(st.state.Char()))+" "+s.Dim.Render(st.means))
		}
	}
	for _, g := range glyphs {
		if seen[g.kind] {
			parts = append(parts, s.Strong.Render(string(g.glyph))+" "+s.Dim.Render(g.means))
		}
	}
	if span && !short {
		parts = append(parts, s.Strong.Render(string(lanes.Uncertain))+" "+s.Dim.Render("some time in here"))
	}
	if len(t.Lines) > 0 && !short {
		parts = append(parts, s.Key.Render(string(lanes.Line))+" "+s.Dim.Render("rollout or action"))
	}
	return draw.Flow(parts, "  ", w)
}
