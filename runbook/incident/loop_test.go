package incident

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

func TestFreezeFromTriageTakesTheWorstSpreadingWorkload(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.handle(Act{action.Request{Kind: action.Freeze}})
	if st.Dialog == nil || st.Dialog.Preview.Workload != agent || st.Dialog.Preview.Grade != action.Key {
		t.Fatalf("dialog %+v, said %q", st.Dialog, said(st))
	}
	x.api.before = func(_ context.Context, call string) {
		if call == "patch" && !x.journal.has(session.ActionPreviewed, session.ActionConfirmed) {
			t.Errorf("the request is sent before its intention is in the journal: %v", x.journal.kinds())
		}
	}
	st = x.handle(Confirm{Dialog: st.Dialog.ID})
	if x.w.ds.Spec.UpdateStrategy.Type != "OnDelete" || st.Dialog != nil || len(st.Done) != 1 {
		t.Errorf("strategy %s, dialog %v, done %q, said %q", x.w.ds.Spec.UpdateStrategy.Type, st.Dialog, st.Done, said(st))
	}
	if !x.journal.has(session.SessionStarted, session.ActionConfirmed, session.ActionApplied) {
		t.Errorf("journal %v", x.journal.kinds())
	}
	if st = x.after(time.Second); len(st.Left) != 1 || !strings.Contains(string(st.Left[0]), "is still frozen (OnDelete)") {
		t.Errorf("left: %q", st.Left)
	}
}

func TestFreezeFromTriageWhereNothingSpreadsAsksForTheWorkload(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.w.calm = true
	x.after(0)
	if st := x.handle(Act{action.Request{Kind: action.Freeze}}); st.Dialog != nil || !st.Said.Bad || !strings.Contains(said(st), "nothing is spreading") {
		t.Errorf("dialog %v, said %q", st.Dialog, said(st))
	}
}

func TestRollBackTakesTheRecommendedRevisionAndATypedName(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.handle(Act{action.Request{Kind: action.RollBack, Workload: agent}})
	if st.Dialog == nil || st.Dialog.Preview.ToRevision != 1 || st.Dialog.Preview.Word != "agent" {
		t.Fatalf("dialog %+v, said %q", st.Dialog, said(st))
	}
	for _, typed := range []string{"", "y", "agen", "Agent", "agent "} {
		if st := x.handle(Confirm{Dialog: st.Dialog.ID, Typed: typed}); st.Dialog == nil || !st.Said.Bad || x.w.ds.Generation != 2 {
			t.Errorf("typed %q: generation %d, said %q", typed, x.w.ds.Generation, said(st))
		}
	}
	x.handle(Confirm{Dialog: st.Dialog.ID, Typed: "agent"})
	if got := x.w.ds.Spec.Template.Spec.Containers[0].Image; got != "agent:v1" {
		t.Errorf("image %s", got)
	}
}

func TestWhatIsRefusedChangesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	freeze := Act{action.Request{Kind: action.Freeze, Workload: agent}}
	tests := []struct {
		name string
		bend func(*tester)
		do   func(*tester) *State
		says string
	}{
		{"read-only", func(x *tester) { x.api.fail = map[string]error{"dry run": action.ErrReadOnly} },
			func(x *tester) *State { return x.confirm(freeze.Request) }, "read-only"},
		{"forbidden although the review said yes", func(x *tester) { x.api.fail = map[string]error{"patch": action.ErrForbidden} },
			func(x *tester) *State { return x.confirm(freeze.Request) }, "not permitted"},
		{"a dead API server", func(x *tester) { x.api.fail = map[string]error{"get": action.ErrUnreachable} },
			func(x *tester) *State { return x.handle(freeze) }, "cannot be reached"},
		{"a dialog that is no longer open", nil, func(x *tester) *State { x.handle(freeze); x.handle(Cancel{}); return x.handle(Confirm{Dialog: 1}) }, "no longer open"},
		{"another dialog than the one shown", nil, func(x *tester) *State { x.handle(freeze); x.handle(freeze); return x.handle(Confirm{Dialog: 1}) }, "no longer open"},
		{"no cluster", func(x *tester) { x.loop.cfg.API = nil }, func(x *tester) *State { return x.handle(freeze) }, "no cluster to act on"},
		{"an old picture", func(x *tester) {
			x.w.fresh = map[cluster.Resource]cluster.Freshness{cluster.Nodes: {Broken: "connection refused", Since: epoch}}
			x.after(12 * time.Second)
		}, func(x *tester) *State { return x.handle(freeze) }, "from 10:00:00 UTC and not being updated (connection refused)"},
		{"a picture that became old under the dialog", nil, func(x *tester) *State {
			st := x.handle(freeze)
			x.w.fresh = map[cluster.Resource]cluster.Freshness{cluster.Nodes: {Broken: "connection refused", Since: epoch}}
			x.after(time.Second)
			return x.handle(Confirm{Dialog: st.Dialog.ID})
		}, "not being updated"},
		{"no revision to go back to", nil, func(x *tester) *State {
			return x.handle(Act{action.Request{Kind: action.RollBack, Workload: report.WorkloadKey{Kind: "DaemonSet", Namespace: "a", Name: "b"}}})
		}, "no revision is known to be good"},
		{"no Pod named", nil, func(x *tester) *State { return x.handle(Act{action.Request{Kind: action.DeletePod, Workload: agent}}) }, "name the Pod"},
		{"nothing open", nil, func(x *tester) *State { return x.handle(Act{action.Request{Kind: action.RollBack}}) }, "open the workload"},
		{"an unknown workload", nil, func(x *tester) *State {
			return x.handle(OpenWorkload{Workload: report.WorkloadKey{Kind: "DaemonSet", Namespace: "a", Name: "b"}})
		}, "was not found"},
		{"an unknown runbook", nil, func(x *tester) *State { return x.handle(OpenWorkload{Workload: agent, Runbook: "nope"}) }, `no runbook "nope"`},
		{"a step without a checklist", nil, func(x *tester) *State { return x.handle(NextStep{}) }, "no checklist is open"},
		{"an empty note", nil, func(x *tester) *State { return x.handle(Note{"\x1b[2J"}) }, "empty note"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			x := newTester(t)
			x.after(0)
			if test.bend != nil {
				test.bend(x)
			}
			st := test.do(x)
			if st.Said == nil || !st.Said.Bad || !strings.Contains(said(st), test.says) {
				t.Errorf("said %q, want %q", said(st), test.says)
			}
			if strings.Contains(said(st), "\n") {
				t.Errorf("more than one line: %q", said(st))
			}
			if x.w.ds.Generation != 2 || len(x.w.pods) != 3 || len(st.Done) != 0 {
				t.Errorf("something was changed: generation %d, %d Pods, done %q", x.w.ds.Generation, len(x.w.pods), st.Done)
			}
		})
	}
}

func TestNothingIsDoneBeforeTheFirstPicture(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	if st := x.handle(Act{action.Request{Kind: action.Freeze, Workload: agent}}); st.Dialog != nil || !strings.Contains(said(st), "nothing was read yet") || st.Link.Live {
		t.Errorf("dialog %v, said %q, live %v", st.Dialog, said(st), st.Link.Live)
	}
}

func TestForbiddenIsKeptAsFailed(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.api.fail = map[string]error{"patch": action.ErrForbidden}
	st := x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	if st.Progress == nil || st.Progress.Phase != Failed || st.Progress.Failed == "" || !x.journal.has(session.ActionConfirmed, session.ActionFailed) {
		t.Errorf("progress %+v, journal %v", st.Progress, x.journal.kinds())
	}
}

func TestConflictLeadsBackToThePreview(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.handle(Act{action.Request{Kind: action.RollBack, Workload: agent}})
	id := st.Dialog.ID
	x.w.ds.Generation, x.w.ds.Status.ObservedGeneration = 3, 3 // somebody else was quicker
	st = x.handle(Confirm{Dialog: id, Typed: "agent"})
	if st.Dialog == nil || st.Dialog.ID == id || st.Dialog.Preview.Generation != 3 || !strings.Contains(said(st), "look at the new preview") {
		t.Fatalf("dialog %+v, said %q", st.Dialog, said(st))
	}
	if x.w.ds.Generation != 3 || x.w.ds.Spec.Template.Spec.Containers[0].Image != "agent:v2" {
		t.Errorf("something was changed: generation %d", x.w.ds.Generation)
	}
	x.handle(Confirm{Dialog: st.Dialog.ID, Typed: "agent"})
	if x.w.ds.Spec.Template.Spec.Containers[0].Image != "agent:v1" {
		t.Error("the new preview cannot be confirmed")
	}
}

