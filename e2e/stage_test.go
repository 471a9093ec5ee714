package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
)

// stage is a namespace with nodes that are its own by a label. Its kubelets are
// moved by hand: nothing starts or stops unless the test says so. So controllers
// come to rest between two moves, and what they did at once can be told from what
// they did later without a clock.
type stage struct {
	client kubernetes.Interface
	name   string // of the namespace, and the value of ownNode
	rng    *rand.Rand
	nodes  []string
	joined int      // nodes so far: a name is never used twice
	story  []string // what was done, to be read when it fails
	syncs  int
}

// ownNode labels a stage's nodes.
const ownNode = "stage"

func (s *stage) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// open makes the namespace and so many nodes; labels and taints may be nil.
func (s *stage) open(ctx context.Context, count int, labels func(i int) map[string]string, taints func(i int) []corev1.Taint) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range count {
		var l map[string]string
		var t []corev1.Taint
		if labels != nil {
			l = labels(i)
		}
		if taints != nil {
			t = taints(i)
		}
		if err := s.join(ctx, l, t); err != nil {
			return err
		}
	}
	return nil
}

// join adds one node that is Ready. No heartbeats follow: the control plane's
// patience with nodes is set longer than the test.
func (s *stage) join(ctx context.Context, labels map[string]string, taints []corev1.Taint) error {
	s.joined++
	name := fmt.Sprintf("%s-%02d", s.name, s.joined)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, ownNode: s.name}},
		Spec: corev1.NodeSpec{Taints: taints}}
	for k, v := range labels {
		n.Labels[k] = v
	}
	n, err := s.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, name)
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	n.Status.Capacity = n.Status.Allocatable
	_, err = s.client.CoreV1().Nodes().UpdateStatus(ctx, ready(n, corev1.ConditionTrue), metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		return err
	}
	return s.editNodeStatus(ctx, name, func(now *corev1.Node) {
		now.Status = n.Status
	})
}

// ready sets the node's Ready condition.
func ready(n *corev1.Node, status corev1.ConditionStatus) *corev1.Node {
	now := metav1.Now()
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: map[corev1.ConditionStatus]string{
		corev1.ConditionTrue: "KubeletReady", corev1.ConditionFalse: "KubeletNotReady", corev1.ConditionUnknown: "NodeStatusUnknown",
	}[status]}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	n.Status.Conditions = append(n.Status.Conditions, c)
	return n
}

