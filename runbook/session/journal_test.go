package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 7, 3, 2, 9, 58, 123456789, time.UTC)

func create(t *testing.T, folder string) *Journal {
	t.Helper()
	j, err := Create(folder, start, "prod/eu 1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func note(i int) Entry {
	cluster := start.Add(time.Duration(i) * time.Second)
	return Entry{Wall: start.Add(time.Duration(i) * time.Second), Cluster: &cluster, Kind: Note, Step: "timeline", Text: fmt.Sprintf("note %d", i), Data: Data(map[string]int{"n": i})}
}

func add(t *testing.T, j *Journal, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	add(t, j, Entry{Wall: start, Kind: SessionStarted, Data: Data(Started{Context: "prod"})}, note(1), note(2))
	entries, lost, err := Read(j.Path())
	if err != nil || lost != "" {
		t.Fatal(err, lost)
	}
	if diff := cmp.Diff(j.Entries(), entries); diff != "" {
		t.Error(diff)
	}
	if len(entries) != 3 || entries[2].Seq != 3 || entries[2].Text != "note 2" || !entries[2].At().Equal(start.Add(2*time.Second)) {
		t.Errorf("got %+v", entries)
	}
}

func TestFileAndFolderBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	folder := filepath.Join(t.TempDir(), "state", "sessions")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	j := create(t, folder)
	for path, want := range map[string]os.FileMode{folder: 0o700, j.Path(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
	if err := os.Chmod(j.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	j.Close()
	k, _, err := Open(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if info, err := os.Stat(j.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("resumed: %v %v", info.Mode().Perm(), err)
	}
}

func TestNamesSayWhenAndWhere(t *testing.T) {
	t.Parallel()
	for context, want := range map[string]string{
		"prod/eu 1":              "2026-07-03T02-09-58Z_prod-eu-1_",
		"../../etc/passwd":       "2026-07-03T02-09-58Z_etc-passwd_",
		"":                       "2026-07-03T02-09-58Z_cluster_",
		"\x1b[2J日本":              "2026-07-03T02-09-58Z_2J_",
		strings.Repeat("a", 300): "2026-07-03T02-09-58Z_" + strings.Repeat("a", 60) + "_",
	} {
		if got := fileName(start, context); !strings.HasPrefix(got, want) || len(got) != len(want)+len("12345678.jsonl") {
			t.Errorf("%q: got %s", context, got)
		}
	}
	if first, second := fileName(start, "a"), fileName(start, "a"); first == second {
		t.Error("two sessions of one second share a name")
	}
}

// unsynced is a file that does not wait for the disk, for tests that write many.
type unsynced struct{ file }

func (unsynced) Sync() error { return nil }

// A crash, a full disk or a power cut may leave the file cut anywhere. Whole lines
// survive, half a line is dropped and said, and the session goes on after it.
func TestAJournalCutAtAnyByteKeepsItsWholeLinesAndGoesOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	j := create(t, folder)
	add(t, j, note(1), note(2), note(3))
	j.Close()
	whole, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		path := filepath.Join(folder, "cut.jsonl")
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		complete := strings.Count(string(whole[:n]), "\n")
		rest := whole[strings.LastIndex(string(whole[:n]), "\n")+1 : n]
		if len(rest) > 0 && json.Valid(rest) { // only its line end is missing
			complete, rest = complete+1, nil
		}
		entries, lost, err := Read(path)
		if err != nil || len(entries) != complete || (lost != "") != (len(rest) > 0) {
			t.Fatalf("cut at %d: %d entries, lost %q, %v; want %d", n, len(entries), lost, err, complete)
		}
		k, lostToo, err := Open(path)
		if err != nil || lostToo != lost {
			t.Fatalf("cut at %d: %q, %v", n, lostToo, err)
		}
		k.f = unsynced{k.f}
		add(t, k, note(9))
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		entries, _, err = Read(path)
		if err != nil || len(entries) != complete+1 || entries[complete].Text != "note 9" || entries[complete].Seq != complete+1 {
			t.Fatalf("cut at %d, continued: %+v, %v", n, entries, err)
		}
	}
}

func TestDamagedLinesAreLeftOutAndCounted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.jsonl")
	lines := `{"seq":1,"wall":"2026-07-03T02:09:58Z","kind":"Note","text":"a"}
garbage
{"seq":2,"wall":"2026-07-03T02:09:58Z","kind":"Note","text":"b"}
{"seq":2,"wall":"2026-07-03T02:09:58Z","kind":"Note","text":"b"}

{"no":"entry"}
{"seq":3,"wall":"2026-07-03T02:09:58Z","kind":"Note","te`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, lost, err := Read(path)
	if err != nil || len(entries) != 2 || lost != "2 lines are damaged and left out (the first is line 2); the last line was cut off and is left out" {
		t.Errorf("%d entries, %q, %v", len(entries), lost, err)
	}
}

func TestAVeryLongLineIsRead(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	add(t, j, Entry{Kind: Note, Text: strings.Repeat("x", 1<<18)})
	if entries, _, err := Read(j.Path()); err != nil || len(entries) != 1 || len(entries[0].Text) != 1<<18 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestTwoProcessesNeverWriteOneJournal(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	add(t, j, note(1))
	if _, _, err := Open(j.Path()); err == nil || !strings.Contains(err.Error(), "another rollcall is writing to it") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if l, err := List(filepath.Dir(j.Path()), 0); err != nil || len(l) != 1 || !l[0].InUse {
		t.Errorf("list: %+v, %v", l, err)
	}
	j.Close()
	k, _, err := Open(j.Path())
	if err != nil {
		t.Fatalf("after the first has closed it: %v", err)
	}
	k.Close()
}

func TestOpeningWhatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "no.jsonl")
	if _, _, err := Open(path); err == nil || !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("got %v", err)
	}
	if _, _, err := Read(path); err == nil {
		t.Error("read what is not there")
	}
}

