package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// diagnoseOptions are those of a report from files, or about one workload.
type diagnoseOptions struct {
	triageOptions
	paths  []string
	asOf   string
	target *target

	at time.Time
}

func (a *app) diagnoseCommand() *cobra.Command {
	o := &diagnoseOptions{triageOptions: triageOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "diagnose {-f FILE | TYPE/NAME}",
		Short: "Diagnose files that kubectl wrote, or one workload",
		Long: `With -f reads what ` + "`kubectl get … -o yaml|json`" + ` prints (objects, Lists, several
documents, folders, ` + "`kubectl cluster-info dump`" + ` folders, .gz and .tar.gz; - is
standard input) and prints the report that triage would have printed then. No
cluster is asked. With TYPE/NAME the report is about that workload.`,
		Example: a.examples("diagnose -f ./dump", "diagnose -f nodes.yaml -f pods.json --as-of 2026-07-03T10:26:00Z", "diagnose ds/calico-node -n kube-system"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			t, err := parseTarget(args)
			o.target = &t
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.hurried = cmd.Flags().Changed("timeout")
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: completeTarget,
	}
	a.connectionFlags(cmd)
	o.flags(cmd)
	cmd.Flags().StringArrayVarP(&o.paths, "filename", "f", nil, "File, folder or archive to read, - for standard input; may be given several times")
	cmd.Flags().StringVar(&o.asOf, "as-of", "", "The moment that files are judged at, RFC 3339; default the latest that they vouch for")
	cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait for the picture of a live cluster")
	return cmd
}

func (o *diagnoseOptions) complete() error {
	if err := o.triageOptions.complete(); err != nil {
		return err
	}
	if len(o.paths) == 0 && o.target == nil {
		return usagef("nothing to diagnose: give files with -f, or a workload as in ds/calico-node")
	}
	return o.completeFiles()
}

// completeFiles checks what is said of files.
func (o *diagnoseOptions) completeFiles() error {
	if slices.Contains(o.paths, "") {
		return usagef("-f names no file")
	}
	if o.asOf != "" && len(o.paths) == 0 {
		return usagef("--as-of goes with -f: a live cluster is judged as it is now")
	}
	return o.moment()
}

// moment reads --as-of.
func (o *diagnoseOptions) moment() error {
	if o.asOf == "" {
		return nil
	}
	var err error
	if o.at, err = time.Parse(time.RFC3339, o.asOf); err != nil {
		return usagef("--as-of %q is no RFC 3339 time, such as 2026-07-03T10:26:00Z", o.asOf)
	}
	if o.at.IsZero() {
		return usagef("--as-of %s lies before Kubernetes did", o.asOf)
	}
	return nil
}

func (o *diagnoseOptions) run(ctx context.Context) error {
	var s *cluster.Snapshot
	namespace := o.namespace()
	if len(o.paths) > 0 {
		var err error
		if s, err = o.read(ctx); err != nil {
			return err
		}
	} else {
		conn, err := o.connectWithin(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		namespace = conn.Namespace
		source := watch.New(watch.Config{Conn: conn, Namespace: namespace, NodeGrace: o.nodeGrace, Logger: o.logger})
		source.Want(watch.Workload{Kind: o.target.kind, Namespace: namespace, Name: o.target.name})
		if s, err = o.once(ctx, source); err != nil {
			return conn.Explain("read the cluster", err)
		}
	}
	if o.target == nil {
		return o.print(o.diagnose(s))
	}
	r := o.stamp(probes.Diagnose(s, probes.Options{Namespace: namespace, All: true}).Report)
	if err := narrow(r, *o.target, namespace); err != nil {
		return err
	}
	return o.print(r)
}

// maxWarnings bounds what is said of places in files that could not be read.
const maxWarnings = 10

// read loads the files and says what of them could not be read.
func (o *diagnoseOptions) read(ctx context.Context) (*cluster.Snapshot, error) {
	s, stats, err := o.load(ctx)
	if err != nil {
		return nil, err // it names the first place and counts the others
	}
	for i, p := range stats.Problems {
		o.logger.Warn("cannot read", "where", p.String())
		if i < maxWarnings {
			o.warn("%s", p)
		}
	}
	if more := len(stats.Problems) + stats.MoreProblems - maxWarnings; more > 0 {
		o.warn("and %d more places that could not be read", more)
	}
	if !s.Newest.IsZero() {
		o.warn("--as-of %s lies before %s, when the newest of the input was written: objects show what they became, not what they were", s.AsOf.Format(time.RFC3339), s.Newest.Format(time.RFC3339))
	}
	o.logger.Info("read files", "files", stats.Files, "skipped", stats.Skipped, "kept", fmt.Sprint(stats.Kept), "metadataOnly", fmt.Sprint(stats.MetadataOnly),
		"secrets", stats.Secrets, "duplicates", stats.Duplicates)
	return s, nil
}

// load reads the files until the operator has waited enough: opening a FIFO and
// reading a terminal take as long as they take, and no context ends them.
func (o *diagnoseOptions) load(ctx context.Context) (*cluster.Snapshot, files.Stats, error) {
	type loaded struct {
		s     *cluster.Snapshot
		stats files.Stats
		err   error
	}
	done := make(chan loaded, 1)
	go func() {
		s, stats, err := files.Load(ctx, o.paths, files.Options{AsOf: o.at, Grace: o.nodeGrace, Stdin: o.in})
		done <- loaded{s, stats, err}
	}()
	select {
	case l := <-done:
		return l.s, l.stats, l.err
	case <-ctx.Done():
		return nil, files.Stats{}, ctx.Err()
	}
}

// narrow leaves the one workload in the report and makes its verdict the report's.
func narrow(r *report.Report, t target, namespace string) error {
	var found []report.Workload
	var names []string
	for _, w := range r.Workloads {
		if string(w.Kind) != t.kind || namespace != "" && string(w.Namespace) != namespace {
			continue
		}
		if string(w.Name) == t.name {
			found = append(found, w)
		}
		names = append(names, string(w.Name))
	}
	switch {
	case len(found) > 1:
		var spaces []string
		for _, w := range found {
			spaces = append(spaces, string(w.Namespace))
		}
		return usagef("%s is in several namespaces: %s; name one with -n", t, strings.Join(spaces, ", "))
	case len(found) == 0 && headless.ExitCode(r, report.Critical) == headless.ExitUnanswered:
		return fmt.Errorf("neither nodes nor workloads could be read, so nothing can be said of %s", t)
	case len(found) == 0:
		where := ""
		if namespace != "" {
			where = " in namespace " + namespace
		}
		slices.Sort(names)
		if near := nearest(t.name, slices.Compact(names)); near != "" {
			return fmt.Errorf("there is no %s named %s%s; did you mean %s?", t.kind, t.name, where, near)
		}
		return fmt.Errorf("there is no %s named %s%s; name its namespace with -n", t.kind, t.name, where)
	}
	w := found[0]
	r.Workloads, r.Quiet = found, 0
	r.Verdict = w.Verdict
	r.Verdict.Workload = report.Text(w.Key().String())
	return nil
}
