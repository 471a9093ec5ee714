package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// fakeLogs are containers' logs by "pod/container", "pod/container/previous".
type fakeLogs struct {
	says  map[string]string
	fail  map[string]error
	wait  func(ctx context.Context) error
	asked []string
}

func (f *fakeLogs) Logs(ctx context.Context, q action.LogRequest) (action.Log, error) {
	k := q.Pod + "/" + q.Container
	if q.Previous {
		k += "/previous"
	}
	f.asked = append(f.asked, k)
	if f.wait != nil {
		if err := f.wait(ctx); err != nil {
			return action.Log{}, err
		}
	}
	if err := f.fail[k]; err != nil {
		return action.Log{}, err
	}
	if q.Lines == 0 || q.Bytes == 0 {
		return action.Log{}, fmt.Errorf("unbounded")
	}
	var log action.Log
	for _, l := range strings.Split(f.says[k], "\n") {
		log.Lines = append(log.Lines, report.Clean(l))
	}
	return log, nil
}

const (
	refused = "2026-07-03T09:59:58Z dial tcp 10.0.0.1:6443: connect: connection refused, password=" + password
	chatter = "2026-07-03T09:59:57Z all is well, and nobody needs to keep this"
)

// listening is a tester with a checklist that asks for logs and consoles: of the
// Pods on node-1 and node-2, and of node-3.
func listening(t *testing.T) (*tester, *fakeLogs) {
	t.Helper()
	x := newTester(t)
	for _, p := range x.w.pods {
		p.Spec.InitContainers = []corev1.Container{{Name: "install"}}
		p.Spec.Containers = []corev1.Container{{Name: "agent"}, {Name: "driver"}}
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "install", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "agent", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: ended, RestartCount: 1},
			{Name: "driver", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}
	}
	logs := &fakeLogs{says: map[string]string{}}
	x.loop.cfg.Logs = logs
	b, err := runbook.Parse("listen.yaml", []byte(`
id: listen
title: A test
applies: {when: "nodesDown >= 0", priority: 2}
steps:
  - {id: pod, title: "Pod?", probe: new-pod, why: why, read: read, trap: trap, commands: [{says: s, run: kubectl get pods}],
     unanswered: [{ask: "What do its logs say?", because: nobody asked., by: logs, commands: [{says: l, run: kubectl logs p}]}]}
  - {id: console, title: "Console?", probe: node-console, why: why, read: read, trap: trap, commands: [{says: s, run: crictl ps}]}
`), runbook.Names{})
	if err != nil {
		t.Fatal(err)
	}
	x.loop.cfg.Books = append(x.loop.cfg.Books, b)
	x.listen(x.loop)
	x.after(0)
	if st := x.handle(OpenWorkload{Workload: agent}); st.Guide == nil || st.Guide.ID != "listen" {
		t.Fatalf("said %q", said(st))
	}
	return x, logs
}

func (x *tester) listen(l *Loop) {
	l.probes = map[string]probes.Probe{
		"new-pod": func(*probes.Diagnosis, report.WorkloadKey) report.Result { return report.Result{State: report.StepOK} },
		"node-console": func(*probes.Diagnosis, report.WorkloadKey) report.Result {
			return report.Result{State: report.StepUnknown, Reason: "paste"}
		},
	}
	l.pods = func(*probes.Diagnosis, report.WorkloadKey) []probes.AskedPod {
		return []probes.AskedPod{{Pod: x.w.pods[0], Why: "CrashLoop", Reachable: true}, {Pod: x.w.pods[1], Why: "CrashLoop", Reachable: true}}
	}
	l.consoles = func(*probes.Diagnosis) []string { return []string{"node-2", "node-3"} }
}

// shown is a step as it is read: its state, reason and lines.
func shown(st *State, step int) string {
	s := st.Guide.Steps[step]
	out := fmt.Sprintf("%s %s\n", s.State, s.Result.Reason)
	for _, l := range s.Result.Lines {
		out += fmt.Sprintf("%s%s %s\n", strings.Repeat("  ", l.Indent), l.State, l.Text)
	}
	return out
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("does not say %q:\n%s", w, text)
		}
	}
}

