package notes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/library"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

var (
	epoch  = time.Date(2026, 7, 3, 2, 9, 58, 0, time.UTC)
	target = report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}
)

func at(seconds int) report.Time {
	return report.Time{Time: epoch.Add(time.Duration(seconds) * time.Second)}
}

// scene plays an incident into a journal, as the program does.
type scene struct {
	entries []session.Entry
	now     int
}

func (s *scene) add(k session.Kind, text string, data any) {
	cluster := at(s.now).Time
	// The laptop's clock is five minutes fast: the notes must not use it.
	e := session.Entry{Seq: len(s.entries) + 1, Wall: cluster.Add(5 * time.Minute), Cluster: &cluster, Kind: k, Text: text}
	if data != nil {
		e.Data = session.Data(data)
	}
	s.entries = append(s.entries, e)
}

func (s *scene) events(events []runbook.Event) {
	for _, e := range events {
		s.add(session.Kind(e.Kind), string(e.Text), e)
	}
}

func mustGuide(t testing.TB) *runbook.Guide {
	t.Helper()
	books, err := library.Load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runbook.New(books[0], target, runbook.Values{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node", KnownGood: "6"})
}

func broken(node string, i int) report.Finding {
	return report.Finding{Code: report.InitContainerFailed, Severity: report.Critical, Node: report.Text(node), Since: report.At(at(20 + i).Time),
		Object:   report.Object{Kind: "Pod", Namespace: "kube-system", Name: report.Textf("calico-node-%d", i)},
		Summary:  "init container install-cni exits 1",
		Evidence: []report.Evidence{{Source: "Pod.status.initContainerStatuses[install-cni]", Value: "terminated exitCode=1", At: report.At(at(20 + i).Time)}}}
}

func play(t testing.TB) Input {
	t.Helper()
	var s scene
	g := mustGuide(t)
	s.add(session.SessionStarted, "session started", session.Started{Context: "prod-eu-1", Server: "https://10.0.0.1:6443", Version: "v1.37.2", User: "alice", Workload: target.String(), Program: "rollcall v1"})
	verdict := report.Verdict{Attribution: report.RolloutBreaksNodes, Confidence: report.High, RootCause: report.InitContainerFailed,
		Summary: "3 of 3 nodes that received revision 7 lost Ready 6 to 14 s later; none of the 9 nodes on revision 6 did.",
		For:     []report.Text{"every failed node runs revision 7"}, Against: []report.Text{"node-77 was down before"}, Missing: []report.Text{"events older than an hour"}}
	low := verdict
	low.Confidence, low.Summary = report.Low, "one node"
	s.now = 30
	s.events(g.Know(runbook.Facts{Verdict: low, Spreading: true}, at(s.now)))
	s.events(g.Enter())
	s.events(g.Observe("which-rollout", report.Result{State: report.StepAnomaly}, at(s.now)))
	s.now = 40
	s.events(g.Know(runbook.Facts{Verdict: verdict, Spreading: true, Unreachable: 1}, at(s.now)))
	s.events(g.Next())
	s.events(g.Observe("spreading", report.Result{State: report.StepOK}, at(s.now)))
	s.add(session.Note, "called the network team", nil)
	freeze := session.Action{ID: 1, Kind: "SwitchToOnDelete", Title: "Freeze DaemonSet calico-node", Object: target.String(), Lasting: true,
		Kubectl: `kubectl patch daemonset calico-node -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete"}}}'`,
		Reverse: `kubectl patch daemonset calico-node -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}'`,
		Diff:    []string{"- type: RollingUpdate", "+ type: OnDelete"}}
	s.now = 50
	s.add(session.ActionPreviewed, "", freeze)
	s.add(session.ActionConfirmed, "", freeze)
	s.now = 51
	s.add(session.ActionApplied, "", freeze)
	s.events(g.Skip("known"))
	e, err := g.GoTo("new-pod")
	if err != nil {
		t.Fatal(err)
	}
	s.events(e)
	s.events(g.Observe("new-pod", report.Result{State: report.StepAnomaly, Findings: []report.Finding{broken("node-1", 0), broken("node-2", 1)}}, at(s.now)))
	heard := signs.Evidence{From: signs.Source{Node: "node-1", Namespace: "kube-system", Pod: "calico-node-0", Container: "install-cni", Previous: true}, At: at(s.now),
		Reading: signs.Read([]string{
			"2026-07-03T02:10:20Z 2026-07-03 02:10:20.412 [INFO][1] cni-installer: Running as a Kubernetes pod",
			"2026-07-03T02:10:21Z 2026-07-03 02:10:21.412 [ERROR][1] cni-installer: failed to write /host/etc/cni/net.d/10-calico.conflist: no space left on device",
			"2026-07-03T02:10:22Z 2026-07-03 02:10:22.412 [ERROR][1] cni-installer: odd",
		}, signs.Options{})}
	s.add(session.EvidenceRead, "previous log of install-cni in calico-node-0: DiskFull", heard)
	console := signs.Evidence{From: signs.Source{Node: "node-3"}, At: at(s.now), Reading: signs.Read([]string{"curl: (7) Failed to connect to 10.0.0.1 port 6443: No route to host"}, signs.Options{Console: true})}
	s.add(session.EvidenceRead, "console of node-3: NoRouteToHost", console)
	console.Reading = signs.Read([]string{"later, nothing"}, signs.Options{Console: true})
	s.add(session.EvidenceRead, "console of node-3: no known sign", console)
	s.events(g.Observe("new-pod", report.Result{State: report.StepAnomaly, Findings: []report.Finding{broken("node-1", 0), broken("node-2", 1)}, Answered: []string{runbook.AnsweredByLogs}}, at(s.now)))
	s.add(session.CommandCopied, "kubectl logs -n kube-system calico-node-0 -c install-cni", nil)
	s.add(session.CommandCopied, "kubectl logs -n kube-system calico-node-0 -c install-cni", nil)
	back := session.Action{ID: 2, Kind: "RollBack", Title: "Roll back DaemonSet calico-node, revision 7 → 6", Object: target.String(),
		Kubectl: "kubectl rollout undo daemonset/calico-node -n kube-system --to-revision=6", Reverse: "kubectl rollout undo daemonset/calico-node -n kube-system --to-revision=7",
		Diff: []string{"-   configMap: calico-config-v2", "+   configMap: calico-config"}, Effect: []string{"NOW 0 Pods, frozen"}}
	s.now = 60
	s.add(session.ActionConfirmed, "", back)
	refused := back
	refused.Error = "not permitted: alice cannot patch daemonsets"
	s.add(session.ActionFailed, "", refused)
	back.ID = 3
	s.now = 70
	s.add(session.ActionConfirmed, "", back)
	s.add(session.ActionApplied, "", back)
	s.now = 90
	s.add(session.ConnectionLost, "", nil)
	s.now = 95
	s.add(session.ConnectionRestored, "", nil)
	s.now = 170
	back.Effect = []string{"2 nodes hold for 100 s"}
	s.add(session.ActionVerified, "", back)
	pod := session.Action{ID: 4, Kind: "DeletePod", Title: "Delete Pod calico-node-1", Object: "Pod/kube-system/calico-node-1", Reverse: "nothing brings the Pod back; the DaemonSet makes a new one"}
	s.add(session.ActionConfirmed, "", pod)
	s.now = 200
	s.add(session.SessionResumed, "", nil)
	s.add(session.SessionEnded, "", nil)

	worst := &report.Report{AsOf: at(40), Nodes: report.NodeCounts{Total: 12, Ready: 8, NotReady: 3, Unknown: 1},
		Workloads: []report.Workload{{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node", Verdict: verdict,
			Findings: []report.Finding{broken("node-1", 0), broken("node-2", 1), broken("node-3", 2)},
			Timeline: &report.Timeline{
				Lines: []report.Mark{{Kind: report.MarkRolloutStart, At: at(0), Text: "revision 7 became current"}},
				Lanes: []report.Lane{{Node: "node-1", Marks: []report.Mark{{Kind: report.MarkPodDeleted, At: at(2), Text: "Pod deleted"}, {Kind: report.MarkNodeNotReady, At: at(14), Text: "Ready=False"}}}}},
		}},
		ClusterFindings: []report.Finding{
			{Code: report.EvictionPending, Severity: report.Critical, Object: report.Object{Kind: "Node", Name: "node-1"}, Node: "node-1", Summary: "14 Pods will be evicted from 02:16:12"},
			{Code: report.NodeCordoned, Severity: report.Info, Object: report.Object{Kind: "Node", Name: "node-5"}, Summary: "cordoned"},
		}}
	end := &report.Report{AsOf: at(200), Nodes: report.NodeCounts{Total: 12, Ready: 11, Unknown: 1},
		Workloads: []report.Workload{{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node", Verdict: report.Verdict{Attribution: report.WaitingForOperator, Summary: "OnDelete: 9 Pods wait to be deleted."},
			Findings: []report.Finding{{Code: report.OnDeletePending, Severity: report.Info, Object: report.Object{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}, Summary: "9 Pods are outdated"}}}},
		NotRead: []report.NotRead{{Resource: "services", Reason: "Forbidden"}}}
	v := g.View()
	return Input{Entries: s.entries, Report: end, Worst: worst, Target: target, Guide: &v}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	golden.RequireEqual(t, Build(play(t)).Markdown())
}

func TestHTML(t *testing.T) {
	t.Parallel()
	html, err := Build(play(t)).HTML()
	if err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, html)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	b, err := Build(play(t)).JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, b)
}

func TestNotesOfAnEmptyJournalSayWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	golden.RequireEqual(t, Build(Input{}).Markdown())
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	in := play(t)
	first := Build(in).Markdown()
	for range 20 {
		if again := Build(in).Markdown(); again != first {
			t.Fatal("the notes differ from run to run")
		}
	}
}

func TestWhatIsStillChangedIsWorkedOutFromTheActions(t *testing.T) {
	t.Parallel()
	in := play(t)
	if l := Build(in).Left; len(l) != 1 || l[0].Text != "Freeze DaemonSet calico-node" || !strings.HasPrefix(string(l[0].Reverse), "kubectl patch") {
		t.Errorf("got %q", l)
	}
	cluster := at(300).Time
	in.Entries = append(slices.Clone(in.Entries), session.Entry{Seq: 99, Cluster: &cluster, Kind: session.ActionApplied,
		Data: session.Data(session.Action{ID: 9, Title: "Back to RollingUpdate", Object: target.String(), PutBack: true})})
	if l := Build(in).Left; len(l) != 0 {
		t.Errorf("put back, and still %q", l)
	}
	in.Left = []report.Text{"Argo CD is suspended"}
	if l := Build(in).Left; len(l) != 1 || l[0].Text != "Argo CD is suspended" {
		t.Errorf("who knows better is believed: %q", l)
	}
}

