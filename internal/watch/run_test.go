package watch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func TestRunReadsPodsOfSuspectsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.event("kube-system", "e1", "Pod", "agent-0")
		w.event("shop", "e2", "Pod", "calm-0")
		w.event("default", "e3", "Node", "n3")
		w.event("default", "e4", "Pod", "other")
		began := time.Now()
		r := start(New(Config{Conn: w.conn}))
		snap := r.after(3 * time.Second)

		if first := r.snaps[0]; !first.Freshness[cluster.Leases].Loading || r.times[0].After(began) {
			t.Errorf("the first snapshot came at %v, loading %v", r.times[0], first.Loading())
		}
		if l := snap.Loading(); len(l) > 0 {
			t.Errorf("still loading %v", l)
		}
		if len(snap.Nodes) != 3 || len(snap.DaemonSets) != 2 {
			t.Errorf("%d nodes, %d DaemonSets", len(snap.Nodes), len(snap.DaemonSets))
		}
		agent, calm := w.get("kube-system", "agent"), w.get("shop", "calm")
		if !snap.PodsKnown(agent.UID) || snap.PodsKnown(calm.UID) {
			t.Errorf("scope %v", snap.PodScope)
		}
		if got := podNames(snap); !strings.Contains(got, "agent-2") || strings.Contains(got, "stray") && !snap.PodScope.Nodes["n1"] {
			t.Errorf("Pods: %s", got)
		}
		if len(snap.PodsOf(agent.UID)) != 3 {
			t.Errorf("Pods of the agent: %d", len(snap.PodsOf(agent.UID)))
		}
		for _, e := range snap.Events {
			if e.Name == "e2" || e.Name == "e4" {
				t.Errorf("event %s was read", e.Name)
			}
		}
		if len(snap.EventsOf("Node", "", "n3")) != 1 || len(snap.EventsOf("Pod", "kube-system", "agent-0")) != 1 {
			t.Errorf("events: %d", len(snap.Events))
		}
		if snap.NodeLease("n3") == nil || snap.Source.Type != "cluster" || snap.APIHost != "practice-cluster" {
			t.Errorf("lease %v, source %+v, host %q", snap.NodeLease("n3"), snap.Source, snap.APIHost)
		}
		if n := w.requests("secrets") + w.requests("/api/v1/pods watch"); n > 1 { // the ledger of n3 is a watch on its Pods
			t.Errorf("%d requests for Secrets or all Pods", n)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNoSnapshotLooksCompleteBeforeWhatItDemandsWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(3 * time.Second)
		r.end()
		complete := 0
		for i, snap := range r.snaps {
			if len(snap.Loading()) > 0 {
				continue
			}
			complete++
			for _, uid := range snap.Demand().Workloads {
				if !snap.PodsKnown(uid) {
					t.Errorf("snapshot %d of %d loads nothing, and has not read the Pods of a suspect", i, len(r.snaps))
				}
			}
		}
		if complete == 0 {
			t.Error("no snapshot was complete")
		}
	})
}

func TestRunPublishesAtMostTenTimesASecondAndAtLeastOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(5 * time.Second)
		before := r.count()
		r.after(10 * time.Second)
		if n := r.count() - before; n < 10 || n > 14 { // a tick each second; Leases polled once or twice
			t.Errorf("%d snapshots in ten quiet seconds", n)
		}
		snaps := r.snaps[before:]
		for i := 1; i < len(snaps); i++ {
			if !snaps[i].AsOf.After(snaps[i-1].AsOf) {
				t.Errorf("AsOf stands still at %v", snaps[i].AsOf)
			}
		}
		before = r.count()
		for i := range 500 {
			w.create(node(fmt.Sprintf("new-%03d", i), corev1.ConditionTrue))
			time.Sleep(4 * time.Millisecond)
		}
		snap := r.after(time.Second)
		if n := r.count() - before; n > 32 || n < 20 {
			t.Errorf("%d snapshots for 500 events in two seconds", n)
		}
		times := r.times[before:]
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d < 100*time.Millisecond {
				t.Errorf("two snapshots within %v", d)
			}
		}
		if len(snap.Nodes) != 503 {
			t.Errorf("%d nodes", len(snap.Nodes))
		}
		r.end()
	})
}

func TestPublishedSnapshotsDoNotChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		before := r.after(3 * time.Second)
		n1 := before.Nodes[0]
		w.create(node("n0", corev1.ConditionTrue))
		if err := w.srv.Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n2", nil); err != nil {
			t.Fatal(err)
		}
		after := r.after(time.Second)
		if len(before.Nodes) != 3 || before.Nodes[0] != n1 || before.Nodes[1].Name != "n2" {
			t.Errorf("the old snapshot changed: %v", before.Nodes)
		}
		if len(after.Nodes) != 3 || after.Nodes[0].Name != "n0" || after.Node("n2") != nil || after.Node("n1") != n1 {
			t.Errorf("the new one: %v", after.Nodes)
		}
		r.end()
	})
}

func TestSuspicionLingers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.get("kube-system", "agent").UID
		r := start(New(Config{Conn: w.conn}))
		r.after(3 * time.Second)
		// No node is in trouble any more and the rollout is complete: nothing is under suspicion.
		for _, n := range []string{"n3"} {
			if err := w.srv.Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", n, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.status("kube-system", "agent", 2, 2)
		if snap := r.after(29 * time.Minute); !snap.PodScope.Owners[uid] {
			t.Error("the Pods were dropped at once")
		}
		if snap := r.after(100 * time.Minute); snap.PodScope.Owners[uid] || len(snap.PodsOf(uid)) > 0 {
			t.Error("the Pods are still watched")
		}
		w.status("kube-system", "agent", 2, 1)
		if snap := r.after(3 * time.Second); !snap.PodScope.Owners[uid] || len(snap.PodsOf(uid)) == 0 {
			t.Error("a new suspicion does not read the Pods")
		}
		r.end()
	})
}

func TestWantedWorkloadIsReadWithoutSuspicion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn})
		r := start(s)
		r.after(3 * time.Second)
		s.Want(Workload{"DaemonSet", "shop", "calm"})
		if snap := r.after(time.Second); !snap.PodsKnown(w.get("shop", "calm").UID) {
			t.Error("its Pods were not read")
		}
		r.end()
	})
}

func TestManyWorkloadsOfANamespaceShareOneWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range manySelectors + 5 {
			name := fmt.Sprintf("d%02d", i)
			w.create(daemonSet("shop", name))
			w.status("shop", name, 3, 1)
			w.pod("shop", name, 0)
		}
		r := start(New(Config{Conn: w.conn}))
		snap := r.after(5 * time.Second)
		if n := w.requests("/namespaces/shop/pods watch"); n != 1 {
			t.Errorf("%d watches", n)
		}
		for i := range manySelectors + 5 {
			uid := w.get("shop", fmt.Sprintf("d%02d", i)).UID
			if !snap.PodsKnown(uid) || len(snap.PodsOf(uid)) != 1 {
				t.Errorf("d%02d: known %v, %d Pods", i, snap.PodsKnown(uid), len(snap.PodsOf(uid)))
			}
		}
		if snap.PodsKnown(w.get("shop", "calm").UID) {
			t.Error("a workload that nobody suspects counts as read")
		}
		r.end()
	})
}

// When suspicion spreads to many workloads of a namespace, what was read of the
// first ones stays in sight while the whole namespace is loaded.
func TestGoingOverToOneWatchLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.get("kube-system", "agent").UID
		r := start(New(Config{Conn: w.conn}))
		r.after(3 * time.Second)
		hold := make(chan struct{})
		w.srv.Fault(func(req *http.Request) *api.Fault {
			if q := req.URL.Query(); strings.HasSuffix(req.URL.Path, "/namespaces/kube-system/pods") && q.Get("labelSelector") == "" {
				return &api.Fault{Wait: hold}
			}
			return nil
		})
		for i := range manySelectors + 5 {
			name := fmt.Sprintf("d%02d", i)
			w.create(daemonSet("kube-system", name))
			w.status("kube-system", name, 3, 1)
		}
		if snap := r.after(3 * time.Second); !snap.PodScope.Owners[uid] || len(snap.PodsOf(uid)) != 3 {
			t.Errorf("while it loads: %d Pods", len(snap.PodsOf(uid)))
		}
		close(hold)
		snap := r.after(3 * time.Second)
		if !snap.PodsKnown(uid) || len(snap.PodsOf(uid)) != 3 {
			t.Errorf("after it has loaded: %d Pods", len(snap.PodsOf(uid)))
		}
		if f := snap.Freshness[cluster.Pods]; f.Loading || f.Broken != "" {
			t.Errorf("%+v", f)
		}
		r.end()
	})
}

func TestAllNamespacesAreReadWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]struct{ daemonSets, notRead int }{
		api.DefaultUser: {daemonSets: 2},
		"reader":        {daemonSets: 1, notRead: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			for _, verb := range []string{"list", "watch"} {
				w.srv.Deny(api.Denial{User: "reader", Verb: verb, Group: "apps", Resource: "daemonsets", Except: "shop"})
			}
			r := start(New(Config{Conn: w.connect(user), Namespace: "shop"}))
			snap := r.after(5 * time.Second)
			if len(snap.Nodes) != 3 || len(snap.DaemonSets) != want.daemonSets || snap.DaemonSets[len(snap.DaemonSets)-1].Name != "calm" {
				t.Errorf("%s: %d nodes, %d DaemonSets, want 3 and %d with calm", user, len(snap.Nodes), len(snap.DaemonSets), want.daemonSets)
			}
			var forbidden []cluster.NotRead
			for _, n := range snap.NotRead {
				if n.Reason == "Forbidden" {
					forbidden = append(forbidden, n)
				}
			}
			if len(forbidden) != want.notRead || want.notRead > 0 && (forbidden[0].Resource != cluster.DaemonSets || forbidden[0].Namespace != "") {
				t.Errorf("%s: not read %+v, want %d for all namespaces", user, forbidden, want.notRead)
			}
			if l := snap.Loading(); len(l) > 0 {
				t.Errorf("%s: loading %v for ever", user, l)
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func deny(resources ...string) []api.Denial {
	var out []api.Denial
	for _, r := range resources {
		for _, verb := range []string{"list", "watch", "get"} {
			out = append(out, api.Denial{User: "reader", Verb: verb, Group: api.Everything, Resource: r})
		}
	}
	return out
}

func TestWhatIsForbiddenIsNotReadAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"nodes", "deployments", "events", "leases", "pods"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.srv.Deny(deny(resource)...)
			r := start(New(Config{Conn: w.connect("reader")}))
			snap := r.after(5 * time.Second)
			found := false
			for _, n := range snap.NotRead {
				if n.Reason == "Forbidden" && n.Resource != cluster.Resource(resource) {
					t.Errorf("%s forbidden: %+v", resource, n)
				}
				found = found || n.Reason == "Forbidden"
			}
			if !found {
				t.Errorf("%s forbidden, not read: %+v", resource, snap.NotRead)
			}
			if l := snap.Loading(); len(l) > 0 {
				t.Errorf("%s forbidden: loading %v for ever", resource, l)
			}
			if len(snap.DaemonSets) != 2 {
				t.Errorf("%s forbidden: %d DaemonSets", resource, len(snap.DaemonSets))
			}
			if resource == "pods" && snap.PodsKnown(w.get("kube-system", "agent").UID) {
				t.Error("forbidden Pods count as read")
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForbiddenNodesAndWorkloadsEndTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.srv.Deny(deny("nodes", "daemonsets", "deployments", "statefulsets")...)
		r := start(New(Config{Conn: w.connect("reader")}))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var e *kube.ConnectError
		if err := r.end(); !errors.As(err, &e) || !strings.Contains(e.Error(), "forbidden") || !strings.Contains(e.Error(), "-n") {
			t.Errorf("got %v", err)
		}
		if _, err := New(Config{Conn: w.connect("reader")}).Once(t.Context()); !errors.As(err, &e) {
			t.Errorf("Once: %v", err)
		}
	})
}

func TestADeadServerShowsAndTheRunRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(5 * time.Second)
		w.setDown(true)
		died := time.Now()
		before := r.count()
		snap := r.after(time.Minute)
		for _, res := range []cluster.Resource{cluster.Nodes, cluster.DaemonSets, cluster.Pods, cluster.Events} {
			f := snap.Freshness[res]
			if f.Broken == "" || f.Loading || f.Since.After(died.Add(2*time.Second)) || f.Since.Before(died.Add(-12*time.Second)) {
				t.Errorf("%s: %+v, died at %v", res, f, died)
			}
		}
		if n := r.count() - before; n < 55 {
			t.Errorf("%d snapshots in a dead minute", n)
		}
		if len(snap.Nodes) != 3 || len(snap.Pods) == 0 {
			t.Error("what was known is gone")
		}
		w.setDown(false)
		w.create(node("n9", corev1.ConditionTrue))
		snap = r.after(20 * time.Second)
		for res, f := range snap.Freshness {
			if f.Broken != "" {
				t.Errorf("%s is still broken: %+v", res, f)
			}
		}
		if snap.Node("n9") == nil {
			t.Error("what came meanwhile is missing")
		}
		r.end()
	})
}

