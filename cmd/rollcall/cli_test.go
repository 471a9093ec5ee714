package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadInputGetsOneClearLine(t *testing.T) {
	t.Parallel()
	config, _ := live(t, "cni-cascade", 0)
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken")
	if err := os.WriteFile(broken, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want []string // in the line
	}{
		"unknown command":              {[]string{"trage"}, []string{`unknown command "trage"`, `did you mean "triage"`}},
		"unknown command, none near":   {[]string{"frobnicate"}, []string{"TYPE/NAME"}},
		"empty command":                {[]string{""}, []string{"unknown command \"\"; a workload is written"}},
		"empty type":                   {[]string{"/"}, []string{"unknown type", "ds, deploy and sts"}},
		"-f without a name":            {[]string{"diagnose", "-f", ""}, []string{"-f names no file"}},
		"--as-of of the zero time":     {[]string{"diagnose", "-f", sickCase, "--as-of", "0001-01-01T00:00:00Z"}, []string{"before Kubernetes"}},
		"unknown flag":                 {[]string{"triage", "--fial-on", "info"}, []string{"--fial-on", "did you mean --fail-on"}},
		"unknown short flag":           {[]string{"triage", "-x"}, []string{"-x"}},
		"unknown global flag":          {[]string{"--kubeconfg", "x"}, []string{"did you mean --kubeconfig"}},
		"flag without its value":       {[]string{"triage", "-o"}, []string{"needs an argument"}},
		"unknown type":                 {[]string{"daemonste/x"}, []string{`unknown type "daemonste"`, "daemonset/x"}},
		"unknown type, none near":      {[]string{"widget/x"}, []string{"ds, deploy and sts"}},
		"a Pod":                        {[]string{"pod/x"}, []string{"no rollout of their own"}},
		"a node":                       {[]string{"no/x"}, []string{"nodes have no rollout"}},
		"no name":                      {[]string{"ds/"}, []string{"names no workload"}},
		"a path of three":              {[]string{"ds/kube-system/x"}, []string{"namespace with -n"}},
		"two workloads":                {[]string{"ds/x", "ds/y"}, []string{"one workload at a time"}},
		"-o":                           {[]string{"triage", "-o", "xml"}, []string{`"xml"`, "text, json, yaml and markdown"}},
		"--fail-on":                    {[]string{"triage", "--fail-on", "fatal"}, []string{`"fatal"`, "critical, warning and info"}},
		"--timeout, no duration":       {[]string{"triage", "--timeout", "soon"}, []string{"soon", "--timeout"}},
		"--timeout, negative":          {[]string{"triage", "--timeout", "-1s"}, []string{"negative"}},
		"--node-grace, no duration":    {[]string{"triage", "--node-grace", "50"}, []string{"--node-grace", "50"}},
		"--node-grace, too long":       {[]string{"triage", "--node-grace", "50h"}, []string{"between 1s and 1h"}},
		"--node-grace, zero":           {[]string{"triage", "--node-grace", "0s"}, []string{"between 1s and 1h"}},
		"--color":                      {[]string{"triage", "--color", "pink"}, []string{`"pink"`, "auto, always and never"}},
		"--theme":                      {[]string{"--theme", "neon"}, []string{`"neon"`}},
		"--log-file":                   {[]string{"version", "--log-file", filepath.Join(empty, "no", "log")}, []string{"cannot write the log", "no such file"}},
		"-n and -A":                    {[]string{"triage", "-n", "a", "-A"}, []string{"contradict"}},
		"triage with an argument":      {[]string{"triage", "ds/x"}, []string{"takes no argument", "ds/x"}},
		"version with an argument":     {[]string{"version", "x"}, []string{"takes no argument"}},
		"version -o":                   {[]string{"version", "-o", "markdown"}, []string{"text, json and yaml"}},
		"diagnose of nothing":          {[]string{"diagnose"}, []string{"-f", "ds/calico-node"}},
		"diagnose, no such file":       {[]string{"diagnose", "-f", filepath.Join(empty, "none.yaml")}, []string{"none.yaml", "no such file"}},
		"diagnose, a folder of none":   {[]string{"diagnose", "-f", t.TempDir()}, []string{"holds no .yaml"}},
		"diagnose, broken":             {[]string{"diagnose", "-f", broken}, []string{"broken:1", "not valid"}},
		"diagnose --as-of":             {[]string{"diagnose", "-f", sickCase, "--as-of", "yesterday"}, []string{`"yesterday"`, "RFC 3339"}},
		"--as-of without files":        {[]string{"diagnose", "ds/x", "--as-of", "2026-07-03T10:26:00Z"}, []string{"--as-of goes with -f"}},
		"no such workload in files":    {[]string{"diagnose", "-f", sickCase, "ds/net-agnet"}, []string{"no DaemonSet named net-agnet", "did you mean net-agent"}},
		"wrong namespace in files":     {[]string{"diagnose", "-f", sickCase, "ds/net-agent", "-n", "shop"}, []string{"in namespace shop"}},
		"practice, unknown incident":   {[]string{"practice", "cni-cascad"}, []string{"cni-cascad", "did you mean cni-cascade"}},
		"practice, two incidents":      {[]string{"practice", "a", "b"}, []string{"one incident"}},
		"practice --seed":              {[]string{"practice", "--seed", "x"}, []string{"--seed"}},
		"practice -o":                  {[]string{"practice", "--auto", "-o", "yaml"}, []string{`"yaml"`, "text and json"}},
		"no kubeconfig":                {[]string{"triage"}, []string{"kubeconfig", "practice"}},
		"kubeconfig that is not there": {[]string{"triage", "--kubeconfig", filepath.Join(empty, "x")}, []string{filepath.Join(empty, "x")}},
		"broken kubeconfig":            {[]string{"triage", "--kubeconfig", broken}, []string{broken}},
		"unknown context":              {[]string{"triage", "--kubeconfig", config, "--context", "lba"}, []string{"lba", "lab"}},
		"connection refused":           {[]string{"triage", "--kubeconfig", config, "--context", "production"}, []string{"127.0.0.1:1", "refused"}},
		"no such workload, live":       {[]string{"ds/calico-nod", "-n", "kube-system", "--kubeconfig", config}, []string{"calico-nod in namespace kube-system", "did you mean calico-node"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, tt.args...)
			if got.code != 2 || got.out != "" {
				t.Errorf("exit code %d, standard output %q; want 2 and nothing", got.code, got.out)
			}
			if strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "error: ") {
				t.Errorf("not one line: %q", got.errOut)
			}
			for _, w := range tt.want {
				if !strings.Contains(got.errOut, w) {
					t.Errorf("%q does not say %q", got.errOut, w)
				}
			}
		})
	}
}