// turn gives a node another readiness. As the node controller does, it takes the
// readiness of the Pods of a node that goes from Ready to Unknown; where a kubelet
// had said False before, or says so now, nobody does.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, monitorNodeHealth.
func (s *stage) turn(ctx context.Context, node string, status corev1.ConditionStatus) error {
	var was corev1.ConditionStatus
	err := s.editNodeStatus(ctx, node, func(n *corev1.Node) {
		was = facts.NodeReadiness(n)
		ready(n, status)
	})
	if err != nil || status != corev1.ConditionUnknown || was != corev1.ConditionTrue {
		return err
	}
	p, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, pod := range p.pods {
		if pod.Spec.NodeName == node && facts.PodReady(pod) {
			if err := s.setReady(ctx, pod, corev1.ConditionFalse, time.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) editNodeStatus(ctx context.Context, name string, change func(*corev1.Node)) error {
	return s.editNode(ctx, name, change, s.client.CoreV1().Nodes().UpdateStatus)
}

func (s *stage) editNode(ctx context.Context, name string, change func(*corev1.Node),
	write func(context.Context, *corev1.Node, metav1.UpdateOptions) (*corev1.Node, error)) error {
	for {
		n, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(n)
		if _, err = write(ctx, n, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// picture is what there is on a stage at one moment.
type picture struct {
	nodes map[string]*corev1.Node
	pods  []*corev1.Pod
}

func (s *stage) look(ctx context.Context) (*picture, error) {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: ownNode + "=" + s.name})
	if err != nil {
		return nil, err
	}
	pods, err := s.client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	p := &picture{nodes: map[string]*corev1.Node{}}
	for i := range nodes.Items {
		p.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	for i := range pods.Items {
		p.pods = append(p.pods, &pods.Items[i])
	}
	return p, nil
}

// on are the Pods of a node, bound or aimed at it.
func (p *picture) on(node string) (live, ending []*corev1.Pod) {
	for _, pod := range p.pods {
		switch {
		case facts.TargetNode(pod) != node:
		case pod.DeletionTimestamp == nil:
			live = append(live, pod)
		default:
			ending = append(ending, pod)
		}
	}
	return live, ending
}

func (p *picture) reachable(node string) bool {
	n := p.nodes[node]
	return n != nil && facts.NodeReadiness(n) != corev1.ConditionUnknown
}

// same tells whether no Pod was written between two pictures.
func (p *picture) same(q *picture) bool {
	versions := map[types.UID]string{}
	for _, pod := range q.pods {
		versions[pod.UID] = pod.ResourceVersion
	}
	for _, pod := range p.pods {
		if versions[pod.UID] != pod.ResourceVersion {
			return false
		}
	}
	return len(p.pods) == len(q.pods)
}

// awaits says what the other controllers still have to do, "" when it is nothing:
// the node controller's taints, the scheduler's bindings, the taint controller's
// evictions.
func (p *picture) awaits() string {
	for name, n := range p.nodes {
		has := map[string]bool{}
		for _, t := range n.Spec.Taints {
			if t.Effect == corev1.TaintEffectNoSchedule {
				has[t.Key] = true
			}
		}
		readiness := facts.NodeReadiness(n)
		if has[corev1.TaintNodeNotReady] != (readiness == corev1.ConditionFalse) || has[corev1.TaintNodeUnreachable] != (readiness == corev1.ConditionUnknown) ||
			has[corev1.TaintNodeUnschedulable] != n.Spec.Unschedulable {
			return fmt.Sprintf("the taints of %s, which is Ready=%s, cordoned %v: %v", name, readiness, n.Spec.Unschedulable, n.Spec.Taints)
		}
	}
	for _, pod := range p.pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Spec.NodeName == "" {
			if c := facts.PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
				continue // it has the scheduler's answer
			}
			return fmt.Sprintf("%s is not bound", pod.Name)
		}
		n := p.nodes[pod.Spec.NodeName]
		if n == nil {
			continue
		}
		for _, t := range n.Spec.Taints {
			if t.Effect == corev1.TaintEffectNoExecute && !corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &t, true) {
				return fmt.Sprintf("%s is not evicted from %s, which has %s", pod.Name, n.Name, t.ToString())
			}
		}
	}
	return ""
}

// act lets the kubelets do what is due for the Pods that which accepts, on the
// nodes that can be reached: a deleted Pod ends, another becomes Ready, since the
// given time. It tells whether anything was due.
func (s *stage) act(ctx context.Context, p *picture, since time.Time, which func(*corev1.Pod) bool) (acted bool, err error) {
	for _, pod := range p.pods {
		if !p.reachable(pod.Spec.NodeName) || !which(pod) {
			continue
		}
		switch {
		case pod.DeletionTimestamp != nil:
			acted = true
			err = s.client.CoreV1().Pods(s.name).Delete(ctx, pod.Name, metav1.DeleteOptions{
				GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
			})
			if apierrors.IsNotFound(err) {
				err = nil
			}
		case !facts.PodReady(pod), facts.PodCondition(pod, corev1.PodReady).LastTransitionTime.After(since):
			acted = true
			err = s.setReady(ctx, pod, corev1.ConditionTrue, since)
		}
		if err != nil {
			return acted, err
		}
	}
	return acted, nil
}

// setReady writes a Pod's status as a kubelet whose containers run, or no longer answer.
func (s *stage) setReady(ctx context.Context, pod *corev1.Pod, status corev1.ConditionStatus, since time.Time) error {
	pod = pod.DeepCopy()
	at := metav1.NewTime(since)
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady
	})
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at})
	}
	pod.Status.Phase = corev1.PodRunning
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &at
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		started, up := true, status == corev1.ConditionTrue
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "containerd://" + string(pod.UID) + c.Name, Ready: up, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	_, err := s.client.CoreV1().Pods(s.name).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // seen anew at the next look
		return nil
	}
	return err
}

