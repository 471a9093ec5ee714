package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

const taintedCase = "../../probes/testdata/cases/taint-added-under-a-running-pod/objects.yaml"

func TestWhatIfOfFilesIsOneDocument(t *testing.T) {
	t.Parallel()
	text := run(t, "what-if", "taint", "worker-1", "dedicated=db:NoExecute", "-f", taintedCase)
	for _, want := range []string{"WHAT IF   taint worker-1 dedicated=db:NoExecute\n", "logging/log-agent: DESIRED 10, then 9", "- Pod goes on worker-1", "evicts "} {
		if !strings.Contains(text.out, want) {
			t.Errorf("nothing says %q:\n%s", want, text.out)
		}
	}
	for _, l := range strings.Split(text.out, "\n") {
		if len([]rune(l)) > 80 {
			t.Errorf("a line of %d columns: %s", len([]rune(l)), l)
		}
	}
	if text.code != 0 || text.errOut != "" {
		t.Errorf("exit code %d, %q; want 0 and no word", text.code, text.errOut)
	}
	var r report.WhatIf
	if err := json.Unmarshal([]byte(run(t, "what-if", "taint", "node/worker-3", "dedicated-", "-f", taintedCase, "-o", "json").out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Kind != report.WhatIfKind || r.GeneratedAt.IsZero() || len(r.DaemonSets) != 1 || r.DaemonSets[0].Pods[0].Effect != report.PodRegained || r.DaemonSets[0].DesiredAfter != 11 {
		t.Errorf("json: %+v", r)
	}
	r = report.WhatIf{}
	if err := yaml.Unmarshal([]byte(run(t, "what-if", "cordon", "-l", "pool=general", "-f", taintedCase, "-o", "yaml").out), &r); err != nil || len(r.Nodes) != 9 || len(r.DaemonSets) != 0 {
		t.Errorf("yaml: %v, %d nodes, %d DaemonSets", err, len(r.Nodes), len(r.DaemonSets))
	}
	r = report.WhatIf{}
	if err := json.Unmarshal([]byte(run(t, "what-if", "cordon", "worker-3", "node/worker-3", "-f", taintedCase, "-o", "json").out), &r); err != nil || len(r.Nodes) != 1 {
		t.Errorf("a node named twice: %v, %d nodes", err, len(r.Nodes))
	}
}

func TestWhatIfOfALiveClusterReadsTheNodesPods(t *testing.T) {
	t.Parallel()
	config, _ := live(t, "cni-cascade", 0)
	got := run(t, "what-if", "taint", "worker-1", "dedicated:NoExecute", "-o", "json", "--kubeconfig", config, "--read-only")
	var r report.WhatIf
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v: %s", err, got.errOut)
	}
	if got.code != 0 || len(r.Nodes) != 1 || !r.Nodes[0].PodsRead || len(r.Nodes[0].Free) == 0 {
		t.Errorf("exit code %d, %+v; want the node with all of its Pods read", got.code, r.Nodes)
	}
}

func TestBadInputOfWhatIfGetsOneClearLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"no change":              {nil, []string{"label, taint, cordon or uncordon"}},
		"an unknown change":      {[]string{"tiant"}, []string{"did you mean taint"}},
		"no node":                {[]string{"label"}, []string{"needs a node"}},
		"an edit without a node": {[]string{"label", "a=b"}, []string{"needs a node before"}},
		"a node without an edit": {[]string{"label", "worker-1"}, []string{"needs a change"}},
		"an unknown node":        {[]string{"label", "wroker-1", "a=b"}, []string{"did you mean worker-1"}},
		"no node like it":        {[]string{"cordon", "database"}, []string{"no node named database"}},
		"no label":               {[]string{"label", "worker-1", "a=b", "c"}, []string{`"c" is no label`}},
		"a label's value":        {[]string{"label", "worker-1", "a=b c"}, []string{`the value of "a=b c"`}},
		"a label's key":          {[]string{"label", "worker-1", "=b"}, []string{"no valid key"}},
		"no effect":              {[]string{"taint", "worker-1", "a=b"}, []string{"key=value:Effect"}},
		"an unknown effect":      {[]string{"taint", "worker-1", "a=b:Never"}, []string{"NoSchedule, PreferNoSchedule and NoExecute"}},
		"an edit for a cordon":   {[]string{"cordon", "worker-1", "a=b"}, []string{"takes nodes only"}},
		"nodes and a selector":   {[]string{"cordon", "worker-1", "-l", "pool=general"}, []string{"not both"}},
		"a bad selector":         {[]string{"cordon", "-l", "a=b=c"}, []string{"no label selector"}},
		"a selector of none":     {[]string{"cordon", "-l", "pool=none"}, []string{"no node has the labels"}},
		"a bad format":           {[]string{"cordon", "worker-1", "-o", "markdown"}, []string{"text, json and yaml"}},
		"a bad moment":           {[]string{"cordon", "worker-1", "--as-of", "today"}, []string{"RFC 3339"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"what-if"}, tt.args...)
			if len(tt.args) > 0 && tt.args[0] != "tiant" {
				args = append(args, "-f", taintedCase)
			}
			got := run(t, args...)
			if got.code != 2 || got.out != "" || strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "error: ") {
				t.Errorf("exit code %d, %q, %q; want 2 and one line", got.code, got.out, got.errOut)
			}
			for _, w := range tt.want {
				if !strings.Contains(got.errOut, w) {
					t.Errorf("%q does not say %q", got.errOut, w)
				}
			}
		})
	}
}
