package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// unplacedOwners bounds the workloads whose Pods without a node are looked at when
	// it is worked out on which nodes they might have found room.
	unplacedOwners = 5
	// candidatesEach is how many nodes that would take a Pod, had they room, are asked for.
	candidatesEach = 6
)

// unplacedOn are nodes on which Pods cannot be placed, so that what is free there and
// who has the rest is worth knowing: the node that a daemon Pod is pinned to and, for
// other Pods, some of those whose labels and taints would let them in. Nodes listed
// already are left out; at most `most` are returned.
func (s *Snapshot) unplacedOn(listed []string, most int) []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range listed {
		seen[n] = true
	}
	want := func(n string) {
		if !seen[n] && len(out) < most {
			out, seen[n] = append(out, n), true
		}
	}
	var free []*corev1.Pod
	owners := map[types.UID]bool{}
	for _, p := range s.Objects.Pods {
		if !unplaced(p) {
			continue
		}
		if target := TargetNode(p); target != "" {
			if s.Node(target) != nil {
				want(target)
			}
			continue
		}
		owner := p.UID
		if c := metav1.GetControllerOfNoCopy(p); c != nil {
			owner = c.UID
		}
		if !owners[owner] && len(owners) < unplacedOwners {
			owners[owner] = true
			free = append(free, p)
		}
	}
	for _, p := range free {
		filter, found := NewNodeFilter(&p.Spec), 0
		for _, n := range s.Objects.Nodes {
			if found == candidatesEach || len(out) == most {
				break
			}
			if filter.Accepts(n) {
				found++
				want(n.Name)
			}
		}
	}
	return out
}

// unplaced tells whether the scheduler says that it found no node for the Pod.
func unplaced(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || PodTerminal(p) {
		return false
	}
	c := PodCondition(p, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}
