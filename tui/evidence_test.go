package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
)

func TestLReadsTheLogsOfThePodInQuestion(t *testing.T) {
	t.Parallel()
	st := tuitest.Asked(6)
	st.Pods = st.Pods[:1]
	d := open(t, 100, 30, st)
	d.press("l")
	if want := (incident.ReadLogs{Namespace: "kube-system", Pod: "calico-node-x7k2p"}); d.last() != want {
		t.Errorf("sent %#v, want %#v", d.sent, want)
	}
}

func TestOfSeveralPodsOneIsChosenTheUnreadFirst(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Heard(6))
	d.press("l", "enter")
	if want := (incident.ReadLogs{Namespace: "kube-system", Pod: "calico-node-b4kqz"}); d.last() != want {
		t.Errorf("sent %#v, want %#v", d.sent, want)
	}
}

func TestLogsAndConsolesAreInThePaletteOfEveryStep(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Asked(2))
	d.press("/")
	d.typed("x7k2p")
	d.press("enter")
	if _, ok := d.last().(incident.ReadLogs); !ok {
		t.Errorf("sent %#v\n%s", d.sent, d.screen())
	}
	d.press("/")
	d.typed("node-011")
	d.press("down", "enter") // the first is the node's page
	d.sees("Console of node-011")
}

func TestWhereNothingIsAskedTheKeysSayWhy(t *testing.T) {
	t.Parallel()
	alone := tuitest.Asked(6)
	alone.Pods = nil
	whole := tuitest.Asked(7)
	whole.Consoles = nil
	for _, x := range []struct {
		st   *incident.State
		key  string
		says string
	}{
		{tuitest.Asked(4), "l", "asks for no logs"}, {tuitest.Asked(4), "p", "asks for no console"}, {alone, "l", "no Pod is in question"}, {whole, "p", "no node needs its console"},
	} {
		d := open(t, 100, 30, x.st)
		d.press(x.key)
		if d.sees(x.says); len(d.sent) != 0 {
			t.Errorf("%s sent %#v", x.key, d.sent)
		}
		d.press("?")
		d.misses("read the logs of the Pod in question", "paste what the node's console printed")
	}
	d := open(t, 100, 40, tuitest.Asked(6))
	d.press("?")
	d.sees("read the logs of the Pod in question")
}

func TestAConsoleIsPastedAsItIsAndHandedOverByOneKey(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Asked(7))
	d.press("p", "down", "enter", "ctrl+d") // nothing yet
	d.sees("Console of node-011", "nothing yet")
	d.send(tea.PasteMsg{Content: tuitest.Console})
	d.sees("No route to host", "4 lines")
	d.misses("\x1b")
	d.typed("qyF?") // as a terminal pastes that knows no paste
	d.press("enter")
	d.typed("ok")
	d.press("x", "backspace")
	if len(d.sent) != 0 || d.quit {
		t.Fatalf("what was pasted was taken for keys: %#v", d.sent)
	}
	d.press("ctrl+d")
	want := incident.PasteConsole{Node: "node-011", Text: strings.ReplaceAll(tuitest.Console, "\r\n", "\n") + "qyF?\nok"}
	if d.last() != want || len(d.sent) != 1 {
		t.Errorf("sent %#v, want %#v", d.sent, want)
	}
	d.misses("Console of node-011")
}

func TestAPasteThatIsCancelledSendsNothing(t *testing.T) {
	t.Parallel()
	st := tuitest.Asked(7)
	st.Consoles = st.Consoles[:1]
	d := open(t, 100, 30, st)
	d.press("p")
	d.typed("something")
	d.press("esc")
	if d.misses("Console of"); len(d.sent) != 0 {
		t.Errorf("sent %#v", d.sent)
	}
}

func TestTheFactsOfANodeTakeItsConsole(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Cascade()) // no checklist is open
	d.press("/")
	d.typed("node-001")
	d.press("enter")
	d.sees("Node node-001", "p paste")
	d.press("p")
	d.send(tea.PasteMsg{Content: "ok"})
	d.press("ctrl+d")
	if want := (incident.PasteConsole{Node: "node-001", Text: "ok"}); d.last() != want {
		t.Errorf("sent %#v", d.sent)
	}
}

func TestAHugePasteStaysQuickAndScrolls(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.Asked(7))
	d.press("p", "enter")
	for range 6 {
		d.send(tea.PasteMsg{Content: "first line\n" + strings.Repeat("0123456789\n", 100_000) + "last line"})
	}
	d.sees("last line")
	d.press("pgup")
	d.misses("last line")
	d.press("pgdown")
	d.sees("last line")
	d.press("ctrl+d")
	if p := d.last().(incident.PasteConsole); len(p.Text) > 4<<20 || !strings.HasSuffix(p.Text, "last line") {
		t.Errorf("%d bytes", len(p.Text))
	}
}
