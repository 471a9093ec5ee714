package cluster

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// RevisionHash is the label that names a Pod's revision, TemplateGeneration the
// label and annotation by which a Pod counts as updated as well.
const (
	RevisionHash               = appsv1.ControllerRevisionHashLabelKey
	TemplateGenerationLabel    = "pod-template-generation"
	TemplateGenerationOnObject = appsv1.DeprecatedTemplateGeneration
)

// Taints that Kubernetes itself puts on nodes by their condition.
const (
	TaintNotReady    = corev1.TaintNodeNotReady
	TaintUnreachable = corev1.TaintNodeUnreachable
)

// automatic are the tolerations that the controller adds to every daemon Pod, and
// the last of them to those on the host's network only.
// Source: pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations.
var automatic = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// tolerates tells whether a daemon Pod of the template tolerates the taint, by its
// own tolerations or by those that the controller adds.
func tolerates(t *corev1.PodTemplateSpec, taint *corev1.Taint) bool {
	added := automatic
	if !t.Spec.HostNetwork {
		added = automatic[:len(automatic)-1]
	}
	return tolerated(t.Spec.Tolerations, taint) || tolerated(added, taint)
}

// Selected tells whether the template's nodeName, nodeSelector and required node
// affinity accept the node; taints are another matter.
func Selected(n *corev1.Node, t *corev1.PodTemplateSpec) bool { return RuleOf(t).Selects(n) }

// NodeRule is a template's choice of nodes, parsed once for many of them.
type NodeRule struct {
	template *corev1.PodTemplateSpec
	required nodeaffinity.RequiredNodeAffinity
}

// RuleOf parses the template's choice of nodes.
func RuleOf(t *corev1.PodTemplateSpec) *NodeRule {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: t.Spec.NodeSelector, Affinity: t.Spec.Affinity}}
	return &NodeRule{template: t, required: nodeaffinity.GetRequiredNodeAffinity(pod)}
}

// Selects is Selected.
func (r *NodeRule) Selects(n *corev1.Node) bool {
	if name := r.template.Spec.NodeName; name != "" && name != n.Name {
		return false
	}
	ok, err := r.required.Match(n)
	return err == nil && ok
}

// UntoleratedTaints are the NoSchedule and NoExecute taints of the node that a
// daemon Pod of the template does not tolerate.
func UntoleratedTaints(n *corev1.Node, t *corev1.PodTemplateSpec) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range n.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !tolerates(t, &taint) {
			out = append(out, taint)
		}
	}
	return out
}

func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(klog.Background(), tolerations, taint, true)
}

// ShouldRun tells whether the DaemonSet controller wants a Pod of the template on
// the node, and whether one that is there may stay. Readiness, resources, ports
// and volumes do not count, and a cordon is tolerated automatically.
// Source: pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod.
func ShouldRun(n *corev1.Node, t *corev1.PodTemplateSpec) (shouldRun, mayStay bool) {
	return RuleOf(t).ShouldRun(n)
}

// ShouldRun is the function of that name.
func (r *NodeRule) ShouldRun(n *corev1.Node) (shouldRun, mayStay bool) {
	if !r.Selects(n) {
		return false, false
	}
	mayStay = true
	untolerated := UntoleratedTaints(n, r.template)
	for _, taint := range untolerated {
		if taint.Effect == corev1.TaintEffectNoExecute {
			mayStay = false
		}
	}
	return len(untolerated) == 0, mayStay
}

// InPool tells whether the DaemonSet is meant for the node: as ShouldRun, but
// without the taints that tell of a node's condition, so that a node that broke
// stays part of what must be explained although DESIRED no longer counts it.
func InPool(n *corev1.Node, t *corev1.PodTemplateSpec) bool { return RuleOf(t).InPool(n) }

// InPool is the function of that name.
func (r *NodeRule) InPool(n *corev1.Node) bool {
	if !r.Selects(n) {
		return false
	}
	for _, taint := range UntoleratedTaints(n, r.template) {
		if !ConditionTaint(taint.Key) {
			return false
		}
	}
	return true
}

// ConditionTaint tells whether Kubernetes itself sets the taint by a node's condition.
func ConditionTaint(key string) bool {
	switch key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable,
		corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure,
		corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeOutOfService:
		return true
	}
	return false
}

// MinReady is spec.minReadySeconds as a duration.
func MinReady(ds *appsv1.DaemonSet) time.Duration {
	return time.Duration(ds.Spec.MinReadySeconds) * time.Second
}

// Updated tells whether a Pod counts as updated: its label names the hash of the
// current revision, or its template generation is the DaemonSet's. hash "" means
// that the current revision is not known.
// Source: pkg/controller/daemon/util/daemonset_util.go, IsPodUpdated.
func Updated(ds *appsv1.DaemonSet, hash string, p *corev1.Pod) bool {
	if hash != "" && p.Labels[RevisionHash] == hash {
		return true
	}
	g := ds.Annotations[TemplateGenerationOnObject]
	return g != "" && p.Labels[TemplateGenerationLabel] == g
}

// SlotState is what the update loop sees on one node.
type SlotState int

