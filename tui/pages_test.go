package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
)

func TestKeysSendIntents(t *testing.T) {
	t.Parallel()
	triage, step := tuitest.Cascade, func() *incident.State { return tuitest.Checklist(4) }
	logs := report.WorkloadKey{Kind: "DaemonSet", Namespace: "logging", Name: "node-logs"}
	for _, x := range []struct {
		name string
		st   func() *incident.State
		keys []string
		want incident.Intent
	}{
		{"enter opens the selected workload", triage, []string{"enter"}, incident.OpenWorkload{Workload: tuitest.Calico}},
		{"the cursor moves", triage, []string{"down", "enter"}, incident.OpenWorkload{Workload: logs}},
		{"the cursor stops at the ends", triage, []string{"down", "down", "down", "down", "up", "enter"}, incident.OpenWorkload{Workload: logs}},
		{"F freezes what the verdict names", triage, []string{"down", "F"}, incident.Act{Request: action.Request{Kind: action.Freeze, Workload: tuitest.Calico}}},
		{"a acts on the selected one", triage, []string{"a", "down", "enter"}, incident.Act{Request: action.Request{Kind: action.RollBack, Workload: tuitest.Calico, ToRevision: 6}}},
		{"roll back to a chosen revision", triage, []string{"a", "down", "down", "enter", "down", "enter"}, incident.Act{Request: action.Request{Kind: action.RollBack, Workload: tuitest.Calico, ToRevision: 5}}},
		{"delete the proposed Pod", triage, []string{"a", "down", "down", "down", "enter"}, incident.Act{Request: action.Request{Kind: action.DeletePod, Workload: tuitest.Calico, Pod: "calico-node-b4kqz"}}},
		{"delete a chosen Pod", triage, []string{"a", "down", "down", "down", "down", "enter", "down", "down", "enter"}, incident.Act{Request: action.Request{Kind: action.DeletePod, Workload: tuitest.Calico, Pod: "calico-node-c4kqz"}}},
		{"delete another Pod", triage, []string{"a", "down", "down", "down", "down", "enter", "end", "enter", "p", "o", "d", "enter"}, incident.Act{Request: action.Request{Kind: action.DeletePod, Workload: tuitest.Calico, Pod: "pod"}}},
		{"copy what suspends the owner", triage, []string{"a", "down", "down", "down", "down", "down", "enter"}, incident.Copied{Command: "argocd app set network --sync-policy none"}},
		{"filter, then open", triage, []string{"f", "l", "o", "g", "enter"}, incident.OpenWorkload{Workload: logs}},
		{"find a workload", triage, []string{"/", "l", "o", "g", "s", "enter"}, incident.OpenWorkload{Workload: logs}},
		{"next", step, []string{"enter"}, incident.NextStep{}},
		{"back", step, []string{"b"}, incident.PreviousStep{}},
		{"back from the first step", func() *incident.State { return tuitest.Checklist(1) }, []string{"b"}, incident.CloseWorkload{}},
		{"esc goes to triage", step, []string{"esc"}, incident.CloseWorkload{}},
		{"skip with a reason", step, []string{"s", "o", "k", "enter"}, incident.SkipStep{Why: "ok"}},
		{"any step", step, []string{"tab", "down", "enter"}, incident.GoToStep{Step: "nodes-say"}},
		{"find a step", step, []string{"/", "p", "r", "o", "v", "e", "enter"}, incident.GoToStep{Step: "prove"}},
		{"freeze in the checklist", step, []string{"F"}, incident.Act{Request: action.Request{Kind: action.Freeze, Workload: tuitest.Calico}}},
		{"freeze in the timeline", step, []string{"t", "F"}, incident.Act{Request: action.Request{Kind: action.Freeze, Workload: tuitest.Calico}}},
		{"a step's action comes first", func() *incident.State { return tuitest.Checklist(2) }, []string{"a", "enter"}, incident.Act{Request: action.Request{Kind: action.Freeze, Workload: tuitest.Calico}}},
		{"note", step, []string{"n", "h", "i", "enter"}, incident.Note{Text: "hi"}},
		{"export to the default place", step, []string{"x", "enter"}, incident.WriteNotes{}},
		{"export to a path", step, []string{"x", "/", "t", "enter"}, incident.WriteNotes{Path: "/t"}},
		{"retry", tuitest.Lost, []string{"r"}, incident.Retry{}},
		{"retry the first connection", tuitest.NoCluster, []string{"r"}, incident.Retry{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, 120, 40, x.st())
			d.press(x.keys...)
			if d.last() != x.want {
				t.Errorf("sent %#v, want %#v\n%s", d.sent, x.want, d.screen())
			}
		})
	}
}

