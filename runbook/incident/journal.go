package incident

import (
	"encoding/json"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// Kind names a kind of journal entry.
type Kind string

// The kinds, besides those of a guide's events.
const (
	Verdict         Kind = "Verdict"
	WorkloadOpened  Kind = "WorkloadOpened"
	WorkloadClosed  Kind = "WorkloadClosed"
	ActionPreviewed Kind = "ActionPreviewed"
	ActionIntended  Kind = "ActionIntended" // on disk before the request is sent
	ActionApplied   Kind = "ActionApplied"
	ActionFailed    Kind = "ActionFailed"
	ProofChanged    Kind = "ProofChanged"
	NoteTaken       Kind = "Note"
	CommandCopied   Kind = "CommandCopied"
	NotesWritten    Kind = "NotesWritten"
	Resumed         Kind = "Resumed"
)

// Entry is one line of the journal.
type Entry struct {
	At       time.Time // wall time
	AsOf     time.Time // cluster time of the picture, zero before the first
	Kind     Kind
	Workload report.Text     // kind/namespace/name, "" where none is meant
	Text     report.Text     // for people: one line
	Data     json.RawMessage // for the program, nil without
}

// Journal keeps what happened. Keep returns when the entry is safe.
type Journal interface {
	Keep(Entry) error
	Path() string
}

type (
	// walked is an event of a guide.
	walked struct {
		Workload report.WorkloadKey `json:"workload"`
		Runbook  string             `json:"runbook"`
		Event    runbook.Event      `json:"event"`
	}
	// intended is a confirmed action before its request is sent.
	intended struct {
		Plan     action.Plan   `json:"plan"`
		Expected []report.Text `json:"expected"`
	}
	// outcome is what came of it.
	outcome struct {
		Title   report.Text     `json:"title"`
		Request action.Request  `json:"request"`
		Before  json.RawMessage `json:"before,omitempty"`
		After   json.RawMessage `json:"after,omitempty"`
		Err     report.Text     `json:"error,omitempty"`
	}
	proofMark struct {
		Title  report.Text   `json:"title"`
		Before Phase         `json:"before"`
		Phase  Phase         `json:"phase"`
		Lines  []report.Line `json:"lines,omitempty"`
	}
)
