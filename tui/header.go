package tui

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/checklist"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// part is a piece of a line; where the line is too long, the parts with the lowest
// keep are left out first.
type part struct {
	text string
	keep int
}

// fitParts joins the parts that fit w cells.
func fitParts(parts []part, sep string, w int) string {
	for {
		var texts []string
		for _, p := range parts {
			if p.text != "" {
				texts = append(texts, p.text)
			}
		}
		line := strings.Join(texts, sep)
		if draw.Width(line) <= w || len(texts) <= 1 {
			return draw.Fit(line, w)
		}
		low := -1
		for i, p := range parts {
			if p.text != "" && (low < 0 || p.keep < parts[low].keep) {
				low = i
			}
		}
		parts = append(parts[:low:low], parts[low+1:]...)
	}
}

// header is one line on triage, and two where a workload is open.
func (m *Model) header(w int) []string {
	right := m.right(w)
	room := w - draw.Width(right) - 3
	switch m.page() {
	case keymap.OnConnect, keymap.OnTriage:
		return []string{draw.Spread(" "+m.where(room), right+" ", w)}
	}
	return m.workloadHeader(right, room, w)
}

// right is how current the picture is and whether anything can be changed.
func (m *Model) right(w int) string {
	s := m.s
	if m.st == nil {
		return ""
	}
	var parts []part
	if m.practice() && !m.framed() {
		parts = append(parts, part{s.PracticeBadge.Render("PRACTICE"), 3})
	}
	switch {
	case m.trouble():
		parts = append(parts, part{s.Bad.Render("✗ no connection"), 2})
	case m.page() == keymap.OnConnect:
		parts = append(parts, part{s.Dim.Render("◌ reading"), 2})
	case !m.st.Link.Live:
		parts = append(parts, part{s.Bad.Render("○ old " + m.clockNow()), 2})
	default:
		zone := ""
		if w >= 100 {
			zone = s.Dim.Render(" UTC")
		}
		parts = append(parts, part{s.Good.Render("●") + " live " + m.clockNow() + zone, 2})
	}
	if m.st.Identity.ReadOnly {
		parts = append(parts, part{s.ReadBadge.Render("READ-ONLY"), 4})
	} else {
		parts = append(parts, part{s.WriteBadge.Render("WRITE"), 4})
	}
	return fitParts(parts, "  ", w/2)
}

// where is which cluster this is and who looks at it.
func (m *Model) where(w int) string {
	s := m.s
	if m.st == nil {
		return s.Strong.Render("rollcall")
	}
	id := m.st.Identity
	parts := []part{{s.Strong.Render("rollcall"), 1}}
	if id.Context != "" {
		most := max(12, w/2)
		parts = append(parts, part{s.Key.Render(draw.Middle(string(id.Context), most)), 5})
	}
	parts = append(parts, part{s.Dim.Render(string(id.Version)), 0})
	if r := m.st.Report; m.page() != keymap.OnConnect {
		n := wording.Count(r.Nodes.Total, "node")
		for _, x := range r.Waiting {
			if x == "nodes" {
				n = "nodes being read"
			}
		}
		parts = append(parts, part{n, 3})
	}
	parts = append(parts, part{draw.Middle(string(id.User), max(8, w/4)), 2})
	return fitParts(parts, "  ", w)
}

// workloadHeader is the verdict with the key that stops it, and the step.
func (m *Model) workloadHeader(right string, room, w int) []string {
	s := m.s
	x := m.workload()
	name := ""
	var verdict, fell string
	if m.st.Guide != nil {
		name = string(m.st.Guide.Target.Name)
	}
	if m.timeline != nil {
		name = string(m.timeline.Workload.Name)
	}
	revisions := ""
	if x != nil {
		verdict, fell = checklist.VerdictOf(x, s)
		revisions = wording.Revisions(x.Rollout)
	} else {
		verdict = s.Dim.Render("no longer in the report")
	}
	freeze := ""
	if ok, _ := m.works(keymap.Freeze); ok {
		b, _ := keymap.For(m.page(), keymap.Freeze)
		freeze = s.Key.Render(b.Shown()) + " " + b.Label
	} else if x != nil && x.Rollout.Strategy == "OnDelete" {
		freeze = s.Good.Render("frozen")
	}
	taken := draw.Width(verdict) + draw.Width(freeze) + draw.Width(fell) + draw.Width(revisions) + 8
	first := fitParts([]part{{s.Strong.Render(draw.Middle(name, max(10, room-taken))), 3}, {revisions, 1}, {verdict, 5}, {fell, 2}, {freeze, 4}}, "  ", room)
	return []string{draw.Spread(" "+first, right+" ", w), m.stepLine(w, s)}
}

// stepLine is the second line of the header: the step, or what the page is.
func (m *Model) stepLine(w int, s *style.Styles) string {
	if m.timeline != nil {
		return draw.Spread(" "+s.Strong.Render("Timeline")+s.Dim.Render("  newest at the right"), s.Key.Render("esc")+s.Dim.Render("  back "), w)
	}
	st := m.checklist.Step()
	if st == nil {
		return ""
	}
	seen := ""
	if st.SeenAt != nil && w >= wideHeader {
		seen = s.Dim.Render("seen " + wording.Clock(st.SeenAt.Time) + "   ")
	}
	left := fmt.Sprintf(" %d/%d ", st.Number, len(m.st.Guide.Steps)) + s.Mark(checklist.State(st)) + " " + s.Strong.Render(string(st.Title))
	return draw.Spread(left, seen+s.Key.Render("tab")+s.Dim.Render("  all steps "), w)
}

const wideHeader = 100
