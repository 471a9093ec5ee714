package watch

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/internal/kube"
)

// large fills a source with 5,000 nodes and one DaemonSet in the middle of a
// rollout over all of them.
func large(b *testing.B) *Source {
	b.Helper()
	conn, err := kube.New(&rest.Config{Host: "http://127.0.0.1:1"}, kube.Options{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	s := New(Config{Conn: conn, Now: func() time.Time { return now }})
	const n = 5000
	ds := daemonSet("kube-system", "agent")
	ds.UID, ds.Generation = "ds", 7
	ds.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: n, CurrentNumberScheduled: n, UpdatedNumberScheduled: n / 2, NumberReady: n, ObservedGeneration: 7}
	s.daemonSets.store.Replace([]any{ds}, "1")
	var nodes, pods []any
	for i := range n {
		name := fmt.Sprintf("node-%04d", i)
		ready := corev1.ConditionTrue
		if i%500 == 0 {
			ready = corev1.ConditionFalse
		}
		nd := node(name, ready)
		nd.UID, nd.ResourceVersion = types.UID(name), "1"
		nd.CreationTimestamp = metav1.NewTime(now.Add(-100 * time.Hour))
		nodes = append(nodes, nd)
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "agent-" + name, UID: types.UID("pod-" + name), ResourceVersion: "1", Labels: labelsOf("agent"),
				CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
				OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
			},
			Spec: podSpec(name),
		})
	}
	s.nodes.store.Replace(nodes, "1")
	for _, f := range []interface{ Replace([]any, string) error }{&s.deployments.store, &s.statefulSets.store, &s.replicaSets.store, &s.revisions.store, &s.nodeEvents.store} {
		f.Replace(nil, "1")
	}
	sc := scope{namespace: "kube-system", labels: "app=agent"}
	s.follows.suspects["ds"] = suspect{"kube-system", "app=agent", now}
	f := newFeed(s, corev1.SchemeGroupVersion, "pods", sc, &corev1.Pod{}, s.trim.pod)
	f.store.Replace(pods, "1")
	s.follows.pods[sc] = f
	return s
}

// BenchmarkSnapshot is the work for one published snapshot when one node of 5,000
// has changed, History and what it demands next included.
func BenchmarkSnapshot(b *testing.B) {
	s := large(b)
	changed := s.nodes.store.list()[7]
	first := s.build(s.cfg.Now())
	if len(first.Nodes) != 5000 || len(first.PodsOf("ds")) != 5000 {
		b.Fatalf("%d nodes, %d Pods", len(first.Nodes), len(first.PodsOf("ds")))
	}
	s.past = first.History
	b.ReportAllocs()
	for b.Loop() {
		s.nodes.store.Update(changed.DeepCopy())
		snap := s.build(s.cfg.Now())
		snap.Demand()
		s.past = snap.History
	}
}

// BenchmarkStoreUpdate is one event between two snapshots.
func BenchmarkStoreUpdate(b *testing.B) {
	s := large(b)
	o := s.nodes.store.list()[7]
	b.ReportAllocs()
	for b.Loop() {
		s.nodes.store.list()
		s.nodes.store.Update(o)
	}
}
