package watch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func ownedBy(o metav1.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(o, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})}
}

// A Deployment's Pods belong to its ReplicaSets, old ones included; a StatefulSet's
// to itself. A ReplicaSet with the same labels and another owner is not looked at.
func TestPodsOfDeploymentsAndStatefulSetsAreFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		selector, spec := &metav1.LabelSelector{MatchLabels: labelsOf("web")}, podSpec("")
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf("web")}, Spec: spec}
		meta := func(name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labelsOf("web"), OwnerReferences: owners}
		}
		// Neither has a status, so both are behind.
		dep := w.create(&appsv1.Deployment{ObjectMeta: meta("web", nil), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}).(*appsv1.Deployment)
		sts := w.create(&appsv1.StatefulSet{ObjectMeta: meta("db", nil), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, ServiceName: "db"}}).(*appsv1.StatefulSet)
		for _, name := range []string{"web-old", "web-new"} {
			rs := w.create(&appsv1.ReplicaSet{ObjectMeta: meta(name, ownedBy(dep, "Deployment")), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}).(*appsv1.ReplicaSet)
			w.create(&corev1.Pod{ObjectMeta: meta(name+"-1", ownedBy(rs, "ReplicaSet")), Spec: podSpec("n1")})
		}
		bare := w.create(&appsv1.ReplicaSet{ObjectMeta: meta("bare", nil), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}).(*appsv1.ReplicaSet)
		w.create(&corev1.Pod{ObjectMeta: meta("bare-1", ownedBy(bare, "ReplicaSet")), Spec: podSpec("n1")})
		w.create(&corev1.Pod{ObjectMeta: meta("db-0", ownedBy(sts, "StatefulSet")), Spec: podSpec("n1")})

		s := New(Config{Conn: w.conn})
		defer s.Close()
		snap := settle(t, s, w.srv.Bookmark())
		if !snap.PodsKnown(dep.UID) || !snap.PodsKnown(sts.UID) || snap.PodsKnown(bare.UID) {
			t.Errorf("scope %v", snap.PodScope.Owners)
		}
		for name, want := range map[string]bool{"web-old-1": true, "web-new-1": true, "db-0": true, "bare-1": false} {
			if got := snap.Pod("shop", name) != nil; got != want {
				t.Errorf("%s: read %v, want %v", name, got, want)
			}
		}
		if n := w.requests("/namespaces/shop/pods watch"); n != 1 {
			t.Errorf("%d watches on one selector", n)
		}
	})
}

func TestANodesLedgerHoldsThePodsOfEveryWorkload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn})
		defer s.Close()
		snap := settle(t, s, w.srv.Bookmark())
		if !snap.PodScope.Nodes["n3"] || snap.PodScope.Nodes["n1"] {
			t.Fatalf("scope %v: n3 is young and NotReady", snap.PodScope.Nodes)
		}
		if snap.Pod("shop", "calm-2") == nil || snap.Pod("shop", "calm-1") != nil {
			t.Error("the ledger of n3 is not what was read")
		}
		if snap.PodsKnown(w.get("shop", "calm").UID) {
			t.Error("one Pod of a workload on the ledger passes for all of them")
		}
	})
}

func TestUnionKeepsTheNewerVersion(t *testing.T) {
	t.Parallel()
	pod := func(uid, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	for _, lists := range [][][]*corev1.Pod{
		{{pod("a", "9"), pod("b", "7")}, {pod("a", "10")}},
		{{pod("a", "10")}, {pod("b", "7"), pod("a", "9")}},
	} {
		got := union(lists)
		i := slices.IndexFunc(got, func(p *corev1.Pod) bool { return p.UID == "a" })
		if len(got) != 2 || got[i].ResourceVersion != "10" {
			t.Errorf("%v", got)
		}
	}
}

// Once the Pods of a workload are dropped, its History must not take them for gone.
func TestDroppedPodsAreUnknownNotGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.get("kube-system", "agent").UID
		r := start(New(Config{Conn: w.conn}))
		r.after(3 * time.Second)
		if err := w.srv.Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n3", nil); err != nil {
			t.Fatal(err)
		}
		w.status("kube-system", "agent", 2, 2)
		snap := r.after(3 * time.Hour)
		if snap.PodsKnown(uid) {
			t.Fatal("the Pods are still read")
		}
		for _, p := range snap.History.PodsOf(uid) {
			if !p.Gone.IsZero() {
				t.Errorf("%s is recorded as gone: %+v", p.Name, p.Gone)
			}
		}
		if len(snap.History.PodsOf(uid)) == 0 {
			t.Error("nothing is recorded: the test shows nothing")
		}
		r.end()
	})
}
