package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Read reads a journal. What a crash left half written is dropped; lost says so
// in one line and is "" where nothing was.
func Read(path string) (entries []Entry, lost string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the session in %s: %w", path, cause(err))
	}
	defer f.Close()
	entries, r, err := readAll(f)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the session in %s: %w", path, cause(err))
	}
	return entries, r.lost(), nil
}

// reading is what became of the lines of a file.
type reading struct {
	size     int64
	openLine bool  // the file does not end with a line end
	cut      bool  // its last line is half a line
	bad      []int // other lines that are no entries, from 1
}

func (r reading) lost() string {
	var out []string
	if len(r.bad) > 0 {
		out = append(out, fmt.Sprintf("%d lines are damaged and left out (the first is line %d)", len(r.bad), r.bad[0]))
	}
	if r.cut {
		out = append(out, "the last line was cut off and is left out")
	}
	return strings.Join(out, "; ")
}

func readAll(in io.Reader) ([]Entry, reading, error) {
	var entries []Entry
	var r reading
	last := 0 // highest number seen
	b := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := b.ReadBytes('\n')
		r.size += int64(len(line))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, r, err
		}
		whole := bytes.HasSuffix(line, []byte("\n"))
		if text := bytes.TrimSpace(line); len(text) > 0 {
			var e Entry
			switch bad := json.Unmarshal(text, &e) != nil || e.Kind == "" || e.Seq < 1; {
			case bad && whole:
				r.bad = append(r.bad, n)
			case bad:
				r.cut = true
			case e.Seq > last: // a repeated one was written twice around a failure
				entries, last = append(entries, e), e.Seq
			}
		}
		if err != nil {
			r.openLine = len(line) > 0
			return entries, r, nil
		}
	}
}

// Info is one session in a list.
type Info struct {
	Path    string
	Started time.Time
	Last    time.Time // of its last entry
	About   Started
	Entries int
	Ended   bool
	InUse   bool // another process is writing to it
}

// List returns the sessions of a folder, the newest first, at most limit of them
// (0: all). Files that are no journals are left out; a folder that is not there
// holds none.
func List(folder string, limit int) ([]Info, error) {
	found, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions in %s: %w", folder, cause(err))
	}
	var out []Info
	for _, d := range slices.Backward(found) { // by name, which begins with the time
		if limit > 0 && len(out) == limit {
			break
		}
		if d.IsDir() || filepath.Ext(d.Name()) != ".jsonl" {
			continue
		}
		if i, ok := describe(filepath.Join(folder, d.Name())); ok {
			out = append(out, i)
		}
	}
	return out, nil
}

func describe(path string) (Info, bool) {
	entries, _, err := Read(path)
	if err != nil || len(entries) == 0 {
		return Info{}, false
	}
	first, last := entries[0], entries[len(entries)-1]
	i := Info{Path: path, Started: first.Wall, Last: last.Wall, Entries: len(entries), Ended: last.Kind == SessionEnded}
	if first.Kind == SessionStarted {
		_ = first.Decode(&i.About) // what it is about stays empty where it is damaged
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		i.InUse = errors.Is(lock(f), errInUse)
		f.Close()
	}
	return i, true
}
