package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// WhatIf says what a change of nodes would do: to the Pods of every DaemonSet, which
// its controller makes and removes by labels and taints; and, for a NoExecute taint, to
// every other Pod of the node. Pods of other kinds keep their place whatever becomes of
// labels and NoSchedule taints: those count only when a Pod is placed. An unknown node
// is an error that names the nearest.
func WhatIf(s *cluster.Snapshot, ch NodeChange) (*report.WhatIf, error) {
	if !s.Read(cluster.Nodes) || len(s.Nodes) == 0 {
		return nil, fmt.Errorf("nodes were not read, so nothing can be said of %s", names(ch.Nodes, 3))
	}
	w := &whatIf{s: s, out: &report.WhatIf{APIVersion: report.APIVersion, Kind: report.WhatIfKind, AsOf: report.Time{Time: s.AsOf},
		Source: report.Source{Type: report.Clean(s.Source.Type), Context: report.Clean(s.Source.Context), Server: report.Clean(s.Source.Server), Version: report.Clean(s.Source.Version)},
		Change: report.Clean(ch.String()), Nodes: []report.WhatIfNode{}, DaemonSets: []report.WhatIfDaemonSet{}, Notes: []report.Text{}, Missing: []report.Text{}}}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(ch.Nodes))) {
		n := s.Node(name)
		if n == nil {
			all := make([]string, 0, len(s.Nodes))
			for _, o := range s.Nodes {
				all = append(all, o.Name)
			}
			if near := NearestName(name, all); near != "" {
				return nil, fmt.Errorf("there is no node named %s; did you mean %s?", name, near)
			}
			return nil, fmt.Errorf("there is no node named %s among the %d that were read", name, len(all))
		}
		after, changes, notes := ch.Apply(n)
		w.notes = append(w.notes, notes...)
		w.nodes = append(w.nodes, &changedNode{before: n, after: after, ledger: s.Ledger(name), adds: corev1.ResourceList{}, frees: corev1.ResourceList{}, changes: changes})
	}
	w.daemonSets()
	for _, n := range w.nodes {
		w.node(n)
	}
	w.finish(&ch)
	return w.out, nil
}

// whatIf is one answer in the making.
type whatIf struct {
	s     *cluster.Snapshot
	out   *report.WhatIf
	nodes []*changedNode
	notes []string
}

type changedNode struct {
	before, after *corev1.Node
	changes       []string
	ledger        cluster.Ledger
	adds, frees   corev1.ResourceList
	higher        bool // a Pod that comes has a priority, and may take the place of others
}

