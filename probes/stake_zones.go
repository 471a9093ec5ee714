package probes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The node controller's defaults. Only the flags of the running one are certain.
// Source: cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go.
const (
	taintEvery        = 10 * time.Second  // --node-eviction-rate 0.1
	slowTaintEvery    = 100 * time.Second // --secondary-node-eviction-rate 0.01
	largeZone         = 50                // --large-cluster-size-threshold
	unhealthyFraction = 0.55              // --unhealthy-zone-threshold
	// excludeDisruption is the label of nodes that do not count for a zone's state.
	// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, labelNodeDisruptionExclusion.
	excludeDisruption = "node.kubernetes.io/exclude-disruption"
)

// zoneState is how the node controller sees a zone.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, ComputeZoneState.
type zoneState struct {
	ready, notReady int
	waiting         []*nodeState // failing, without a NoExecute taint for it, in the order in which they fell
}

func (z *zoneState) full() bool { return z.ready == 0 && z.notReady > 0 }

func (z *zoneState) partial() bool {
	return !z.full() && z.notReady > 2 && float64(z.notReady) >= unhealthyFraction*float64(z.ready+z.notReady)
}

// every is how long the node controller waits between two nodes of the zone; 0 while
// it taints none.
func (z *zoneState) every() time.Duration {
	switch {
	case !z.partial():
		return taintEvery
	case z.ready+z.notReady > largeZone:
		return slowTaintEvery
	}
	return 0
}

// zoneStates are the zones by region and name. allDown tells that none has a Ready
// node: then the node controller takes its taints back and evicts nothing.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, handleDisruption.
func (c *Diagnosis) zoneStates() (zones map[string]*zoneState, allDown bool) {
	zones = map[string]*zoneState{}
	for _, n := range c.nodeList {
		key := zoneKey(n.node)
		z := zones[key]
		if z == nil {
			z = &zoneState{}
			zones[key] = z
		}
		if _, excluded := n.node.Labels[excludeDisruption]; !excluded {
			if n.ready == corev1.ConditionTrue {
				z.ready++
			} else {
				z.notReady++
			}
		}
		if n.ready != corev1.ConditionTrue && n.removal == "" && !healthTainted(n.node) {
			z.waiting = append(z.waiting, n)
		}
	}
	allDown = len(zones) > 0
	for _, z := range zones {
		allDown = allDown && z.full()
		slices.SortStableFunc(z.waiting, func(a, b *nodeState) int { return lastShown(a).Compare(lastShown(b)) })
	}
	return zones, allDown
}

// zoneKey is the node controller's name for a node's zone.
// Source: component-helpers node/topology/helpers.go, GetZoneKey.
func zoneKey(n *corev1.Node) string {
	region := n.Labels[corev1.LabelTopologyRegion]
	if region == "" {
		region = n.Labels[corev1.LabelFailureDomainBetaRegion]
	}
	return region + "\x00" + zone(n)
}

// healthTainted tells whether the node carries the NoExecute taint for not being Ready.
func healthTainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
}

// earliestTaint is when the NoExecute taint of a waiting node can come at the
// earliest; zero where it does not come as things stand.
func (c *Diagnosis) earliestTaint(z *zoneState, place int) time.Time {
	every := z.every()
	if every == 0 {
		return time.Time{}
	}
	return c.s.AsOf.Add(time.Duration(place) * every)
}
