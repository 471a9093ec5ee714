package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Practice is a practice cluster on a virtual clock.
type Practice interface {
	Now() time.Time
	// Step lets the cluster live until that moment.
	Step(to time.Time) error
	// Settle waits until the picture has everything that happened up to now. It
	// must be called after every Step.
	Settle(ctx context.Context) (*cluster.Snapshot, error)
}

// Lesson is what an incident is there to teach: its run counts as diagnosed when
// the report says just that.
type Lesson struct {
	Incident    string
	Seed        int64
	Attribution report.Attribution
	Workload    report.WorkloadKey // zero where no workload is to blame
}

// Auto plays an incident to its end without a person: it waits until four nodes
// have fallen, walks the runbook, carries out what the report recommends, each
// action previewed and confirmed as a person would, and proves the recovery.
// Nothing it prints depends on the wall clock, so that two runs with one seed are
// the same.
type Auto struct {
	Practice Practice
	Loop     *incident.Loop
	Lesson   Lesson
	// Notes renders the incident notes as Markdown; nil prints none.
	Notes func() (string, error)
	// Format is "text", or "json" for the report alone, as it stood before the
	// first action.
	Format string
	Out    io.Writer

	state   *incident.State
	snap    *cluster.Snapshot
	healthy map[string]bool // nodes that were seen Ready
	printer
}

// ErrNotMastered says that an incident was not diagnosed, or not recovered from.
var ErrNotMastered = errors.New("the incident was not mastered")

// How long --auto waits, in virtual time.
const (
	tick       = time.Second
	slowTick   = 5 * time.Second  // while a proof runs: shorter than a kubelet's status period
	begin      = 4                // nodes down before it looks
	untilCalm  = 5 * time.Minute  // before it believes that no node will fall
	untilBegin = 30 * time.Minute // for those nodes, or a verdict without them
	untilSure  = 10 * time.Minute // for a verdict of at least medium after that
	untilHolds = 10 * time.Minute // for one action to show its effect
	untilWell  = 30 * time.Minute // for the whole recovery
)

// Run plays the incident. The error is ErrNotMastered, wrapped with the reason,
// where it was played to its end and the end is not good.
func (a *Auto) Run(ctx context.Context) error {
	if a.Format != string(Text) && a.Format != string(JSON) {
		return fmt.Errorf("unknown output format %q; use text or json", a.Format)
	}
	a.healthy = map[string]bool{}
	a.printer.w = a.Out
	if a.Format == string(JSON) {
		a.printer.w = io.Discard
	}
	err := a.play(ctx)
	if a.printer.err != nil {
		return a.printer.err
	}
	return err
}

func (a *Auto) play(ctx context.Context) error {
	a.heading("Practice: %s, seed %d", a.Lesson.Incident, a.Lesson.Seed)
	if err := a.waitForTrouble(ctx); err != nil {
		return err
	}
	key, ok := worstWorkload(a.state.Report)
	if !ok {
		a.verdict(a.state.Report)
		if err := a.printReport(a.state.Report); err != nil {
			return err
		}
		return a.end(a.diagnosed(a.state.Report), fmt.Errorf("%w: no workload is to blame", errNotOurs))
	}
	a.do(ctx, incident.OpenWorkload{Workload: key})
	if a.state.Guide == nil {
		return fmt.Errorf("no checklist for %s: %s", key, a.saidText())
	}
	if err := a.waitForVerdict(ctx, key); err != nil {
		return err
	}
	before := a.state.Report
	a.verdict(before)
	if err := a.printReport(before); err != nil {
		return err
	}
	mend := mendingStep(a.state)
	steps := len(a.state.Guide.Steps)
	for i := range mend + 1 {
		a.walk(ctx, i)
	}
	undiagnosed := a.diagnosed(before)
	unrecovered := a.mend(ctx, key, before)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i := mend + 1; i < steps; i++ {
		a.walk(ctx, i)
	}
	return a.end(undiagnosed, unrecovered)
}

// end prints what is left and the notes, and judges.
func (a *Auto) end(undiagnosed, unrecovered error) error {
	a.left(a.state)
	if a.Notes != nil && a.Format == string(Text) {
		notes, err := a.Notes()
		if err != nil {
			return fmt.Errorf("render the incident notes: %w", err)
		}
		a.heading("Incident notes")
		a.line(0, "%s", notes)
	}
	a.heading("Result")
	a.result("diagnosed", undiagnosed)
	if errors.Is(unrecovered, errNotOurs) {
		a.line(1, "%s %v", report.StepNotice.Mark(), unrecovered)
		unrecovered = nil
	} else {
		a.result("recovered", unrecovered)
	}
	switch {
	case undiagnosed != nil:
		return fmt.Errorf("%w: %w", ErrNotMastered, undiagnosed)
	case unrecovered != nil:
		return fmt.Errorf("%w: %w", ErrNotMastered, unrecovered)
	}
	return nil
}

// advance lets the cluster live for a moment and looks.
func (a *Auto) advance(ctx context.Context) error {
	d := tick
	if a.proving() {
		d = slowTick
	}
	if err := a.Practice.Step(a.Practice.Now().Add(d)); err != nil {
		return err
	}
	s, err := a.Practice.Settle(ctx)
	if err != nil {
		return fmt.Errorf("practice cluster: %w", err)
	}
	a.snap = s
	a.state = a.Loop.Observe(s)
	return nil
}

