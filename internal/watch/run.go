package watch

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Run publishes snapshots until ctx ends: the first at once, then whenever
// something changed but at most every Least, and every Tick whether or not, so that
// ages move. It goes on through lost connections, which the snapshots' Freshness
// shows. It returns an error only where nothing may be read: a *kube.ConnectError.
func (s *Source) Run(ctx context.Context, publish func(*cluster.Snapshot)) error {
	s.start()
	defer s.Close()
	tick := time.NewTicker(s.cfg.Tick)
	defer tick.Stop()
	soon := time.NewTimer(0) // the first snapshot
	defer soon.Stop()
	last := time.Now().Add(-s.cfg.Least)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.bell:
			if !s.dirty.Load() {
				continue
			}
		case <-soon.C:
		case <-tick.C:
		}
		if early := s.cfg.Least - time.Since(last); early > 0 {
			soon.Reset(early) // whatever it is, it will be in that snapshot
			continue
		}
		if err := s.refused(); err != nil {
			return err
		}
		s.again()
		s.dirty.Store(false)
		snap := s.step()
		last = time.Now()
		publish(snap)
	}
}

// step builds the next snapshot and reads what it demands.
func (s *Source) step() *cluster.Snapshot {
	now := s.cfg.Now()
	snap := s.build(now)
	more, began := s.follows.follow(snap.Demand(), now)
	if more {
		s.dirty.Store(true)
	}
	if began {
		snap = s.build(now) // which says that it does not hold them yet
	}
	s.past = snap.History
	s.leases.pollSoon(s.ctx, s.follows.leases, now)
	s.settings.pollSoon(s.ctx, now)
	return snap
}

// Once returns one snapshot, as soon as every kind was read and it demands nothing
// more. When ctx runs out of time it returns what there is, the rest Loading; an
// error where that is nothing at all.
func (s *Source) Once(ctx context.Context) (*cluster.Snapshot, error) {
	defer s.Close()
	snap, err := s.converge(ctx, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		return snap, err
	}
	if why := s.nothing(); why != nil {
		return nil, s.conn.Explain("read the cluster", why)
	}
	return s.build(s.cfg.Now()), nil
}

// nothing is why nothing was read at all, nil where something was.
func (s *Source) nothing() error {
	var why error = context.DeadlineExceeded
	for _, f := range s.base {
		st := f.state()
		if !st.loading {
			return nil
		}
		if st.broken != nil {
			why = st.broken
		}
	}
	return why
}

// Settle returns a snapshot that shows at least the given resource version in every
// kind, and everything that it demands itself. It waits for the stores, not for
// time: the same cluster at the same moment of cluster time gives the same snapshot
// and, when it is called at the same moments, the same History. Where a kind is
// quiet the API server must send bookmarks. The source stays open: see Close.
func (s *Source) Settle(ctx context.Context, resourceVersion string) (*cluster.Snapshot, error) {
	return s.converge(ctx, resourceVersion)
}

// converge builds snapshots until what they demand has been read.
func (s *Source) converge(ctx context.Context, rv string) (*cluster.Snapshot, error) {
	s.start()
	again := true // the Leases of the last time are old
	for {
		if err := s.await(ctx, rv); err != nil {
			return nil, err
		}
		if err := s.refused(); err != nil {
			return nil, err
		}
		now := s.cfg.Now()
		if again || s.leases.missing(s.follows.leases) {
			s.leases.poll(ctx, s.follows.leases, now, again)
			again = false
		}
		if s.settings.due(now) {
			s.settings.poll(ctx, now)
		}
		snap := s.build(now)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if more, _ := s.follows.follow(snap.Demand(), now); more && !s.leases.failing() {
			continue
		}
		s.past = snap.History
		return snap, nil
	}
}

// await waits until every feed has reached rv or was refused.
func (s *Source) await(ctx context.Context, rv string) error {
	for !s.arrived(rv) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.bell:
		}
	}
	return nil
}

func (s *Source) arrived(rv string) bool {
	for _, f := range s.feeds() {
		if !f.reached(rv) && f.state().refused == "" {
			return false
		}
	}
	return true
}
