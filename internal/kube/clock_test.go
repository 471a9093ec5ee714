package kube

import (
	"testing"
	"testing/synctest"
	"time"
)

// server answers like an API server whose clock is off by skew, after a delay on
// the way there and back.
func answer(c *Clock, skew, there, back time.Duration) {
	sent := c.steady()
	time.Sleep(there)
	date := c.wall().Add(skew).Truncate(time.Second)
	time.Sleep(back)
	c.observe(date, sent, c.steady())
}

func TestClockFollowsTheServer(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, 3 * time.Minute, -7 * time.Hour, 250 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := NewClock(nil)
			if _, known := c.Error(); known {
				t.Error("the clock claims to know the server's before any answer")
			}
			widest := time.Hour
			for i := range 20 {
				answer(c, skew, 5*time.Millisecond, 15*time.Millisecond)
				e, known := c.Error()
				if off := c.Now().Sub(time.Now().Add(skew)).Abs(); !known || off > e+time.Millisecond {
					t.Fatalf("skew %v, answer %d: off by %v, claims at most %v", skew, i, off, e)
				}
				if e > widest+5*time.Millisecond {
					t.Errorf("answer %d widened the error from %v to %v", i, widest, e)
				}
				widest = e
				time.Sleep(1370 * time.Millisecond)
			}
			if widest > 100*time.Millisecond {
				t.Errorf("after twenty answers the error is still %v", widest)
			}
		})
	}
}

func TestFirstAnswerIsGoodToHalfASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(nil)
		answer(c, time.Hour, 0, 20*time.Millisecond)
		if e, _ := c.Error(); e > 510*time.Millisecond {
			t.Errorf("error %v", e)
		}
	})
}

func TestClockStartsAnewWhenTheServersWasSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(nil)
		for range 5 {
			answer(c, 0, time.Millisecond, time.Millisecond)
			time.Sleep(1100 * time.Millisecond)
		}
		answer(c, -time.Hour, time.Millisecond, time.Millisecond)
		if off := c.Now().Sub(time.Now().Add(-time.Hour)).Abs(); off > 510*time.Millisecond {
			t.Errorf("off by %v", off)
		}
	})
}

func TestClockDoesNotRunBackwardsWhenItsBoundsNarrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(nil)
		var last time.Time
		for i := range 50 {
			answer(c, time.Duration(i%3)*time.Millisecond, time.Duration(i%7)*40*time.Millisecond, time.Millisecond)
			if now := c.Now(); now.Before(last) {
				t.Fatalf("from %v back to %v", last, now)
			} else {
				last = now
			}
			time.Sleep(330 * time.Millisecond)
		}
	})
}

func TestErrorGrowsWithTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClock(nil)
		answer(c, 0, 0, 0)
		before, _ := c.Error()
		time.Sleep(24 * time.Hour)
		if after, _ := c.Error(); after < before+10*time.Second {
			t.Errorf("a day without an answer, and the error is %v", after)
		}
	})
}
