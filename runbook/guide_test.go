package runbook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

var (
	target = report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}
	epoch  = time.Date(2026, 7, 3, 2, 10, 0, 0, time.UTC)
)

func at(seconds int) report.Time {
	return report.Time{Time: epoch.Add(time.Duration(seconds) * time.Second)}
}

func newWalk(t testing.TB) *Guide {
	return New(walkBook(t), target, Values{Kind: "DaemonSet", Namespace: "kube-system"})
}

func result(state report.StepState, codes ...report.Code) report.Result {
	r := report.Result{State: state}
	for i, c := range codes {
		r.Findings = append(r.Findings, report.Finding{Code: c, Node: report.Textf("node-%d", i), Summary: report.Textf("%s on node-%d", c, i)})
	}
	return r
}

func kinds(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, string(e.Kind)+" "+e.Step)
	}
	return out
}

func expectEvents(t *testing.T, got []Event, want ...string) {
	t.Helper()
	if !slices.Equal(kinds(got), want) {
		t.Errorf("events: got %q, want %q", kinds(got), want)
	}
}

func TestWalkFollowsTheBranchThatHoldsOtherwiseTheNextStep(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Know(Facts{Unreachable: 2}, at(0))
	expectEvents(t, g.Enter(), "StepEntered first")
	expectEvents(t, g.Enter())
	if next := g.View().Steps[0].Next; next != "second" {
		t.Errorf("with unreachable nodes the view says %s follows", next)
	}
	expectEvents(t, g.Next(), "StepEntered second")
	expectEvents(t, g.Next(), "StepEntered third")
	expectEvents(t, g.Next()) // the end
	if g.View().Steps[2].Next != "" {
		t.Error("a step follows the last one")
	}
	expectEvents(t, g.Observe("third", result(report.StepAnomaly), at(1)), "StepResult third")
	expectEvents(t, g.Next(), "StepEntered first") // what fails leads back
	g.Know(Facts{}, at(2))
	expectEvents(t, g.Next(), "StepEntered third") // nothing unreachable: past the second
}

func TestPreviousGoesTheWayBackThatWasCome(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Enter()
	expectEvents(t, g.Previous()) // the top
	g.Next()                      // first -> third
	expectEvents(t, g.Previous(), "StepEntered first")
	jump, err := g.GoTo("second")
	if err != nil {
		t.Fatal(err)
	}
	expectEvents(t, jump, "StepEntered second")
	again, err := g.GoTo("second")
	if err != nil || again != nil {
		t.Errorf("going where one is: %v, %v", again, err)
	}
	expectEvents(t, g.Previous(), "StepEntered first")
	if _, err := g.GoTo("nowhere"); err == nil || !strings.Contains(err.Error(), `no step "nowhere"`) {
		t.Errorf("got %v", err)
	}
}

func TestTheWayBackIsWalkedOnlyOnce(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Know(Facts{Unreachable: 1}, at(0))
	g.Enter()
	g.Next()
	g.Next()
	expectEvents(t, g.Previous(), "StepEntered second")
	expectEvents(t, g.Previous(), "StepEntered first")
	expectEvents(t, g.Previous())
}

func TestSkipNeedsNoAnswerAndSaysWhy(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Know(Facts{Unreachable: 1}, at(0))
	g.Enter()
	expectEvents(t, g.Skip("known\x1b[31m already"), "StepSkipped first", "StepEntered second")
	s := g.View().Steps[0]
	if s.State != report.StepSkipped || s.Skipped != "known already" {
		t.Errorf("got %s %q", s.State, s.Skipped)
	}
	g.Observe("first", result(report.StepAnomaly, report.RolloutSpreading), at(1))
	if s := g.View().Steps[0]; s.State != report.StepSkipped || s.Changed != "not yet → anomaly; new: RolloutSpreading" {
		t.Errorf("a skipped step that turns bad must say so: %s %q", s.State, s.Changed)
	}
	g.Previous()
	if s := g.View().Steps[0]; s.Skipped != "" || s.State != report.StepAnomaly || s.Changed != "" {
		t.Errorf("opened again it is an ordinary step: %+v", s)
	}
	if e := g.Skip("  "); e[0].Why != "no reason given" {
		t.Errorf("got %q", e[0].Why)
	}
}

