// Package field is one line of text being typed.
package field

import (
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Field is a text input with a still cursor: nothing blinks at three in the morning.
type Field struct {
	in textinput.Model
}

// New is an empty field that takes at most limit characters (0: no limit).
func New(placeholder string, limit int) *Field {
	in := textinput.New()
	in.Prompt = ""
	in.Placeholder = placeholder
	in.CharLimit = limit
	in.SetVirtualCursor(false)
	in.Focus()
	return &Field{in: in}
}

// Value is what was typed, made safe to show.
func (f *Field) Value() string { return string(report.Clean(f.in.Value())) }

// Set replaces the text.
func (f *Field) Set(s string) {
	f.in.SetValue(s)
	f.in.CursorEnd()
}

// Key takes a key press.
func (f *Field) Key(k tea.KeyPressMsg) { f.in, _ = f.in.Update(k) }

// Paste takes pasted text, its line ends folded.
func (f *Field) Paste(s string) {
	f.in, _ = f.in.Update(tea.PasteMsg{Content: string(report.Clean(s))})
}

// View is the text with its cursor in at most w cells; the end that is being
// typed stays in sight.
func (f *Field) View(w int, s *style.Styles) string {
	v := f.Value()
	if v == "" && f.in.Placeholder != "" {
		return s.Key.Render("▏") + s.Dim.Render(draw.Fit(f.in.Placeholder, w-1))
	}
	rs := []rune(f.in.Value())
	pos := min(f.in.Position(), len(rs))
	left, right := string(report.Clean(string(rs[:pos]))), string(report.Clean(string(rs[pos:])))
	if over := draw.Width(left) + 1 - w; over > 0 {
		left = draw.CutLeft(left, w-1)
	}
	return draw.Fit(left+s.Key.Render("▏")+right, w)
}