func TestUnansweredRequestIsWatched(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.api.before = func(_ context.Context, call string) {
		if call == "patch" { // it arrives, its answer does not
			x.w.ds.Spec.UpdateStrategy.Type = "OnDelete"
			x.w.ds.Generation++
		}
	}
	x.api.fail = map[string]error{"patch": action.ErrUnreachable}
	st := x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	if !strings.Contains(said(st), "whether it took effect is not known") {
		t.Errorf("said %q", said(st))
	}
	if st = x.after(time.Second); st.Progress == nil || st.Progress.Phase != Holding || len(st.Left) != 1 {
		t.Errorf("progress %+v, left %q", st.Progress, st.Left)
	}
}

func TestProgressStandsBesideThePrediction(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	if st.Progress.Phase != Verifying || !strings.HasPrefix(string(st.Progress.Lines[0].Text), "expected: NOW 0 Pods") {
		t.Errorf("after the apply: %+v", st.Progress)
	}
	if st = x.after(time.Second); st.Progress.Phase != Holding || !st.Progress.Until.Equal(epoch.Add(101*time.Second)) {
		t.Errorf("when the controller has seen it: %+v", st.Progress)
	}
	if st = x.after(100 * time.Second); st.Progress.Phase != Verified || !x.journal.has(ProofChanged, session.ActionVerified) {
		t.Errorf("after two grace periods: %+v, journal %v", st.Progress, x.journal.kinds())
	}
	x.w.ds.Spec.UpdateStrategy.Type = "RollingUpdate" // an owner puts it back
	x.w.ds.Generation++
	if st = x.after(time.Second); st.Progress.Phase != Failed || !strings.Contains(string(st.Progress.Failed), "put it back") {
		t.Errorf("put back: %+v", st.Progress)
	}
}

func TestRecoveryIsProvedAfterTheWholeSequence(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.w.setReady("node-1", corev1.ConditionFalse)
	x.after(0)
	x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	st := x.after(time.Second)
	if st.Recovery != nil {
		t.Errorf("a freeze mends nothing, and a recovery is being proved: %+v", st.Recovery)
	}
	x.confirm(action.Request{Kind: action.RollBack, Workload: agent})
	x.after(time.Second)
	for i := 1; i <= 3; i++ {
		node := fmt.Sprintf("node-%d", i)
		x.confirm(action.Request{Kind: action.DeletePod, Workload: agent, Pod: "agent-" + node})
		if st = x.after(time.Second); st.Progress.Phase != Verifying {
			t.Errorf("%s without a Pod: %+v", node, st.Progress)
		}
		x.w.pod(node, 1, "second")
		x.w.setReady(node, corev1.ConditionTrue)
		if st = x.after(time.Second); st.Progress.Phase != Holding {
			t.Errorf("%s with a good Pod: %+v", node, st.Progress)
		}
	}
	if st.Recovery == nil || st.Recovery.Phase != Holding {
		t.Fatalf("recovery %+v", st.Recovery)
	}
	if st = x.after(100 * time.Second); st.Recovery.Phase != Verified || !x.journal.has(session.ActionApplied, session.ActionApplied, session.ActionVerified, RecoveryChanged) {
		t.Errorf("recovery %+v, journal %v", st.Recovery, x.journal.kinds())
	}
	if len(st.Done) != 5 || len(st.Left) != 1 {
		t.Errorf("done %q, left %q", st.Done, st.Left)
	}
	x.confirm(action.Request{Kind: action.Unfreeze, Workload: agent})
	if st = x.after(time.Second); len(st.Left) != 0 {
		t.Errorf("left after the way back: %q", st.Left)
	}
	for _, w := range x.loop.watches {
		if w.proof.Plan.Kind == action.Freeze {
			t.Error("the freeze is still being proved after it was taken back")
		}
	}
}

