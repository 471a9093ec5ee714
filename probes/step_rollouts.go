package probes

import (
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepRollouts answers which rollout is moving: all workloads of all namespaces at once.
func stepRollouts(c *Diagnosis, target report.WorkloadKey) report.Result {
	if !c.s.Read(cluster.DaemonSets) && !c.s.Read(cluster.Deployments) {
		return cannot("workloads were not read")
	}
	var a answer
	fell := c.firstFall()
	calm := 0
	see := func(k report.WorkloadKey, ro *report.Rollout, v *report.Verdict, o *ownership) {
		recent := ro.StartedAt != nil && c.s.AsOf.Sub(ro.StartedAt.Time) < cluster.SuspectBefore
		if ro.State == report.Complete && v.Attribution == report.Healthy && !recent {
			calm++
			return
		}
		state := report.StepNotice
		switch v.Attribution {
		case report.RolloutBreaksNodes, report.RolloutBreaksPods, report.ClusterBlocksPods, report.NodesBlockRollout:
			state = report.StepAnomaly
		}
		mark := ""
		if k == target {
			mark = " (this one)"
		}
		a.say(state, "%s %s/%s: %s, revision %s, %d of %d updated%s", k.Kind, k.Namespace, k.Name, ro.State, number(ro.Revision), ro.Updated, ro.Desired, mark)
		if ro.StartedAt != nil {
			by := "by whom was not read"
			if who := changedBy(ro, o.owners); who != "" {
				by = "by " + who
			}
			rel := ""
			if !fell.IsZero() && ro.StartedAt.Before(fell) && fell.Sub(ro.StartedAt.Time) < cluster.SuspectBefore {
				rel = ", " + short(fell.Sub(ro.StartedAt.Time)) + " before the first node fell"
			}
			a.sub(report.StepNone, "changed %s %s%s", stamp(ro.StartedAt.Time), by, rel)
		}
		if v.Attribution != report.Healthy {
			a.sub(state, "%s (%s): %s", v.Attribution, v.Confidence, v.Summary)
		}
	}
	for _, d := range c.daemonSets {
		see(d.key, &d.rollout, &d.verdict, &d.ownership)
	}
	for _, r := range c.replicated {
		see(r.key, &r.rollout, &r.verdict, &r.ownership)
	}
	if len(a.Lines) == 0 {
		a.say(report.StepOK, "no rollout moves, and none began within the last hour")
	}
	a.say(report.StepOK, "%s: complete, nothing to say", count(calm, "other workload"))
	return a.result()
}