func TestErrorsNameTheCommandAsItWasTyped(t *testing.T) {
	t.Parallel()
	got := call{name: "kubectl-rollcall", args: []string{"triage", "-o", "xml"}}.run(t)
	if !strings.Contains(got.errOut, "`kubectl rollcall triage --help`") {
		t.Errorf("%q", got.errOut)
	}
	if help := (call{name: "kubectl-rollcall", args: []string{"--help"}}).run(t); help.code != 0 || !strings.Contains(help.out, "\n  kubectl rollcall triage -o json\n") || strings.Contains(help.out, "\n  rollcall ") {
		t.Errorf("help of the plugin:\n%s", help.out)
	}
}

func TestHelpIsTheDocumentOfItsCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"help"}, {"triage", "--help"}, {"help", "diagnose"}, {"practice", "-h"}, {"version", "--help"}, {"completion", "--help"}} {
		got := run(t, args...)
		if got.code != 0 || got.errOut != "" || !strings.Contains(got.out, "Usage:") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := run(t, "help", "nonsense"); got.code != 2 || got.out != "" {
		t.Errorf("help for nothing: %+v", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := run(t, "version"); got.code != 0 || !strings.HasPrefix(got.out, "rollcall dev (") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "version", "-o", "json"); got.code != 0 || !strings.Contains(got.out, `"version": "dev"`) {
		t.Errorf("%+v", got)
	}
	if got := run(t, "version", "-o", "yaml"); got.code != 0 || !strings.Contains(got.out, "version: dev\n") {
		t.Errorf("%+v", got)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, "completion", shell); got.code != 0 || len(got.out) < 500 {
			t.Errorf("%s: %d bytes, exit code %d", shell, len(got.out), got.code)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"__complete", "triage", "-o", ""}, "markdown\n"},
		{[]string{"__complete", "triage", "--fail-on", ""}, "critical\n"},
		{[]string{"__complete", "practice", ""}, "cni-cascade\n"},
		{[]string{"__complete", "diagnose", "d"}, "ds/\n"},
		{[]string{"__complete", "tri"}, "triage"},
	} {
		if got := run(t, tt.args...); !strings.Contains(got.out, tt.want) {
			t.Errorf("%v: %q", tt.args, got.out)
		}
	}
}

func TestLogFileTakesTheLogAndIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	got := run(t, "diagnose", "-f", sickCase, "--log-file", file)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.code != 1 || info.Mode().Perm() != 0o600 || !strings.Contains(string(raw), "read files") {
		t.Errorf("exit code %d, mode %v, log %q", got.code, info.Mode(), raw)
	}
}