func TestAFolderThatCannotBeWrittenDoesNotEndTheIncident(t *testing.T) {
	t.Parallel()
	blocker := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Create(filepath.Join(blocker, "sessions"), start, "prod")
	if err == nil || !strings.Contains(err.Error(), "kept in memory only") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	if err2 := j.Append(note(1)); err2 == nil {
		t.Error("an entry in memory only must say so")
	}
	if e := j.Entries(); len(e) != 1 || e[0].Text != "note 1" || j.Unsaved() != 1 || j.Path() != "" {
		t.Errorf("got %+v", e)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// sick is a file whose disk fails as it is told.
type sick struct {
	*os.File
	room              int // bytes that still fit; -1: any number
	failSync, failCut bool
}

func (s *sick) Write(p []byte) (int, error) {
	if s.room >= 0 && len(p) > s.room {
		n, err := s.File.Write(p[:s.room])
		if err != nil {
			return n, err
		}
		s.room = 0
		return n, &os.PathError{Op: "write", Path: s.Name(), Err: syscall.ENOSPC}
	}
	return s.File.Write(p)
}

func (s *sick) Sync() error {
	if s.failSync {
		return syscall.EIO
	}
	return s.File.Sync()
}

func (s *sick) Truncate(n int64) error {
	if s.failCut {
		return syscall.EIO
	}
	return s.File.Truncate(n)
}

func TestAFullDiskKeepsEntriesInMemoryUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		break_ func(*sick)
		want   string
	}{
		"nothing fits":                          {func(s *sick) { s.room = 0 }, "no space left on device"},
		"half a line fits":                      {func(s *sick) { s.room = 20 }, "no space left on device"},
		"half a line fits and stays":            {func(s *sick) { s.room, s.failCut = 20, true }, "no space left on device"},
		"the disk does not confirm":             {func(s *sick) { s.failSync = true }, "input/output error"},
		"the disk does not confirm, line stays": {func(s *sick) { s.failSync, s.failCut = true, true }, "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := create(t, t.TempDir())
			s := &sick{File: j.f.(*os.File), room: -1}
			j.f = s
			add(t, j, note(1))
			c.break_(s)
			for i := 2; i < 4; i++ {
				if err := j.Append(note(i)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "kept in memory") {
					t.Errorf("got %v", err)
				}
			}
			if j.Unsaved() != 2 || len(j.Entries()) != 3 {
				t.Errorf("%d unsaved of %d", j.Unsaved(), len(j.Entries()))
			}
			s.room, s.failSync, s.failCut = -1, false, false
			add(t, j, note(4))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			entries, _, err := Read(j.Path())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(j.Entries(), entries); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSecretsDoNotReachTheFile(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	add(t, j, Entry{Kind: Note, Text: "the password: hunter2", Data: Data(map[string]any{"env": []map[string]string{{"name": "API_TOKEN", "value": "hunter3"}}})})
	raw, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	if s := string(raw); strings.Contains(s, "hunter") || strings.Count(s, "[hidden]") != 2 {
		t.Errorf("got %s", s)
	}
	if e := j.Entries()[0]; strings.Contains(e.Text+string(e.Data), "hunter") {
		t.Error("the copy in memory has it")
	}
}

func TestManyGoroutinesWriteWholeLines(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := j.Append(note(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, lost, err := Read(j.Path())
	if err != nil || lost != "" || len(entries) != 20 {
		t.Fatalf("%d entries, %q, %v", len(entries), lost, err)
	}
	for i, e := range entries {
		if e.Seq != i+1 {
			t.Errorf("entry %d has number %d", i+1, e.Seq)
		}
	}
}

func TestAClosedJournalSaysSo(t *testing.T) {
	t.Parallel()
	j := create(t, t.TempDir())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(note(1)); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("got %v", err)
	}
}

func TestListTellsTheNewestFirst(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "sessions")
	if l, err := List(folder, 0); l != nil || err != nil {
		t.Fatalf("no folder: %v, %v", l, err)
	}
	for i, context := range []string{"a", "b", "c"} {
		j, err := Create(folder, start.Add(time.Duration(i)*time.Hour), context)
		if err != nil {
			t.Fatal(err)
		}
		add(t, j, Entry{Wall: start.Add(time.Duration(i) * time.Hour), Kind: SessionStarted, Data: Data(Started{Context: context, Workload: "DaemonSet/x/y"})})
		if context == "b" {
			add(t, j, Entry{Wall: start.Add(90 * time.Minute), Kind: SessionEnded})
		}
		j.Close()
	}
	for name, text := range map[string]string{"notes.md": "x", "2027_other.jsonl": "not a journal\n", "2028.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := List(folder, 0)
	if err != nil || len(l) != 3 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l[0].About.Context != "c" || l[1].About.Context != "b" || l[2].About.Context != "a" {
		t.Errorf("order: %+v", l)
	}
	if b := l[1]; !b.Ended || b.Entries != 2 || !b.Last.Equal(start.Add(90*time.Minute)) || !b.Started.Equal(start.Add(time.Hour)) || b.InUse || l[0].Ended {
		t.Errorf("got %+v", b)
	}
	if two, err := List(folder, 2); err != nil || len(two) != 2 {
		t.Errorf("limit: %d, %v", len(two), err)
	}
}

func TestUnfinishedActionsHaveAnIntentionAndNoOutcome(t *testing.T) {
	t.Parallel()
	action := func(k Kind, id int) Entry { return Entry{Kind: k, Data: Data(Action{ID: id, Kind: "RollBack"})} }
	entries := []Entry{
		action(ActionPreviewed, 1), action(ActionConfirmed, 1), action(ActionApplied, 1), action(ActionVerified, 1),
		action(ActionPreviewed, 2), action(ActionConfirmed, 2), action(ActionFailed, 2),
		action(ActionPreviewed, 3), action(ActionConfirmed, 3),
		action(ActionPreviewed, 4),
	}
	open := Unfinished(entries)
	var a Action
	if len(open) != 1 || open[0].Decode(&a) != nil || a.ID != 3 {
		t.Errorf("got %+v", open)
	}
}

func TestDataThatIsNoJSONIsSaidNotLost(t *testing.T) {
	t.Parallel()
	if got := string(Data(func() {})); !strings.Contains(got, "data not kept") {
		t.Errorf("got %s", got)
	}
}
