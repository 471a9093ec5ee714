package probes

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// waitsForAnEnd gives the verdict for a rollout whose budget is used up by Pods that do
// not end on nodes that are fine: no new Pod is made beside them, and no other Pod may go.
// Source: pkg/controller/daemon/update.go, rollingUpdate: a node on which only a Pod that
// is being deleted is left counts as unavailable.
func (c *Diagnosis) waitsForAnEnd(d *daemonSet) bool {
	if d.rollout.State != report.Stuck {
		return false
	}
	var pods []*corev1.Pod
	for i := range d.loop.Slots {
		if s := &d.loop.Slots[i]; s.State == cluster.SlotTerminating {
			if p := s.Terminating[0]; c.lingers(p, d.troubles[p.Name]) {
				pods = append(pods, p)
			}
		}
	}
	// What is short of the budget does not stop a rollout.
	if len(pods) == 0 || len(pods)+d.stuckUnits(c) < d.rollout.MaxUnavailableResolved {
		return false
	}
	d.verdict, d.recommend = c.lingeringVerdict(pods, d.troubles)
	d.verdict.Contributing = appendCode(nil, report.RolloutStuck, d.findings)
	d.verdict.Missing = c.missing(d)
	d.markRoot(d.verdict.RootCause, nil)
	return true
}

// replicaWaitsForAnEnd is the same for what makes no new Pod before an old one has ended.
func (c *Diagnosis) replicaWaitsForAnEnd(r *replicated) bool {
	recreates := r.key.Kind == "StatefulSet" || r.rollout.Strategy == report.Text(appsv1.RecreateDeploymentStrategyType)
	if !recreates || r.rollout.State != report.Stuck {
		return false
	}
	var pods []*corev1.Pod
	for _, p := range r.older {
		if c.lingers(p, r.troubles[p.Name]) {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		return false
	}
	r.verdict, r.recommend = c.lingeringVerdict(pods, r.troubles)
	r.verdict.Contributing = []report.Code{report.RolloutStuck}
	for i := range r.findings {
		if r.findings[i].Code == report.StuckTerminating {
			r.findings[i].Severity = report.StuckTerminating.Severity(true)
		}
	}
	return true
}

// lingers tells whether a Pod is long past its end on a node that is not to blame by
// what its status says.
func (c *Diagnosis) lingers(p *corev1.Pod, t *podTrouble) bool {
	n := c.nodes[p.Spec.NodeName]
	return t != nil && t.code == report.StuckTerminating && !t.ofNode && n != nil && !n.failing()
}

// lingeringVerdict names who keeps the Pods: a finalizer's owner, or the kubelet of
// their node, which has not reported them gone.
func (c *Diagnosis) lingeringVerdict(pods []*corev1.Pod, troubles map[string]*podTrouble) (report.Verdict, report.Recommendation) {
	first := pods[0]
	on := nodesOf(pods)
	v := report.Verdict{RootCause: report.StuckTerminating, Confidence: report.Medium}
	var r report.Recommendation
	who := report.Textf("%s/%s on %s", first.Namespace, first.Name, first.Spec.NodeName)
	v.Summary = report.Textf("the rollout waits for %s to end on %s: %s", count(len(pods), "Pod"), names(on, 4), troubles[first.Name].summary)
	v.For = []report.Text{"no new Pod is made on a node while the old one is there, and it uses up the budget meanwhile"}
	if len(first.Finalizers) > 0 {
		v.Attribution = report.ClusterBlocksPods
		v.Summary += report.Textf("; finalizer %s keeps it", strings.Join(first.Finalizers, ", "))
		r = report.Recommendation{Action: report.ActionFixCluster, Why: report.Textf("%s is kept by its finalizer: see why the controller that set it does not remove it", who)}
	} else {
		v.Attribution = report.NodesBlockRollout
		v.For = append(v.For, report.Textf("the node is Ready, and its kubelet has not ended the Pod: %s", who))
		r = report.Recommendation{Action: report.ActionFixNode, Why: report.Textf("see on the node why %s does not end: a process that cannot be killed, a volume that cannot be unmounted; a reboot of that node ends it. Deleted by force, it may run on beside its successor", who)}
	}
	c.splitReach(&r, c.statesOf(on))
	return v, r
}
