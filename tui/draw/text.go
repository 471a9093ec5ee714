// Package draw lays text out in cells: fitting, padding, wrapping, boxes. It
// measures as the terminal does, counts styled text without its escape
// sequences, and never lets a line grow over its width. What is cut ends in "…".
package draw

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Ellipsis ends what was cut.
const Ellipsis = "…"

// Width is the number of cells that s takes.
func Width(s string) int { return ansi.StringWidth(s) }

// Fit cuts s to at most w cells.
func Fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	return ansi.Truncate(s, w, Ellipsis)
}

// Pad cuts or fills s to exactly w cells.
func Pad(s string, w int) string {
	s = Fit(s, w)
	if n := w - Width(s); n > 0 {
		s += strings.Repeat(" ", n)
	}
	return s
}

// PadLeft is Pad with s at the right.
func PadLeft(s string, w int) string {
	s = Fit(s, w)
	if n := w - Width(s); n > 0 {
		s = strings.Repeat(" ", n) + s
	}
	return s
}

// Middle cuts s to at most w cells and keeps both ends: of a node's name the end
// tells more than the middle.
func Middle(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	if w < 5 {
		return Fit(s, w)
	}
	head := (w - 1) / 2
	tail := w - 1 - head
	return ansi.Truncate(s, head, "") + Ellipsis + last(s, tail)
}

// last is the end of s in at most w cells; a wide character is never halved.
func last(s string, w int) string {
	for n := Width(s) - w; ; n++ {
		if end := ansi.TruncateLeft(s, n, ""); Width(end) <= w {
			return end
		}
	}
}

// Spread sets left and right on one line of w cells; left gives way.
func Spread(left, right string, w int) string {
	r := Width(right)
	if r >= w {
		return Fit(right, w)
	}
	if r == 0 {
		return Fit(left, w)
	}
	return Pad(left, w-r-1) + " " + right
}

// noBreak stands for a hyphen while text is wrapped, so that the name of an
// object is not torn at one.
const noBreak = "\u2011"

// Wrap breaks s into lines of at most w cells, at spaces where it can.
func Wrap(s string, w int) []string {
	if w < 1 {
		w = 1
	}
	s = strings.ReplaceAll(s, "-", noBreak)
	s = lipgloss.Wrap(s, w, "")
	s = strings.ReplaceAll(s, noBreak, "-")
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Fit(strings.TrimRight(lines[i], " "), w)
	}
	return lines
}

// Hang wraps s beside a prefix; further lines are indented by its width.
// look, where not nil, dresses each line of s.
func Hang(prefix, s string, w int, look func(...string) string) []string {
	ind := Width(prefix)
	if ind > w-8 {
		ind = max(0, w-8)
		prefix = Fit(prefix, ind)
	}
	lines := Wrap(s, w-ind)
	for i, l := range lines {
		if look != nil && l != "" {
			l = look(l)
		}
		if i == 0 {
			lines[i] = Pad(prefix, ind) + l
		} else {
			lines[i] = strings.Repeat(" ", ind) + l
		}
	}
	return lines
}

// Clip keeps at most n lines; where some are left out the last one kept ends in "…".
func Clip(lines []string, n, w int) []string {
	if len(lines) <= n {
		return lines
	}
	if n <= 0 {
		return nil
	}
	out := append([]string(nil), lines[:n]...)
	out[n-1] = Fit(out[n-1], w-2) + " " + Ellipsis
	return out
}

// Fill makes exactly h lines of at most w cells.
func Fill(lines []string, w, h int) []string {
	out := make([]string, h)
	for i := range out {
		if i < len(lines) {
			out[i] = Fit(lines[i], w)
		}
	}
	return out
}

// Rule is a horizontal line of w cells with a label near its left end; label may be "".
func Rule(char, label string, w int) string {
	if label == "" || Width(label)+6 > w {
		return strings.Repeat(char, max(0, w))
	}
	return strings.Repeat(char, 2) + " " + label + " " + strings.Repeat(char, w-4-Width(label))
}

// CutLeft keeps the last w cells of s, with "…" before them where something was cut.
func CutLeft(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	if w <= 0 {
		return ""
	}
	return Ellipsis + last(s, w-1)
}

// Flow sets parts one after another in lines of at most w cells; a part is never torn.
func Flow(parts []string, sep string, w int) []string {
	var lines []string
	line := ""
	for _, p := range parts {
		switch {
		case line == "":
			line = p
		case Width(line)+Width(sep)+Width(p) <= w:
			line += sep + p
		default:
			lines = append(lines, Fit(line, w))
			line = p
		}
	}
	if line != "" {
		lines = append(lines, Fit(line, w))
	}
	return lines
}
