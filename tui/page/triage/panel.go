package triage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/page/timeline"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// labelWidth is the column of SPREADING, CAUSE and the others.
const labelWidth = 10

// row is one labelled statement of the panel. Keep tells how long it is kept
// when there is no room: the lowest goes first.
type row struct {
	label string
	lines []string
	keep  int
}

// panel is what is wrong, how sure it is and what to press, in at most h lines of w cells.
func panel(st *incident.State, s *style.Styles, w, h int) []string {
	r := st.Report
	rows := rowsOf(st, s, w-labelWidth-2)
	if len(rows) == 0 {
		return quiet(r, s, w)
	}
	for height(rows) > h && len(rows) > 1 {
		rows = shrink(rows)
	}
	var out []string
	for _, x := range rows {
		for i, l := range x.lines {
			label := strings.Repeat(" ", labelWidth)
			if i == 0 {
				look := s.Label
				if x.label == "SPREADING" {
					look = s.BadBadge
				}
				label = look.Render(x.label) + strings.Repeat(" ", max(0, labelWidth-len(x.label)))
			}
			out = append(out, draw.Fit(" "+label+" "+l, w))
		}
	}
	return draw.Clip(out, h, w)
}

func height(rows []row) int {
	n := 0
	for _, r := range rows {
		n += len(r.lines)
	}
	return n
}

// shrink takes a second line from the row that matters least, or that row itself.
func shrink(rows []row) []row {
	for keep := 0; keep < 100; keep++ {
		for i := range rows {
			if rows[i].keep != keep {
				continue
			}
			if n := len(rows[i].lines); n > 1 {
				rows[i].lines = rows[i].lines[:n-1]
				rows[i].lines[n-2] += " " + draw.Ellipsis
				return rows
			}
		}
		for i := range rows {
			if rows[i].keep == keep && keep < 8 {
				return append(rows[:i:i], rows[i+1:]...)
			}
		}
	}
	return rows[:len(rows)-1]
}

// quiet is a cluster of which there is nothing bad to say: two lines.
func quiet(r *report.Report, s *style.Styles, w int) []string {
	moving := 0
	for _, x := range r.Workloads {
		if x.Rollout.State != report.Complete && x.Rollout.State != report.OnDelete {
			moving++
		}
	}
	first := " " + s.Mark(report.StepOK) + " " + s.Strong.Render("Nothing is wrong: ") +
		fmt.Sprintf("%s, all Ready; %s looked at.", wording.Count(r.Nodes.Total, "node"), wording.Count(r.Quiet+len(r.Workloads), "workload"))
	second := "   No rollout is moving."
	switch moving {
	case 0:
	case 1:
		second = "   1 rollout is on its way, at the pace that its own settings allow."
	default:
		second = fmt.Sprintf("   %d rollouts are on their way, at the pace that their own settings allow.", moving)
	}
	return []string{draw.Fit(first, w), draw.Fit(s.Dim.Render(second), w)}
}

func rowsOf(st *incident.State, s *style.Styles, w int) []row {
	r := st.Report
	v := r.Verdict
	worst := wording.Worst(r)
	var rows []row
	add := func(keep int, label, text string, most int) {
		if text != "" {
			rows = append(rows, row{label: label, lines: draw.Clip(draw.Wrap(text, w), most, w), keep: keep})
		}
	}
	if len(r.Waiting) > 0 {
		add(7, "READING", join(r.Waiting, ", ")+": not read to the end, no number below is final", 1)
	}
	if v.Attribution != report.Healthy && v.Attribution != "" {
		if worst != nil {
			if worst.Rollout.Spreading {
				add(9, "SPREADING", dots(brake(worst), reached(worst)), 2)
			} else if worst.Rollout.Brake != "" {
				add(4, "BRAKE", dots(string(worst.Rollout.Brake), reached(worst)), 1)
			}
		}
		rows = append(rows, cause(r, worst, s, w))
		if x, ok := doNow(worst, s, w); ok {
			rows = append(rows, x)
		}
	}
	if x := nodes(r, worst, s); x != "" {
		if worst != nil && w >= 100 {
			x += timeline.Spark(worst.Timeline, min(40, w-draw.Width(x)-33), s)
		}
		add(5, "NODES", x, 1)
	}
	add(3, "REACH", reach(r, worst, w), 1)
	add(4, "IMPACT", strings.Join(wording.Impact(r), " · "), 2)
	add(6, "CLOCKS", clocks(r, worst), 1)
	add(2, "LEFT", join(st.Left, " · "), 2)
	add(1, "NOT READ", notRead(r), 1)
	if len(rows) == 1 && rows[0].label == "NODES" && r.Nodes.NotReady+r.Nodes.Unknown == 0 {
		return nil
	}
	return rows
}

