// Package list keeps the cursor and the window of a list that may be very long:
// only the rows in the window are ever drawn. It knows nothing of what a row is.
package list

// List is a cursor in n rows and the window that shows it. The number of rows
// and the height of the window are given with each call, because both change
// under the operator's hands.
type List struct {
	cursor, offset int
}

// Cursor is the selected row, or -1 where there is none.
func (l *List) Cursor(n int) int {
	if n == 0 {
		return -1
	}
	return min(max(l.cursor, 0), n-1)
}

// Select moves the cursor to row i.
func (l *List) Select(i, n int) { l.cursor = min(max(i, 0), max(0, n-1)) }

// Move moves the cursor by delta rows and stops at the ends.
func (l *List) Move(delta, n int) { l.Select(l.Cursor(n)+delta, n) }

// Window is the range of rows that fits h lines and holds the cursor.
func (l *List) Window(n, h int) (from, to int) {
	if n == 0 || h <= 0 {
		return 0, 0
	}
	c := l.Cursor(n)
	if c < l.offset {
		l.offset = c
	}
	if c >= l.offset+h {
		l.offset = c - h + 1
	}
	l.offset = min(max(l.offset, 0), max(0, n-h))
	return l.offset, min(n, l.offset+h)
}

// At is the row that stands in line y of the window, or -1.
func (l *List) At(y, n int) int {
	i := l.offset + y
	if y < 0 || i >= n {
		return -1
	}
	return i
}
