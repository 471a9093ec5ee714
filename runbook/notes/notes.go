// Package notes turns the journal of an incident into its notes: what happened,
// what was found and done, what is still open. Markdown, HTML and JSON are
// renderings of one Document. The same input gives the same bytes, and no text of
// a cluster, an operator or a file can change what the notes look like.
package notes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// Input is what the notes are made of. Only Entries must be there.
type Input struct {
	Entries []session.Entry
	// Report is the picture at the end; Worst the one before the first action, or
	// whenever the incident was at its height. Either may be nil.
	Report, Worst *report.Report
	Target        report.WorkloadKey
	// Guide is the walk through the runbook, nil where none was opened.
	Guide *runbook.View
	// Left is what is still changed by hand. Nil: worked out from the actions.
	Left []report.Text
	// Lost says what could not be read of the journal, "" where all could.
	Lost string
}

// Document is the notes of one incident, every text clean and without secrets.
type Document struct {
	Title    report.Text   `json:"title"`
	About    []Fact        `json:"about"`
	Summary  Summary       `json:"summary"`
	Impact   []report.Text `json:"impact"`
	Timeline []Moment      `json:"timeline"`
	Findings []Finding     `json:"findings"`
	// Evidence is what logs and consoles said, the telling lines only.
	Evidence []signs.Evidence `json:"evidence,omitempty"`
	Actions  []Action         `json:"actions"`
	Left     []Left           `json:"stillChangedByHand"`
	Open     []report.Text    `json:"openQuestions"`
	Commands []report.Text    `json:"commands"`
}

// Fact is one line of what the notes are about.
type Fact struct {
	Name  string      `json:"name"`
	Value report.Text `json:"value"`
}

// Summary is the verdict at its height and how things stood at the end.
type Summary struct {
	Verdict *report.Verdict `json:"verdict"` // nil: no verdict was reached
	End     []report.Text   `json:"end"`
}

// Moment is one row of the timeline, in the cluster's time.
type Moment struct {
	At   report.Time `json:"at"`
	Kind string      `json:"kind"`
	Text report.Text `json:"text"`
}

// Finding is one code with everything it was found on.
type Finding struct {
	Code     report.Code      `json:"code"`
	Severity report.Severity  `json:"severity"`
	Count    int              `json:"count"`
	Examples []report.Finding `json:"examples"`
	// Gone tells that the report at the end has none of it.
	Gone bool `json:"gone"`
}

// Action is one confirmed change of the cluster.
type Action struct {
	Title   report.Text  `json:"title"`
	Object  report.Text  `json:"object"`
	Outcome report.Text  `json:"outcome"`
	Asked   *report.Time `json:"confirmedAt"`
	Done    *report.Time `json:"doneAt"`
	Kubectl report.Text  `json:"kubectl,omitempty"`
	Reverse report.Text  `json:"reverse,omitempty"`
	// GiveBack is what else must be put back: owners that were suspended for it.
	GiveBack []report.Text `json:"giveBack,omitempty"`
	Diff     []report.Text `json:"diff,omitempty"`
	Effect   []report.Text `json:"effect,omitempty"`
}

// Left is a change that somebody must put back, and how.
type Left struct {
	Text    report.Text `json:"text"`
	Reverse report.Text `json:"reverse,omitempty"`
}

// maxRows bounds the timeline's marks and maxExamples the objects of a finding: a
// cascade over hundreds of nodes must stay readable.
const (
	maxRows     = 60
	maxExamples = 10
)

// clean makes any text safe and free of secrets.
func clean(s string) report.Text { return report.Clean(session.Redact(s)) }

func cleanAll[T ~string](in []T) []report.Text {
	out := make([]report.Text, 0, len(in))
	for _, s := range in {
		out = append(out, clean(string(s)))
	}
	return out
}

// Build works out the notes.
func Build(in Input) *Document {
	d := &Document{}
	in.Entries = onOneClock(in.Entries)
	started := about(in.Entries)
	if in.Target == (report.WorkloadKey{}) {
		in.Target = parseKey(started.Workload)
	}
	d.Title = title(in, started)
	d.About = facts(in, started)
	d.Summary = summary(in)
	d.Impact = impact(in)
	d.Timeline = timeline(in)
	d.Findings = findings(in)
	d.Evidence = evidence(in.Entries)
	d.Actions = actions(in.Entries)
	d.Left = left(in)
	d.Open = open(in, d.Summary.Verdict)
	d.Commands = commands(in.Entries)
	return d
}

// about is the start of the session, as far as it can be read.
func about(entries []session.Entry) session.Started {
	var s session.Started
	for _, e := range entries {
		if e.Kind == session.SessionStarted && e.Decode(&s) == nil {
			break
		}
	}
	return s
}

func parseKey(s string) report.WorkloadKey {
	p := strings.SplitN(s, "/", 3)
	if len(p) != 3 {
		return report.WorkloadKey{}
	}
	return report.WorkloadKey{Kind: clean(p[0]), Namespace: clean(p[1]), Name: clean(p[2])}
}

func title(in Input, s session.Started) report.Text {
	t := "Incident notes"
	switch k := in.Target; {
	case k != (report.WorkloadKey{}):
		t += ": " + string(k.Kind) + " " + string(k.Namespace) + "/" + string(k.Name)
	case s.Context != "":
		t += ": " + s.Context
	}
	if len(in.Entries) > 0 {
		t += ", " + in.Entries[0].At().UTC().Format("2006-01-02 15:04") + " UTC"
	}
	return clean(t)
}

