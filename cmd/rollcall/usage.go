package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// connecting marks the flags that say which cluster, which are many and kubectl's.
const connecting = "rollcall/connecting"

// connectionFlags adds kubectl's connection flags to a command.
func (a *app) connectionFlags(cmd *cobra.Command) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.kube.Bind(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "namespace" && f.Name != "context" && f.Name != "kubeconfig" && f.Name != "read-only" {
			f.Annotations = map[string][]string{connecting: {"true"}}
		}
	})
	cmd.Flags().AddFlagSet(fs)
}

// usage prints a command's usage: what it takes, its own flags first, and those
// that everything takes at the end.
func (a *app) usage(c *cobra.Command) error {
	w := c.OutOrStdout()
	line := a.path(c) + strings.TrimPrefix(c.Use, c.Name())
	fmt.Fprintf(w, "Usage:\n  %s [flags]\n", line)
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() || s.Name() == "help" {
				fmt.Fprintf(w, "  %-12s%s\n", s.Name(), s.Short)
			}
		}
	}
	own, cluster := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case c.HasParent() && c.InheritedFlags().Lookup(f.Name) != nil:
		case f.Annotations[connecting] != nil:
			cluster.AddFlag(f)
		default:
			own.AddFlag(f)
		}
	})
	flags(w, "Flags", own)
	flags(w, "Flags for every command", c.InheritedFlags())
	flags(w, "Flags for connecting, as kubectl has them", cluster)
	return nil
}

func flags(w io.Writer, heading string, fs *pflag.FlagSet) {
	if fs.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", heading, fs.FlagUsagesWrapped(100))
	}
}
