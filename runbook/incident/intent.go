package incident

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// Intent is what a key, a palette entry or a script means. Its name is what the
// journal and the help say.
type Intent interface{ IntentName() string }

// OpenWorkload opens the checklist of a workload; with Runbook "" the one that fits.
type OpenWorkload struct {
	Workload report.WorkloadKey
	Runbook  string
}

// CloseWorkload goes back to triage; the guide keeps its place.
type CloseWorkload struct{}

// NextStep, PreviousStep and GoToStep walk the steps; SkipStep passes one with a reason.
type (
	NextStep     struct{}
	PreviousStep struct{}
	GoToStep     struct{ Step string }
	SkipStep     struct{ Why string }
)

// Act asks for the preview of an action; the loop answers with a Dialog.
type Act struct{ Request action.Request }

// Confirm applies what the dialog of that ID shows. Typed is what was typed, for
// actions that ask for it.
type Confirm struct {
	Dialog int
	Typed  string
}

// Cancel closes the dialog; nothing happens.
type Cancel struct{}

// Note takes a note with the time.
type Note struct{ Text string }

// Copied tells that a command was copied, for the journal.
type Copied struct{ Command string }

// WriteNotes writes the incident notes to a file; Path "" is the default place.
type WriteNotes struct{ Path string }

// ReadLogs reads the logs of a Pod, current and previous ones, of init containers
// too, and keeps what they tell as evidence. Pod "" is the first whose logs the open
// checklist asks for; with a Container only that one is read, of its run before with
// Previous. Namespace "" is that of the open checklist.
type ReadLogs struct {
	Namespace, Pod, Container string
	Previous                  bool
}

// PasteConsole is what a node's console printed: it is read for known signs and
// kept as evidence.
type PasteConsole struct{ Node, Text string }

// Retry connects again now.
type Retry struct{}

func (OpenWorkload) IntentName() string  { return "OpenWorkload" }
func (CloseWorkload) IntentName() string { return "CloseWorkload" }
func (NextStep) IntentName() string      { return "NextStep" }
func (PreviousStep) IntentName() string  { return "PreviousStep" }
func (GoToStep) IntentName() string      { return "GoToStep" }
func (SkipStep) IntentName() string      { return "SkipStep" }
func (i Act) IntentName() string         { return string(i.Request.Kind) }
func (Confirm) IntentName() string       { return "Confirm" }
func (Cancel) IntentName() string        { return "Cancel" }
func (Note) IntentName() string          { return "Note" }
func (Copied) IntentName() string        { return "Copied" }
func (WriteNotes) IntentName() string    { return "WriteNotes" }
func (ReadLogs) IntentName() string      { return "ReadLogs" }
func (PasteConsole) IntentName() string  { return "PasteConsole" }
func (Retry) IntentName() string         { return "Retry" }
