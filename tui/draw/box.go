package draw

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Look dresses a string, as lipgloss.Style.Render does.
type Look func(...string) string

// Box frames lines to exactly w cells; the title stands in the upper edge and
// foot, where not "", in the lower one.
func Box(title, foot string, lines []string, w int, edge, head Look) []string {
	if w < 4 {
		return nil
	}
	out := make([]string, 0, len(lines)+2)
	out = append(out, edgeLine("╭", "╮", title, w, edge, head))
	for _, l := range lines {
		out = append(out, edge("│")+" "+Pad(l, w-4)+" "+edge("│"))
	}
	return append(out, edgeLine("╰", "╯", foot, w, edge, edge))
}

func edgeLine(left, right, label string, w int, edge, head Look) string {
	if label == "" || w < 10 {
		return edge(left + strings.Repeat("─", w-2) + right)
	}
	label = Fit(label, w-6)
	return edge(left+"─") + " " + head(label) + " " + edge(strings.Repeat("─", w-5-Width(label))+right)
}

// Frame puts lines into a double frame of exactly w cells, one line for each of
// lines and two for the edges.
func Frame(title string, lines []string, w int, edge Look) []string {
	out := make([]string, 0, len(lines)+2)
	out = append(out, edge("╔"+Rule("═", title, w-2)+"╗"))
	for _, l := range lines {
		out = append(out, edge("║")+Pad(l, w-2)+edge("║"))
	}
	return append(out, edge("╚"+strings.Repeat("═", max(0, w-2))+"╝"))
}

// Over lays a box over the middle of base, which is drawn quietly behind it. All
// lines of the result have exactly w cells.
func Over(base, box []string, w int, quiet Look) []string {
	out := make([]string, len(base))
	for i, l := range base {
		out[i] = quiet(Pad(ansi.Strip(l), w))
	}
	if len(box) == 0 {
		return out
	}
	bw := Width(box[0])
	x := max(0, (w-bw)/2)
	y := max(0, (len(base)-len(box))/2)
	for i, l := range box {
		if y+i >= len(out) {
			break
		}
		plain := Pad(ansi.Strip(base[y+i]), w)
		left := Pad(ansi.Cut(plain, 0, x), x)
		right := PadLeft(ansi.Cut(plain, x+bw, w), max(0, w-x-bw))
		out[y+i] = quiet(left) + l + quiet(right)
	}
	return out
}
