package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process is one program of the control plane. Its output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended; cmd.ProcessState says how
}

// start runs a program until stop, or until the test process ends however it ends.
func start(dir, path string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(path), done: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.SysProcAttr = endWithParent()
	started := make(chan error)
	go func() {
		// Linux ends the program when the thread that started it ends, so that
		// thread is kept for as long as the program runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		if err := p.cmd.Start(); err != nil {
			started <- fmt.Errorf("starting %s: %w", path, err)
			return
		}
		started <- nil
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

// stop asks the program to end, and ends it when it does not within the patience.
// It returns when the program has ended.
func (p *process) stop(patience time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ready asks again and again until the answer is nil, the program has ended or
// the context has.
func (p *process) ready(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready (%s); the end of its output:\n%s", p.name, p.cmd.ProcessState, tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of its output:\n%s", p.name, err, tail(p.log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail is the end of a log file, at most 8 KiB.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-8<<10):])
}

// freePort finds a port on loopback that nobody listens on, below the range from
// which kernels take the ports of outgoing connections: nothing but another test
// run that draws the same number can take it before the program listens.
func freePort() (string, error) {
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return "", fmt.Errorf("no free port on 127.0.0.1 between 20000 and 32000")
}
