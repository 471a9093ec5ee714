package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/e2e/terminal"
)

// An operator on call, from the first screen to the notes: triage, checklist,
// freeze, roll back, one Pod, the rest, proof. Every step is held against the
// cluster itself.
func TestIncidentFromTriageToNotes(t *testing.T) {
	t.Parallel()
	c := startCascade(t)
	home := t.TempDir()
	e := c.open(t, operator, home, 120, 40, "--node-grace", "20s")

	c.waitForNodes(t, corev1.ConditionFalse, 3)
	e.WaitFor("SPREADING", "CAUSE", agent.name, "breaks nodes")
	e.Type(terminal.Enter)
	e.WaitFor("1/11", "Which rollout is moving?")
	e.Type(terminal.Enter)
	e.WaitFor("2/11", "Is it still spreading")

	// Freeze: one key, and the rest of the nodes are spared.
	e.Type("F")
	e.WaitFor("dry run accepted", "permission yes", "y do it")
	e.Type("y")
	c.wait(t, "the strategy is OnDelete", func(ctx context.Context) (bool, string) {
		got := c.daemonSet(ctx, t, agent).Spec.UpdateStrategy.Type
		return got == appsv1.OnDeleteDaemonSetStrategyType, string(got)
	})
	e.readProgress("Freeze")
	spared := 0
	for node, image := range c.imagesOf(t.Context(), t, agent) {
		if image == agentGood && node != deadNode {
			spared++
		}
	}
	if spared == 0 {
		t.Fatal("the freeze came too late: no node is spared")
	}

	e.goTo("How is it stopped and mended")

	// The template back to the revision before; the word is typed.
	e.choose("a", "to revision 1")
	e.WaitFor("- ", agentBreaks, agentGood, "dry run accepted", "Type "+agent.name+" to confirm")
	e.Type("net-agen", terminal.Enter) // not the word
	e.WaitFor("that is not it")
	if image := c.daemonSet(t.Context(), t, agent).Spec.Template.Spec.Containers[0].Image; image != agentBreaks {
		t.Fatalf("an unfinished word rolled back to %s", image)
	}
	e.Type("t", terminal.Enter)
	c.wait(t, "the template is back", func(ctx context.Context) (bool, string) {
		got := c.daemonSet(ctx, t, agent).Spec.Template.Spec.Containers[0].Image
		return got == agentGood, got
	})
	e.readProgress("Roll back")

	// One Pod, as a proof that the old revision mends its node.
	e.choose("a", "the proposed one")
	screen := e.WaitFor("made anew from revision", "to confirm")
	pod := regexp.MustCompile(`Type (\S+) to confirm`).FindStringSubmatch(screen)
	if pod == nil {
		t.Fatalf("the dialog names no Pod to type:\n%s", screen)
	}
	node := c.nodeOf(t, pod[1])
	if !slices.Contains(c.nodesBy(t.Context(), t)[corev1.ConditionFalse], node) {
		t.Errorf("the proposed Pod runs on %s, which is not broken or not within reach", node)
	}
	e.Type(pod[1], terminal.Enter)
	c.wait(t, node+" is mended", func(ctx context.Context) (bool, string) {
		ready := c.nodesBy(ctx, t)[corev1.ConditionTrue]
		return slices.Contains(ready, node), strings.Join(ready, " ")
	})
	e.readProgress("Delete Pod " + pod[1])

	// The rest, at the controller's own pace.
	e.choose("a", "roll again")
	screen = e.WaitFor("dry run accepted", "confirm")
	if strings.Contains(screen, "Type ") {
		e.Type(agent.name, terminal.Enter)
	} else {
		e.Type("y")
	}
	c.waitForNodes(t, corev1.ConditionTrue, 11)

	// It lasts for two grace periods, and the program says so.
	proved := regexp.MustCompile(`(?s)Recovery of ` + agent.name + `.*✓ proved`)
	e.Wait("the recovery is proved", proved.MatchString)
	e.readProgress("")

	e.Type("n")
	e.WaitFor("A note, with the time")
	e.Type("all hands told", terminal.Enter)
	notes := filepath.Join(home, "notes.md")
	e.Type("x")
	e.WaitFor("Write the incident notes to")
	e.Type(notes, terminal.Enter)
	e.WaitFor("notes.md")
	e.Type("q")
	if code := e.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	e.CheckRestored()

	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"RolloutBreaksNodes", agent.name, agentGood, agentBreaks, "Freeze DaemonSet", "Roll back DaemonSet", "Delete Pod " + pod[1], node, deadNode, "all hands told",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the notes do not hold %q", want)
		}
	}
	if strings.Contains(string(text), "token-of-") {
		t.Error("the notes hold a token")
	}
	if t.Failed() {
		t.Logf("the notes:\n%s", text)
	}
}

// operatorsTerminal is the program's terminal with what an operator does in it.
type operatorsTerminal struct{ *terminal.Terminal }

// choose opens a menu with a key and takes the entry with that text.
func (e operatorsTerminal) choose(key, entry string) {
	e.Type(key)
	e.WaitFor(entry, "enter chooses")
	cursor := func(screen string) string { return regexp.MustCompile(`│ ▸ [^│]*`).FindString(screen) }
	for at := cursor(e.Screen()); !strings.Contains(at, entry); at = cursor(e.Screen()) {
		e.Type(terminal.Down)
		e.Wait("the cursor goes on, to "+entry, func(screen string) bool { return cursor(screen) != at })
	}
	e.Type(terminal.Enter)
	e.Wait("the menu is closed or is another", func(screen string) bool { return !strings.Contains(cursor(screen), entry) })
}

// readProgress reads what is shown after a confirmation, and closes it.
func (e operatorsTerminal) readProgress(title string) {
	const box = "What was confirmed"
	e.WaitFor(box, title)
	e.Type(terminal.Escape)
	e.Wait("the progress is closed", func(screen string) bool { return !strings.Contains(screen, box) })
}

// goTo opens the step with that title, from the list of all steps.
func (e operatorsTerminal) goTo(title string) {
	e.choose(terminal.Tab, title)
	e.Wait("the step "+title+" is open", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return len(lines) > 1 && strings.Contains(lines[1], title)
	})
}

func (c *cluster) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	p, err := c.client.CoreV1().Pods(agent.namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName
}
