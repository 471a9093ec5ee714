package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const (
	controllerManager = "kube-controller-manager" // the field manager of every controller

	hashLabel               = appsv1.DefaultDaemonSetUniqueLabelKey
	generationLabel         = "pod-template-generation"
	templateGeneration      = appsv1.DeprecatedTemplateGeneration
	daemonBurst             = 250 // creates and deletes in one sync
	failedPodBackoff        = time.Second
	failedPodBackoffMax     = 15 * time.Minute
	daemonSetControllerName = "daemonset-controller"
)

// daemonSetController follows pkg/controller/daemon of Kubernetes 1.37. Its caches
// are never behind, so expectations come down to one rule: a sync that created or
// deleted Pods in manage leaves the rolling update to the next one.
type daemonSetController struct {
	w        *World
	queue    *workqueue
	recorder *recorder
	rng      *rand.Rand
	backoff  map[string]*podBackoff // of deleting failed Pods
	data     map[types.UID]templateData
}

type podBackoff struct {
	delay time.Duration
	since time.Time
}

func newDaemonSetController(w *World) *daemonSetController {
	c := &daemonSetController{
		w: w, recorder: w.newRecorder(daemonSetControllerName, ""), rng: w.random("daemonset"),
		backoff: map[string]*podBackoff{}, data: map[types.UID]templateData{},
	}
	c.queue = w.newQueue(20*time.Millisecond, c.sync)
	w.daemonSets.watch(func(_, new *appsv1.DaemonSet) {
		if new != nil {
			c.queue.add(keyOf(new))
		}
	})
	w.pods.watch(c.podChanged)
	w.nodes.watch(c.nodeChanged)
	return c
}

func (c *daemonSetController) podChanged(old, new *corev1.Pod) {
	p := new
	if p == nil {
		p = old
	}
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil || ref.Kind != "DaemonSet" {
		return
	}
	k := key(p.Namespace, ref.Name)
	c.queue.add(k)
	// A Pod that turned Ready is looked at again when it may count as available.
	if ds := c.w.daemonSets.get(k); ds != nil && ds.Spec.MinReadySeconds > 0 && old != nil && new != nil && !podReady(old) && podReady(new) {
		c.queue.addAfter(k, time.Duration(ds.Spec.MinReadySeconds+1)*time.Second)
	}
}

// nodeChanged looks at DaemonSets only when a node's labels or taints changed, and
// only at those that must act on it or that count misscheduled Pods: other counters
// stay as they are until a Pod moves.
// Source: daemon_controller.go, syncNodeUpdate.
func (c *daemonSetController) nodeChanged(old, new *corev1.Node) {
	if new == nil {
		for _, ds := range c.w.daemonSets.all() {
			c.queue.add(keyOf(ds))
		}
		return
	}
	if old != nil && equality.Semantic.DeepEqual(old.Labels, new.Labels) && equality.Semantic.DeepEqual(old.Spec.Taints, new.Spec.Taints) {
		return
	}
	for _, ds := range c.w.daemonSets.all() {
		shouldRun, mayStay := placementOf(ds).on(new)
		scheduled := false
		for _, p := range c.w.pods.by(c.w.podsByNode, new.Name) {
			if ownerUID(p) == string(ds.UID) {
				scheduled = true
				break
			}
		}
		if shouldRun && !scheduled || !mayStay && scheduled || scheduled && ds.Status.NumberMisscheduled > 0 {
			c.queue.add(keyOf(ds))
		}
	}
}

// daemonSync is what one sync of a DaemonSet works on.
type daemonSync struct {
	*daemonSetController
	ds         *appsv1.DaemonSet
	hash       string // of the current revision
	generation string // of the template, "" where unknown
	place      placement
	wrote      bool
}

func (c *daemonSetController) sync(k string) {
	ds := c.w.daemonSets.get(k)
	if ds == nil || ds.DeletionTimestamp != nil || equality.Semantic.DeepEqual(ds.Spec.Selector, &metav1.LabelSelector{}) {
		return
	}
	cur, old, err := c.constructHistory(ds)
	if err != nil {
		c.queue.addAfter(k, time.Second)
		return
	}
	ds = c.w.daemonSets.get(k)
	s := &daemonSync{
		daemonSetController: c, ds: ds, hash: cur.Labels[hashLabel],
		generation: ds.Annotations[templateGeneration], place: placementOf(ds),
	}
	s.manage()
	if !s.wrote && ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		s.rollingUpdate()
	}
	s.cleanupHistory(old)
	s.updateStatus()
}