// The states. All but SlotOldAvailable and SlotNewAvailable use up one unit of
// maxUnavailable.
const (
	SlotNewAvailable SlotState = iota
	SlotOldAvailable
	SlotOldUnavailable // deleted at once, whatever the budget
	SlotNewUnavailable
	SlotEmpty       // should have a Pod and has none
	SlotTerminating // only Pods that are being deleted
	SlotBoth        // an old and a new Pod
	SlotMany        // more than one old or new Pod: left to the controller's clean-up
)

// Slot is one node as the update loop of a DaemonSet counts it.
type Slot struct {
	Node        string
	State       SlotState
	ShouldRun   bool
	MayStay     bool
	Missing     bool          // the Node object does not exist
	Old, New    *corev1.Pod   // the live Pod of each kind, nil without one
	Terminating []*corev1.Pod // being deleted, not yet gone
}

// Holds tells whether the node uses up a unit of maxUnavailable.
func (s Slot) Holds() bool { return s.State != SlotNewAvailable && s.State != SlotOldAvailable }

// Pod is the live Pod that stands for the node: the new one if there is one.
func (s Slot) Pod() *corev1.Pod {
	switch {
	case s.New != nil:
		return s.New
	case s.Old != nil:
		return s.Old
	case len(s.Terminating) > 0:
		return s.Terminating[0]
	}
	return nil
}

// UpdateLoop is the state in which the update loop of a DaemonSet finds the
// cluster, for a given target template.
type UpdateLoop struct {
	Desired        int // nodes that should run a Pod
	MaxUnavailable int // resolved, rounded up
	MaxSurge       int
	Used           int // units of maxUnavailable in use
	Slots          []Slot
}

// UpdateLoop computes what the DaemonSet controller would count for the template t
// when a Pod is updated by the rule given. Considered are every node with an owned
// Pod that has not ended, whether DESIRED counts the node or not, and every node
// that should have one. Where the DaemonSet's Pods were not read only the counts of
// nodes are worked out.
// Source: pkg/controller/daemon/update.go, rollingUpdate; daemon_controller.go, podsShouldBeOnNode.
func (s *Snapshot) UpdateLoop(ds *appsv1.DaemonSet, t *corev1.PodTemplateSpec, updated func(*corev1.Pod) bool) UpdateLoop {
	byNode := map[string][]*corev1.Pod{}
	for _, p := range s.PodsOf(ds.UID) {
		if node := TargetNode(p); node != "" && !PodTerminal(p) {
			byNode[node] = append(byNode[node], p)
		}
	}
	var u UpdateLoop
	minReady, known := MinReady(ds), s.PodsKnown(ds.UID)
	rule := RuleOf(t)
	add := func(name string, n *corev1.Node) {
		slot := Slot{Node: name, Missing: n == nil}
		if n != nil {
			slot.ShouldRun, slot.MayStay = rule.ShouldRun(n)
		}
		if slot.ShouldRun {
			u.Desired++
		}
		pods := byNode[name]
		if len(pods) == 0 && (!slot.ShouldRun || !known) {
			return
		}
		fillSlot(&slot, pods, updated, minReady, s.AsOf)
		if slot.Holds() {
			u.Used++
		}
		u.Slots = append(u.Slots, slot)
	}
	for _, n := range s.Nodes {
		add(n.Name, n)
	}
	for _, name := range sortedKeys(byNode) {
		if s.Node(name) == nil {
			add(name, nil)
		}
	}
	u.MaxUnavailable, u.MaxSurge = Budget(ds, u.Desired)
	return u
}

func fillSlot(slot *Slot, pods []*corev1.Pod, updated func(*corev1.Pod) bool, minReady time.Duration, now time.Time) {
	olds, news := 0, 0
	for _, p := range pods {
		switch {
		case p.DeletionTimestamp != nil:
			slot.Terminating = append(slot.Terminating, p)
		case updated(p):
			news++
			if slot.New == nil {
				slot.New = p
			}
		default:
			olds++
			if slot.Old == nil {
				slot.Old = p
			}
		}
	}
	switch {
	case olds > 1 || news > 1:
		slot.State = SlotMany
	case olds == 1 && news == 1:
		slot.State = SlotBoth
	case news == 1 && PodAvailable(slot.New, minReady, now):
		slot.State = SlotNewAvailable
	case news == 1:
		slot.State = SlotNewUnavailable
	case olds == 1 && PodAvailable(slot.Old, minReady, now):
		slot.State = SlotOldAvailable
	case olds == 1:
		slot.State = SlotOldUnavailable
	case len(slot.Terminating) > 0:
		slot.State = SlotTerminating
	default:
		slot.State = SlotEmpty
	}
}

// Budget resolves maxUnavailable and maxSurge for that many nodes. Both round
// up; where both come out as 0, maxUnavailable is 1.
// Source: pkg/controller/daemon/update.go, updatedDesiredNodeCounts.
func Budget(ds *appsv1.DaemonSet, desired int) (maxUnavailable, maxSurge int) {
	ru := ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return 1, 0
	}
	maxUnavailable, maxSurge = scaled(ru.MaxUnavailable, desired, 1), scaled(ru.MaxSurge, desired, 0)
	if maxUnavailable == 0 && maxSurge == 0 {
		maxUnavailable = 1
	}
	return maxUnavailable, maxSurge
}

func scaled(v *intstr.IntOrString, total, absent int) int {
	if v == nil {
		return absent
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, total, true)
	if err != nil {
		return absent
	}
	return n
}
