package action

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// future is a DaemonSet as it will be.
type future struct {
	ds       *appsv1.DaemonSet // with the strategy that it will have
	template *corev1.PodTemplateSpec
	updated  func(*corev1.Pod) bool // whether a Pod of today needs no replacement
	images   bool                   // say whether the template's images are on the nodes
	same     bool                   // the template is the present one: only the strategy changes
}

// predict says what the DaemonSet controller will do by node. It follows the
// controller: first its clean-up, which knows no budget and no strategy (Pods that
// may not stay are deleted, nodes without a Pod get one), then the update loop.
// Source: pkg/controller/daemon/daemon_controller.go, manage; update.go, rollingUpdate.
func predict(s *cluster.Snapshot, f future) Prediction {
	if !s.PodsKnown(f.ds.UID) || !s.Read(cluster.Nodes) {
		return Prediction{
			Summary: []report.Text{"NOW unknown"},
			Unknown: []report.Text{"what happens on which node: the Pods of this workload or the nodes were not read"},
		}
	}
	w := forecast{s: s, f: f, loop: s.UpdateLoop(f.ds, f.template, f.updated),
		rolling: f.ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType}
	inLoop := map[string]bool{}
	for _, slot := range w.loop.Slots {
		inLoop[slot.Node] = true
		w.slot(w.cleanUp(slot))
	}
	for _, n := range s.Nodes {
		if !inLoop[n.Name] && cluster.InPool(n, f.template) {
			w.NeverBack = append(w.NeverBack, report.Textf("%s  has no Pod and gets none: %s", n.Name, whyNot(n, f.template)))
		}
	}
	w.summarise()
	return w.Prediction
}

type forecast struct {
	Prediction
	s       *cluster.Snapshot
	f       future
	loop    cluster.UpdateLoop
	rolling bool

	removed, made, must, may, outdated int // nodes, by what happens to their Pod
	spare                              int // Pods whose node has one of the template already
	joined                             int // Pods that wait for the one of the template beside them
	used                               int // units of the budget in use when the update loop first runs
	held                               int // units that nodes out of reach keep for good
	traps                              int // nodes out of reach that will, once their turn comes
	touched                            []string
	leave
}

func (w *forecast) surging() bool { return w.rolling && w.loop.MaxSurge > 0 }

// slot files one node; beside are the Pods that the clean-up removes there.
func (w *forecast) slot(slot cluster.Slot, beside []*corev1.Pod) {
	n := w.s.Node(slot.Node)
	pod := ""
	if p := slot.Pod(); p != nil {
		pod = p.Name
	}
	live := slot.Old != nil || slot.New != nil
	uses := w.uses(slot)
	if uses {
		w.used++
	}
	if w.surging() {
		w.weigh(slot, n != nil && reachable(n), w.available)
	}
	if n == nil {
		w.OutOfReach = append(w.OutOfReach, report.Textf("%s  %s: the Node object is gone, garbage collection will remove the Pod", slot.Node, pod))
		return
	}
	settled := slot.State == cluster.SlotNewAvailable || slot.State == cluster.SlotNewUnavailable
	if !reachable(n) {
		if slot.State == cluster.SlotNewAvailable && slot.MayStay && len(beside) == 0 {
			w.Untouched++
			return
		}
		w.lost(slot, uses)
		w.OutOfReach = append(w.OutOfReach, report.Textf("%s  %s: Ready=Unknown, nothing reaches its kubelet", slot.Node, pod))
		return
	}
	if live && !slot.MayStay {
		w.removed++
		why := whyNot(n, w.f.template)
		w.Now = append(w.Now, report.Textf("%s  %s: removed at once, whatever the budget: %s", slot.Node, pod, why))
		w.NeverBack = append(w.NeverBack, report.Textf("%s  loses its Pod at once: %s", slot.Node, why))
		return
	}
	w.spare += len(beside)
	if !slot.ShouldRun && !settled && slot.State != cluster.SlotBoth {
		w.NeverBack = append(w.NeverBack, report.Textf("%s  gets no Pod back once it is replaced: %s", slot.Node, whyNot(n, w.f.template)))
	}
	switch slot.State {
	case cluster.SlotNewAvailable, cluster.SlotNewUnavailable:
		if len(beside) == 0 {
			w.Untouched++
		} else {
			w.Now = append(w.Now, report.Textf("%s  %s: removed at once, its node has %s of this template already", slot.Node, beside[0].Name, pod))
		}
		return
	case cluster.SlotBoth:
		w.joined++
		w.Then = append(w.Then, report.Textf("%s  %s: removed when %s beside it is available", slot.Node, slot.Old.Name, slot.New.Name))
		return
	case cluster.SlotEmpty:
		w.made++
		w.Now = append(w.Now, report.Textf("%s  has no Pod: one is made at once", slot.Node))
	case cluster.SlotTerminating:
		if slot.ShouldRun {
			w.made++
			w.Now = append(w.Now, report.Textf("%s  %s is on its way out: the next one is made from this template", slot.Node, pod))
		}
	case cluster.SlotOldUnavailable:
		w.old(slot.Node, pod, &w.must)
	case cluster.SlotOldAvailable:
		if w.surging() && !slot.ShouldRun {
			w.leaving++
			w.Then = append(w.Then, report.Textf("%s  %s: removed when as many others are available as there are nodes for it", slot.Node, pod))
			return
		}
		w.old(slot.Node, pod, &w.may)
	}
	w.touched = append(w.touched, slot.Node)
}

