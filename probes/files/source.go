package files

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// path reads one path of the command line.
func (l *loader) path(p string, stdin io.Reader) {
	if p == "-" {
		if stdin == nil {
			l.problem("-", 0, "there is no standard input")
			return
		}
		l.stream("standard input", "", stdin, 0)
		return
	}
	info, err := os.Stat(p)
	if err != nil {
		l.problem(p, 0, "cannot be opened: %s", plain(err))
		return
	}
	if !info.IsDir() {
		l.file(p)
		return
	}
	// WalkDir goes in lexical order, so that two runs read in the same order.
	before := l.stats.Files
	err = filepath.WalkDir(p, func(name string, e fs.DirEntry, err error) error {
		switch {
		case l.ctx.Err() != nil:
			return l.ctx.Err()
		case err != nil:
			l.problem(name, 0, "cannot be opened: %s", plain(err))
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir():
			if name != p && strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir
			}
		case !holdsObjects(e.Name()):
			l.stats.Skipped++
		default:
			l.file(name)
		}
		return nil
	})
	if err == nil && l.stats.Files == before && len(l.stats.Problems) == 0 {
		l.problem(p, 0, "the folder holds no .yaml, .json or archive file")
	}
}

// holdsObjects tells by its name whether a file of a folder or an archive is
// read: a cluster-info dump holds logs beside objects, and a case its answer.
func holdsObjects(name string) bool {
	base := strings.ToLower(path.Base(filepath.ToSlash(name)))
	if strings.HasPrefix(base, ".") || base == answerFile {
		return false
	}
	base = strings.TrimSuffix(base, ".gz")
	return slices.Contains([]string{".yaml", ".yml", ".json", ".ndjson", ".jsonl", ".tar", ".tgz"}, path.Ext(base))
}

func (l *loader) file(name string) {
	f, err := os.Open(name)
	if err != nil {
		l.problem(name, 0, "cannot be opened: %s", plain(err))
		return
	}
	defer f.Close()
	l.stream(name, filepath.Dir(name), f, 0)
}

// maxNesting bounds archives within archives.
const maxNesting = 4

// stream reads one file whatever it is packed in; dir is the folder that a
// case's base is looked up from, "" where there is none.
func (l *loader) stream(name, dir string, r io.Reader, depth int) {
	if depth > maxNesting {
		l.problem(name, 0, "is packed more than %d times over", maxNesting)
		return
	}
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(512)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		l.problem(name, 0, "cannot be read: %s", plain(err))
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			l.problem(name, 0, "is not a whole gzip file: %s", plain(err))
			return
		}
		l.stream(name, dir, z, depth+1)
	case len(head) > 262 && string(head[257:262]) == "ustar":
		l.tar(name, b, depth)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		l.problem(name, 0, "is a zip archive: unpack it first")
	default:
		l.stats.Files++
		l.documents(name, dir, newLogFilter(decodeText(b, head)))
	}
}

func (l *loader) tar(name string, r io.Reader, depth int) {
	t := tar.NewReader(r)
	for l.ctx.Err() == nil {
		h, err := t.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				l.problem(name, 0, "the archive ends early or is damaged: %s", plain(err))
			}
			return
		}
		switch {
		case h.Typeflag != tar.TypeReg:
		case !holdsObjects(h.Name):
			l.stats.Skipped++
		default:
			l.stream(name+":"+path.Clean(h.Name), "", t, depth+1)
		}
	}
}

// decodeText turns UTF-16, with a byte order mark (PowerShell's `>`) or without,
// and UTF-8 with one into plain UTF-8.
func decodeText(r io.Reader, head []byte) io.Reader {
	fallback := transform.Transformer(transform.Nop)
	if len(head) > 1 && !bytes.HasPrefix(head, []byte{0xff, 0xfe}) && !bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		switch {
		case head[0] != 0 && head[1] == 0:
			fallback = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder()
		case head[0] == 0 && head[1] != 0:
			fallback = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder()
		}
	}
	return transform.NewReader(r, unicode.BOMOverride(fallback))
}

// plain shortens an error of the operating system to its reason: the file's name
// stands before it already.
func plain(err error) string {
	var p *fs.PathError
	switch {
	case errors.As(err, &p):
		return p.Err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends early"
	}
	return fmt.Sprint(err)
}

// logFilter blanks the container logs that `kubectl cluster-info dump` without a
// folder prints between the lists. Lines keep their numbers.
type logFilter struct {
	r       *bufio.Reader
	pending []byte
	start   bool // at the start of a line
	inLog   bool
	err     error
}

const (
	logStart = "==== START logs for container "
	logEnd   = "==== END logs for container "
)

func newLogFilter(r io.Reader) io.Reader {
	return &logFilter{r: bufio.NewReaderSize(r, 64<<10), start: true}
}

func (f *logFilter) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		chunk, err := f.r.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			f.err = err
		}
		if f.start && !f.inLog && bytes.HasPrefix(chunk, []byte(logStart)) {
			f.inLog = true
		}
		ended := f.start && f.inLog && bytes.HasPrefix(chunk, []byte(logEnd))
		if f.inLog {
			chunk = chunk[:0]
			if whole {
				chunk = []byte{'\n'}
			}
		}
		if ended {
			f.inLog = false
		}
		f.start = whole
		f.pending = chunk
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}