func TestKeysThatSendNothing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		st   *incident.State
		keys []string
		says string
	}{
		{"an empty note", tuitest.Cascade(), []string{"n", "enter"}, "A note"},
		{"a cancelled note", tuitest.Cascade(), []string{"n", "x", "esc"}, "SPREADING"},
		{"actions wait while the link is lost", tuitest.Lost(), []string{"F"}, "actions wait"},
		{"retry while it lives", tuitest.Cascade(), []string{"r"}, "the connection is alive"},
		{"nothing to copy", tuitest.Checklist(9), []string{"y"}, "no command"},
		{"the last step", tuitest.Checklist(11), []string{"enter"}, "last step"},
		{"no progress", tuitest.Cascade(), []string{"P"}, "no action was applied"},
		{"what cannot be frozen", frozen(), []string{"F"}, "frozen already"},
		{"keys before the picture", tuitest.Loading(), []string{"enter", "F", "a", "n"}, "Reading prod-eu-1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, 100, 30, x.st)
			d.press(x.keys...)
			if len(d.sent) != 0 {
				t.Errorf("sent %#v", d.sent)
			}
			d.sees(x.says)
		})
	}
}

func frozen() *incident.State {
	s := tuitest.Checklist(4)
	s.Report.Workloads[0].Rollout.Strategy = "OnDelete"
	s.Report.Workloads[0].Rollout.Spreading = false
	return s
}

func TestTheCursorStaysOnItsWorkload(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	d.press("down")
	st := tuitest.Cascade()
	w := st.Report.Workloads
	st.Report.Workloads = []report.Workload{w[1], w[2], w[0]}
	d.send(StateMsg{st})
	d.press("enter")
	if got := d.last().(incident.OpenWorkload).Workload.Name; got != "node-logs" {
		t.Errorf("opened %s", got)
	}
}

func TestALongListShowsOnlyItsWindow(t *testing.T) {
	t.Parallel()
	st := tuitest.Cascade()
	for i := range 5000 {
		w := st.Report.Workloads[1]
		w.Name = report.Textf("agent-%04d", i)
		st.Report.Workloads = append(st.Report.Workloads, w)
	}
	d := open(t, 80, 24, st)
	d.press("end")
	d.sees("▸ ! agent-4999")
	d.press("pgup", "home")
	d.sees("▸ ✗ calico-node", "SPREADING")
}

func TestCopyGoesToBothClipboardsAndSaysSo(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Checklist(1))
	d.press("y")
	want := "kubectl get daemonsets,deployments,statefulsets -A"
	if len(d.copied) != 1 || d.copied[0] != want || d.osc != 1 || d.last() != (incident.Copied{Command: want}) {
		t.Fatalf("copied %q, %d to the terminal, sent %v", d.copied, d.osc, d.sent)
	}
	d.sees("copied to the system clipboard", "OSC 52")

	d = open(t, 100, 30, tuitest.Checklist(4), func(o *Options) { o.Clipboard = func(string) error { return errors.New("no xclip. install it") } })
	d.press("y", "down", "enter")
	if d.osc != 1 || d.last() != (incident.Copied{Command: "kubectl get nodes -o wide"}) {
		t.Fatalf("%d to the terminal, sent %v", d.osc, d.sent)
	}
	d.sees("sent to the terminal (OSC 52)", "no xclip")
}

func TestHelpListsExactlyTheKeysThatWork(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*incident.State{"triage": tuitest.Cascade(), "checklist": tuitest.Checklist(4), "quiet": tuitest.Quiet(), "last step": tuitest.Checklist(11), "no cluster": tuitest.NoCluster()} {
		d := open(t, 120, 60, st)
		scope := d.m.page()
		var listed, not []string
		for _, b := range keymap.In(scope) {
			if ok, _ := d.m.works(b.Command); ok {
				listed = append(listed, b.Help)
			} else {
				not = append(not, b.Help)
			}
		}
		d.press("?")
		s := d.screen()
		for _, h := range listed {
			if !strings.Contains(s, h) && h != "up" && h != "down" && !strings.HasPrefix(h, "one page") && !strings.HasPrefix(h, "to the") {
				t.Errorf("%s: the help does not list %q", name, h)
			}
		}
		for _, h := range not {
			if strings.Contains(s, h) {
				t.Errorf("%s: the help lists %q, which does not work here", name, h)
			}
		}
	}
}

