package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// invariants are the four that a DaemonSet must keep, in their order: every eligible
// node has exactly one Pod; what it requests fits there; it tolerates what its job
// asks for; it is available where it runs, within its budget.
func (c *Diagnosis) invariants(d *daemonSet) []report.Invariant {
	return []report.Invariant{c.oneEach(d), c.itFits(d), c.tolerance(d), c.availability(d)}
}

func invariant(name report.Text, h report.Holding, format string, args ...any) report.Invariant {
	return report.Invariant{Name: name, Holds: h, Why: report.Textf(format, args...)}
}

// moves tells that the rollout changes Pods now, so that a node may have none or two.
func (d *daemonSet) moves() bool {
	return d.rollout.State == report.Progressing || d.rollout.State == report.Slow
}

// surges tells that a node has an old and a new Pod by design, until the new one is
// available: a surge that is stuck is the resources' matter.
func (d *daemonSet) surges() bool {
	return d.rollout.MaxSurgeResolved > 0 && d.rollout.State != report.Complete
}

func (c *Diagnosis) oneEach(d *daemonSet) report.Invariant {
	const name = "coverage"
	k := &d.coverage.counters
	switch {
	case d.coverage.none != nil && d.coverage.none.severity != report.Info:
		return invariant(name, report.DoesNotHold, "no node is eligible: %s", d.coverage.none.why)
	case !d.coverage.complete:
		return invariant(name, report.NotKnown, "not all nodes were read")
	case k.Desired == 0:
		return invariant(name, report.Holds, "no node is eligible, and that is meant")
	case !k.Known:
		return invariant(name, report.NotKnown, "its Pods were not read; status counts %d of %d", d.ds.Status.CurrentNumberScheduled, d.ds.Status.DesiredNumberScheduled)
	}
	var none, many []string
	for i := range k.Nodes {
		p := &k.Nodes[i]
		if !p.ShouldRun {
			continue
		}
		live := 0
		for _, q := range p.Pods {
			if q.DeletionTimestamp == nil {
				live++
			}
		}
		switch {
		case live == 0:
			none = append(none, p.Node)
		case live > 1 && !d.surges():
			many = append(many, p.Node)
		}
	}
	var parts []string
	if len(none) > 0 {
		parts = append(parts, fmt.Sprintf("%s none: %s", haveNone(len(none)), names(none, 3)))
	}
	if len(many) > 0 {
		parts = append(parts, fmt.Sprintf("%s more than one: %s", haveNone(len(many)), names(many, 3)))
	}
	switch {
	case len(parts) == 0:
		each := "exactly one Pod on each of %s"
		if d.surges() {
			each = "a Pod on each of %s, and a second where the surge is at work"
		}
		return invariant(name, report.Holds, each, count(k.Desired, "eligible node"))
	case d.moves() && len(none) <= max(d.rollout.MaxUnavailableResolved, 1) && len(many) == 0:
		return invariant(name, report.Holds, "%s, as the rollout under way takes it", strings.Join(parts, "; "))
	}
	return invariant(name, report.DoesNotHold, "of %s %s", count(k.Desired, "eligible node"), strings.Join(parts, "; "))
}

func haveNone(n int) string {
	if n == 1 {
		return "1 has"
	}
	return fmt.Sprintf("%d have", n)
}

// nowhere answers for a DaemonSet without an eligible node: where that is meant there is
// nothing to break, and where it is not there is nothing to tell from.
func (c *Diagnosis) nowhere(d *daemonSet, name report.Text) report.Invariant {
	if none := d.coverage.none; none != nil && none.severity != report.Info {
		return invariant(name, report.NotKnown, "no node is eligible")
	}
	return invariant(name, report.Holds, "no node is eligible")
}

// itFits holds what the template requests against the nodes: by Pods that wait for
// room, and by the ledgers of nodes that have none of its Pods.
func (c *Diagnosis) itFits(d *daemonSet) report.Invariant {
	const name = "resources"
	k := &d.coverage.counters
	if k.Desired == 0 {
		return c.nowhere(d, name)
	}
	var short, unread []string
	for i := range k.Nodes {
		p := &k.Nodes[i]
		if !p.ShouldRun {
			continue
		}
		if k.Known && len(p.Pods) > 0 {
			for _, pod := range p.Pods { // the old one has its room; the new one beside it may wait for some
				if t := d.troubles[pod.Name]; t != nil && (t.code == report.InsufficientResources || t.code == report.SurgeNoRoom) {
					short = append(short, p.Node+" ("+firstWords(string(t.summary), 60)+")")
					break
				}
			}
			continue
		}
		if !k.Known {
			unread = append(unread, p.Node)
			continue
		}
		lacking, known := c.lacking(&d.ds.Spec.Template.Spec, p.Node)
		switch {
		case len(lacking) > 0:
			short = append(short, p.Node+" (lacks "+strings.Join(lacking, ", ")+")")
		case !known:
			unread = append(unread, p.Node)
		}
	}
	requests := requestText(&d.ds.Spec.Template.Spec)
	switch {
	case len(short) > 0:
		return invariant(name, report.DoesNotHold, "%s, and there is no room on %s", requests, names(short, 3))
	case len(unread) == k.Desired && int(d.ds.Status.NumberReady) >= k.Desired:
		return invariant(name, report.Holds, "%s; status counts every Pod Ready, so each has found room", requests)
	case len(unread) > 0:
		return invariant(name, report.NotKnown, "%s; not all Pods of %s were read", requests, names(unread, 3))
	}
	return invariant(name, report.Holds, "%s; every Pod has found room", requests)
}

