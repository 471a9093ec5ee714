package watch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// components are the control plane's parts whose leader election Lease tells
// whether they are alive.
var components = []string{"kube-controller-manager", "kube-scheduler"}

const (
	maxLeases    = 50
	leaseWorkers = 8
	leaseTimeout = 5 * time.Second // wall time
)

// leases are polled, one GET each: a watch on the heartbeats of 5,000 nodes is 500
// events a second. The polls are a sign of life of the connection, too: an open
// watch on a dead network is silent for most of a minute.
type leases struct {
	src *Source

	mu      sync.Mutex
	known   map[types.NamespacedName]*coordinationv1.Lease // nil: read, and not there
	refused map[string]string                              // namespace -> why
	failed  error
	polled  time.Time // cluster time at which the last round began
	read    time.Time // and of the last that succeeded
	busy    bool
}

func newLeases(s *Source) *leases {
	return &leases{src: s, known: map[types.NamespacedName]*coordinationv1.Lease{}, refused: map[string]string{}}
}

// names are the Leases of the control plane and those of the nodes.
func names(nodes []string) []types.NamespacedName {
	var out []types.NamespacedName
	for _, c := range components {
		out = append(out, types.NamespacedName{Namespace: cluster.ControlPlaneNamespace, Name: c})
	}
	for _, n := range nodes[:min(len(nodes), maxLeases)] {
		out = append(out, types.NamespacedName{Namespace: cluster.NodeLeaseNamespace, Name: n})
	}
	return out
}

// missing tells whether one of them was never read.
func (l *leases) missing(nodes []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names(nodes) {
		if _, ok := l.known[n]; !ok && l.refused[n.Namespace] == "" {
			return true
		}
	}
	return false
}

// pollSoon starts a poll in the background where one is due: of all of them every so
// often by cluster time, and at once of those that were not asked about before.
func (l *leases) pollSoon(ctx context.Context, nodes []string, now time.Time) {
	l.mu.Lock()
	age := now.Sub(l.polled)
	l.mu.Unlock()
	due := age >= l.src.cfg.LeaseEvery || age < 0
	if !due && (!l.missing(nodes) || l.failing()) {
		return
	}
	l.mu.Lock()
	start := !l.busy
	l.busy = true
	l.mu.Unlock()
	if !start {
		return
	}
	l.src.running.Go(func() {
		l.poll(ctx, nodes, now, due)
		l.mu.Lock()
		l.busy = false
		l.mu.Unlock()
		l.src.ring(true)
	})
}

// forgetPoll makes the next poll due.
func (l *leases) forgetPoll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.polled = time.Time{}
}

func (l *leases) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed != nil
}

// poll reads the Leases, or between two rounds those alone that are not known yet, and
// forgets those of other nodes: one that is not renewed here would look stale.
func (l *leases) poll(ctx context.Context, nodes []string, now time.Time, round bool) {
	all := names(nodes)
	l.keep(all)
	l.mu.Lock()
	if round {
		l.polled = now
	} else {
		all = slices.DeleteFunc(all, func(n types.NamespacedName) bool { _, ok := l.known[n]; return ok })
	}
	l.mu.Unlock()
	work := make(chan types.NamespacedName)
	failed := make([]error, leaseWorkers)
	var wg sync.WaitGroup
	for i := range leaseWorkers {
		wg.Go(func() {
			for n := range work {
				if err := l.get(ctx, n); err != nil {
					failed[i] = err
				}
			}
		})
	}
	for _, n := range all {
		work <- n
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(failed, func(e error) bool { return e != nil }); i >= 0 {
		l.failed = failed[i]
		if !answered(l.failed) {
			l.src.lost(l.failed)
		}
		return
	}
	l.failed = nil
	if round {
		l.read = now
	}
}

// get reads one Lease. The error is one that should not last.
func (l *leases) get(ctx context.Context, n types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := l.src.conn.REST(coordinationv1.SchemeGroupVersion).Get().Namespace(n.Namespace).
		Resource("leases").Name(n.Name).MaxRetries(0).Do(ctx).Into(lease)
	if err == nil || answered(err) {
		l.src.heard()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.known[n] = lease
		delete(l.refused, n.Namespace)
	case apierrors.IsNotFound(err):
		l.known[n] = nil
		delete(l.refused, n.Namespace)
	case refusal(err) != "":
		l.refused[n.Namespace] = refusal(err)
	default:
		return err
	}
	return nil
}

func (l *leases) keep(all []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(n types.NamespacedName, _ *coordinationv1.Lease) bool { return !slices.Contains(all, n) })
}

// list returns the Leases that were read and are wanted.
func (l *leases) list(nodes []string) []*coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*coordinationv1.Lease
	for _, n := range names(nodes) {
		if lease := l.known[n]; lease != nil {
			out = append(out, lease)
		}
	}
	return out
}

// state is how current they are, and what was refused by namespace.
func (l *leases) state() (loading bool, broken error, read time.Time, refused map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read.IsZero(), l.failed, l.read, maps.Clone(l.refused)
}