func TestAPassedStepKeepsWatching(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Enter()
	g.Observe("first", result(report.StepOK), at(0))
	g.Observe("third", result(report.StepOK), at(0))
	if c := g.View().Steps[0].Changed; c != "" {
		t.Errorf("the open step cannot have changed behind the operator: %q", c)
	}
	g.Next()
	expectEvents(t, g.Observe("first", result(report.StepAnomaly, report.NodeUnreachable, report.NodeUnreachable), at(5)), "StepResult first")
	expectChanged(t, g, "nothing wrong → anomaly; new: NodeUnreachable ×2")
	expectEvents(t, g.Observe("first", result(report.StepAnomaly, report.NodeUnreachable), at(20)), "StepResult first")
	expectChanged(t, g, "nothing wrong → anomaly; new: NodeUnreachable")
	expectEvents(t, g.Observe("first", result(report.StepOK), at(40)), "StepResult first")
	expectChanged(t, g, "") // as it was left
	if g.View().Steps[1].Changed != "" {
		t.Error("a step that nobody opened has not changed")
	}
}

func expectChanged(t *testing.T, g *Guide, want report.Text) {
	t.Helper()
	if got := g.View().Steps[0].Changed; got != want {
		t.Errorf("changed: got %q, want %q", got, want)
	}
}

func TestTheJournalKeepsNewsOnly(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	expectEvents(t, g.Observe("elsewhere", result(report.StepOK), at(0)))
	expectEvents(t, g.Observe("first", result(report.StepAnomaly, report.NodeUnreachable), at(0)), "StepResult first")
	older := result(report.StepAnomaly, report.NodeUnreachable)
	older.Lines = []report.Line{{Text: "silent for 12 s"}}
	expectEvents(t, g.Observe("first", older, at(1)))
	if got := g.View().Steps[0].Result.Lines; len(got) == 0 || got[0].Text != "silent for 12 s" {
		t.Error("the screen must show the newest lines all the same")
	}
	two := result(report.StepAnomaly, report.NodeUnreachable, report.NodeUnreachable)
	expectEvents(t, g.Observe("first", two, at(9)))                      // only a count, too soon
	expectEvents(t, g.Observe("first", two, at(10)), "StepResult first") // ten seconds later
	other := result(report.StepAnomaly, report.NodeUnreachable, report.NodePressure)
	expectEvents(t, g.Observe("first", other, at(11)), "StepResult first") // another code: at once
}

func TestTheJournalTellsTheFirstLookInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    report.Result
		want report.Text
	}{
		{report.Result{State: report.StepAnomaly, Lines: []report.Line{{Text: "11 of 15 fell"}, {Text: "more"}}}, "Which? anomaly: 11 of 15 fell"},
		{report.Result{State: report.StepUnknown, Reason: "Forbidden"}, "Which? could not look: Forbidden"},
		{report.Result{State: report.StepOK}, "Which? nothing wrong"},
	} {
		if e := newWalk(t).Observe("first", c.r, at(0)); len(e) != 1 || e[0].Text != c.want {
			t.Errorf("got %+v", e)
		}
	}
}

func TestAJournalEntryStaysSmall(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	r := result(report.StepAnomaly, slices.Repeat([]report.Code{report.NodeUnreachable}, 5000)...)
	r.Timeline = &report.Timeline{}
	e := g.Observe("first", r, at(0))[0]
	if len(e.Result.Findings) != maxKept || e.Result.Timeline != nil || e.Digest.Codes[report.NodeUnreachable] != 5000 {
		t.Errorf("kept %d findings, digest %v", len(e.Result.Findings), e.Digest)
	}
	if v := g.View().Steps[0]; len(v.Result.Findings) != 5000 || v.Result.Timeline == nil {
		t.Error("the screen must have all of them")
	}
}

func TestWhatNoProbeLooksAtIsNeverFine(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	if s := g.View().Steps[0]; s.State != report.StepNotYet || len(s.Unanswered) != 1 {
		t.Errorf("before anything: %s", s.State)
	}
	for _, c := range []struct{ probe, want report.StepState }{
		{report.StepOK, report.StepUnknown}, {report.StepNotice, report.StepNotice}, {report.StepAnomaly, report.StepAnomaly}, {report.StepUnknown, report.StepUnknown},
	} {
		g.Observe("first", result(c.probe), at(0))
		s := g.View().Steps[0]
		last := s.Result.Lines[len(s.Result.Lines)-1]
		if s.State != c.want || last.State != report.StepUnknown || last.Text != "Logs? Not looked at: no probe reads them." {
			t.Errorf("probe says %s: step %s, line %q", c.probe, s.State, last.Text)
		}
		if s.State == report.StepUnknown && c.probe == report.StepOK && s.Result.Reason == "" {
			t.Error("the reason is missing")
		}
		if len(s.Result.Lines) != 1 {
			t.Errorf("the line was added %d times", len(s.Result.Lines))
		}
	}
	g.Observe("second", result(report.StepOK), at(0))
	if s := g.View().Steps[1]; s.State != report.StepOK {
		t.Errorf("a step without such a part: %s", s.State)
	}
}