// podsByTarget are the DaemonSet's Pods by the node that they are on or pinned to.
// A terminal Pod that is being deleted is left out: nothing more is to be done with it.
func (s *daemonSync) podsByTarget(withDeletedTerminal bool) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	selector, err := metav1.LabelSelectorAsSelector(s.ds.Spec.Selector)
	if err != nil {
		return out
	}
	for _, p := range s.w.pods.by(s.w.podsByOwner, string(s.ds.UID)) {
		if !selector.Matches(labels.Set(p.Labels)) || !withDeletedTerminal && podTerminal(p) && p.DeletionTimestamp != nil {
			continue
		}
		if node := pinnedTo(p); node != "" {
			out[node] = append(out[node], p)
		}
	}
	return out
}

// updated tells whether a Pod has the current template: either label will do.
func (s *daemonSync) updated(p *corev1.Pod) bool {
	return s.hash != "" && p.Labels[hashLabel] == s.hash || s.generation != "" && p.Labels[generationLabel] == s.generation
}

// manage creates and deletes so that every node has the Pods it should have.
// Source: daemon_controller.go, manage and podsShouldBeOnNode.
func (s *daemonSync) manage() {
	pods := s.podsByTarget(false)
	var create []string
	var remove []*corev1.Pod
	exists := map[string]bool{}
	for _, n := range s.w.nodes.all() {
		exists[n.Name] = true
		shouldRun, mayStay := s.place.on(n)
		on := pods[n.Name]
		switch {
		case shouldRun && len(on) == 0:
			create = append(create, n.Name)
		case mayStay:
			running, failed := s.takeFailed(n.Name, on)
			remove = append(remove, failed...)
			if !s.surges() {
				remove = append(remove, excess(running)...)
			} else if len(running) == 0 && shouldRun {
				create = append(create, n.Name)
			} else if len(running) > 1 {
				remove = append(remove, s.excessSurge(running)...)
			}
		default:
			remove = append(remove, live(on)...)
		}
	}
	for node, on := range pods {
		if exists[node] {
			continue
		}
		for _, p := range on {
			if p.Spec.NodeName == "" {
				remove = append(remove, p)
			}
		}
	}
	s.apply(remove, create)
}

