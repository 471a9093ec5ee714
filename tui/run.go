package tui

import (
	"context"
	"errors"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Loop runs beside the screen until the context ends: intents go in, and every new
// state goes to publish. incident.Loop is one.
type Loop interface {
	Run(ctx context.Context, intents <-chan incident.Intent, publish func(*incident.State))
}

// Run shows an incident until the operator leaves or the context ends, and returns
// when the loop has ended too. o.Send is set by Run. An error means that the
// terminal could not be used, or is the context's own.
func Run(ctx context.Context, loop Loop, o Options, more ...tea.ProgramOption) error {
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	in, out := make(chan incident.Intent), make(chan incident.Intent)
	o.Send = func(i incident.Intent) {
		select {
		case in <- i:
		case <-ctx.Done():
		}
	}
	p := tea.NewProgram(New(o), append([]tea.ProgramOption{tea.WithContext(ctx)}, more...)...)
	states := make(chan *incident.State, 1)

	var all sync.WaitGroup
	all.Go(func() { queue(ctx, in, out) })
	all.Go(func() { relay(ctx, states, func(st *incident.State) { p.Send(StateMsg{st}) }) })
	all.Go(func() { loop.Run(ctx, out, latest(states)) })
	_, err := p.Run()
	stop()
	all.Wait()
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// queue passes intents on in their order, however long the loop takes, so that a
// key never waits for it.
func queue(ctx context.Context, in <-chan incident.Intent, out chan<- incident.Intent) {
	var waiting []incident.Intent
	for {
		var next incident.Intent
		var to chan<- incident.Intent
		if len(waiting) > 0 {
			next, to = waiting[0], out
		}
		select {
		case i := <-in:
			waiting = append(waiting, i)
		case to <- next:
			waiting = waiting[1:]
		case <-ctx.Done():
			return
		}
	}
}

// latest is a publish that never blocks: a state that the screen has not taken yet
// is replaced by the newer one, which says everything that the older one said.
func latest(states chan *incident.State) func(*incident.State) {
	var mu sync.Mutex
	return func(st *incident.State) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-states:
		default:
		}
		states <- st
	}
}

// relay is the only way from the loop to the screen.
func relay(ctx context.Context, states <-chan *incident.State, show func(*incident.State)) {
	for {
		select {
		case st := <-states:
			show(st)
		case <-ctx.Done():
			return
		}
	}
}
