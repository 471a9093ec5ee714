// Package terminal runs a program in a real pseudo-terminal whose other end is a
// terminal emulator, types at it and reads its screen.
package terminal

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// Terminal is a terminal in which a program runs.
type Terminal struct {
	t         testing.TB
	cmd       *exec.Cmd
	near, far *os.File // the emulator's end, and the program's
	before    *term.State

	mu       sync.Mutex // guards screen: an emulator does not guard itself
	screen   *vt.Emulator
	redrawn  chan struct{} // closed and replaced with every output
	pumps    sync.WaitGroup
	exited   chan struct{}
	exit     error // read after exited
	restored bool  // read after exited: the line settings are as before
}

// Start runs cmd in a terminal of that size. The test ends it, if it has not
// ended by itself.
func Start(t testing.TB, columns, rows int, cmd *exec.Cmd) *Terminal {
	t.Helper()
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	e := &Terminal{
		t: t, cmd: cmd, near: near, far: far,
		screen: vt.NewEmulator(columns, rows), redrawn: make(chan struct{}), exited: make(chan struct{}),
	}
	if err := pty.Setsize(near, size(columns, rows)); err != nil {
		t.Fatal(err)
	}
	if e.before, err = term.GetState(int(far.Fd())); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e.pumps.Go(e.pumpOutput)
	e.pumps.Go(func() { _, _ = io.Copy(near, e.screen) }) // what is typed, and what the terminal answers when asked
	go e.await()
	t.Cleanup(func() {
		if t.Failed() && !e.Ended() {
			t.Logf("the screen when the test failed:\n%s", e.Screen())
		}
		_ = cmd.Process.Kill()
		<-e.exited
		_ = near.Close()
	})
	return e
}

func size(columns, rows int) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}
}

// pumpOutput feeds what the program writes to the emulator, until the far end is closed.
func (e *Terminal) pumpOutput() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := e.near.Read(buffer)
		if n > 0 {
			e.mu.Lock()
			_, _ = e.screen.Write(buffer[:n])
			close(e.redrawn)
			e.redrawn = make(chan struct{})
			e.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// await waits for the program's end, then for its last output.
func (e *Terminal) await() {
	e.exit = e.cmd.Wait()
	after, err := term.GetState(int(e.far.Fd()))
	e.restored = err == nil && reflect.DeepEqual(e.before, after)
	_ = e.far.Close()                            // ends pumpOutput once all is read
	_ = e.screen.InputPipe().(io.Closer).Close() // ends the other pump
	e.pumps.Wait()
	close(e.exited)
}

// Type types keys: text as it is, and Enter, Escape … below.
func (e *Terminal) Type(keys ...string) {
	for _, k := range keys {
		e.screen.SendText(k) // a pipe, which guards itself
	}
}

// Keys that are not text.
const (
	Enter  = "\r"
	Escape = "\x1b"
	Tab    = "\t"
	CtrlC  = "\x03"
	Up     = "\x1b[A"
	Down   = "\x1b[B"
)

// Resize changes the terminal's size, as dragging its window does.
func (e *Terminal) Resize(columns, rows int) {
	e.t.Helper()
	e.mu.Lock()
	e.screen.Resize(columns, rows)
	e.mu.Unlock()
	if err := pty.Setsize(e.near, size(columns, rows)); err != nil {
		e.t.Fatal(err)
	}
}

// Screen is the text that is on the screen, without trailing blanks.
func (e *Terminal) Screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text()
}

func (e *Terminal) text() string {
	lines := strings.Split(e.screen.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.Join(lines, "\n")
}

// Patience is how long Wait and its kin wait for what must come: generous, for
// the machine may be busy with other things.
const Patience = 3 * time.Minute

// WaitFor waits until all the texts are on the screen at once.
func (e *Terminal) WaitFor(texts ...string) string {
	e.t.Helper()
	return e.Wait("the screen shows "+strings.Join(texts, " and "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// Wait waits until the screen is as wanted and returns it. It fails the test with
// the last screen when the program ends before, or the patience does.
func (e *Terminal) Wait(what string, wanted func(screen string) bool) string {
	e.t.Helper()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	for {
		e.mu.Lock()
		screen, redrawn := e.text(), e.redrawn
		e.mu.Unlock()
		if wanted(screen) {
			return screen
		}
		select {
		case <-redrawn:
		case <-e.exited:
			if screen = e.Screen(); wanted(screen) {
				return screen
			}
			e.t.Fatalf("the program ended (%v) before %s; the screen:\n%s", e.exit, what, screen)
		case <-patience.C:
			e.t.Fatalf("waited %s until %s; the screen:\n%s", Patience, what, screen)
		}
	}
}

// Ended tells whether the program has ended.
func (e *Terminal) Ended() bool {
	select {
	case <-e.exited:
		return true
	default:
		return false
	}
}

// Exit waits for the program's end and returns its exit code.
func (e *Terminal) Exit() int {
	e.t.Helper()
	select {
	case <-e.exited:
	case <-time.After(Patience):
		e.t.Fatalf("the program has not ended after %s; the screen:\n%s", Patience, e.Screen())
	}
	var code *exec.ExitError
	if e.exit != nil && !errors.As(e.exit, &code) {
		e.t.Fatal(e.exit)
	}
	return e.cmd.ProcessState.ExitCode()
}

// CheckRestored fails the test unless the program, which has ended, left the
// terminal as it found it: line settings, main screen, visible cursor.
func (e *Terminal) CheckRestored() {
	e.t.Helper()
	e.Exit()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.restored {
		e.t.Error("the program did not restore the terminal's line settings")
	}
	if e.screen.IsAltScreen() {
		e.t.Error("the program left the terminal on the alternate screen")
	}
	if e.screen.CursorHidden() {
		e.t.Error("the program left the cursor hidden")
	}
}
