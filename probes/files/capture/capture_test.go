package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
)

func pods(n int) []runtime.Object {
	var out []runtime.Object
	for i := range n {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%04d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	}
	return out
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// to captures into a folder and returns it.
func to(t *testing.T, from capture.Reader, o capture.Options) (string, capture.Result, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out") + string(os.PathSeparator)
	got, err := capture.To(t.Context(), from, dir, o)
	return dir, got, err
}

func TestListsAreReadInPagesAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pods(1001)...)
	w.add(node("n1"),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "some-operator"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n1"}})
	dir, _, err := to(t, w.connect(api.DefaultUser), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if s := load(t, dir); len(s.Pods) != 1001 || len(s.Nodes) != 1 || !s.PodScope.All {
		t.Errorf("%d Pods, %d nodes, all Pods %v", len(s.Pods), len(s.Nodes), s.PodScope.All)
	}
	asked := w.asked("/api/v1/pods")
	if len(asked) != 3 || asked[0] != "/api/v1/pods?limit=500" || !strings.Contains(asked[2], "continue=") || strings.Contains(asked[2], "resourceVersion") {
		t.Errorf("Pods were asked for by %q", asked)
	}
	if got := w.asked("/api/v1/namespaces"); !slices.Contains(got, "/api/v1/namespaces?limit=500&resourceVersion=0") {
		t.Errorf("what hardly changes comes from the cache: %q", got)
	}
	want := []string{"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=500",
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"}
	if got := w.asked("/apis/coordination"); !slices.Equal(got, want) {
		t.Errorf("Leases were asked for by %q", got)
	}
	for _, s := range w.asked("/") {
		if strings.Contains(s, "watch") || strings.Contains(s, "secrets") {
			t.Errorf("asked for %s", s)
		}
	}
}

func TestAPageThatBreaksIsAskedForAgainAndNothingIsThereTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, pods(600)...)
		from := &breaking{Reader: w.connect(api.DefaultUser), path: "/api/v1/pods", after: 90_000, times: 2}
		dir, _, err := to(t, from, w.options())
		if err != nil {
			t.Fatal(err)
		}
		if from.times != 0 {
			t.Error("nothing broke")
		}
		s, stats, err := files.Load(t.Context(), []string{dir}, files.Options{})
		if err != nil || len(s.Pods) != 600 || stats.Duplicates > 0 || len(stats.Problems) > 0 {
			t.Errorf("%v, %d Pods, %+v", err, len(s.Pods), stats)
		}
	})
}

// breaking is a connection that ends in the middle of the answers for a path.
type breaking struct {
	capture.Reader
	path         string
	after, times int
}

func (b *breaking) Raw(ctx context.Context, path string, query url.Values, accept string) (io.ReadCloser, error) {
	body, err := b.Reader.Raw(ctx, path, query, accept)
	if err != nil || path != b.path || b.times == 0 {
		return body, err
	}
	b.times--
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, int64(b.after)), broken{}), body}, nil
}

type broken struct{}

var errBroken = errors.New("connection reset by peer")

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestAListWhoseVersionIsGoneGoesOnAtTheNewestOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pods(1200)...)
	compacted := false
	w.breaks(func(r *http.Request) *api.Fault {
		if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("continue") != "" && !compacted {
			compacted = true
			w.add(pods(1201)[1200])
			w.Compact()
		}
		return nil
	})
	dir, _, err := to(t, w.connect(api.DefaultUser), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if s := load(t, dir); len(s.Pods) != 1201 || !compacted {
		t.Errorf("%d Pods", len(s.Pods))
	}
}

