package incident

import (
	"encoding/json"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// Kinds of entries that only the loop writes, besides those of package session.
const (
	WorkloadOpened session.Kind = "WorkloadOpened" // data: OpenWorkload
	WorkloadClosed session.Kind = "WorkloadClosed"
	// ProofChanged: an action that was applied begins to hold, or stops holding.
	ProofChanged session.Kind = "ProofChanged" // data: the action
	// RecoveryChanged: how the proof stands that the workload's nodes are well again.
	RecoveryChanged session.Kind = "Recovery" // data: recovering
)

// Journal keeps what happened: *session.Journal.
type Journal interface {
	Append(session.Entry) error
	Path() string
}

type (
	// walked is an event of a guide with the walk that it belongs to.
	walked struct {
		runbook.Event
		Workload report.WorkloadKey `json:"workload"`
		Runbook  string             `json:"runbook"`
	}
	// judged is a change of the incident's verdict.
	judged struct {
		runbook.Event
		Verdict verdictMark `json:"incident"`
	}
	// acted is an action with what resuming and the way back need.
	acted struct {
		session.Action
		Request action.Request  `json:"request"`
		Before  json.RawMessage `json:"before,omitempty"`
		After   json.RawMessage `json:"after,omitempty"`
	}
	recovering struct {
		Workload report.WorkloadKey `json:"workload"`
		Phase    Phase              `json:"phase"`
		Lines    []string           `json:"lines"`
	}
)

// keep appends an entry to the journal. A journal that cannot be written keeps
// nobody from mending a cluster: it is said once, and every state has it.
func (l *Loop) keep(k session.Kind, text report.Text, data any) {
	if l.cfg.Journal == nil {
		return
	}
	e := session.Entry{Wall: l.cfg.Clock.Now(), Kind: k, Text: string(text)}
	if l.snap != nil {
		at := l.snap.AsOf
		e.Cluster = &at
	}
	if l.open != nil {
		e.Step = l.open.Current()
	}
	if data != nil {
		e.Data = session.Data(data)
	}
	before := l.trouble
	l.trouble = ""
	if err := l.cfg.Journal.Append(e); err != nil {
		l.trouble = report.Textf("%v", err)
		if before == "" {
			l.refuse("%s", l.trouble)
		}
	}
}

// started is what the session is about.
func (l *Loop) started() session.Started {
	id := l.cfg.Identity
	s := session.Started{Context: string(id.Context), Server: string(id.Server), User: string(id.User), Version: string(id.Version),
		Program: l.cfg.Program, ReadOnly: id.ReadOnly}
	if id.Practice {
		s.Practice = string(id.Incident)
	}
	return s
}

// End writes that the session is over. Run does it by itself.
func (l *Loop) End() { l.keep(session.SessionEnded, "session ended", nil) }

// entry makes the journal's form of an action.
func entry(id int, p action.Preview) acted {
	return acted{
		Action: session.Action{
			ID: id, Kind: string(p.Kind), Title: string(p.Title),
			Object:  p.Object.Kind + "/" + p.Object.Namespace + "/" + p.Object.Name,
			Kubectl: string(p.Kubectl), Reverse: string(p.Reverse), GiveBack: texts(p.GiveBack),
			Diff: texts(p.Diff), Effect: texts(p.Prediction.Summary),
			Lasting: p.Kind == action.Freeze, PutBack: p.Kind == action.Unfreeze,
		},
		Request: p.Request, Before: p.Before, After: p.After,
	}
}

func texts(in []report.Text) []string {
	var out []string
	for _, t := range in {
		out = append(out, string(t))
	}
	return out
}

func lineTexts(in []report.Line) []string {
	var out []string
	for _, l := range in {
		out = append(out, string(l.Text))
	}
	return out
}
