package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
)

func confirmed(d *driver) []incident.Confirm {
	var out []incident.Confirm
	for _, i := range d.sent {
		if c, ok := i.(incident.Confirm); ok {
			out = append(out, c)
		}
	}
	return out
}

func cancels(d *driver) int {
	n := 0
	for _, i := range d.sent {
		if _, ok := i.(incident.Cancel); ok {
			n++
		}
	}
	return n
}

func TestOneKeyConfirmsAFreezeAfterAQuietMoment(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Freeze())
	d.sees("listens when the keyboard is quiet")
	d.wait(dialog.Quiet)
	d.sees("y do it", "any other key cancels")
	d.press("y")
	if c := confirmed(d); len(c) != 1 || c[0].Dialog != 1 {
		t.Fatalf("confirmed %v", c)
	}
	d.send(StateMsg{tuitest.Freeze()}) // an older picture arrives late
	d.misses("any other key cancels")
	if d.press("y"); len(confirmed(d)) != 1 {
		t.Error("a late picture of the same dialog was confirmed again")
	}
}

func TestKeysTypedAheadConfirmNothing(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Freeze())
	for range 20 { // a key that is held down
		d.press("y")
		d.wait(dialog.Quiet - time.Millisecond)
	}
	if len(confirmed(d)) != 0 || cancels(d) != 0 {
		t.Fatalf("sent %v", d.sent)
	}
	d.sees("listens when the keyboard is quiet")
	d.wait(time.Millisecond)
	d.press("y")
	if len(confirmed(d)) != 1 {
		t.Error("it does not listen after the quiet moment")
	}
}

func TestAPreviewThatArrivesMustBeReadFirst(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Asking())
	d.wait(time.Hour)
	d.press("y")
	d.send(StateMsg{tuitest.Freeze()})
	d.press("y")
	if len(confirmed(d)) != 0 {
		t.Fatal("confirmed before the preview could be read")
	}
	d.wait(dialog.Quiet)
	d.press("y")
	if len(confirmed(d)) != 1 {
		t.Error("not confirmed after the quiet moment")
	}
}

func TestAnyOtherKeyCancelsAFreeze(t *testing.T) {
	t.Parallel()
	for _, k := range []string{"n", "enter", "Y", "q", "F", "tab", "esc"} {
		d := open(t, 80, 40, tuitest.Freeze())
		d.wait(dialog.Quiet)
		d.press(k)
		if len(confirmed(d)) != 0 || cancels(d) != 1 {
			t.Errorf("%s: sent %v", k, d.sent)
		}
		d.sees("cancelled: nothing was changed")
	}
}

func TestEscCancelsAtOnce(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*incident.State{"asking": tuitest.Asking(), "one key": tuitest.Freeze(), "typed": tuitest.RollBack(), "blocked": tuitest.Blocked()} {
		d := open(t, 80, 24, st)
		d.press("esc")
		if cancels(d) != 1 {
			t.Errorf("%s: sent %v", name, d.sent)
		}
		d.misses("cancels")
	}
}

func TestScrollingALongPreviewDoesNotCancelIt(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 16, tuitest.Freeze())
	d.wait(dialog.Quiet)
	d.press("down", "pgdown", "end")
	d.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if cancels(d) != 0 {
		t.Fatalf("sent %v", d.sent)
	}
	d.sees("y do it")
	d.press("y")
	if len(confirmed(d)) != 1 {
		t.Error("not confirmed after scrolling")
	}
}

func TestAPasteNeverConfirms(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Freeze())
	d.wait(dialog.Quiet)
	d.send(tea.PasteMsg{Content: "y"})
	if len(confirmed(d)) != 0 || cancels(d) != 0 {
		t.Fatalf("a paste sent %v", d.sent)
	}
	d.press("y") // right after the paste
	if len(confirmed(d)) != 0 {
		t.Fatal("it listened right after a paste")
	}

	d = open(t, 80, 24, tuitest.RollBack())
	d.wait(dialog.Quiet)
	d.send(tea.PasteMsg{Content: "calico-node\n"})
	d.wait(dialog.Quiet)
	d.press("enter")
	if len(confirmed(d)) != 0 {
		t.Fatal("a pasted name confirmed")
	}
	d.sees("that is not it")
}

func TestTheTypedNameMustBeTheName(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.RollBack())
	d.typed("cal") // typed ahead: not taken
	d.wait(dialog.Quiet)
	d.press("enter")
	d.sees("that is not it")
	d.typed("calico-nodd")
	d.press("enter")
	if len(confirmed(d)) != 0 {
		t.Fatal("a wrong name confirmed")
	}
	d.press("backspace")
	d.typed("e")
	d.misses("that is not it")
	d.press("enter")
	if c := confirmed(d); len(c) != 1 || c[0] != (incident.Confirm{Dialog: 2, Typed: "calico-node"}) {
		t.Errorf("confirmed %v", c)
	}
}

func TestWhatIsBlockedCannotBeConfirmed(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Blocked())
	d.wait(dialog.Quiet)
	d.sees("CANNOT BE APPLIED", "bob may not patch daemonsets", "READ-ONLY", "dry run not sent")
	d.typed("calico-node")
	d.press("enter")
	if len(confirmed(d)) != 0 {
		t.Error("a blocked action was confirmed")
	}
}

func TestADialogThatCannotBeReadCannotBeConfirmed(t *testing.T) {
	t.Parallel()
	d := open(t, 50, 10, tuitest.Freeze())
	d.wait(dialog.Quiet)
	d.press("y")
	if len(confirmed(d)) != 0 {
		t.Fatal("confirmed on a terminal that is too small to read it")
	}
	d.sees("A dialog is open")
	d.press("esc")
	if cancels(d) != 1 {
		t.Error("esc does not cancel it")
	}
}

func TestANewDialogIsShownAfterTheOldOne(t *testing.T) {
	t.Parallel()
	d := open(t, 80, 24, tuitest.Freeze())
	d.wait(dialog.Quiet)
	d.press("y")
	again := tuitest.Freeze() // the object has changed: a new preview
	again.Dialog.ID = 5
	again.Said = &incident.Said{At: d.now, Bad: true, Text: "the object has changed since the preview, nothing was done: look at the new preview"}
	d.send(StateMsg{again})
	d.sees("Freeze", "the object has changed since the preview", "look at the new") // why it is open again
	d.press("y")
	if len(confirmed(d)) != 1 {
		t.Fatal("the new preview was confirmed by the key of the old one")
	}
	d.wait(dialog.Quiet)
	d.press("y")
	if c := confirmed(d); len(c) != 2 || c[1].Dialog != 5 {
		t.Errorf("confirmed %v", c)
	}
}

func TestProgressOpensAfterAConfirmation(t *testing.T) {
	t.Parallel()
	d := open(t, 100, 30, tuitest.RollBack())
	d.wait(dialog.Quiet)
	d.typed("calico-node")
	d.press("enter")
	d.send(StateMsg{tuitest.Rolling()})
	d.sees("What was confirmed", "9 of 22 predicted", "Recovery of calico-node", "still changed by hand")
	d.press("esc")
	d.misses("What was confirmed")
	d.send(StateMsg{tuitest.Rolling()})
	d.misses("What was confirmed")
	d.press("P")
	d.sees("What was confirmed")
}
