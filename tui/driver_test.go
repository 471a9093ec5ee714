package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// driver plays an operator: it presses keys, runs the commands that come back one
// after another, and moves a clock of its own. Nothing waits for real time.
type driver struct {
	t      *testing.T
	m      *Model
	now    time.Time
	timers []timer
	sent   []incident.Intent
	copied []string
	osc    int // messages to the terminal's clipboard
	quit   bool
}

type timer struct {
	at  time.Time
	msg tea.Msg
}

func (d *driver) Now() time.Time { return d.now }

func open(t *testing.T, w, h int, st *incident.State, change ...func(*Options)) *driver {
	t.Helper()
	d := &driver{t: t, now: time.Date(2026, 7, 3, 4, 14, 40, 0, time.UTC)}
	o := Options{
		Send:  func(i incident.Intent) { d.sent = append(d.sent, i) },
		Clock: d,
		After: func(after time.Duration, msg tea.Msg) tea.Cmd {
			d.timers = append(d.timers, timer{d.now.Add(after), msg})
			return nil
		},
		Clipboard: func(s string) error { d.copied = append(d.copied, s); return nil },
		Theme:     style.Mono,
	}
	for _, c := range change {
		c(&o)
	}
	d.m = New(o)
	d.run(d.m.Init())
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	if st != nil {
		d.send(StateMsg{st})
	}
	return d
}

func (d *driver) send(msg tea.Msg) {
	_, cmd := d.m.Update(msg)
	d.m.View() // as Bubble Tea does after every update
	d.run(cmd)
}

// run runs a command and what follows from it, in order.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			d.run(c)
		}
	case tea.QuitMsg:
		d.quit = true
	default:
		if strings.HasSuffix(fmt.Sprintf("%T", msg), "setClipboardMsg") {
			d.osc++
			return
		}
		d.send(msg)
	}
}

// wait moves the clock and lets the timers that are due go off.
func (d *driver) wait(by time.Duration) {
	d.now = d.now.Add(by)
	due := d.timers
	d.timers = nil
	for _, t := range due {
		if t.at.After(d.now) {
			d.timers = append(d.timers, t)
		} else {
			d.send(t.msg)
		}
	}
}

var named = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "f1": tea.KeyF1,
}

func keyOf(name string) tea.KeyPressMsg {
	if c, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: c}
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// press presses keys by name, one after another without a pause.
func (d *driver) press(keys ...string) {
	for _, k := range keys {
		d.send(keyOf(k))
	}
}

func (d *driver) typed(text string) {
	for _, r := range text {
		d.press(string(r))
	}
}

// screen is the picture without its colours.
func (d *driver) screen() string { return ansi.Strip(d.m.View().Content) }

func (d *driver) sees(want ...string) {
	d.t.Helper()
	s := d.screen()
	for _, w := range want {
		if !strings.Contains(s, w) {
			d.t.Errorf("the screen does not say %q:\n%s", w, s)
		}
	}
}

func (d *driver) misses(not ...string) {
	d.t.Helper()
	s := d.screen()
	for _, w := range not {
		if strings.Contains(s, w) {
			d.t.Errorf("the screen says %q:\n%s", w, s)
		}
	}
}

// last is the last intent, nil without any.
func (d *driver) last() incident.Intent {
	if len(d.sent) == 0 {
		return nil
	}
	return d.sent[len(d.sent)-1]
}