func TestStepsKeepWatchingAndTheGuideKeepsItsPlace(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.handle(OpenWorkload{Workload: agent})
	if st.Guide == nil || st.Guide.Steps[0].State != report.StepOK || st.Guide.Steps[1].State != report.StepUnknown {
		t.Fatalf("guide %+v, said %q", st.Guide, said(st))
	}
	if r := st.Guide.Steps[1].Result.Reason; !strings.Contains(string(r), `no probe is called "missing"`) {
		t.Errorf("reason %q", r)
	}
	x.handle(NextStep{})
	x.w.setReady("node-2", corev1.ConditionFalse)
	if st = x.after(time.Second); st.Guide.Steps[0].State != report.StepAnomaly || st.Guide.Steps[0].Changed == "" || st.Guide.Current != 1 {
		t.Errorf("a passed step does not watch: %+v", st.Guide.Steps[0])
	}
	x.handle(CloseWorkload{})
	if st = x.handle(OpenWorkload{Workload: agent}); st.Guide.Current != 1 {
		t.Errorf("reopened at step %d", st.Guide.Current)
	}
	if !x.journal.has(WorkloadOpened, session.StepEntered, session.StepResult, session.StepEntered, session.StepResult, WorkloadClosed, WorkloadOpened) {
		t.Errorf("journal %v", x.journal.kinds())
	}
}

func TestVerdictChangesAreKeptOnce(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.w.verdict.Confidence = report.Medium
	x.after(0)
	x.after(time.Second)
	x.w.verdict.Confidence = report.High
	x.after(time.Second)
	x.after(time.Second)
	n := 0
	for _, k := range x.journal.kinds() {
		if k == string(session.VerdictChanged) {
			n++
		}
	}
	if n != 2 || !strings.Contains(x.journal.text(), "(high), was DaemonSet/kube-system/agent RolloutBreaksNodes (medium)") {
		t.Errorf("%d entries:\n%s", n, x.journal.text())
	}
}

// The first pictures come of halves: a node may look as if no rollout had reached it
// because Pods are still being read.
func TestAVerdictOnHalfAPictureIsNotKept(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	right := x.w.verdict
	x.w.verdict, x.w.waiting = report.Verdict{Attribution: report.NodesFailIndependently}, []report.Text{"pods"}
	x.after(0)
	x.w.verdict, x.w.waiting = right, nil
	x.after(time.Second)
	if text := x.journal.text(); strings.Contains(text, "NodesFailIndependently") || !strings.Contains(text, "RolloutBreaksNodes") {
		t.Errorf("journal:\n%s", text)
	}
	if w := x.loop.Worst(); w == nil || w.Verdict.Attribution != report.RolloutBreaksNodes {
		t.Errorf("the incident's height: %+v", w)
	}
}

func TestAKindThatNeverLoadsDoesNotHideTheVerdict(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.w.waiting = []report.Text{"leases"}
	x.after(0)
	x.after(patience + time.Second)
	if !x.journal.has(session.VerdictChanged) {
		t.Errorf("journal %v", x.journal.kinds())
	}
}

func TestLossOfTheConnectionIsKept(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.w.fresh = map[cluster.Resource]cluster.Freshness{cluster.Nodes: {Broken: "refused", Since: epoch}, cluster.Events: {Since: epoch}}
	st := x.after(5 * time.Second)
	if st.Link.Live || !st.Link.Since.Equal(epoch) || st.Link.Why != "refused" {
		t.Errorf("link %+v", st.Link)
	}
	x.w.fresh = map[cluster.Resource]cluster.Freshness{cluster.Nodes: {Since: epoch.Add(8 * time.Second)}, cluster.Events: {Broken: "refused"}}
	if st = x.after(5 * time.Second); !st.Link.Live {
		t.Errorf("one kind that is not updated is no lost connection: %+v", st.Link)
	}
	if !x.journal.has(session.ConnectionLost, session.ConnectionRestored) {
		t.Errorf("journal %v", x.journal.kinds())
	}
}

