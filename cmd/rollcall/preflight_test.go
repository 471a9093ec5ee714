package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// manifest is a new revision of the agent of the field cases, with edits as "old => new".
func manifest(t *testing.T, edits ...string) string {
	t.Helper()
	text := `apiVersion: v1
kind: ConfigMap
metadata: {name: net-agent, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: net-agent
  namespace: kube-system
spec:
  selector: {matchLabels: {k8s-app: net-agent}}
  minReadySeconds: 120
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  template:
    metadata: {labels: {k8s-app: net-agent}}
    spec:
      hostNetwork: true
      priorityClassName: system-node-critical
      tolerations: [{operator: Exists}]
      containers:
      - name: net-agent
        image: registry.example/net-agent:v9
        resources: {requests: {cpu: 100m, memory: 128Mi}}
        readinessProbe: {exec: {command: [check]}}
`
	for _, e := range edits {
		old, replacement, _ := strings.Cut(e, " => ")
		if !strings.Contains(text, old) {
			t.Fatalf("the manifest has no %q", old)
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// agentCase makes a folder with the healthy base and a network agent that has run well
// for days.
func agentCase(t *testing.T) string {
	t.Helper()
	dir := wellCase(t)
	f, err := os.OpenFile(filepath.Join(dir, "objects.yaml"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`---
apiVersion: rollcall/v1
kind: Daemon
name: net-agent
hostNetwork: true
tolerates: everything
template:
  spec:
    priorityClassName: system-node-critical
    containers:
    - name: net-agent
      image: "registry.example/net-agent:v6"
      securityContext: {privileged: true}
      resources: {requests: {cpu: 100m, memory: 128Mi}}
      readinessProbe: {httpGet: {path: /ready, port: 9099}}
revisions:
- {number: 6, at: "-300h", by: helm}
pods:
- {revision: 6}
`); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hasCode(r report.Report, code report.Code) bool {
	in := func(list []report.Finding) bool {
		return slices.ContainsFunc(list, func(f report.Finding) bool { return f.Code == code })
	}
	return len(r.Workloads) == 1 && in(r.Workloads[0].Findings) || in(r.ClusterFindings)
}

func TestPreflightOfFilesIsOneDocumentWithItsExitCode(t *testing.T) {
	t.Parallel()
	well := agentCase(t)
	for name, tt := range map[string]struct {
		args []string
		code int
		find []report.Code
		pass bool
	}{
		"a careful manifest":        {[]string{"ds/net-agent", "-f", manifest(t)}, 0, []report.Code{report.ToleratesEverything}, true},
		"held to warnings":          {[]string{"ds/net-agent", "-f", manifest(t), "--fail-on", "warning"}, 1, []report.Code{report.ToleratesEverything}, false},
		"the workload is not named": {[]string{"-f", manifest(t)}, 0, nil, true},
		"a canary by nodeSelector": {[]string{"ds/net-agent", "-f", manifest(t, "      hostNetwork: true => "+"      nodeSelector: {topology.kubernetes.io/zone: zone-a}\n      hostNetwork: true")},
			1, []report.Code{report.NodeNotCovered}, false},
		"more memory than there is": {[]string{"ds/net-agent", "-f", manifest(t, "128Mi => 1000Gi")}, 1, []report.Code{report.InsufficientHeadroom}, false},
		"another label":             {[]string{"ds/net-agent", "-f", manifest(t, "labels: {k8s-app: net-agent} => labels: {k8s-app: other}")}, 1, []report.Code{report.AdmissionDenied}, false},
		"a slip in a field":         {[]string{"ds/net-agent", "-f", manifest(t, "readinessProbe => readynessProbe")}, 0, []report.Code{report.AdmissionDenied, report.NoReadinessProbe}, true},
		"what is there now":         {[]string{"ds/net-agent", "-n", "kube-system"}, 0, []report.Code{report.CriticalDaemonSetAutoUpdates}, true},
		"a Deployment":              {[]string{"deploy/web"}, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, append([]string{"preflight", "--cluster-from", well, "-o", "json"}, tt.args...)...)
			r := parsed(t, got.out)
			if got.code != tt.code || got.errOut != "" || len(r.Workloads) != 1 {
				t.Fatalf("exit code %d, want %d: %s\n%s", got.code, tt.code, got.errOut, got.out)
			}
			if p := r.Workloads[0].Preflight; p == nil || p.Pass != tt.pass || p.Pass != (got.code == 0) {
				t.Errorf("%+v", p)
			}
			for _, code := range tt.find {
				if !hasCode(r, code) {
					t.Errorf("%s is not found", code)
				}
			}
			if r.Source.Type != "files" || r.GeneratedAt.IsZero() || r.Verdict.Attribution != report.Healthy {
				t.Errorf("source %q, made at %s, %s", r.Source.Type, r.GeneratedAt, r.Verdict.Attribution)
			}
		})
	}
}

func TestPreflightIsTheSameTwiceInEveryForm(t *testing.T) {
	t.Parallel()
	well, file := agentCase(t), manifest(t, "128Mi => 1000Gi")
	strip := func(s string) string {
		return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.Contains(l, "generatedAt") }), "\n")
	}
	for _, form := range []string{"json", "yaml", "text", "markdown"} {
		args := []string{"preflight", "ds/net-agent", "-f", file, "--cluster-from", well, "-o", form}
		first := run(t, args...)
		if second := run(t, args...); strip(first.out) != strip(second.out) || first.code != 1 {
			t.Errorf("%s: two runs on one input differ, exit code %d", form, first.code)
		}
		switch form {
		case "text":
			if !strings.HasPrefix(first.out, "PREFLIGHT FAIL\n          DaemonSet kube-system/net-agent as") || !strings.Contains(first.out, "\nBREAKS    InsufficientHeadroom: ") || !strings.Contains(first.out, "\nCANARY    1. kubectl patch daemonset net-agent") {
				t.Errorf("text:\n%s", first.out)
			}
			for _, l := range strings.Split(first.out, "\n") {
				if len([]rune(l)) > 80 {
					t.Errorf("a line of %d columns: %s", len([]rune(l)), l)
				}
			}
		case "markdown":
			if !strings.HasPrefix(first.out, "# Preflight FAIL: DaemonSet kube-system/net-agent") {
				t.Errorf("markdown:\n%s", first.out)
			}
		case "yaml":
			var r report.Report
			if err := yaml.Unmarshal([]byte(first.out), &r); err != nil || r.Workloads[0].Preflight.Pass {
				t.Errorf("yaml: %v", err)
			}
		}
	}
}

