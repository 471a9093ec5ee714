package watch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// world is a small cluster: three nodes, n3 NotReady; a DaemonSet agent in
// kube-system in the middle of a rollout and a DaemonSet calm in shop that is not.
type world struct {
	t    *testing.T
	srv  *api.Server
	conn *kube.Connection

	mu   sync.Mutex
	seen []string // "GET /api/v1/nodes?watch"
	down bool
}

func TestMain(m *testing.M) {
	kube.QuietKlog(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, srv: api.New(time.Now, 1)}
	w.srv.Fault(func(r *http.Request) *api.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		line := r.Method + " " + r.URL.Path
		if r.URL.Query().Get("watch") != "" {
			line += " watch"
		}
		w.seen = append(w.seen, line)
		if w.down {
			return &api.Fault{Drop: true}
		}
		return nil
	})
	w.conn = w.connect(api.DefaultUser)
	t.Cleanup(w.srv.Close)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	w.create(daemonSet("kube-system", "agent"))
	w.create(daemonSet("shop", "calm"))
	time.Sleep(3 * time.Hour) // so that neither is suspected of the node's trouble for its age
	for i, ready := range []corev1.ConditionStatus{"True", "True", "False"} {
		n := fmt.Sprintf("n%d", i+1)
		w.create(node(n, ready))
		w.lease(n)
	}
	w.status("kube-system", "agent", 3, 1)
	w.status("shop", "calm", 3, 3)
	for i := range 3 {
		w.pod("kube-system", "agent", i)
		w.pod("shop", "calm", i)
	}
	// It has the agent's labels and is nobody's.
	w.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "stray", Labels: labelsOf("agent")}, Spec: podSpec("n1")})
	return w
}

func (w *world) connect(user string) *kube.Connection {
	w.t.Helper()
	c, err := kube.New(w.srv.ConfigFor(user), kube.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) create(o runtime.Object) runtime.Object {
	w.t.Helper()
	out, err := w.srv.Create("test", o)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) get(ns, name string) *appsv1.DaemonSet {
	w.t.Helper()
	o, err := w.srv.Get(appsv1.SchemeGroupVersion.WithResource("daemonsets"), ns, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return o.(*appsv1.DaemonSet)
}

// status sets how far a DaemonSet is.
func (w *world) status(ns, name string, desired, updated int32) {
	w.t.Helper()
	ds := w.get(ns, name).DeepCopy()
	ds.Status = appsv1.DaemonSetStatus{
		DesiredNumberScheduled: desired, CurrentNumberScheduled: desired, UpdatedNumberScheduled: updated,
		NumberReady: updated, NumberAvailable: updated, NumberUnavailable: desired - updated, ObservedGeneration: ds.Generation,
	}
	if _, err := w.srv.UpdateStatus("test", ds); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pod(ns, owner string, i int) {
	w.t.Helper()
	ds := w.get(ns, owner)
	w.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: fmt.Sprintf("%s-%d", owner, i), Labels: labelsOf(owner),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: podSpec(fmt.Sprintf("n%d", i+1)),
	})
}

func (w *world) event(ns, name, kind, object string) {
	w.t.Helper()
	w.create(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: ns, Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: map[bool]string{true: "", false: ns}[kind == "Node"], Name: object},
		Reason:         "Tested", Type: "Normal", FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "test"},
	})
}

func (w *world) lease(n string) {
	w.t.Helper()
	now := metav1.NowMicro()
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.NodeLeaseNamespace, Name: n}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}})
}

// setDown breaks every connection and refuses new ones, or lets them pass again.
func (w *world) setDown(down bool) {
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	if down {
		w.srv.Disconnect()
	}
}

// requests counts those whose line contains part.
func (w *world) requests(part string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.seen {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func labelsOf(app string) map[string]string { return map[string]string{"app": app} }

func podSpec(node string) corev1.PodSpec {
	return corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "registry.example/x:1"}}}
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "Test", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
		}}},
	}
}

func daemonSet(ns, name string) *appsv1.DaemonSet {
	spec := podSpec("")
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"password":"sesame"}`,
		}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(name)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name)}, Spec: spec},
		},
	}
}

// run is a Source that runs, with what it published.
type run struct {
	mu    sync.Mutex
	snaps []*cluster.Snapshot
	times []time.Time
	err   error
	stop  context.CancelFunc
	done  chan struct{}
}

func start(s *Source) *run {
	ctx, stop := context.WithCancel(context.Background())
	r := &run{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = s.Run(ctx, func(snap *cluster.Snapshot) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.snaps, r.times = append(r.snaps, snap), append(r.times, time.Now())
		})
	}()
	return r
}

func (r *run) end() error {
	r.stop()
	<-r.done
	return r.err
}

func (r *run) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.snaps)
}

func (r *run) last() *cluster.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snaps[len(r.snaps)-1]
}

// after lets virtual time pass and returns the newest snapshot.
func (r *run) after(d time.Duration) *cluster.Snapshot {
	time.Sleep(d) // virtual: synctest
	synctest.Wait()
	return r.last()
}

func podNames(s *cluster.Snapshot) string {
	var out []string
	for _, p := range s.Pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return strings.Join(out, " ")
}
