// Package library holds the runbooks. Each is one YAML file in this folder,
// compiled into the program; a new one is a new file and nothing else. How a file
// is written stands at the top of nodes-failing-during-rollout.yaml.
package library

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/runbook"
)

//go:embed *.yaml
var files embed.FS

// Load returns every runbook, by id, checked against the names of the probes and
// of the actions that there are. A nil list is not checked against.
func Load(probeNames, actionNames []string) ([]*runbook.Book, error) {
	return load(files, runbook.Names{Probes: probeNames, Actions: actionNames})
}

func load(fsys fs.FS, names runbook.Names) ([]*runbook.Book, error) {
	paths, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var books []*runbook.Book
	var errs []error
	for _, p := range paths {
		data, err := fs.ReadFile(fsys, p)
		if err != nil {
			return nil, fmt.Errorf("runbook %s: not readable: %w", p, err)
		}
		b, err := runbook.Parse(p, data, names)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if b.ID != strings.TrimSuffix(path.Base(p), ".yaml") {
			errs = append(errs, fmt.Errorf("runbook %s: its id is %q; a file is named for its id", p, b.ID))
		}
		books = append(books, b)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(books, func(a, b *runbook.Book) int { return strings.Compare(a.ID, b.ID) })
	return books, nil
}
