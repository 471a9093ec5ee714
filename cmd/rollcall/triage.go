package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// defaultTimeout is how long a report waits for the picture.
const defaultTimeout = 30 * time.Second

// triageOptions are those of a report about a whole cluster.
type triageOptions struct {
	*app
	output        string
	failOn        string
	all           bool
	allNamespaces bool
	watch         bool
	timeout       time.Duration
	limited       bool // by the timeout
	hurried       bool // the operator gave it
	screen        screenOptions

	format    headless.Format
	threshold report.Severity
}

func (a *app) triageCommand() *cobra.Command {
	o := &triageOptions{app: a}
	cmd := &cobra.Command{
		Use:   "triage",
		Short: "Say whether a rollout is what takes nodes or Pods down",
		Long: `Looks at every rollout and node of the cluster, in all namespaces unless -n
narrows it, and prints one report: the verdict, what speaks for and against it,
what to do now, and the findings behind it.`,
		Example: a.examples("triage", "triage -n kube-system -o markdown", "triage -o json --fail-on critical", "triage --watch -o json"),
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			o.hurried = cmd.Flags().Changed("timeout")
			o.limited = !o.watch || o.hurried
			return o.run(cmd.Context())
		},
	}
	a.connectionFlags(cmd)
	o.flags(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Go on, and print a report whenever something changed; -o json prints one a line")
	cmd.Flags().DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait for the picture, 0 for ever; with --watch how long to go on, for ever where it is not given")
	return cmd
}

// flags are those of every report.
func (o *triageOptions) flags(cmd *cobra.Command) {
	o.allNamespacesFlag(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&o.output, "output", "o", "text", "Form of the report: "+strings.Join(headless.Formats, ", "))
	fs.StringVar(&o.failOn, "fail-on", string(report.Warning), "Exit with 1 from this severity on: critical, warning or info")
	fs.BoolVar(&o.all, "all", false, "List the workloads of which there is nothing to say too")
	fixed(cmd, "output", headless.Formats)
	fixed(cmd, "fail-on", []string{string(report.Critical), string(report.Warning), string(report.Info)})
}

func (o *triageOptions) allNamespacesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Look at the workloads of all namespaces, which is the default without -n")
}

// fixed completes a flag from a fixed list.
func fixed(cmd *cobra.Command, flag string, values []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}

// noArgs refuses arguments in one clear line.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but was given %q", cmd.Name(), args[0])
	}
	return nil
}

// complete checks the options.
func (o *triageOptions) complete() error {
	var err error
	if o.format, err = headless.ParseFormat(o.output); err != nil {
		return usageError{err}
	}
	var ok bool
	if o.threshold, ok = report.ParseSeverity(o.failOn); !ok {
		return usagef("unknown severity %q for --fail-on: critical, warning and info are known", o.failOn)
	}
	if o.allNamespaces && o.namespace() != "" {
		return usagef("-n %s and --all-namespaces contradict each other", o.namespace())
	}
	if o.timeout < 0 {
		return usagef("--timeout %s is negative", o.timeout)
	}
	if o.watch && o.format == headless.JSON {
		o.format = headless.JSONLine
	}
	return nil
}

// namespace is what -n named, "" where it named none.
func (o *triageOptions) namespace() string { return o.kube.Overrides.Context.Namespace }

func (o *triageOptions) run(ctx context.Context) error {
	conn, err := o.connectWithin(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	source := watch.New(watch.Config{Conn: conn, Namespace: o.namespace(), NodeGrace: o.nodeGrace, Logger: o.logger})
	if o.watch {
		return o.follow(ctx, source)
	}
	s, err := o.once(ctx, source)
	if err != nil {
		return conn.Explain("read the cluster", err)
	}
	return o.print(o.diagnose(s))
}

// connectWithin connects, for at most the time that connecting may take.
func (o *triageOptions) connectWithin(ctx context.Context) (*kube.Connection, error) {
	ctx, cancel := o.connecting(ctx)
	defer cancel()
	return o.connect(ctx)
}

// connecting bounds ctx by the timeout where the operator gave one. The default
// hurries nobody who logs in at a credential plugin's prompt.
func (o *triageOptions) connecting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.hurried && o.timeout > 0 {
		return context.WithTimeout(ctx, o.timeout)
	}
	return ctx, func() {}
}

// once reads the cluster, for at most the timeout: what was not read by then the
// report says so of.
func (o *triageOptions) once(ctx context.Context, source *watch.Source) (*cluster.Snapshot, error) {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	return source.Once(ctx)
}

func (o *triageOptions) diagnose(s *cluster.Snapshot) *report.Report {
	return o.stamp(probes.Diagnose(s, probes.Options{Namespace: o.namespace(), All: o.all}).Report)
}

// stamp says when the report was made, which no probe knows.
func (o *triageOptions) stamp(in *report.Report) *report.Report {
	r := *in
	r.GeneratedAt = report.Time{Time: time.Now().UTC()}
	return &r
}

// print writes the report and gives its exit code.
func (o *triageOptions) print(r *report.Report) error {
	if err := headless.Render(o.out, r, headless.Options{Format: o.format, Colour: o.colour()}); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	if code := headless.ExitCode(r, o.threshold); code != headless.ExitOK {
		if code == headless.ExitUnanswered {
			o.warn("neither nodes nor workloads could be read: there is nothing to judge")
		}
		return exit(code)
	}
	return nil
}

// follow prints a report whenever something changed, until the operator or the
// timeout ends it. The exit code is that of the last report.
func (o *triageOptions) follow(ctx context.Context, source *watch.Source) error {
	within := ctx
	if o.timeout > 0 && o.limited {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	within, stop := context.WithCancel(within)
	defer stop()
	var last []byte
	var result, failed error
	err := source.Run(within, func(s *cluster.Snapshot) {
		r := o.diagnose(s)
		if failed != nil || len(r.Waiting) > 0 {
			return // not all is known yet: a first report of halves would only alarm
		}
		now, err := content(r)
		if err != nil || bytes.Equal(now, last) {
			return
		}
		if last != nil {
			o.separate()
		}
		last = now
		var code exit
		if result = o.print(r); result != nil && !errors.As(result, &code) {
			failed = result
			stop()
		}
	})
	switch {
	case failed != nil:
		return failed
	case err != nil && within.Err() == nil:
		return err
	case last == nil:
		return errors.New("the cluster was not read before the watch ended; give it longer with --timeout")
	}
	return result
}

// separate stands between two reports of one stream.
func (o *triageOptions) separate() {
	switch o.format {
	case headless.YAML, headless.Markdown:
		fmt.Fprintln(o.out, "---")
	case headless.Text:
		fmt.Fprintln(o.out)
	}
}

// content is a report without the times at which it was made, to tell whether
// something changed.
func content(in *report.Report) ([]byte, error) {
	r := *in
	r.GeneratedAt, r.AsOf = report.Time{}, report.Time{}
	return json.Marshal(&r)
}