func TestAnActionWithoutAnAnswerIsAnOpenQuestion(t *testing.T) {
	t.Parallel()
	d := Build(play(t))
	last := d.Actions[len(d.Actions)-1]
	if !strings.HasPrefix(string(last.Outcome), "not known") {
		t.Errorf("got %q", last.Outcome)
	}
	if !slices.ContainsFunc(d.Open, func(s report.Text) bool {
		return strings.HasPrefix(string(s), "Did it take effect? Delete Pod calico-node-1")
	}) {
		t.Errorf("open: %q", d.Open)
	}
}

func TestTheVerdictIsTheOneOfTheHeightNotOfTheEnd(t *testing.T) {
	t.Parallel()
	v := Build(play(t)).Summary.Verdict
	if v == nil || v.Attribution != report.RolloutBreaksNodes || v.Confidence != report.High {
		t.Errorf("got %+v", v)
	}
}

func TestACascadeStaysReadable(t *testing.T) {
	t.Parallel()
	in := play(t)
	w := &in.Worst.Workloads[0]
	for i := range 400 {
		node := fmt.Sprintf("node-%03d", i)
		w.Findings = append(w.Findings, broken(node, 10+i))
		w.Timeline.Lanes = append(w.Timeline.Lanes, report.Lane{Node: report.Text(node), Marks: []report.Mark{{Kind: report.MarkNodeNotReady, At: at(i), Text: "Ready=False"}}})
	}
	d := Build(in)
	if f := d.Findings[1]; f.Code != report.InitContainerFailed || f.Count != 403 || len(f.Examples) != maxExamples {
		t.Errorf("%s: %d, %d examples", f.Code, f.Count, len(f.Examples))
	}
	if len(d.Timeline) > maxRows+60 {
		t.Errorf("%d rows", len(d.Timeline))
	}
	if md := d.Markdown(); !strings.Contains(md, "and 393 more") || !strings.Contains(md, "later changes of nodes are left out") {
		t.Error("what is left out is not said")
	}
}

