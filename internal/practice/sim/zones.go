package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// The eviction settings of kube-controller-manager, at their defaults.
const (
	evictionRate          = 0.1  // --node-eviction-rate, nodes per second and zone
	secondaryEvictionRate = 0.01 // --secondary-node-eviction-rate
	largeZone             = 50   // --large-cluster-size-threshold
	unhealthyZone         = 0.55 // --unhealthy-zone-threshold
)

type zoneState int

const (
	zoneInitial zoneState = iota
	zoneNormal
	zonePartial
	zoneFull
)

// zone hands out NoExecute taints one by one: evicting the Pods of a whole zone at
// once would be worse than the zone's own trouble.
type zone struct {
	state zoneState
	rate  float64 // nodes per second; 0 holds all
	next  time.Time
	queue []string // nodes to taint, in the order of their coming
	armed bool
}

var evictionTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

func zoneOf(n *corev1.Node) string { return topology.GetZoneKey(n) }

func (c *nodeLifecycle) zone(name string) *zone {
	z := c.zones[name]
	if z == nil {
		z = &zone{rate: evictionRate}
		c.zones[name] = z
	}
	return z
}

// taintForEviction queues a node that is not Ready for its NoExecute taint, swaps
// the taint where the node went from one trouble to the other, and takes both off
// a node that is Ready.
// Source: processTaintBaseEviction.
func (c *nodeLifecycle) taintForEviction(n *corev1.Node) {
	z := c.zone(zoneOf(n))
	want, other := "", ""
	switch nodeReadiness(n) {
	case corev1.ConditionFalse:
		want, other = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable
	case corev1.ConditionUnknown:
		want, other = corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady
	default:
		c.release(n, z)
		return
	}
	switch {
	case hasTaint(n.Spec.Taints, other, corev1.TaintEffectNoExecute):
		c.setTaints(n.Name, corev1.TaintEffectNoExecute, []string{want}, evictionTaints)
	case hasTaint(n.Spec.Taints, want, corev1.TaintEffectNoExecute):
	case !slices.Contains(z.queue, n.Name):
		z.queue = append(z.queue, n.Name)
		c.arm(z)
	}
}

func (c *nodeLifecycle) release(n *corev1.Node, z *zone) {
	z.queue = slices.DeleteFunc(z.queue, func(q string) bool { return q == n.Name })
	if hasTaint(n.Spec.Taints, corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute) ||
		hasTaint(n.Spec.Taints, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute) {
		c.setTaints(n.Name, corev1.TaintEffectNoExecute, nil, evictionTaints)
	}
}

// arm lets the head of a zone's queue be tainted as soon as the zone's rate allows.
func (c *nodeLifecycle) arm(z *zone) {
	if z.armed || z.rate == 0 || len(z.queue) == 0 {
		return
	}
	z.armed = true
	c.w.after(max(z.next.Sub(c.w.now()), 0), func() {
		z.armed = false
		if z.rate == 0 || len(z.queue) == 0 {
			return
		}
		if z.next.After(c.w.now()) {
			c.arm(z)
			return
		}
		name := z.queue[0]
		z.queue = z.queue[1:]
		z.next = c.w.now().Add(time.Duration(float64(time.Second) / z.rate))
		if n := c.w.nodes.get(name); n != nil {
			switch nodeReadiness(n) {
			case corev1.ConditionFalse:
				c.setTaints(name, corev1.TaintEffectNoExecute, []string{corev1.TaintNodeNotReady}, evictionTaints)
			case corev1.ConditionUnknown:
				c.setTaints(name, corev1.TaintEffectNoExecute, []string{corev1.TaintNodeUnreachable}, evictionTaints)
			}
		}
		c.arm(z)
	})
}

// judgeZones slows or stops evictions where so much of a zone is not Ready that
// the trouble is rather between the nodes and the control plane. With no Ready node
// anywhere, NoExecute taints come off again.
// Source: handleDisruption, ComputeZoneState.
func (c *nodeLifecycle) judgeZones(nodes map[string][]*corev1.Node) {
	allFull, allWereFull := true, true
	states := map[string]zoneState{}
	names := slices.Sorted(maps.Keys(nodes))
	for _, name := range names {
		states[name] = judge(nodes[name])
		allFull = allFull && states[name] == zoneFull
		allWereFull = allWereFull && c.zone(name).state == zoneFull
	}
	switch {
	case allFull && allWereFull:
		return
	case allFull:
		for _, name := range names {
			z := c.zone(name)
			z.state, z.rate = zoneFull, 0
			for _, n := range nodes[name] {
				c.release(n, z)
			}
		}
		return
	case allWereFull:
		for _, h := range c.health {
			h.seen = c.w.now() // a whole grace period again for everyone
		}
	}
	for _, name := range names {
		z := c.zone(name)
		if z.state == states[name] && !allWereFull {
			continue
		}
		z.state = states[name]
		rate := evictionRate
		if z.state == zonePartial {
			rate = 0
			if len(nodes[name]) > largeZone {
				rate = secondaryEvictionRate
			}
		}
		if rate != z.rate {
			z.rate = rate
			z.next = c.w.now()
			if rate > 0 {
				z.next = z.next.Add(time.Duration(float64(time.Second) / rate)) // a new bucket starts drained
			}
		}
		c.arm(z)
	}
}

func judge(nodes []*corev1.Node) zoneState {
	ready, notReady := 0, 0
	for _, n := range nodes {
		if nodeReadiness(n) == corev1.ConditionTrue {
			ready++
		} else {
			notReady++
		}
	}
	switch {
	case ready == 0 && notReady > 0:
		return zoneFull
	case notReady > 2 && float32(notReady)/float32(notReady+ready) >= unhealthyZone:
		return zonePartial
	}
	return zoneNormal
}
