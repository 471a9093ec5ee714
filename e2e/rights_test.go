package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/e2e/terminal"
)

// open opens the program in a terminal, as that user.
func (c *cluster) open(t *testing.T, user, home string, columns, rows int, args ...string) operatorsTerminal {
	t.Helper()
	return operatorsTerminal{terminal.Start(t, columns, rows, command(context.WithoutCancel(t.Context()), home, c.Kubeconfig(user), args...))}
}

// changes are the requests of a user that are neither reads nor questions about
// what the user may do.
func (c *cluster) changes(t *testing.T, user string) (changes []string, all int) {
	t.Helper()
	requests, err := c.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.Mutates() && !r.AsksForAccess() {
			changes = append(changes, r.String())
		}
	}
	return changes, len(requests)
}

func refusedBeforeItIsTried(t *testing.T, c *cluster) {
	e := c.open(t, reader, t.TempDir(), 120, 40)
	e.WaitFor(agent.name, "breaks nodes")
	e.Type("F")
	e.WaitFor("CANNOT BE APPLIED")
	e.Type(terminal.Escape)
	e.Wait("the dialog is closed", func(screen string) bool { return !strings.Contains(screen, "CANNOT BE APPLIED") })
	e.Type("q")
	e.Exit()
	e.CheckRestored()
	if changes, all := c.changes(t, reader); len(changes) > 0 || all == 0 {
		t.Errorf("of %d requests these would change something: %v", all, changes)
	}
}

func readOnlyChangesNothing(t *testing.T, c *cluster) {
	if _, res := c.triage(t, observer, "--read-only"); res.stderr != "" {
		t.Errorf("triage --read-only says: %s", res.stderr)
	}
	e := c.open(t, observer, t.TempDir(), 120, 40, "--read-only")
	e.WaitFor(agent.name, "breaks nodes", "READ-ONLY")
	e.Type("F")
	e.WaitFor("dry run not sent", "CANNOT BE APPLIED")
	e.Type("y") // nothing listens
	e.Type(terminal.Escape)
	e.Wait("the dialog is closed", func(screen string) bool { return !strings.Contains(screen, "CANNOT BE APPLIED") })
	e.Type("q")
	e.Exit()
	e.CheckRestored()
	if changes, all := c.changes(t, observer); len(changes) > 0 || all == 0 {
		t.Errorf("of %d requests these would change something: %v", all, changes)
	}
	if got := c.daemonSet(t.Context(), t, agent).Spec.UpdateStrategy.Type; got != "RollingUpdate" {
		t.Errorf("the agent's strategy is %s", got)
	}
}
