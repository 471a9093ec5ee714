package kube

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

var (
	coreV1   = corev1.SchemeGroupVersion
	quietLog = log.New(io.Discard, "", 0)
)

func plugin(command string, args ...string) *api.ExecConfig {
	return &api.ExecConfig{Command: command, Args: args, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.IfAvailableExecInteractiveMode}
}

func connect(t *testing.T, h http.HandlerFunc, o Options) *Connection {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(&rest.Config{Host: srv.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestPrimeLearnsVersionAndClock(t *testing.T) {
	t.Parallel()
	skew := -3 * time.Hour
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("User-Agent"); got != "rollcall/1.2.3" {
			t.Errorf("user agent %q", got)
		}
		w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
		versionHandler(w, r)
	}, Options{Version: "1.2.3"})
	if err := c.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Version() != "v1.37.2" || c.Host() != "127.0.0.1" {
		t.Errorf("version %q, host %q", c.Version(), c.Host())
	}
	e, known := c.Clock.Error()
	if off := c.Clock.Now().Sub(time.Now().Add(skew)).Abs(); !known || off > e+100*time.Millisecond {
		t.Errorf("the clock is off by %v, claims %v", off, e)
	}
}

func TestGatewayErrorsDoNotSetTheClock(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusBadGateway)
	}, Options{})
	if err := c.Prime(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if _, known := c.Clock.Error(); known {
		t.Error("a gateway's clock was taken for the API server's")
	}
}

func TestRequestsAskForProtobufAndAreNotQueued(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := 0
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen++
		mu.Unlock()
		if got := r.Header.Get("Accept"); got != contentTypes {
			t.Errorf("Accept %q", got)
		}
		w.Header().Set("Content-Type", "application/json") // an API server may answer in JSON all the same
		w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"}}]}`))
	}, Options{})
	if c.REST(coreV1).GetRateLimiter() != nil || c.Streaming(coreV1).GetRateLimiter() != nil {
		t.Error("a client-side rate limit would queue the first screen")
	}
	var list corev1.NodeList
	if err := c.REST(coreV1).Get().Resource("nodes").Do(t.Context()).Into(&list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v %v", list, err)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		versionHandler(w, r)
	}, Options{})
	if err := c.Prime(t.Context()); err != nil || n != 2 {
		t.Errorf("%d requests, %v", n, err)
	}
}

func TestWatchesAreNotCutByTheRequestTimeout(t *testing.T) {
	t.Parallel()
	c, err := New(&rest.Config{Host: "http://127.0.0.1:1", Timeout: 7 * time.Second}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.request.Timeout != 7*time.Second || c.stream.Timeout != 0 {
		t.Errorf("requests %v, streams %v", c.request.Timeout, c.stream.Timeout)
	}
}

func TestWarningsGoToTheLog(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Warning", `299 - "v1 Thing is deprecated"`)
		versionHandler(w, r)
	}, Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err := c.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "v1 Thing is deprecated") {
		t.Errorf("log: %q", out.String())
	}
}

// The plugin may speak to the terminal until Prime ends; then it finds neither
// standard input nor the terminal. It is not run in parallel: a plugin's output is
// one thing for the whole program.
func TestCredentialPluginIsSilencedAfterPrime(t *testing.T) {
	script := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
echo "log in please" >&2
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"opensesame"}}'
`), 0o700); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer opensesame" {
			t.Errorf("Authorization %q", got)
		}
		versionHandler(w, r)
	}))
	t.Cleanup(srv.Close)
	cfg := &rest.Config{Host: srv.URL, ExecProvider: plugin(script), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	stderr := os.Stderr
	c, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if os.Stderr != stderr {
		t.Error("standard error was not put back")
	}
	if err := c.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := c.config.ExecProvider; !p.StdinUnavailable || p.StdinUnavailableMessage == "" {
		t.Error("the plugin still finds standard input")
	}
	if !plugins.silent.Load() {
		t.Error("the plugin still writes to the terminal")
	}
}

func TestPluginOutputMovesFromTerminalToLog(t *testing.T) {
	r, w := io.Pipe()
	var terminal, logged strings.Builder
	plugins.logger.Store(slog.New(slog.NewTextHandler(&logged, nil)))
	was := plugins.silent.Load()
	t.Cleanup(func() { plugins.silent.Store(was) })
	plugins.silent.Store(false)
	done := make(chan struct{})
	go func() { forwardPlugins(r, &terminal); close(done) }()
	io.WriteString(w, "Password: ")
	io.WriteString(w, "")
	plugins.silent.Store(true)
	io.WriteString(w, "\x1b[2Jrefreshed\n")
	w.Close()
	<-done
	if !strings.Contains(terminal.String()+logged.String(), "Password: ") || strings.Contains(terminal.String(), "refreshed") {
		t.Errorf("terminal %q", terminal.String())
	}
	if !strings.Contains(logged.String(), "refreshed") || strings.Contains(logged.String(), "\x1b") {
		t.Errorf("log %q", logged.String())
	}
}
