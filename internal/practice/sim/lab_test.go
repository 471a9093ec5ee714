package sim

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
)

var epoch = time.Date(2026, 3, 3, 2, 0, 0, 0, time.UTC)

const (
	oldImage = "registry.example/agent:1"
	newImage = "registry.example/agent:2"
)

// exact is a cluster whose heartbeats are in step and close together, so that
// nodes turn Unknown within a few seconds of a known time.
var exact = Timers{LeaseRenew: 4 * time.Second, StatusUpdate: 2 * time.Second, RuntimePoll: time.Second, MonitorPeriod: time.Second, Exact: true}

// lab is a cluster with one DaemonSet, "agent", to experiment with.
type lab struct {
	t     testing.TB
	clock *Clock
	store *api.Server
	world *World
	ds    string
}

type setup struct {
	nodes    int
	seed     int64
	timers   Timers
	programs map[string]Program
	zones    int
	spec     func(*appsv1.DaemonSet)
}

// wildcard tolerates every taint, as network agents do.
func wildcard(ds *appsv1.DaemonSet) {
	ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func budget(ds *appsv1.DaemonSet, unavailable, surge intstr.IntOrString) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable, MaxSurge: &surge},
	}
}

func newLab(t testing.TB, s setup) *lab {
	t.Helper()
	l := &lab{t: t, clock: NewClock(epoch.Add(-24 * time.Hour)), ds: "kube-system/agent"}
	l.store = api.New(l.clock.Now, s.seed)
	if s.programs == nil {
		s.programs = map[string]Program{}
	}
	for _, image := range []string{oldImage, newImage} {
		p := s.programs[image]
		if p.StopsIn == (Span{}) {
			p.StopsIn = Exactly(4 * time.Second)
		}
		s.programs[image] = p
	}
	l.world = New(l.clock, l.store, Options{Seed: s.seed, Timers: s.timers, Programs: s.programs})
	for i := range s.nodes {
		l.create(testNode(i, max(s.zones, 1)))
	}
	ds := testDaemonSet()
	if s.spec != nil {
		s.spec(ds)
	}
	l.create(ds)
	l.run(5 * time.Minute)
	if n := l.get(); int(n.Status.NumberReady) != int(n.Status.DesiredNumberScheduled) || s.nodes > 0 && n.Status.DesiredNumberScheduled == 0 {
		t.Fatalf("the agent is not healthy to begin with: %+v", n.Status)
	}
	l.world.Step(epoch.Add(-time.Minute))
	l.world.Start()
	l.world.Step(epoch)
	return l
}

func testNode(i, zones int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse("4"), corev1.ResourceMemory: apiresource.MustParse("8Gi"),
		corev1.ResourcePods: apiresource.MustParse("110"), corev1.ResourceEphemeralStorage: apiresource.MustParse("100Gi"),
	}
	at := metav1.NewTime(epoch.Add(-24 * time.Hour))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%03d", i),
			Labels: map[string]string{
				corev1.LabelHostname: fmt.Sprintf("node-%03d", i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%zones),
				corev1.LabelTopologyRegion: "region", corev1.LabelOSStable: "linux",
			},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/200, i%200+1)}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: at, LastTransitionTime: at},
				{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "RouteCreated", LastHeartbeatTime: at, LastTransitionTime: at},
			},
			NodeInfo: corev1.NodeSystemInfo{BootID: fmt.Sprintf("boot-%d", i), KubeletVersion: "v1.37.2"},
		},
	}
}

func testDaemonSet() *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	five := int64(5)
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					HostNetwork: true, TerminationGracePeriodSeconds: &five,
					Containers: []corev1.Container{{
						Name: "agent", Image: oldImage,
						ReadinessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
					}},
				},
			},
		},
	}
	budget(ds, intstr.FromInt32(1), intstr.FromInt32(0))
	return ds
}

func (l *lab) create(o runtime.Object) {
	l.t.Helper()
	if _, err := l.store.Create("test", o); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) run(d time.Duration) { l.world.Step(l.clock.Now().Add(d)) }

func (l *lab) get() *appsv1.DaemonSet {
	l.t.Helper()
	ds, err := l.store.Get(appsv1.SchemeGroupVersion.WithResource("daemonsets"), "kube-system", "agent")
	if err != nil {
		l.t.Fatal(err)
	}
	return ds.(*appsv1.DaemonSet)
}

// change edits the DaemonSet as a user does.
func (l *lab) change(edit func(*appsv1.DaemonSet)) {
	l.t.Helper()
	ds := l.get().DeepCopy()
	edit(ds)
	if _, err := l.store.Update("kubectl-edit", ds); err != nil {
		l.t.Fatal(err)
	}
}

func image(name string) func(*appsv1.DaemonSet) {
	return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = name }
}

func (l *lab) pods() []*corev1.Pod { return listed[*corev1.Pod](l, "pods") }

func (l *lab) nodes() []*corev1.Node { return listed[*corev1.Node](l, "nodes") }

func listed[T runtime.Object](l *lab, resource string) []T {
	var out []T
	for _, o := range l.store.List(corev1.SchemeGroupVersion.WithResource(resource), "", nil) {
		out = append(out, o.(T))
	}
	return out
}

// count counts the agent's Pods that hold.
func (l *lab) count(holds ...func(*corev1.Pod) bool) int {
	n := 0
pods:
	for _, p := range l.pods() {
		for _, h := range holds {
			if !h(p) {
				continue pods
			}
		}
		n++
	}
	return n
}

func has(image string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image }
}

func terminating(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

func not(f func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return !f(p) }
}

func (l *lab) nodesWith(status corev1.ConditionStatus) int {
	n := 0
	for _, node := range l.nodes() {
		if nodeReadiness(node) == status {
			n++
		}
	}
	return n
}

func (l *lab) node(name string) *corev1.Node {
	l.t.Helper()
	n, err := l.store.Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", name)
	if err != nil {
		l.t.Fatal(err)
	}
	return n.(*corev1.Node)
}

func (l *lab) podOn(node string) *corev1.Pod {
	l.t.Helper()
	for _, p := range l.pods() {
		if pinnedTo(p) == node {
			return p
		}
	}
	l.t.Fatalf("no Pod on %s", node)
	return nil
}

// events are those of a reason, of all namespaces.
func (l *lab) events(reason string) []*corev1.Event {
	var out []*corev1.Event
	for _, e := range listed[*corev1.Event](l, "events") {
		if e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// undo puts the first revision's template back, as kubectl does.
func (l *lab) undo() { l.change(image(oldImage)) }
