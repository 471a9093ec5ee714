package probes

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// waitsForTheDead gives the verdict for a rollout that makes no new Pod before an old
// one has ended, which is on a node that nobody reaches: a Deployment that recreates, or
// a StatefulSet, of which no two Pods may have one name.
// Source: pkg/controller/deployment/recreate.go, oldPodsRunning; pkg/controller/statefulset.
func (c *Diagnosis) waitsForTheDead(r *replicated) bool {
	recreates := r.key.Kind == "StatefulSet" || r.rollout.Strategy == report.Text(appsv1.RecreateDeploymentStrategyType)
	if !recreates || r.rollout.State == report.Complete {
		return false
	}
	byNode := map[string]*corev1.Pod{}
	codes := map[report.Code]int{}
	for _, p := range r.older {
		n := c.nodes[p.Spec.NodeName]
		if p.DeletionTimestamp != nil && r.troubles[p.Name] != nil && n != nil && n.failing() && !n.reachable() {
			if byNode[n.name] == nil {
				codes[n.code]++
			}
			byNode[n.name] = p
		}
	}
	if len(byNode) == 0 {
		return false
	}
	on := map[string]bool{}
	for n := range byNode {
		on[n] = true
	}
	nodes := sortedSet(on)
	v := &r.verdict
	v.Attribution, v.Confidence = report.NodesBlockRollout, report.High
	v.RootCause, _ = top(codes)
	v.Contributing = []report.Code{report.StuckTerminating}
	if r.rollout.State == report.Stuck {
		v.Contributing = append(v.Contributing, report.RolloutStuck)
	}
	v.Summary = report.Textf("the rollout waits for a Pod to end on %s, which cannot be reached", names(nodes, 4))
	v.For = []report.Text{report.Textf("no new Pod is made while an old one is there, and %s/%s has been Terminating since %s", r.key.Namespace, byNode[nodes[0]].Name, dated(r.troubles[byNode[nodes[0]].Name].since))}
	r.recommend = report.Recommendation{Action: report.ActionFixNode, Why: "bring the node back; if it is certain to be powered off, delete its Node object or taint it node.kubernetes.io/out-of-service:NoExecute: then its Pods are removed"}
	c.splitReach(&r.recommend, c.statesOf(nodes))
	c.markNodes(v.RootCause, on)
	return true
}

// loopsReady tells whether a replica that counts as available fails all the same: a crash
// loop without a readiness probe.
func (r *replicated) loopsReady() bool {
	return slices.ContainsFunc(r.pods, func(p *corev1.Pod) bool {
		t := r.troubles[p.Name]
		return t != nil && !t.ofNode && p.DeletionTimestamp == nil && cluster.PodReady(p)
	})
}
