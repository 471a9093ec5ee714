package runbook

import (
	"slices"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

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
	Probe    string
	Number   int // from 1
	Title    report.Text
	Why      report.Text
	Read     report.Text
	Trap     report.Text
	Commands []report.Text // with the incident's real names
	Says     []report.Text // what each of Commands shows or does
	// Unanswered are the parts of the question that no probe looks at. They
	// stand in Result.Lines and their commands in Commands too.
	Unanswered []UnansweredView
	Actions    []string // kinds of runbook/action that fit here
	Visited    bool
	Skipped    report.Text // why, "" where it was not skipped
	State      report.StepState
	Result     report.Result
	SeenAt     *report.Time // cluster time of Result
	Changed    report.Text  // what changed since the operator left the step, ""
	Next       string       // the step that follows by what was found, "" at the end
}

// UnansweredView is a question of a step that only the operator can answer.
type UnansweredView struct {
	Ask, Because report.Text
	By           string // what answers it once it was read on request, "" for nothing
	Commands     []report.Text
}

// View is the walk as it stands now, a copy that stays as it is.
func (g *Guide) View() View {
	v := View{ID: g.book.ID, Title: report.Clean(g.book.Title), Target: g.target, Current: g.current}
	next := ""
	if i := g.following(); i >= 0 {
		next = g.book.Steps[i].ID
	}
	for i := range g.book.Steps {
		v.Steps = append(v.Steps, g.stepView(i))
	}
	// Where the other steps lead is asked when they are open.
	for i := range v.Steps {
		switch {
		case i == g.current:
			v.Steps[i].Next = next
		case i+1 < len(v.Steps):
			v.Steps[i].Next = v.Steps[i+1].ID
		}
	}
	return v
}

func (g *Guide) stepView(i int) StepView {
	s, p := &g.book.Steps[i], &g.steps[i]
	v := StepView{
		ID: s.ID, Probe: s.Probe, Number: i + 1, Title: report.Clean(s.Title), Why: report.Clean(s.Why), Read: report.Clean(s.Read), Trap: report.Clean(s.Trap),
		Actions: slices.Clone(s.Actions), Visited: p.visited, Skipped: p.skipped, State: g.answer(i), Changed: g.changed(i),
	}
	if p.result != nil {
		for _, c := range p.result.Commands {
			v.Commands, v.Says = append(v.Commands, c.Run), append(v.Says, c.Says)
		}
		v.Result = *p.result
		v.Result.Lines = slices.Clone(p.result.Lines)
		v.Result.Findings = slices.Clone(p.result.Findings)
		v.SeenAt = moment(p.seenAt)
	}
	run, says := g.commands(s.Commands)
	v.Commands, v.Says = append(v.Commands, run...), append(v.Says, says...)
	for _, u := range s.Unanswered {
		run, says := g.commands(u.Commands)
		if u.By == "" || !slices.Contains(v.Result.Answered, u.By) {
			v.Unanswered = append(v.Unanswered, UnansweredView{Ask: report.Clean(u.Ask), Because: report.Clean(u.Because), By: u.By, Commands: run})
		}
		v.Commands, v.Says = append(v.Commands, run...), append(v.Says, says...)
	}
	g.openQuestions(&v)
	return v
}

// openQuestions keeps a step from looking fine while a part of its question was
// not looked at: what nobody asked is not answered.
func (g *Guide) openQuestions(v *StepView) {
	if len(v.Unanswered) == 0 || v.SeenAt == nil {
		return
	}
	for _, u := range v.Unanswered {
		v.Result.Lines = append(v.Result.Lines, report.Line{State: report.StepUnknown, Text: report.Textf("%s Not looked at: %s", u.Ask, u.Because)})
	}
	if v.State == report.StepOK {
		v.State, v.Result.State = report.StepUnknown, report.StepUnknown
		v.Result.Reason = report.Textf("what was looked at is fine; for the rest run the commands: %s", v.Unanswered[0].Ask)
	}
}

func (g *Guide) commands(cs []Command) (run, says []report.Text) {
	for _, c := range cs {
		if slices.ContainsFunc(c.Needs, func(n string) bool { known, _ := g.values.known(n); return !known }) {
			continue
		}
		run, says = append(run, g.fill(c.Run)), append(says, g.fill(c.Says))
	}
	return run, says
}

// fill fills in a template, once for the same values: a view is asked for with
// every snapshot.
func (g *Guide) fill(template string) report.Text {
	if text, ok := g.filled[template]; ok {
		return text
	}
	text, err := fill(template, g.values)
	if err != nil { // cannot be: Parse has executed every template
		text = report.Textf("(not filled in: %v)", err)
	}
	g.filled[template] = text
	return text
}
