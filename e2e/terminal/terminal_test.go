package terminal

import (
	"os/exec"
	"strings"
	"testing"
)

func shell(script string) *exec.Cmd { return exec.Command("sh", "-c", script) }

func TestTerminalShowsWhatIsWrittenAndPassesWhatIsTyped(t *testing.T) {
	t.Parallel()
	e := Start(t, 40, 5, shell(`printf 'who? '; read name; printf '\033[2J\033[Hhello %s\n' "$name"; exit 3`))
	e.WaitFor("who?")
	e.Type("world", Enter)
	screen := e.WaitFor("hello world")
	if strings.Contains(screen, "who?") {
		t.Errorf("the screen was cleared and still shows the question:\n%s", screen)
	}
	if code := e.Exit(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	e.CheckRestored()
}

func TestTerminalAnswersWhatProgramsAskIt(t *testing.T) {
	t.Parallel()
	// The device status report: a program that asks and gets no answer hangs here.
	e := Start(t, 40, 5, shell(`stty raw -echo; printf '\033[6n'; dd bs=1 count=6 2>/dev/null | od -c; stty sane`))
	e.WaitFor("033")
	e.Exit()
}

func TestResizeReachesTheProgram(t *testing.T) {
	t.Parallel()
	e := Start(t, 80, 24, shell(`stty size; read x; stty size`))
	e.WaitFor("24 80")
	e.Resize(120, 40)
	e.Type(Enter)
	e.WaitFor("40 120")
	e.Exit()
}

// failures collects what a Terminal reports to its test.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Helper()           {}
func (f *failures) Error(args ...any) { f.said = append(f.said, args[0].(string)) }

func TestCheckRestoredSeesEachThingLeftBehind(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`stty raw -echo`:       "line settings",
		`printf '\033[?1049h'`: "alternate screen",
		`printf '\033[?25l'`:   "cursor hidden",
	} {
		e := Start(t, 40, 5, shell(script))
		f := &failures{TB: t}
		e.t = f
		e.CheckRestored()
		if len(f.said) != 1 || !strings.Contains(f.said[0], want) {
			t.Errorf("%s: said %q, want one complaint about %s", script, f.said, want)
		}
	}
}