func live(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// takeFailed splits a node's live Pods into those that run and those that have
// ended and are due to be replaced.
func (s *daemonSync) takeFailed(node string, on []*corev1.Pod) (running, ended []*corev1.Pod) {
	for _, p := range live(on) {
		switch p.Status.Phase {
		case corev1.PodFailed:
			k := fmt.Sprintf("%s/%d/%s", s.ds.UID, s.ds.Status.ObservedGeneration, node)
			if wait := s.failedBackoff(k); wait > 0 {
				s.queue.addAfter(keyOf(s.ds), wait)
				continue
			}
			s.recorder.event(refApps("DaemonSet", s.ds), corev1.EventTypeWarning, "FailedDaemonPod",
				"Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, node)
			ended = append(ended, p)
		case corev1.PodSucceeded:
			s.recorder.event(refApps("DaemonSet", s.ds), corev1.EventTypeNormal, "SucceededDaemonPod",
				"Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, node)
			ended = append(ended, p)
		default:
			running = append(running, p)
		}
	}
	return running, ended
}

// failedBackoff is how long to wait before another failed Pod of that node is
// deleted; 0 takes the turn.
func (c *daemonSetController) failedBackoff(k string) time.Duration {
	now := c.w.now()
	b := c.backoff[k]
	if b != nil && now.Sub(b.since) < b.delay {
		return b.delay
	}
	switch {
	case b == nil || now.Sub(b.since) > 2*failedPodBackoffMax:
		b = &podBackoff{delay: failedPodBackoff}
		c.backoff[k] = b
	default:
		b.delay = min(2*b.delay, failedPodBackoffMax)
	}
	b.since = now
	return 0
}

// byAge sorts bound Pods first, then the oldest.
func byAge(pods []*corev1.Pod) []*corev1.Pod {
	out := slices.Clone(pods)
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		if (a.Spec.NodeName == "") != (b.Spec.NodeName == "") {
			if a.Spec.NodeName != "" {
				return -1
			}
			return 1
		}
		if d := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); d != 0 {
			return d
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

func excess(running []*corev1.Pod) []*corev1.Pod {
	if len(running) < 2 {
		return nil
	}
	return byAge(running)[1:]
}

// excessSurge keeps an old and a new Pod while the new one is not available and the
// old one is ready. It goes by the hash label alone.
func (s *daemonSync) excessSurge(running []*corev1.Pod) (remove []*corev1.Pod) {
	var newest, oldest *corev1.Pod
	for _, p := range byAge(running) {
		kept := &oldest
		if p.Labels[hashLabel] == s.hash {
			kept = &newest
		}
		if *kept != nil {
			remove = append(remove, p)
			continue
		}
		*kept = p
	}
	if newest != nil && oldest != nil && (!podReady(oldest) || podAvailable(newest, s.ds.Spec.MinReadySeconds, s.w.now())) {
		remove = append(remove, oldest)
	}
	return remove
}

// apply deletes and creates, at most daemonBurst of each. A failing create ends
// the sync's creates, as the slow start does.
func (s *daemonSync) apply(remove []*corev1.Pod, create []string) {
	for _, node := range create[:min(len(create), daemonBurst)] {
		s.wrote = true
		if !s.create(node) {
			break
		}
	}
	slices.SortFunc(remove, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range remove[:min(len(remove), daemonBurst)] {
		s.wrote = true
		uid := p.UID
		if s.w.pods.remove(p, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}) == nil {
			s.recorder.event(refApps("DaemonSet", s.ds), corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %s", p.Name)
		}
	}
}

func (s *daemonSync) create(node string) bool {
	t := s.ds.Spec.Template.DeepCopy()
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if s.generation != "" {
		t.Labels[generationLabel] = s.generation
	}
	t.Labels[hashLabel] = s.hash
	t.Spec.Tolerations = daemonTolerations(&t.Spec)
	t.Spec.Affinity = pinTo(t.Spec.Affinity, node)
	p, err := s.w.createPod(t, s.ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	if err != nil {
		s.recorder.event(refApps("DaemonSet", s.ds), corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		s.queue.addAfter(keyOf(s.ds), time.Second)
		return false
	}
	s.recorder.event(refApps("DaemonSet", s.ds), corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", p.Name)
	return true
}

// updateStatus counts. A Terminating Pod still counts, and the oldest Pod of a node
// speaks for it.
// Source: daemon_controller.go, updateDaemonSetStatus.
func (s *daemonSync) updateStatus() {
	pods := s.podsByTarget(false)
	var n appsv1.DaemonSetStatus
	now := s.w.now()
	for _, node := range s.w.nodes.all() {
		shouldRun, _ := s.place.on(node)
		on := pods[node.Name]
		if !shouldRun {
			if len(on) > 0 {
				n.NumberMisscheduled++
			}
			continue
		}
		n.DesiredNumberScheduled++
		if len(on) == 0 {
			continue
		}
		n.CurrentNumberScheduled++
		first := byAge(on)[0]
		if podReady(first) {
			n.NumberReady++
			if podAvailable(first, s.ds.Spec.MinReadySeconds, now) {
				n.NumberAvailable++
			}
		}
		if s.updated(first) {
			n.UpdatedNumberScheduled++
		}
	}
	n.NumberUnavailable = n.DesiredNumberScheduled - n.NumberAvailable
	if s.ds.Spec.MinReadySeconds > 0 && n.NumberReady != n.NumberAvailable {
		s.queue.addAfter(keyOf(s.ds), time.Duration(s.ds.Spec.MinReadySeconds)*time.Second)
	}
	_, _ = s.w.daemonSets.updateStatus(controllerManager, keyOf(s.ds), func(ds *appsv1.DaemonSet) bool {
		n.ObservedGeneration, n.CollisionCount, n.Conditions = s.ds.Generation, ds.Status.CollisionCount, ds.Status.Conditions
		if ds.Status.ObservedGeneration >= s.ds.Generation {
			n.ObservedGeneration = ds.Status.ObservedGeneration
		}
		if equality.Semantic.DeepEqual(ds.Status, n) {
			return false
		}
		ds.Status = n
		return true
	})
}