func TestLogsOfAPodAreReadAndAnswerTheStep(t *testing.T) {
	t.Parallel()
	x, logs := listening(t)
	logs.says["agent-node-1/agent/previous"] = chatter + "\n" + refused + "\n" + refused
	if before := shown(x.loop.State(), 0); !strings.Contains(before, "Unknown") || !strings.Contains(before, "What do its logs say? Not looked at") {
		t.Fatalf("before:\n%s", before)
	}
	st := x.handle(ReadLogs{}) // the first Pod in question
	want := []string{"agent-node-1/install", "agent-node-1/agent/previous", "agent-node-1/agent"}
	if !slices.Equal(logs.asked, want) {
		t.Errorf("asked %q, want %q", logs.asked, want)
	}
	got := shown(st, 0)
	contains(t, got, "Anomaly \n", "previous log of agent in agent-node-1: ConnectionRefused 10.0.0.1:6443, 2 lines, 09:59:58", "nothing listens on that port",
		"log of driver in agent-node-1: it has not run yet (ImagePullBackOff)")
	if strings.Contains(got, "Not looked at") || !slices.Contains(st.Guide.Steps[0].Commands, "kubectl logs p") || len(st.Guide.Steps[0].Unanswered) != 0 {
		t.Errorf("the question is still open, or its commands are gone: %v\n%s", st.Guide.Steps[0], got)
	}
	if !st.Pods[0].Read || st.Pods[1].Read || len(st.Evidence) != 4 || st.Said.Bad || !strings.Contains(said(st), "logs of agent-node-1: ConnectionRefused") {
		t.Errorf("pods %+v, %d sources, said %q", st.Pods, len(st.Evidence), said(st))
	}
	if !x.journal.has(session.EvidenceRead, session.EvidenceRead, session.EvidenceRead, session.EvidenceRead) {
		t.Errorf("journal %v", x.journal.kinds())
	}
	for _, text := range []string{x.journal.text(), got} {
		if strings.Contains(text, password) || strings.Contains(text, "nobody needs to keep this") {
			t.Errorf("a secret or the whole log was kept:\n%s", text)
		}
	}
}

func TestSilenceAnswersOnlyWhenEveryPodWasRead(t *testing.T) {
	t.Parallel()
	x, _ := listening(t)
	st := x.handle(ReadLogs{Pod: "agent-node-1"})
	got := shown(st, 0)
	contains(t, got, "log of agent in agent-node-1: no known sign", "1 more Pod in question whose logs were not read", "Not looked at")
	if st.Guide.Steps[0].State != report.StepUnknown {
		t.Errorf("state %s", st.Guide.Steps[0].State)
	}
	st = x.handle(ReadLogs{Pod: "agent-node-2"})
	if got = shown(st, 0); strings.Contains(got, "Not looked at") || st.Guide.Steps[0].State != report.StepOK {
		t.Errorf("after all were read:\n%s", got)
	}
}

func TestALogThatCannotBeReadIsOneClearLineAndNoAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		says string
	}{
		{fmt.Errorf("cannot read the log of container agent in Pod/kube-system/agent-node-1: %w: alice may not get pods/log", action.ErrForbidden), "ask for the right to get pods/log"},
		{fmt.Errorf("cannot read the log of container agent in Pod/kube-system/agent-node-1: dial tcp 10.0.0.5:10250: i/o timeout"), "crictl logs"},
	} {
		x, logs := listening(t)
		logs.fail = map[string]error{}
		logs.fail["agent-node-1/agent"] = c.err
		st := x.handle(ReadLogs{Pod: "agent-node-1"})
		if !st.Said.Bad || !strings.Contains(said(st), c.err.Error()) || !strings.Contains(said(st), c.says) || strings.Contains(said(st), "\n") {
			t.Errorf("said %q", said(st))
		}
		contains(t, shown(st, 0), "Unknown log of agent in agent-node-1: cannot read", "Not looked at")
		if st.Pods[0].Read {
			t.Error("it counts as read")
		}
	}
}

