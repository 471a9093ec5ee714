// Package lanes draws histories side by side on one time axis: a lane is a label,
// the states it was in, and marks at moments. It knows nothing of nodes or Pods.
package lanes

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/rollcall-k8s/rollcall/tui/draw"
)

// State is what a lane is in at a moment.
type State uint8

// The states, each with a character of its own.
const (
	Blank   State = iota // not known
	Good                 // █
	Failing              // ▒
	Bad                  // ░
	Silent               // ╌
	Empty                // · nothing runs
)

// Char is the character of a state.
func (s State) Char() rune {
	switch s {
	case Good:
		return '█'
	case Failing:
		return '▒'
	case Bad:
		return '░'
	case Silent:
		return '╌'
	case Empty:
		return '·'
	}
	return ' '
}

// Uncertain is drawn over the span in which something happened at an unknown moment.
const Uncertain = '~'

// Cursor and Line are drawn where no mark stands.
const (
	Cursor = '┃'
	Line   = '┆'
)

// Span is a state from a moment until the next span.
type Span struct {
	From  time.Time
	State State
}

// Mark is something that happened at At, or between At and Until where the
// moment is not known.
type Mark struct {
	At, Until time.Time
	Glyph     rune
}

// Lane is one history. Spans are in order of time; Gaps lie over them.
type Lane struct {
	Label string
	Spans []Span
	Gaps  []Gap
	Marks []Mark
}

// Gap is a time in which nothing ran; it is drawn where nothing is wrong otherwise.
type Gap struct{ From, To time.Time }

// Chart is lanes with the window of time that is looked at.
type Chart struct {
	From, To time.Time
	Lanes    []Lane
	Lines    []time.Time // moments that concern every lane
	Cursor   time.Time   // zero for none
}

// Looks dress the parts of a lane.
type Looks struct {
	State  func(State) lipgloss.Style
	Mark   lipgloss.Style
	Line   lipgloss.Style
	Cursor lipgloss.Style
	Axis   lipgloss.Style
}

// At is the moment that stands at column x of w.
func (c *Chart) At(x, w int) time.Time {
	if w <= 1 {
		return c.From
	}
	return c.From.Add(time.Duration(float64(c.To.Sub(c.From)) * (float64(x) + 0.5) / float64(w)))
}

// Column is where t stands in w columns; it may lie outside.
func (c *Chart) Column(t time.Time, w int) int {
	d := c.To.Sub(c.From)
	if d <= 0 {
		return 0
	}
	x := float64(t.Sub(c.From)) / float64(d) * float64(w)
	if x < 0 {
		return -1
	}
	return int(min(x, float64(w)))
}

// Row draws lane i into w columns.
func (c *Chart) Row(i, w int, k Looks) string {
	if w <= 0 {
		return ""
	}
	l := c.Lanes[i]
	var states [Empty + 1]lipgloss.Style
	for st := range states {
		states[st] = k.State(State(st))
	}
	cells := make([]rune, w)
	looks := make([]*lipgloss.Style, w)
	taken := make([]bool, w)
	for x := range cells {
		st := l.state(c.At(x, w))
		cells[x], looks[x] = st.Char(), &states[st]
	}
	for _, t := range c.Lines {
		if x := c.Column(t, w); x >= 0 && x < w {
			cells[x], looks[x] = Line, &k.Line
		}
	}
	if !c.Cursor.IsZero() {
		if x := min(c.Column(c.Cursor, w), w-1); x >= 0 {
			cells[x], looks[x] = Cursor, &k.Cursor
		}
	}
	marks := slices.Clone(l.Marks)
	slices.SortStableFunc(marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	for _, m := range marks {
		x := c.Column(m.At, w)
		if !m.Until.IsZero() {
			for y := max(0, x+1); y < min(w, c.Column(m.Until, w)); y++ {
				if !taken[y] {
					cells[y], looks[y] = Uncertain, &k.Mark
				}
			}
		}
		// Two marks in one cell stand beside each other: their order is what matters.
		for n := 0; n < 3 && x >= 0 && x < w && taken[x]; n++ {
			x++
		}
		if x < 0 || x >= w || taken[x] {
			continue
		}
		cells[x], looks[x], taken[x] = m.Glyph, &k.Mark, true
	}
	return paint(cells, looks)
}

func (l *Lane) state(t time.Time) State {
	st := l.Under(t)
	if st != Good && st != Blank {
		return st // what is wrong matters more than what does not run
	}
	for _, g := range l.Gaps {
		if !t.Before(g.From) && t.Before(g.To) {
			return Empty
		}
	}
	return st
}

// Under is the state at a moment, whatever gap lies over it.
func (l *Lane) Under(t time.Time) State {
	st := Blank
	for _, s := range l.Spans {
		if s.From.After(t) {
			break
		}
		st = s.State
	}
	return st
}

// paint joins cells, dressing each run of one character and look at once.
func paint(cells []rune, looks []*lipgloss.Style) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i + 1
		for j < len(cells) && cells[j] == cells[i] && looks[j] == looks[i] {
			j++
		}
		b.WriteString(looks[i].Render(string(cells[i:j])))
		i = j
	}
	return b.String()
}

// steps are the distances between ticks that people read easily.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// Axis is the line of times above the lanes, in w columns; each stands over the
// column at which its moment begins.
func (c *Chart) Axis(w int, k Looks) string {
	d := c.To.Sub(c.From)
	if d <= 0 || w < 8 {
		return ""
	}
	for _, step := range steps {
		layout := "15:04"
		switch {
		case step < time.Minute:
			layout = "15:04:05"
		case step >= 24*time.Hour:
			layout = "01-02"
		}
		if gap := float64(w) * float64(step) / float64(d); gap < float64(len(layout)+3) {
			continue
		}
		line := []rune(strings.Repeat(" ", w))
		for t := c.From.UTC().Truncate(step); !t.After(c.To); t = t.Add(step) {
			x := c.Column(t, w)
			label := t.Format(layout)
			if x < 0 || t.Before(c.From) || x+len(label) > w {
				continue
			}
			copy(line[x:], []rune(label))
		}
		return k.Axis.Render(string(line))
	}
	return k.Axis.Render(draw.Pad(c.From.UTC().Format("01-02 15:04"), w))
}
