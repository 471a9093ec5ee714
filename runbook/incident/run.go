package incident

import (
	"context"
	"errors"
	"sync"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Run runs the loop until the context ends: snapshots from the Source and intents
// go in, every new state goes to publish, which must not block. Previews, applies
// and notes are worked on beside the loop, so that it goes on observing. Run
// returns when all of that has ended, so that the journal has every outcome.
func (l *Loop) Run(ctx context.Context, intents <-chan Intent, publish func(*State)) {
	r := &runner{loop: l, results: make(chan func() *job), pictures: make(chan *cluster.Snapshot, 1), ended: make(chan sourceEnd)}
	publish(l.State())
	r.startSource(ctx)
	for {
		select {
		case <-ctx.Done():
			r.drain()
			l.End()
			return
		case s := <-r.pictures:
			publish(l.Observe(s))
		case i, ok := <-intents:
			if !ok {
				intents = nil
				continue
			}
			r.start(ctx, l.take(i))
			if _, again := i.(Retry); again {
				r.retry(ctx)
			}
			publish(l.State())
		case finish := <-r.results:
			r.jobs--
			r.start(ctx, finish())
			publish(l.State())
		case end := <-r.ended:
			r.sourceEnded(ctx, end)
			publish(l.State())
		}
	}
}

// runner is what Run adds to the loop: what happens at the same time.
type runner struct {
	loop     *Loop
	results  chan func() *job
	jobs     int
	pictures chan *cluster.Snapshot // the latest picture only
	mailbox  sync.Mutex
	ended    chan sourceEnd
	running  bool
}

type sourceEnd struct{ err error }

// start works on a job beside the loop.
func (r *runner) start(ctx context.Context, j *job) {
	if j == nil {
		return
	}
	r.jobs++
	go func() {
		x := j.work(j.within(ctx))
		r.results <- func() *job { return j.finish(x) }
	}()
}

// drain waits for the work that is under way, whose contexts have ended.
func (r *runner) drain() {
	for r.jobs > 0 || r.running {
		select {
		case finish := <-r.results:
			r.jobs--
			finish() // follow-up work is not begun any more
		case <-r.ended:
			r.running = false
		}
	}
}

func (r *runner) startSource(ctx context.Context) {
	if r.loop.cfg.Source == nil || r.running {
		return
	}
	r.running = true
	go func() { r.ended <- sourceEnd{r.loop.cfg.Source.Run(ctx, r.post)} }()
}

// post puts a picture into the mailbox; one that was not looked at yet is
// replaced, so that a slow diagnosis never works off a queue of old pictures.
func (r *runner) post(s *cluster.Snapshot) {
	r.mailbox.Lock()
	defer r.mailbox.Unlock()
	select {
	case <-r.pictures:
	default:
	}
	r.pictures <- s
}

func (r *runner) sourceEnded(ctx context.Context, end sourceEnd) {
	r.running = false
	switch {
	case ctx.Err() != nil || errors.Is(end.err, context.Canceled):
	case end.err != nil:
		defer r.loop.noteLink()
		r.loop.dead = report.Textf("%v", end.err)
		r.loop.refuse("%v", end.err)
	default:
		r.loop.dead = "the source of the picture has ended"
	}
}

// retry starts a source again that has given up; one that runs tries by itself.
func (r *runner) retry(ctx context.Context) {
	if r.running {
		if r.loop.cfg.Retry != nil {
			r.loop.cfg.Retry()
		}
		return
	}
	r.startSource(ctx)
}
