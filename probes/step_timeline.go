package probes

import (
	"math"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepTimeline answers whether the timeline fits: Pod replaced against node lost.
func stepTimeline(c *Diagnosis, target report.WorkloadKey) report.Result {
	d := c.daemonSet(target)
	if d == nil {
		if c.find(target) == nil {
			return gone(target)
		}
		return cannot("the Pods of this workload are not tied to nodes: there is no replacement to set against a node")
	}
	switch {
	case !d.podsKnown:
		return cannot("its Pods were not read")
	case d.change.start.IsZero():
		return cannot("when its template changed could not be read")
	}
	var a answer
	an := d.analysis
	m := &an.measures
	A, H := len(m.After), len(m.Healthy)
	if A > 0 {
		a.say(report.StepAnomaly, "%d of %s that had time to fall, fell%s", A, count(A+H, "node"), freshText(len(m.Pending), d))
		a.sub(report.StepAnomaly, "%s", an.lagText())
	} else if H > 0 {
		a.say(report.StepOK, "none of %s that received it and had time to fall, fell", count(H, "node"))
	}
	if n := len(m.Old) + len(m.Clean); n > 0 {
		state := report.StepOK
		if len(m.Old) > 0 {
			state = report.StepNotice
		}
		a.say(state, "%d of %s that did not receive it fell", len(m.Old), count(n, "node"))
	} else if A > 0 {
		a.say(report.StepUnknown, "no node is left on an older revision to compare with")
	}
	for _, x := range []struct {
		list []report.Text
		text string
	}{{m.Before, "fell before their Pod was replaced"}, {m.Late, "fell long after"}, {m.Suffering, "had an unavailable Pod before it was replaced: not counted"},
		{m.Prevalent, "down from before the change: not counted"}, {m.NewNodes, "joined since, or never were Ready: not counted"},
		{m.Explained, "drained, rebooted or being removed: not counted"}, {m.Unclear, "fell at a time that is not known"}} {
		if len(x.list) > 0 {
			a.say(report.StepNotice, "%s %s: %s", count(len(x.list), "node"), x.text, joinTexts(x.list, 4))
		}
	}
	if an.mode != "" {
		a.say(report.StepNotice, "pattern: %s", modeText(an.mode))
	}
	if m.Fisher != nil && A > 0 {
		a.say(report.StepOK, "coverage %s, reached that fell %s, not reached that fell %s, Fisher p = %.2g", percent(m.Coverage), percent(m.Attack), percent(m.Background), *m.Fisher)
	}
	v := &d.verdict
	state := report.StepOK
	if v.Attribution == report.RolloutBreaksNodes {
		state = report.StepAnomaly
	} else if v.Attribution == report.Undetermined {
		state = report.StepUnknown
	}
	a.say(state, "%s, %s confidence, root cause %s", v.Attribution, v.Confidence, orDash(report.Text(v.RootCause)))
	for _, t := range v.Against {
		a.sub(report.StepNotice, "against: %s", t)
	}
	a.Timeline = c.timeline(d)
	a.Findings = d.findings
	return a.result()
}

func percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return string(report.Textf("%.0f %%", math.Round(100**v)))
}

func freshText(n int, d *daemonSet) string {
	if n == 0 {
		return ""
	}
	t := "; " + count(n, "node") + " too fresh to tell"
	if d.rollout.FallUntil != nil {
		t += " (until " + stamp(d.rollout.FallUntil.Time) + ")"
	}
	return t
}
