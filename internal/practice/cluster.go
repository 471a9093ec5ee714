package practice

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// Epoch is when every incident begins, by the cluster's clock.
var Epoch = time.Date(2026, 3, 3, 2, 0, 0, 0, time.UTC)

// Cluster is a practice cluster with an incident that unfolds as it is stepped.
// All methods may be called from any goroutine.
type Cluster struct {
	clock *sim.Clock
	store *api.Server

	mu    sync.Mutex // guards the world and what is due
	world *sim.World
	due   []event
	sound map[string]bool // the nodes that were Ready at the start
}

// event is something that somebody does to the cluster at a time.
type event struct {
	at time.Time
	do func() error
}

// Start makes the cluster of an incident, as it stands at Epoch. The same seed
// plays the same way. An unknown name is an error that lists the known ones.
func Start(incident string, seed int64) (*Cluster, error) {
	i, err := find(incident)
	if err != nil {
		return nil, err
	}
	s := newStage(seed, i.programs)
	if err := i.build(s); err != nil {
		return nil, fmt.Errorf("practice incident %s, seed %d: %w", i.Name, seed, err)
	}
	s.until(Epoch)
	c := &Cluster{clock: s.clock, store: s.store, world: s.world, due: s.due, sound: map[string]bool{}}
	for _, n := range c.nodes() {
		if ready(n) {
			c.sound[n.Name] = true
		}
	}
	s.store.ServeLogs(func(p *corev1.Pod, o *corev1.PodLogOptions) (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.world.Logs(p.Namespace, p.Name, o)
	})
	return c, nil
}

// Config reaches the cluster's API server; no port is opened.
func (c *Cluster) Config() *rest.Config { return c.store.Config() }

// Now is the cluster's time.
func (c *Cluster) Now() time.Time { return c.clock.Now() }

// Step lets the cluster live until that time, by its own clock.
func (c *Cluster) Step(to time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.due) > 0 && !c.due[0].at.After(to) {
		e := c.due[0]
		c.due = c.due[1:]
		c.world.Step(e.at)
		if err := e.do(); err != nil {
			return fmt.Errorf("practice cluster at %s: %w", e.at.Format(time.TimeOnly), err)
		}
	}
	c.world.Step(to)
	return nil
}

// Run lets the cluster live speed times as fast as the wall clock, a bit at every
// tick of it, until ctx ends. The ticks carry the wall clock's time.
func (c *Cluster) Run(ctx context.Context, speed float64, wall <-chan time.Time) error {
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case t, open := <-wall:
			if !open {
				return nil
			}
			if !last.IsZero() && t.After(last) {
				if err := c.Step(c.Now().Add(time.Duration(float64(t.Sub(last)) * speed))); err != nil {
					return err
				}
			}
			last = t
		}
	}
}

// ResourceVersion is that of the newest write.
func (c *Cluster) ResourceVersion() string { return c.store.ResourceVersion() }

// Bookmark sends every open watch a bookmark at the newest resourceVersion, which
// it returns: an informer that has reached it has seen all that was written before.
func (c *Cluster) Bookmark() string { return c.store.Bookmark() }

// FallenNodes counts the nodes that were Ready at the start and are not now. It
// tells when an incident has got far enough to begin; a diagnosis has to find out
// for itself.
func (c *Cluster) FallenNodes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, node := range c.nodes() {
		if c.sound[node.Name] && !ready(node) {
			n++
		}
	}
	return n
}

// Close ends the API server and every connection to it.
func (c *Cluster) Close() { c.store.Close() }

func (c *Cluster) nodes() []*corev1.Node {
	var out []*corev1.Node
	for _, o := range c.store.List(corev1.SchemeGroupVersion.WithResource("nodes"), "", nil) {
		out = append(out, o.(*corev1.Node))
	}
	return out
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
