package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
)

// captureOptions are those of writing a cluster to files.
type captureOptions struct {
	*app
	path          string
	keepEnv       bool
	allNamespaces bool
}

func (a *app) captureCommand() *cobra.Command {
	o := &captureOptions{app: a}
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Write the cluster to a file, to diagnose it elsewhere",
		Long: `Writes what ` + "`diagnose -f`" + ` reads to an archive: nodes, workloads, Pods, revisions,
events, Leases and what belongs to them, as ` + "`kubectl get -o json`" + ` prints them. The
cluster is only read, in pages, and the archive gives the verdict of that moment.

Secrets are never asked for, and of ConfigMaps the metadata alone. Environment
values, HTTP headers, arguments that look secret and annotations that may be are
replaced by digests: they still show that a value changed, and nothing else.
Names, images, addresses and messages stay: look before you pass it on.

What may not be read is left out and named. The exit code is 2 where neither
nodes nor workloads may be; then, and after any other error, no file is left.`,
		Example: a.examples("capture", "capture -o incident.tar.gz -n kube-system", "capture -o dump/", "capture -o - | "+a.name+" diagnose -f -"),
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	a.connectionFlags(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&o.path, "output", "o", "", "File to write, a folder where it ends in /, - for standard output; default rollcall-CONTEXT-TIME.tar.gz")
	fs.BoolVar(&o.keepEnv, "keep-env", false, "Keep the values of environment variables and HTTP headers, arguments that look secret and volume attributes")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Capture the workloads of all namespaces, which is the default without -n")
	return cmd
}

func (o *captureOptions) complete() error {
	switch {
	case o.allNamespaces && o.namespace() != "":
		return usagef("-n %s and --all-namespaces contradict each other", o.namespace())
	case o.path == "-" && isTerminal(o.out):
		return usagef("-o - would write an archive to the terminal: send it to a file or a program")
	}
	return nil
}

// namespace is what -n named, "" where it named none.
func (o *captureOptions) namespace() string { return o.kube.Overrides.Context.Namespace }

func (o *captureOptions) run(ctx context.Context) error {
	conn, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	opts := capture.Options{
		Namespace: o.namespace(), KeepEnv: o.keepEnv, Now: conn.Clock.Now,
		Context: conn.Context, ServerVersion: conn.Version(), Version: version,
	}
	var got capture.Result
	if o.path == "-" {
		got, err = capture.Stream(ctx, conn, o.out, opts)
	} else {
		got, err = capture.To(ctx, conn, o.path, opts)
	}
	var nothing *capture.Unreadable
	var unread *capture.ReadError
	switch {
	case errors.As(err, &nothing):
		return conn.Unreadable(nothing.Err, o.namespace())
	case errors.As(err, &unread):
		return conn.Explain("read "+string(unread.Resource), unread.Err)
	case err != nil:
		return err
	}
	o.tell(got)
	return nil
}

// tell says what was captured: the file's name on standard output, the rest beside it.
func (o *captureOptions) tell(got capture.Result) {
	for _, f := range got.NotRead {
		where := ""
		if f.Namespace != "" {
			where = " of namespace " + f.Namespace
		}
		why := f.Reason
		if f.Detail != "" {
			why += ", " + f.Detail
		}
		o.warn("%s%s could not be read (%s): the capture is without them", f.Resource, where, why)
	}
	var counts []string
	for _, r := range got.Read {
		switch r.Resource {
		case cluster.Nodes, cluster.Pods, cluster.DaemonSets, cluster.Deployments, cluster.StatefulSets, cluster.Events:
			counts = append(counts, fmt.Sprintf("%d %s", r.Objects, r.Resource))
		}
	}
	fmt.Fprintf(o.errOut, "captured %s as of %s; environment values are %s\n",
		strings.Join(counts, ", "), got.CapturedAt.Format("2006-01-02 15:04:05Z"), strings.ToLower(got.Environment))
	if got.Path == "" {
		return
	}
	path := got.Path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path += string(os.PathSeparator)
	}
	fmt.Fprintln(o.out, path)
}