// proving tells whether nothing is awaited but the end of a proof.
func (a *Auto) proving() bool {
	if a.state == nil || a.state.Progress == nil || a.state.Progress.Phase != incident.Holding && a.state.Progress.Phase != incident.Verified {
		return false
	}
	return a.state.Progress.Phase == incident.Holding || a.state.Recovery != nil && a.state.Recovery.Phase == incident.Holding
}

// until advances until the condition holds, or the time is up; then it is false.
func (a *Auto) until(ctx context.Context, most time.Duration, holds func() bool) (bool, error) {
	for end := a.Practice.Now().Add(most); ; {
		if a.state != nil && holds() {
			return true, nil
		}
		if !a.Practice.Now().Before(end) {
			return false, nil
		}
		if err := a.advance(ctx); err != nil {
			return false, err
		}
	}
}

// waitForTrouble waits until four nodes have fallen. An incident in which none
// falls begins when there is something to say with some confidence.
func (a *Auto) waitForTrouble(ctx context.Context) error {
	var fallen []string
	calm := a.Practice.Now().Add(untilCalm)
	ok, err := a.until(ctx, untilBegin, func() bool {
		fallen = a.fallen()
		v := a.state.Report.Verdict
		sure := v.Attribution != report.Healthy && v.Confidence.AtLeast(report.Medium) && len(a.state.Report.Workloads) > 0
		return len(fallen) >= begin || len(fallen) == 0 && sure && !a.Practice.Now().Before(calm)
	})
	if err != nil {
		return err
	}
	switch {
	case len(fallen) >= begin:
		a.line(0, "%s UTC  %d nodes have fallen: %s", a.clock(), len(fallen), join(fallen))
	case ok:
		a.line(0, "%s UTC  no node has fallen", a.clock())
	default:
		a.line(0, "%s UTC  %d nodes have fallen; no more came in %s", a.clock(), len(fallen), untilBegin)
	}
	return nil
}

// fallen are the nodes that are not Ready and were seen Ready before.
func (a *Auto) fallen() []string {
	var out []string
	for _, n := range a.snap.Nodes {
		if cluster.NodeReady(n) {
			a.healthy[n.Name] = true
		} else if a.healthy[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

func (a *Auto) waitForVerdict(ctx context.Context, key report.WorkloadKey) error {
	since := a.Practice.Now()
	_, err := a.until(ctx, untilSure, func() bool { return sure(a.state.Report, key) })
	if waited := a.Practice.Now().Sub(since); err == nil && waited > 0 {
		a.line(0, "%s UTC  waited %s for a verdict of at least medium confidence", a.clock(), waited)
	}
	return err
}

func sure(r *report.Report, key report.WorkloadKey) bool {
	w := r.Workload(key)
	return w != nil && w.Verdict.Confidence.AtLeast(report.Medium)
}

func (a *Auto) printReport(r *report.Report) error {
	if a.Format != string(JSON) {
		return nil
	}
	return Render(a.Out, r, Options{Format: JSON})
}

// diagnosed holds the report against what the incident teaches.
func (a *Auto) diagnosed(r *report.Report) error {
	v, l := r.Verdict, a.Lesson
	want := l.Workload.String()
	switch {
	case v.Attribution != l.Attribution:
		return fmt.Errorf("the verdict is %s, the incident is %s", v.Attribution, l.Attribution)
	case l.Workload != (report.WorkloadKey{}) && string(v.Workload) != want:
		return fmt.Errorf("the verdict blames %s, the incident is caused by %s", v.Workload, want)
	case !v.Confidence.AtLeast(report.Medium):
		return fmt.Errorf("the confidence is %s, not at least medium", v.Confidence)
	}
	return nil
}

func worstWorkload(r *report.Report) (report.WorkloadKey, bool) {
	if len(r.Workloads) == 0 {
		return report.WorkloadKey{}, false
	}
	return r.Workloads[0].Key(), true
}

// mendingStep is the step whose actions mend, or the last one.
func mendingStep(s *incident.State) int {
	for i, step := range s.Guide.Steps {
		if slices.Contains(step.Actions, string(action.RollBack)) {
			return i
		}
	}
	return len(s.Guide.Steps) - 1
}

// walk opens a step and prints what it shows. Where the step asks for logs, those of
// the first Pod in question are read.
func (a *Auto) walk(ctx context.Context, i int) {
	a.do(ctx, incident.GoToStep{Step: a.state.Guide.Steps[i].ID})
	if len(a.state.Pods) > 0 && slices.ContainsFunc(a.state.Guide.Steps[i].Unanswered, func(u runbook.UnansweredView) bool { return u.By == runbook.AnsweredByLogs }) {
		a.do(ctx, incident.ReadLogs{})
	}
	a.step(a.state.Guide.Steps[i], len(a.state.Guide.Steps))
}

// do passes an intent on, as a key would.
func (a *Auto) do(ctx context.Context, i incident.Intent) { a.state = a.Loop.Handle(ctx, i) }

func (a *Auto) saidText() report.Text {
	if a.state.Said == nil {
		return ""
	}
	return a.state.Said.Text
}

func (a *Auto) clock() string { return a.Practice.Now().UTC().Format("15:04:05") }
