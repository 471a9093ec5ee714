package action

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// cleanUp is the node as the controller's clean-up leaves it where it has more than
// one live Pod, and the Pods that it removes. Without surge the oldest stays. With
// surge the oldest of the template and the oldest other one may stand side by side,
// for as long as the other one is Ready and that of the template not available.
// Source: pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode.
func (w *forecast) cleanUp(slot cluster.Slot) (cluster.Slot, []*corev1.Pod) {
	if slot.State != cluster.SlotBoth && slot.State != cluster.SlotMany || !slot.MayStay {
		return slot, nil
	}
	var live, removed []*corev1.Pod
	for _, p := range w.s.PodsOf(w.f.ds.UID) {
		if cluster.TargetNode(p) == slot.Node && p.DeletionTimestamp == nil && !cluster.PodTerminal(p) {
			live = append(live, p)
		}
	}
	slices.SortFunc(live, byAge)
	slot.Old, slot.New = nil, nil
	for i, p := range live {
		switch {
		case i > 0 && !w.surging():
			removed = append(removed, p)
		case w.f.updated(p) && slot.New == nil:
			slot.New = p
		case !w.f.updated(p) && slot.Old == nil:
			slot.Old = p
		default:
			removed = append(removed, p)
		}
	}
	if slot.Old != nil && slot.New != nil && (!cluster.PodReady(slot.Old) || w.available(slot.New)) {
		removed, slot.Old = append(removed, slot.Old), nil
	}
	switch {
	case slot.Old != nil && slot.New != nil:
		slot.State = cluster.SlotBoth
	case slot.New != nil && w.available(slot.New):
		slot.State = cluster.SlotNewAvailable
	case slot.New != nil:
		slot.State = cluster.SlotNewUnavailable
	case w.available(slot.Old):
		slot.State = cluster.SlotOldAvailable
	default:
		slot.State = cluster.SlotOldUnavailable
	}
	return slot, removed
}

// byAge orders Pods as the controller does: bound ones first, then by age.
func byAge(a, b *corev1.Pod) int {
	unbound := func(p *corev1.Pod) int {
		if p.Spec.NodeName == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unbound(a), unbound(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// leave is what decides, with maxSurge, about available Pods on nodes that the
// template is no longer meant for but may stay on: they go one by one, as far as
// more Pods are available than there are nodes for the DaemonSet.
// Source: pkg/controller/daemon/update.go, rollingUpdate: shouldNotRunPodsToDelete.
type leave struct {
	leaving int // such Pods
	lostToo int // such Pods on nodes out of reach
	counted int // Pods that count as available when the update loop first runs
	guests  int // Pods of the template on such nodes, available in the end
	never   int // nodes for it that never have an available Pod: out of reach
}

// weigh counts one node.
func (l *leave) weigh(slot cluster.Slot, reachable bool, available func(*corev1.Pod) bool) {
	if !slot.MayStay {
		return // its Pods are on their way out
	}
	old, updated := slot.Old, slot.New
	if old != nil && available(old) || old == nil && updated != nil && available(updated) {
		l.counted++
	}
	inTheEnd := reachable || old != nil && cluster.PodReady(old) || old == nil && updated != nil && available(updated)
	switch {
	case slot.ShouldRun && !inTheEnd:
		l.never++
	case !slot.ShouldRun && slot.New != nil && inTheEnd:
		l.guests++
	case !slot.ShouldRun && slot.State == cluster.SlotOldAvailable && !reachable:
		l.lostToo++
	}
}

func (w *forecast) leaveSummary(say func(string, ...any)) {
	all := w.leaving + w.lostToo
	if w.leaving == 0 {
		return
	}
	upTo := ""
	if w.lostToo > 0 {
		upTo = "up to " // one out of reach may be chosen instead
	}
	first := min(w.leaving, max(0, w.counted-w.loop.Desired))
	stay := min(w.leaving, max(0, min(all, w.never-w.guests)))
	if first > 0 {
		say("NOW %s%s removed for good, in any order of nodes: that many more are available than there are nodes for it", upTo, count(first, "Pod"))
	}
	if rest := w.leaving - first - stay; rest > 0 {
		say("THEN %s removed for good, as others become available", count(rest, "Pod"))
	}
	if stay > 0 {
		say("THEN %s%s for good: nodes out of reach have none that is available", upTo, countVerb(stay, "Pod", "stays", "stay"))
	}
}
