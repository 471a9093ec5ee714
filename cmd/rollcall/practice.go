package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// practiceOptions are those of a practice incident.
type practiceOptions struct {
	*app
	incident string
	auto     bool
	seed     int64
	output   string
}

func (a *app) practiceCommand() *cobra.Command {
	o := &practiceOptions{app: a}
	cmd := &cobra.Command{
		Use:   "practice [INCIDENT]",
		Short: "Practise an incident on a simulated cluster; nothing else is needed",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one incident at a time, but %q was given too", args[1])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return errors.New("practice is not built into this program") },
	}
	cmd.Flags().BoolVar(&o.auto, "auto", false, "Play the incident through without a terminal: diagnose, fix, prove, print the notes")
	cmd.Flags().Int64Var(&o.seed, "seed", 1, "Choose names, nodes and times; the same seed plays the same incident")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "With --auto: text, or json for the report as it stood before the first action")
	return cmd
}
