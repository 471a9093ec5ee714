package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestDiagnoseOfFilesIsOneDocumentWithItsExitCode(t *testing.T) {
	t.Parallel()
	well := wellCase(t)
	for name, tt := range map[string]struct {
		args []string
		code int
		want report.Attribution
	}{
		"sick":                            {[]string{"-f", sickCase}, 1, report.RolloutBreaksNodes},
		"sick, critical only":             {[]string{"-f", sickCase, "--fail-on", "critical"}, 1, report.RolloutBreaksNodes},
		"well":                            {[]string{"-f", well}, 0, report.Healthy},
		"well, all workloads":             {[]string{"-f", well, "--all"}, 0, report.Healthy},
		"one sick workload":               {[]string{"-f", sickCase, "ds/net-agent"}, 1, report.RolloutBreaksNodes},
		"TYPE NAME as kubectl takes it":   {[]string{"-f", sickCase, "daemonset", "net-agent", "-n", "kube-system"}, 1, report.RolloutBreaksNodes},
		"one well workload beside others": {[]string{"-f", well, "deploy/web"}, 0, report.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, append([]string{"diagnose", "-o", "json"}, tt.args...)...)
			r := parsed(t, got.out)
			if got.code != tt.code || r.Verdict.Attribution != tt.want || got.errOut != "" {
				t.Errorf("exit code %d, %s, %q; want %d, %s and no word", got.code, r.Verdict.Attribution, got.errOut, tt.code, tt.want)
			}
			if r.Source.Type != "files" || r.GeneratedAt.IsZero() || r.AsOf.IsZero() {
				t.Errorf("source %q, made at %s as of %s", r.Source.Type, r.GeneratedAt, r.AsOf)
			}
		})
	}
}

func TestDiagnoseIsTheSameTwiceButForWhenItWasMade(t *testing.T) {
	t.Parallel()
	strip := func(s string) string {
		lines := strings.Split(s, "\n")
		kept := lines[:0]
		for _, l := range lines {
			if !strings.Contains(l, `"generatedAt"`) {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "\n")
	}
	if a, b := run(t, "diagnose", "-f", sickCase, "-o", "json"), run(t, "diagnose", "-f", sickCase, "-o", "json"); strip(a.out) != strip(b.out) {
		t.Error("two runs on one input differ")
	}
}

func TestEveryFormatIsWhatItSays(t *testing.T) {
	t.Parallel()
	text := run(t, "diagnose", "-f", sickCase)
	if !strings.HasPrefix(text.out, "VERDICT   RolloutBreaksNodes, ") || strings.Contains(text.out, "\x1b") {
		t.Errorf("text:\n%s", text.out)
	}
	if coloured := run(t, "diagnose", "-f", sickCase, "--color", "always"); !strings.Contains(coloured.out, "\x1b[") {
		t.Error("no colour where it was asked for")
	}
	if md := run(t, "diagnose", "-f", sickCase, "-o", "markdown"); !strings.HasPrefix(md.out, "# RolloutBreaksNodes: DaemonSet/kube-system/net-agent\n") {
		t.Errorf("markdown:\n%s", md.out)
	}
	var r report.Report
	if err := yaml.Unmarshal([]byte(run(t, "diagnose", "-f", sickCase, "-o", "yaml").out), &r); err != nil || r.Verdict.Attribution != report.RolloutBreaksNodes {
		t.Errorf("yaml: %v, %s", err, r.Verdict.Attribution)
	}
}

func TestAsOfMovesTheMomentThatFilesAreJudgedAt(t *testing.T) {
	t.Parallel()
	r := parsed(t, run(t, "diagnose", "-f", sickCase, "-o", "json", "--as-of", "2026-07-03T10:26:30Z").out)
	if got := r.AsOf.UTC().Format(time.RFC3339); got != "2026-07-03T10:26:30Z" {
		t.Errorf("as of %s", got)
	}
}

func TestAMomentBeforeTheNewestOfTheInputIsWarnedOf(t *testing.T) {
	t.Parallel()
	before := run(t, "diagnose", "-f", sickCase, "-o", "json", "--as-of", "2026-07-03T10:15:00Z")
	r := parsed(t, before.out)
	if !strings.HasPrefix(before.errOut, "warning: --as-of 2026-07-03T10:15:00Z lies before ") || strings.Count(before.errOut, "\n") != 1 {
		t.Errorf("standard error: %q", before.errOut)
	}
	if len(r.Verdict.Missing) == 0 || !strings.Contains(string(r.Verdict.Missing[len(r.Verdict.Missing)-1]), "was written between 2026-07-03T10:15:00Z") || r.Verdict.Confidence == report.High {
		t.Errorf("missing %q, confidence %s", r.Verdict.Missing, r.Verdict.Confidence)
	}
	after := run(t, "diagnose", "-f", sickCase, "-o", "json", "--as-of", "2026-07-03T10:56:30Z")
	if r := parsed(t, after.out); after.errOut != "" || strings.Contains(fmt.Sprint(r.Verdict.Missing), "was written between") {
		t.Errorf("later than all of it: %q, missing %q", after.errOut, r.Verdict.Missing)
	}
}

func TestWhatCannotBeReadIsSaidBesideTheDocument(t *testing.T) {
	t.Parallel()
	input := "apiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: \"2026-07-03T10:00:00Z\"}\n---\nkind: [\n"
	got := call{args: []string{"diagnose", "-f", "-", "-o", "json"}, stdin: input}.run(t)
	if r := parsed(t, got.out); r.Nodes.Total != 1 {
		t.Errorf("%d nodes", r.Nodes.Total)
	}
	if !strings.HasPrefix(got.errOut, "warning: standard input:5: is not valid YAML") || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("standard error: %q", got.errOut)
	}
}