func (w *whatIf) daemonSets() {
	unread := 0
	for _, ds := range w.s.DaemonSets {
		rule := cluster.RuleOf(&ds.Spec.Template)
		x := report.WhatIfDaemonSet{Namespace: report.Clean(ds.Namespace), Name: report.Clean(ds.Name), Pods: []report.WhatIfPod{}}
		touched := false
		for _, n := range w.nodes {
			was, _ := rule.ShouldRun(n.before)
			then, stays := rule.ShouldRun(n.after)
			pods, known := w.podsOf(ds, n)
			if !known && (was != then || !stays) {
				unread++
			}
			if was != then {
				touched = true
				x.DesiredAfter += one(then) - one(was)
			}
			for _, p := range w.effects(n, ds.Spec.Template.Spec, was, then, stays, pods, known) {
				touched = true
				x.Pods = append(x.Pods, p)
			}
		}
		if !touched {
			w.out.Unchanged++
			continue
		}
		for _, n := range w.s.Nodes {
			if should, _ := rule.ShouldRun(n); should {
				x.DesiredBefore++
			}
		}
		x.DesiredAfter += x.DesiredBefore
		w.out.DaemonSets = append(w.out.DaemonSets, x)
	}
	if unread > 0 {
		w.out.Missing = append(w.out.Missing, "the Pods of some of these DaemonSets were not read: that each has one where it should is taken for granted")
	}
	if !w.s.Read(cluster.DaemonSets) {
		w.out.Missing = append(w.out.Missing, "DaemonSets were not read: which Pods would come or go is not known")
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// podsOf are a DaemonSet's Pods on the node or aimed at it that are not gone; known
// tells whether all of them were read.
func (w *whatIf) podsOf(ds *appsv1.DaemonSet, n *changedNode) (out []*corev1.Pod, known bool) {
	for _, p := range w.s.PodsOn(n.before.Name) {
		if metav1.IsControlledBy(p, ds) && (p.DeletionTimestamp == nil || !cluster.PodTerminal(p)) {
			out = append(out, p)
		}
	}
	return out, n.ledger.Known || w.s.PodsKnown(ds.UID)
}

// effects are what becomes of one DaemonSet on one node.
func (w *whatIf) effects(n *changedNode, spec corev1.PodSpec, was, then, stays bool, pods []*corev1.Pod, known bool) []report.WhatIfPod {
	t := &corev1.PodTemplateSpec{Spec: spec}
	node := report.Clean(n.before.Name)
	reason := report.Text("")
	if !then {
		reason = report.Clean(listed(unmet(n.after, t), 2))
	}
	live := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	assumed := !known && was // one that was not read
	_, stayed := cluster.ShouldRun(n.before, t)
	var out []report.WhatIfPod
	add := func(p *corev1.Pod, effect report.WhatIfEffect, why report.Text) {
		x := report.WhatIfPod{Node: node, Effect: effect, Why: why}
		if p != nil {
			x.Pod = report.Clean(p.Name)
		}
		out = append(out, x)
	}
	free := func(p *corev1.Pod) {
		if p == nil || p.Spec.NodeName == n.before.Name && !cluster.PodTerminal(p) {
			r := &spec
			if p != nil {
				r = &p.Spec
			}
			sum(n.frees, cluster.PodRequests(r))
		}
	}
	if assumed {
		live = append(live, nil)
	}
	switch {
	case then && !was && len(pods) == 0:
		add(nil, report.PodAdded, "the controller makes one")
		sum(n.adds, cluster.PodRequests(&spec))
		n.higher = n.higher || spec.PriorityClassName != "" || spec.Priority != nil && *spec.Priority > 0
	case then && !was:
		for _, p := range live {
			add(p, report.PodRegained, "is there already, and counts as misscheduled no longer")
		}
	case was && !then && len(live) == 0:
		add(nil, report.NodeDropped, reason)
	case !stays && (stayed || was):
		for _, p := range live {
			add(p, report.PodRemoved, reason+": the DaemonSet controller removes it at once, whatever maxUnavailable says")
			free(p)
		}
	case was && !then:
		for _, p := range live {
			add(p, report.PodMisscheduled, reason+": it stays, for NoSchedule removes nothing; once it ends, none comes back")
		}
	}
	if stays {
		out = append(out, w.evicted(n, live, &spec, then)...)
	}
	return out
}

// evicted finds daemon Pods that the DaemonSet controller lets stay under a new
// NoExecute taint and that taint eviction takes all the same, by the Pod's own
// tolerations: for a while only, or none at all where they are those of an older
// template. again tells that the controller makes another one then.
// Source: pkg/controller/tainteviction/taint_eviction.go, processPodOnNode.
func (w *whatIf) evicted(n *changedNode, live []*corev1.Pod, spec *corev1.PodSpec, again bool) []report.WhatIfPod {
	var out []report.WhatIfPod
	for _, t := range comes(n) {
		if cluster.ConditionTaint(t.Key) {
			continue
		}
		_, nextStays := cluster.TolerationLeft(spec.Tolerations, &t)
		for _, p := range live {
			own := spec.Tolerations
			if p != nil {
				own = p.Spec.Tolerations
			}
			left, stays := cluster.TolerationLeft(own, &t)
			if stays {
				continue
			}
			x := report.WhatIfPod{Node: report.Clean(n.before.Name), Effect: report.PodEvictedOnce, After: int64(left.Seconds())}
			if p != nil {
				x.Pod = report.Clean(p.Name)
			}
			bears := fmt.Sprintf("does not tolerate taint %s itself: it is evicted at once", taintName(&t))
			if left > 0 {
				bears = fmt.Sprintf("tolerates taint %s for %s only: it is evicted then", taintName(&t), short(left))
			}
			switch {
			case !again:
				x.Why = report.Textf("%s, and none comes back", bears)
			case nextStays:
				x.Why = report.Textf("%s; the one that the controller makes in its place has the tolerations of the present template, and stays", bears)
			default:
				x.Effect = report.PodEvictedOften
				x.Why = report.Textf("%s, the controller makes another, and that one is evicted in turn", bears)
			}
			out = append(out, x)
		}
	}
	return out
}

// comes are the NoExecute taints that the change adds to the node.
func comes(n *changedNode) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.after.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute && !slices.ContainsFunc(n.before.Spec.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect }) {
			out = append(out, t)
		}
	}
	return out
}

func sum(total, more corev1.ResourceList) {
	for r, q := range more {
		t := total[r]
		t.Add(q)
		total[r] = t
	}
}

