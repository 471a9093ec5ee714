package runbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Guide walks one runbook for one workload. It changes only through its methods;
// each returns the events that the journal must keep, and Replay of those events
// leads a new guide to the same place. It is not safe for concurrent use.
type Guide struct {
	book    *Book
	target  report.WorkloadKey
	values  Values
	filled  map[string]report.Text // templates filled in with values
	facts   Facts
	current int
	trail   []int // the steps that led here, the latest last
	steps   []place
}

// place is what the guide remembers of one step.
type place struct {
	visited  bool
	skipped  report.Text
	result   *report.Result
	seenAt   report.Time
	left     Digest  // what it showed when the operator left it
	kept     *Digest // what the journal has of it
	keptAt   report.Time
	observed Digest
}

// keepEvery is how often the journal keeps a result in which only counts
// changed, in cluster time: a falling node a second is one entry in ten seconds.
const keepEvery = 10 * time.Second

// New returns a guide that stands at the first step, which is not entered yet.
func New(book *Book, target report.WorkloadKey, values Values) *Guide {
	return &Guide{book: book, target: target, values: values, filled: map[string]report.Text{}, steps: make([]place, len(book.Steps))}
}

// SetValues replaces the names that commands are filled in with.
func (g *Guide) SetValues(v Values) {
	if v != g.values {
		g.values, g.filled = v, map[string]report.Text{}
	}
}

// Target is the workload that the guide is about.
func (g *Guide) Target() report.WorkloadKey { return g.target }

// Book is the runbook that is being walked.
func (g *Guide) Book() *Book { return g.book }

// Current is the id of the step that is open.
func (g *Guide) Current() string { return g.book.Steps[g.current].ID }

// Know takes the facts that the branches ask for. It returns an event where a
// conclusion changed.
func (g *Guide) Know(f Facts, at report.Time) []Event {
	changes := g.facts.changes(f)
	attributed := g.facts.Verdict.Attribution != f.Verdict.Attribution
	g.facts = f
	if len(changes) == 0 {
		return nil
	}
	text := report.Clean(strings.Join(changes, "; "))
	if attributed && f.Verdict.Summary != "" {
		text += ". " + f.Verdict.Summary
	}
	return []Event{{Kind: VerdictChanged, Text: text, Facts: &f, At: moment(at)}}
}

// Observe takes what a step's probe shows now, whether the step is open, passed or
// still ahead: a step keeps watching. It returns an event where the result says
// something new. A step that is not in the runbook is ignored.
func (g *Guide) Observe(step string, r report.Result, at report.Time) []Event {
	i := g.book.step(step)
	if i < 0 {
		return nil
	}
	p := &g.steps[i]
	p.result, p.seenAt, p.observed = &r, at, digest(r)
	if p.kept != nil {
		if p.kept.same(p.observed) {
			return nil
		}
		if p.kept.alike(p.observed) && at.Sub(p.keptAt.Time) < keepEvery {
			return nil
		}
	}
	d := p.observed
	news := stateName(d.State)
	switch {
	case p.kept != nil:
		news = string(p.kept.changes(d))
	case len(r.Lines) > 0:
		news += ": " + string(r.Lines[0].Text)
	case d.Reason != "":
		news += ": " + string(d.Reason)
	}
	text := report.Textf("%s %s", g.book.Steps[i].Title, news)
	p.kept, p.keptAt = &d, at
	return []Event{{Kind: StepResult, Step: step, Text: text, Result: kept(r), Digest: &d, At: moment(at)}}
}

// Enter opens the step that the guide stands at. Only the first time is an event.
func (g *Guide) Enter() []Event {
	if g.steps[g.current].visited {
		return nil
	}
	return []Event{g.move(g.current, Entered)}
}

// Next opens the step that follows by what was found; at the end nothing happens.
func (g *Guide) Next() []Event {
	if i := g.following(); i >= 0 {
		return []Event{g.move(i, Onward)}
	}
	return nil
}

// Previous opens the step that the operator came from, or the one above where
// there is none; at the top nothing happens.
func (g *Guide) Previous() []Event {
	switch {
	case len(g.trail) > 0:
		return []Event{g.move(g.trail[len(g.trail)-1], Back)}
	case g.current > 0:
		return []Event{g.move(g.current-1, Back)}
	}
	return nil
}

