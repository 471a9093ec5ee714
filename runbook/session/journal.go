package session

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Journal is one session's file, open for writing. Every entry is on the disk
// when Append returns without an error. An entry that cannot be written stays in
// memory, and the next Append tries again: a full disk does not end an incident.
// A Journal may be used by several goroutines.
type Journal struct {
	mu      sync.Mutex
	path    string
	f       file  // nil: nothing can be written, the journal is in memory only
	size    int64 // length of the file up to the last entry that is safely in it
	broken  bool  // a write left half a line that could not be taken back
	entries []Entry
	written int // how many of entries are in the file
	problem error
}

// file is what a Journal needs of an *os.File.
type file interface {
	Write(p []byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

var errInUse = errors.New("another rollcall is writing to it")

// Create starts a journal in the folder, which is made if it is not there and
// kept to its owner (0700). Where that fails it returns a journal that keeps its
// entries in memory only, together with an error that says why: the incident can
// go on, and its notes can be written from Entries.
func Create(folder string, start time.Time, context string) (*Journal, error) {
	j := &Journal{}
	err := own(folder)
	if err == nil {
		j.path = filepath.Join(folder, fileName(start, context))
		j.f, err = createFile(j.path)
	}
	if err != nil {
		j.path, j.f = "", nil
		j.problem = fmt.Errorf("cannot write the journal in %s: %w; what happens is kept in memory only, write the notes before you leave", folder, cause(err))
		return j, j.problem
	}
	return j, nil
}

func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// own makes the folder and keeps others out of it.
func own(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(folder, 0o700)
	}
	return nil
}

// Open continues a journal. The lost result says in one line what could not be
// read of it, "" where all could. A journal that another process is writing to is
// refused.
func Open(path string) (j *Journal, lost string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, "", fmt.Errorf("cannot continue the session in %s: %w", path, cause(err))
	}
	fail := func(err error) (*Journal, string, error) {
		return nil, "", fmt.Errorf("cannot continue the session in %s: %w", path, errors.Join(err, f.Close()))
	}
	if err := lock(f); err != nil {
		return fail(err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return fail(err)
		}
	}
	entries, r, err := readAll(f)
	if err != nil {
		return fail(err)
	}
	return &Journal{path: path, f: f, size: r.size, broken: r.openLine, entries: entries, written: len(entries)}, r.lost(), nil
}

// Path is where the journal is, "" where it is in memory only.
func (j *Journal) Path() string { return j.path }

// Entries are all entries of the session so far, written or not.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Entry(nil), j.entries...)
}

// Unsaved counts the entries that are in memory only.
func (j *Journal) Unsaved() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries) - j.written
}

// Append writes one entry, after those that could not be written before. What
// looks secret is hidden first. The error says in one line what is wrong with the
// file; the entry is kept in any case.
func (j *Journal) Append(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Seq = 1
	if n := len(j.entries); n > 0 {
		e.Seq = j.entries[n-1].Seq + 1
	}
	e.Wall, e.Text, e.Data = e.Wall.UTC(), Redact(e.Text), RedactJSON(e.Data)
	if e.Cluster != nil {
		t := e.Cluster.UTC()
		e.Cluster = &t
	}
	j.entries = append(j.entries, e)
	return j.flush()
}

// flush writes what is not in the file yet.
func (j *Journal) flush() error {
	if j.f == nil {
		return j.problem
	}
	for j.written < len(j.entries) {
		if err := j.write(j.entries[j.written]); err != nil {
			return fmt.Errorf("cannot write the journal %s: %w; %d entries are kept in memory and written as soon as it works",
				j.path, cause(err), len(j.entries)-j.written)
		}
		j.written++
	}
	return nil
}

func (j *Journal) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if j.broken {
		line = append([]byte{'\n'}, line...) // ends the half line before it
	}
	n, err := j.f.Write(line)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		// What came into the file may be half a line: take it back, or the next
		// entry would be glued to it.
		if n > 0 && j.f.Truncate(j.size) != nil {
			j.size, j.broken = j.size+int64(n), true
		}
		return err
	}
	j.size, j.broken = j.size+int64(n), false
	return nil
}

// Close writes what is left and lets the file go.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	err := j.flush()
	f := j.f
	j.f, j.problem = nil, fmt.Errorf("the journal %s is closed", j.path)
	return errors.Join(err, f.Close())
}

// cause is the reason of a file error without the path, which the message has already.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

const stamp = "2006-01-02T15-04-05Z"

var notInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// fileName is "2026-07-03T02-09-58Z_prod-eu-1_9f2c11aa.jsonl".
func fileName(start time.Time, context string) string {
	name := strings.Trim(notInNames.ReplaceAllString(context, "-"), "-.")
	if name == "" {
		name = "cluster"
	}
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%s_%s_%s.jsonl", start.UTC().Format(stamp), name[:min(len(name), 60)], hex.EncodeToString(b[:]))
}
