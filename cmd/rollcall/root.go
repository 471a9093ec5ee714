package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

const rootLong = `rollcall says within seconds whether a rollout is what takes nodes or Pods down,
how sure that is and what to do, and walks you through the fix.

Without a command it opens the triage screen; with TYPE/NAME the checklist of that
workload. Where there is no terminal both print a report instead.

Exit codes: 0 nothing above info was found, 1 findings at or above the threshold
of --fail-on or an undetermined verdict, 2 the question could not be answered.`

func (a *app) rootCommand() *cobra.Command {
	o := &triageOptions{app: a}
	root := &cobra.Command{
		Use:               "rollcall [TYPE/NAME]",
		Short:             "A runbook assistant for rollouts that take nodes down",
		Long:              rootLong,
		Example:           a.examples("", "ds/calico-node -n kube-system", "triage -o json", "diagnose -f ./dump", "practice"),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.name},
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.prepare,
		Args: func(cmd *cobra.Command, args []string) error {
			return a.rootArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.open(cmd.Context(), o, args)
		},
		ValidArgsFunction: completeTarget,
	}
	a.globalFlags(root.PersistentFlags())
	a.connectionFlags(root)
	o.allNamespacesFlag(root)
	o.screen.flags(root.Flags())
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(a.usage)
	root.SetVersionTemplate("rollcall {{.Version}}\n")
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "Print the version of this program"
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(a.triageCommand(), a.diagnoseCommand(), a.whatIfCommand(), a.preflightCommand(), a.captureCommand(), a.practiceCommand(), a.versionCommand())
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("there is no command %q", strings.Join(args, " "))
			}
			if err != nil {
				return usageError{err}
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	})
	return root
}

func (a *app) examples(lines ...string) string {
	for i, l := range lines {
		lines[i] = strings.TrimRight("  "+a.name+" "+l, " ")
	}
	return strings.Join(lines, "\n")
}

// rootArgs tells a workload from a command that does not exist.
func (a *app) rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, err := parseTarget(args)
	if err == nil || strings.Contains(args[0], "/") || len(args) > 1 && knownType(args[0]) {
		return err
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 && args[0] != "" {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	} else {
		text += "; a workload is written TYPE/NAME, as in ds/calico-node"
	}
	return usageError{errors.New(text)}
}

// flagError adds the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if unknown, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		if near := nearest(unknown, flagNames(cmd)); near != "" {
			return usagef("%s; did you mean --%s?", text, near)
		}
	}
	return usageError{err}
}

// open is the program without a command.
func (a *app) open(ctx context.Context, o *triageOptions, args []string) error {
	var target *target
	if len(args) > 0 {
		t, err := parseTarget(args)
		if err != nil {
			return err
		}
		target = &t
	}
	if err := o.screen.check(); err != nil {
		return err
	}
	o.output, o.failOn, o.timeout = "text", string(report.Warning), defaultTimeout
	if err := o.complete(); err != nil {
		return err
	}
	if a.interactive() {
		return a.openScreen(ctx, o, target)
	}
	if target != nil {
		d := &diagnoseOptions{triageOptions: *o, target: target}
		if err := d.complete(); err != nil {
			return err
		}
		return d.run(ctx)
	}
	return o.run(ctx)
}