func TestCommandsAreFilledInQuotedAndHonest(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	s := g.View().Steps
	if got := s[0].Commands; !slices.Equal(got, []report.Text{"kubectl get daemonset -n kube-system", "kubectl logs <pod>"}) {
		t.Errorf("got %q", got)
	}
	if len(s[2].Commands) != 0 || len(s[2].Says) != 0 {
		t.Error("a command whose need is not known must stay out")
	}
	g.SetValues(Values{Kind: "DaemonSet", Namespace: "a b", Pod: "x'; touch /tmp/owned; '\x1b[2J"})
	s = g.View().Steps
	if got := s[0].Commands; !slices.Equal(got, []report.Text{"kubectl get daemonset -n 'a b'", `kubectl logs 'x'\''; touch /tmp/owned; '\'''`}) {
		t.Errorf("got %q", got)
	}
	if len(s[2].Commands) != 1 {
		t.Error("the command is not shown although its need is known")
	}
}

func TestKnowTellsOfConclusionsNotOfCounts(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	good := int64(6)
	f := Facts{Verdict: report.Verdict{Attribution: report.RolloutBreaksNodes, Confidence: report.Medium}, Spreading: true, KnownGood: &good, NodesDown: 2, Codes: []report.Code{report.RolloutSpreading}}
	e := g.Know(f, at(0))
	expectEvents(t, e, "VerdictChanged ")
	want := report.Text("verdict: none → RolloutBreaksNodes; confidence: none → medium; still spreading: no → yes; known-good revision: none → 6; nodes not Ready: no → yes; new: RolloutSpreading")
	if e[0].Text != want {
		t.Errorf("got  %s\nwant %s", e[0].Text, want)
	}
	told := newWalk(t)
	f.Verdict.Summary = "2 of 2 fell."
	if e := told.Know(f, at(0)); len(e) != 1 || e[0].Text != want+". 2 of 2 fell." {
		t.Errorf("a new verdict is told with its summary: %s", e[0].Text)
	}
	f.NodesDown, f.NotYetReached = 7, 3
	expectEvents(t, g.Know(f, at(1)))
	f.Spreading, f.Codes = false, nil
	if e := g.Know(f, at(2)); len(e) != 1 || e[0].Text != "still spreading: yes → no; gone: RolloutSpreading" {
		t.Errorf("got %v", e)
	}
}

func TestAViewIsACopy(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	g.Observe("second", result(report.StepAnomaly, report.NodeUnreachable), at(0))
	v := g.View()
	v.Steps[1].Result.Findings[0].Code = "x"
	v.Steps[0].Actions[0] = "x"
	if w := g.View(); w.Steps[1].Result.Findings[0].Code == "x" || w.Steps[0].Actions[0] == "x" {
		t.Error("changing a view changed the guide")
	}
}

// Whatever is done to a guide, the journal's events lead a new one to the same
// place, through JSON as the journal writes it.
func TestReplayEqualsTheOriginal(t *testing.T) {
	t.Parallel()
	book := walkBook(t)
	rapid.Check(t, func(t *rapid.T) {
		values := Values{Kind: "DaemonSet"}
		g := New(book, target, values)
		var journal []Event
		for i := range rapid.IntRange(1, 40).Draw(t, "moves") {
			now := at(i * 60)
			switch rapid.IntRange(0, 6).Draw(t, "move") {
			case 0:
				journal = append(journal, g.Enter()...)
			case 1:
				journal = append(journal, g.Next()...)
			case 2:
				journal = append(journal, g.Previous()...)
			case 3:
				e, err := g.GoTo(rapid.SampledFrom([]string{"first", "second", "third"}).Draw(t, "step"))
				if err != nil {
					t.Fatal(err)
				}
				journal = append(journal, e...)
			case 4:
				journal = append(journal, g.Skip(rapid.SampledFrom([]string{"", "known"}).Draw(t, "why"))...)
			case 5:
				codes := rapid.SliceOfN(rapid.SampledFrom([]report.Code{report.NodeUnreachable, report.CrashLoop}), 0, 4).Draw(t, "codes")
				state := rapid.SampledFrom([]report.StepState{report.StepOK, report.StepNotice, report.StepAnomaly, report.StepUnknown}).Draw(t, "state")
				journal = append(journal, g.Observe(rapid.SampledFrom([]string{"first", "second", "third"}).Draw(t, "step"), result(state, codes...), now)...)
			case 6:
				journal = append(journal, g.Know(Facts{Unreachable: rapid.IntRange(0, 1).Draw(t, "unreachable"), Spreading: rapid.Bool().Draw(t, "spreading")}, now)...)
			}
		}
		data, err := json.Marshal(journal)
		if err != nil {
			t.Fatal(err)
		}
		var read []Event
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		again := New(book, target, values)
		if unfit := again.Replay(read); len(unfit) > 0 {
			t.Fatalf("events that do not fit: %v", unfit)
		}
		// SeenAt moves with every look, the journal keeps only those with news;
		// which findings a count stands for may differ with it.
		if diff := cmp.Diff(coarse(g.View()), coarse(again.View())); diff != "" {
			t.Fatalf("the replayed guide differs (-original +replayed):\n%s", diff)
		}
		a, b := kinds(g.Previous()), kinds(again.Previous())
		if !slices.Equal(a, b) {
			t.Fatalf("the way back differs: %v, %v", a, b)
		}
	})
}

