package dialog

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// mostPasted bounds what an editor holds, in bytes; the beginning is dropped.
const mostPasted = 4 << 20

// Paste takes what a node's console printed: many lines, pasted in one or several
// parts, or typed at their end. Enter is a line end, for a terminal may paste as
// if it were typed; another key hands it over.
type Paste struct {
	Node report.Text
	text []byte
	view []string // the lines, safe to show; made anew when the text has changed
	made bool
	up   int // lines scrolled up from the end
	page int
}

// NewPaste takes the output of a node's console.
func NewPaste(node report.Text) *Paste { return &Paste{Node: node} }

// Scope is that of text being pasted.
func (p *Paste) Scope() keymap.Scope { return keymap.Pasting }

// Key types at the end, scrolls, hands over or closes.
func (p *Paste) Key(k tea.KeyPressMsg, c keymap.Command) Result {
	switch c {
	case keymap.Cancel:
		return Closed{}
	case keymap.Accept:
		if strings.TrimSpace(string(p.text)) == "" {
			return nil
		}
		return Pasted{p.Node, string(p.text)}
	case keymap.Up:
		p.Wheel(-1)
	case keymap.Down:
		p.Wheel(1)
	case keymap.PageUp:
		p.Wheel(-max(1, p.page-1))
	case keymap.PageDown:
		p.Wheel(max(1, p.page-1))
	case keymap.None:
		switch {
		case k.Code == tea.KeyEnter:
			p.add("\n")
		case k.Code == tea.KeyTab:
			p.add("\t")
		case k.Code == tea.KeyBackspace && len(p.text) > 0:
			r := []rune(string(p.text[max(0, len(p.text)-4):]))
			p.text, p.made = p.text[:len(p.text)-len(string(r[len(r)-1]))], false
		default:
			p.add(k.Text)
		}
	}
	return nil
}

// Paste adds the text, its line ends as they are.
func (p *Paste) Paste(t string) { p.add(t) }

func (p *Paste) add(t string) {
	if t == "" {
		return
	}
	p.text = append(p.text, strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(t), "\uFFFD")...)
	if n := len(p.text) - mostPasted; n > 0 {
		p.text = []byte(strings.ToValidUTF8(string(p.text[n:]), ""))
	}
	p.made, p.up = false, 0
}

// Wheel scrolls.
func (p *Paste) Wheel(n int) { p.up = max(0, p.up-n) }

// Click does nothing.
func (p *Paste) Click(int) Result { return nil }

// View is the box: the end of the text, with the place where it goes on.
func (p *Paste) View(w, h int, s *style.Styles) []string {
	w = width(w, 120)
	in := w - 4
	if !p.made {
		p.view, p.made = p.view[:0], true
		for _, l := range strings.Split(string(p.text), "\n") {
			p.view = append(p.view, string(report.Clean(l)))
		}
	}
	var lines []string
	if h >= 9 {
		lines = draw.Clip(draw.Hang("", "Paste what the commands printed there. It is read for known signs; they and the lines that tell them stand in the incident notes, secrets hidden, and nothing else of it.", in, s.Dim.Render), 3, in)
		lines = append(lines, "")
	}
	p.page = max(1, min(h-3-len(lines), 16))
	p.up = min(p.up, max(0, len(p.view)-p.page))
	to := len(p.view) - p.up
	from := max(0, to-p.page)
	for i := from; i < to; i++ {
		l := p.view[i]
		if i == len(p.view)-1 {
			l = draw.Fit(l, in-1) + s.Key.Render("▏")
		}
		lines = append(lines, draw.Fit(l, in))
	}
	for i := to - from; i < p.page && h >= 12; i++ {
		lines = append(lines, "")
	}
	size := "nothing yet"
	if len(p.text) > 0 {
		size = fmt.Sprintf("%d lines", strings.Count(strings.TrimRight(string(p.text), "\n"), "\n")+1)
	}
	lines = append(lines, draw.PadLeft(s.Dim.Render(size), in))
	accept, _ := keymap.For(keymap.Pasting, keymap.Accept)
	return draw.Box(draw.Fit("Console of "+string(p.Node), w-6), accept.Shown()+" reads it  esc cancels", draw.Clip(lines, max(1, h-2), in), w, s.Rule.Render, s.Strong.Render)
}
