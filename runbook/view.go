package runbook

import "github.com/rollcall-k8s/rollcall/probes/report"

// View is a runbook being walked, as a screen or the notes need it: a copy that
// nobody changes.
type View struct {
	ID      string
	Title   report.Text
	Target  report.WorkloadKey
	Current int // index into Steps
	Steps   []StepView
}

// StepView is one step with its texts filled in and what its probe last showed.
type StepView struct {
	ID       string
	Number   int // from 1
	Title    report.Text
	Why      report.Text
	Read     report.Text
	Trap     report.Text
	Commands []report.Text // with the incident's real names
	Actions  []string      // kinds of runbook/action that fit here
	Visited  bool
	Skipped  report.Text // why, "" where it was not skipped
	State    report.StepState
	Result   report.Result
	SeenAt   *report.Time // cluster time of Result
	Changed  report.Text  // what changed since the operator left the step, ""
	Next     string       // the step that follows by what was found, "" at the end
}