func TestPreflightReadsTheManifestFromStandardInput(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(manifest(t))
	if err != nil {
		t.Fatal(err)
	}
	got := call{args: []string{"preflight", "-f", "-", "--cluster-from", agentCase(t), "-o", "json"}, stdin: string(raw)}.run(t)
	if r := parsed(t, got.out); got.code != 0 || r.Workloads[0].Preflight.Template != "standard input:5" {
		t.Errorf("exit code %d, %s, %+v", got.code, got.errOut, r.Workloads[0].Preflight)
	}
}

func TestPreflightsThatCannotBeAnsweredAreOneLine(t *testing.T) {
	t.Parallel()
	well := agentCase(t)
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"nothing named":             {[]string{}, []string{"ds/calico-node", "-f"}},
		"no file":                   {[]string{"-f", ""}, []string{"-f names no file"}},
		"a file that is not there":  {[]string{"ds/net-agent", "-f", "/none.yaml", "--cluster-from", well}, []string{"/none.yaml", "no such file"}},
		"bad YAML":                  {[]string{"ds/net-agent", "-f", manifest(t, "minReadySeconds: 120 => minReadySeconds: [\n"), "--cluster-from", well}, []string{"new.yaml:", "is not valid YAML"}},
		"another name":              {[]string{"ds/net-agnet", "-f", manifest(t), "--cluster-from", well}, []string{"new.yaml:5", "net-agent"}},
		"another kind":              {[]string{"deploy/net-agent", "-f", manifest(t), "--cluster-from", well}, []string{"no Deployment", "DaemonSet kube-system/net-agent (line 5)"}},
		"another namespace":         {[]string{"ds/net-agent", "-n", "shop", "-f", manifest(t), "--cluster-from", well}, []string{"new.yaml:5", "kube-system/net-agent"}},
		"no such workload":          {[]string{"ds/net-agnet", "--cluster-from", well}, []string{"did you mean net-agent"}},
		"no such workload there":    {[]string{"ds/net-agent", "-n", "shop", "--cluster-from", well}, []string{"shop/net-agent", "-n"}},
		"both from standard input":  {[]string{"-f", "-", "--cluster-from", "-"}, []string{"standard input"}},
		"--as-of of a live cluster": {[]string{"ds/x", "--as-of", "2026-07-03T10:26:00Z"}, []string{"--cluster-from"}},
		"an unknown threshold":      {[]string{"ds/x", "--fail-on", "never"}, []string{`"never"`, "critical, warning and info"}},
		"a Pod":                     {[]string{"pod/x"}, []string{"no rollout of their own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, append([]string{"preflight"}, tt.args...)...)
			if got.code != 2 || got.out != "" || strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "error: ") {
				t.Errorf("exit code %d, %q, standard output %q", got.code, got.errOut, got.out)
			}
			for _, w := range tt.want {
				if !strings.Contains(got.errOut, w) {
					t.Errorf("%q does not say %q", got.errOut, w)
				}
			}
		})
	}
}

