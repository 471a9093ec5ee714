package probes

import (
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
	if !d.podsKnown {
		return cannot("its Pods were not read")
	}
	var a answer
	made := func(p *corev1.Pod) bool {
		ch := d.analysis.change
		if ch.hash == "" && ch.current {
			return d.updated(p)
		}
		return d.madeBy(ch, p.Labels[cluster.RevisionHash], p.Labels[cluster.TemplateGenerationLabel])
	}
	fine, shown := 0, 0
	onFailing := 0
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if !made(p) {
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
		for _, e := range t.evidence {
			a.sub(report.StepNone, "%s: %s", e.Source, e.Value)
		}
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

func (c *Diagnosis) replicatedOf(k report.WorkloadKey) *replicated {
	for _, r := range c.replicated {
		if r.key == k {
			return r
		}
	}
	return nil
}

func (c *Diagnosis) newReplicas(r *replicated) report.Result {
	if !r.podsKnown {
		return cannot("its Pods were not read")
	}
	var a answer
	for _, p := range r.pods {
		if t := r.troubles[p.Name]; t != nil {
			a.say(report.StepAnomaly, "%s: %s %s", p.Name, t.code, t.summary)
		}
	}
	if len(a.Lines) == 0 {
		a.say(report.StepOK, "nothing is wrong with %s of the current revision", count(len(r.pods), "Pod"))
	}
	return a.result()
}
