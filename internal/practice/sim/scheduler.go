package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

const (
	schedulerManager = "kube-scheduler"
	retryFirst       = time.Second // pod back-off of the scheduling queue
	retryLongest     = 10 * time.Second
	retryUnmoved     = 5 * time.Minute // a Pod that nothing moved is tried again
)

// Reasons of a node that does not fit (pkg/scheduler/framework/plugins).
const (
	reasonAffinity      = "node(s) didn't match Pod's node affinity/selector"
	reasonPinned        = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	reasonTaint         = "node(s) had untolerated taint(s)"
	reasonUnschedulable = "node(s) were unschedulable"
	reasonPorts         = "node(s) didn't have free ports for the requested pod ports"
	reasonTooMany       = "Too many pods"
)

// scheduler binds Pods: a node has to match selector and affinity, to have no
// untolerated taint, not to be cordoned, and to have room and ports. Among those
// that fit it takes the one with the fewest Pods of the same owner, then the
// emptiest. It never preempts.
type scheduler struct {
	w       *World
	queue   *workqueue
	failed  map[string]*attempt // unschedulable Pods
	ordinal int64               // of events
}

type attempt struct {
	tries int
	event string // the event that tells of it
	text  string
}

func newScheduler(w *World) *scheduler {
	s := &scheduler{w: w, failed: map[string]*attempt{}}
	s.queue = w.newQueue(15*time.Millisecond, s.schedule)
	w.pods.watch(func(old, new *corev1.Pod) {
		switch {
		case new == nil:
			delete(s.failed, keyOf(old))
			if old.Spec.NodeName != "" {
				s.retry() // room was made
			}
		case new.Spec.NodeName == "" && old == nil:
			s.queue.add(keyOf(new))
		}
	})
	w.nodes.watch(func(old, new *corev1.Node) {
		if new != nil && (old == nil || len(new.Spec.Taints) < len(old.Spec.Taints) || !maps.Equal(old.Labels, new.Labels) ||
			old.Spec.Unschedulable && !new.Spec.Unschedulable) {
			s.retry()
		}
	})
	return s
}

func (s *scheduler) retry() {
	for _, k := range slices.Sorted(maps.Keys(s.failed)) {
		wait := min(retryFirst<<min(s.failed[k].tries-1, 4), retryLongest)
		s.queue.addAfter(k, wait)
	}
}

func (s *scheduler) schedule(k string) {
	p := s.w.pods.get(k)
	if p == nil || p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
		return
	}
	fits, reasons := s.filter(p)
	if len(fits) == 0 {
		s.fail(p, reasons)
		return
	}
	best := slices.MinFunc(fits, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.siblings, b.siblings), cmp.Compare(a.load, b.load), cmp.Compare(a.node.Name, b.node.Name))
	})
	if err := s.w.store.Bind(schedulerManager, p.Namespace, p.Name, best.node.Name); err != nil {
		s.w.stale = true
		s.queue.addAfter(k, retryFirst)
		return
	}
	delete(s.failed, k)
	if bound, err := s.w.pods.written(s.w.store.Get(s.w.pods.resource, p.Namespace, p.Name)); err == nil {
		p = bound
	}
	s.event(p, corev1.EventTypeNormal, "Scheduled", "Binding", fmt.Sprintf("Successfully assigned %s/%s to %s", p.Namespace, p.Name, best.node.Name))
}

type candidate struct {
	node     *corev1.Node
	siblings int
	load     float64
}

// filter finds the nodes that fit, and counts why the others do not.
func (s *scheduler) filter(p *corev1.Pod) ([]*candidate, map[string]int) {
	affinity := nodeaffinity.GetRequiredNodeAffinity(p)
	pinned := pinnedTo(p)
	requests := resource.PodRequests(p, resource.PodResourcesOptions{})
	var fits []*candidate
	reasons := map[string]int{}
	for _, n := range s.w.nodes.all() {
		if pinned != "" && n.Name != pinned {
			reasons[reasonPinned]++
			continue
		}
		if n.Spec.Unschedulable && !tolerates(p, corev1.TaintNodeUnschedulable) {
			reasons[reasonUnschedulable]++
			continue
		}
		if _, bad := untolerated(n.Spec.Taints, p.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); bad {
			reasons[reasonTaint]++
			continue
		}
		if ok, _ := affinity.Match(n); !ok {
			reasons[reasonAffinity]++
			continue
		}
		c, short := s.room(p, n, requests)
		for _, r := range short {
			reasons[r]++
		}
		if len(short) == 0 {
			fits = append(fits, c)
		}
	}
	return fits, reasons
}

func tolerates(p *corev1.Pod, key string) bool {
	_, bad := untolerated([]corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}, p.Spec.Tolerations, corev1.TaintEffectNoSchedule)
	return !bad
}

