package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// essence is what two readings of one cluster must agree on; ages differ by the
// moments between them.
func essence(r report.Report) []string {
	out := []string{fmt.Sprint(r.Verdict.Attribution, r.Verdict.Workload, r.Verdict.RootCause, r.Verdict.Confidence, r.Verdict.Contributing)}
	finding := func(f report.Finding) string { return fmt.Sprint(f.Code, f.Severity, f.Object, f.Node) }
	for _, w := range r.Workloads {
		out = append(out, fmt.Sprint(w.Key(), w.Rollout.State, w.Verdict.Attribution, w.Verdict.RootCause, w.Recommendation.Action))
		for _, f := range w.Findings {
			out = append(out, finding(f))
		}
	}
	for _, f := range r.ClusterFindings {
		out = append(out, finding(f))
	}
	return out
}

func TestCaptureIsDiagnosedAsTheClusterWas(t *testing.T) {
	t.Parallel()
	config, lab := live(t, "cni-cascade", 0)
	for lab.FallenNodes() < 4 && lab.Now().Sub(practice.Epoch) < 30*time.Minute {
		if err := lab.Step(lab.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	want := essence(parsed(t, run(t, "triage", "-o", "json", "--kubeconfig", config).out))
	agrees := func(t *testing.T, got outcome) {
		t.Helper()
		r := parsed(t, got.out)
		if e := essence(r); got.code != 1 || got.errOut != "" || !slices.Equal(e, want) {
			t.Errorf("exit code %d, %q\nlive     %q\ncaptured %q", got.code, got.errOut, want, e)
		}
		if off := r.AsOf.Sub(lab.Now()).Abs(); off > 5*time.Second || r.Source.Context != "lab" || r.Source.Type != "files" {
			t.Errorf("as of %s from %+v, the cluster is at %s", r.AsOf, r.Source, lab.Now())
		}
	}

	t.Run("a file named after the cluster", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cmd := call{args: []string{"capture", "--kubeconfig", config, "--read-only"}}.command(t.Context(), t)
		cmd.Dir = dir
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, errOut.String())
		}
		name := strings.TrimSuffix(out.String(), "\n")
		if !regexp.MustCompile(`^rollcall-lab-20260303T02\d{4}Z\.tar\.gz$`).MatchString(name) || !strings.Contains(errOut.String(), "12 nodes") || !strings.Contains(errOut.String(), "redacted") {
			t.Errorf("%q, %q", out.String(), errOut.String())
		}
		agrees(t, run(t, "diagnose", "-o", "json", "-f", filepath.Join(dir, name)))
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("beside it lies more: %v, %v", entries, err)
		}
	})
	t.Run("a folder", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "dump") + "/"
		if got := run(t, "capture", "-o", dir, "--kubeconfig", config); got.code != 0 || got.out != dir+"\n" {
			t.Errorf("%+v", got)
		}
		agrees(t, run(t, "diagnose", "-o", "json", "-f", dir))
	})
	t.Run("standard output", func(t *testing.T) {
		t.Parallel()
		got := run(t, "capture", "-o", "-", "--kubeconfig", config)
		if got.code != 0 || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("exit code %d, %q", got.code, got.errOut)
		}
		agrees(t, call{args: []string{"diagnose", "-o", "json", "-f", "-"}, stdin: got.out}.run(t))
	})
}

func TestACaptureThatFailsIsOneLineAndNoFile(t *testing.T) {
	t.Parallel()
	srv := api.New(func() time.Time { return practice.Epoch }, 1)
	t.Cleanup(srv.Close)
	for _, r := range []string{"nodes", "daemonsets", "deployments", "statefulsets"} {
		srv.Deny(api.Denial{User: "nobody", Verb: "list", Group: api.Everything, Resource: r})
	}
	srv.Deny(api.Denial{User: "reader", Verb: "list", Resource: "configmaps"})
	web := httptest.NewTLSServer(srv.Handler()) // without TLS no client sends its token
	t.Cleanup(web.Close)
	home := t.TempDir()
	config := filepath.Join(home, "config")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: nobody}}, {name: gone, context: {cluster: gone, user: nobody}}]
clusters: [{name: lab, cluster: {server: %q, insecure-skip-tls-verify: true}}, {name: gone, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: nobody}}, {name: reader, user: {token: reader}}]
`, web.URL)
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(home, "out")
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"nothing may be read":   {[]string{"-o", out + "/x.tar.gz"}, []string{"read nodes and workloads", "forbidden", "ask for a role"}},
		"in one namespace":      {[]string{"-o", out + "/y/", "-n", "default"}, []string{"nodes and workloads of namespace default"}},
		"connection refused":    {[]string{"-o", out + "/x.tar.gz", "--context", "gone"}, []string{"127.0.0.1:1", "refused"}},
		"-n and -A":             {[]string{"-n", "a", "-A"}, []string{"contradict"}},
		"an argument":           {[]string{"ds/x"}, []string{"takes no argument"}},
		"a folder that is full": {[]string{"-o", home, "--user", "reader"}, []string{"not empty", home}},
		"no such folder":        {[]string{"-o", filepath.Join(home, "no", "x"), "--user", "reader"}, []string{"no such file or directory", "-o"}},
	} {
		if err := os.MkdirAll(out, 0o700); err != nil {
			t.Fatal(err)
		}
		got := run(t, append([]string{"capture", "--kubeconfig", config}, tt.args...)...)
		if got.code != 2 || got.out != "" || strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "error: ") {
			t.Errorf("%s: %+v", name, got)
		}
		for _, w := range tt.want {
			if !strings.Contains(got.errOut, w) {
				t.Errorf("%s: %q does not say %q", name, got.errOut, w)
			}
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
	got := run(t, "capture", "--kubeconfig", config, "--user", "reader", "-o", filepath.Join(out, "x.tar.gz"))
	if got.code != 0 || !strings.HasPrefix(got.errOut, "warning: configmaps could not be read (Forbidden)") || strings.Count(got.errOut, "\n") != 2 {
		t.Errorf("what may not be read: %+v", got)
	}
}

func TestCaptureHelp(t *testing.T) {
	t.Parallel()
	got := run(t, "capture", "--help")
	for _, want := range []string{"Usage:", "--keep-env", "Secrets are never asked for", "rollcall-CONTEXT-TIME.tar.gz"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, no %q", got.code, want)
		}
	}
}