// GoTo opens any step.
func (g *Guide) GoTo(step string) ([]Event, error) {
	i := g.book.step(step)
	if i < 0 {
		return nil, fmt.Errorf("runbook %s has no step %q", g.book.ID, step)
	}
	if i == g.current && g.steps[i].visited {
		return nil, nil
	}
	return []Event{g.move(i, Jump)}, nil
}

// Skip passes the open step and says why; then it goes on as Next does.
func (g *Guide) Skip(why string) []Event {
	reason := report.Clean(strings.TrimSpace(why))
	if reason == "" {
		reason = "no reason given"
	}
	g.steps[g.current].skipped = reason
	events := []Event{{Kind: StepSkipped, Step: g.Current(), Why: reason,
		Text: report.Textf("skipped %q: %s", g.book.Steps[g.current].Title, reason)}}
	return append(events, g.Next()...)
}

// move leaves the open step and opens another.
func (g *Guide) move(to int, how Move) Event {
	from := &g.steps[g.current]
	from.left = from.observed
	switch how {
	case Back:
		if len(g.trail) > 0 {
			g.trail = g.trail[:len(g.trail)-1]
		}
	case Onward, Jump:
		g.trail = append(g.trail, g.current)
	}
	g.current = to
	s := g.book.Steps[to]
	g.steps[to].visited, g.steps[to].skipped = true, ""
	return Event{Kind: StepEntered, Step: s.ID, Move: how, Text: report.Textf("step %d of %d: %s", to+1, len(g.book.Steps), s.Title)}
}

// following is the index of the step that follows by what was found, -1 at the end.
func (g *Guide) following() int {
	s := &g.book.Steps[g.current]
	sf := StepFacts{State: g.answer(g.current), Codes: g.steps[g.current].observed.codes(), States: map[string]report.StepState{}}
	for i := range g.book.Steps {
		sf.States[g.book.Steps[i].ID] = g.answer(i)
	}
	for i := range s.Next {
		if s.Next[i].when.holds(g.facts, sf) {
			return g.book.step(s.Next[i].Go)
		}
	}
	if g.current+1 < len(g.book.Steps) {
		return g.current + 1
	}
	return -1
}

// answer is what the step's probe said, without the operator's part of it.
func (g *Guide) answer(i int) report.StepState {
	switch p := &g.steps[i]; {
	case p.skipped != "":
		return report.StepSkipped
	case p.result != nil:
		return p.result.State
	case i == g.current && p.visited:
		return report.StepLooking
	}
	return report.StepNotYet
}

// changed says what a step that was passed shows since the operator left it.
func (g *Guide) changed(i int) report.Text {
	p := &g.steps[i]
	if i == g.current || !p.visited || p.result == nil {
		return ""
	}
	if p.left.State == "" && p.observed.State == report.StepOK {
		return "" // it was left before it had answered, and nothing is wrong
	}
	return p.left.changes(p.observed)
}

// Replay walks the guide along the events of a journal. It returns those that do
// not fit the runbook any more, which a newer version of the program can cause.
func (g *Guide) Replay(events []Event) (unfit []Event) {
	for _, e := range events {
		if e.Kind == VerdictChanged {
			if e.Facts != nil {
				g.facts = *e.Facts
			}
			continue
		}
		i := g.book.step(e.Step)
		if i < 0 || !g.replayStep(i, e) {
			unfit = append(unfit, e)
		}
	}
	return unfit
}

func (g *Guide) replayStep(i int, e Event) bool {
	p := &g.steps[i]
	switch e.Kind {
	case StepEntered:
		if !slices.Contains([]Move{Entered, Onward, Back, Jump}, e.Move) {
			return false
		}
		g.move(i, e.Move)
	case StepSkipped:
		p.skipped = e.Why
	case StepResult:
		if e.Result == nil || e.Digest == nil {
			return false
		}
		d := *e.Digest
		p.result, p.observed, p.kept = e.Result, d, &d
		if e.At != nil {
			p.seenAt, p.keptAt = *e.At, *e.At
		}
	default:
		return false
	}
	return true
}

func moment(at report.Time) *report.Time { return report.At(at.Time) }
