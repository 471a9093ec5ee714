package api

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Whatever is written by whom, the short way records what apimachinery would.
func TestTheShortWayRecordsTheSameOwners(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	s := New(func() time.Time { return now }, 1)
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string { return fmt.Sprintf("v%d", r.IntN(3)) }
	at := func() metav1.Time { return metav1.NewTime(now.Add(time.Duration(r.IntN(3)) * time.Second / 2)) }
	condition := func(n *corev1.Node) *corev1.NodeCondition {
		if len(n.Status.Conditions) == 0 || r.IntN(9) == 0 {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(text()), Status: "True"})
		}
		return &n.Status.Conditions[r.IntN(len(n.Status.Conditions))]
	}
	onNode := []func(n *corev1.Node){
		func(n *corev1.Node) { condition(n).LastHeartbeatTime = at() },
		func(n *corev1.Node) { condition(n).Message = text() },
		func(n *corev1.Node) { condition(n).Message = "" },
		func(n *corev1.Node) { n.Status.Conditions = nil },
		func(n *corev1.Node) { n.Status.NodeInfo.BootID = text() },
		func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(fmt.Sprint(1 + r.IntN(3)))}
		},
		func(n *corev1.Node) { n.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: text()}} },
		func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{text()}}} },
	}
	onMeta := []func(n *corev1.Node){
		func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, text(), text()) },
		func(n *corev1.Node) { delete(n.Labels, text()) },
		func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, "a", text()) },
		func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable },
		func(n *corev1.Node) { n.Spec.ProviderID = text() },
		func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints[:0:0], corev1.Taint{Key: text(), Effect: "NoSchedule"})
		},
		func(n *corev1.Node) { n.Finalizers = []string{"example.com/" + text()} },
		func(*corev1.Node) {},
	}
	node, _ := resourceOf[*corev1.Node]()
	short := map[bool]int{}
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	s.compareFields(node, nil, old, write{manager: "kubelet"})
	for i := range 3000 {
		now = now.Add(time.Duration(r.IntN(3)) * time.Second)
		w, edits := write{manager: []string{"kubelet", "kubectl", "agent"}[r.IntN(3)]}, onMeta
		if r.IntN(2) == 0 {
			w.subresource, edits = "status", onNode
		}
		next := old.DeepCopy()
		for range 1 + r.IntN(2) {
			edits[r.IntN(len(edits))](next)
		}
		want := next.DeepCopy()
		_, ok := ownsAlready(node, old, next, w)
		short[ok]++
		s.recordFields(node, old, next, w)
		s.compareFields(node, old, want, w)
		if d := cmp.Diff(want.ManagedFields, next.ManagedFields); d != "" {
			t.Fatalf("write %d by %s (the short way: %v):\n%s", i, w.manager, ok, d)
		}
		old = next
	}
	if short[true] < 500 || short[false] < 500 {
		t.Errorf("the short way was taken in %d of %d writes: the test shows little", short[true], short[true]+short[false])
	}
}

func TestCreationsOfOneShapeHaveTheSameOwner(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	s := New(func() time.Time { return now }, 1)
	r := rand.New(rand.NewPCG(3, 4))
	maybe := func(f func()) {
		if r.IntN(2) == 0 {
			f()
		}
	}
	events, _ := resourceOf[*corev1.Event]()
	for i := range 500 {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("e", i)}}
		maybe(func() { e.Reason = "Tested" })
		maybe(func() { e.Count = 2 })
		maybe(func() { e.FirstTimestamp = metav1.NewTime(now) })
		maybe(func() { e.EventTime = metav1.NewMicroTime(now) })
		maybe(func() { e.InvolvedObject.Name = "n" })
		maybe(func() { e.Source.Host = "n" })
		maybe(func() { e.Series = &corev1.EventSeries{Count: int32(r.IntN(2))} })
		maybe(func() { e.Related = &corev1.ObjectReference{} })
		if r.IntN(9) == 0 {
			e.Labels = map[string]string{"a": "b"}
		}
		w := write{manager: []string{"kubelet", ""}[r.IntN(2)]}
		want := e.DeepCopy()
		s.recordFields(events, nil, e, w)
		s.compareFields(events, nil, want, w)
		if d := cmp.Diff(want.ManagedFields, e.ManagedFields); d != "" {
			t.Fatalf("event %d:\n%s", i, d)
		}
	}
}

func TestHeartbeatsTakeTheShortWay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	s := New(func() time.Time { return now }, 1)
	lease, pod := s.beat(t)
	later := lease.DeepCopy()
	later.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(10 * time.Second)}
	leases, _ := resourceOf[*coordinationv1.Lease]()
	if _, ok := ownsAlready(leases, lease, later, write{manager: "kubelet"}); !ok {
		t.Error("a renewal by the holder does not")
	}
	if _, ok := ownsAlready(leases, lease, later, write{manager: "other"}); ok {
		t.Error("a renewal by another does")
	}
	moved := pod.DeepCopy()
	moved.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromString("http")
	pods, _ := resourceOf[*corev1.Pod]()
	if at, ok := ownsAlready(pods, pod, moved, write{manager: "kubelet"}); ok && at < 0 {
		t.Error("another port is no change")
	}
}

// beat stores a Lease and a Pod of a kubelet.
func (s *Server) beat(t testing.TB) (*coordinationv1.Lease, *corev1.Pod) {
	t.Helper()
	renewed, holder := metav1.NewMicroTime(s.now()), "n1"
	l, err := s.Create("kubelet", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Create("kubelet", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "x", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l.(*coordinationv1.Lease), p.(*corev1.Pod)
}

// BenchmarkRenewLease is one heartbeat of a kubelet.
func BenchmarkRenewLease(b *testing.B) {
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	s := New(func() time.Time { return now }, 1)
	lease, _ := s.beat(b)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Second)
		next := lease.DeepCopy()
		next.Spec.RenewTime = &metav1.MicroTime{Time: now}
		o, err := s.Update("kubelet", next)
		if err != nil {
			b.Fatal(err)
		}
		lease = o.(*coordinationv1.Lease)
	}
}
