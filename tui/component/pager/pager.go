// Package pager shows a window of lines that do not fit, and says how many more
// there are.
package pager

import (
	"fmt"

	"github.com/rollcall-k8s/rollcall/tui/draw"
)

// Pager is a position in text.
type Pager struct {
	offset int
	n, h   int // of the last View
}

// Move scrolls by delta lines.
func (p *Pager) Move(delta int) { p.offset = min(max(0, p.offset+delta), max(0, p.n-p.h)) }

// Page scrolls by delta windows, keeping one line of context.
func (p *Pager) Page(delta int) { p.Move(delta * max(1, p.h-1)) }

// Top and End jump.
func (p *Pager) Top() { p.offset = 0 }

// End shows the last line.
func (p *Pager) End() { p.Move(p.n) }

// Overflows tells whether the last View could not show everything.
func (p *Pager) Overflows() bool { return p.n > p.h }

// View is exactly h lines of w cells. Where text is left out, the last line says so.
func (p *Pager) View(lines []string, w, h int, quiet draw.Look) []string {
	if h <= 0 {
		return nil
	}
	if len(lines) <= h {
		p.n, p.h, p.offset = len(lines), h, 0
		return draw.Fill(lines, w, h)
	}
	p.n, p.h = len(lines), max(1, h-1)
	p.Move(0)
	if h == 1 {
		return draw.Fill(lines[p.offset:], w, 1)
	}
	out := draw.Fill(lines[p.offset:min(len(lines), p.offset+p.h)], w, h)
	above, below := p.offset, len(lines)-p.offset-p.h
	var more string
	switch {
	case above == 0:
		more = fmt.Sprintf("↓ %d more", below)
	case below == 0:
		more = fmt.Sprintf("↑ %d above", above)
	default:
		more = fmt.Sprintf("↑ %d above  ↓ %d more", above, below)
	}
	out[h-1] = quiet(draw.PadLeft(more, w))
	return out
}
