package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// app is one run of the program: its streams and what every command shares.
type app struct {
	name   string // as the operator typed it: "rollcall" or "kubectl rollcall"
	in     io.Reader
	out    io.Writer
	errOut io.Writer

	nodeGrace time.Duration
	logFile   string
	color     string
	kube      kube.Flags

	logger *slog.Logger
	log    io.Closer
}

func newApp(argv0 string, in io.Reader, out, errOut io.Writer) *app {
	name := "rollcall"
	if strings.HasPrefix(filepath.Base(argv0), "kubectl-") {
		name = "kubectl rollcall"
	}
	return &app{name: name, in: in, out: out, errOut: errOut, logger: slog.New(slog.DiscardHandler)}
}

// exit is an exit code that is no error: what there was to say has been said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs the command line and returns the exit code. Standard output carries the
// document alone; errors are one line on standard error.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if a.log != nil {
		a.log.Close()
	}
	var code exit
	switch {
	case err == nil:
		return headless.ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.EPIPE):
		return headless.ExitOK // whoever read has seen enough
	case ctx.Err() != nil:
		fmt.Fprintln(a.errOut, "interrupted")
		return headless.ExitUnanswered
	}
	var usage usageError
	line := "error: " + string(report.Clean(err.Error()))
	if errors.As(err, &usage) {
		line += "; see `" + a.path(cmd) + " --help`"
	}
	fmt.Fprintln(a.errOut, line)
	return headless.ExitUnanswered
}

// path is a command as it is typed.
func (a *app) path(c *cobra.Command) string {
	words := strings.Fields(c.CommandPath())
	if i := len(strings.Fields(a.name)); len(words) > i {
		return a.name + " " + strings.Join(words[i:], " ")
	}
	return a.name
}

// usageError is a command line that cannot be meant.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// warn says something beside the document.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.errOut, "warning: "+string(report.Textf(format, args...)))
}

// prepare checks what every command shares, once flags are read.
func (a *app) prepare(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags().Lookup("node-grace"); f != nil && f.Changed && (a.nodeGrace < time.Second || a.nodeGrace > time.Hour) {
		return usagef("--node-grace %s is no node-monitor-grace-period: it lies between 1s and 1h, and is 50s by default since Kubernetes 1.32", a.nodeGrace)
	}
	switch a.color {
	case "auto", "always", "never":
	default:
		return usagef("unknown value %q for --color: auto, always and never are known", a.color)
	}
	if a.logFile != "" {
		f, err := os.OpenFile(a.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			var p *os.PathError
			if errors.As(err, &p) {
				err = p.Err
			}
			return fmt.Errorf("cannot write the log to %s: %w; name a file in a folder that exists and is yours", a.logFile, err)
		}
		a.log = f
		a.logger = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	kube.QuietKlog(a.logger)
	return nil
}

func (a *app) globalFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&a.nodeGrace, "node-grace", 0, "node-monitor-grace-period of the controller manager, e.g. 50s; inferred where it is not given")
	fs.StringVar(&a.logFile, "log-file", "", "Append a debug log to this file")
	fs.StringVar(&a.color, "color", "auto", "Colour text output: auto, always or never")
}

// colour tells whether text is coloured: where it was asked for, or on a terminal
// that has not asked for the opposite.
func (a *app) colour() bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(a.out)
}

// interactive tells whether a person sits at both ends.
func (a *app) interactive() bool {
	return isTerminal(a.in) && isTerminal(a.out) && os.Getenv("TERM") != "dumb"
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
