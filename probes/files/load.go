// Package files reads a cluster from files: what `kubectl get … -o yaml|json`
// prints, folders of it, `kubectl cluster-info dump` folders, archives. It gives
// the very Snapshot that a live cluster gives, so that the same probes judge both.
//
// Input is read as a stream of documents and each object is decoded by itself:
// memory is bounded by what is kept, not by what is read. What cannot be read is
// a Problem with file and line, and the rest is still read. Secrets are never
// kept; of kinds that no probe reads the metadata alone is.
//
// The package also holds the compact notation for field cases (see Case), which
// tests and documentation use. Nothing here knows a wall clock, and nothing but
// the files that are named is opened.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Options say how files are read.
type Options struct {
	// AsOf is the moment the input is judged at; zero takes the moment of the
	// capture, and the latest that the input itself vouches for where it is none.
	AsOf time.Time
	// Grace is node-monitor-grace-period where it is known; 0 lets it be inferred.
	Grace time.Duration
	// Stdin is what the path "-" reads.
	Stdin io.Reader
	// Source says where the input was captured a moment ago; its zero value is files.
	Source cluster.Source
}

// Stats tell what was read and what was not.
type Stats struct {
	Files        int                      // files and archive members that were read
	Skipped      int                      // files in folders and archives that hold no objects by their name
	Kept         map[cluster.Resource]int // objects kept whole
	MetadataOnly map[string]int           // by kind: objects of which the metadata alone was kept
	Secrets      int                      // Secrets that were passed over
	Duplicates   int                      // older copies of an object that was seen again
	Problems     []Problem                // at most maxProblems
	MoreProblems int                      // problems beyond those
}

// maxProblems bounds the list of problems: a broken file of 200 MB can hold millions.
const maxProblems = 100

// Problem is a place that could not be read.
type Problem struct {
	File string
	Line int // from 1; 0 where the file as a whole is meant
	Why  string
}

func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Why
	case p.Line == 0:
		return p.File + ": " + p.Why
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Why)
}

// ErrNothing is wrapped by the error of a Load that found no object at all.
var ErrNothing = errors.New("no Kubernetes objects could be read")

// ErrNoTime is returned where no object carries a time and none was given.
var ErrNoTime = errors.New("no object in the input carries a time: say with --as-of at what moment to read it")

// Load reads the paths: files, folders, archives (.tar, .gz, .tar.gz), "-" for
// Options.Stdin. The error is for input that cannot be diagnosed at all: nothing
// readable, or no moment to judge it at. Everything less is in Stats.Problems.
func Load(ctx context.Context, paths []string, o Options) (*cluster.Snapshot, Stats, error) {
	l := newLoader(ctx)
	for _, p := range paths {
		l.path(p, o.Stdin)
	}
	return l.finish(o)
}

// loader gathers what the paths hold.
type loader struct {
	ctx     context.Context
	stats   Stats
	store   store
	version string       // of the API server, where `kubectl version` is among the input
	compose *composition // the Case that is being read
	now     time.Time    // of a Case that was read
	// captures are the documents that say how the input was captured.
	captures []CaptureDocument
	take     func(document) // where set, takes every document instead of keeping it
}

func newLoader(ctx context.Context) *loader {
	return &loader{
		ctx:   ctx,
		store: newStore(),
		stats: Stats{Kept: map[cluster.Resource]int{}, MetadataOnly: map[string]int{}},
	}
}

func (l *loader) problem(file string, line int, format string, args ...any) {
	if len(l.stats.Problems) >= maxProblems {
		l.stats.MoreProblems++
		return
	}
	l.stats.Problems = append(l.stats.Problems, Problem{File: file, Line: line, Why: fmt.Sprintf(format, args...)})
}

// finish makes the Snapshot of what was gathered.
func (l *loader) finish(o Options) (*cluster.Snapshot, Stats, error) {
	if err := l.ctx.Err(); err != nil {
		return nil, l.stats, fmt.Errorf("reading files was interrupted: %w", err)
	}
	objects := l.store.objects(&l.stats)
	l.stats.Duplicates = l.store.duplicates
	if len(l.store.kept) == 0 && len(l.store.seen) == 0 {
		return nil, l.stats, l.nothing()
	}
	asOf := o.AsOf
	if asOf.IsZero() {
		asOf = l.now
	}
	if asOf.IsZero() {
		asOf = l.capturedAt()
	}
	if asOf.IsZero() {
		if asOf = latest(&objects); asOf.IsZero() {
			return nil, l.stats, ErrNoTime
		}
	}
	m := cluster.Meta{
		AsOf:      asOf.UTC(),
		Source:    cluster.Source{Type: "files", Version: l.version},
		NodeGrace: o.Grace,
	}
	if newest := latest(&objects); !o.AsOf.IsZero() && newest.Sub(o.AsOf) > time.Second {
		m.Newest = newest.UTC()
	}
	if o.Source.Type != "" {
		m.Source = o.Source
	}
	l.store.scope(&objects, &m)
	l.tell(&objects, &m)
	return cluster.New(objects, m), l.stats, nil
}

// nothing explains why there is nothing to diagnose.
func (l *loader) nothing() error {
	switch n := len(l.stats.Problems); {
	case n == 1:
		return fmt.Errorf("%w: %s", ErrNothing, l.stats.Problems[0])
	case n > 1:
		return fmt.Errorf("%w: %s (and %d more problems)", ErrNothing, l.stats.Problems[0], n-1+l.stats.MoreProblems)
	case l.stats.Secrets > 0:
		return fmt.Errorf("%w: the input holds nothing but Secrets, which are never read", ErrNothing)
	}
	return fmt.Errorf("%w: give what `kubectl get nodes,pods,daemonsets,controllerrevisions,events -A -o yaml` prints", ErrNothing)
}
