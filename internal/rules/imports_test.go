package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rollcall-k8s/rollcall/"

// room is a folder of the tree and what it may import. Of our own packages the
// direct imports are held against the table; what follows from them is then
// allowed as well. What a room must never reach is looked for in everything that
// it pulls in, through whomever.
type room struct {
	path      string   // below the module, with all folders below it
	ours      []string // the rooms that it may import, beside itself
	any       bool     // it may import every room
	libraries []string // if set, the only modules outside the standard library that it may import
	never     []string // prefixes of import paths that it must not reach
}

const (
	client   = "k8s.io/client-go"
	terminal = "charm.land/bubbletea"
)

// rooms is the table. A package belongs to the longest path that fits.
var rooms = []room{
	{path: "cmd/rollcall", any: true},
	{path: "tui", ours: []string{"runbook", "runbook/incident", "runbook/action", "runbook/session", "runbook/notes", "runbook/library", "probes/report", "probes/cluster", "probes/signs"}, never: []string{client}},
	{path: "internal/headless", ours: []string{"runbook", "runbook/incident", "runbook/action", "runbook/session", "runbook/notes", "runbook/library", "probes/report", "probes/cluster", "probes/signs"}, never: []string{client, terminal}},
	{path: "runbook/incident", ours: []string{"probes", "probes/report", "probes/cluster", "probes/signs", "runbook", "runbook/action", "runbook/session"}, never: []string{client, terminal}},
	{path: "runbook/notes", ours: []string{"runbook/session", "runbook", "runbook/action", "probes/report", "probes/signs"}, never: []string{client, terminal}},
	{path: "runbook/action", ours: []string{"probes/report", "probes/cluster", "probes/owners", "internal/redact"}, never: []string{client, terminal}},
	{path: "runbook/session", ours: []string{"internal/redact"}, never: []string{client, terminal}},
	{path: "runbook/library", ours: []string{"runbook"}, never: []string{client, terminal}},
	{path: "runbook", ours: []string{"probes/report", "probes/cluster"}, never: []string{client, terminal}},
	{path: "probes/report", libraries: []string{"github.com/charmbracelet/x/ansi"}, never: []string{"k8s.io", terminal}},
	{path: "probes/cluster", libraries: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/component-helpers", "k8s.io/klog"}, never: []string{client, terminal}},
	{path: "probes/signs", ours: []string{"probes/report"}, libraries: []string{}, never: []string{"k8s.io", terminal}},
	{path: "probes/refusal", ours: []string{"probes/report"}, libraries: []string{}, never: []string{"k8s.io", terminal}},
	{path: "probes/files", ours: []string{"probes/cluster"}, never: []string{client, terminal}},
	{path: "probes/owners", ours: []string{"probes/report", "probes/cluster"}, never: []string{client, terminal}},
	{path: "probes", ours: []string{"probes/cluster", "probes/report", "probes/refusal", "probes/owners", "internal/redact", "internal/defaults"}, never: []string{client, terminal}},
	{path: "internal/kube", ours: []string{"runbook/action", "probes/report"}, never: []string{terminal}},
	{path: "internal/watch", ours: []string{"probes/cluster", "internal/kube"}, never: []string{terminal}},
	{path: "internal/practice", ours: []string{"internal/defaults"}, never: []string{terminal}},
	{path: "internal/defaults", libraries: []string{"k8s.io/api", "k8s.io/apimachinery"}, never: []string{client, terminal}},
	{path: "internal/redact", libraries: []string{}, never: []string{client, terminal}},
	{path: "internal/rules"},
}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Imports    []string // direct
	Deps       []string // all that it pulls in
	Standard   bool
	Module     *struct{ Path string }
}

func TestEveryRoomImportsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	pkgs := list(t)
	if len(pkgs) < 100 {
		t.Fatalf("go list names %d packages: that cannot be all", len(pkgs))
	}
	for _, v := range violations(pkgs, rooms) {
		t.Error(v)
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard,Module", "./...")
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// violations are the imports that the table does not allow, one sentence each.
func violations(pkgs []pkg, rooms []room) (bad []string) {
	known := map[string]pkg{}
	for _, p := range pkgs {
		known[p.ImportPath] = p
	}
	for _, p := range pkgs {
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		r, ok := roomOf(name, rooms)
		if !ok {
			bad = append(bad, name+" is in no room of the table: give it one")
			continue
		}
		for _, imported := range p.Imports {
			if other, ours := strings.CutPrefix(imported, module); ours {
				to, _ := roomOf(other, rooms)
				if !r.any && to.path != r.path && !slices.Contains(r.ours, to.path) {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s may import %s of ours", name, other, r.path, listed(r.ours)))
				}
			} else if q := known[imported]; r.libraries != nil && !q.Standard && (q.Module == nil || !within(q.Module.Path, r.libraries)) {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s may import the standard library and %s", name, imported, r.path, listed(r.libraries)))
			}
		}
		for _, dep := range p.Deps {
			if within(dep, r.never) {
				bad = append(bad, fmt.Sprintf("%s reaches %s, by way of %s", name, dep, way(known, p.ImportPath, dep)))
				break // one way says enough
			}
		}
	}
	return bad
}

func roomOf(name string, rooms []room) (found room, ok bool) {
	for _, r := range rooms {
		if (name == r.path || strings.HasPrefix(name, r.path+"/")) && len(r.path) > len(found.path) {
			found, ok = r, true
		}
	}
	return found, ok
}

// within tells whether a path is one of those or below one.
func within(path string, those []string) bool {
	return slices.ContainsFunc(those, func(s string) bool {
		return path == s || strings.HasPrefix(path, s+"/")
	})
}

func listed(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}

// way is the first import on the way from one package to another.
func way(known map[string]pkg, from, to string) string {
	for _, i := range known[from].Imports {
		if i == to || slices.Contains(known[i].Deps, to) {
			return i
		}
	}
	return "?"
}

func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	library := func(path string) pkg { return pkg{ImportPath: path, Module: &struct{ Path string }{path}} }
	of := func(name string, imports ...string) pkg {
		return pkg{ImportPath: module + name, Imports: imports, Deps: imports, Module: &struct{ Path string }{strings.TrimSuffix(module, "/")}}
	}
	through := library("example.com/helper")
	through.Imports, through.Deps = []string{client + "/rest"}, []string{client + "/rest"}
	cases := map[string]struct {
		pkg  pkg
		want string // "" where it is allowed
	}{
		"a screen reads the report":          {of("tui/page", module+"probes/report"), ""},
		"a screen asks a probe":              {of("tui/page", module+"probes"), "tui/page imports probes: tui may import"},
		"a screen reaches a cluster":         {of("tui", module+"internal/kube"), "tui imports internal/kube"},
		"a probe draws":                      {of("probes", module+"tui/style"), "probes imports tui/style"},
		"a probe reaches client-go itself":   {of("probes", client+"/rest"), "probes reaches k8s.io/client-go/rest, by way of k8s.io/client-go/rest"},
		"an action reaches it through help":  {pkg{ImportPath: module + "runbook/action", Imports: []string{through.ImportPath}, Deps: []string{through.ImportPath, client + "/rest"}}, "runbook/action reaches k8s.io/client-go/rest, by way of example.com/helper"},
		"the journal knows the report":       {of("runbook/session", module+"probes/report"), "runbook/session may import internal/redact of ours"},
		"hiding knows the report":            {of("internal/redact", module+"probes/report"), "internal/redact may import nothing of ours"},
		"the report takes another library":   {of("probes/report", "example.com/helper"), "probes/report imports example.com/helper"},
		"the report measures text":           {of("probes/report", "github.com/charmbracelet/x/ansi"), ""},
		"the report uses the library":        {of("probes/report", "strings"), ""},
		"the practice cluster diagnoses":     {of("internal/practice/sim", module+"probes/cluster"), "internal/practice/sim imports probes/cluster"},
		"the practice cluster is a client":   {of("internal/practice/api", client+"/rest"), ""},
		"a room imports its own rooms":       {of("tui", module+"tui/page"), ""},
		"a package that no room was given":   {of("extra", "strings"), "extra is in no room"},
		"a command puts everything together": {of("cmd/rollcall", module+"tui", module+"internal/kube"), ""},
	}
	rest := library(client)
	rest.ImportPath = client + "/rest"
	world := []pkg{through, rest, library("github.com/charmbracelet/x/ansi"), {ImportPath: "strings", Standard: true}}
	for name, c := range cases {
		got := violations(append(slices.Clone(world), c.pkg), rooms)
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %q, want it allowed", name, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s: %q, want one sentence with %q", name, got, c.want)
		}
	}
}
