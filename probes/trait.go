package probes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// trait is something that nodes can share: a zone, a pool, a kernel.
type trait struct{ name, value string }

func (t trait) String() string { return t.name + " " + t.value }

// poolLabels name a node's pool, by who makes it.
var poolLabels = []string{"node.kubernetes.io/pool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
	"karpenter.sh/nodepool", "kops.k8s.io/instancegroup", "node-pool", "nodepool", "pool", "agentpool", "rack", "topology.kubernetes.io/rack", "topology.rook.io/rack"}

// traits are what a node may have in common with others that fail. The hostname and
// labels that every node has alike say nothing.
func traits(n *corev1.Node) []trait {
	var out []trait
	add := func(name, value string) {
		if value != "" {
			out = append(out, trait{name, value})
		}
	}
	add("zone", zone(n))
	for _, l := range poolLabels {
		if v := n.Labels[l]; v != "" {
			name := "pool"
			if strings.HasSuffix(l, "rack") {
				name = "rack"
			}
			add(name, v)
		}
	}
	i := n.Status.NodeInfo
	add("kernel", i.KernelVersion)
	add("kubelet", i.KubeletVersion)
	add("runtime", i.ContainerRuntimeVersion)
	add("OS", i.OSImage)
	add("instance type", n.Labels[corev1.LabelInstanceTypeStable])
	add("architecture", n.Labels[corev1.LabelArchStable])
	return out
}

func zone(n *corev1.Node) string {
	if z := n.Labels[corev1.LabelTopologyZone]; z != "" {
		return z
	}
	return n.Labels[corev1.LabelFailureDomainBetaZone]
}

func controlPlane(n *corev1.Node) bool { return cluster.ControlPlane(n) }

// sharedTraits finds what all of the first nodes have and few of the others: at most
// a tenth of them. Those that are rarest among the others come together, named as one.
func sharedTraits(fell, fine []*nodeState) (shared []trait, text string) {
	return distinguishing(fell, fine, func(among int) bool { return 10*among <= len(fine) })
}

// enrichedTraits is the weaker question for nodes that are still falling: all of the
// first nodes have it, and by chance that would hardly be.
func enrichedTraits(fell, fine []*nodeState) (shared []trait, text string) {
	return distinguishing(fell, fine, func(among int) bool { return fisher(len(fell), among, 0, len(fine)-among) < 0.01 })
}

func distinguishing(fell, fine []*nodeState, rare func(among int) bool) ([]trait, string) {
	if len(fell) < 2 || len(fine) == 0 {
		return nil, ""
	}
	common, order := map[trait]int{}, []trait{}
	for _, n := range fell {
		for _, t := range traits(n.node) {
			if common[t]++; common[t] == 1 {
				order = append(order, t)
			}
		}
	}
	least := len(fine) + 1
	var found []trait
	for _, t := range order {
		if common[t] < len(fell) {
			continue
		}
		among := 0
		for _, n := range fine {
			if hasTrait(n, t) {
				among++
			}
		}
		switch {
		case !rare(among) || among > least:
		case among < least:
			least, found = among, []trait{t}
		default:
			found = append(found, t)
		}
	}
	var words []string
	for _, t := range found {
		words = append(words, t.String())
	}
	return found, strings.Join(words, ", ")
}

// withinStratum looks for a trait within which the change breaks nodes although over
// all nodes it does not: one kernel, one pool. All that fell have it, hardly a
// reached node that did not fall has it, and unreached nodes that have it are fine.
func (a *analysis) withinStratum(c *Diagnosis) bool {
	A, H := a.by[classAfter], a.by[classHealthy]
	if len(A) < 2 || len(H) == 0 {
		return false
	}
	shared, text := sharedTraits(states(A), states(H))
	if len(shared) == 0 {
		return false
	}
	t := shared[0]
	fellOld, fineOld := 0, 0
	for _, e := range a.by[classOld] {
		if hasTrait(e.node, t) {
			fellOld++
		}
	}
	for _, e := range a.by[classClean] {
		if hasTrait(e.node, t) {
			fineOld++
		}
	}
	if fineOld == 0 {
		return false // nothing shows that nodes with it are fine without the change
	}
	var at []time.Time
	for _, e := range A {
		at = append(at, e.episode.onset.Mid())
	}
	if t.name == "zone" && simultaneous(at, 30*time.Second) >= 0.7 && !a.exposedTogether() {
		return false // the zone was struck, not the change
	}
	others := len(a.by[classOld]) - fellOld
	if fellOld > 0 && 10*fellOld > fellOld+fineOld || others > len(A)/4 || a.count(classBefore) > len(A)/10 {
		return false
	}
	a.stratum = text
	return true
}

func hasTrait(n *nodeState, t trait) bool {
	for _, x := range traits(n.node) {
		if x == t {
			return true
		}
	}
	return false
}

func states(list []*exposure) []*nodeState {
	out := make([]*nodeState, 0, len(list))
	for _, e := range list {
		out = append(out, e.node)
	}
	return out
}
