package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotesAreWrittenOverNobodyElsesFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var n notesFiles
	mine, theirs, empty := filepath.Join(dir, "mine.md"), filepath.Join(dir, "config"), filepath.Join(dir, "empty")
	for file, text := range map[string]string{theirs: "kubeconfig", empty: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"first", "second, longer", "third"} {
		for _, file := range []string{mine, empty} {
			if _, err := n.write(file, []byte(text)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != text {
				t.Errorf("%s holds %q, want %q (%v)", file, got, text, err)
			}
		}
	}
	if _, err := n.write(theirs, []byte("notes")); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("over somebody's file: %v", err)
	}
	if got, _ := os.ReadFile(theirs); string(got) != "kubeconfig" {
		t.Errorf("somebody's file holds %q now", got)
	}
	if info, err := os.Stat(mine); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".rollcall-notes-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNotesThatCannotBeWrittenSayWhyOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "notes.md"): "no such file or directory",
		dir:                                  "is a directory",
	} {
		var n notesFiles
		if _, err := n.write(path, []byte("notes")); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestATildeIsTheHomeFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	var n notesFiles
	path, err := n.write("~/notes.md", []byte("notes"))
	if err != nil || path != filepath.Join(home, "notes.md") {
		t.Errorf("%s, %v", path, err)
	}
	if atHome("~root/x") != "~root/x" || atHome("a~/x") != "a~/x" {
		t.Error("only a leading ~/ is the home folder")
	}
}