func TestAJournalThatCannotBeWrittenStopsNobodyAndIsSaid(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.journal.err = errors.New("no space left on device")
	x.w.verdict.Confidence = report.Medium // which is worth an entry
	st := x.after(time.Second)
	if !st.Said.Bad || !strings.Contains(said(st), "no space left") {
		t.Errorf("said %q when it began", said(st))
	}
	st = x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	if x.w.ds.Spec.UpdateStrategy.Type != "OnDelete" || !strings.Contains(string(st.Unkept), "no space left") {
		t.Errorf("strategy %s, not kept %q", x.w.ds.Spec.UpdateStrategy.Type, st.Unkept)
	}
	if strings.Contains(said(st), "no space left") {
		t.Errorf("it hides the answer: %q", said(st))
	}
	x.journal.err = nil
	if st = x.handle(Note{Text: "there is room again"}); st.Unkept != "" {
		t.Errorf("not kept %q, though it is", st.Unkept)
	}
}

func TestSecretsOfTheTemplateReachNeitherStateNorJournal(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	st := x.handle(Act{action.Request{Kind: action.RollBack, Workload: agent}})
	if len(st.Dialog.Preview.Diff) == 0 {
		t.Fatal("no diff to look at")
	}
	x.handle(Confirm{Dialog: st.Dialog.ID, Typed: "agent"})
	shown := fmt.Sprint(st.Dialog.Preview.Diff, st.Dialog.Preview.Prediction, st.Dialog.Preview.WatchOut)
	if strings.Contains(shown, password) || strings.Contains(x.journal.text(), password) {
		t.Errorf("a password is shown:\n%s\n%s", shown, x.journal.text())
	}
	if !x.journal.has(session.ActionApplied) {
		t.Errorf("journal %v", x.journal.kinds())
	}
}

func TestNotesAreWrittenAndTheirFailureSaid(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.loop.cfg.WriteNotes = func(path string, _ *State, _ *report.Report) (string, error) {
		if path == "/full/x.md" {
			return "", errors.New("disk full")
		}
		return "/home/me/notes.md", nil
	}
	if st := x.handle(WriteNotes{}); st.Said.Bad || !strings.Contains(said(st), "/home/me/notes.md") || !x.journal.has(session.NotesWritten) {
		t.Errorf("said %q", said(st))
	}
	if st := x.handle(WriteNotes{"/full/x.md"}); !st.Said.Bad || !strings.Contains(said(st), "disk full") {
		t.Errorf("said %q", said(st))
	}
}

func TestNothingIsLostByACrash(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	x.handle(OpenWorkload{Workload: agent})
	x.handle(NextStep{})
	x.handle(Note{"called the network team"})
	x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	x.after(time.Second)
	x.confirm(action.Request{Kind: action.RollBack, Workload: agent})
	before := x.after(time.Second)

	x.loop = x.newLoop(x.journal.entries) // the program dies here and is started again
	st := x.after(time.Second)
	if st.Guide == nil || st.Guide.Current != 1 || !st.Guide.Steps[0].Visited {
		t.Errorf("guide %+v", st.Guide)
	}
	if st.Notes != 1 || fmt.Sprint(st.Done) != fmt.Sprint(before.Done) || fmt.Sprint(st.Left) != fmt.Sprint(before.Left) || len(st.Left) != 1 {
		t.Errorf("notes %d, done %q, left %q", st.Notes, st.Done, st.Left)
	}
	if st.Recovery == nil || !x.journal.has(session.ActionApplied, session.SessionResumed) {
		t.Errorf("recovery %+v, journal %v", st.Recovery, x.journal.kinds())
	}
	// The way back still knows the settings from before the freeze.
	st = x.handle(Act{action.Request{Kind: action.Unfreeze}})
	if st.Dialog == nil || !strings.Contains(st.Dialog.Preview.Strategy, "RollingUpdate") {
		t.Errorf("dialog %+v, said %q", st.Dialog, said(st))
	}
}

func TestAnActionWithoutAnAnswerInTheJournalIsSaid(t *testing.T) {
	t.Parallel()
	x := newTester(t)
	x.after(0)
	var until int
	x.api.before = func(_ context.Context, call string) {
		if call == "patch" {
			until = len(x.journal.entries) // the program dies while the request is under way
		}
	}
	x.confirm(action.Request{Kind: action.Freeze, Workload: agent})
	x.journal.entries = x.journal.entries[:until]
	x.loop = x.newLoop(x.journal.entries)
	if st := x.loop.State(); st.Said == nil || !st.Said.Bad || !strings.Contains(said(st), "whether it took effect is not known") {
		t.Errorf("said %q", said(st))
	}
}
