package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// program is the binary under test, built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "rollcall-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "rollcall")
		if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// outcome is one run of the program.
type outcome struct {
	code        int
	out, errOut string
}

// call is how the program is run.
type call struct {
	args  []string
	stdin string
	env   []string
	name  string // of the binary, where it is another
}

func (c call) command(ctx context.Context, t *testing.T) *exec.Cmd {
	t.Helper()
	bin := program
	if c.name != "" {
		bin = filepath.Join(t.TempDir(), c.name)
		if err := os.Link(program, bin); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, bin, c.args...)
	home := t.TempDir()
	// Nothing of whoever runs the tests: no kubeconfig, no settings, no colours.
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home, "XDG_CONFIG_HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}, c.env...)
	cmd.Stdin = strings.NewReader(c.stdin)
	return cmd
}

func (c call) run(t *testing.T) outcome {
	t.Helper()
	cmd := c.command(t.Context(), t)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func run(t *testing.T, args ...string) outcome { t.Helper(); return call{args: args}.run(t) }

// sickCase is a case on disk whose verdict is RolloutBreaksNodes.
const sickCase = "../../probes/testdata/cases/cni-init-fails-budget-stops"

// wellCase makes a folder with the healthy base as it stands.
func wellCase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	base, err := os.ReadFile("../../probes/testdata/bases/healthy-12.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects.yaml"), base, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func parsed(t *testing.T, out string) report.Report {
	t.Helper()
	var r report.Report
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&r); err != nil {
		t.Fatalf("no report: %v\n%s", err, out)
	}
	if d.More() {
		t.Errorf("more than one document on standard output")
	}
	return r
}

// live is a practice cluster that has lived for a while, behind a port of its own
// on the loopback address, and the kubeconfig to reach it.
func live(t *testing.T, incident string, age time.Duration) (kubeconfig string, lab *practice.Cluster) {
	t.Helper()
	lab, err := practice.Start(incident, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lab.Close)
	if err := lab.Step(practice.Epoch.Add(age)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go join(client, lab)
		}
	}()
	kubeconfig = filepath.Join(t.TempDir(), "config")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: lab}}, {name: production, context: {cluster: gone, user: lab}}]
clusters: [{name: lab, cluster: {server: "http://%s"}}, {name: gone, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: lab, user: {}}]
`, l.Addr())
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, lab
}

// join connects a client of the port to the cluster inside this process.
func join(client net.Conn, lab *practice.Cluster) {
	defer client.Close()
	server, err := lab.Config().Dial(context.Background(), "tcp", "")
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
