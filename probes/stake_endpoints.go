package probes

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// endpoint is one address behind a Service, one for all its IP families.
type endpoint struct {
	node   *nodeState // nil where it is not known
	pod    *corev1.Pod
	name   string // of the Pod, or its address
	source string // where it was read
	ready  bool   // as the slice, or the Pod's condition, says
	ending bool   // its Pod is being deleted
}

// usable tells whether traffic finds somebody there: it is ready, and its node is not
// silent. A Pod of a silent node may go on saying Ready: nobody is there to correct it.
func (e *endpoint) usable() bool { return e.ready && (e.node == nil || e.node.reachable()) }

// backing is what stands behind a Service.
type backing struct {
	key       types.NamespacedName
	endpoints []endpoint
	known     bool
}

// endpointIndex finds what stands behind Services, each slice looked at once.
type endpointIndex struct {
	c        *Diagnosis
	slices   map[types.NamespacedName][]*discoveryv1.EndpointSlice
	services map[types.NamespacedName]*corev1.Service
	pods     map[string][]*corev1.Pod // by namespace; nil until asked for
}

func (c *Diagnosis) endpointIndex() *endpointIndex {
	x := &endpointIndex{c: c, slices: make(map[types.NamespacedName][]*discoveryv1.EndpointSlice, len(c.s.EndpointSlices)), services: make(map[types.NamespacedName]*corev1.Service, len(c.s.Services))}
	for _, s := range c.s.EndpointSlices {
		if name := s.Labels[discoveryv1.LabelServiceName]; name != "" {
			k := types.NamespacedName{Namespace: s.Namespace, Name: name}
			x.slices[k] = append(x.slices[k], s)
		}
	}
	for _, s := range c.s.Services {
		x.services[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s
	}
	return x
}

// of is what stands behind a Service: by its EndpointSlices or, where there are none
// (a Service with a selector has one, if only an empty one), by the Pods that it means.
func (x *endpointIndex) of(k types.NamespacedName) backing {
	b := backing{key: k}
	if list := x.slices[k]; len(list) > 0 && x.c.s.Read(cluster.EndpointSlices) {
		b.known = true
		seen := map[string]int{}
		for _, s := range list {
			for i := range s.Endpoints {
				x.add(&b, seen, s, &s.Endpoints[i])
			}
		}
		return b
	}
	svc := x.services[k]
	if svc == nil || len(svc.Spec.Selector) == 0 || !x.c.s.Read(cluster.Pods) || !x.c.s.PodScope.All {
		return b
	}
	b.known = true
	for _, p := range x.meant(svc) {
		if p.Spec.NodeName == "" || cluster.PodTerminal(p) {
			continue
		}
		e := endpoint{node: x.c.nodes[p.Spec.NodeName], pod: p, name: p.Name, source: "Pod " + p.Namespace + "/" + p.Name, ending: p.DeletionTimestamp != nil}
		e.ready = !e.ending && (cluster.PodReady(p) || svc.Spec.PublishNotReadyAddresses)
		b.endpoints = append(b.endpoints, e)
	}
	return b
}

// add takes an endpoint in; the same Pod in a slice of the other IP family is one.
func (x *endpointIndex) add(b *backing, seen map[string]int, s *discoveryv1.EndpointSlice, in *discoveryv1.Endpoint) {
	e := endpoint{source: "EndpointSlice " + s.Namespace + "/" + s.Name, ready: in.Conditions.Ready == nil || *in.Conditions.Ready,
		ending: in.Conditions.Terminating != nil && *in.Conditions.Terminating}
	if len(in.Addresses) > 0 {
		e.name = in.Addresses[0]
	}
	if in.NodeName != nil {
		e.node = x.c.nodes[*in.NodeName]
	}
	id := "address " + e.name
	if t := in.TargetRef; t != nil && t.Kind == "Pod" {
		e.name, e.pod = t.Name, x.c.s.Pod(s.Namespace, t.Name)
		id = "Pod " + t.Name
	}
	if i, dup := seen[id]; dup {
		b.endpoints[i].ready = b.endpoints[i].ready || e.ready
		return
	}
	seen[id] = len(b.endpoints)
	b.endpoints = append(b.endpoints, e)
}

// meant are the Pods that a Service's selector means.
func (x *endpointIndex) meant(svc *corev1.Service) []*corev1.Pod {
	if x.pods == nil {
		x.pods = map[string][]*corev1.Pod{}
		for _, p := range x.c.s.Pods {
			x.pods[p.Namespace] = append(x.pods[p.Namespace], p)
		}
	}
	sel := labels.SelectorFromSet(svc.Spec.Selector)
	var out []*corev1.Pod
	for _, p := range x.pods[svc.Namespace] {
		if sel.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// loss is how a Service stands: what is left, and what failing nodes took.
type loss struct {
	total  int // endpoints that are not being deleted; all of them where every one is
	usable int
	onNext int // of the usable ones, on nodes that a spreading rollout reaches next
	onBad  int // of the usable ones, on nodes of the incident
	taken  []*endpoint
	others int // not usable, and no node of the incident is the reason
	sure   bool
}

// lossOf counts what failing nodes took of a Service. An endpoint whose Pod had failed
// before its node did is no loss of the node's.
func (c *Diagnosis) lossOf(k *stake, b *backing) loss {
	var l loss
	for i := range b.endpoints {
		e := &b.endpoints[i]
		if !e.ending {
			l.total++
		}
		bad := e.node != nil && k.on[e.node.name]
		switch {
		case e.usable():
			l.usable++
			if bad {
				l.onBad++
			} else if e.node != nil && k.next[e.node.name] {
				l.onNext++
			}
		case bad && c.fineUntilItsNode(e):
			l.taken = append(l.taken, e)
			l.sure = l.sure || e.pod != nil
		case e.ending:
		case e.node != nil && (e.node.failing() || c.replacement(k, e)):
		default:
			l.others++
		}
	}
	if l.total == 0 {
		l.total = len(b.endpoints)
	}
	return l
}

// explained tells whether the nodes of the incident are why nothing is left: they took
// what was left, as the Pods show, or most of it where the Pods were not read.
func (l *loss) explained() bool { return len(l.taken) > 0 && (l.sure || len(l.taken) > l.others) }

// fineUntilItsNode tells whether the endpoint's Pod had not failed by itself before
// its node did; true where the Pod was not read.
func (c *Diagnosis) fineUntilItsNode(e *endpoint) bool {
	if e.pod == nil {
		return true
	}
	cond := cluster.PodCondition(e.pod, corev1.ContainersReady)
	if cond == nil {
		cond = cluster.PodCondition(e.pod, corev1.PodReady)
	}
	if cond == nil || cond.Status == corev1.ConditionTrue || cond.LastTransitionTime.IsZero() {
		return true
	}
	ep := e.node.current()
	return ep == nil || ep.onset.IsZero() || !cond.LastTransitionTime.Time.Before(ep.onset.From.Add(-skew))
}

// replacement tells whether the endpoint's Pod was made after the nodes fell, in place
// of one that was on them, and has not become Ready yet.
func (c *Diagnosis) replacement(k *stake, e *endpoint) bool {
	if e.pod == nil {
		return false
	}
	var first time.Time
	for _, n := range k.affected {
		if ep := n.current(); ep != nil && !ep.onset.IsZero() && (first.IsZero() || ep.onset.From.Before(first)) {
			first = ep.onset.From
		}
	}
	return !first.IsZero() && e.pod.CreationTimestamp.After(first)
}

// evidence lists the endpoints that nodes took.
func (c *Diagnosis) endpointEvidence(list []*endpoint) []report.Evidence {
	var out []report.Evidence
	for i, e := range list {
		if i == 10 {
			out = append(out, report.Evidence{Source: "and more", Value: report.Textf("%d endpoints", len(list)-i)})
			break
		}
		state := "ready=false"
		if e.ready {
			state = "ready=true, which nobody there can take back"
		}
		if e.ending {
			state = "being deleted"
		}
		out = append(out, report.Evidence{Source: report.Clean(e.source), Value: report.Textf("%s: %s, on node %s (%s)", e.name, state, e.node.name, c.standing(e.node)), At: report.At(lastShown(e.node))})
	}
	return out
}

// lostSince is when the last of the endpoints' nodes fell, zero where that is not known.
func lostSince(list []*endpoint) time.Time {
	var t time.Time
	for _, e := range list {
		t = maxTime(t, lastShown(e.node))
	}
	return t
}

// nodesOfEndpoints names the nodes that the endpoints stand on.
func (c *Diagnosis) nodesOfEndpoints(list []*endpoint) string {
	var out []string
	for _, e := range list {
		if !slices.Contains(out, e.node.name) {
			out = append(out, e.node.name)
		}
	}
	slices.Sort(out)
	return names(c.withAge(out), 3)
}

func ofAll(n, total int) string { return fmt.Sprintf("%d/%d", n, total) }
