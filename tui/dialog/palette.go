package dialog

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/sahilm/fuzzy"

	"github.com/rollcall-k8s/rollcall/tui/component/field"
	"github.com/rollcall-k8s/rollcall/tui/component/list"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// Entry is one thing that can be chosen.
type Entry struct {
	Kind   string // node, workload, step, action, command
	Label  string
	Detail string
	Mark   string // already dressed, one cell, or ""
	Off    string // why it cannot be chosen, ""
	Value  any
}

// Palette finds an entry as its name is typed; a Menu is a palette without a field.
type Palette struct {
	Title   string
	entries []Entry
	shown   []hit
	field   *field.Field // nil in a menu
	list    list.List
	top     int // line of the box in which the list begins
	page    int
}

type hit struct {
	entry   int
	matched []int
}

// NewPalette finds among entries.
func NewPalette(title string, entries []Entry) *Palette {
	p := &Palette{Title: title, entries: entries, field: field.New("type a part of a name", 120)}
	p.search()
	return p
}

// NewMenu chooses among entries, the cursor on the first that can be chosen, or on
// the one at.
func NewMenu(title string, entries []Entry, at ...int) *Palette {
	p := &Palette{Title: title, entries: entries}
	p.search()
	first := slices.IndexFunc(entries, func(e Entry) bool { return e.Off == "" })
	for _, first = range at {
	}
	p.list.Select(first, len(p.shown))
	return p
}

type source []Entry

func (s source) Len() int            { return len(s) }
func (s source) String(i int) string { return s[i].Label }

// search ranks the entries by what is typed; the better match first, the entries'
// own order between equals and without any text.
func (p *Palette) search() {
	p.shown = p.shown[:0]
	want := ""
	if p.field != nil {
		want = strings.ReplaceAll(strings.TrimSpace(p.field.Value()), " ", "")
	}
	if want == "" {
		for i := range p.entries {
			p.shown = append(p.shown, hit{entry: i})
		}
	} else {
		for _, m := range fuzzy.FindFrom(want, source(p.entries)) {
			p.shown = append(p.shown, hit{entry: m.Index, matched: m.MatchedIndexes})
		}
	}
	p.list.Select(0, len(p.shown))
}

// Scope is that of typing, or of a menu.
func (p *Palette) Scope() keymap.Scope {
	if p.field == nil {
		return keymap.InMenu
	}
	return keymap.Typing
}

// Key moves, types, chooses or closes.
func (p *Palette) Key(k tea.KeyPressMsg, c keymap.Command) Result {
	n := len(p.shown)
	switch c {
	case keymap.Cancel:
		return Closed{}
	case keymap.Accept:
		return p.choose()
	case keymap.Up:
		p.list.Move(-1, n)
	case keymap.Down:
		p.list.Move(1, n)
	case keymap.PageUp:
		p.list.Move(-max(1, p.page-1), n)
	case keymap.PageDown:
		p.list.Move(max(1, p.page-1), n)
	case keymap.Top:
		p.list.Select(0, n)
	case keymap.Bottom:
		p.list.Select(n-1, n)
	case keymap.None:
		if p.field != nil {
			p.field.Key(k)
			p.search()
		}
	}
	return nil
}

func (p *Palette) choose() Result {
	i := p.list.Cursor(len(p.shown))
	if i < 0 {
		return nil
	}
	e := p.entries[p.shown[i].entry]
	if e.Off != "" {
		return nil
	}
	return Chosen{e.Value}
}

// Paste types the text.
func (p *Palette) Paste(t string) {
	if p.field != nil {
		p.field.Paste(t)
		p.search()
	}
}

// Wheel moves the cursor.
func (p *Palette) Wheel(n int) { p.list.Move(n, len(p.shown)) }

// Click selects; a click on the selected line chooses it.
func (p *Palette) Click(y int) Result {
	i := p.list.At(y-p.top, len(p.shown))
	if i < 0 || y-p.top >= p.page {
		return nil
	}
	if i == p.list.Cursor(len(p.shown)) {
		return p.choose()
	}
	p.list.Select(i, len(p.shown))
	return nil
}

// View is the box.
func (p *Palette) View(w, h int, s *style.Styles) []string {
	w = width(w, 92)
	in := w - 4
	var lines []string
	if p.field != nil {
		count := s.Dim.Render(fmt.Sprintf("%d of %d", len(p.shown), len(p.entries)))
		lines = append(lines, draw.Spread(p.field.View(max(4, in-16), s), count, in), "")
	}
	p.top = len(lines) + 1
	p.page = max(1, h-2-len(lines))
	if p.field == nil {
		p.page = max(1, min(p.page, len(p.shown)))
	}
	kind := 0
	for _, e := range p.entries {
		kind = max(kind, draw.Width(e.Kind))
	}
	from, to := p.list.Window(len(p.shown), p.page)
	label := 10
	for _, x := range p.shown[from:to] {
		label = max(label, draw.Width(p.entries[x.entry].Label))
	}
	for i := from; i < to; i++ {
		lines = append(lines, p.line(i, kind, label, in, s))
	}
	if len(p.shown) == 0 {
		lines = append(lines, s.Dim.Render("nothing has such a name"))
	}
	for p.field != nil && len(lines) < h-2 && len(lines) < 22 {
		lines = append(lines, "")
	}
	return draw.Box(p.Title, "↑↓ move  enter chooses  esc closes", lines, w, s.Rule.Render, s.Strong.Render)
}

func (p *Palette) line(i, kind, label, w int, s *style.Styles) string {
	x := p.shown[i]
	e := p.entries[x.entry]
	cursor, look := "  ", s.Text
	if i == p.list.Cursor(len(p.shown)) {
		cursor, look = s.Key.Render("▸ "), s.Cursor
	}
	if e.Off != "" {
		look = s.Dim
	}
	line := cursor
	if kind > 0 && w >= 50 {
		line += s.Dim.Render(draw.Pad(e.Kind, kind)) + "  "
	}
	if e.Mark != "" {
		line += e.Mark + " "
	}
	detail := e.Detail
	if e.Off != "" {
		detail = e.Off
	}
	room := w - draw.Width(line)
	if detail != "" {
		room = min(max(label, room*55/100), room)
		room = min(room, max(label, 10))
	}
	line += matched(e.Label, x.matched, room, look, s)
	if rest := w - draw.Width(line) - 2; detail != "" && rest > 6 {
		line = draw.Pad(line, w-rest-2)
		line += "  " + s.Dim.Render(draw.Fit(detail, rest))
	}
	return draw.Fit(line, w)
}

// matched is a label with the letters that were found set off. at are byte offsets.
func matched(label string, at []int, w int, look lipgloss.Style, s *style.Styles) string {
	cut := draw.Fit(label, w)
	if len(at) == 0 {
		return draw.Pad(look.Render(cut), w)
	}
	hits := map[int]bool{}
	for _, i := range at {
		hits[i] = true
	}
	var b strings.Builder
	for i, r := range cut {
		if hits[i] && r != '…' {
			b.WriteString(s.Match.Render(string(r)))
		} else {
			b.WriteString(look.Render(string(r)))
		}
	}
	return draw.Pad(b.String(), w)
}
