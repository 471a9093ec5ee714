package list

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheCursorIsAlwaysInTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var l List
		for range rapid.IntRange(1, 30).Draw(r, "moves") {
			n, h := rapid.IntRange(0, 50).Draw(r, "rows"), rapid.IntRange(0, 12).Draw(r, "height")
			l.Move(rapid.IntRange(-60, 60).Draw(r, "by"), n)
			from, to := l.Window(n, h)
			c := l.Cursor(n)
			if n == 0 {
				if c != -1 || from != to {
					r.Fatalf("empty list: cursor %d, window %d to %d", c, from, to)
				}
				continue
			}
			if from < 0 || to > n || to-from > h || h > 0 && (c < from || c >= to) {
				r.Fatalf("%d rows, height %d: cursor %d, window %d to %d", n, h, c, from, to)
			}
			if h > 0 && to-from < min(n, h) {
				r.Fatalf("%d rows, height %d: the window %d to %d is not full", n, h, from, to)
			}
		}
	})
}

func TestAtIsTheRowUnderTheMouse(t *testing.T) {
	t.Parallel()
	var l List
	l.Select(9, 10)
	l.Window(10, 4)
	if got := l.At(0, 10); got != 6 {
		t.Errorf("line 0 is row %d", got)
	}
	if l.At(-1, 10) != -1 || l.At(4, 10) != -1 {
		t.Error("outside of the list is a row")
	}
}