func brake(w *report.Workload) string {
	if w.Rollout.Brake == "" {
		return "nothing brakes it"
	}
	return string(w.Rollout.Brake)
}

func reached(w *report.Workload) string {
	if w.Rollout.NotYetReached == 0 {
		return ""
	}
	return wording.Count(w.Rollout.NotYetReached, "node") + " not reached"
}

// cause is the verdict: how sure, what, and in a sentence why.
func cause(r *report.Report, worst *report.Workload, s *style.Styles, w int) row {
	v := r.Verdict
	head := ""
	if worst != nil && v.Workload != "" {
		head = s.Strong.Render(strings.TrimSpace(string(worst.Name)+" "+wording.Revisions(worst.Rollout))) + " "
	}
	head += wording.Verdict(&v)
	if v.RootCause != "" {
		head += s.Dim.Render(" · " + string(v.RootCause))
	}
	if long := sure(v.Confidence, s) + " confidence: " + head; draw.Width(long) <= w {
		head = long
	} else {
		head = sure(v.Confidence, s) + " " + head
	}
	lines := append([]string{draw.Fit(head, w)}, draw.Clip(draw.Wrap(string(v.Summary), w), 3, w)...)
	if worst != nil && worst.Rollout.StartedAt != nil && v.Workload != "" {
		changed := "changed " + wording.Moment(worst.Rollout.StartedAt.Time, r.AsOf.Time)
		if by := worst.Rollout.ChangedBy; by != nil {
			changed += " by " + string(*by)
		}
		lines = append(lines, draw.Fit(s.Dim.Render(changed), w))
	}
	return row{label: "CAUSE", lines: lines, keep: 8}
}

func sure(c report.Confidence, s *style.Styles) string {
	switch c {
	case report.High:
		return s.Strong.Render("high")
	case report.Medium:
		return s.Notice.Render("medium")
	case report.Low:
		return s.Dim.Render("low")
	}
	return s.Dim.Render("unsure")
}

// doNow is the recommendation as an order, with the keys that carry it out.
func doNow(worst *report.Workload, s *style.Styles, w int) (row, bool) {
	if worst == nil {
		return row{}, false
	}
	rec := worst.Recommendation
	var parts []string
	for _, a := range rec.First {
		if a == report.ActionChangeManager {
			parts = append(parts, s.Strong.Render("suspend its owner"))
			continue
		}
		parts = append(parts, order(a, nil, s))
	}
	if main := order(rec.Action, rec.ToRevision, s); main != "" {
		parts = append(parts, main)
	}
	if len(parts) == 0 {
		return row{}, false
	}
	text := strings.Join(parts, ", then ")
	if rec.Why != "" {
		text += ": " + string(rec.Why)
	}
	lines := draw.Clip(draw.Wrap(text, w), 2, w)
	if t := wording.Owner(worst); t != "" && changes(rec) {
		lines = append(lines, draw.Clip(draw.Hang(s.Notice.Render("! "), t, w, s.Notice.Render), 2, w)...)
	}
	return row{label: "DO NOW", lines: lines, keep: 9}, true
}

// changes tells whether it is recommended to change the workload's object, which its
// owner may mind.
func changes(r report.Recommendation) bool {
	for _, a := range append(slices.Clone(r.First), r.Action) {
		switch a {
		case report.ActionOnDelete, report.ActionRollBack, report.ActionFixWorkload, report.ActionChangeManager:
			return true
		}
	}
	return false
}

