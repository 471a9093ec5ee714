package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/adrg/xdg"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/runbook/library"
	"github.com/rollcall-k8s/rollcall/runbook/notes"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// wallClock is this machine's clock.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

// composition is everything that one incident is made of.
type composition struct {
	source   incident.Source
	api      reach
	want     func(watch.Workload)
	retry    func()
	identity incident.Identity
	identify func() incident.Identity // where the identity comes later; may be nil
	journal  keeper
	clock    incident.Clock
	started  time.Time // wall time, for the name of the notes
	options  probes.Options
	files    notesFiles
}

// reach is what a loop needs of a cluster besides its picture.
type reach interface {
	action.API
	action.Logs
}

// keeper is a journal whose entries can be read back.
type keeper interface {
	incident.Journal
	Entries() []session.Entry
}

// books are the runbooks, checked against the probes and actions that there are.
func books() ([]*runbook.Book, error) {
	var actions []string
	for _, k := range action.Kinds() {
		actions = append(actions, string(k))
	}
	return library.Load(slices.Sorted(maps.Keys(probes.Probes)), actions)
}

// loop puts the incident together.
func (c *composition) loop() (*incident.Loop, error) {
	b, err := books()
	if err != nil {
		return nil, err
	}
	cfg := incident.Config{
		Source: c.source, API: c.api, Logs: c.api, Clock: c.clock, Books: b, Identity: c.identity, Identify: c.identify, Options: c.options, Program: version,
		WriteNotes: c.writeNotes,
		Want: func(k report.WorkloadKey) {
			c.want(watch.Workload{Kind: string(k.Kind), Namespace: string(k.Namespace), Name: string(k.Name)})
		},
		Retry: c.retry,
	}
	if c.journal != nil {
		cfg.Journal = c.journal
	}
	return incident.New(cfg), nil
}

// document builds the incident notes from what the journal holds.
func (c *composition) document(st *incident.State, worst *report.Report) *notes.Document {
	in := notes.Input{Entries: c.journal.Entries(), Report: st.Report, Worst: worst, Guide: st.Guide, Left: st.Left}
	if st.Guide != nil {
		in.Target = st.Guide.Target
	}
	return notes.Build(in)
}

// writeNotes writes the incident notes; what the file's ending asks for decides
// their form.
func (c *composition) writeNotes(path string, st *incident.State, worst *report.Report) (string, error) {
	if path == "" {
		path = c.notesPath()
	}
	doc := c.document(st, worst)
	var raw []byte
	var err error
	switch filepath.Ext(path) {
	case ".json":
		raw, err = doc.JSON()
	case ".html", ".htm":
		var s string
		s, err = doc.HTML()
		raw = []byte(s)
	default:
		raw = []byte(doc.Markdown())
	}
	if err == nil {
		path, err = c.files.write(path, raw)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write them to %s: %w; name another file", path, err)
	}
	return path, nil
}

// notesPath is where the notes of the incident go where nobody says otherwise: one
// file, named after when it began.
func (c *composition) notesPath() string {
	return "rollcall-" + c.started.UTC().Format("20060102-150405") + ".md"
}

// stateFolder is where journals are kept.
func stateFolder() string { return filepath.Join(xdg.StateHome, "rollcall") }

// identify asks the API server who looks at it.
func identify(ctx context.Context, conn *kube.Connection) incident.Identity {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	user, err := conn.WhoAmI(ctx)
	if err != nil {
		user = "" // who it is, is not worth failing for
	}
	return incident.Identity{Context: report.Clean(conn.Context), Server: report.Clean(conn.Server), Version: report.Clean(conn.Version()),
		User: report.Clean(user), ReadOnly: conn.ReadOnly}
}
