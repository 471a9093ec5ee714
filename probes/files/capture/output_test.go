package capture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
)

func TestWhereACaptureGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("n1"))
	dir := t.TempDir()
	in := func(name string) string { return dir + string(os.PathSeparator) + name }
	write := func(name string) {
		if err := os.WriteFile(in(name), []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"empty", "full"} {
		if err := os.Mkdir(in(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("full/notes")
	write("old.tar.gz")
	if err := os.Symlink(os.DevNull, in("null")); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{ // of an error; "" for none
		"new.tar.gz":    "",
		"old.tar.gz":    "",
		"folder/":       "",
		"empty":         "",
		"full":          "not empty",
		"full/":         "not empty",
		"old.tar.gz/":   "not a directory",
		"null":          "no regular file",
		"no/such/x.tgz": "no such file or directory",
	} {
		got, err := capture.To(t.Context(), w.connect(api.DefaultUser), in(target), w.options())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", target, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if s := load(t, got.Path); len(s.Nodes) != 1 {
			t.Errorf("%s: %d nodes", target, len(s.Nodes))
		}
		err = filepath.WalkDir(got.Path, func(path string, e os.DirEntry, _ error) error {
			info, err := e.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may read %s: %v", target, path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"empty", "folder", "full", "new.tar.gz", "null", "old.tar.gz"}; !slices.Equal(names, want) {
		t.Errorf("the folder holds %v, want %v", names, want)
	}
	if raw, err := os.ReadFile(in("full/notes")); err != nil || string(raw) != "before" {
		t.Errorf("a folder that was in use was touched: %q, %v", raw, err)
	}
}

func TestACaptureIsNamedAfterContextAndTime(t *testing.T) {
	t.Parallel()
	for context, want := range map[string]string{
		"prod-eu-1":                              "rollcall-prod-eu-1-20260703T102600Z",
		"":                                       "rollcall-cluster-20260703T102600Z",
		"arn:aws:eks:eu-1:1234:cluster/prod":     "rollcall-arn-aws-eks-eu-1-1234-cluster-prod-20260703T102600Z",
		"../../etc/passwd":                       "rollcall-etc-passwd-20260703T102600Z",
		"a\nb\x1b[2J":                            "rollcall-a-b-2J-20260703T102600Z",
		strings.Repeat("long-", 20) + "the-name": "rollcall-g-" + strings.Repeat("long-", 10) + "the-name-20260703T102600Z",
	} {
		if got := capture.Name(files.CaptureDocument{Context: context, CapturedAt: now}); got != want {
			t.Errorf("%q: %s, want %s", context, got, want)
		}
	}
}
