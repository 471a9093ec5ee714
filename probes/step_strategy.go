package probes

import "github.com/rollcall-k8s/rollcall/probes/report"

// stepStrategy answers what the update strategy allows.
func stepStrategy(c *Diagnosis, target report.WorkloadKey) report.Result {
	w := c.find(target)
	if w == nil {
		return gone(target)
	}
	var a answer
	r := &w.Rollout
	if r.Strategy == "OnDelete" {
		a.say(report.StepNotice, "OnDelete: the controller replaces nothing by itself; a Pod that ends for any reason comes back from the current template")
	} else {
		rounding := "both round up"
		if target.Kind != "DaemonSet" {
			rounding = "maxSurge rounds up, maxUnavailable down"
		}
		a.say(report.StepOK, "%s: maxUnavailable %s = %s at once, maxSurge %s = %d (%s)", r.Strategy, orDash(r.MaxUnavailable), count(r.MaxUnavailableResolved, "Pod"), orDash(r.MaxSurge), r.MaxSurgeResolved, rounding)
	}
	critical := len(r.Critical) > 0
	switch {
	case r.MinReadySeconds == 0 && critical:
		a.say(report.StepNotice, "minReadySeconds 0: the next node follows as soon as a Pod is Ready, however soon it breaks its node")
	default:
		a.say(report.StepOK, "minReadySeconds %d", r.MinReadySeconds)
	}
	if critical {
		a.say(report.StepNotice, "its Pods can hurt their node: %s", joinTexts(r.Critical, 6))
	} else {
		a.say(report.StepOK, "nothing in its template gives it power over its node")
	}
	if d := c.daemonSet(target); d != nil {
		if !hasReadinessProbe(d) {
			a.say(report.StepNotice, "no readiness probe: a Pod is Ready as soon as its containers run")
		}
		if r.MaxUnavailableResolved > 1 && critical {
			a.say(report.StepNotice, "%s may lose their Pod at the same time", count(r.MaxUnavailableResolved, "node"))
		}
		for i, h := range r.BudgetHolders {
			if i == 6 {
				a.sub(report.StepNone, "and %d more", len(r.BudgetHolders)-i)
				break
			}
			a.sub(report.StepNotice, "budget used by %s: %s", h.Node, h.Why)
		}
	}
	return a.result()
}

func orDash(t report.Text) report.Text {
	if t == "" {
		return "-"
	}
	return t
}

func hasReadinessProbe(d *daemonSet) bool {
	for _, ct := range d.ds.Spec.Template.Spec.Containers {
		if ct.ReadinessProbe != nil {
			return true
		}
	}
	return false
}
