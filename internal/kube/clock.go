package kube

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Clock is the API server's clock, worked out from the Date header of its answers,
// so that a laptop's own skew never makes a Lease look stale.
//
// Each answer bounds the offset between the two clocks from both sides: the
// header, in whole seconds, was written after the request left and before its
// answer came, so the server's time lies in [Date, Date+1s) at some moment between
// the two. The bounds of successive answers are intersected; the estimate is the
// middle, its error at most half the width: about half a second after the first
// answer, less with each that falls elsewhere within the second. Bounds widen with
// time by what quartz clocks drift, and where they contradict each other (one of
// the clocks was set, the computer slept) the latest answer alone counts.
type Clock struct {
	wall func() time.Time
	base time.Time // when it was made, with its monotonic reading

	mu     sync.Mutex
	known  bool
	lo, hi time.Duration // server minus local, at measured
	at     time.Time
	last   time.Time // the latest time given out
}

const (
	// drift is how fast two clocks may part: generous for quartz under NTP.
	drift = 200e-6
	// setBack is from when on a correction backwards is passed on: smaller ones come
	// of narrower bounds, and time that runs backwards would confuse every age.
	setBack = 2 * time.Second
)

// NewClock makes a clock that runs on local time. wall nil is time.Now; its
// monotonic reading counts, so that setting the local clock changes nothing.
func NewClock(wall func() time.Time) *Clock {
	if wall == nil {
		wall = time.Now
	}
	return &Clock{wall: wall, base: wall()}
}

// steady is local time by the monotonic clock: setting the local clock does not move it.
func (c *Clock) steady() time.Time {
	return c.base.Round(0).Add(c.wall().Sub(c.base))
}

// Now estimates the server's time; before the first answer it is local time. It
// does not run backwards but for a correction of more than two seconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.steady()
	lo, hi := c.bounds(local)
	now := local.Add(lo + (hi-lo)/2).UTC()
	if back := c.last.Sub(now); back > 0 && back < setBack {
		return c.last
	}
	c.last = now
	return now
}

// Error is how far Now may be off, in either direction; false before the first answer.
func (c *Clock) Error() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lo, hi := c.bounds(c.steady())
	return (hi - lo) / 2, c.known
}

// bounds are those of the offset now, widened by drift.
func (c *Clock) bounds(local time.Time) (lo, hi time.Duration) {
	widen := time.Duration(float64(local.Sub(c.at)) * drift)
	if !c.known || widen < 0 {
		widen = 0
	}
	return c.lo - widen, c.hi + widen
}

// observe takes the Date of an answer to a request that left at sent and was
// answered at received, both by the steady clock.
func (c *Clock) observe(date, sent, received time.Time) {
	lo := date.Sub(received)
	hi := date.Add(time.Second).Sub(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		oldLo, oldHi := c.bounds(received)
		if l, h := max(lo, oldLo), min(hi, oldHi); l <= h {
			lo, hi = l, h
		}
	}
	c.known, c.lo, c.hi, c.at = true, lo, hi, received
}

type outcomeKey struct{}

// WithOutcome has f called with what came of every request that is sent under the
// context: nil for an answer, whatever it says, else why there was none. client-go
// turns a watch that was never answered into one that ends at once; this tells.
func WithOutcome(ctx context.Context, f func(error)) context.Context {
	return context.WithValue(ctx, outcomeKey{}, f)
}

// clockTripper feeds a Clock with every answer that an API server wrote. Gateways
// answer 5xx on their own; their clock is another.
type clockTripper struct {
	clock *Clock
	next  http.RoundTripper
}

func (t clockTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := t.clock.steady()
	resp, err := t.next.RoundTrip(r)
	if f, ok := r.Context().Value(outcomeKey{}).(func(error)); ok {
		f(err)
	}
	if err != nil {
		return resp, err
	}
	received := t.clock.steady()
	if resp.StatusCode < http.StatusInternalServerError {
		if d, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			t.clock.observe(d, sent, received)
		}
	}
	return resp, nil
}

func (t clockTripper) WrappedRoundTripper() http.RoundTripper { return t.next }
