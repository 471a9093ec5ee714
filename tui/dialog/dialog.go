// Package dialog holds what stands over a page and takes its keys: confirmations,
// the palette, menus, questions, and things to read. A dialog answers with a typed
// result and never acts itself.
package dialog

import (
	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/component/pager"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Dialog is one entry of the stack.
type Dialog interface {
	// Scope says which keys of the table work in it.
	Scope() keymap.Scope
	// Key takes a key press with the command that it means there; nil as long
	// as the dialog stays open.
	Key(k tea.KeyPressMsg, c keymap.Command) Result
	// Paste takes pasted text.
	Paste(text string)
	// Wheel scrolls by lines.
	Wheel(lines int)
	// Click takes a click at line y of the box; nil as long as the dialog stays open.
	Click(y int) Result
	// View is the box, of at most w times h cells.
	View(w, h int, s *style.Styles) []string
}

// Result is what came of a dialog: one of the types below.
type Result interface{ result() }

type (
	// Closed is a dialog that was closed; nothing happens.
	Closed struct{}
	// Chosen is the value of the entry that was taken.
	Chosen struct{ Value any }
	// Entered is a line that was typed.
	Entered struct {
		Question Question
		Text     string
	}
	// Pasted is what a node's console printed.
	Pasted struct {
		Node report.Text
		Text string
	}
	// Confirmed is a confirmation of the action dialog of that ID.
	Confirmed struct {
		ID    int
		Typed string
	}
	// Cancelled is a confirmation that was refused.
	Cancelled struct{ ID int }
)

func (Closed) result()    {}
func (Chosen) result()    {}
func (Entered) result()   {}
func (Pasted) result()    {}
func (Confirmed) result() {}
func (Cancelled) result() {}

// width is the room for a box in w cells, at most most.
func width(w, most int) int {
	if w > 70 {
		w -= 2
	}
	return min(w, most)
}

// scroll moves a pager by a command; false where it is no movement.
func scroll(p *pager.Pager, c keymap.Command) bool {
	switch c {
	case keymap.Up:
		p.Move(-1)
	case keymap.Down:
		p.Move(1)
	case keymap.PageUp:
		p.Page(-1)
	case keymap.PageDown:
		p.Page(1)
	case keymap.Top:
		p.Top()
	case keymap.Bottom:
		p.End()
	default:
		return false
	}
	return true
}

// box frames lines that are scrolled by p and feet that are always in sight.
func box(title, foot string, p *pager.Pager, lines, feet []string, w, h int, s *style.Styles) []string {
	room := max(1, h-2-len(feet))
	body := p.View(lines, w-4, min(room, max(1, len(lines))), s.Dim.Render)
	return draw.Box(title, foot, append(body, feet...), w, s.Rule.Render, s.Strong.Render)
}