// uses tells whether the node uses up a unit of the budget when the update loop
// first runs, which is after the clean-up: a Pod that may not stay is on its way
// out by then. The surge is used only by nodes where a new Pod that is not
// available stands beside an old one.
// Source: pkg/controller/daemon/update.go, rollingUpdate.
func (w *forecast) uses(slot cluster.Slot) bool {
	gone := !slot.MayStay && !slot.Missing && (slot.Old != nil || slot.New != nil)
	if w.surging() {
		return slot.State == cluster.SlotBoth && !gone
	}
	return gone || slot.Holds()
}

// lost counts what a node out of reach does to the budget. Its Pod never ends and a
// new one never starts, so that what it uses it keeps. One that still counts as
// available, as that of a node whose kubelet said Ready=False before it fell silent,
// uses nothing until it is replaced.
func (w *forecast) lost(slot cluster.Slot, uses bool) {
	surging := w.surging()
	switch {
	case uses, surging && slot.State == cluster.SlotOldUnavailable && slot.ShouldRun && cluster.PodReady(slot.Old):
		w.held++
	case slot.State == cluster.SlotOldAvailable && slot.MayStay && (!surging || slot.ShouldRun):
		w.traps++
	}
}

func (w *forecast) available(p *corev1.Pod) bool {
	return cluster.PodAvailable(p, cluster.MinReady(w.f.ds), w.s.AsOf)
}

// old files a Pod that the template leaves outdated.
func (w *forecast) old(node, pod string, rolling *int) {
	line := report.Textf("%s  %s", node, pod)
	switch {
	case !w.rolling:
		w.outdated++
		w.Then = append(w.Then, line)
	case rolling == &w.must:
		w.must++
		w.Now = append(w.Now, report.Textf("%s  %s: not available, replaced at once, whatever the budget", node, pod))
	default:
		w.may++
		w.Then = append(w.Then, line)
	}
}

func (w *forecast) summarise() {
	say := func(format string, args ...any) { w.Summary = append(w.Summary, report.Textf(format, args...)) }
	if w.removed > 0 {
		say("NOW %s removed at once, whatever the budget: their nodes are no longer meant for it", count(w.removed, "Pod"))
	}
	if w.made > 0 {
		say("NOW %s made from this template on nodes that have none", count(w.made, "Pod"))
	}
	if w.spare > 0 {
		say("NOW %s removed beside one of this template", count(w.spare, "Pod"))
	}
	if w.rolling {
		w.rollingSummary(say)
	} else {
		say("NOW 0 Pods replaced, frozen: nothing moves until you delete one")
		switch {
		case w.outdated == 0:
		case w.f.same:
			say("THEN %s an earlier revision and %s so; one that is deleted comes back from the present template", countVerb(w.outdated, "Pod", "runs", "run"), stays(w.outdated))
		default:
			say("THEN %s another revision; each is replaced when you delete it", countVerb(w.outdated, "Pod", "runs", "run"))
		}
	}
	if n := len(w.OutOfReach); n > 0 {
		them := "them"
		if n == 1 {
			them = "it"
		}
		say("CANNOT %s: the API does not reach %s", count(n, "node"), them)
	}
	say("LOSES AGENT %s", count(len(w.NeverBack), "node"))
	w.imageSummary(say)
}