// lacking is what the node has too little of for one more Pod of the spec, and whether
// all of the node's Pods were read: what is lacking already is so either way.
func (c *Diagnosis) lacking(spec *corev1.PodSpec, node string) (short []string, known bool) {
	l := c.s.Ledger(node)
	return lackingIn(l, cluster.PodRequests(spec)), l.Known
}

func lackingIn(l cluster.Ledger, requests corev1.ResourceList) []string {
	var short []string
	for r, q := range requests {
		free := l.Free[r]
		if q.Sign() > 0 && q.Cmp(free) > 0 {
			short = append(short, fmt.Sprintf("%s: asks for %s, free is %s", r, q.String(), free.String()))
		}
	}
	slices.Sort(short)
	return short
}

// requestText writes what a Pod asks for.
func requestText(s *corev1.PodSpec) string {
	r := cluster.PodRequests(s)
	delete(r, corev1.ResourcePods)
	if text := quantities(r); text != "" {
		return "requests " + text
	}
	return "requests nothing"
}

// quantities writes a list of resources, cpu and memory first.
func quantities(r corev1.ResourceList) string {
	order := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
	var keys []corev1.ResourceName
	for k := range r {
		keys = append(keys, k)
	}
	place := func(k corev1.ResourceName) int {
		if i := slices.Index(order, k); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(keys, func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		if q := r[k]; !q.IsZero() {
			parts = append(parts, string(k)+" "+q.String())
		}
	}
	return strings.Join(parts, ", ")
}

// stateTaints are those that a node has while it is not Ready. An agent that a node
// cannot do without must come back while they are there.
var stateTaints = []corev1.Taint{{Key: cluster.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}, {Key: cluster.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}}

// tolerance asks for what the job needs. Nodes that are set apart by a taint are left
// out by design, unless the template selects them by label or is what a node needs to
// work at all.
func (c *Diagnosis) tolerance(d *daemonSet) report.Invariant {
	const name = "tolerance"
	t := &d.ds.Spec.Template
	critical := networkAgent(&t.Spec) || t.Spec.PriorityClassName == "system-node-critical"
	var parts []string
	probe := &corev1.Node{Spec: corev1.NodeSpec{Taints: stateTaints}}
	var missing []string
	for _, u := range cluster.UntoleratedTaints(probe, t) {
		missing = append(missing, taintName(&u))
	}
	if critical && len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("a node needs it to work, and it does not tolerate %s: once lost, it does not come back to a node that is not Ready", strings.Join(missing, ", ")))
	}
	var out []string
	apart := 0
	for _, e := range d.coverage.excluded {
		if !strings.HasPrefix(e.why, "taint ") {
			continue
		}
		chosen := len(t.Spec.NodeSelector) > 0 || len(nodeTerms(&t.Spec)) > 0
		if e.deliberate && !chosen && !critical {
			apart += len(e.nodes)
			continue
		}
		out = append(out, fmt.Sprintf("%s on %s", e.why, names(e.nodes, 3)))
	}
	parts = append(parts, out...)
	switch {
	case len(parts) > 0:
		return invariant(name, report.DoesNotHold, "%s", strings.Join(parts, "; "))
	case apart > 0:
		return invariant(name, report.Holds, "%s set apart by a taint, and left out", isAre(apart, "node"))
	case !critical && len(missing) > 0:
		return invariant(name, report.Holds, "every node that it selects; nodes that are not Ready leave DESIRED")
	}
	return invariant(name, report.Holds, "every node that it selects")
}

func (c *Diagnosis) availability(d *daemonSet) report.Invariant {
	const name = "availability"
	k := &d.coverage.counters
	st := &d.ds.Status
	if k.Desired == 0 && k.Known {
		return c.nowhere(d, name)
	}
	if !k.Known {
		if st.NumberUnavailable == 0 && st.DesiredNumberScheduled > 0 && st.ObservedGeneration >= d.ds.Generation {
			return invariant(name, report.Holds, "status counts all %d available; its Pods were not read", st.NumberAvailable)
		}
		return invariant(name, report.NotKnown, "its Pods were not read; status counts %d of %d available", st.NumberAvailable, st.DesiredNumberScheduled)
	}
	var bad []string
	covered := 0
	for i := range k.Nodes {
		p := &k.Nodes[i]
		if !p.ShouldRun || len(p.Pods) == 0 {
			continue
		}
		covered++
		if !p.Available {
			bad = append(bad, p.Node)
		}
	}
	budget := max(d.rollout.MaxUnavailableResolved, 0)
	switch {
	case covered == 0:
		return invariant(name, report.Holds, "there is no Pod of it on an eligible node")
	case len(bad) == 0:
		return invariant(name, report.Holds, "available on all of %s", count(covered, "node"))
	case d.moves() && len(bad) <= budget:
		return invariant(name, report.Holds, "not available on %s, within maxUnavailable %d of the rollout under way: %s", count(len(bad), "node"), budget, names(bad, 3))
	}
	return invariant(name, report.DoesNotHold, "not available on %d of %s: %s", len(bad), count(covered, "node"), names(bad, 3))
}
