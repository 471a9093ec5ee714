package lanes

import (
	"testing"
	"time"

	"charm.land/lipgloss/v2"
)

var t0 = time.Date(2026, 7, 3, 2, 10, 0, 0, time.UTC)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

var plain = Looks{State: func(State) lipgloss.Style { return lipgloss.NewStyle() }}

func TestRow(t *testing.T) {
	t.Parallel()
	fell := Lane{Spans: []Span{{at(-100), Good}, {at(10), Failing}, {at(13), Bad}, {at(18), Silent}}}
	for _, x := range []struct {
		name  string
		chart Chart
		want  string
	}{
		{"states from their moment on", Chart{Lanes: []Lane{fell}}, "██████████▒▒▒░░░░░╌╌"},
		{"nothing known before the first span", Chart{Lanes: []Lane{{Spans: []Span{{at(5), Good}}}}}, "     ███████████████"},
		{"marks and a gap", Chart{Lanes: []Lane{{Spans: fell.Spans, Gaps: []Gap{{at(3), at(7)}}, Marks: []Mark{{At: at(3), Glyph: 'd'}, {At: at(7), Glyph: 'n'}}}}}, "███d···n██▒▒▒░░░░░╌╌"},
		{"marks in one cell stand beside each other in their order", Chart{Lanes: []Lane{{Spans: fell.Spans, Marks: []Mark{{At: at(3), Glyph: 'n'}, {At: at(3), Glyph: 'r'}, {At: at(2), Glyph: 'd'}}}}}, "██dnr█████▒▒▒░░░░░╌╌"},
		{"a time that is not known is a span", Chart{Lanes: []Lane{{Spans: fell.Spans, Marks: []Mark{{At: at(2), Until: at(6), Glyph: 'd'}}}}}, "██d~~~████▒▒▒░░░░░╌╌"},
		{"what lies outside is not drawn", Chart{Lanes: []Lane{{Spans: fell.Spans, Marks: []Mark{{At: at(-5), Glyph: 'd'}, {At: at(50), Glyph: 'n'}}}}}, "██████████▒▒▒░░░░░╌╌"},
		{"lines for every lane", Chart{Lanes: []Lane{fell}, Lines: []time.Time{at(4)}}, "████┆█████▒▒▒░░░░░╌╌"},
		{"a mark lies over a line", Chart{Lanes: []Lane{{Spans: fell.Spans, Marks: []Mark{{At: at(4), Glyph: 'd'}}}}, Lines: []time.Time{at(4)}}, "████d█████▒▒▒░░░░░╌╌"},
		{"the cursor at the end is in sight", Chart{Lanes: []Lane{fell}, Cursor: at(20)}, "██████████▒▒▒░░░░░╌┃"},
	} {
		x.chart.From, x.chart.To = at(0), at(20)
		if got := x.chart.Row(0, 20, plain); got != x.want {
			t.Errorf("%s:\n got %q\nwant %q", x.name, got, x.want)
		}
	}
}

func TestAxisStandsOverItsMoments(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		span time.Duration
		w    int
		want string
	}{
		{4 * time.Minute, 40, "02:10     02:11     02:12     02:13     "},
		{40 * time.Second, 40, "02:10:00       02:10:15       02:10:30  "},
		{4 * time.Minute, 20, "02:10     02:12     "},
		{50 * time.Hour, 30, "             07-04            "},
	} {
		c := Chart{From: at(0), To: at(0).Add(x.span)}
		if got := c.Axis(x.w, plain); got != x.want {
			t.Errorf("%v in %d:\n got %q\nwant %q", x.span, x.w, got, x.want)
		}
	}
}

func TestAnEmptyWindowDrawsNothingAndDoesNotPanic(t *testing.T) {
	t.Parallel()
	c := Chart{From: at(0), To: at(0), Lanes: []Lane{{Spans: []Span{{at(0), Good}}}}}
	if got := c.Axis(40, plain); got != "" {
		t.Errorf("axis %q", got)
	}
	if got := c.Row(0, 0, plain); got != "" {
		t.Errorf("row %q", got)
	}
	c.Row(0, 1, plain)
}