func (w *forecast) rollingSummary(say func(string, ...any)) {
	budget, unit := w.loop.MaxUnavailable, "maxUnavailable"
	if w.surging() {
		budget, unit = w.loop.MaxSurge, "maxSurge"
	}
	first := max(0, min(budget-w.used, w.may))
	if w.must > 0 {
		say("NOW %s: they are not available and do not count against the budget", replaced(w.must))
	}
	if first > 0 || w.must == 0 && w.removed == 0 {
		upTo := ""
		if w.traps > 0 && first > 0 {
			upTo = "up to " // a node out of reach may be next instead
		}
		say("NOW %s%s, in any order of nodes: %s %d, %d of it in use", upTo, replaced(first), unit, budget, min(w.used, budget))
	}
	w.leaveSummary(say)
	rest := w.may - first
	batch := budget - w.held
	switch {
	case w.may == 0:
	case batch > 0 && batch <= w.traps:
		say("THEN at most %s, in any order of nodes: the %s of %s out of reach still counts as available, and holds a unit of the %s of %d for good when its turn comes",
			count(w.may, "Pod"), podOrPods(w.traps), count(w.traps, "node"), unit, budget)
	case rest == 0:
	case batch <= 0:
		say("THEN %s for ever: %s out of reach %s the whole %s of %d; nothing moves until it is above %d",
			countVerb(rest, "Pod", "waits", "wait"), count(w.held, "node"), holds(w.held), unit, budget, w.held)
	case w.held+w.traps > 0:
		say("THEN %s, %d at a time: %d of the %s of %d %s held by nodes out of reach", count(rest, "Pod"), batch-w.traps, w.held+w.traps, unit, budget, isOrAre(w.held+w.traps))
	default:
		say("THEN %s, %d at a time", count(rest, "Pod"), batch)
	}
	if w.joined > 0 {
		say("THEN %s removed when the one of this template beside %s is available", count(w.joined, "Pod"), itOrThem(w.joined))
	}
}

// imageSummary says on how many of the nodes that get a new Pod its images have
// been seen. A node lists fifty images at most, so that absent means unknown.
func (w *forecast) imageSummary(say func(string, ...any)) {
	if !w.f.images || len(w.touched) == 0 {
		return
	}
	var images []string
	for _, c := range slices.Concat(w.f.template.Spec.InitContainers, w.f.template.Spec.Containers) {
		images = append(images, c.Image)
	}
	listed, seen := false, 0
	for _, name := range w.touched {
		var on []string
		for _, i := range w.s.Node(name).Status.Images {
			on = append(on, i.Names...)
		}
		listed = listed || len(on) > 0
		if !slices.ContainsFunc(images, func(i string) bool { return !hasImage(on, i) }) {
			seen++
		}
	}
	if !listed {
		w.Unknown = append(w.Unknown, "whether the images of this revision are on the nodes: no node lists them")
		return
	}
	say("IMAGES seen on %d of %s that get a new Pod; not seen means unknown, then the registry must answer", seen, count(len(w.touched), "node"))
}

// hasImage compares as nodes write names: docker.io/library/ may be left out.
func hasImage(names []string, image string) bool {
	short := func(n string) string { return strings.TrimPrefix(strings.TrimPrefix(n, "docker.io/"), "library/") }
	return slices.ContainsFunc(names, func(n string) bool { return short(n) == short(image) })
}

// reachable tells whether a change made through the API server takes effect on the
// node: its kubelet still answers. Ready=False does, Ready=Unknown does not.
func reachable(n *corev1.Node) bool { return cluster.NodeReadiness(n) != corev1.ConditionUnknown }

// whyNot says why the controller makes no Pod of the template on the node.
func whyNot(n *corev1.Node, t *corev1.PodTemplateSpec) report.Text {
	if !cluster.Selected(n, t) {
		return "its nodeSelector or node affinity leaves this node out"
	}
	var taints []string
	for _, taint := range cluster.UntoleratedTaints(n, t) {
		taints = append(taints, taint.ToString())
	}
	return report.Textf("it does not tolerate %s", strings.Join(taints, ", "))
}