// node says what the change does to one node beside its daemon Pods.
func (w *whatIf) node(n *changedNode) {
	x := report.WhatIfNode{Name: report.Clean(n.before.Name), Changes: cleaned(n.changes), PodsRead: n.ledger.Known, Evictions: w.evictions(n)}
	room := corev1.ResourceList{}
	sum(room, n.ledger.Free)
	sum(room, n.frees)
	x.Adds, x.Frees, x.Free = amounts(n.adds), amounts(n.frees), amounts(n.ledger.Free)
	lacking := lackingIn(cluster.Ledger{Free: room}, n.adds)
	x.Fits, x.Why = report.Holds, "nothing comes that needs room"
	switch {
	case len(n.adds) == 0:
	case len(lacking) > 0 && n.higher:
		x.Fits, x.Why = report.DoesNotHold, report.Textf("%s; Pods of a lower priority may be preempted for it", strings.Join(lacking, ", "))
	case len(lacking) > 0:
		x.Fits, x.Why = report.DoesNotHold, report.Textf("%s: it stays Pending", strings.Join(lacking, ", "))
	case !n.ledger.Known:
		x.Fits, x.Why = report.NotKnown, "not all Pods of the node were read"
	default:
		x.Why = "what comes finds room"
	}
	if !n.ledger.Known && len(comes(n)) > 0 {
		w.out.Missing = append(w.out.Missing, report.Textf("not all Pods of %s were read: more may be evicted", n.before.Name))
	}
	w.out.Nodes = append(w.out.Nodes, x)
}

func amounts(r corev1.ResourceList) []report.Amount {
	out := []report.Amount{}
	for k, q := range r {
		if !q.IsZero() {
			out = append(out, report.Amount{Resource: report.Clean(string(k)), Amount: report.Clean(q.String())})
		}
	}
	slices.SortFunc(out, func(a, b report.Amount) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// evictions are the Pods of no DaemonSet that the change takes off the node, by owner
// and by when. What evicted them before is not counted.
func (w *whatIf) evictions(n *changedNode) []report.WhatIfEviction {
	type key struct {
		owner string
		after int64
	}
	by := map[key]*report.WhatIfEviction{}
	taints := comes(n)
	for _, p := range w.s.PodsOn(n.before.Name) {
		c := metav1.GetControllerOfNoCopy(p)
		if c != nil && (c.Kind == "DaemonSet" || c.Kind == "Node") || p.DeletionTimestamp != nil || cluster.PodTerminal(p) || p.Spec.NodeName != n.before.Name || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			continue
		}
		first := int64(-1)
		for i := range taints {
			left, stays := cluster.TolerationLeft(p.Spec.Tolerations, &taints[i])
			if seconds := int64(left.Seconds()); !stays && (first < 0 || seconds < first) {
				first = seconds
			}
		}
		if before, ok := cluster.Evicted(p, n.before); first < 0 || ok && int64(before.Left.Seconds()) <= first {
			continue
		}
		k := key{w.owner(p), first}
		if by[k] == nil {
			by[k] = &report.WhatIfEviction{Owner: report.Clean(k.owner), After: first, Pods: []report.Text{}}
		}
		by[k].Count++
		by[k].Pods = append(by[k].Pods, report.Clean(p.Namespace+"/"+p.Name))
		sum(n.frees, cluster.PodRequests(&p.Spec))
	}
	out := []report.WhatIfEviction{}
	for _, e := range by {
		slices.Sort(e.Pods)
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b report.WhatIfEviction) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Owner, b.Owner))
	})
	return out
}

// owner names the workload of a Pod, "" for a Pod that nothing makes again.
func (w *whatIf) owner(p *corev1.Pod) string {
	c := metav1.GetControllerOfNoCopy(p)
	if c == nil {
		return ""
	}
	kind, name := c.Kind, c.Name
	if c.Kind == "ReplicaSet" {
		for _, rs := range w.s.ReplicaSets {
			if up := metav1.GetControllerOfNoCopy(rs); rs.UID == c.UID && up != nil {
				kind, name = up.Kind, up.Name
			}
		}
	}
	return kind + " " + p.Namespace + "/" + name
}

func (w *whatIf) finish(ch *NodeChange) {
	say := func(format string, args ...any) { w.out.Notes = append(w.out.Notes, report.Textf(format, args...)) }
	for i, n := range w.notes {
		if i == 10 {
			say("and %d more of the kind", len(w.notes)-i)
			break
		}
		say("%s", n)
	}
	evicts := slices.ContainsFunc(w.nodes, func(n *changedNode) bool { return len(comes(n)) > 0 })
	bare := slices.ContainsFunc(w.out.Nodes, func(n report.WhatIfNode) bool {
		return slices.ContainsFunc(n.Evictions, func(e report.WhatIfEviction) bool { return e.Owner == "" })
	})
	switch {
	case ch.Cordon != nil && *ch.Cordon:
		say("every daemon Pod tolerates a cordon: DaemonSets go on making Pods here; no other new Pod is placed")
	case ch.Cordon != nil:
		say("Pods that wait for room may be placed here")
	case !evicts:
		say("Pods of other workloads stay: labels and NoSchedule taints count only when a Pod is placed")
	default:
		say("a Pod that is evicted has to find another node; a PodDisruptionBudget does not hold it back")
	}
	if bare {
		say("Pods of no workload are lost: nothing makes them again")
	}
	if slices.ContainsFunc(w.out.DaemonSets, func(d report.WhatIfDaemonSet) bool { return d.DesiredBefore > 0 && d.DesiredAfter == 0 }) {
		say("a DaemonSet is left without an eligible node")
	}
}
