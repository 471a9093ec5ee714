package probes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepPrevention answers what would have stopped this one.
func stepPrevention(c *Diagnosis, target report.WorkloadKey) report.Result {
	d := c.daemonSet(target)
	if d == nil {
		if c.find(target) == nil {
			return gone(target)
		}
		return cannot("this step looks at DaemonSets only")
	}
	var a answer
	r := &d.rollout
	if len(r.Critical) > 0 && r.Strategy != "OnDelete" {
		a.say(report.StepNotice, "node-critical and on RollingUpdate: OnDelete with a canary, or a second DaemonSet for the canary pool")
	}
	if r.MinReadySeconds < int(c.grace.Seconds())+60 && len(r.Critical) > 0 {
		a.say(report.StepNotice, "minReadySeconds %d: at least %d would let a break show before the next node (not now: raising it during an incident replaces everything at once)", r.MinReadySeconds, int(c.grace.Seconds())+60)
	}
	if !hasReadinessProbe(d) {
		a.say(report.StepNotice, "no readiness probe: one that tests what the node needs of it would brake the rollout")
	} else if d.analysis.mode == "B" {
		a.say(report.StepNotice, "its readiness probe passed on broken nodes: test the function that the node needs")
	}
	if r.MaxUnavailableResolved > 1 && len(r.Critical) > 0 {
		a.say(report.StepNotice, "maxUnavailable %s is %d nodes at once: a small absolute number loses fewer", r.MaxUnavailable, r.MaxUnavailableResolved)
	}
	if !toleratesNotReady(d) {
		a.say(report.StepNotice, "it does not tolerate not-ready:NoSchedule and unreachable:NoSchedule: a broken node loses its agent for good")
	}
	if len(a.Lines) == 0 {
		a.say(report.StepOK, "its settings are careful: nothing to add")
	}
	return a.result()
}

// toleratesNotReady tells whether a Pod would be created on a node that is not Ready.
func toleratesNotReady(d *daemonSet) bool {
	for _, key := range []string{cluster.TaintNotReady, cluster.TaintUnreachable} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}}}
		t := d.ds.Spec.Template.DeepCopy()
		t.Spec.NodeSelector, t.Spec.Affinity, t.Spec.NodeName = nil, nil, ""
		if len(cluster.UntoleratedTaints(n, t)) > 0 {
			return false
		}
	}
	return true
}
