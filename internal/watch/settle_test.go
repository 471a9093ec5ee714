package watch

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

var everything = cmp.Exporter(func(reflect.Type) bool { return true })

func settle(t *testing.T, s *Source, rv string) *cluster.Snapshot {
	t.Helper()
	snap, err := s.Settle(t.Context(), rv)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestSettleShowsEverythingUpToTheVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn, Type: "practice"})
		defer s.Close()
		start := time.Now()
		snap := settle(t, s, w.srv.Bookmark())
		agent := w.get("kube-system", "agent").UID
		if l := snap.Loading(); len(l) > 0 || !snap.PodsKnown(agent) || len(snap.PodsOf(agent)) != 3 || snap.NodeLease("n3") == nil {
			t.Fatalf("loading %v, Pods %q, lease %v", l, podNames(snap), snap.NodeLease("n3"))
		}
		// What becomes suspicious in one step is read in the same step.
		w.status("shop", "calm", 3, 2)
		w.create(node("n4", corev1.ConditionFalse))
		w.lease("n4")
		w.event("shop", "e1", "Pod", "calm-1")
		snap = settle(t, s, w.srv.Bookmark())
		calm := w.get("shop", "calm").UID
		if !snap.PodsKnown(calm) || len(snap.PodsOf(calm)) != 3 || snap.Node("n4") == nil || snap.NodeLease("n4") == nil || len(snap.EventsOf("Pod", "shop", "calm-1")) != 1 {
			t.Errorf("Pods %q, n4 %v, lease %v", podNames(snap), snap.Node("n4") != nil, snap.NodeLease("n4"))
		}
		if snap.Source.Type != "practice" || !snap.AsOf.Equal(time.Now().UTC().Round(0)) && time.Until(snap.AsOf).Abs() > time.Second {
			t.Errorf("as of %v, source %+v", snap.AsOf, snap.Source)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("settling took %v: it must wait for stores, not for time", d)
		}
	})
}

func TestSettleReadsLeasesAnewEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn})
		defer s.Close()
		settle(t, s, w.srv.Bookmark())
		before := w.requests("/leases/n3")
		settle(t, s, w.srv.Bookmark())
		if n := w.requests("/leases/n3") - before; n != 1 {
			t.Errorf("read %d times", n)
		}
	})
}

func TestTheSameClusterSettlesToTheSameSnapshots(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T) (out []*cluster.Snapshot) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := New(Config{Conn: w.conn, Now: func() time.Time { return time.Now().UTC().Round(0) }})
			defer s.Close()
			out = append(out, settle(t, s, w.srv.Bookmark()))
			for i := range 10 {
				time.Sleep(10 * time.Second)
				w.status("kube-system", "agent", 3, int32(i%4))
				w.status("shop", "calm", 3, int32(3-i%2))
				w.event("kube-system", "e"+string(rune('a'+i)), "Pod", "agent-0")
				w.pod("shop", "calm", 10+i)
				out = append(out, settle(t, s, w.srv.Bookmark()))
			}
		})
		return out
	}
	a, b := play(t), play(t)
	for i := range a {
		if d := cmp.Diff(a[i], b[i], everything); d != "" {
			t.Fatalf("snapshot %d differs:\n%s", i, d)
		}
	}
	if reflect.DeepEqual(a[0].DaemonSets, a[1].DaemonSets) {
		t.Error("nothing changed between two steps: the test shows nothing")
	}
}

func TestSettleGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := New(Config{Conn: w.conn})
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Settle(ctx, "999999"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOnceReadsWhatIsDemanded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		agent := w.get("kube-system", "agent").UID
		if l := snap.Loading(); len(l) > 0 || len(snap.PodsOf(agent)) != 3 || snap.NodeLease("n3") == nil || len(snap.Nodes) != 3 {
			t.Errorf("loading %v, Pods %q", l, podNames(snap))
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("it waited %v for nothing", d)
		}
	})
}

func TestOnceReturnsWhatThereIsWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		never := make(chan struct{})
		defer close(never)
		w.srv.Fault(func(r *http.Request) *api.Fault {
			if strings.HasSuffix(r.URL.Path, "/replicasets") {
				return &api.Fault{Wait: never}
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		snap, err := New(Config{Conn: w.conn}).Once(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Nodes) != 3 || snap.Read(cluster.ReplicaSets) || !snap.Read(cluster.Nodes) {
			t.Errorf("%d nodes, loading %v", len(snap.Nodes), snap.Loading())
		}
	})
}

func TestOnceSaysWhyNothingCouldBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.srv.Fault(func(*http.Request) *api.Fault { return &api.Fault{Status: http.StatusInternalServerError} })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := New(Config{Conn: w.conn}).Once(ctx)
		var e *kube.ConnectError
		if !errors.As(err, &e) || !strings.Contains(e.Why, "500") {
			t.Errorf("got %v", err)
		}
	})
}

func TestOnceEndsWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := New(Config{Conn: w.conn}).Once(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// The client that reads is the one with the gate: a read-only session reads all the same.
func TestAReadOnlySessionReadsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn, err := kube.New(w.srv.Config(), kube.Options{ReadOnly: true, ReadOnlyWhy: "--read-only"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		snap, err := New(Config{Conn: conn}).Once(t.Context())
		if err != nil || len(snap.Loading()) > 0 || len(snap.DaemonSets) != 2 {
			t.Fatalf("%v, loading %v", err, snap.Loading())
		}
		for _, n := range snap.NotRead {
			if n.Reason != cluster.NotAsked {
				t.Errorf("%+v", n)
			}
		}
	})
}

func TestNoSecretReachesASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ds := range snap.DaemonSets {
			if got := ds.Annotations[corev1.LastAppliedConfigAnnotation]; got != leftOut {
				t.Errorf("%s: %q", ds.Name, got)
			}
		}
		if got := w.get("kube-system", "agent").Annotations[corev1.LastAppliedConfigAnnotation]; got == leftOut {
			t.Error("the server's own object was changed")
		}
	})
}
