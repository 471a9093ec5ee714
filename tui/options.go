// Package tui is how an operator sees an incident: it renders incident.State and
// answers with incident.Intent values, and does nothing else. No cluster, no file
// and no clock but the injected one is reached from here; nothing is concluded
// here either, every number on the screen stands in the report.
//
// The root model (model.go) owns the size, the pages and the stack of dialogs. A
// key becomes a command by the one table in keymap, and the command a movement or
// an intent (command.go). Pages draw their body; the root draws what is around it
// (view.go, header.go). Colours are in style, phrases in wording, and the packages
// under component know nothing of Kubernetes.
package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/atotto/clipboard"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Options are what the screen needs from outside. Only Send is required.
type Options struct {
	// Send takes what the operator wants, in the order of the keys. It is called
	// from Update and must not block.
	Send func(incident.Intent)
	// Clock is wall time: for the quiet moment of a confirmation and for how
	// long the connection has been lost.
	Clock incident.Clock
	// After delivers msg after d; nil for a timer.
	After func(d time.Duration, msg tea.Msg) tea.Cmd
	// Clipboard takes a copied command; nil for the system's clipboard.
	Clipboard func(string) error
	Theme     style.Theme
	// NoAltScreen draws below the prompt and leaves the last picture there.
	NoAltScreen bool
	// NoMouse leaves the mouse to the terminal, so that it selects text.
	NoMouse bool
	// Open is the workload whose checklist opens as soon as it can; nil stays on triage.
	Open *incident.OpenWorkload
	// NotesPath is where the notes are written by default, for the question.
	NotesPath string
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (o *Options) defaults() {
	if o.Send == nil {
		o.Send = func(incident.Intent) {}
	}
	if o.Clock == nil {
		o.Clock = wall{}
	}
	if o.After == nil {
		o.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(d, func(time.Time) tea.Msg { return msg })
		}
	}
	if o.Clipboard == nil {
		o.Clipboard = clipboard.WriteAll
	}
}

// StateMsg is a new picture of the incident.
type StateMsg struct{ *incident.State }
