package dialog

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/tui/component/pager"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Reader shows text to read. Its lines are made anew for each width, so that they
// follow a newer state.
type Reader struct {
	Title string
	Most  int // widest box, 0 for 100
	Lines func(w int, s *style.Styles) []string
	// On are commands that do something here, with the value that they choose.
	On    map[keymap.Command]any
	pager pager.Pager
}

// Scope is that of things to read.
func (r *Reader) Scope() keymap.Scope { return keymap.InReader }

// Key scrolls or closes.
func (r *Reader) Key(_ tea.KeyPressMsg, c keymap.Command) Result {
	if c == keymap.Cancel {
		return Closed{}
	}
	if v, ok := r.On[c]; ok {
		return Chosen{v}
	}
	scroll(&r.pager, c)
	return nil
}

// Paste does nothing.
func (r *Reader) Paste(string) {}

// Wheel scrolls.
func (r *Reader) Wheel(n int) { r.pager.Move(n) }

// Click does nothing.
func (r *Reader) Click(int) Result { return nil }

// View is the box.
func (r *Reader) View(w, h int, s *style.Styles) []string {
	most := r.Most
	if most == 0 {
		most = 100
	}
	w = width(w, most)
	lines := r.Lines(w-4, s)
	if len(lines) == 0 {
		lines = []string{s.Dim.Render("nothing to show")}
	}
	foot := "esc closes"
	if len(lines) > h-2 {
		foot = "↑↓ scroll  esc closes"
	}
	for _, b := range keymap.In(keymap.InReader) {
		if _, ok := r.On[b.Command]; ok {
			foot = b.Shown() + " " + b.Label + "  " + foot
		}
	}
	return box(draw.Fit(r.Title, w-6), foot, &r.pager, lines, nil, w, h, s)
}

// NewHelp lists bindings.
func NewHelp(title string, bs []keymap.Binding) *Reader {
	return &Reader{Title: title, Most: 84, Lines: func(w int, s *style.Styles) []string {
		key := 4
		for _, b := range bs {
			key = max(key, draw.Width(b.Shown()))
		}
		var lines []string
		var moves []string
		for _, b := range bs {
			if keymap.Moves(b.Command) {
				moves = append(moves, s.Key.Render(b.Shown()))
				continue
			}
			lines = append(lines, draw.Hang(s.Key.Render(draw.Pad(b.Shown(), key))+"  ", b.Help, w, nil)...)
		}
		if len(moves) > 0 {
			lines = append(lines, draw.Fit(strings.Join(moves, " ")+"  move", w))
		}
		return append(lines, "", s.Dim.Render(draw.Fit("Click selects, the wheel scrolls. Times are the cluster's, in UTC.", w)))
	}}
}