// room compares what the Pod requests with what the node's Pods leave.
func (s *scheduler) room(p *corev1.Pod, n *corev1.Node, requests corev1.ResourceList) (*candidate, []string) {
	c := &candidate{node: n}
	used := map[corev1.ResourceName]apiresource.Quantity{}
	ports := hostPorts(p)
	count := int64(0)
	for _, other := range s.w.pods.by(s.w.podsByNode, n.Name) {
		if podTerminal(other) {
			continue
		}
		count++
		if ownerUID(other) == ownerUID(p) && ownerUID(p) != "" {
			c.siblings++
		}
		for port := range hostPorts(other) {
			if ports[port] {
				return c, []string{reasonPorts}
			}
		}
		for name, q := range resource.PodRequests(other, resource.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	var short []string
	if allowed := n.Status.Allocatable.Pods(); count+1 > allowed.Value() {
		short = append(short, reasonTooMany)
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		free := n.Status.Allocatable[name]
		free.Sub(used[name])
		if want := requests[name]; !want.IsZero() && want.Cmp(free) > 0 {
			short = append(short, "Insufficient "+string(name))
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		total, sum := n.Status.Allocatable[name], used[name]
		if total.MilliValue() > 0 {
			c.load += float64(sum.MilliValue()) / float64(total.MilliValue())
		}
	}
	return c, short
}

// hostPorts are the ports of the node that a Pod wants; with host networking every
// port that it declares.
func hostPorts(p *corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			number := port.HostPort
			if p.Spec.HostNetwork {
				number = port.ContainerPort
			}
			if number > 0 {
				out[fmt.Sprintf("%s/%d", cmp.Or(port.Protocol, corev1.ProtocolTCP), number)] = true
			}
		}
	}
	return out
}

// fail writes the scheduler's sentence where it belongs: into the Pod's condition,
// which stays, and into an event, which does not.
func (s *scheduler) fail(p *corev1.Pod, reasons map[string]int) {
	k, total := keyOf(p), len(s.w.nodes.keys)
	var items []string
	for r, n := range reasons {
		items = append(items, fmt.Sprintf("%d %s", n, r))
	}
	slices.Sort(items)
	text := fmt.Sprintf("0/%d nodes are available:", total)
	if len(items) > 0 {
		text += " " + strings.Join(items, ", ") + "."
	}
	text += " " + preemption(total, reasons)
	_, _ = s.w.pods.updateStatus(schedulerManager, k, func(p *corev1.Pod) bool {
		return setPodCondition(&p.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: text,
		}, s.w.now())
	})
	a := s.failed[k]
	if a == nil {
		a = &attempt{}
		s.failed[k] = a
		s.queue.addAfter(k, retryUnmoved)
	}
	a.tries++
	if a.text == text && s.again(p.Namespace, a.event) {
		return
	}
	a.text, a.event = text, s.event(p, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", text)
}

// preemption is the last part of the sentence: taking other Pods away helps only
// where room is what is missing.
func preemption(total int, reasons map[string]int) string {
	short, rest := 0, total
	for r, n := range reasons {
		if strings.HasPrefix(r, "Insufficient") || r == reasonTooMany || r == reasonPorts {
			short = max(short, n)
		}
	}
	rest -= short
	var items []string
	if short > 0 {
		items = append(items, fmt.Sprintf("%d No preemption victims found for incoming pod", short))
	}
	if rest > 0 {
		items = append(items, fmt.Sprintf("%d Preemption is not helpful for scheduling", rest))
	}
	slices.Sort(items)
	return fmt.Sprintf("preemption: 0/%d nodes are available: %s.", total, strings.Join(items, ", "))
}

// event writes an event as the events.k8s.io recorder does, and returns its name:
// seen through core/v1 it has no first and last time and no source.
func (s *scheduler) event(p *corev1.Pod, kind, reason, action, note string) string {
	now := s.w.now()
	s.ordinal = max(s.ordinal+1, now.UnixNano())
	name := fmt.Sprintf("%s.%x", p.Name, s.ordinal)
	o, err := s.w.store.Create(schedulerManager, &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: name, Namespace: p.Namespace},
		InvolvedObject:      refPod(p),
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "default-scheduler",
		ReportingInstance:   "default-scheduler-" + cmp.Or(s.w.leaderHost(), "hosted"),
		Action:              action, Reason: reason, Message: note, Type: kind,
	})
	if err != nil {
		return ""
	}
	s.w.wrote(revisionOf(o.(*corev1.Event)))
	return name
}

// again counts a repeat into the event's series; false where the event is gone.
func (s *scheduler) again(namespace, name string) bool {
	stored, err := s.w.store.Get(eventsResource, namespace, name)
	if err != nil {
		return false
	}
	e := stored.(*corev1.Event)
	if e.Series != nil { // refreshed every half hour only
		if s.w.now().Sub(e.Series.LastObservedTime.Time) < 30*time.Minute {
			return true
		}
	}
	c := e.DeepCopy()
	if c.Series == nil {
		c.Series = &corev1.EventSeries{Count: 1}
	}
	c.Series.Count++
	c.Series.LastObservedTime = metav1.NewMicroTime(s.w.now())
	o, err := s.w.store.Update(schedulerManager, c)
	if err != nil {
		return false
	}
	s.w.wrote(revisionOf(o.(*corev1.Event)))
	return true
}