// An API server that hangs keeps its watches open and silent. The polls find it.
func TestAHungServerShows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(5 * time.Second)
		hung := make(chan struct{})
		began := time.Now()
		w.srv.Fault(func(*http.Request) *api.Fault { return &api.Fault{Wait: hung} })
		for res, f := range r.after(20 * time.Second).Freshness {
			if f.Broken != "no answer in time" || f.Since.After(began) || f.Since.Before(began.Add(-12*time.Second)) {
				t.Errorf("%s: %+v, hung at %v", res, f, began)
			}
		}
		close(hung)
		for res, f := range r.after(15 * time.Second).Freshness {
			if f.Broken != "" {
				t.Errorf("%s is still broken: %+v", res, f)
			}
		}
		r.end()
	})
}

func TestRetryAsksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn})
		r := start(s)
		r.after(5 * time.Second)
		w.setDown(true)
		r.after(5 * time.Minute)
		w.setDown(false)
		s.Retry()
		for res, f := range r.after(1500 * time.Millisecond).Freshness {
			if f.Broken != "" {
				t.Errorf("%s: %+v", res, f)
			}
		}
		r.end()
	})
}

func TestForgottenVersionsAreReadAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(5 * time.Second)
		w.setDown(true)
		w.create(node("n9", corev1.ConditionTrue))
		w.srv.Compact()
		w.setDown(false)
		if snap := r.after(40 * time.Second); snap.Node("n9") == nil || snap.Freshness[cluster.Nodes].Broken != "" {
			t.Errorf("%+v", snap.Freshness[cluster.Nodes])
		}
		r.end()
	})
}

// While nodes fall one after another, each Lease that becomes of interest is read at
// once, and the others are not read again before their round.
func TestANewLeaseIsReadAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fall := func(from, to int) {
			for i := from; i < to; i++ {
				n := fmt.Sprintf("bad-%02d", i)
				w.lease(n)
				w.create(node(n, corev1.ConditionUnknown))
			}
		}
		fall(0, 30)
		r := start(New(Config{Conn: w.conn}))
		first := len(r.after(3 * time.Second).Leases)
		before := w.requests("/leases/")
		fall(30, 40)
		snap := r.after(3 * time.Second)
		if n := w.requests("/leases/") - before; n != 10 || first < 30 || len(snap.Leases) != first+10 {
			t.Errorf("%d reads of Leases; %d were known and then %d", n, first, len(snap.Leases))
		}
		r.end()
	})
}

func TestLeasesArePolledSparingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 80 {
			n := fmt.Sprintf("bad-%02d", i)
			w.create(node(n, corev1.ConditionUnknown))
			w.lease(n)
		}
		r := start(New(Config{Conn: w.conn}))
		r.after(15 * time.Second)
		before := w.requests("/leases/")
		snap := r.after(time.Minute)
		if n := w.requests("/leases/") - before; n < 6*(maxLeases+len(components))-maxLeases || n > 6*(maxLeases+len(components)) {
			t.Errorf("%d reads of Leases in a minute", n)
		}
		if n := len(snap.Leases); n != maxLeases {
			t.Errorf("%d Leases", n)
		}
		if w.requests("/leases watch")+w.requests("/leases ")+w.requests("GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?") > 0 {
			t.Error("Leases were listed or watched")
		}
		r.end()
	})
}