func TestQuitAsksOnlyWhileAnActionRuns(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	if d.press("q"); !d.quit {
		t.Error("q does not leave")
	}
	d = open(t, 100, 30, tuitest.Rolling())
	if d.press("q"); d.quit {
		t.Fatal("q left while an action is running")
	}
	d.press("enter") // stay
	if d.quit {
		t.Fatal("the first answer is not to stay")
	}
	if d.press("ctrl+c", "down", "enter"); !d.quit {
		t.Error("it does not leave when told to")
	}
}

func TestMouseSelectsAndOpens(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	row := -1
	for i, l := range strings.Split(d.screen(), "\n") {
		if strings.Contains(l, "node-logs") && strings.Contains(l, "410/412") {
			row = i
		}
	}
	d.send(tea.MouseClickMsg{X: 8, Y: row, Button: tea.MouseLeft})
	d.sees("▸ ! node-logs")
	if len(d.sent) != 0 {
		t.Fatal("one click opened it")
	}
	d.send(tea.MouseClickMsg{X: 8, Y: row, Button: tea.MouseLeft})
	if i, ok := d.last().(incident.OpenWorkload); !ok || i.Workload.Name != "node-logs" {
		t.Errorf("sent %v", d.sent)
	}
	d.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	d.sees("▸ ✗ calico-node")
	d.send(tea.MouseClickMsg{X: 999, Y: 999, Button: tea.MouseLeft})

	d = open(t, 120, 40, tuitest.Checklist(4))
	for i, l := range strings.Split(d.screen(), "\n") {
		if strings.Contains(l, "8 What changed?") {
			d.send(tea.MouseClickMsg{X: 5, Y: i, Button: tea.MouseLeft})
		}
	}
	if d.last() != (incident.GoToStep{Step: "changed"}) {
		t.Errorf("sent %v", d.sent)
	}
}

func TestANodeIsFoundAndItsFactsShown(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 40, tuitest.Cascade())
	d.press("/")
	d.typed("node-077")
	d.press("enter")
	d.sees("Node node-077", "was broken before the rollout", "Ready=Unknown since yesterday", "Lease.spec.renewTime")
	if len(d.sent) != 0 {
		t.Errorf("looking at a node sent %v", d.sent)
	}
}

func TestThePaletteRanksTheBestMatchFirst(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Checklist(4))
	d.press("/")
	d.typed("csi")
	d.sees("▸ workload    · csi-node")
	d.press("esc", "/")
	d.typed("zzzz")
	d.sees("nothing has such a name")
	d.press("enter") // nothing to take
	d.sees("nothing has such a name")
}

func TestTheTimelineMovesZoomsAndFilters(t *testing.T) {
	t.Parallel()
	d := open(t, 120, 40, tuitest.Checklist(4))
	d.press("t")
	d.sees("13 of 13 lanes", "02:14:31 now", "02:09:30 to 02:14:31")
	d.press("left")
	d.misses("02:14:31 now")
	d.press("right")
	d.sees("02:14:31 now")
	d.press("f")
	d.sees("nodes that fell: 12 of 13 lanes")
	d.misses("node-012")
	d.press("+")
	d.sees("02:12:00 to 02:14:31")
	d.press("-")
	d.sees("02:09:30 to 02:14:31")
	for range 120 {
		d.press("left")
	}
	d.sees("┃ 02:09:30")
	d.press("esc")
	d.sees("4/11", "Does the timeline fit?")
}

func TestTheTimelineFollowsWhileItsCursorIsAtTheEnd(t *testing.T) {
	t.Parallel()
	d := open(t, 120, 40, tuitest.Checklist(4))
	d.press("t", "+")
	later := tuitest.Checklist(4)
	later.Report.Workloads[0].Timeline.To = report.Time{Time: tuitest.At(2, 15, 1)}
	d.send(StateMsg{later})
	d.sees("02:15:01 now", "to 02:15:01")
	d.press("left")
	d.send(StateMsg{tuitest.Checklist(4)})
	d.misses("02:14:31 now")
}

func TestTheBannerCountsHowLongTheLinkIsLost(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	d.misses("not reachable")
	d.send(StateMsg{tuitest.Lost()})
	d.wait(7 * time.Second)
	d.sees("API server not reachable for 7 s, showing 02:14:31; actions wait", "SPREADING")
	if len(d.timers) == 0 {
		t.Error("nothing draws the banner anew")
	}
	d.send(StateMsg{tuitest.Cascade()})
	d.misses("not reachable")
	d.wait(time.Second)
	if len(d.timers) != 0 {
		t.Error("it goes on ticking after the link is back")
	}
}

