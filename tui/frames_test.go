package tui

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// scenes are what an operator may see, each with what leads there.
var scenes = []struct {
	name string
	st   func() *incident.State
	then func(*driver)
}{
	{"loading", tuitest.Loading, nil},
	{"no-cluster", tuitest.NoCluster, nil},
	{"quiet", tuitest.Quiet, nil},
	{"triage", tuitest.Cascade, nil},
	{"partly", tuitest.Partly, nil},
	{"filter", tuitest.Cascade, func(d *driver) { d.press("f"); d.typed("log") }},
	{"step", func() *incident.State { return tuitest.Checklist(4) }, nil},
	{"step-texts-hidden", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("e") }},
	{"step-could-not-look", func() *incident.State { return tuitest.Checklist(6) }, nil},
	{"practice", tuitest.Practice, nil},
	{"timeline", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("t", "left", "left", "left", "down") }},
	{"facts", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("t", "enter") }},
	{"asking", tuitest.Asking, nil},
	{"confirm-key-early", tuitest.Freeze, nil},
	{"confirm-key", tuitest.Freeze, func(d *driver) { d.wait(dialog.Quiet) }},
	{"confirm-typed", tuitest.RollBack, func(d *driver) { d.wait(dialog.Quiet); d.typed("calico") }},
	{"confirm-blocked", tuitest.Blocked, func(d *driver) { d.wait(dialog.Quiet) }},
	{"progress", tuitest.Rolling, func(d *driver) { d.press("P") }},
	{"rolling", tuitest.Rolling, nil},
	{"palette", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("/"); d.typed("node") }},
	{"actions", func() *incident.State { return tuitest.Checklist(9) }, func(d *driver) { d.press("a") }},
	{"steps", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("tab") }},
	{"help", func() *incident.State { return tuitest.Checklist(4) }, func(d *driver) { d.press("?") }},
	{"evidence", tuitest.Cascade, func(d *driver) { d.press("v") }},
	{"note", tuitest.Cascade, func(d *driver) { d.press("n"); d.typed("paged the network team") }},
	{"logs-asked", func() *incident.State { return tuitest.Asked(6) }, nil},
	{"logs-choose", func() *incident.State { return tuitest.Asked(6) }, func(d *driver) { d.press("l") }},
	{"logs-read", func() *incident.State { return tuitest.Heard(6) }, nil},
	{"logs-evidence", func() *incident.State { return tuitest.Heard(6) }, func(d *driver) { d.press("v") }},
	{"console-asked", func() *incident.State { return tuitest.Asked(7) }, nil},
	{"console-paste", func() *incident.State { return tuitest.Asked(7) }, func(d *driver) {
		d.press("p", "down", "enter")
		d.send(tea.PasteMsg{Content: tuitest.Console})
	}},
	{"console-read", func() *incident.State { return tuitest.Heard(7) }, nil},
	{"console-facts", func() *incident.State { return tuitest.Heard(7) }, func(d *driver) { d.press("/"); d.typed("node-010"); d.press("enter") }},
	{"lost", tuitest.Lost, func(d *driver) { d.wait(12e9) }},
	{"hostile", tuitest.Hostile, nil},
	{"hostile-triage", func() *incident.State { s := tuitest.Hostile(); s.Guide = nil; return s }, nil},
	{"hostile-palette", tuitest.Hostile, func(d *driver) { d.press("/") }},
	{"hostile-timeline", tuitest.Hostile, func(d *driver) { d.press("t") }},
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		for _, s := range scenes {
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				d := open(t, size[0], size[1], s.st())
				if s.then != nil {
					s.then(d)
				}
				golden.RequireEqual(t, trimmed(d.screen()))
			})
		}
	}
	t.Run("too-small-50x12", func(t *testing.T) {
		t.Parallel()
		golden.RequireEqual(t, trimmed(open(t, 50, 12, tuitest.Cascade()).screen()))
	})
}

func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// The themes as they go to the terminal, escape sequences and all.
func TestThemes(t *testing.T) {
	t.Parallel()
	for _, theme := range []style.Theme{style.Default, style.Contrast, style.Mono} {
		t.Run(string(theme), func(t *testing.T) {
			t.Parallel()
			d := open(t, 80, 24, tuitest.Cascade(), func(o *Options) { o.Theme = theme })
			golden.RequireEqual(t, d.m.View().Content)
		})
	}
}

