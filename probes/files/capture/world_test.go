package capture_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
)

var now = time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)

// world is an API server and what was asked of it.
type world struct {
	*api.Server
	t *testing.T

	mu    sync.Mutex
	seen  []string // "/api/v1/pods?limit=500"
	fault func(*http.Request) *api.Fault
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, Server: api.New(func() time.Time { return now }, 1)}
	t.Cleanup(w.Close)
	w.add(objects...)
	w.Server.Fault(func(r *http.Request) *api.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		u := *r.URL
		q := u.Query()
		q.Del("timeout") // client-go's own
		u.RawQuery = q.Encode()
		w.seen = append(w.seen, u.RequestURI())
		if w.fault != nil {
			return w.fault(r)
		}
		return nil
	})
	return w
}

func (w *world) add(objects ...runtime.Object) {
	w.t.Helper()
	for _, o := range objects {
		if _, err := w.Create("test", o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// breaks has requests fail from now on.
func (w *world) breaks(fault func(*http.Request) *api.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// asked are the requests for a path, and for what lies below it.
func (w *world) asked(path string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.seen {
		if strings.HasPrefix(s, path) {
			out = append(out, s)
		}
	}
	return out
}

// connect reaches the server; nothing but reads is let through.
func (w *world) connect(user string) *kube.Connection {
	w.t.Helper()
	conn, err := kube.New(w.ConfigFor(user), kube.Options{Wall: func() time.Time { return now }, ReadOnly: true, ReadOnlyWhy: "a capture only reads"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Close)
	return conn
}

func (w *world) options() capture.Options {
	return capture.Options{Now: func() time.Time { return now }, Context: "lab", ServerVersion: "v1.37.2", Version: "test"}
}
