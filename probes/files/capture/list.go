package capture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// list writes a List, item by item, as kubectl prints one of -o json. What was
// written since a mark can be taken back.
type list struct {
	f       *os.File
	w       *bufio.Writer
	objects int
	err     error // of writing; it stays

	size   int64 // written, of it buffered what the file does not have
	marked struct {
		size    int64
		objects int
	}
}

func newList(name string) (*list, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, writing(err)
	}
	l := &list{f: f, w: bufio.NewWriterSize(f, 64<<10)}
	l.write("{\n    \"apiVersion\": \"v1\",\n    \"items\": [")
	return l, l.err
}

// writing says of an error that it came of writing the capture.
func writing(err error) error { return fmt.Errorf("cannot write the capture: %w", err) }

func (l *list) write(s string) {
	if l.err != nil {
		return
	}
	n, err := l.w.WriteString(s)
	l.size += int64(n)
	if err != nil {
		l.err = writing(err)
	}
}

// add writes one object.
func (l *list) add(o map[string]any) error {
	raw, err := json.MarshalIndent(o, "        ", "    ")
	if err != nil {
		return err
	}
	if l.objects > 0 {
		l.write(",")
	}
	l.write("\n        ")
	l.write(string(raw))
	l.objects++
	return l.err
}

// mark remembers how far the list has come.
func (l *list) mark() { l.marked.size, l.marked.objects = l.size, l.objects }

// rollback takes back what was written since the mark.
func (l *list) rollback() error {
	if l.err == nil {
		l.err = l.truncate()
	}
	return l.err
}

func (l *list) truncate() error {
	if err := l.w.Flush(); err != nil {
		return writing(err)
	}
	if err := l.f.Truncate(l.marked.size); err != nil {
		return writing(err)
	}
	if _, err := l.f.Seek(l.marked.size, io.SeekStart); err != nil {
		return writing(err)
	}
	l.size, l.objects = l.marked.size, l.marked.objects
	return nil
}

// end completes the list.
func (l *list) end() error {
	if l.objects > 0 {
		l.write("\n    ")
	}
	l.write("],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n")
	if l.err != nil {
		return l.err
	}
	if err := l.w.Flush(); err != nil {
		return writing(err)
	}
	return nil
}

func (l *list) close() error {
	if err := l.f.Close(); err != nil {
		return writing(err)
	}
	return nil
}