func TestWhereNoPodIsInQuestionNoLogIsAskedFor(t *testing.T) {
	t.Parallel()
	x, _ := listening(t)
	x.loop.pods = func(*probes.Diagnosis, report.WorkloadKey) []probes.AskedPod { return nil }
	got := shown(x.after(time.Second), 0)
	if contains(t, got, "OK \n", "no Pod is in question"); strings.Contains(got, "Not looked at") {
		t.Error(got)
	}
	x.loop.cfg.Logs = nil // as with files: nobody can say
	contains(t, shown(x.after(time.Second), 0), "Unknown", "Not looked at")
}

func TestAKubeletThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	t.Parallel()
	x, logs := listening(t)
	logs.fail = map[string]error{"agent-node-1/install": action.ErrUnreachable}
	if x.handle(ReadLogs{}); len(logs.asked) != 1 {
		t.Errorf("asked %q", logs.asked)
	}
}

func TestOneContainerCanBeReadAlone(t *testing.T) {
	t.Parallel()
	x, logs := listening(t)
	x.handle(ReadLogs{Namespace: "kube-system", Pod: "agent-node-2", Container: "driver", Previous: true})
	if !slices.Equal(logs.asked, []string{"agent-node-2/driver/previous"}) {
		t.Errorf("asked %q", logs.asked)
	}
}

func TestWhatCannotBeHeardIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   Intent
		bend func(*tester)
		says string
	}{
		"no cluster":         {ReadLogs{Pod: "agent-node-1"}, func(x *tester) { x.loop.cfg.Logs = nil }, "no cluster to read logs from"},
		"a Pod that is gone": {ReadLogs{Pod: "nobody"}, nil, "Pod kube-system/nobody is not in the picture"},
		"another container":  {ReadLogs{Pod: "agent-node-1", Container: "x"}, nil, "has no container x; it has install, agent, driver"},
		"no Pod in question": {ReadLogs{}, func(x *tester) {
			x.loop.pods = func(*probes.Diagnosis, report.WorkloadKey) []probes.AskedPod { return nil }
		}, "no Pod is in question"},
		"nothing pasted":  {PasteConsole{Node: "node-1", Text: " \x1b[31m\n"}, nil, "nothing was pasted"},
		"no node named":   {PasteConsole{Text: "x"}, nil, "name the node"},
		"an unknown node": {PasteConsole{Node: "node-9\x1b[2J", Text: "x"}, nil, "there is no node node-9"},
	} {
		x, _ := listening(t)
		if c.bend != nil {
			c.bend(x)
		}
		if st := x.handle(c.do); st.Said == nil || !st.Said.Bad || !strings.Contains(said(st), c.says) || len(st.Evidence) != 0 {
			t.Errorf("%s: said %q", name, said(st))
		}
	}
}

func TestAPastedConsoleAnswersItsStep(t *testing.T) {
	t.Parallel()
	x, _ := listening(t)
	st := x.handle(PasteConsole{Node: "node-3", Text: "root@node-3:~# ip route\r\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5\r\n\x1b[31mping: connect: Network is unreachable\x1b[0m\r\nsecret token=" + password})
	got := shown(st, 1)
	contains(t, got, "Anomaly \n", "console of node-3: NoDefaultRoute", "console of node-3: NetworkUnreachable", "“ping: connect: Network is unreachable”", "nothing was pasted yet of node-2")
	if strings.Contains(got+x.journal.text(), password) || strings.Contains(got, "\x1b") {
		t.Errorf("a secret or a control character:\n%s", got)
	}
	if len(st.Consoles) != 2 || len(st.Evidence) != 1 || !x.journal.has(session.EvidenceRead) {
		t.Errorf("consoles %q, evidence %+v", st.Consoles, st.Evidence)
	}
	// A second paste of the same node takes the place of the first.
	st = x.handle(PasteConsole{Node: "node-3", Text: "nothing to see"})
	contains(t, shown(st, 1), "Unknown no known sign so far; nothing was pasted yet of node-2", "console of node-3: no known sign in 1 line")
	st = x.handle(PasteConsole{Node: "node-2", Text: "ok"})
	if contains(t, shown(st, 1), "OK \n", "APIAnswers"); len(st.Evidence) != 2 {
		t.Errorf("%d sources", len(st.Evidence))
	}
}

func TestAHugePasteIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	x, _ := listening(t)
	st := x.handle(PasteConsole{Node: "node-3", Text: "cni plugin not initialized\n" + strings.Repeat("chatter\n", 200_000) + "ping: connect: Network is unreachable"})
	if e := st.Evidence[0]; !e.Cut || len(e.Found) != 1 || e.Found[0].Name != "NetworkUnreachable" || e.Lines > pasteBytes/8+2 {
		t.Errorf("cut %v, %d lines, found %+v", e.Cut, e.Lines, e.Found)
	}
}

func TestEvidenceIsThereAgainAfterAResume(t *testing.T) {
	t.Parallel()
	x, logs := listening(t)
	logs.says["agent-node-1/agent"] = refused
	x.handle(ReadLogs{Pod: "agent-node-1"})
	st := x.handle(PasteConsole{Node: "node-3", Text: "PLEG is not healthy: pleg was last seen active 3m0s ago"})
	books := x.loop.cfg.Books
	l := New(Config{API: x.api, Logs: logs, Journal: x.journal, Clock: x, Books: books, Earlier: x.journal.entries})
	l.diagnose = x.w.diagnose
	x.listen(l)
	again := l.Observe(x.w.snapshot())
	if len(again.Evidence) != len(st.Evidence) || again.Guide == nil || shown(again, 0) != shown(st, 0) || shown(again, 1) != shown(st, 1) {
		t.Errorf("%d sources of %d\n%s\nwant\n%s", len(again.Evidence), len(st.Evidence), shown(again, 0), shown(st, 0))
	}
}

func TestPicturesGoOnWhileAKubeletDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		answer := make(chan struct{})
		logs := &fakeLogs{wait: func(ctx context.Context) error {
			if end, ok := ctx.Deadline(); !ok || time.Until(end) > logTime {
				t.Errorf("it may take until %s", end)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-answer:
				return context.DeadlineExceeded
			}
		}}
		r.loop.cfg.Logs = logs
		r.w.pods[0].Spec.Containers = []corev1.Container{{Name: "agent"}}
		r.w.pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		r.picture(0)
		ask := ReadLogs{Namespace: "kube-system", Pod: "agent-node-1"}
		st := r.send(ask)
		if !strings.Contains(said(st), "reading the logs of agent-node-1") {
			t.Errorf("said %q", said(st))
		}
		if st = r.picture(time.Second); !st.Report.AsOf.Equal(r.w.now) {
			t.Error("the loop stands still while a log is read")
		}
		if st = r.send(ask); !strings.Contains(said(st), "are being read") || len(logs.asked) != 1 {
			t.Errorf("asked %q, said %q", logs.asked, said(st))
		}
		answer <- struct{}{}
		if st = r.look(); len(st.Evidence) != 1 || st.Evidence[0].Failed == "" || !st.Said.Bad {
			t.Errorf("evidence %+v, said %q", st.Evidence, said(st))
		}
		if r.send(ask); len(logs.asked) != 2 {
			t.Error("it cannot be asked again")
		}
		r.stop() // while the second hangs
		if !r.journal.has(session.EvidenceRead, session.SessionEnded) {
			t.Errorf("journal %v", r.journal.kinds())
		}
	})
}
