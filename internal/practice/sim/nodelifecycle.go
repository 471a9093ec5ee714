package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeLifecycle watches heartbeats: a node whose Lease and status both stand still
// for longer than the grace period turns Unknown, and its Pods are marked not
// ready. A node that says Ready=False of itself, on a fresh Lease, is only tainted.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go.
type nodeLifecycle struct {
	w        *World
	recorder *recorder
	taints   *workqueue
	health   map[string]*nodeHealth
	zones    map[string]*zone
}

// nodeHealth is what was last seen of a node, and when it was seen: the node's own
// clock does not matter.
type nodeHealth struct {
	heartbeat metav1.Time
	renewed   metav1.MicroTime
	seen      time.Time
}

func newNodeLifecycle(w *World) *nodeLifecycle {
	c := &nodeLifecycle{
		w: w, recorder: w.newRecorder("node-controller", ""),
		health: map[string]*nodeHealth{}, zones: map[string]*zone{},
	}
	c.taints = w.newQueue(10*time.Millisecond, c.taintByConditions)
	w.nodes.watch(func(old, new *corev1.Node) {
		switch {
		case new == nil:
			if _, known := c.health[old.Name]; known {
				delete(c.health, old.Name)
				c.recorder.event(refNode(old), corev1.EventTypeNormal, "RemovingNode", "Node %s event: Removing Node %s from Controller", old.Name, old.Name)
			}
		default:
			c.taints.add(new.Name)
		}
	})
	// A Pod that is bound to a node which is not Ready is marked at once.
	w.pods.watch(func(old, new *corev1.Pod) {
		if new != nil && new.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == "") {
			k := keyOf(new)
			w.after(10*time.Millisecond, func() {
				if p := w.pods.get(k); p != nil {
					if n := w.nodes.get(p.Spec.NodeName); n != nil && c.health[n.Name] != nil && nodeReadiness(n) != corev1.ConditionTrue {
						c.markNotReady(p)
					}
				}
			})
		}
	})
	return c
}

// start begins to watch. What was known of heartbeats is forgotten, as in a new
// controller manager, which gives every node a whole grace period.
func (c *nodeLifecycle) start() {
	for _, n := range c.w.nodes.all() {
		c.health[n.Name] = &nodeHealth{seen: c.w.now()}
	}
	c.w.every(0, constantly(c.w.timers.MonitorPeriod), c.monitor)
}

func (c *nodeLifecycle) monitor() {
	byZone := map[string][]*corev1.Node{}
	for _, n := range c.w.nodes.all() {
		if c.health[n.Name] == nil {
			c.health[n.Name] = &nodeHealth{seen: c.w.now()}
			c.recorder.event(refNode(n), corev1.EventTypeNormal, "RegisteredNode", "Node %s event: Registered Node %s in Controller", n.Name, n.Name)
		}
		was := nodeReadiness(n)
		n = c.check(n)
		if n == nil {
			continue
		}
		z := zoneOf(n)
		byZone[z] = append(byZone[z], n)
		c.taintForEviction(n)
		if was == corev1.ConditionTrue && nodeReadiness(n) != corev1.ConditionTrue {
			c.recorder.event(refNode(n), corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", n.Name)
			for _, p := range c.w.pods.by(c.w.podsByNode, n.Name) {
				c.markNotReady(p)
			}
		}
	}
	c.judgeZones(byZone)
}

// check looks for a heartbeat and turns a silent node Unknown. It returns the node
// as it is then.
func (c *nodeLifecycle) check(n *corev1.Node) *corev1.Node {
	h, now := c.health[n.Name], c.w.now()
	if ready := nodeCondition(&n.Status, corev1.NodeReady); ready != nil && !ready.LastHeartbeatTime.Equal(&h.heartbeat) {
		h.heartbeat, h.seen = ready.LastHeartbeatTime, now
	}
	if l := c.w.leases.get(key(corev1.NamespaceNodeLease, n.Name)); l != nil && l.Spec.RenewTime != nil && h.renewed.Before(l.Spec.RenewTime) {
		h.renewed, h.seen = *l.Spec.RenewTime, now
	}
	if !now.After(h.seen.Add(c.w.timers.Grace)) {
		return n
	}
	n, err := c.w.nodes.updateStatus(controllerManager, n.Name, func(n *corev1.Node) bool {
		changed := false
		// NetworkUnavailable is not among them: it belongs to the network's own controllers.
		for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
			cond := nodeCondition(&n.Status, t)
			switch {
			case cond == nil:
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
					Type: t, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
					LastHeartbeatTime: n.CreationTimestamp, LastTransitionTime: metav1.NewTime(now),
				})
				changed = true
			case cond.Status != corev1.ConditionUnknown:
				cond.Status, cond.Reason, cond.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
				cond.LastTransitionTime = metav1.NewTime(now)
				changed = true
			}
		}
		return changed
	})
	if err != nil {
		return nil
	}
	return n
}

