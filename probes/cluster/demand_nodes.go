package cluster

import (
	"slices"

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
	var pinned, candidates []string
	seen := map[string]bool{}
	for _, n := range listed {
		seen[n] = true
	}
	owners := map[types.UID]bool{}
	for _, p := range s.Objects.Pods {
		if !unplaced(p) {
			continue
		}
		if target := TargetNode(p); target != "" {
			if !seen[target] && s.Node(target) != nil && len(pinned) < most {
				pinned, seen[target] = append(pinned, target), true
			}
			continue
		}
		owner := p.UID
		if c := metav1.GetControllerOfNoCopy(p); c != nil {
			owner = c.UID
		}
		if owners[owner] || len(owners) == unplacedOwners {
			continue
		}
		owners[owner] = true
		filter, found := NewNodeFilter(&p.Spec), 0
		for _, n := range s.Objects.Nodes {
			if found == candidatesEach {
				break
			}
			if !filter.Accepts(n) {
				continue
			}
			found++
			if !seen[n.Name] {
				candidates, seen[n.Name] = append(candidates, n.Name), true
			}
		}
	}
	out := slices.Concat(pinned, candidates)
	return out[:min(len(out), most)]
}

// unplaced tells whether the scheduler says that it found no node for the Pod.
func unplaced(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || PodTerminal(p) {
		return false
	}
	c := PodCondition(p, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}
