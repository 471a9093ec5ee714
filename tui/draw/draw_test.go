package draw

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFitting(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ got, want string }{
		{Fit("calico-node", 20), "calico-node"},
		{Fit("calico-node", 6), "calic…"},
		{Fit("calico-node", 0), ""},
		{Pad("ab", 4), "ab  "},
		{PadLeft("ab", 4), "  ab"},
		{Middle("ip-10-0-12-345.eu-west-1", 11), "ip-10…est-1"},
		{Middle("node-1", 11), "node-1"},
		{CutLeft("abcdef", 4), "…def"},
		{Spread("left", "right", 12), "left   right"},
		{Spread("a long left side", "right", 12), "a lon… right"},
		{Spread("left", "a right that fills it", 12), "a right tha…"},
		{Fit("名前名前", 5), "名前…"},
		{Rule("─", "", 4), "────"},
		{Rule("═", "PRACTICE", 16), "══ PRACTICE ════"},
	} {
		if x.got != x.want {
			t.Errorf("got %q, want %q", x.got, x.want)
		}
	}
}

func TestWrapKeepsNamesWhole(t *testing.T) {
	t.Parallel()
	if got := Wrap("roll back calico-node to revision 6", 16); strings.Join(got, "|") != "roll back|calico-node to|revision 6" {
		t.Errorf("got %q", got)
	}
	if got := Hang("Why   ", "one two three", 14, nil); strings.Join(got, "|") != "Why   one two|      three" {
		t.Errorf("got %q", got)
	}
	if got := Flow([]string{"█ Ready", "n new Pod", "d deleted"}, "  ", 18); strings.Join(got, "|") != "█ Ready  n new Pod|d deleted" {
		t.Errorf("got %q", got)
	}
}

func TestClipSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	if got := Clip([]string{"one", "two", "three"}, 2, 10); strings.Join(got, "|") != "one|two …" {
		t.Errorf("got %q", got)
	}
}

func TestNothingGrowsOverItsWidth(t *testing.T) {
	t.Parallel()
	look := func(s ...string) string { return strings.Join(s, "") }
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab -名…é█👩"))).Draw(r, "text")
		w := rapid.IntRange(1, 40).Draw(r, "width")
		for name, lines := range map[string][]string{
			"Fit": {Fit(s, w)}, "Pad": {Pad(s, w)}, "PadLeft": {PadLeft(s, w)}, "Middle": {Middle(s, w)}, "CutLeft": {CutLeft(s, w)},
			"Spread": {Spread(s, "right", w)}, "Wrap": Wrap(s, w), "Clip": Clip([]string{s, s}, 1, w), "Hang": Hang("> ", s, w+8, nil),
		} {
			most := w
			if name == "Hang" {
				most = w + 8
			}
			for _, l := range lines {
				if name == "Clip" && w < 4 {
					continue
				}
				if Width(l) > most {
					r.Fatalf("%s: %q has %d cells, not %d", name, l, Width(l), most)
				}
			}
		}
		for _, l := range Box(s, s, []string{s}, w, look, look) {
			if Width(l) != w {
				r.Fatalf("Box: %q has %d cells, not %d", l, Width(l), w)
			}
		}
	})
}
