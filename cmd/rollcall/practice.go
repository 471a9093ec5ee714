package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// practiceSpeed is how much faster than the wall clock an incident unfolds on the
// screen.
const practiceSpeed = 10

// practiceOptions are those of a practice incident.
type practiceOptions struct {
	*app
	incident string
	auto     bool
	seed     int64
	output   string
	screen   screenOptions
}

func (a *app) practiceCommand() *cobra.Command {
	o := &practiceOptions{app: a}
	var names []string
	var list strings.Builder
	for _, i := range practice.Incidents() {
		names = append(names, i.Name)
		fmt.Fprintf(&list, "  %-22s %s\n", i.Name, i.Title)
	}
	cmd := &cobra.Command{
		Use:       "practice [INCIDENT]",
		Short:     "Practise an incident on a simulated cluster; nothing else is needed",
		Long:      "Practise an incident on a simulated cluster that this program carries with it.\n\nIncidents:\n" + strings.TrimRight(list.String(), "\n"),
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one incident at a time, but %q was given too", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.incident = practice.DefaultIncident
			if len(args) == 1 {
				o.incident = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.auto, "auto", false, "Play the incident through without a terminal: diagnose, fix, prove, print the notes")
	cmd.Flags().Int64Var(&o.seed, "seed", 1, "Choose names, nodes and times; the same seed plays the same incident")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "With --auto: text, or json for the report as it stood before the first action")
	cmd.Flags().BoolVar(&a.kube.ReadOnly, "read-only", false, "Look, and refuse every change of the practice cluster")
	o.screen.flags(cmd.Flags())
	fixed(cmd, "output", []string{"text", "json"})
	return cmd
}

func (o *practiceOptions) run(ctx context.Context) error {
	if err := o.screen.check(); err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" {
		return usagef("unknown output format %q: practice knows text and json", o.output)
	}
	lab, err := practice.Start(o.incident, o.seed)
	if err != nil {
		return usageError{err}
	}
	defer lab.Close()
	if o.auto {
		return o.play(ctx, lab)
	}
	if !o.interactive() {
		fmt.Fprintln(o.errOut, "no terminal: playing the incident by itself, as with --auto")
		return o.play(ctx, lab)
	}
	return o.show(ctx, lab)
}

// connection reaches the practice cluster; wall is the clock that the API server's
// own is estimated from.
func (o *practiceOptions) connection(lab *practice.Cluster, wall func() time.Time) (*kube.Connection, error) {
	conn, err := kube.New(lab.Config(), kube.Options{Version: version, Logger: o.logger, Wall: wall, ReadOnly: o.kube.ReadOnly, ReadOnlyWhy: "--read-only"})
	if err != nil {
		return nil, err
	}
	conn.Context = "practice"
	return conn, nil
}

func (o *practiceOptions) identity(ctx context.Context, conn *kube.Connection) incident.Identity {
	id := identify(ctx, conn)
	id.Practice, id.Incident = true, report.Clean(o.incident)
	return id
}

// lesson is what the incident teaches, in the words of a report.
func (o *practiceOptions) lesson() headless.Lesson {
	l := headless.Lesson{Incident: o.incident, Seed: o.seed}
	for _, i := range practice.Incidents() {
		if i.Name != o.incident {
			continue
		}
		l.Attribution = report.Attribution(i.Verdict)
		if part := strings.SplitN(i.Culprit, "/", 3); len(part) == 3 {
			l.Workload = report.WorkloadKey{Kind: report.Clean(part[0]), Namespace: report.Clean(part[1]), Name: report.Clean(part[2])}
		}
	}
	return l
}

// play runs the incident to its end on the virtual clock.
func (o *practiceOptions) play(ctx context.Context, lab *practice.Cluster) error {
	conn, err := o.connection(lab, lab.Now)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Prime(ctx); err != nil {
		return err
	}
	source := watch.New(watch.Config{Conn: conn, Type: "practice", NodeGrace: o.nodeGrace, Now: lab.Now, Logger: o.logger})
	defer source.Close()
	c := &composition{source: source, api: conn.API(), want: source.Want, retry: source.Retry, identity: o.identity(ctx, conn), journal: &memory{}, clock: virtualClock{lab}}
	loop, err := c.loop()
	if err != nil {
		return err
	}
	auto := headless.Auto{
		Practice: &stage{lab, source}, Loop: loop, Lesson: o.lesson(), Format: o.output, Out: o.out,
		Notes: func() (string, error) { return c.document(loop.State(), loop.Worst()).Markdown(), nil },
	}
	err = auto.Run(ctx)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(o.errOut, "error: "+string(report.Clean(err.Error())))
		return exit(headless.ExitFindings)
	}
	return err
}

// stage is the practice cluster as the driver steps it.
type stage struct {
	lab    *practice.Cluster
	source *watch.Source
}

func (s *stage) Now() time.Time { return s.lab.Now() }

func (s *stage) Step(to time.Time) error { return s.lab.Step(to) }

// Settle waits, for all that is watched, until the stores have what the cluster
// has; bookmarks tell those apart that nothing happens to.
func (s *stage) Settle(ctx context.Context) (*cluster.Snapshot, error) {
	return s.source.Settle(ctx, s.lab.Bookmark())
}

// virtualClock is the practice cluster's clock.
type virtualClock struct{ lab *practice.Cluster }

func (v virtualClock) Now() time.Time { return v.lab.Now() }

// memory is a journal that is not kept: a run without a person leaves nothing behind.
type memory struct {
	mu      sync.Mutex
	entries []session.Entry
}

func (m *memory) Append(e session.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Seq = len(m.entries) + 1
	e.Text, e.Data = session.Redact(e.Text), session.RedactJSON(e.Data)
	m.entries = append(m.entries, e)
	return nil
}

func (m *memory) Path() string { return "" }

func (m *memory) Entries() []session.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]session.Entry(nil), m.entries...)
}

// show lets the incident unfold on the screen, about ten times as fast as the wall
// clock.
func (o *practiceOptions) show(ctx context.Context, lab *practice.Cluster) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	conn, err := o.connection(lab, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Prime(ctx); err != nil {
		return err
	}
	source := watch.New(watch.Config{Conn: conn, Type: "practice", NodeGrace: o.nodeGrace, Now: lab.Now, Logger: o.logger})
	journal := o.openJournal("practice-" + o.incident)
	defer journal.Close()
	c := &composition{source: source, api: conn.API(), want: source.Want, retry: source.Retry, identity: o.identity(ctx, conn), journal: journal, clock: wallClock{}, started: time.Now()}
	var beside sync.WaitGroup
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var failed error
	beside.Go(func() { failed = lab.Run(ctx, practiceSpeed, ticker.C) })
	err = o.screen.open(ctx, c, nil)
	stop()
	beside.Wait()
	if err == nil {
		err = failed
	}
	return err
}

// openJournal starts the journal of an incident. Where it cannot be kept on disk,
// the incident goes on and its notes can still be written.
func (a *app) openJournal(context string) *session.Journal {
	j, err := session.Create(stateFolder(), time.Now(), context)
	if err != nil {
		a.warn("%v", err)
	}
	return j
}
