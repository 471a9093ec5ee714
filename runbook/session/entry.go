// Package session is the journal of one incident: an append-only file of JSON
// lines, so that whatever happens to the program, the terminal or the laptop,
// what was seen and done is kept up to the last line. It knows nothing of
// clusters or runbooks: texts come in as strings, and leave what looks secret
// behind on the way.
package session

import (
	"encoding/json"
	"slices"
	"time"
)

// Kind says what an entry tells.
type Kind string

// The kinds of entries.
const (
	SessionStarted     Kind = "SessionStarted"  // data: Started
	SessionResumed     Kind = "SessionResumed"  // data: Started
	SessionEnded       Kind = "SessionEnded"    //
	StepEntered        Kind = "StepEntered"     // data: the guide's event
	StepResult         Kind = "StepResult"      // data: the guide's event
	StepSkipped        Kind = "StepSkipped"     // data: the guide's event
	VerdictChanged     Kind = "VerdictChanged"  // data: the guide's event
	Note               Kind = "Note"            // text: the note
	ActionPreviewed    Kind = "ActionPreviewed" // data: Action
	ActionConfirmed    Kind = "ActionConfirmed" // data: Action; written before the request is sent
	ActionApplied      Kind = "ActionApplied"   // data: Action; the API server accepted it
	ActionFailed       Kind = "ActionFailed"    // data: Action
	ActionVerified     Kind = "ActionVerified"  // data: Action; its effect holds
	CommandCopied      Kind = "CommandCopied"   // text: the command; data: Held where it holds an owner or gives it back
	EvidenceRead       Kind = "EvidenceRead"    // data: what a log or a console said, its telling lines only
	NotesWritten       Kind = "NotesWritten"    // text: where
	ConnectionLost     Kind = "ConnectionLost"
	ConnectionRestored Kind = "ConnectionRestored"
)

// Entry is one line of a journal.
type Entry struct {
	// Seq counts the entries of a journal from 1. Append sets it.
	Seq int `json:"seq"`
	// Wall is this machine's clock, Cluster the API server's, nil where it is not known.
	Wall    time.Time       `json:"wall"`
	Cluster *time.Time      `json:"cluster,omitempty"`
	Kind    Kind            `json:"kind"`
	Step    string          `json:"step,omitempty"` // id of the runbook's step
	Text    string          `json:"text,omitempty"` // one line for people
	Data    json.RawMessage `json:"data,omitempty"`
}

// At is the cluster's time of the entry, or this machine's where that is unknown.
func (e Entry) At() time.Time {
	if e.Cluster != nil {
		return *e.Cluster
	}
	return e.Wall
}

// Decode reads the entry's data into v.
func (e Entry) Decode(v any) error { return json.Unmarshal(e.Data, v) }

// Data makes the data of an entry of any value that JSON can hold.
func Data(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Said in the journal rather than lost: the entry itself must be kept.
		b, _ = json.Marshal(map[string]string{"error": "data not kept: " + err.Error()})
	}
	return b
}

// Started is what a session is about.
type Started struct {
	Context  string `json:"context"`
	Server   string `json:"server,omitempty"`
	User     string `json:"user,omitempty"`
	Version  string `json:"version,omitempty"` // of the API server
	Program  string `json:"program,omitempty"` // version of this program
	Workload string `json:"workload,omitempty"`
	Runbook  string `json:"runbook,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Practice string `json:"practice,omitempty"` // the practice incident
}

// Action is one change of the cluster in the journal. ID joins the entries of one
// action: preview, confirmation, outcome, proof.
type Action struct {
	ID      int    `json:"id"`
	Kind    string `json:"kind"`
	Title   string `json:"title"`
	Object  string `json:"object"`            // "DaemonSet/kube-system/calico-node"
	Kubectl string `json:"kubectl,omitempty"` // the equivalent command
	Reverse string `json:"reverse,omitempty"` // how it is undone
	// GiveBack is what else must be put back: owners that were suspended for it.
	GiveBack []string `json:"giveBack,omitempty"`
	Diff     []string `json:"diff,omitempty"`   // "- " before, "+ " after
	Effect   []string `json:"effect,omitempty"` // predicted, afterwards observed
	Error    string   `json:"error,omitempty"`
	// Lasting says that the change is meant to be put back later, such as a
	// freeze, and PutBack that this action puts such a change back.
	Lasting bool `json:"lasting,omitempty"`
	PutBack bool `json:"putBack,omitempty"`
}

// Held tells that a command was copied that keeps an owner of a workload from putting
// its own template back, or gives it back. Whether it was run is not known.
type Held struct {
	Owner    string `json:"owner"`    // "Flux Kustomization infra/cni"
	GiveBack string `json:"giveBack"` // the command that does
	Returned bool   `json:"returned,omitempty"`
}

// HeldOwners are the owners of whom the last command that was copied holds them, in
// the order in which they were held.
func HeldOwners(entries []Entry) []Held {
	var out []Held
	for _, e := range entries {
		var h Held
		if e.Kind == CommandCopied && len(e.Data) > 0 && e.Decode(&h) == nil && h.Owner != "" {
			out = h.Update(out)
		}
	}
	return out
}

// Update is the list of owners that are held, after this one was held or given back.
func (h Held) Update(list []Held) []Held {
	list = slices.DeleteFunc(list, func(o Held) bool { return o.Owner == h.Owner })
	if h.Returned {
		return list
	}
	return append(list, h)
}

// Unfinished lists the confirmed actions of which no outcome was written: the
// program ended between the request and the answer, and whether the change took
// effect is not known.
func Unfinished(entries []Entry) []Entry {
	var open []Entry
	for _, e := range entries {
		var a, b Action
		switch e.Kind {
		case ActionConfirmed:
			open = append(open, e)
		case ActionApplied, ActionFailed, ActionVerified:
			if e.Decode(&a) != nil {
				continue
			}
			for i := len(open) - 1; i >= 0; i-- {
				if open[i].Decode(&b) == nil && a.ID == b.ID {
					open = append(open[:i], open[i+1:]...)
					break
				}
			}
		}
	}
	return open
}