func TestAThousandBrokenPlacesDoNotFloodTheScreen(t *testing.T) {
	t.Parallel()
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: \"2026-07-03T10:00:00Z\"}\n"
	got := call{args: []string{"diagnose", "-f", "-"}, stdin: node + strings.Repeat("---\nkind: [\n", 1000)}.run(t)
	if n := strings.Count(got.errOut, "\n"); n != 11 || !strings.Contains(got.errOut, "and 990 more places") {
		t.Errorf("%d lines:\n%s", n, got.errOut)
	}
	got = call{args: []string{"diagnose", "-f", "-"}, stdin: strings.Repeat("---\nkind: [\n", 1000)}.run(t)
	if got.code != 2 || strings.Count(got.errOut, "\n") != 1 || !strings.Contains(got.errOut, "and 999 more problems") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
}

func TestFilesWithNeitherNodesNorWorkloadsAnswerNothing(t *testing.T) {
	t.Parallel()
	got := call{args: []string{"diagnose", "-f", "-"}, stdin: "apiVersion: v1\nkind: Service\nmetadata: {name: a, creationTimestamp: \"2026-07-03T10:00:00Z\"}\n"}.run(t)
	if got.code != 2 {
		t.Errorf("exit code %d, want 2; %s", got.code, got.errOut)
	}
}

func TestHostileTextOfFilesReachesNoTerminal(t *testing.T) {
	t.Parallel()
	input := "apiVersion: v1\nkind: Node\nmetadata: {name: \"a\\e[31m\\u202e\", creationTimestamp: \"2026-07-03T10:00:00Z\"}\nstatus: {conditions: [{type: Ready, status: \"False\", reason: X, message: \"\\e]0;owned\\a\"}]}\n---\nkind: \"\\e[2J\"\n"
	got := call{args: []string{"diagnose", "-f", "-"}, stdin: input}.run(t)
	if strings.ContainsAny(got.out+got.errOut, "\x1b\a\u202e") {
		t.Errorf("escape sequences came through: %q %q", got.out, got.errOut)
	}
}

func TestAReaderThatHasSeenEnoughEndsTheProgramQuietly(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := call{args: []string{"diagnose", "-f", sickCase, "-o", "json"}}.command(t.Context(), t)
	var errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errOut
	_ = r.Close() // before anything is written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	_ = cmd.Wait()
	if errOut.Len() > 0 {
		t.Errorf("standard error: %q", errOut.String())
	}
}

func TestReadingStandardInputCanBeInterrupted(t *testing.T) {
	t.Parallel()
	cmd := call{args: []string{"diagnose", "-f", "-"}}.command(t.Context(), t)
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer write.Close() // not before the program has ended: more might come
	var errOut bytes.Buffer
	cmd.Stdin, cmd.Stderr = in, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when it is written, the program is reading.
	if _, err := write.Write(bytes.Repeat([]byte("# nothing yet\n"), 1<<15)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 2 || errOut.String() != "interrupted\n" {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
}

func TestTimeoutHoldsForConnectingToo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    triageOptions
		want bool
	}{
		{triageOptions{timeout: time.Minute, hurried: true}, true},
		{triageOptions{timeout: defaultTimeout}, false}, // somebody may be logging in
		{triageOptions{timeout: 0, hurried: true}, false},
	} {
		ctx, cancel := tt.o.connecting(t.Context())
		if _, bounded := ctx.Deadline(); bounded != tt.want {
			t.Errorf("%+v: bounded %v", tt.o, bounded)
		}
		cancel()
	}
}

