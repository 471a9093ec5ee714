package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// NodeFilter is what a Pod's spec asks of a node's labels and taints, read once for
// many nodes. Only the Pod's own tolerations count: those of a daemon Pod are written
// into it by its controller.
type NodeFilter struct {
	spec     *corev1.PodSpec
	affinity nodeaffinity.RequiredNodeAffinity
}

// NewNodeFilter reads the spec, which must not change afterwards.
func NewNodeFilter(spec *corev1.PodSpec) NodeFilter {
	return NodeFilter{spec: spec, affinity: nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})}
}

// Selects tells whether nodeSelector and required node affinity accept the node.
// Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, Filter.
func (f NodeFilter) Selects(n *corev1.Node) bool {
	ok, err := f.affinity.Match(n)
	return err == nil && ok
}

// Untolerated are the NoSchedule and NoExecute taints that keep the Pod off the node.
// Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, Filter.
func (f NodeFilter) Untolerated(n *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(f.spec.Tolerations, &t) {
			out = append(out, t)
		}
	}
	return out
}

// Cordoned tells whether the node is cordoned and the Pod does not tolerate that.
// Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, Filter.
func (f NodeFilter) Cordoned(n *corev1.Node) bool {
	return n.Spec.Unschedulable && !tolerated(f.spec.Tolerations, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

// Accepts tells whether nothing in the node's labels and taints keeps the Pod away.
// What is free on the node is another matter.
func (f NodeFilter) Accepts(n *corev1.Node) bool {
	return !f.Cordoned(n) && len(f.Untolerated(n)) == 0 && f.Selects(n)
}
