package probes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// madeWay is how long a Pod may take to be gone once its grace period is over.
const madeWay = 30 * time.Second

// roomOnItsWay tells of a Pod that was refused a moment ago by what is about to end: a
// Pod that holds its port or its room is being deleted and not late, be it preempted
// for it or its own predecessor. The scheduler looks again by itself.
func (c *Diagnosis) roomOnItsWay(p *corev1.Pod, said *sentence) bool {
	promised := p.Status.NominatedNodeName != "" || said.parsed.Preemption.Terminating
	room, port := false, false
	for _, r := range said.parsed.Reasons {
		room = room || r.Code == report.InsufficientResources && !r.Elsewhere
		port = port || r.Code == report.HostPortConflict && !r.Elsewhere
	}
	if !promised && !room && !port {
		return false
	}
	target := cluster.TargetNode(p)
	if p.Status.NominatedNodeName != "" {
		target = p.Status.NominatedNodeName
	}
	wanted := cluster.HostPorts(&p.Spec)
	return slices.ContainsFunc(c.goingPods(), func(q *corev1.Pod) bool {
		switch {
		case target != "" && q.Spec.NodeName != target:
			return false
		case port:
			held := cluster.HostPorts(&q.Spec)
			return slices.ContainsFunc(wanted, func(w cluster.HostPort) bool { return slices.ContainsFunc(held, w.Conflicts) })
		}
		// Where nobody is promised the node, only the Pod's own predecessor makes way.
		return promised || target != "" && sameWorkload(p, q)
	})
}

// sameWorkload tells whether two Pods are of one DaemonSet or StatefulSet.
func sameWorkload(p, q *corev1.Pod) bool {
	a, b := controllerOf(p), controllerOf(q)
	return a != "" && a == b
}

func controllerOf(p *corev1.Pod) string {
	for i := range p.OwnerReferences {
		if o := &p.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			return string(o.UID)
		}
	}
	return ""
}

// goingPods are those that are being deleted on nodes that answer, and are not late.
func (c *Diagnosis) goingPods() []*corev1.Pod {
	if c.going == nil {
		c.going = []*corev1.Pod{}
		for _, p := range c.s.Pods {
			n := c.nodes[p.Spec.NodeName]
			if p.DeletionTimestamp != nil && !cluster.PodTerminal(p) && n != nil && n.reachable() && c.s.AsOf.Sub(p.DeletionTimestamp.Time) < madeWay {
				c.going = append(c.going, p)
			}
		}
	}
	return c.going
}