func TestPreflightOfALiveCluster(t *testing.T) {
	t.Parallel()
	config, lab := live(t, "cni-cascade", 0)
	before := lab.ResourceVersion()
	named := []string{"name: net-agent\n  namespace => name: calico-node\n  namespace", "matchLabels: {k8s-app: net-agent} => matchLabels: {app.kubernetes.io/name: calico-node}", "labels: {k8s-app: net-agent} => labels: {app.kubernetes.io/name: calico-node}"}
	judged := func(t *testing.T, args ...string) (outcome, report.Report) {
		t.Helper()
		got := run(t, append([]string{"preflight", "-o", "json", "--kubeconfig", config}, args...)...)
		r := parsed(t, got.out)
		if len(r.Workloads) != 1 || r.Workloads[0].Preflight == nil || r.Source.Type != "cluster" || r.Source.Context != "lab" {
			t.Fatalf("exit code %d, %s, source %+v", got.code, got.errOut, r.Source)
		}
		return got, r
	}
	t.Run("as it is", func(t *testing.T) {
		t.Parallel()
		_, r := judged(t, "ds/calico-node", "-n", "kube-system")
		if p := r.Workloads[0].Preflight; p.Template != "live" || len(p.Changes)+len(p.DryRun) > 0 || p.Nodes == 0 || p.Duration == "" || !hasCode(r, report.CriticalDaemonSetAutoUpdates) {
			t.Errorf("%+v", p)
		}
		for _, n := range r.NotRead {
			if n.Resource == "pods" || n.Resource == "poddisruptionbudgets" {
				t.Errorf("not read: %+v", n)
			}
		}
	})
	t.Run("a manifest that the API server takes", func(t *testing.T) {
		t.Parallel()
		_, r := judged(t, "-f", manifest(t, named...))
		p := r.Workloads[0].Preflight
		if got := strings.Join(texts(p.DryRun), "\n"); got != "DaemonSet: accepted\nPod: accepted" {
			t.Errorf("dry run: %s", got)
		}
		if len(p.Changes) == 0 || p.New {
			t.Errorf("%+v", p)
		}
	})
	t.Run("read-only sends no dry run", func(t *testing.T) {
		t.Parallel()
		_, r := judged(t, "-f", manifest(t, named...), "--read-only")
		if got := strings.Join(texts(r.Workloads[0].Preflight.DryRun), "\n"); !strings.Contains(got, "not sent") || strings.Contains(got, "accepted") {
			t.Errorf("dry run: %s", got)
		}
	})
	t.Run("another selector is refused", func(t *testing.T) {
		t.Parallel()
		got, r := judged(t, "-f", manifest(t, named[0]))
		if dry := strings.Join(texts(r.Workloads[0].Preflight.DryRun), "\n"); got.code != 1 || !strings.Contains(dry, "DaemonSet: refused: ") || !hasCode(r, report.AdmissionDenied) {
			t.Errorf("exit code %d, dry run: %s", got.code, dry)
		}
	})
	t.Run("what it refers to is looked up", func(t *testing.T) {
		t.Parallel()
		got, r := judged(t, "-f", manifest(t, append(slices.Clone(named), "      hostNetwork: true => "+"      serviceAccountName: nobody\n      volumes: [{name: c, configMap: {name: nothing}}, {name: o, secret: {secretName: none, optional: true}}]\n      hostNetwork: true")...))
		if got.code != 1 || !hasCode(r, report.ServiceAccountMissing) || !hasCode(r, report.ContainerConfigMissing) {
			t.Errorf("exit code %d: %+v", got.code, r.Workloads[0].Findings)
		}
		for _, f := range r.Workloads[0].Findings {
			if strings.Contains(string(f.Summary), "none") {
				t.Errorf("an optional Secret is missed: %s", f.Summary)
			}
		}
	})
	t.Run("a workload that does not exist yet", func(t *testing.T) {
		t.Parallel()
		_, r := judged(t, "-f", manifest(t))
		if p := r.Workloads[0].Preflight; !p.New || r.Workloads[0].Name != "net-agent" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("no such workload", func(t *testing.T) {
		t.Parallel()
		got := run(t, "preflight", "ds/calico-nod", "-n", "kube-system", "--kubeconfig", config)
		if got.code != 2 || !strings.Contains(got.errOut, "did you mean calico-node") {
			t.Errorf("exit code %d: %s", got.code, got.errOut)
		}
	})
	t.Cleanup(func() {
		if after := lab.ResourceVersion(); after != before {
			t.Errorf("the cluster was changed: resourceVersion %s, then %s", before, after)
		}
	})
}

func texts(list []report.Text) []string {
	out := make([]string, 0, len(list))
	for _, t := range list {
		out = append(out, string(t))
	}
	return out
}
