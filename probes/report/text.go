package report

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Text is text that is safe to show: on a terminal, in notes, in a log. Only
// Clean and Textf turn a variable string into Text; a literal of the program's
// own is Text as it stands. What came from a cluster never reaches a person on
// another way, so that a Pod's name or an event's message cannot move the
// cursor, recolour the screen or reorder the words around it.
type Text string

// maxText bounds one text, in bytes: Kubernetes cuts event messages at 1,024,
// but termination messages and annotations may hold many kilobytes.
const maxText = 4096

// Clean makes text safe: escape sequences, control characters and bidirectional
// overrides are removed, line ends and tabs become single spaces, characters
// that terminals measure differently (zero-width joiners, variation selectors,
// regional indicators) are dropped or folded, and what is longer than 4 KiB is cut.
func Clean(s string) Text {
	if plain(s) {
		return Text(s)
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			space = true
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unstable(r):
			continue
		case unicode.Is(unicode.Zs, r) && r != ' ':
			r = ' '
		}
		if space {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
		}
		b.WriteRune(r)
	}
	out := b.String()
	if len(out) > maxText {
		out = strings.ToValidUTF8(out[:maxText], "") + "…"
	}
	return Text(out)
}

// Textf formats and cleans the result.
func Textf(format string, args ...any) Text {
	return Clean(fmt.Sprintf(format, args...))
}

// plain tells whether s needs no work, which holds for nearly every name.
func plain(s string) bool {
	if len(s) > maxText {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// unstable tells of a character whose width differs between terminals, so that
// a table with it would fall apart.
func unstable(r rune) bool {
	switch {
	case r >= 0xFE00 && r <= 0xFE0F, // variation selectors
		r >= 0xE0100 && r <= 0xE01EF, // variation selectors supplement
		r >= 0x1F1E6 && r <= 0x1F1FF, // regional indicators (flags)
		r >= 0x1F3FB && r <= 0x1F3FF, // skin tones
		r >= 0x0300 && r <= 0x036F,   // stacked combining marks
		r == 0x034F, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0:
		return true
	}
	return false
}

// Word makes a value one word of a POSIX shell, quoted where it needs it. A command is
// made to be pasted, and names may come from anywhere: from an event's message, or from
// an annotation that anybody may write.
func Word(s string) string {
	s = string(Clean(s))
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.,:/=%@+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
