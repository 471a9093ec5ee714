package tui

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
)

// recorder is a loop that keeps what it is told.
type recorder struct {
	first *incident.State
	got   []incident.Intent
	ended bool
}

func (r *recorder) Run(ctx context.Context, in <-chan incident.Intent, publish func(*incident.State)) {
	publish(r.first)
	for {
		select {
		case i := <-in:
			time.Sleep(time.Second) // a slow loop: keys do not wait for it
			r.got = append(r.got, i)
			publish(r.first)
		case <-ctx.Done():
			r.ended = true
			return
		}
	}
}

func TestRunPassesKeysToTheLoopInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop := &recorder{first: tuitest.Checklist(4)}
		in, keys := io.Pipe()
		go func() {
			time.Sleep(time.Second)
			io.WriteString(keys, "\r")
			io.WriteString(keys, "b")
			io.WriteString(keys, "F")
			time.Sleep(time.Minute)
			io.WriteString(keys, "q")
		}()
		err := Run(t.Context(), loop, Options{}, tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithWindowSize(80, 24), tea.WithoutSignalHandler(), tea.WithEnvironment([]string{"TERM=xterm"}))
		keys.Close()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range loop.got {
			names = append(names, i.IntentName())
		}
		if len(names) != 3 || names[0] != "NextStep" || names[1] != "PreviousStep" || names[2] != "SwitchToOnDelete" {
			t.Errorf("the loop got %v", names)
		}
		if !loop.ended {
			t.Error("Run returned before the loop had ended")
		}
		time.Sleep(time.Minute)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("terminated")
		ctx, cancel := context.WithCancelCause(t.Context())
		loop := &recorder{first: tuitest.Cascade()}
		in, keys := io.Pipe()
		go func() { time.Sleep(time.Second); cancel(why) }()
		err := Run(ctx, loop, Options{}, tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithWindowSize(80, 24), tea.WithoutSignalHandler(), tea.WithEnvironment([]string{"TERM=xterm"}))
		keys.Close()
		if !errors.Is(err, why) || !loop.ended {
			t.Errorf("ended with %v, loop ended: %v", err, loop.ended)
		}
		time.Sleep(time.Minute)
	})
}
