package rules

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// drawers are names that say nothing of what is inside: things land there and are
// not found again.
var drawers = map[string]bool{"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true}

// longest is how many lines a file may have; tests, whose tables are long, may have more.
const longest = 600

func TestTheTreeHasNoDrawersAndNoEndlessFiles(t *testing.T) {
	t.Parallel()
	seen := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "bin" || name == "dist") {
			return fs.SkipDir
		}
		if isDrawer(name, d.IsDir()) {
			t.Errorf("%s: name it for what it answers", name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		seen++
		data, err := os.ReadFile(path.Join("../..", name))
		if err != nil {
			return err
		}
		if lines := strings.Count(string(data), "\n"); lines > longest {
			t.Errorf("%s has %d lines: cut it where its subject changes", name, lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d Go files seen: this is not the tree", seen)
	}
}

// isDrawer tells whether a folder, or a Go file, has the name of a drawer.
func isDrawer(name string, folder bool) bool {
	base := path.Base(name)
	if !folder {
		var isGo bool
		if base, isGo = strings.CutSuffix(base, ".go"); !isGo {
			return false
		}
		base = strings.TrimSuffix(base, "_test")
	}
	return drawers[strings.ToLower(base)]
}

func TestDrawersAreSeen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"tui/utils.go": true, "tui/helpers_test.go": true, "probes/Common.go": true,
		"tui/utilization.go": false, "docs/common.md": false, "probes/rollout.go": false,
	} {
		if isDrawer(name, false) != want {
			t.Errorf("%s: drawer %v, want %v", name, !want, want)
		}
	}
	if !isDrawer("internal/misc", true) || isDrawer("internal/kube", true) {
		t.Error("folders are not told apart")
	}
}
