package probes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/rollcall-k8s/rollcall/internal/defaults"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// requests is what one Pod of the planned template asks of its node. A limit stands
// for a request that is absent.
func (p *planned) requests() corev1.ResourceList { return podRequests(p.template) }

func podRequests(t *corev1.PodTemplateSpec) corev1.ResourceList {
	s := t.Spec.DeepCopy()
	defaults.LimitsAreRequests(s)
	return cluster.PodRequests(s)
}

// headroom sorts nodes by whether one more Pod of the planned template fits.
type headroom struct {
	never    []string // asks for more than the node offers in all
	full     []string // others have too much of it
	preempts []string // fits only if Pods of lower priority are preempted
	unread   int      // nodes of which not all Pods were read: what is allocatable alone speaks
	fits     int
	examples []report.Evidence
}

// insufficientHeadroom finds the nodes on which the planned Pods do not fit. Without
// surge the old Pod's share is given back before the new one asks.
func (p *planned) insufficientHeadroom() *risk {
	nodes := p.nodes
	if !p.isDaemonSet() {
		nodes = p.schedulable()
	}
	if len(nodes) == 0 || !p.c.s.Read(cluster.Nodes) {
		return nil
	}
	h := p.room(nodes)
	if !p.isDaemonSet() {
		return p.noRoomToMove(h, len(nodes))
	}
	bad := len(h.never) + len(h.full) + len(h.preempts)
	if bad == 0 {
		return nil
	}
	r := breaks(report.InsufficientHeadroom, "", h.examples...)
	switch {
	case len(h.never) == len(nodes):
		r.summary = report.Textf("its Pods ask for more than any of %s offers: none of them could be placed", count(len(nodes), "node"))
	case len(h.never)+len(h.full) == 0:
		r.severity = report.Warning
		r.summary = report.Textf("its Pod fits on %s only by preempting Pods of lower priority", count(len(h.preempts), "node"))
	default:
		r.summary = report.Textf("its Pod does not fit on %s of %d", count(len(h.never)+len(h.full), "node"), len(nodes))
		if p.surge > 0 && len(h.never) == 0 {
			r.severity = report.Warning
			r.summary += " beside the old one: the update would stop there"
		} else {
			r.summary += ": it would be Pending there, and the old one gone"
		}
		if p.before != nil && !p.changes() {
			r.severity = report.Warning
		}
		if len(h.preempts) > 0 {
			r.summary += report.Textf("; on %d more it fits by preempting", len(h.preempts))
		}
	}
	r.evidence = append(r.evidence, p.field("spec.template.spec.containers[*].resources.requests", "%s", resourceText(p.requests())))
	if h.unread > 0 {
		r.evidence = append(r.evidence, report.Evidence{Source: "pods", Value: report.Textf("not all Pods of %s were read: there, what is free is at most this much", count(h.unread, "node"))})
	}
	return r
}

// noRoomToMove judges a Deployment or StatefulSet: its Pods go where there is room.
func (p *planned) noRoomToMove(h headroom, n int) *risk {
	request := p.field("spec.template.spec.containers[*].resources.requests", "%s", resourceText(p.requests()))
	switch {
	case p.replicas == 0 || !p.changes():
		return nil
	case len(h.never) == n:
		return breaks(report.InsufficientHeadroom, report.Textf("its Pods ask for more than any of %s that may run them offers", count(n, "node")), append(h.examples, request)...)
	case h.unread == 0 && h.fits+len(h.preempts) == 0 && p.surge > 0:
		r := warning(report.InsufficientHeadroom, report.Textf("no node has room for one more Pod, and the update makes a new one before it ends an old one (maxSurge %s)", p.maxSurge), append(h.examples, request)...)
		if p.unavailable == 0 {
			r.severity = report.Critical
			r.summary += ": it would wait for ever"
		}
		return r
	}
	return nil
}