// markNotReady sets Ready=False on a Pod for its kubelet, which cannot. Nothing
// else changes: ContainersReady stays as it was.
// Source: pkg/controller/util/node/controller_utils.go, MarkPodsNotReady.
func (c *nodeLifecycle) markNotReady(p *corev1.Pod) {
	if podCondition(&p.Status, corev1.PodReady) == nil {
		return
	}
	marked := false
	p, err := c.w.pods.updateStatus(controllerManager, keyOf(p), func(p *corev1.Pod) bool {
		cond := *podCondition(&p.Status, corev1.PodReady)
		cond.Status = corev1.ConditionFalse
		marked = setPodCondition(&p.Status, cond, c.w.now())
		return marked
	})
	if err == nil && marked {
		c.recorder.event(refPod(p), corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	}
}

// taintByConditions keeps the NoSchedule taints in step with a node's conditions
// and with its being cordoned, at once and for every node.
// Source: doNoScheduleTaintingPass.
func (c *nodeLifecycle) taintByConditions(name string) {
	n := c.w.nodes.get(name)
	if n == nil {
		return
	}
	want := map[string]bool{corev1.TaintNodeUnschedulable: n.Spec.Unschedulable}
	for _, cond := range n.Status.Conditions {
		bad := cond.Status == corev1.ConditionTrue
		switch cond.Type {
		case corev1.NodeReady:
			want[corev1.TaintNodeNotReady] = cond.Status == corev1.ConditionFalse
			want[corev1.TaintNodeUnreachable] = cond.Status == corev1.ConditionUnknown
		case corev1.NodeMemoryPressure:
			want[corev1.TaintNodeMemoryPressure] = bad
		case corev1.NodeDiskPressure:
			want[corev1.TaintNodeDiskPressure] = bad
		case corev1.NodePIDPressure:
			want[corev1.TaintNodePIDPressure] = bad
		case corev1.NodeNetworkUnavailable:
			want[corev1.TaintNodeNetworkUnavailable] = bad
		}
	}
	var add []string
	for _, k := range conditionTaints {
		if want[k] {
			add = append(add, k)
		}
	}
	c.setTaints(name, corev1.TaintEffectNoSchedule, add, conditionTaints)
}

// conditionTaints are reserved: the controller removes those of them that no
// condition asks for, whoever set them.
var conditionTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable,
}

// setTaints leaves a node with exactly the wanted ones of the reserved taints of
// one effect. Those that were there keep their time.
func (c *nodeLifecycle) setTaints(name string, effect corev1.TaintEffect, want, reserved []string) {
	_, _ = c.w.nodes.update(controllerManager, name, func(n *corev1.Node) bool {
		wanted, reservedSet := setOf(want), setOf(reserved)
		var out []corev1.Taint
		for _, t := range n.Spec.Taints {
			if t.Effect != effect || !reservedSet[t.Key] || wanted[t.Key] {
				out = append(out, t)
			}
		}
		for _, k := range want {
			if !hasTaint(out, k, effect) {
				now := metav1.NewTime(c.w.now())
				out = append(out, corev1.Taint{Key: k, Effect: effect, TimeAdded: &now})
			}
		}
		if equality.Semantic.DeepEqual(out, n.Spec.Taints) {
			return false
		}
		n.Spec.Taints = out
		return true
	})
}

func setOf(keys []string) map[string]bool {
	out := make(map[string]bool, len(keys))
	for _, k := range keys {
		out[k] = true
	}
	return out
}
