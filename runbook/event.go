package runbook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// EventKind says what happened to a guide. The names are those of the journal.
type EventKind string

// The kinds of events.
const (
	StepEntered    EventKind = "StepEntered"
	StepResult     EventKind = "StepResult"
	StepSkipped    EventKind = "StepSkipped"
	VerdictChanged EventKind = "VerdictChanged"
)

// Event is one change of a guide, as the journal keeps it: enough to walk a new
// guide to the same place.
type Event struct {
	Kind EventKind   `json:"kind"`
	Step string      `json:"step,omitempty"`
	Text report.Text `json:"text"` // for people: one line
	// Move tells how StepEntered came about; for StepSkipped see Why.
	Move Move        `json:"move,omitempty"`
	Why  report.Text `json:"why,omitempty"`
	// Result is what the step showed, without its timeline and with at most
	// maxKept findings and lines; Digest describes all of it.
	Result *report.Result `json:"result,omitempty"`
	Digest *Digest        `json:"digest,omitempty"`
	At     *report.Time   `json:"at,omitempty"` // cluster time
	Facts  *Facts         `json:"facts,omitempty"`
}

// Move is how a step was entered.
type Move string

// The moves.
const (
	Entered Move = "enter"
	Onward  Move = "next"
	Back    Move = "previous"
	Jump    Move = "goto"
)

// maxKept bounds what one journal entry keeps of a result: an outage of hundreds
// of nodes must not fill the disk it is journalled to.
const maxKept = 50

// Digest is what a result says, without ages and names: two results with the same
// digest tell the operator the same.
type Digest struct {
	State  report.StepState    `json:"state"`
	Reason report.Text         `json:"reason,omitempty"`
	Codes  map[report.Code]int `json:"codes,omitempty"` // how often each was found
}

func digest(r report.Result) Digest {
	d := Digest{State: r.State, Reason: r.Reason}
	for _, f := range r.Findings {
		if d.Codes == nil {
			d.Codes = map[report.Code]int{}
		}
		d.Codes[f.Code]++
	}
	return d
}

// same tells whether nothing changed.
func (d Digest) same(e Digest) bool {
	return d.State == e.State && d.Reason == e.Reason && maps.Equal(d.Codes, e.Codes)
}

// alike tells whether nothing but counts and the wording of the reason changed.
func (d Digest) alike(e Digest) bool {
	return d.State == e.State && slices.Equal(d.codes(), e.codes())
}

func (d Digest) codes() []report.Code { return slices.Sorted(maps.Keys(d.Codes)) }

// changes says in words how e differs from d, "" where it does not.
func (d Digest) changes(e Digest) report.Text {
	var out []string
	if d.State != e.State {
		out = append(out, fmt.Sprintf("%s → %s", stateName(d.State), stateName(e.State)))
	}
	for _, c := range slices.Sorted(maps.Keys(union(d.Codes, e.Codes))) {
		switch before, now := d.Codes[c], e.Codes[c]; {
		case before == now:
		case before == 0:
			out = append(out, "new: "+counted(c, now))
		case now == 0:
			out = append(out, "gone: "+counted(c, before))
		default:
			out = append(out, fmt.Sprintf("%s: %d → %d", c, before, now))
		}
	}
	if len(out) == 0 && d.Reason != e.Reason {
		out = append(out, orNone(string(e.Reason)))
	}
	return report.Clean(strings.Join(out, "; "))
}

func union(a, b map[report.Code]int) map[report.Code]int {
	m := maps.Clone(a)
	if m == nil {
		m = map[report.Code]int{}
	}
	maps.Copy(m, b)
	return m
}

func counted(c report.Code, n int) string {
	if n == 1 {
		return string(c)
	}
	return fmt.Sprintf("%s ×%d", c, n)
}

// stateName is a state as the operator reads it.
func stateName(s report.StepState) string {
	switch s {
	case report.StepLooking:
		return "looking"
	case report.StepOK:
		return "nothing wrong"
	case report.StepNotice:
		return "worth knowing"
	case report.StepAnomaly:
		return "anomaly"
	case report.StepSkipped:
		return "skipped"
	case report.StepUnknown:
		return "could not look"
	}
	return "not yet"
}

// kept is the part of a result that the journal keeps.
func kept(r report.Result) *report.Result {
	r.Timeline = nil
	r.Findings = slices.Clone(r.Findings[:min(len(r.Findings), maxKept)])
	r.Lines = slices.Clone(r.Lines[:min(len(r.Lines), maxKept)])
	return &r
}
