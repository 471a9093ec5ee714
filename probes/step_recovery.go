package probes

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepRecovery answers whether it has recovered: by nodes, Leases, taints and Pods,
// not by DESIRED alone.
func stepRecovery(c *Diagnosis, target report.WorkloadKey) report.Result {
	d := c.daemonSet(target)
	if d == nil {
		w := c.find(target)
		if w == nil {
			return gone(target)
		}
		var a answer
		state := report.StepOK
		if w.Rollout.State != report.Complete || w.Verdict.Attribution != report.Healthy {
			state = report.StepAnomaly
		}
		a.say(state, "%s, %d of %d available", w.Rollout.State, w.Rollout.Available, w.Rollout.Desired)
		a.givenBack(w)
		return a.result()
	}
	if !d.podsKnown {
		return cannot("its Pods were not read")
	}
	var a answer
	proof := 2 * c.grace
	var notReady, short1, tainted, noPod, wrong, outOfReach, before []string
	for _, n := range d.pool {
		e := d.analysis.byNode[n.name]
		switch {
		case e != nil && e.class == classPrevalent && n.failing():
			before = append(before, n.name)
			continue
		case n.failing() && !n.reachable():
			outOfReach = append(outOfReach, n.name)
			continue
		case n.failing():
			notReady = append(notReady, n.name)
		default:
			if ready := cluster.NodeCondition(n.node, corev1.NodeReady); ready != nil && c.s.AsOf.Sub(ready.LastTransitionTime.Time) < proof {
				short1 = append(short1, n.name)
			}
		}
		for _, t := range n.node.Spec.Taints {
			if t.Key == cluster.TaintNotReady || t.Key == cluster.TaintUnreachable {
				tainted = append(tainted, n.name)
				break
			}
		}
		s := d.slots[n.name]
		switch {
		case s == nil || s.Pod() == nil:
			noPod = append(noPod, n.name)
		case s.State != cluster.SlotNewAvailable:
			wrong = append(wrong, n.name)
		}
	}
	check := func(list []string, good, bad string) {
		if len(list) == 0 {
			a.say(report.StepOK, "%s", good)
		} else {
			a.say(report.StepAnomaly, "%s %s: %s", count(len(list), "node"), bad, names(list, 6))
		}
	}
	check(notReady, "every reachable node is Ready", "not Ready")
	if len(short1) > 0 {
		a.say(report.StepNotice, "%s Ready for less than %s, two grace periods: %s", count(len(short1), "node"), proof.Truncate(time.Second), names(short1, 6))
	}
	check(tainted, "no not-ready or unreachable taint is left on them", "still tainted")
	check(noPod, "every one of them has a Pod", "without a Pod")
	check(wrong, "every Pod is of the current revision and available", "whose Pod is not of the current revision, or not available")
	if d.rollout.Misscheduled > 0 {
		a.say(report.StepNotice, "%d misscheduled by status", d.rollout.Misscheduled)
	}
	if len(outOfReach) > 0 {
		a.say(report.StepNotice, "not counted, out of reach: %s", names(outOfReach, 6))
	}
	if len(before) > 0 {
		a.say(report.StepNotice, "not counted, broken from before: %s", names(before, 6))
	}
	if d.rollout.Strategy == "OnDelete" {
		a.say(report.StepNotice, "still changed by hand: the update strategy is OnDelete; nobody puts it back but you")
	}
	if w := c.find(target); w != nil {
		a.givenBack(w)
	}
	return a.result()
}