// room tries every node.
func (p *planned) room(nodes []*corev1.Node) headroom {
	var h headroom
	request, priority := p.requests(), p.priority()
	example := func(node string, lacks []cluster.Shortage, why string) {
		if len(h.examples) == 4 {
			return
		}
		var parts []string
		for _, l := range lacks {
			parts = append(parts, fmt.Sprintf("%s: asks for %s, %s free", l.Resource, l.Requested.String(), l.Free.String()))
		}
		h.examples = append(h.examples, report.Evidence{Source: report.Textf("Node %s", node), Value: report.Textf("%s%s", strings.Join(parts, "; "), why)})
	}
	for _, n := range nodes {
		l := p.c.s.Ledger(n.Name)
		whole := cluster.Ledger{Allocatable: l.Allocatable, Free: l.Allocatable}
		if lacks := whole.Lacks(request); len(lacks) > 0 {
			h.never = append(h.never, n.Name)
			example(n.Name, lacks, " even if it ran nothing else")
			continue
		}
		if !l.Known {
			h.unread++
		}
		if p.surge == 0 && p.isDaemonSet() {
			l.Free = p.without(&l, func(c cluster.Claim) bool { return p.owns(c.Pod) })
		}
		lacks := l.Lacks(request)
		if len(lacks) == 0 {
			h.fits++
			continue
		}
		spared := l
		spared.Free = p.without(&spared, func(c cluster.Claim) bool { return c.Priority < priority && !p.owns(c.Pod) })
		if len(spared.Lacks(request)) == 0 {
			h.preempts = append(h.preempts, n.Name)
			example(n.Name, lacks, "; fits if Pods of lower priority go")
			continue
		}
		h.full = append(h.full, n.Name)
		example(n.Name, lacks, p.largest(&l, lacks[0].Resource))
	}
	return h
}

// largest names who has most of a resource on a node.
func (p *planned) largest(l *cluster.Ledger, r corev1.ResourceName) string {
	var parts []string
	for _, c := range l.Largest(r, 2) {
		q := c.Requests[r]
		parts = append(parts, fmt.Sprintf("%s/%s has %s", c.Pod.Namespace, c.Pod.Name, q.String()))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// without is what is free once some Pods are gone.
func (p *planned) without(l *cluster.Ledger, goes func(cluster.Claim) bool) corev1.ResourceList {
	free := maps.Clone(l.Free)
	for _, c := range l.Claims {
		if !goes(c) {
			continue
		}
		for name, q := range c.Requests {
			total := free[name].DeepCopy()
			total.Add(q)
			free[name] = total
		}
	}
	return free
}

// owns tells whether a Pod is the live workload's.
func (p *planned) owns(pod *corev1.Pod) bool {
	if p.uid == "" {
		return false
	}
	o := metav1.GetControllerOfNoCopy(pod)
	if o == nil {
		return false
	}
	return o.UID == p.uid || slices.ContainsFunc(p.c.s.ReplicaSetsOf(p.uid), func(rs *appsv1.ReplicaSet) bool { return rs.UID == o.UID })
}

// priority is that of the planned Pods, as far as it is known: 0 otherwise.
func (p *planned) priority() int32 {
	s := &p.template.Spec
	switch s.PriorityClassName {
	case "system-node-critical":
		return 2_000_001_000
	case "system-cluster-critical":
		return 2_000_000_000
	}
	for _, c := range p.c.s.PriorityClasses {
		if c.Name == s.PriorityClassName || s.PriorityClassName == "" && c.GlobalDefault {
			if c.PreemptionPolicy != nil && *c.PreemptionPolicy == corev1.PreemptNever {
				return 0
			}
			return c.Value
		}
	}
	if s.Priority != nil {
		return *s.Priority
	}
	return 0
}

// schedulable are the nodes that the scheduler would consider for a Pod of a
// Deployment or StatefulSet: accepted by its selector, not cordoned, tolerated.
func (p *planned) schedulable() []*corev1.Node {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: p.template.Spec.NodeSelector, Affinity: p.template.Spec.Affinity}}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	var out []*corev1.Node
	for _, n := range p.c.s.Nodes {
		if ok, err := required.Match(n); err != nil || !ok || n.Spec.Unschedulable {
			continue
		}
		_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.template.Spec.Tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, true)
		if !untolerated {
			out = append(out, n)
		}
	}
	return out
}

