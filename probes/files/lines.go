package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
)

// maxObject bounds one object, in bytes. etcd takes 1.5 MiB; a bound far above it
// keeps a file that is something else from filling the memory.
const maxObject = 64 << 20

var errTooLarge = fmt.Errorf("holds an object of more than %d MiB", maxObject>>20)

// lines reads a stream by line and knows their numbers.
type lines struct {
	r *bufio.Reader
	n int // number of the line that next returned last, from 1
}

func newLines(r io.Reader, before int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), n: before}
}

// next returns the next line with its line end, which is "\n" whatever it was in
// the file; only the last line may have none. The slice is the caller's.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxObject {
			return nil, errTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) == 0 {
			return nil, err
		}
		l.n++
		if bytes.HasSuffix(line, []byte("\r\n")) {
			line = append(line[:len(line)-2], '\n')
		}
		if errors.Is(err, io.EOF) {
			err = nil // the next call says so
		}
		return line, err
	}
}

// tracker is a reader that knows on which line an offset of what it has delivered
// lies, as far back as the last forget, and that bounds what one object takes.
type tracker struct {
	src      io.Reader
	first    int     // number of the line at the start
	forgot   int     // line ends before ends[0]
	ends     []int64 // offsets of line ends
	read     int64
	released int64
}

func newTracker(r io.Reader, first int) *tracker { return &tracker{src: r, first: first} }

func (t *tracker) Read(p []byte) (int, error) {
	if t.read-t.released > maxObject {
		return 0, errTooLarge
	}
	n, err := t.src.Read(p)
	for i := 0; i < n; i++ {
		j := bytes.IndexByte(p[i:n], '\n')
		if j < 0 {
			break
		}
		i += j
		t.ends = append(t.ends, t.read+int64(i))
	}
	t.read += int64(n)
	return n, err
}

// forget says that nothing before offset will be asked about again.
func (t *tracker) forget(offset int64) {
	t.released = offset
	i := sort.Search(len(t.ends), func(i int) bool { return t.ends[i] >= offset })
	t.forgot += i
	t.ends = t.ends[:copy(t.ends, t.ends[i:])]
}

// line is the number of the line that offset lies on.
func (t *tracker) line(offset int64) int {
	return t.first + t.forgot + sort.Search(len(t.ends), func(i int) bool { return t.ends[i] >= offset })
}