func order(a report.RecommendedAction, to *int64, s *style.Styles) string {
	what := wording.Recommended(a, to)
	switch a {
	case report.ActionOnDelete:
		return key("F", s) + " " + s.Strong.Render(what)
	case report.ActionRollBack, report.ActionDeletePod:
		return key("a", s) + " " + s.Strong.Render(what)
	}
	if what == "" {
		return ""
	}
	return s.Strong.Render(what)
}

// key is a key inside a sentence, which must be told from a word without colour.
func key(k string, s *style.Styles) string { return s.Key.Render("[" + k + "]") }

func nodes(r *report.Report, worst *report.Workload, s *style.Styles) string {
	for _, w := range r.Waiting {
		if w == "nodes" {
			return s.Dim.Render("◌ being read")
		}
	}
	n := r.Nodes
	parts := []string{fmt.Sprintf("%d Ready", n.Ready)}
	if n.NotReady > 0 {
		parts = append(parts, s.Bad.Render(fmt.Sprintf("%d False", n.NotReady)))
	}
	if n.Unknown > 0 {
		parts = append(parts, s.Unknown.Render(fmt.Sprintf("%d Unknown", n.Unknown)))
	}
	if worst != nil && worst.Measures != nil && len(worst.Measures.Prevalent) > 0 {
		parts = append(parts, s.Dim.Render(fmt.Sprintf("(%d from before)", len(worst.Measures.Prevalent))))
	}
	if n.Cordoned > 0 {
		parts = append(parts, fmt.Sprintf("%d cordoned", n.Cordoned))
	}
	if p := r.Stake(report.StakeControlPlane); p != nil && p.State == report.StepOK && p.Brief != "" {
		parts = append(parts, string(p.Brief)) // where it is not fine, it is an impact
	}
	return strings.Join(parts, "  ")
}

// reach is on which nodes a change through the API takes effect, and whether the way
// to the API itself runs over failing nodes. The nodes' names go where there is no room.
func reach(r *report.Report, x *report.Workload, w int) string {
	line := func(most int) string {
		var parts []string
		if x != nil {
			if n := len(x.Recommendation.Reachable); n > 0 {
				parts = append(parts, fmt.Sprintf("%d through the API", n))
			}
			if un := x.Recommendation.Unreachable; len(un) > 0 {
				p := fmt.Sprintf("%d only at their console", len(un))
				if most > 0 {
					p += " (" + wording.Names(un, most) + ")"
				}
				parts = append(parts, p)
			}
		}
		if s := r.Stake(report.StakeAPIPath); s != nil && s.Brief != "" {
			parts = append(parts, "your path: "+string(s.Brief))
		}
		return strings.Join(parts, " · ")
	}
	for _, most := range []int{3, 1} {
		if l := line(most); draw.Width(l) <= w {
			return l
		}
	}
	return line(0)
}

func clocks(r *report.Report, w *report.Workload) string {
	var parts []string
	if w != nil && w.Rollout.MayStillFall > 0 {
		p := wording.Count(w.Rollout.MayStillFall, "fresh node") + " may fall"
		if w.Rollout.FallUntil != nil {
			p += " until " + wording.Clock(w.Rollout.FallUntil.Time)
		}
		parts = append(parts, p)
	}
	parts = append(parts, wording.Evictions(r)...)
	return strings.Join(parts, " · ")
}

func notRead(r *report.Report) string {
	var parts []string
	for _, n := range r.NotRead {
		if n.Reason == "Absent" {
			continue // nobody tried: such kinds are not part of this picture
		}
		p := string(n.Resource)
		if n.Namespace != "" {
			p += " of " + string(n.Namespace)
		}
		parts = append(parts, p+" ("+strings.ToLower(string(n.Reason))+")")
	}
	return strings.Join(parts, ", ")
}

func join(texts []report.Text, sep string) string {
	var parts []string
	for _, t := range texts {
		parts = append(parts, string(t))
	}
	return strings.Join(parts, sep)
}

func dots(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " · ")
}
