package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// obstacle is what keeps a Pod off a node by the node's own labels, taints and cordon.
// What comes first is by design, what comes last is nearest to be removed: of several
// on one node the first counts, for without it the others would not matter.
type obstacle int

const (
	notSelected obstacle = iota // nodeSelector or required affinity
	reserved                    // a taint of the node's role, such as the control plane's
	tainted                     // another taint that somebody set
	ailing                      // a taint that tells of the node's condition
	cordoned
	candidate // none: what is free there decides
	obstacles // their number
)

// placement is how the nodes stand to a Pod that is tied to none.
type placement struct {
	by    [obstacles][]*nodeState
	taint map[string]string // by node: the taint that keeps the Pod off
	told  bool              // a finding lists it already
}

// nodeLooks bounds how many nodes are held against Pods without one, over a whole
// diagnosis: with more, the scheduler's own counts have to do.
const nodeLooks = 150_000

// placementOf holds the nodes against a Pod, once for all Pods of one template; nil
// where nodes were not read or there are too many to look at.
func (c *Diagnosis) placementOf(p *corev1.Pod) *placement {
	if !c.s.Read(cluster.Nodes) || len(c.nodeList) == 0 {
		return nil
	}
	key := string(p.UID) + "/" + p.Namespace + "/" + p.Name
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		key = string(o.UID) + "/" + p.Labels[cluster.RevisionHash]
	}
	if pl, ok := c.placements[key]; ok {
		return pl
	}
	if c.nodesLooked += len(c.nodeList); c.nodesLooked > nodeLooks {
		return nil
	}
	pl := &placement{taint: map[string]string{}}
	filter := cluster.NewNodeFilter(&p.Spec)
	for _, n := range c.nodeList {
		o, taint := standing(filter, n.node)
		pl.by[o] = append(pl.by[o], n)
		if taint != "" {
			pl.taint[n.name] = taint
		}
	}
	if c.placements == nil {
		c.placements = map[string]*placement{}
	}
	c.placements[key] = pl
	return pl
}

// standing is what keeps the Pod off the node, and the taint where it is one.
func standing(f cluster.NodeFilter, n *corev1.Node) (obstacle, string) {
	if !f.Selects(n) {
		return notSelected, ""
	}
	found, text := candidate, ""
	for _, t := range f.Untolerated(n) {
		o := tainted
		switch {
		case t.Key == corev1.TaintNodeUnschedulable:
			o = cordoned
		case cluster.ConditionTaint(t.Key):
			o = ailing
		case strings.HasPrefix(t.Key, "node-role.kubernetes.io/"):
			o = reserved
		}
		if o < found {
			found, text = o, oneTaint(t)
		}
	}
	if found == candidate && f.Cordoned(n) {
		found = cordoned
	}
	if found == cordoned {
		text = ""
	}
	return found, text
}

func oneTaint(t corev1.Taint) string {
	s := t.Key
	if t.Value != "" {
		s += "=" + t.Value
	}
	return s + ":" + string(t.Effect)
}

// counted says in a few words what stands against the nodes, the scheduler's own
// reasons for those that are left first.
func (pl *placement) counted() []string {
	var out []string
	for _, x := range []struct {
		of   obstacle
		text string
	}{{cordoned, "cordoned"}, {ailing, "not Ready or under pressure"}, {tainted, "with a taint that it does not tolerate"}, {reserved, "reserved for the control plane"}, {notSelected, "not selected by its affinity"}} {
		if n := len(pl.by[x.of]); n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, x.text))
		}
	}
	return out
}

// evidence lists the nodes with what keeps the Pod off each of them.
func (pl *placement) evidence() []report.Evidence {
	var out []report.Evidence
	for o := candidate - 1; o >= 0; o-- {
		list := pl.by[o]
		if len(list) > nodesNamed {
			out = append(out, report.Evidence{Source: report.Textf("Nodes %s", names(stateNames(list), nodesNamed)), Value: pl.why(o, list[0])})
			continue
		}
		for _, n := range list {
			e := report.Evidence{Source: report.Textf("Node %s", n.name), Value: pl.why(o, n)}
			if o == ailing {
				e.At = report.At(lastShown(n))
			}
			out = append(out, e)
		}
	}
	return out
}

// nodesNamed is how many nodes of one kind are listed one by one.
const nodesNamed = 6

