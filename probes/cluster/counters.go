package cluster

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Counters are what a DaemonSet's status says once its controller has seen the
// cluster as it is in the snapshot.
type Counters struct {
	// Known tells whether the DaemonSet's Pods were read. Without them only
	// Desired and each Placement's ShouldRun and MayStay are worked out.
	Known        bool
	Desired      int // nodes that should run a Pod
	Current      int // of those, nodes with at least one Pod, Pending ones included
	Ready        int // of those, nodes whose first Pod is Ready
	Available    int // … and is so for minReadySeconds
	Unavailable  int // Desired less Available
	Updated      int // … and has the current revision
	Misscheduled int // nodes with a Pod that should run none
	// Nodes are the nodes that should run a Pod or have one, by name, and after
	// them those that Pods are aimed at and that do not exist: no counter has these.
	Nodes []Placement
}

// Placement is one node as the status of a DaemonSet counts it.
type Placement struct {
	Node               string
	Missing            bool // the Node object does not exist
	ShouldRun, MayStay bool
	// Pods are the DaemonSet's Pods of this node. The first one stands for the node.
	Pods                      []*corev1.Pod
	Ready, Available, Updated bool // of the first Pod, whether or not the node counts
}

// Counters counts as the DaemonSet controller does when it writes the status of ds,
// with a Pod updated by the rule given. Of each node every owned Pod counts whose
// target it is, one that is being deleted as well, unless it has ended besides: a
// Pod that is Terminating and still Ready is Ready here. A node that is not Ready
// leaves Desired where the template does not tolerate its NoSchedule taint.
// Source: pkg/controller/daemon/daemon_controller.go, updateDaemonSetStatus, getNodesToDaemonPods.
func (s *Snapshot) Counters(ds *appsv1.DaemonSet, updated func(*corev1.Pod) bool) Counters {
	c := Counters{Known: s.PodsKnown(ds.UID)}
	byNode := map[string][]*corev1.Pod{}
	if c.Known {
		byNode = s.placedPods(ds)
	}
	c.Nodes = make([]Placement, 0, max(len(byNode), min(int(ds.Status.DesiredNumberScheduled), len(s.Nodes)), 0))
	minReady := MinReady(ds)
	rule := RuleOf(&ds.Spec.Template)
	add := func(name string, n *corev1.Node) {
		p := Placement{Node: name, Missing: n == nil, Pods: byNode[name]}
		if n != nil {
			p.ShouldRun, p.MayStay = rule.ShouldRun(n)
		}
		if !p.ShouldRun && len(p.Pods) == 0 {
			return
		}
		if len(p.Pods) > 0 {
			first := p.Pods[0]
			p.Ready = PodReady(first)
			p.Available = p.Ready && PodAvailable(first, minReady, s.AsOf)
			p.Updated = updated(first)
		}
		c.count(&p)
		c.Nodes = append(c.Nodes, p)
	}
	for _, n := range s.Nodes {
		add(n.Name, n)
	}
	for _, name := range sortedKeys(byNode) {
		if s.Node(name) == nil {
			add(name, nil)
		}
	}
	if c.Known {
		c.Unavailable = c.Desired - c.Available
	}
	return c
}

func (c *Counters) count(p *Placement) {
	switch {
	case p.Missing:
	case p.ShouldRun:
		c.Desired++
		if len(p.Pods) > 0 {
			c.Current++
		}
		if p.Ready {
			c.Ready++
		}
		if p.Available {
			c.Available++
		}
		if p.Updated {
			c.Updated++
		}
	case len(p.Pods) > 0:
		c.Misscheduled++
	}
}

// placedPods are the owned Pods by the node that they are on or aimed at, in the
// order of the controller: bound Pods first, then the oldest.
// Source: pkg/controller/daemon/daemon_controller.go, podByCreationTimestampAndPhase.
func (s *Snapshot) placedPods(ds *appsv1.DaemonSet) map[string][]*corev1.Pod {
	byNode := map[string][]*corev1.Pod{}
	for _, p := range s.PodsOf(ds.UID) {
		node := TargetNode(p)
		if node == "" || p.DeletionTimestamp != nil && PodTerminal(p) {
			continue
		}
		byNode[node] = append(byNode[node], p)
	}
	for _, pods := range byNode {
		if len(pods) > 1 {
			slices.SortStableFunc(pods, comparePlaced)
		}
	}
	return byNode
}

func comparePlaced(a, b *corev1.Pod) int {
	switch x, y := a.Spec.NodeName != "", b.Spec.NodeName != ""; {
	case x && !y:
		return -1
	case y && !x:
		return 1
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return strings.Compare(a.Name, b.Name)
}
