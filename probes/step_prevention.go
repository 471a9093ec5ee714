package probes

import "github.com/rollcall-k8s/rollcall/probes/report"

// preventing are the rules that say what would have stopped an incident.
var preventing = []rule{(*planned).autoUpdates, (*planned).noMinReadySeconds, (*planned).noReadinessProbe, (*planned).budgetTooWide, (*planned).noRevisionHistory, (*planned).mutableImageTag}

// stepPrevention answers what would have stopped this one.
func stepPrevention(c *Diagnosis, target report.WorkloadKey) report.Result {
	p := c.livePlan(target)
	if p == nil {
		return gone(target)
	}
	var a answer
	for _, f := range preventing {
		r := f(p)
		if r == nil {
			continue
		}
		text := r.summary
		if r.code == report.NoMinReadySeconds {
			text += " (not now: raising it during an incident replaces everything at once)"
		}
		a.say(report.StepNotice, "%s", text)
	}
	if p.d != nil {
		if p.hasProbe() && p.d.analysis != nil && p.d.analysis.mode == "B" {
			a.say(report.StepNotice, "its readiness probe passed on broken nodes: test the function that the node needs")
		}
		if !toleratesNotReady(p.template) {
			a.say(report.StepNotice, "it does not tolerate not-ready:NoSchedule and unreachable:NoSchedule: a broken node loses its agent for good")
		}
	}
	if len(a.Lines) == 0 {
		a.say(report.StepOK, "its settings are careful: nothing to add")
	}
	return a.result()
}
