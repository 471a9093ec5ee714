// Package action changes a cluster, one confirmed step at a time: plan, preview,
// confirm, apply, verify. Nothing here knows a terminal or client-go; a cluster is
// reached through API.
package action

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Kind names an action. The names are shared by runbooks, journal, notes and the
// recommendations of a report.
type Kind string

// The actions.
const (
	Freeze    Kind = "SwitchToOnDelete"
	Unfreeze  Kind = "SwitchToRollingUpdate"
	RollBack  Kind = "RollBack"
	DeletePod Kind = "DeletePod"
)

// Request is what the operator asks for. ToRevision belongs to RollBack, Pod to
// DeletePod, Strategy to Unfreeze: the updateStrategy from before the freeze, as
// JSON, for the case that its rolling update settings are gone from the object.
type Request struct {
	Kind       Kind               `json:"kind"`
	Workload   report.WorkloadKey `json:"workload"`
	ToRevision int64              `json:"toRevision,omitempty"`
	Pod        string             `json:"pod,omitempty"`
	Strategy   string             `json:"strategy,omitempty"`
}

// Ref names one object and its resource.
type Ref struct {
	Group, Version, Resource, Kind string
	Namespace, Name                string
}

// Object is an object as the API server sent it.
type Object struct {
	UID        string
	Generation int64
	Raw        json.RawMessage
}

// PatchType is a patch's content type.
type PatchType string

// JSONPatch is RFC 6902, the only kind that can carry preconditions as `test` operations.
const JSONPatch PatchType = "application/json-patch+json"

// API is the little of an API server that actions need. Every error is one of
// those below, wrapped, or a plain failure.
type API interface {
	Get(ctx context.Context, ref Ref) (Object, error)
	// Patch sends the patch; with dryRun it is validated by the server and not stored.
	Patch(ctx context.Context, ref Ref, t PatchType, patch []byte, dryRun bool) (Object, error)
	// Delete deletes the object only while it has that UID.
	Delete(ctx context.Context, ref Ref, uid string, dryRun bool) error
	// CanI asks the API server whether the operator may do it; reason may be "".
	CanI(ctx context.Context, verb string, ref Ref) (allowed bool, reason string, err error)
}

// Errors that an API tells apart.
var (
	ErrReadOnly    = errors.New("this session is read-only")
	ErrForbidden   = errors.New("not permitted")
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("the object has changed meanwhile")
	ErrUnreachable = errors.New("the API server cannot be reached")
)

// Grade is how an action is confirmed.
type Grade string

// Key takes one `y` after the keyboard was quiet; Typed takes the object's name.
const (
	Key   Grade = "key"
	Typed Grade = "typed"
)

// Plan is an action worked out on the object as it is now.
type Plan struct {
	Request
	Title      report.Text // "Roll back DaemonSet calico-node, revision 7 → 6"
	Object     Ref
	UID        string
	Generation int64 // 0 for a Pod
	PatchType  PatchType
	Patch      json.RawMessage // nil for a deletion
	Kubectl    report.Text     // the equivalent command
	Reverse    report.Text     // the command that undoes it, or why nothing does
	Grade      Grade
	Word       report.Text // what is typed to confirm, for Typed
	Node       string      // where the Pod runs, for DeletePod
	// Before and After are what changes, small enough for a journal and free of
	// values that may be secret: an updateStrategy verbatim, a revision, a Pod.
	Before json.RawMessage
	After  json.RawMessage
}

// DryRun says what the API server answered to the change without storing it.
type DryRun string

// The answers.
const (
	DryRunAccepted DryRun = "accepted"
	DryRunRefused  DryRun = "refused"
	DryRunNotSent  DryRun = "not sent" // read-only: a dry run is a write to the audit log
	DryRunFailed   DryRun = "failed"
)

// Preview is a plan with what it will do, before anything is confirmed.
type Preview struct {
	Plan
	DryRun        DryRun
	DryRunWhy     report.Text
	Permission    *bool // nil where it could not be asked
	PermissionWhy report.Text
	Diff          []report.Text // lines that begin with "- ", "+ " or "  "
	Prediction    Prediction
	WatchOut      []report.Text
	// GiveBack is what else must be put back when it is over, besides Reverse: owners
	// that were suspended for it.
	GiveBack []report.Text
	// Blocked says why it cannot be applied, "" where it can.
	Blocked report.Text
}

// Prediction is the effect by node.
type Prediction struct {
	Now        []report.Text // replaced as soon as it is applied
	Then       []report.Text // wait for the budget
	OutOfReach []report.Text // the API cannot act on these nodes
	NeverBack  []report.Text // nodes that lose their Pod, or have none, and get none
	Untouched  int
	Summary    []report.Text // "NOW 0 Pods, frozen: nothing moves until you delete one"
	Unknown    []report.Text // what is not known of the effect
}

// Outcome is what came of an apply.
type Outcome struct {
	Plan   Plan
	Err    report.Text     // "" where the API server accepted it
	Before json.RawMessage // what is needed to put it back: the plan's
	After  json.RawMessage
}
