package watch

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"go.uber.org/goleak"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// The other tests run in bubbles, which end only when every goroutine has; this one
// runs on real time. It is not parallel: it looks at the goroutines of the program.
func TestNothingRunsAfterTheEnd(t *testing.T) {
	leak := goleak.IgnoreCurrent()
	srv := api.New(time.Now, 1)
	if _, err := srv.Create("test", node("n1", corev1.ConditionFalse)); err != nil {
		t.Fatal(err)
	}
	conn, err := kube.New(srv.Config(), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Conn: conn}).Once(t.Context()); err != nil {
		t.Error(err)
	}
	s := New(Config{Conn: conn})
	if _, err := s.Settle(t.Context(), srv.Bookmark()); err != nil {
		t.Error(err)
	}
	s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	if err := New(Config{Conn: conn, Tick: time.Millisecond, Least: time.Millisecond}).Run(ctx, func(snap *cluster.Snapshot) {
		if seen++; len(snap.Loading()) == 0 && seen > 3 {
			cancel()
		}
	}); err != nil {
		t.Error(err)
	}
	conn.Close()
	srv.Close()
	goleak.VerifyNone(t, leak)
}
