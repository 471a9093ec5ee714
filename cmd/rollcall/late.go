package main

import (
	"context"
	"sync"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// late is a connection that may come about later: the screen opens on an API
// server that does not answer too, says why, and can try again.
type late struct {
	connect func(context.Context) (*kube.Connection, error)
	watch   watch.Config // without its connection

	mu       sync.Mutex
	conn     *kube.Connection
	source   *watch.Source // of the run that is under way
	identity incident.Identity
	wanted   []watch.Workload
}

// established takes a connection that stands.
func (l *late) established(ctx context.Context, conn *kube.Connection) {
	id := identify(ctx, conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.identity = conn, id
}

// Run connects where that has not happened yet, and watches. Each run has a source
// of its own: one that ended is spent.
func (l *late) Run(ctx context.Context, publish func(*cluster.Snapshot)) error {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		var err error
		if conn, err = l.connect(ctx); err != nil {
			return err
		}
		l.established(ctx, conn)
	}
	cfg := l.watch
	cfg.Conn = conn
	source := watch.New(cfg)
	l.mu.Lock()
	l.source = source
	for _, w := range l.wanted {
		source.Want(w)
	}
	l.mu.Unlock()
	return source.Run(ctx, publish)
}

// Want has a workload's Pods read, now and after a reconnection.
func (l *late) Want(w watch.Workload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = append(l.wanted, w)
	if l.source != nil {
		l.source.Want(w)
	}
}

// Retry asks again now for what could not be read.
func (l *late) Retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source != nil {
		l.source.Retry()
	}
}

// Identify says who looks at what, as far as it is known.
func (l *late) Identify() incident.Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.identity
}

func (l *late) api() (reach, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil, action.ErrUnreachable
	}
	return l.conn.API(), nil
}

// Close drops the connection.
func (l *late) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
}

// Get, Patch, Delete and CanI are those of the connection, once it stands.
func (l *late) Get(ctx context.Context, ref action.Ref) (action.Object, error) {
	api, err := l.api()
	if err != nil {
		return action.Object{}, err
	}
	return api.Get(ctx, ref)
}

// Patch is action.API's.
func (l *late) Patch(ctx context.Context, ref action.Ref, t action.PatchType, patch []byte, dryRun bool) (action.Object, error) {
	api, err := l.api()
	if err != nil {
		return action.Object{}, err
	}
	return api.Patch(ctx, ref, t, patch, dryRun)
}

// Delete is action.API's.
func (l *late) Delete(ctx context.Context, ref action.Ref, uid string, dryRun bool) error {
	api, err := l.api()
	if err != nil {
		return err
	}
	return api.Delete(ctx, ref, uid, dryRun)
}

// Logs is action.Logs'.
func (l *late) Logs(ctx context.Context, q action.LogRequest) (action.Log, error) {
	api, err := l.api()
	if err != nil {
		return action.Log{}, err
	}
	return api.Logs(ctx, q)
}

// CanI is action.API's.
func (l *late) CanI(ctx context.Context, verb string, ref action.Ref) (bool, string, error) {
	api, err := l.api()
	if err != nil {
		return false, "", err
	}
	return api.CanI(ctx, verb, ref)
}
