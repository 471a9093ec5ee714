package triage

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/page/timeline"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// leastDetail is how many lines the detail needs to be worth its place.
const leastDetail = 8

// detail shows the selected workload under the list where a tall screen has room:
// its strategy, what speaks for and against, and its timeline.
func (p *Page) detail(w, h int, s *style.Styles) []string {
	x := p.Selected()
	if x == nil || h < leastDetail {
		return nil
	}
	r := p.st.Report
	lines := []string{"", s.Rule.Render(draw.Rule("─", string(x.Name), w))}
	lines = append(lines, draw.Fit(" "+s.Dim.Render(numbers(x, r)), w))
	if worst := wording.Worst(r); worst == nil || worst.Key() != x.Key() {
		lines = append(lines, draw.Hang(" ", string(x.Verdict.Summary), w-1, nil)...)
	}
	for _, part := range []struct {
		texts []report.Text
		look  report.StepState
	}{{x.Verdict.For, report.StepOK}, {x.Verdict.Against, report.StepNotice}, {x.Verdict.Missing, report.StepUnknown}} {
		for _, t := range part.texts {
			lines = append(lines, draw.Hang(" "+s.Mark(part.look)+" ", string(t), w-1, nil)...)
		}
	}
	if room := h - len(lines) - 1; x.Timeline != nil && room >= 6 {
		t := timeline.Inline(x.Timeline, w-2, min(room, len(x.Timeline.Lanes)+4), s)
		if len(t) > 0 {
			lines = append(lines, "")
		}
		for _, l := range t {
			lines = append(lines, " "+l)
		}
	}
	return draw.Clip(lines, h, w)
}

// numbers is a workload's rollout by its own numbers.
func numbers(x *report.Workload, r *report.Report) string {
	o := x.Rollout
	parts := []string{strategy(x)}
	if o.Strategy == "RollingUpdate" {
		parts[0] = "RollingUpdate, " + parts[0]
	}
	parts = append(parts, fmt.Sprintf("%d of %d updated, %d ready, %d available", o.Updated, o.Desired, o.Ready, o.Available))
	if o.StartedAt != nil {
		t := "since " + wording.Moment(o.StartedAt.Time, r.AsOf.Time)
		if o.ChangedBy != nil {
			t += " by " + string(*o.ChangedBy)
		}
		parts = append(parts, t)
	}
	if o.Remaining != "" {
		parts = append(parts, string(o.Remaining)+" to go at this pace")
	}
	return strings.Join(parts, " · ")
}
