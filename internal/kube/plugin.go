package kube

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// A credential plugin may prompt before the screen is taken, and must be silent
// afterwards. client-go hands a plugin the standard error that it finds when a
// client is made and offers no other way; so the client is made with a pipe in its
// place, and what arrives there goes to the terminal first and to the log once
// Prime has ended. One pipe serves the program: client-go keeps authenticators,
// and the file they were made with, for as long as it runs.
var plugins struct {
	once   sync.Once
	pipe   *os.File
	err    error
	silent atomic.Bool
	logger atomic.Pointer[slog.Logger]
}

// withPluginPipe runs build with the pipe as standard error, where cfg has a plugin.
func withPluginPipe(cfg *rest.Config, logger *slog.Logger, build func() error) error {
	if cfg.ExecProvider == nil {
		return build()
	}
	plugins.logger.Store(logger)
	plugins.once.Do(func() {
		var r *os.File
		if r, plugins.pipe, plugins.err = os.Pipe(); plugins.err == nil {
			go forwardPlugins(r, os.Stderr)
		}
	})
	if plugins.err != nil {
		return plugins.err
	}
	stderr := os.Stderr
	os.Stderr = plugins.pipe
	defer func() { os.Stderr = stderr }()
	return build()
}

func forwardPlugins(from io.Reader, terminal io.Writer) {
	r := bufio.NewReader(from)
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf) // a prompt has no line end: bytes, not lines
		if plugins.silent.Load() {
			plugins.logger.Load().Warn("credential plugin", "stderr", string(report.Clean(string(buf[:n]))))
		} else {
			_, _ = terminal.Write(buf[:n]) // there is nobody to tell
		}
		if err != nil {
			return
		}
	}
}

// silencePlugins takes the terminal away from a plugin: from now on it finds no
// standard input and its output goes to the log.
func silencePlugins(cfg *rest.Config) {
	if p := cfg.ExecProvider; p != nil && !p.StdinUnavailable {
		p.StdinUnavailable = true
		p.StdinUnavailableMessage = "rollcall reads the keyboard; log in with the plugin's own command, then retry"
		plugins.silent.Store(true)
	}
}