func (pl *placement) why(o obstacle, n *nodeState) report.Text {
	switch o {
	case notSelected:
		return "its labels do not match the Pod's nodeSelector or required affinity"
	case reserved, tainted:
		return report.Textf("has the taint %s, which the Pod does not tolerate", pl.taint[n.name])
	case ailing:
		state := readiness(n)
		if n.code == report.NodeUnreachable {
			state = "unreachable, " + state
		}
		return report.Textf("is %s and has the taint %s", state, pl.taint[n.name])
	case cordoned:
		return "is cordoned"
	}
	return "nothing in its labels and taints stands against the Pod"
}

// ledger is the ledger of a node, worked out once.
func (c *Diagnosis) ledger(node string) *cluster.Ledger {
	if l, ok := c.ledgers[node]; ok {
		return l
	}
	if c.ledgers == nil {
		c.ledgers = map[string]*cluster.Ledger{}
	}
	l := c.s.Ledger(node)
	c.ledgers[node] = &l
	return &l
}

// ledgersShown bounds the nodes of which a ledger is shown for one workload,
// ledgersWorkedOut those that are looked at to find the nearest.
const (
	ledgersShown     = 4
	ledgersWorkedOut = 40
	claimsShown      = 3
)

// room says what a node lacks for a Pod, in words and in evidence; "" where it lacks
// nothing by what was read.
func (c *Diagnosis) room(node string, p *corev1.Pod) (string, []report.Evidence) {
	l, request := c.ledger(node), cluster.PodRequests(&p.Spec)
	source := report.Textf("Ledger of node %s", node)
	if !l.Known {
		var parts []string
		for _, r := range sortedResources(request) {
			free, requested := l.Free[r], l.Requested[r]
			if total, ok := l.Allocatable[r]; ok && requested.Sign() > 0 {
				parts = append(parts, fmt.Sprintf("%s: %s asked for, at most %s of %s free", r, amount(r, request[r]), amount(r, free), amount(r, total)))
			}
		}
		if len(parts) == 0 {
			return "", []report.Evidence{{Source: source, Value: "its Pods were not read: who has what there is not known"}}
		}
		return "", []report.Evidence{{Source: source, Value: report.Textf("not all of its Pods were read; by those that were, %s", strings.Join(parts, "; "))}}
	}
	lacks := l.Lacks(request)
	if len(lacks) == 0 {
		return "", []report.Evidence{{Source: source, Value: report.Textf("has room for it by what was read: %s; the scheduler's sentence may be older", c.freeText(l, request))}}
	}
	var parts []string
	for _, s := range lacks {
		parts = append(parts, shortageText(l, s))
	}
	ev := []report.Evidence{{Source: source, Value: report.Textf("%s, %s lacking; %s there", strings.Join(parts, "; "), lackingText(lacks), count(len(l.Claims), "Pod"))}}
	for _, claim := range l.Largest(lacks[0].Resource, claimsShown) {
		if lacks[0].Resource == corev1.ResourcePods {
			break // each has one
		}
		ev = append(ev, report.Evidence{Source: report.Textf("Pod %s/%s on %s", claim.Pod.Namespace, claim.Pod.Name, node),
			Value: report.Textf("has %s %s, priority %d (%s)", lacks[0].Resource, amount(lacks[0].Resource, claim.Requests[lacks[0].Resource]), claim.Priority, c.ownerText(claim.Pod))})
	}
	return strings.Join(parts, "; "), ev
}

func shortageText(l *cluster.Ledger, s cluster.Shortage) string {
	if s.Resource == corev1.ResourcePods {
		return fmt.Sprintf("pods: all %s places are taken", amount(s.Resource, l.Allocatable[s.Resource]))
	}
	if total, ok := l.Allocatable[s.Resource]; ok {
		return fmt.Sprintf("%s: %s asked for, %s of %s free", s.Resource, amount(s.Resource, s.Requested), amount(s.Resource, s.Free), amount(s.Resource, total))
	}
	return fmt.Sprintf("%s: %s asked for, the node has none", s.Resource, amount(s.Resource, s.Requested))
}

func lackingText(list []cluster.Shortage) string {
	var out []string
	for _, s := range list {
		if len(list) == 1 {
			return amount(s.Resource, s.Lacking)
		}
		out = append(out, fmt.Sprintf("%s %s", amount(s.Resource, s.Lacking), s.Resource))
	}
	return strings.Join(out, " and ")
}

