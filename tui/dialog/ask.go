package dialog

import (
	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/tui/component/field"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Question says what a typed line is for.
type Question string

// The questions.
const (
	AskNote Question = "note"
	AskSkip Question = "skip"
	AskPath Question = "path"
	AskPod  Question = "pod"
)

// Ask asks for one line of text.
type Ask struct {
	Question Question
	Title    string
	Hint     string
	field    *field.Field
	must     bool // an empty line is no answer
}

// NewAsk asks a question; holder stands in the empty field.
func NewAsk(q Question, title, hint, holder string, must bool) *Ask {
	return &Ask{Question: q, Title: title, Hint: hint, field: field.New(holder, 2000), must: must}
}

// Scope is that of text being typed.
func (a *Ask) Scope() keymap.Scope { return keymap.Typing }

// Key types, accepts or closes.
func (a *Ask) Key(k tea.KeyPressMsg, c keymap.Command) Result {
	switch c {
	case keymap.Cancel:
		return Closed{}
	case keymap.Accept:
		if a.must && a.field.Value() == "" {
			return nil
		}
		return Entered{a.Question, a.field.Value()}
	case keymap.None:
		a.field.Key(k)
	}
	return nil
}

// Paste takes the text: it is only text until it is accepted.
func (a *Ask) Paste(t string) { a.field.Paste(t) }

// Wheel does nothing.
func (a *Ask) Wheel(int) {}

// Click does nothing.
func (a *Ask) Click(int) Result { return nil }

// View is the box.
func (a *Ask) View(w, h int, s *style.Styles) []string {
	w = width(w, 84)
	lines := []string{a.field.View(w-4, s)}
	if h >= 6 {
		lines = append(lines, "")
		lines = append(lines, draw.Clip(draw.Hang("", a.Hint, w-4, s.Dim.Render), max(1, h-5), w-4)...)
	}
	return draw.Box(a.Title, "enter accepts  esc cancels", draw.Clip(lines, max(1, h-2), w-4), w, s.Rule.Render, s.Strong.Render)
}
