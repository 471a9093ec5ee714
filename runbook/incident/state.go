// Package incident is the loop of one incident: snapshots come in, are diagnosed,
// walk the guide and leave as a State; intents come in from whoever operates it,
// a screen or --auto. It runs off the screen's goroutine and knows no terminal.
package incident

import (
	"context"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// Source delivers snapshots until the context ends. It retries by itself; a
// broken connection shows in the snapshots' Freshness. Run returns an error only
// where nothing can ever be read.
type Source interface {
	Run(ctx context.Context, publish func(*cluster.Snapshot)) error
}

// Clock is wall time.
type Clock interface{ Now() time.Time }

// State is everything a screen shows. It is never changed after it was published.
type State struct {
	Seq    int
	Report *report.Report // nil until the first snapshot
	// Guide is the checklist that is open, nil on triage.
	Guide *runbook.View
	// Dialog is the action that waits for a confirmation, nil without one.
	Dialog *Dialog
	// Progress is the action that is being applied or verified, or the last one that was.
	Progress *Progress
	// Recovery is the proof that the nodes of the workload that was changed are
	// well again, nil until something was changed.
	Recovery *Progress
	// Said is the loop's last answer to an intent: done, refused, failed.
	Said     *Said
	Link     Link
	Identity Identity
	Session  string // path of the journal
	// Done lists the actions that were applied, the oldest first.
	Done []report.Text
	// Notes counts the notes taken.
	Notes int
	// Evidence is what logs and consoles said, each source as it was read last, the
	// oldest first.
	Evidence []signs.Evidence
	// Pods are those whose logs the open checklist asks for, the more telling first;
	// empty where no logs can be read. Consoles are the nodes of which only their own
	// console can tell.
	Pods     []AskedPod
	Consoles []report.Text
	// Left is what is still changed by hand: OnDelete, a suspended owner.
	Left []report.Text
	// Unkept is why the journal is not on the disk, "" where it is.
	Unkept report.Text
}

// AskedPod is a Pod whose logs may tell what is wrong.
type AskedPod struct {
	Namespace, Name, Node report.Text
	Why                   report.Text // why it is in question
	Read                  bool        // its logs were read
}

// Identity is who looks at what.
type Identity struct {
	Context, Server, Version, User report.Text
	ReadOnly                       bool
	Practice                       bool
	Incident                       report.Text // of the practice cluster
}

// Link is the state of the connection to the API server.
type Link struct {
	Live  bool
	Since time.Time   // cluster time of the last contact
	Why   report.Text // why it is not live
}

// Dialog is an action before its confirmation.
type Dialog struct {
	ID      int // each new dialog has another
	Loading bool
	Preview action.Preview
}

// Progress is an action after its confirmation.
type Progress struct {
	Title  report.Text
	Phase  Phase
	Until  time.Time     // cluster time at which it is proved, while Holding
	Lines  []report.Line // predicted beside actual, then the proof
	Failed report.Text
}

// Phase is how far an applied action is.
type Phase string

// The phases. Holding: the recovery holds, the proof time is running.
const (
	Applying  Phase = "Applying"
	Verifying Phase = "Verifying"
	Holding   Phase = "Holding"
	Verified  Phase = "Verified"
	Failed    Phase = "Failed"
)

// Said is one answer to the operator.
type Said struct {
	At   time.Time
	Bad  bool
	Text report.Text
}