func TestTriageOfALiveCluster(t *testing.T) {
	t.Parallel()
	config, lab := live(t, "cni-cascade", 0)
	for lab.FallenNodes() < 4 && lab.Now().Sub(practice.Epoch) < 30*time.Minute {
		if err := lab.Step(lab.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("all namespaces", func(t *testing.T) {
		t.Parallel()
		got := run(t, "triage", "-o", "json", "--kubeconfig", config)
		r := parsed(t, got.out)
		if got.code != 1 || r.Verdict.Attribution != report.RolloutBreaksNodes || r.Verdict.Workload != "DaemonSet/kube-system/calico-node" {
			t.Errorf("exit code %d, %s on %s; %s", got.code, r.Verdict.Attribution, r.Verdict.Workload, got.errOut)
		}
		if r.Source.Type != "cluster" || r.Source.Context != "lab" || r.AsOf.Year() != practice.Epoch.Year() {
			t.Errorf("source %+v as of %s: the clock must be the server's", r.Source, r.AsOf)
		}
	})
	t.Run("without a terminal and a command", func(t *testing.T) {
		t.Parallel()
		got := run(t, "--kubeconfig", config, "--read-only")
		if got.code != 1 || !strings.HasPrefix(got.out, "VERDICT   RolloutBreaksNodes") {
			t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.errOut)
		}
	})
	t.Run("one workload", func(t *testing.T) {
		t.Parallel()
		got := run(t, "ds/calico-node", "-n", "kube-system", "--kubeconfig", config)
		if got.code != 1 || !strings.Contains(got.out, "DaemonSet/kube-system/calico-node") {
			t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.errOut)
		}
	})
	t.Run("another namespace", func(t *testing.T) {
		t.Parallel()
		got := run(t, "triage", "-n", "default", "-o", "json", "--kubeconfig", config)
		if r := parsed(t, got.out); len(r.Workloads) != 0 {
			t.Errorf("%d workloads of other namespaces", len(r.Workloads))
		}
	})
}

func TestWatchPrintsAReportALineUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	config, lab := live(t, "cni-cascade", time.Second)
	cmd := call{args: []string{"triage", "--watch", "-o", "json", "--kubeconfig", config}}.command(t.Context(), t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	next := func() (r report.Report) {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v, standard error %q", err, errOut.String())
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := next()
	for lab.FallenNodes() < 4 && lab.Now().Sub(practice.Epoch) < 30*time.Minute {
		if err := lab.Step(lab.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	last := first
	for last.Verdict.Attribution != report.RolloutBreaksNodes {
		last = next()
	}
	if first.Verdict.Attribution == report.RolloutBreaksNodes {
		t.Error("the first report knows what has not happened yet")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, in)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || errOut.Len() > 0 {
		t.Errorf("exit code %d, want that of the last report, 1; standard error %q", code, errOut.String())
	}
}

func TestPracticeWithoutATerminalPlaysByItself(t *testing.T) {
	t.Parallel()
	got := run(t, "practice")
	if got.code != 0 || !strings.HasPrefix(got.errOut, "no terminal") || !strings.Contains(got.out, "✓ recovered") {
		t.Errorf("exit code %d, %q:\n%s", got.code, got.errOut, got.out)
	}
	again := run(t, "practice", "cni-cascade", "--auto", "--seed", "1")
	if again.out != got.out || again.errOut != "" {
		t.Errorf("the same seed plays another way; standard error %q", again.errOut)
	}
}

func TestPracticeAsJSONIsTheReportFromBeforeTheFirstAction(t *testing.T) {
	t.Parallel()
	got := run(t, "practice", "--auto", "-o", "json")
	if r := parsed(t, got.out); got.code != 0 || r.Source.Type != "practice" || r.Verdict.Attribution != report.RolloutBreaksNodes {
		t.Errorf("exit code %d, %s from %s", got.code, r.Verdict.Attribution, r.Source.Type)
	}
}

func TestPracticeThatMayChangeNothingIsNotMastered(t *testing.T) {
	t.Parallel()
	got := run(t, "practice", "--auto", "--read-only", "-o", "json")
	if got.code != 1 || !strings.Contains(got.errOut, "read-only") || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("exit code %d, %q", got.code, got.errOut)
	}
}

func TestKubectlFindsTheProgramAsItsPlugin(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	dir := t.TempDir()
	if err := os.Link(program, filepath.Join(dir, "kubectl-rollcall")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(kubectl, "rollcall", "version")
	cmd.Env = []string{"PATH=" + dir, "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "rollcall ") {
		t.Errorf("%v: %s", err, out)
	}
}