// resourceText writes requests as "cpu 250m, memory 256Mi".
func resourceText(l corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if q := l[name]; name != corev1.ResourcePods && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// timesOver is a quantity n times over.
func timesOver(q resource.Quantity, n int) resource.Quantity {
	out := q.DeepCopy()
	out.Mul(int64(n))
	return out
}

// portsTaken finds host ports of the planned Pods that other Pods hold on their nodes.
func (p *planned) portsTaken() *risk {
	want := cluster.HostPorts(&p.template.Spec)
	if !p.isDaemonSet() || len(want) == 0 {
		return nil
	}
	var ev []report.Evidence
	nodes := 0
	for _, n := range p.nodes {
		taken := false
		l := p.c.s.Ledger(n.Name)
		for _, h := range l.Holders(want) {
			if p.owns(h.Pod) || h.Pod.DeletionTimestamp != nil {
				continue
			}
			taken = true
			if len(ev) < 6 {
				ev = append(ev, report.Evidence{Source: report.Textf("Node %s", n.Name), Value: report.Textf("%s is held by %s/%s", h.HostPort, h.Pod.Namespace, h.Pod.Name)})
			}
		}
		if taken {
			nodes++
		}
	}
	if nodes == 0 {
		return nil
	}
	return breaks(report.HostPortConflict, report.Textf("another Pod holds a host port that it needs on %s: its Pod would be Pending there", count(nodes, "node")), ev...)
}

// hostPortBlocksSurge: two Pods cannot hold one port of a node, so that the new one
// cannot be placed beside the old one.
func (p *planned) hostPortBlocksSurge() *risk {
	want := cluster.HostPorts(&p.template.Spec)
	if len(want) == 0 || p.surge == 0 {
		return nil
	}
	var list []string
	for _, w := range want {
		list = append(list, w.String())
	}
	ev := []report.Evidence{
		p.field("spec.template.spec.containers[*].ports", "host ports %s", names(list, 6)),
		p.field("spec.updateStrategy.rollingUpdate.maxSurge", "%s", p.maxSurge),
	}
	if p.template.Spec.HostNetwork {
		ev = append(ev, p.field("spec.template.spec.hostNetwork", "true: every port that a container names is one of the node's"))
	}
	if !p.isDaemonSet() {
		return p.portsAndReplicas(ev)
	}
	if p.before != nil {
		for _, old := range cluster.HostPorts(&p.before.Spec) {
			if slices.ContainsFunc(want, old.Conflicts) {
				return breaks(report.HostPortBlocksSurge, report.Textf("the new Pod can never be placed: with maxSurge it must run beside the old one, and both want host port %s", old), ev...)
			}
		}
	}
	return warning(report.HostPortBlocksSurge, "every later update would stop at its first node: with maxSurge the new Pod must run beside the old one, and both want the same host port", ev...)
}

// portsAndReplicas: a Deployment whose Pods hold a port of their node can have one of
// them on each node.
func (p *planned) portsAndReplicas(ev []report.Evidence) *risk {
	n := len(p.schedulable())
	if p.replicas < n || !p.c.s.Read(cluster.Nodes) {
		return nil
	}
	ev = append(ev, p.field("spec.replicas", "%d, on %s that may run them", p.replicas, count(n, "node")))
	r := warning(report.HostPortBlocksSurge, "there is no node left for a Pod beside the old ones, since each holds a port of its node", ev...)
	if p.unavailable == 0 {
		r.severity = report.Critical
		r.summary += ": the update would wait for ever"
	}
	return r
}
