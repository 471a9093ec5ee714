package incident

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// scripted is a Source that a test feeds.
type scripted struct {
	pictures chan *cluster.Snapshot
	fail     chan error
	runs     int
}

func newScripted() *scripted {
	return &scripted{pictures: make(chan *cluster.Snapshot), fail: make(chan error)}
}

func (s *scripted) Run(ctx context.Context, publish func(*cluster.Snapshot)) error {
	s.runs++
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.fail:
			return err
		case p := <-s.pictures:
			publish(p)
		}
	}
}

// running runs a loop in a bubble. look returns the last state once everything
// that was set off has come to rest.
type running struct {
	*tester
	source  *scripted
	intents chan Intent
	last    *State
	stop    func()
}

func run(t *testing.T) *running {
	t.Helper()
	r := &running{tester: newTester(t), source: newScripted(), intents: make(chan Intent)}
	r.loop.cfg.Source = r.source
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.loop.Run(ctx, r.intents, func(s *State) { r.last = s })
	}()
	r.stop = func() { cancel(); <-done }
	return r
}

func (r *running) look() *State { synctest.Wait(); return r.last }

func (r *running) picture(d time.Duration) *State {
	r.w.now = r.w.now.Add(d)
	r.w.ds.Status.ObservedGeneration = r.w.ds.Generation
	r.source.pictures <- r.w.snapshot()
	return r.look()
}

func (r *running) send(i Intent) *State { r.intents <- i; return r.look() }

func TestPicturesGoOnWhileAPreviewHangsAndCancelIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		defer r.stop()
		r.picture(0)
		r.api.before = func(ctx context.Context, call string) {
			if call == "dry run" {
				<-ctx.Done() // an API server that does not answer
			}
		}
		st := r.send(Act{action.Request{Kind: action.Freeze, Workload: agent}})
		if st.Dialog == nil || !st.Dialog.Loading {
			t.Fatalf("dialog %+v", st.Dialog)
		}
		seq := st.Seq
		if st = r.picture(time.Second); st.Seq == seq || !st.Report.AsOf.Equal(r.w.now) || st.Dialog == nil {
			t.Errorf("the loop stands still while a preview hangs: state %d", st.Seq)
		}
		if st = r.send(Confirm{Dialog: st.Dialog.ID}); !strings.Contains(said(st), "not complete yet") {
			t.Errorf("a preview that is not there was confirmed: %q", said(st))
		}
		if st = r.send(Cancel{}); st.Dialog != nil || st.Said != nil {
			t.Errorf("after cancel: dialog %+v, said %q", st.Dialog, said(st))
		}
	})
}

func TestPicturesGoOnWhileAnActionIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		defer r.stop()
		r.picture(0)
		answer := make(chan struct{})
		r.api.before = func(_ context.Context, call string) {
			if call == "patch" {
				<-answer
			}
		}
		st := r.send(Act{action.Request{Kind: action.Freeze, Workload: agent}})
		st = r.send(Confirm{Dialog: st.Dialog.ID})
		if st.Progress == nil || st.Progress.Phase != Applying {
			t.Fatalf("progress %+v", st.Progress)
		}
		if st = r.picture(time.Second); st.Progress.Phase != Applying || !st.Report.AsOf.Equal(r.w.now) {
			t.Errorf("progress %+v at %s", st.Progress, st.Report.AsOf)
		}
		close(answer)
		if st = r.look(); st.Progress.Phase != Verifying || len(st.Done) != 1 {
			t.Errorf("progress %+v, done %q", st.Progress, st.Done)
		}
		if st = r.picture(time.Second); st.Progress.Phase != Holding {
			t.Errorf("progress %+v", st.Progress)
		}
	})
}

func TestTheEndWhileApplyingLeavesTheOutcomeInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		r.picture(0)
		r.api.before = func(ctx context.Context, call string) {
			if call == "patch" {
				<-ctx.Done()
			}
		}
		st := r.send(Act{action.Request{Kind: action.Freeze, Workload: agent}})
		r.send(Confirm{Dialog: st.Dialog.ID})
		r.stop()
		if !r.journal.has(session.ActionConfirmed, session.ActionFailed, session.SessionEnded) || !strings.Contains(r.journal.text(), "whether it took effect is not known") {
			t.Errorf("journal:\n%s", r.journal.text())
		}
	})
}

func TestASourceThatGivesUpIsSaidAndStartedAgainByRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		defer r.stop()
		r.picture(0)
		r.source.fail <- errors.New("nodes and workloads may not be read")
		st := r.look()
		if st.Link.Live || st.Link.Why != "nodes and workloads may not be read" || !st.Said.Bad || st.Report == nil {
			t.Errorf("link %+v, said %q", st.Link, said(st))
		}
		if st = r.send(Act{action.Request{Kind: action.Freeze, Workload: agent}}); st.Dialog != nil {
			t.Error("an action on a dead connection")
		}
		r.send(Retry{})
		if st = r.picture(time.Second); r.source.runs != 2 || !st.Link.Live {
			t.Errorf("%d runs, link %+v", r.source.runs, st.Link)
		}
		if !r.journal.has(session.ConnectionLost, session.ConnectionRestored) {
			t.Errorf("journal %v", r.journal.kinds())
		}
	})
}

func TestOnlyTheLatestPictureIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{pictures: make(chan *cluster.Snapshot, 1)}
		w := newWorld()
		for range 5 {
			w.now = w.now.Add(time.Second)
			r.post(w.snapshot())
		}
		if s := <-r.pictures; !s.AsOf.Equal(w.now) || len(r.pictures) != 0 {
			t.Errorf("got the picture of %s, %d more wait", s.AsOf, len(r.pictures))
		}
	})
}
