package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxControlPlanes bounds the control-plane nodes among the nodes whose Pods are
	// read: etcd has seldom more members.
	maxControlPlanes = 7
	// maxFailing leaves places for nodes that others ask for.
	maxFailing = 14
	// evictedBy is how long after it fell a node's ordinary Pods are gone: tainted
	// with some delay, 300 s of toleration, and time to be told.
	evictedBy = 15 * time.Minute
)

// nodesWanted are the nodes whose Pods a rule would read now. Each is a list and a
// watch with a field selector, so there are at most maxLedgers: failing ones first,
// then those on which Pods find no room, and the rest of the failing ones.
func (s *Snapshot) nodesWanted() []string {
	failing := s.failingNodes()
	out := slices.Clone(failing[:min(len(failing), maxFailing)])
	out = append(out, s.unplacedOn(out, maxLedgers-len(out))...)
	for _, n := range failing {
		if len(out) < maxLedgers && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// failingNodes are the nodes whose Pods tell of their trouble, the most wanted first:
// the control plane's while any node fails (does etcd run there?), nodes that joined
// and are not Ready (what is missing on them?), and those that fell within a day (who
// will be evicted, and when?), the earliest first; at most maxLedgers.
func (s *Snapshot) failingNodes() []string {
	var joined, planes, failing, evicted []*corev1.Node
	for _, n := range s.Objects.Nodes {
		if ControlPlane(n) {
			planes = append(planes, n)
		}
		c := NodeCondition(n, corev1.NodeReady)
		if c != nil && c.Status == corev1.ConditionTrue {
			continue
		}
		since := n.CreationTimestamp.Time
		if c != nil && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
		switch age := s.AsOf.Sub(since); {
		case s.AsOf.Sub(n.CreationTimestamp.Time) < SuspectBefore:
			joined = append(joined, n)
		case age < evictedBy:
			failing = append(failing, n)
		case age < remembered:
			evicted = append(evicted, n)
		}
	}
	if len(joined)+len(failing)+len(evicted) == 0 {
		return nil
	}
	byFall := func(a, b *corev1.Node) int { return fellAt(a).Compare(fellAt(b)) }
	slices.SortStableFunc(failing, byFall)
	slices.SortStableFunc(evicted, byFall)
	var out []string
	for _, n := range slices.Concat(planes[:min(len(planes), maxControlPlanes)], joined, failing, evicted) {
		if len(out) < maxLedgers && !slices.Contains(out, n.Name) {
			out = append(out, n.Name)
		}
	}
	return out
}

func fellAt(n *corev1.Node) time.Time {
	if c := NodeCondition(n, corev1.NodeReady); c != nil {
		return c.LastTransitionTime.Time
	}
	return n.CreationTimestamp.Time
}
