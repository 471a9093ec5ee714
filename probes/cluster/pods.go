package cluster

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// TargetNode is the node that a Pod runs on or, for a daemon Pod that is not
// bound yet, the node that its controller pinned it to (required node affinity on
// metadata.name); "" for any other unbound Pod.
// Source: pkg/controller/daemon/util/daemonset_util.go, GetTargetNodeName.
func TargetNode(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// PodCondition returns the condition of that type, or nil.
func PodCondition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// PodReady tells whether the Pod's Ready condition is True. The phase says
// nothing of it: a Pod on a dead node stays Running.
func PodReady(p *corev1.Pod) bool {
	c := PodCondition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodAvailable tells whether the Pod is Ready for at least minReady.
// Source: pkg/api/v1/pod/util.go, IsPodAvailable.
func PodAvailable(p *corev1.Pod, minReady time.Duration, now time.Time) bool {
	c := PodCondition(p, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	return minReady == 0 || !c.LastTransitionTime.IsZero() && !c.LastTransitionTime.Add(minReady).After(now)
}

// PodTerminal tells whether the Pod has ended for good.
func PodTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// DeleteRequested is when a Pod's deletion was asked for: the deletion timestamp
// is that time plus the grace period. Zero while nobody asked.
// Source: apiserver pkg/registry/rest/delete.go, BeforeDelete.
func DeleteRequested(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	var grace int64
	if p.DeletionGracePeriodSeconds != nil {
		grace = *p.DeletionGracePeriodSeconds
	}
	return p.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

// NodeCondition returns the condition of that type, or nil.
func NodeCondition(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// NodeReadiness is the status of the node's Ready condition; Unknown where the
// kubelet never posted one.
func NodeReadiness(n *corev1.Node) corev1.ConditionStatus {
	if c := NodeCondition(n, corev1.NodeReady); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// NodeReady tells whether the node's Ready condition is True.
func NodeReady(n *corev1.Node) bool { return NodeReadiness(n) == corev1.ConditionTrue }

// ControlPlane tells whether the node's role labels say that it carries a part of the
// control plane. A managed control plane has no such nodes.
func ControlPlane(n *corev1.Node) bool {
	for _, l := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd"} {
		if _, ok := n.Labels[l]; ok {
			return true
		}
	}
	return false
}

// EventOnset is when what an event tells of began.
func EventOnset(e *corev1.Event) time.Time {
	switch {
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// EventLast is when it was last seen. The series wins: the scheduler's events have
// no lastTimestamp at all.
func EventLast(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// EventSource is the component that wrote an event, in either API.
func EventSource(e *corev1.Event) string {
	if e.ReportingController != "" {
		return e.ReportingController
	}
	return e.Source.Component
}

// maxSkew is how far a kubelet's clock may be off before its own time for a renewal
// is not believed.
const maxSkew = 5 * time.Second

// LeaseRenewed is when a kubelet last renewed its Lease, by the API server's clock
// where managedFields tell of the write: spec.renewTime is the kubelet's own, and
// one node's clock may be wrong. Zero where it is not known.
func LeaseRenewed(l *coordinationv1.Lease) time.Time {
	if l == nil || l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(-LeaseSkew(l))
}

// LeaseSkew is how far the clock that renewed a Lease is ahead of the API server's;
// 0 where it is not known or within what a second's rounding and a slow request explain.
func LeaseSkew(l *coordinationv1.Lease) time.Duration {
	if l == nil || l.Spec.RenewTime == nil {
		return 0
	}
	var written time.Time
	for _, f := range l.ManagedFields {
		if f.Time != nil && f.Time.After(written) && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), "f:renewTime") {
			written = f.Time.Time
		}
	}
	if written.IsZero() {
		return 0
	}
	if d := l.Spec.RenewTime.Sub(written); d.Abs() > maxSkew {
		return d
	}
	return 0
}