func coarse(v View) View {
	for i := range v.Steps {
		v.Steps[i].SeenAt = nil
		slices.SortFunc(v.Steps[i].Result.Findings, func(a, b report.Finding) int { return strings.Compare(string(a.Code), string(b.Code)) })
		for j := range v.Steps[i].Result.Findings {
			f := &v.Steps[i].Result.Findings[j]
			*f = report.Finding{Code: f.Code}
		}
	}
	return v
}

func TestReplayReturnsWhatANewerRunbookCannotPlace(t *testing.T) {
	t.Parallel()
	g := newWalk(t)
	events := []Event{
		{Kind: StepEntered, Step: "first", Move: Entered},
		{Kind: StepEntered, Step: "removed", Move: Onward},
		{Kind: StepEntered, Step: "second"},
		{Kind: StepResult, Step: "second"},
		{Kind: "Unheard", Step: "second"},
		{Kind: StepEntered, Step: "third", Move: Onward},
	}
	if unfit := g.Replay(events); len(unfit) != 4 || g.Current() != "third" {
		t.Errorf("unfit %v, at %s", kinds(unfit), g.Current())
	}
}

func TestConditionsSeeTheReportAndTheWalk(t *testing.T) {
	t.Parallel()
	good := int64(6)
	f := Facts{Kind: "DaemonSet", Verdict: report.Verdict{Attribution: report.RolloutBreaksNodes, Confidence: report.High, RootCause: report.InitContainerFailed},
		Rollout: report.Stuck, Strategy: "RollingUpdate", Spreading: true, Mode: "B", KnownGood: &good, Codes: []report.Code{report.RolloutStuck},
		Reachable: 1, Unreachable: 2, NodesDown: 3, NotYetReached: 4, MayStillFall: 5}
	s := StepFacts{State: report.StepAnomaly, Codes: []report.Code{report.CrashLoop}, States: map[string]report.StepState{"first": report.StepOK}}
	for _, c := range []struct {
		when string
		want bool
	}{
		{`kind == "DaemonSet" && attribution == "RolloutBreaksNodes" && confidence == "high" && rootCause == "InitContainerFailed"`, true},
		{`rollout == "Stuck" && strategy == "RollingUpdate" && mode == "B"`, true},
		{`spreading && knownGood`, true},
		{`reachable == 1 && unreachable == 2 && nodesDown == 3 && notYetReached == 4 && mayStillFall == 5`, true},
		{`"RolloutStuck" in codes && !("CrashLoop" in codes)`, true},
		{`state == "Anomaly" && "CrashLoop" in found && steps["first"] == "OK"`, true},
		{`steps["second"] == "OK"`, false}, // no such state: it does not hold, and nothing breaks
		{`confidence == "low"`, false},
	} {
		cond, err := compile(c.when, []string{"first", "second"})
		if err != nil {
			t.Errorf("%s: %v", c.when, err)
			continue
		}
		if got := cond.holds(f, s); got != c.want {
			t.Errorf("%s: got %v", c.when, got)
		}
	}
	if (condition{}).holds(f, s) {
		t.Error("no condition must not hold")
	}
}

func ExampleGuide() {
	b, err := Parse("walk.yaml", []byte(walk), Names{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g := New(b, target, Values{Kind: "DaemonSet", Namespace: "kube-system"})
	g.Enter()
	g.Observe("first", report.Result{State: report.StepAnomaly}, report.Time{})
	g.Next()
	v := g.View()
	fmt.Println(v.Steps[0].State, v.Steps[v.Current].Title)
	// Output: Anomaly When?
}