// hostile are texts that try to become something else than text.
var hostile = []string{
	"# heading", "- item", "1. item", "> quote", "```\nfence", "`code`", "**bold** _em_", "[click](https://evil.example)", "![x](https://evil.example/p.png)",
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "a | b | c", "---", "===", "\x1b[2J\x1b]0;owned\x07", "line\nline\r\nline", "https://evil.example www.evil.example",
	"~~gone~~", `\`, "\u202eevil", "+ item", "    indented", "2) item", "$x$", "</body></html>", "]]>", "<!-- ",
}

// Whatever a name, a message or a note says, it stays text: no link, no image, no
// HTML, no heading or list of its own, no control character.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	shape := structure(t, Build(withText("harmless")).Markdown())
	check := func(t interface {
		Fatalf(string, ...any)
	}, s string) {
		in := withText(s)
		md := Build(in).Markdown()
		if strings.ContainsAny(md, "\x1b\x07\r\u202e") {
			t.Fatalf("%q: control characters in the notes", s)
		}
		if got := structure(nil, md); got != shape {
			t.Fatalf("%q changes the document:\n%s\nwant\n%s\n%s", s, got, shape, md)
		}
		page, err := Build(in).HTML()
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, tag := range []string{"<script", "<img", "<a ", "<iframe", "onerror=\""} {
			if strings.Contains(strings.ToLower(page), tag) {
				t.Fatalf("%q: %s in the page", s, tag)
			}
		}
	}
	for _, s := range hostile {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 8, -1)), 1, 4).Draw(t, "parts")
		check(t, "x"+strings.Join(parts, ""))
	})
}

// withText puts one text into every place that text can come from.
func withText(s string) Input {
	var sc scene
	x := report.Text(s) // as if a probe had forgotten to clean it
	sc.add(session.SessionStarted, s, session.Started{Context: s, Server: s, User: s, Workload: "DaemonSet/a/b"})
	sc.add(session.Note, "note "+s, nil)
	sc.add(session.CommandCopied, s, nil)
	sc.add(session.CommandCopied, "always", nil)
	sc.add(session.EvidenceRead, "evidence "+s, signs.Evidence{From: signs.Source{Node: "n" + x, Pod: "p" + x, Container: "c" + x}, Reading: signs.Reading{
		Found: []signs.Found{{Name: "Panic", About: "about" + x, Means: "means" + x, Do: "do" + x, Line: "line" + x, Count: 1}}, Unknown: []report.Text{"unknown" + x}}})
	sc.add(session.EvidenceRead, "evidence "+s, signs.Evidence{From: signs.Source{Node: "other" + x}, Failed: "failed" + x})
	a := session.Action{ID: 1, Title: "act " + s, Object: "object " + s, Kubectl: "kubectl", Reverse: "no " + s, Diff: []string{s, "+"}, Effect: []string{"effect " + s}}
	sc.add(session.ActionConfirmed, s, a)
	a.Error = "error " + s
	sc.add(session.ActionFailed, s, a)
	f := report.Finding{Code: report.CrashLoop, Severity: report.Critical, Object: report.Object{Kind: "Pod", Namespace: "n", Name: "p" + x}, Node: "n" + x, Summary: "s" + x,
		Evidence: []report.Evidence{{Source: "source" + x, Value: "value" + x}}}
	k := report.WorkloadKey{Kind: "DaemonSet", Namespace: "a", Name: "b"}
	r := &report.Report{AsOf: at(0), Workloads: []report.Workload{{Kind: "DaemonSet", Namespace: "a", Name: "b", Findings: []report.Finding{f},
		Verdict: report.Verdict{Attribution: report.RolloutBreaksPods, Confidence: report.High, Summary: "sum" + x, For: []report.Text{x}, Against: []report.Text{"against" + x}, Missing: []report.Text{"missing" + x}}}},
		NotRead: []report.NotRead{{Resource: "r" + x, Namespace: "n" + x, Reason: "because" + x}}}
	v := runbook.View{Title: "book" + x, Steps: []runbook.StepView{{Title: "Step" + x, Visited: true, State: report.StepUnknown, Result: report.Result{Reason: "why" + x}}}}
	return Input{Entries: sc.entries, Report: r, Target: k, Guide: &v, Left: []report.Text{x}, Lost: "lost " + s}
}

// A reader sees the text as it was, every character of it.
func TestHostileTextIsShownAsItIs(t *testing.T) {
	t.Parallel()
	said := visible(t, "harmless")
	for _, s := range hostile {
		clean := string(report.Clean(s))
		if clean == "" {
			continue // shown as "(empty)" in places
		}
		if got, want := visible(t, s), strings.ReplaceAll(said, "harmless", strings.ReplaceAll(clean, " ", "")); got != want {
			t.Errorf("%q is not shown as it is:\n got %s\nwant %s", s, got, want)
		}
	}
}

// visible is what a reader of the page sees, without spaces.
func visible(t *testing.T, s string) string {
	t.Helper()
	page, err := Build(withText(s)).HTML()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " "))), "")
}

// structure is the tree of a Markdown document without its texts, as a renderer
// that links bare addresses sees it.
func structure(t testing.TB, md string) string {
	if t != nil {
		t.Helper()
	}
	var out bytes.Buffer
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(md)))
	depth := 0
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindText, ast.KindString:
			return ast.WalkContinue, nil
		}
		if entering {
			fmt.Fprintf(&out, "%s%s\n", strings.Repeat(" ", depth), n.Kind())
			depth++
		} else {
			depth--
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

func TestSecretsStayOutOfTheNotes(t *testing.T) {
	t.Parallel()
	md := Build(withText("password: hunter2 Bearer abcdefgh1234")).Markdown()
	if strings.Contains(md, "hunter2") || strings.Contains(md, "abcdefgh1234") || !strings.Contains(md, "hidden") {
		t.Error("a secret is in the notes")
	}
}

func TestJSONIsWhatTheMarkdownSays(t *testing.T) {
	t.Parallel()
	d := Build(play(t))
	b, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Document
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.Markdown() != d.Markdown() {
		t.Error("the JSON does not carry all that the Markdown shows")
	}
}

// The journal takes the guide's events under their own names.
func TestTheGuideAndTheJournalNameThingsAlike(t *testing.T) {
	t.Parallel()
	for event, kind := range map[runbook.EventKind]session.Kind{runbook.StepEntered: session.StepEntered, runbook.StepResult: session.StepResult,
		runbook.StepSkipped: session.StepSkipped, runbook.VerdictChanged: session.VerdictChanged} {
		if string(event) != string(kind) {
			t.Errorf("%s is %s in the journal", event, kind)
		}
	}
}

// The session begins before the cluster's clock is known; a laptop that is hours
// ahead does not put that at the end.
func TestEverythingIsOnTheClustersClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 3, 10, 0, 5, 0, time.UTC)
	laptop := at.Add(7 * time.Hour)
	d := Build(Input{Entries: []session.Entry{
		{Seq: 1, Wall: laptop.Add(-2 * time.Second), Kind: session.SessionStarted, Text: "session on prod", Data: session.Data(session.Started{Context: "prod"})},
		{Seq: 2, Wall: laptop, Cluster: &at, Kind: session.Note, Text: "later"},
	}})
	if len(d.Timeline) != 2 || d.Timeline[0].Text != "session on prod" || !d.Timeline[0].At.Equal(at.Add(-2*time.Second)) {
		t.Errorf("timeline %+v", d.Timeline)
	}
	if text := d.Markdown(); strings.Contains(text, "17:00") || strings.Contains(text, "16:59") {
		t.Errorf("the laptop's clock shows:\n%s", text)
	}
}