func TestNothingIsFinalWhileItIsBeingRead(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Partly())
	d.sees("READING", "events, pods: not read to the end", "24/412…", "44 others fine so far")

	st := tuitest.Quiet()
	st.Report.Waiting = []report.Text{"nodes"}
	st.Report.Nodes = report.NodeCounts{}
	d = open(t, 100, 30, st)
	d.sees("nodes being read")
	d.misses("Nothing is wrong", "0 nodes", "0 Ready")
}

func TestAPictureThatIsGoneTakesWhatItShowedAlong(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"t"}, {"v"}, {"t", "enter"}, {"/"}, {"a"}, {"tab"}} {
		d := open(t, 100, 30, tuitest.Checklist(4))
		d.press(keys...)
		d.send(StateMsg{tuitest.NoCluster()})
		d.sees("No picture of prod-eu-1")
		d.press("enter", "down", "q")
		if !d.quit {
			t.Errorf("%v: something still has the keys", keys)
		}
	}
}

func TestWhatWasSaidStaysForAMoment(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	st := tuitest.Cascade()
	st.Said = &incident.Said{At: d.now, Text: "notes written to /tmp/notes.md"}
	d.send(StateMsg{st})
	d.press("down") // a key that was on its way
	d.sees("notes written to /tmp/notes.md")
	d.wait(2 * time.Second)
	d.press("down")
	d.misses("notes written")
}

func TestAPodThatIsGoingIsNotOfferedFirst(t *testing.T) {
	t.Parallel()
	st := tuitest.Cascade()
	w := st.Report.Workload(tuitest.Calico)
	w.Findings = append([]report.Finding{{Code: report.StuckTerminating, Node: "node-0", Object: report.Object{Kind: "Pod", Namespace: w.Namespace, Name: "calico-node-going"}}}, w.Findings...)
	d := open(t, 100, 40, st)
	menu := d.m.pods(tuitest.Calico)
	d.m.push(menu)
	d.sees("calico-node-going", "node-0: is being deleted already")
	d.press("enter")
	if a, ok := d.last().(incident.Act); !ok || a.Request.Pod == "calico-node-going" || a.Request.Pod == "" {
		t.Errorf("the first choice is %+v", d.last())
	}
}

func TestAJournalThatIsNotKeptHidesNoAnswer(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade())
	st := tuitest.Cascade()
	st.Unkept = "cannot write the journal in /state: no space left on device"
	d.send(StateMsg{st})
	d.sees("not on the disk", "no space left")
	again := tuitest.Cascade()
	again.Unkept, again.Said = st.Unkept, &incident.Said{At: d.now, Bad: true, Text: "refused: the object has changed"}
	d.send(StateMsg{again})
	d.sees("refused: the object has changed")
}

func TestALongRefusalIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Cascade())
	st := tuitest.Cascade()
	st.Said = &incident.Said{At: d.now, Bad: true, Text: "RollBack calico-node: the DaemonSet controller has seen generation 5 of kube-system/calico-node but not yet 6, so what it would replace cannot be predicted: wait for it"}
	d.send(StateMsg{st})
	d.sees("✗ RollBack calico-node", "wait for it")
}

func TestTheNamedWorkloadOpensOnceItCan(t *testing.T) {
	t.Parallel()
	o := incident.OpenWorkload{Workload: tuitest.Calico}
	d := open(t, 100, 30, tuitest.Loading(), func(x *Options) { x.Open = &o })
	if len(d.sent) != 0 {
		t.Fatal("asked before there is a picture")
	}
	st := tuitest.Quiet()
	st.Report.Waiting = []report.Text{"daemonsets"}
	d.send(StateMsg{st})
	if len(d.sent) != 0 {
		t.Fatal("asked while DaemonSets are being read")
	}
	d.send(StateMsg{tuitest.Cascade()})
	d.send(StateMsg{tuitest.Cascade()})
	if len(d.sent) != 1 || d.sent[0] != o {
		t.Errorf("sent %v", d.sent)
	}
}

func TestNoKeysBreakAnyScene(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, b := range keymap.Table {
		keys = append(keys, b.Keys...)
	}
	rapid.Check(t, func(r *rapid.T) {
		s := scenes[rapid.IntRange(0, len(scenes)-1).Draw(r, "scene")]
		d := open(t, 80, 24, s.st())
		if s.then != nil {
			s.then(d)
		}
		d.press(rapid.SliceOfN(rapid.SampledFrom(keys), 1, 12).Draw(r, "keys")...)
		d.send(StateMsg{s.st()})
		lines := strings.Split(d.screen(), "\n")
		if len(lines) != 24 {
			r.Fatalf("%s: %d lines", s.name, len(lines))
		}
		if len(confirmed(d)) != 0 && s.name != "confirm-key" {
			r.Fatalf("%s: confirmed %v", s.name, d.sent)
		}
	})
}
