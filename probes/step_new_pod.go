package probes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepNewPod answers what is wrong with the Pods of the new revision.
func stepNewPod(c *Diagnosis, target report.WorkloadKey) report.Result {
	if r := c.replicatedOf(target); r != nil {
		return c.newReplicas(r)
	}
	d := c.daemonSet(target)
	if d == nil {
		return gone(target)
	}
	var a answer
	c.refusedLines(&a, d.blocked)
	if !d.podsKnown && d.blocked == nil {
		return cannot("its Pods were not read")
	}
	fine, shown := 0, 0
	onFailing := 0
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if !d.ofChange(p) {
			continue
		}
		t := d.troubles[p.Name]
		n := c.nodes[cluster.TargetNode(p)]
		switch {
		case t == nil && cluster.PodReady(p):
			fine++
			if n != nil && n.failing() {
				onFailing++
			}
			continue
		case t == nil:
			a.say(report.StepOK, "%s on %s is starting", p.Name, cluster.TargetNode(p))
			continue
		}
		if shown++; shown > 8 {
			continue
		}
		state := report.StepAnomaly
		if t.ofNode {
			state = report.StepNotice
		}
		a.say(state, "%s on %s: %s %s", p.Name, cluster.TargetNode(p), t.code, t.summary)
		a.details(t)
		if !t.ofNode {
			a.Findings = append(a.Findings, report.Finding{Code: t.code, Severity: report.Warning, Object: report.Object{Kind: "Pod", Namespace: d.key.Namespace, Name: report.Clean(p.Name)},
				Node: report.Clean(p.Spec.NodeName), Since: report.At(t.since), Summary: t.summary, Evidence: t.evidence})
		}
	}
	if shown > 8 {
		a.say(report.StepAnomaly, "and %d more", shown-8)
	}
	a.say(report.StepOK, "%s of %s Ready", count(fine, "Pod"), revisionName(d.analysis.change.revision))
	if onFailing > 0 {
		a.say(report.StepAnomaly, "%d of them on nodes that are not Ready: readiness does not see what they break", onFailing)
	}
	return a.result()
}

// ofChange tells whether the change that is analysed made the Pod.
func (d *daemonSet) ofChange(p *corev1.Pod) bool {
	ch := d.analysis.change
	if ch.hash == "" && ch.current {
		return d.updated(p)
	}
	return d.madeBy(ch, p.Labels[cluster.RevisionHash], p.Labels[cluster.TemplateGenerationLabel])
}

// AskedPod is a Pod whose logs may tell what is wrong.
type AskedPod struct {
	Pod *corev1.Pod
	Why report.Text
	// Reachable tells whether its node's kubelet can be asked.
	Reachable bool
}

// PodsInQuestion are the Pods of a workload whose logs may tell what is wrong with
// it, the more telling first: those that are in trouble, then those that are well on
// nodes that are not. Of both, those whose kubelet can be asked come first.
func (c *Diagnosis) PodsInQuestion(target report.WorkloadKey) []AskedPod {
	var sick, suspect []AskedPod
	ask := func(p *corev1.Pod, t *podTrouble) {
		n := c.nodes[cluster.TargetNode(p)]
		a := AskedPod{Pod: p, Reachable: n != nil && n.reachable()}
		switch {
		case t != nil && !t.ofNode:
			a.Why = report.Textf("%s %s", t.code, t.summary)
			sick = append(sick, a)
		case n != nil && n.failing():
			a.Why = report.Textf("well, on a node that is %s", readiness(n))
			suspect = append(suspect, a)
		}
	}
	if r := c.replicatedOf(target); r != nil {
		for _, p := range r.pods {
			if t := r.troubles[p.Name]; t != nil {
				ask(p, t)
			}
		}
	} else if d := c.daemonSet(target); d != nil {
		for _, p := range c.s.PodsOf(d.ds.UID) {
			if d.ofChange(p) && p.Spec.NodeName != "" {
				ask(p, d.troubles[p.Name])
			}
		}
	}
	all := append(sick, suspect...)
	slices.SortStableFunc(all, func(a, b AskedPod) int {
		switch {
		case a.Reachable == b.Reachable:
			return 0
		case a.Reachable:
			return -1
		}
		return 1
	})
	return all
}

func (c *Diagnosis) replicatedOf(k report.WorkloadKey) *replicated {
	for _, r := range c.replicated {
		if r.key == k {
			return r
		}
	}
	return nil
}

func (c *Diagnosis) newReplicas(r *replicated) report.Result {
	var a answer
	c.refusedLines(&a, r.blocked)
	if !r.podsKnown && r.blocked == nil {
		return cannot("its Pods were not read")
	}
	shown := 0
	for _, p := range r.pods {
		if t := r.troubles[p.Name]; t != nil {
			a.say(report.StepAnomaly, "%s: %s %s", p.Name, t.code, t.summary)
			if shown++; shown <= 8 {
				a.details(t)
			}
		}
	}
	if len(a.Lines) == 0 {
		a.say(report.StepOK, "nothing is wrong with %s of the current revision", count(len(r.pods), "Pod"))
	}
	return a.result()
}

// details are the lines below a Pod's trouble: the scheduler's sentence taken apart,
// then the evidence.
func (a *answer) details(t *podTrouble) {
	for _, part := range t.parts {
		a.sub(report.StepNone, "%s", part)
	}
	for _, e := range t.evidence {
		a.sub(report.StepNone, "%s: %s", e.Source, e.Value)
	}
}

// refusedLines say that Pods cannot even be created, and who refuses them.
func (c *Diagnosis) refusedLines(a *answer, b *blocked) {
	if b == nil {
		return
	}
	x := c.explain(b)
	a.say(report.StepAnomaly, "%s cannot be created: %s", count(b.missing, "Pod"), x.summary)
	for _, g := range x.grounds {
		a.sub(report.StepNone, "%s", g)
	}
	for _, e := range slices.Concat(b.evidence, x.evidence) {
		a.sub(report.StepNone, "%s: %s", e.Source, e.Value)
	}
	for _, m := range x.missing {
		a.sub(report.StepUnknown, "%s", m)
	}
}