func (c *Diagnosis) freeText(l *cluster.Ledger, request corev1.ResourceList) string {
	var out []string
	for _, r := range sortedResources(request) {
		if r == corev1.ResourcePods {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s free, %s asked for", r, amount(r, l.Free[r]), amount(r, request[r])))
	}
	if len(out) == 0 {
		return "nothing is asked for but a place"
	}
	return strings.Join(out, "; ")
}

// preemption says why nobody makes way for the Pod on a node that lacks room.
func (c *Diagnosis) preemption(node string, p *corev1.Pod) *report.Evidence {
	priority := int32(0)
	if p.Spec.Priority != nil {
		priority = *p.Spec.Priority
	}
	e := report.Evidence{Source: report.Textf("Pod.spec.priority, of the Pods on %s as well", node)}
	if p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever {
		e.Source, e.Value = "Pod.spec.preemptionPolicy", "Never: no Pod makes way for it, whatever its priority"
		return &e
	}
	l := c.ledger(node)
	if !l.Known {
		return nil
	}
	lacks := l.Lacks(cluster.PodRequests(&p.Spec))
	if len(lacks) == 0 {
		return nil
	}
	lower := 0
	freed := corev1.ResourceList{}
	for _, claim := range l.Claims {
		if claim.Priority >= priority {
			continue
		}
		lower++
		for _, s := range lacks {
			q, sum := claim.Requests[s.Resource], freed[s.Resource]
			sum.Add(q)
			freed[s.Resource] = sum
		}
	}
	switch short := slices.IndexFunc(lacks, func(s cluster.Shortage) bool { q := freed[s.Resource]; return q.Cmp(s.Lacking) < 0 }); {
	case lower == 0:
		e.Value = report.Textf("%d: every Pod there has an equal or a higher priority, so none can be preempted", priority)
	case short >= 0:
		r := lacks[short].Resource
		e.Value = report.Textf("%d: preempting all %s of lower priority would free %s %s, and %s is lacking", priority, count(lower, "Pod"), amount(r, freed[r]), r, amount(r, lacks[short].Lacking))
	default:
		e.Value = report.Textf("%d: preempting %s of lower priority could make room there", priority, count(lower, "Pod"))
	}
	return &e
}

// ownerText names the workload that a Pod belongs to.
func (c *Diagnosis) ownerText(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil {
		return "of no workload"
	}
	if o.Kind == "ReplicaSet" {
		if c.sets == nil {
			c.sets = make(map[types.UID]*appsv1.ReplicaSet, len(c.s.ReplicaSets))
			for _, rs := range c.s.ReplicaSets {
				c.sets[rs.UID] = rs
			}
		}
		if rs := c.sets[o.UID]; rs != nil {
			if up := metav1.GetControllerOfNoCopy(rs); up != nil {
				return fmt.Sprintf("%s %s/%s", up.Kind, p.Namespace, up.Name)
			}
		}
	}
	if o.Kind == "Node" {
		return "a static Pod of its kubelet"
	}
	return fmt.Sprintf("%s %s/%s", o.Kind, p.Namespace, o.Name)
}

// shortOf are the candidates of a placement whose ledgers say that they lack room for
// the Pod, the least lacking first, and how many of them are not known.
func (c *Diagnosis) shortOf(pl *placement, p *corev1.Pod) (short []*nodeState, unknown int) {
	request := cluster.PodRequests(&p.Spec)
	lacking := map[string]float64{}
	for i, n := range pl.by[candidate] {
		if i == ledgersWorkedOut {
			unknown += len(pl.by[candidate]) - i
			break
		}
		l := c.ledger(n.name)
		if !l.Known {
			unknown++
			continue
		}
		share := 0.0
		lacks := l.Lacks(request)
		for _, s := range lacks {
			asked := s.Requested.AsApproximateFloat64()
			share = max(share, s.Lacking.AsApproximateFloat64()/asked)
		}
		if len(lacks) > 0 {
			short, lacking[n.name] = append(short, n), share
		}
	}
	slices.SortStableFunc(short, func(a, b *nodeState) int {
		return cmp.Or(cmp.Compare(lacking[a.name], lacking[b.name]), strings.Compare(a.name, b.name))
	})
	return short, unknown
}

func sortedResources(r corev1.ResourceList) []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(r))
	for name := range r {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
