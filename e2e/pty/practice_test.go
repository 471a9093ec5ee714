// Package pty drives the built program on its practice cluster, in a
// pseudo-terminal: no cluster is needed.
package pty

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
	"github.com/rollcall-k8s/rollcall/e2e/terminal"
)

var program string

func TestMain(m *testing.M) {
	var err error
	if program, err = binaries.Program(context.Background(), os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// practice opens the practice incident in a terminal of that size.
func practice(t *testing.T, columns, rows int) *terminal.Terminal {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(program, "practice")
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"KUBECONFIG=" + filepath.Join(home, "none"),
	}
	return terminal.Start(t, columns, rows, cmd)
}

func gone(text string) func(string) bool {
	return func(screen string) bool { return !strings.Contains(screen, text) }
}

func TestPracticeIsDiagnosedAndFrozenInEveryTerminal(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ columns, rows int }{{80, 24}, {120, 40}, {200, 60}} {
		t.Run(fmt.Sprintf("%dx%d", size.columns, size.rows), func(t *testing.T) {
			t.Parallel()
			e := practice(t, size.columns, size.rows)
			e.WaitFor("PRACTICE", "SPREADING", "breaks nodes", "F freeze")

			e.Type("?")
			e.WaitFor("Keys that work here", "freeze")
			e.Type(terminal.Escape)
			e.Wait("the help is closed", gone("Keys that work here"))

			e.Type("/")
			e.WaitFor("Find anything")
			e.Type("spreading")
			e.Type(terminal.Escape)
			e.Wait("the palette is closed", gone("Find anything"))

			e.Type(terminal.Enter)
			e.WaitFor("1/11", "Which rollout is moving?")

			e.Type("F")
			e.WaitFor("dry run accepted", "y do it")
			e.Type("x") // any other key cancels
			e.Wait("the dialog is closed", gone("y do it"))
			e.Type("F")
			e.WaitFor("dry run accepted", "y do it")
			e.Type("y")
			const box = "What was confirmed"
			e.WaitFor(box)
			e.Type(terminal.Escape)
			e.Wait("the progress is closed", gone(box))
			e.WaitFor("frozen")

			e.Resize(size.columns-10, size.rows-4)
			e.WaitFor("1/11", "PRACTICE")
			quit(t, e)
		})
	}
}

// quit leaves, although an action may still be watched, and looks at what is left behind.
func quit(t *testing.T, e *terminal.Terminal) {
	t.Helper()
	e.Type("q")
	e.Wait("it ends or asks", func(string) bool { return e.Ended() || strings.Contains(e.Screen(), "An action is running") })
	if !e.Ended() {
		e.Type(terminal.Down, terminal.Enter)
	}
	if code := e.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	e.CheckRestored()
}

func TestTheLogOfABrokenPodIsReadAndStandsInTheNotes(t *testing.T) {
	t.Parallel()
	e := practice(t, 120, 40)
	e.WaitFor("PRACTICE", "SPREADING", "breaks nodes")
	e.Type(terminal.Enter)
	e.WaitFor("1/11")
	e.Type("/")
	e.WaitFor("Find anything")
	e.Type("What is wrong with the new")
	e.Type(terminal.Enter)
	e.WaitFor("6/11", "What do its logs say?", "l logs")
	e.Type("l")
	const sign = "CNIConfigInvalid"
	e.Wait("a Pod is asked for, or read at once", func(s string) bool { return strings.Contains(s, "which Pod") || strings.Contains(s, sign) })
	if !strings.Contains(e.Screen(), sign) {
		e.Type(terminal.Enter)
	}
	e.WaitFor(sign, "calico-nft")
	e.Wait("the question is answered", gone("What do its logs say?"))
	notes := filepath.Join(t.TempDir(), "notes.md")
	e.Type("x")
	e.WaitFor("Write the incident notes")
	e.Type(notes)
	e.Type(terminal.Enter)
	e.WaitFor("notes written")
	text, err := os.ReadFile(notes)
	if err != nil || !strings.Contains(string(text), "## Logs and consoles") || !strings.Contains(string(text), sign) || strings.Contains(string(text), "Felix starting up") {
		t.Errorf("%v:\n%s", err, text)
	}
	quit(t, e)
}

func TestTooSmallATerminalSaysSoAndRecovers(t *testing.T) {
	t.Parallel()
	e := practice(t, 40, 10)
	e.WaitFor("too small")
	e.Resize(80, 24)
	e.WaitFor("PRACTICE", "breaks nodes")
	quit(t, e)
}

func TestPracticeWithoutATerminalSaysSoAndWalksByItself(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "practice")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(string(out), "RolloutBreaksNodes") {
		t.Errorf("no diagnosis in:\n%s", out)
	}
	if !strings.Contains(stderr.String(), "terminal") {
		t.Errorf("it does not say that there is no terminal: %q", stderr.String())
	}
}