func facts(in Input, s session.Started) []Fact {
	var out []Fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, Fact{name, clean(value)})
		}
	}
	add("Cluster", s.Context)
	add(server, strings.TrimSpace(s.Server+" "+s.Version))
	add("Operator", s.User)
	add("Practice incident", s.Practice)
	if s.ReadOnly {
		add("Mode", "read-only: nothing could be changed")
	}
	if in.Guide != nil {
		add("Runbook", string(in.Guide.Title))
	}
	add("Program", s.Program)
	if n := len(in.Entries); n > 0 {
		add("From", in.Entries[0].At().UTC().Format(layout)+" UTC")
		add("To", in.Entries[n-1].At().UTC().Format(layout)+" UTC")
	}
	return out
}

const server = "API server"

const layout = "2006-01-02 15:04:05"

// attributions in the order of what they weigh, the gravest first.
var attributions = []report.Attribution{
	report.RolloutBreaksNodes, report.RolloutBreaksPods, report.NodesFailIndependently, report.NodesBlockRollout, report.ClusterBlocksPods,
	report.ControllerStalled, report.CoverageGap, report.Undetermined, report.WaitingForOperator, report.Healthy,
}

// graver orders verdicts by what they say, then by how sure they are.
func graver(a, b report.Verdict) int {
	rank := func(v report.Verdict) int {
		if i := slices.Index(attributions, v.Attribution); i >= 0 {
			return -i
		}
		return -len(attributions)
	}
	sure := func(v report.Verdict) int {
		return slices.Index([]report.Confidence{report.Low, report.Medium, report.High}, v.Confidence)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(sure(a), sure(b)))
}

// summary takes the gravest and surest verdict of the incident, the latest of
// equals: at the end everything is healthy again, and that is not what happened.
func summary(in Input) Summary {
	var s Summary
	consider := func(v report.Verdict) {
		if v.Attribution != "" && (s.Verdict == nil || graver(v, *s.Verdict) >= 0) {
			s.Verdict = &v
		}
	}
	for _, r := range []*report.Report{in.Worst, in.Report} {
		if w := workload(r, in.Target); w != nil {
			consider(w.Verdict)
		}
	}
	for _, e := range events(in.Entries) {
		if e.Facts != nil {
			consider(e.Facts.Verdict)
		}
	}
	if v := s.Verdict; v != nil {
		v.Summary, v.Workload = clean(string(v.Summary)), clean(string(v.Workload))
		v.For, v.Against, v.Missing = cleanAll(v.For), cleanAll(v.Against), cleanAll(v.Missing)
	}
	if r := in.Report; r != nil {
		s.End = append(s.End, report.Textf("%d of %d nodes Ready, %d NotReady, %d Unknown.", r.Nodes.Ready, r.Nodes.Total, r.Nodes.NotReady, r.Nodes.Unknown))
		switch w := workload(r, in.Target); {
		case w != nil:
			s.End = append(s.End, clean(string(w.Verdict.Attribution)+": "+string(w.Verdict.Summary)))
		case in.Target != (report.WorkloadKey{}):
			s.End = append(s.End, "Nothing above info is left to say of the workload.")
		}
	}
	return s
}

func workload(r *report.Report, k report.WorkloadKey) *report.Workload {
	if r == nil {
		return nil
	}
	return r.Workload(k)
}

// impact says what is known of who suffered; silence would read as "nobody".
func impact(in Input) []report.Text {
	var out []report.Text
	var worst *report.Report
	down := func(r *report.Report) int { return r.Nodes.NotReady + r.Nodes.Unknown }
	for _, r := range []*report.Report{in.Worst, in.Report} {
		if r != nil && (worst == nil || down(r) > down(worst)) {
			worst = r
		}
	}
	if worst != nil && down(worst) > 0 {
		out = append(out, report.Textf("At the worst moment looked at, %d of %d nodes were not Ready (%d False, %d Unknown), at %s UTC.",
			down(worst), worst.Nodes.Total, worst.Nodes.NotReady, worst.Nodes.Unknown, worst.AsOf.UTC().Format(layout)))
	}
	var stakes []report.Text
	for _, f := range all(in) {
		if atStake[f.Code] {
			stakes = append(stakes, clean(string(f.Code)+": "+string(f.Summary)))
		}
	}
	slices.Sort(stakes)
	out = append(out, slices.Compact(stakes)...)
	if len(out) == 0 {
		return []report.Text{"Not known: nothing that was read tells who suffered."}
	}
	return out
}

var atStake = map[report.Code]bool{
	report.ControlPlaneAtRisk: true, report.ControllerManagerDown: true, report.APIPathAtRisk: true, report.WebhookOnBrokenNodes: true,
	report.ServiceWithoutEndpoints: true, report.ClusterDNSDegraded: true, report.EvictionPending: true,
}

// events are the guide's events in the journal.
func events(entries []session.Entry) []runbook.Event {
	var out []runbook.Event
	for _, e := range entries {
		switch e.Kind {
		case session.StepEntered, session.StepResult, session.StepSkipped, session.VerdictChanged:
			var v runbook.Event
			if e.Decode(&v) == nil {
				out = append(out, v)
			}
		}
	}
	return out
}
