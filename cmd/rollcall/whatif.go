package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// whatIfOptions are those of a change that is looked at and not made.
type whatIfOptions struct {
	diagnoseOptions
	selector string
	chosen   labels.Selector
	change   probes.NodeChange
}

func (a *app) whatIfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "what-if COMMAND",
		Short: "Say what a change of a node's labels, taints or cordon would do",
		Long: `Says which Pods a change of nodes would add, remove or leave where they should
not be, for every DaemonSet, whether what comes fits, and which other Pods a
NoExecute taint would evict. It changes nothing. The edits are written as for
kubectl; -f asks files instead of a cluster.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("what-if %s is not known: label, taint, cordon and uncordon are", args[0])
			if near := nearest(args[0], []string{"label", "taint", "cordon", "uncordon"}); near != "" {
				text += "; did you mean " + near + "?"
			}
			return usagef("%s", text)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("what-if needs a change: label, taint, cordon or uncordon")
		},
	}
	yes, no := true, false
	cmd.AddCommand(
		a.whatIfChange("label NODE... {KEY=VALUE | KEY-}...", "What setting or removing labels would do",
			a.examples("what-if label worker-1 pool=gpu", "what-if label -l pool=general canary-"),
			func(c *probes.NodeChange, edits []string) (err error) {
				c.Labels, err = probes.ParseLabels(edits)
				return err
			}),
		a.whatIfChange("taint NODE... {KEY[=VALUE]:EFFECT | KEY[:EFFECT]-}...", "What adding or removing taints would do",
			a.examples("what-if taint worker-1 dedicated=db:NoExecute", "what-if taint worker-1 dedicated-"),
			func(c *probes.NodeChange, edits []string) (err error) {
				c.Taints, err = probes.ParseTaints(edits)
				return err
			}),
		a.whatIfChange("cordon NODE...", "What a cordon would do", a.examples("what-if cordon worker-1"),
			func(c *probes.NodeChange, _ []string) error { c.Cordon = &yes; return nil }),
		a.whatIfChange("uncordon NODE...", "What taking a cordon off would do", a.examples("what-if uncordon worker-1"),
			func(c *probes.NodeChange, _ []string) error { c.Cordon = &no; return nil }),
	)
	return cmd
}

// whatIfChange is one kind of change; edit reads its edits.
func (a *app) whatIfChange(use, short, examples string, edit func(*probes.NodeChange, []string) error) *cobra.Command {
	o := &whatIfOptions{diagnoseOptions: diagnoseOptions{triageOptions: triageOptions{app: a}}}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			nodes, edits := splitEdits(args)
			takesEdits := strings.Contains(use, "{")
			switch {
			case len(nodes) == 0 && o.selector == "" && len(edits) > 0:
				return usagef("what-if %s needs a node before %q, or -l", cmd.Name(), edits[0])
			case len(nodes) == 0 && o.selector == "":
				return usagef("what-if %s needs a node, or -l", cmd.Name())
			case len(nodes) > 0 && o.selector != "":
				return usagef("name nodes or select them with -l, not both: %s", strings.Join(nodes, " "))
			case takesEdits && len(edits) == 0:
				return usagef("what-if %s needs a change after the node: %s", cmd.Name(), strings.SplitN(use, "{", 2)[1][:len(strings.SplitN(use, "{", 2)[1])-len("}...")])
			case !takesEdits && len(edits) > 0:
				return usagef("what-if %s takes nodes only, but was given %q", cmd.Name(), edits[0])
			}
			o.change.Nodes = nodes
			if err := edit(&o.change, edits); err != nil {
				return usageError{err}
			}
			var err error
			if o.chosen, err = labels.Parse(o.selector); err != nil {
				return usagef("-l %q is no label selector, such as pool=general", o.selector)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.hurried = cmd.Flags().Changed("timeout")
			if err := o.completeWhatIf(); err != nil {
				return err
			}
			return o.runWhatIf(cmd.Context())
		},
	}
	a.connectionFlags(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&o.output, "output", "o", "text", "Form of the answer: "+strings.Join(headless.WhatIfFormats, ", "))
	fixed(cmd, "output", headless.WhatIfFormats)
	fs.StringVarP(&o.selector, "selector", "l", "", "The nodes with these labels, instead of nodes by name")
	fs.StringArrayVarP(&o.paths, "filename", "f", nil, "File, folder or archive to read instead of a cluster, - for standard input; may be given several times")
	fs.StringVar(&o.asOf, "as-of", "", "The moment that files are judged at, RFC 3339; default the latest that they vouch for")
	fs.DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait for the picture of a live cluster")
	return cmd
}

// splitEdits tells nodes from edits as kubectl does: the first argument with = or :,
// or that ends with -, begins the edits. A node may be written node/NAME.
func splitEdits(args []string) (nodes, edits []string) {
	for i, arg := range args {
		if strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-") {
			return nodes, args[i:]
		}
		if i == 0 && len(args) > 1 && (arg == "node" || arg == "nodes" || arg == "no") {
			continue
		}
		for _, prefix := range []string{"node/", "nodes/", "no/"} {
			arg = strings.TrimPrefix(arg, prefix)
		}
		if !slices.Contains(nodes, arg) {
			nodes = append(nodes, arg)
		}
	}
	return nodes, nil
}

func (o *whatIfOptions) completeWhatIf() error {
	if !slices.Contains(headless.WhatIfFormats, o.output) {
		return usagef("unknown output format %q: text, json and yaml are known", o.output)
	}
	o.format = headless.Format(o.output)
	if o.timeout < 0 {
		return usagef("--timeout %s is negative", o.timeout)
	}
	return o.completeFiles()
}

func (o *whatIfOptions) runWhatIf(ctx context.Context) error {
	s, err := o.picture(ctx)
	if err != nil {
		return err
	}
	change := o.change
	if o.selector != "" {
		for _, n := range s.Nodes {
			if o.chosen.Matches(labels.Set(n.Labels)) {
				change.Nodes = append(change.Nodes, n.Name)
			}
		}
		if len(change.Nodes) == 0 {
			return fmt.Errorf("no node has the labels %s", o.selector)
		}
	}
	r, err := probes.WhatIf(s, change)
	if err != nil {
		return err
	}
	r.GeneratedAt = report.Time{Time: time.Now().UTC()}
	if err := headless.RenderWhatIf(o.out, r, headless.Options{Format: o.format, Colour: o.colour()}); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return nil
}

// picture reads files or the cluster, with every Pod of the nodes in question.
func (o *whatIfOptions) picture(ctx context.Context) (*cluster.Snapshot, error) {
	if len(o.paths) > 0 {
		return o.read(ctx)
	}
	conn, err := o.connectWithin(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	source := watch.New(watch.Config{Conn: conn, Namespace: o.namespace(), NodeGrace: o.nodeGrace, Logger: o.logger})
	for _, n := range o.change.Nodes {
		source.WantNode(n)
	}
	s, err := o.once(ctx, source)
	if err != nil {
		return nil, conn.Explain("read the cluster", err)
	}
	return s, nil
}
