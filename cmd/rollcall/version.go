package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/internal/headless"
)

// version is set when a release is built.
var version = "dev"

// build is what `version` tells.
type build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	Modified  bool   `json:"modified"` // built from a tree with uncommitted changes
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			switch headless.Format(output) {
			case headless.Text:
				commit := b.Commit
				if b.Modified {
					commit += ", modified"
				}
				_, err := fmt.Fprintf(a.out, "rollcall %s (%s, %s, %s)\n", b.Version, or(commit, "unknown commit"), b.GoVersion, b.Platform)
				return err
			case headless.JSON:
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				return enc.Encode(b)
			case headless.YAML:
				raw, err := yaml.Marshal(b)
				if err != nil {
					return err
				}
				_, err = a.out.Write(raw)
				return err
			}
			return usagef("unknown output format %q: text, json and yaml are known", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "Form of the output: text, json, yaml")
	fixed(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

func thisBuild() build {
	b := build{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}
