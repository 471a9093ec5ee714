package timeline

import (
	"fmt"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/tui/component/lanes"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

var bars = []rune("▁▂▃▄▅▆▇█")

// Spark draws how many lanes were not Ready over time, in w columns, with its
// highest count; "" where there is nothing to draw.
func Spark(t *report.Timeline, w int, s *style.Styles) string {
	if t == nil || w < 8 || len(t.Lanes) == 0 || !t.To.After(t.From.Time) {
		return ""
	}
	c := Chart(t)
	counts := make([]int, w)
	most := 0
	for x := range counts {
		// A column counts what stood at its end, so that the last one is now.
		at := c.From.Add(time.Duration(x+1) * c.To.Sub(c.From) / time.Duration(w))
		for i := range c.Lanes {
			if st := c.Lanes[i].Under(at); st == lanes.Bad || st == lanes.Silent {
				counts[x]++
			}
		}
		most = max(most, counts[x])
	}
	if most == 0 {
		return ""
	}
	out := make([]rune, w)
	for x, n := range counts {
		out[x] = ' '
		if n > 0 {
			out[x] = bars[(n*len(bars)-1)/most]
		}
	}
	return s.Dim.Render("   not Ready since "+wording.Clock(t.From.Time)+" ") + s.Bad.Render(string(out)) + s.Dim.Render(fmt.Sprintf(" %d", counts[w-1]))
}