// settle waits until the DaemonSet controller, and those who serve it, are at rest:
// two whole syncs, one after the other, in which no Pod was touched, with counters
// that are those of the nodes and Pods as they are now.
func (s *stage) settle(ctx context.Context, name string) (*picture, *appsv1.DaemonSet, error) {
	var last *picture
	var waits string
	for {
		ds, err := s.syncOnce(ctx, name)
		var now *picture
		if err == nil {
			now, err = s.look(ctx)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the controllers do not come to rest: %w; seen last: %s", err, waits)
		}
		if waits = now.awaits(); waits == "" {
			waits = now.miscounted(ds)
		}
		if waits == "" && last != nil && now.same(last) {
			return now, ds, nil
		}
		if waits == "" {
			waits = "Pods change"
		}
		last = now
	}
}

// syncOnce makes the controller run once over the DaemonSet as it is now, and
// returns when it has: a change of a field that moves no Pod raises the generation,
// which the controller acknowledges at the end of a whole sync only.
func (s *stage) syncOnce(ctx context.Context, name string) (*appsv1.DaemonSet, error) {
	sets := s.client.AppsV1().DaemonSets(s.name)
	nudge := func() (*appsv1.DaemonSet, error) {
		s.syncs++
		patch := fmt.Sprintf(`{"spec":{"revisionHistoryLimit":%d}}`, 20+s.syncs%2)
		return sets.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "settle"})
	}
	ds, err := nudge()
	for polls := 1; err == nil && ds.Status.ObservedGeneration < ds.Generation; polls++ {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the DaemonSet controller does not observe generation %d of %s/%s: %w", ds.Generation, s.name, name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
		if polls%stuckAfter == 0 {
			if err := s.unstick(ctx); err != nil {
				return nil, err
			}
			ds, err = nudge()
		} else {
			ds, err = sets.Get(ctx, name, metav1.GetOptions{})
		}
	}
	return ds, err
}

// stuckAfter is after how many looks the controller counts as stuck.
const stuckAfter = 100

// unstick lets the Pods end that are on their way out. The controller counts what it
// still expects to see deleted; where one Pod's end is taken for another's deletion,
// it deletes that one twice, and then waits for an event that comes only when that
// Pod has ended: for kubelets, which wait for the test, or five minutes.
// Source: pkg/controller/controller_utils.go, ControllerExpectations.
func (s *stage) unstick(ctx context.Context) error {
	p, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.tell("the controller expects a deletion: what is on its way out ends")
	_, err = s.act(ctx, p, time.Now(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	return err
}

// miscounted says where the DaemonSet's counters are not those of the picture, ""
// where they are.
// Source: pkg/controller/daemon/daemon_controller.go, updateDaemonSetStatus.
func (p *picture) miscounted(ds *appsv1.DaemonSet) string {
	var desired, current, misscheduled, readyPods int32
	for name, n := range p.nodes {
		shouldRun, _ := facts.ShouldRun(n, &ds.Spec.Template)
		live, ending := p.on(name)
		pods := append(live, ending...)
		switch {
		case shouldRun && len(pods) > 0:
			desired++
			current++
			if facts.PodReady(slices.MinFunc(pods, byAge)) {
				readyPods++
			}
		case shouldRun:
			desired++
		case len(pods) > 0:
			misscheduled++
		}
	}
	st := ds.Status
	if desired == st.DesiredNumberScheduled && current == st.CurrentNumberScheduled && misscheduled == st.NumberMisscheduled && readyPods == st.NumberReady {
		return ""
	}
	return fmt.Sprintf("it counts desired %d, current %d, misscheduled %d, ready %d; there are %d, %d, %d, %d",
		st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberMisscheduled, st.NumberReady, desired, current, misscheduled, readyPods)
}

// byAge orders a node's Pods as the controller does: bound ones first, then by age.
func byAge(a, b *corev1.Pod) int {
	switch {
	case (a.Spec.NodeName == "") != (b.Spec.NodeName == ""):
		return strings.Compare(b.Spec.NodeName, a.Spec.NodeName)
	case a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return strings.Compare(a.Name, b.Name)
	}
	return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
}