func TestMonochromeHasNoColour(t *testing.T) {
	t.Parallel()
	for _, s := range scenes {
		d := open(t, 120, 40, s.st())
		if s.then != nil {
			s.then(d)
		}
		for _, seq := range sequences(d.m.View().Content) {
			for _, p := range strings.Split(strings.Trim(seq, "\x1b[m"), ";") {
				switch p {
				case "", "0", "1", "2", "4", "7", "22", "24", "27": // reset, bold, faint, underline, reverse
				default:
					t.Errorf("%s: %q in a monochrome picture", s.name, seq)
				}
			}
		}
	}
}

func sequences(s string) []string {
	var out []string
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			return out
		}
		s = s[i:]
		j := strings.IndexByte(s, 'm')
		if j < 0 {
			return append(out, s)
		}
		out = append(out, s[:j+1])
		s = s[j+1:]
	}
}

func TestEveryFrameFitsTheTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w, h := rapid.IntRange(20, 220).Draw(r, "width"), rapid.IntRange(5, 70).Draw(r, "height")
		s := scenes[rapid.IntRange(0, len(scenes)-1).Draw(r, "scene")]
		theme := rapid.SampledFrom([]style.Theme{style.Default, style.Mono}).Draw(r, "theme")
		d := open(t, w, h, s.st(), func(o *Options) { o.Theme = theme })
		if s.then != nil {
			s.then(d)
		}
		lines := strings.Split(d.m.View().Content, "\n")
		if len(lines) != h {
			r.Fatalf("%s at %dx%d: %d lines", s.name, w, h, len(lines))
		}
		for i, l := range lines {
			if n := ansi.StringWidth(l); n > w {
				r.Fatalf("%s at %dx%d: line %d has %d cells: %q", s.name, w, h, i, n, ansi.Strip(l))
			}
			for _, c := range ansi.Strip(l) {
				if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
					r.Fatalf("%s at %dx%d: line %d has the character %U", s.name, w, h, i, c)
				}
			}
		}
		// The last guard cuts whatever is too long; the pages must not need it.
		if !d.m.tooSmall() {
			raw := d.m.full()
			if len(raw) > h {
				r.Fatalf("%s at %dx%d: the page made %d lines", s.name, w, h, len(raw))
			}
			for i, l := range raw {
				if n := ansi.StringWidth(l); n > w {
					r.Fatalf("%s at %dx%d: the page made line %d with %d cells: %q", s.name, w, h, i, n, ansi.Strip(l))
				}
			}
		}
	})
}

func TestVerdictAndFreezeKeyAreAlwaysInSight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w, h := rapid.IntRange(20, 220).Draw(r, "width"), rapid.IntRange(5, 70).Draw(r, "height")
		st := rapid.SampledFrom([]func() *incident.State{tuitest.Cascade, tuitest.Lost, tuitest.Partly, tuitest.Practice, func() *incident.State { return tuitest.Checklist(2) }}).Draw(r, "state")
		d := open(t, w, h, st())
		s := d.screen()
		for _, want := range []string{"SPREADING", "F freeze"} {
			if !strings.Contains(strings.ReplaceAll(s, "[F]", "F"), want) {
				r.Fatalf("no %q at %dx%d:\n%s", want, w, h, s)
			}
		}
	})
}

func TestWhatIsCutEndsInAnEllipsis(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{60, 16}, {80, 24}, {100, 30}} {
		for _, name := range []string{"hostile", "hostile-triage", "hostile-palette", "hostile-timeline"} {
			for _, s := range scenes {
				if s.name != name {
					continue
				}
				d := open(t, size[0], size[1], s.st())
				if s.then != nil {
					s.then(d)
				}
				if !strings.Contains(d.screen(), "…") {
					t.Errorf("%s at %v: long names, and nothing says that it was cut:\n%s", name, size, d.screen())
				}
				d.misses("\x1b[2J", "\x07", "\u202e", "\t")
			}
		}
	}
}
