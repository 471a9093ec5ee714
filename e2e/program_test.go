package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// command is the built program with a home of its own, reached through the given
// kubeconfig and none other.
func command(ctx context.Context, home, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, programs.Rollcall, args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"KUBECONFIG=" + kubeconfig,
	}
	cmd.Dir = home
	return cmd
}

// result is what a run without a terminal left.
type result struct {
	stdout, stderr string
	code           int
}

// run runs the program to its end, without a terminal.
func run(t *testing.T, kubeconfig string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := command(ctx, t.TempDir(), kubeconfig, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("rollcall %q: %v\n%s", args, err, stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// triage asks for the report as JSON.
func (c *cluster) triage(t *testing.T, user string, args ...string) (*report.Report, result) {
	t.Helper()
	res := run(t, c.Kubeconfig(user), append([]string{"triage", "-o", "json"}, args...)...)
	if res.code != 0 && res.code != 1 {
		t.Fatalf("triage exits %d: %s", res.code, res.stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(res.stdout), &r); err != nil {
		t.Fatalf("triage -o json printed no report: %v\n%s", err, res.stdout)
	}
	return &r, res
}

// attributionOf is the verdict on a DaemonSet, Healthy where the report leaves it out.
func attributionOf(r *report.Report, d daemonSet) report.Attribution {
	w := r.Workload(keyOf(d))
	if w == nil {
		return report.Healthy
	}
	return w.Verdict.Attribution
}
