package sim

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the cluster's time. It moves only when a World is stepped.
type Clock struct {
	mu  sync.RWMutex
	now time.Time
}

// NewClock starts a clock.
func NewClock(start time.Time) *Clock { return &Clock{now: start.UTC()} }

// Now is the cluster's time.
func (c *Clock) Now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now
}

// Since is how long ago t was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *Clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// task is something that is due at a time. Tasks due at the same time run in the
// order in which they were queued.
type task struct {
	at  time.Time
	seq uint64
	run func()
}

type taskHeap []task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}
func (h taskHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)   { *h = append(*h, x.(task)) }
func (h *taskHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = task{}
	*h = old[:len(old)-1]
	return last
}

// after queues what is due in d from now.
func (w *World) after(d time.Duration, run func()) {
	w.seq++
	heap.Push(&w.tasks, task{at: w.clock.Now().Add(d), seq: w.seq, run: run})
}

// every runs a task now and then while the cluster's heart beats: first after
// phase, then whenever period() has passed. It ends with the heartbeat.
func (w *World) every(phase time.Duration, period func() time.Duration, run func()) {
	beat := w.heartbeat
	var tick func()
	tick = func() {
		if w.heartbeat != beat {
			return
		}
		run()
		w.after(period(), tick)
	}
	w.after(phase, tick)
}

func constantly(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// workqueue hands keys to a controller a moment after they were added, each once
// however often it was added meanwhile.
type workqueue struct {
	w       *World
	latency time.Duration
	sync    func(key string)
	pending map[string]bool
}

func (w *World) newQueue(latency time.Duration, sync func(key string)) *workqueue {
	return &workqueue{w: w, latency: latency, sync: sync, pending: map[string]bool{}}
}

func (q *workqueue) add(key string) {
	if q.pending[key] {
		return
	}
	q.pending[key] = true
	q.w.after(q.latency, func() {
		delete(q.pending, key)
		q.sync(key)
	})
}

func (q *workqueue) addAfter(key string, d time.Duration) {
	q.w.after(d, func() { q.add(key) })
}