func TestWhatIsForbiddenIsNamedAndTheRestIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("n1"), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ds"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}})
	w.Deny(api.Denial{User: "reader", Verb: "list", Resource: "configmaps"}, api.Denial{User: "reader", Verb: "list", Resource: "pods"},
		api.Denial{User: "reader", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"})
	w.breaks(func(r *http.Request) *api.Fault {
		switch {
		case strings.HasSuffix(r.URL.Path, "/services"):
			return &api.Fault{Status: http.StatusNotFound}
		case strings.HasSuffix(r.URL.Path, "/replicasets"):
			return &api.Fault{Status: http.StatusUnprocessableEntity, Message: "for reader alone"}
		}
		return nil
	})
	dir, got, err := to(t, w.connect("reader"), w.options())
	if err != nil {
		t.Fatal(err)
	}
	want := []files.CapturedFailure{
		{Resource: cluster.ConfigMaps, Reason: "Forbidden"},
		{Resource: cluster.Services, Reason: "Absent", Detail: "the API server does not have it"},
		{Resource: cluster.ReplicaSets, Reason: "Failed", Detail: "the API server answered 422"},
		{Resource: cluster.Pods, Reason: "Forbidden"},
		{Resource: cluster.Leases, Namespace: "kube-system", Reason: "Forbidden"},
	}
	if !slices.Equal(got.NotRead, want) {
		t.Errorf("not read: %+v\nwant      %+v", got.NotRead, want)
	}
	s := load(t, dir)
	if len(s.Nodes) != 1 || len(s.DaemonSets) != 1 || s.Read(cluster.Pods) || !s.Read(cluster.StatefulSets) || !s.Read(cluster.Leases) {
		t.Errorf("%d nodes, %d DaemonSets; not read: %+v", len(s.Nodes), len(s.DaemonSets), s.NotRead)
	}
	for _, f := range want {
		if !slices.Contains(s.NotRead, cluster.NotRead(f)) {
			t.Errorf("the snapshot does not say %+v: %+v", f, s.NotRead)
		}
	}
	if len(s.NotRead) != len(want) {
		t.Errorf("the snapshot had to do without more: %+v", s.NotRead)
	}
}

func TestAnErrorLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	workloads := []api.Denial{{User: "nobody", Verb: "list", Resource: "nodes"}}
	for _, r := range []string{"daemonsets", "deployments", "statefulsets"} {
		workloads = append(workloads, api.Denial{User: "nobody", Verb: "list", Group: "apps", Resource: r})
	}
	dropped := func(r *http.Request) *api.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			return &api.Fault{Drop: true}
		}
		return nil
	}
	for name, tt := range map[string]struct {
		user  string
		fault func(*http.Request) *api.Fault
		is    func(error) bool
	}{
		"neither nodes nor workloads": {"nobody", nil, func(err error) bool { var u *capture.Unreadable; return errors.As(err, &u) }},
		"the connection is lost": {"reader", dropped, func(err error) bool {
			var r *capture.ReadError
			return errors.As(err, &r) && r.Resource == cluster.Nodes
		}},
		"the credentials expire": {"expired", nil, func(err error) bool { var r *capture.ReadError; return errors.As(err, &r) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, pods(3)...)
				w.Deny(workloads...)
				w.Reject("expired")
				w.breaks(tt.fault)
				dir := t.TempDir()
				for _, target := range []string{"x.tar.gz", "folder/"} {
					if _, err := capture.To(t.Context(), w.connect(tt.user), filepath.Join(dir, target[:len(target)-1])+target[len(target)-1:], w.options()); !tt.is(err) {
						t.Errorf("%s: %v", target, err)
					}
				}
				var out strings.Builder
				if _, err := capture.Stream(t.Context(), w.connect(tt.user), &out, w.options()); !tt.is(err) || out.Len() > 0 {
					t.Errorf("stream: %v, %d bytes were written", err, out.Len())
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		})
	}
}

func TestInterruptedItLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pods(3)...)
	ctx, cancel := context.WithCancel(t.Context())
	w.breaks(func(r *http.Request) *api.Fault {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			cancel()
		}
		return nil
	})
	dir := t.TempDir()
	if _, err := capture.To(ctx, w.connect(api.DefaultUser), filepath.Join(dir, "x"), w.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNarrowedNodeEventsAreStillRead(t *testing.T) {
	t.Parallel()
	event := func(ns, name, kind string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: "x"}}
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	w := newWorld(t, shop, node("n1"), event("default", "a", "Node"), event("default", "b", "Pod"), event("shop", "c", "Pod"), event("kube-system", "d", "Pod"))
	o := w.options()
	o.Namespace = "shop"
	dir, got, err := to(t, w.connect(api.DefaultUser), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range load(t, dir).Events {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "c"}) || got.Namespace != "shop" {
		t.Errorf("events %v of namespace %q", names, got.Namespace)
	}
	for _, s := range w.asked("/") {
		if u := strings.SplitN(s, "?", 2)[0]; strings.HasSuffix(u, "/pods") && u != "/api/v1/namespaces/shop/pods" {
			t.Errorf("asked for %s", s)
		}
	}
}

var _ capture.Reader = (*kube.Connection)(nil)

func TestWhoChangedAPolicyIsCapturedAsMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("n1"), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deny"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "sesame"}}}})
	dir := t.TempDir()
	doc, err := capture.Folder(t.Context(), w.connect(api.DefaultUser), dir, w.options())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "networkpolicies.networking.k8s.io.json"))
	if err != nil || strings.Contains(string(raw), "sesame") || !strings.Contains(string(raw), `"manager": "test"`) {
		t.Errorf("%v\n%s", err, raw)
	}
	if !slices.Contains(doc.Read, files.CapturedKind{Resource: "networkpolicies.networking.k8s.io", Objects: 1}) {
		t.Errorf("read %v", doc.Read)
	}
	s := load(t, dir)
	if len(s.Others) != 1 || s.Others[0].Kind != "NetworkPolicy" || len(s.Others[0].ManagedFields) != 1 || s.Others[0].ManagedFields[0].FieldsV1 == nil {
		t.Errorf("read back: %+v", s.Others)
	}
}

func TestACaptureGoesOnWithoutDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("n1"))
	w.breaks(func(r *http.Request) *api.Fault {
		if r.URL.Path == "/apis" {
			return &api.Fault{Status: http.StatusForbidden}
		}
		return nil
	})
	dir := t.TempDir()
	if _, err := capture.Folder(t.Context(), w.connect(api.DefaultUser), dir, w.options()); err != nil {
		t.Fatal(err)
	}
	s := load(t, dir)
	if !slices.ContainsFunc(s.NotRead, func(n cluster.NotRead) bool {
		return n.Resource == "networkpolicies.networking.k8s.io" && n.Reason == "Forbidden"
	}) {
		t.Errorf("not read: %+v", s.NotRead)
	}
}
