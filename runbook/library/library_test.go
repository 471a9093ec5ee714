package library

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/charmbracelet/x/ansi"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
)

// The names that this version of the program has.
var (
	probeNames  = []string{"rollouts", "spread", "strategy", "timeline", "node-conditions", "new-pod", "node-console", "revisions", "mend", "recovery", "prevention"}
	actionNames = []string{"SwitchToOnDelete", "SwitchToRollingUpdate", "RollBack", "DeletePod"}
)

func loaded(t *testing.T) []*runbook.Book {
	t.Helper()
	books, err := Load(probeNames, actionNames)
	if err != nil {
		t.Fatal(err)
	}
	return books
}

func TestRunbooksLoad(t *testing.T) {
	t.Parallel()
	books := loaded(t)
	if len(books) == 0 || books[0].ID != "nodes-failing-during-rollout" || len(books[0].Steps) != 11 {
		t.Fatalf("got %d runbooks, want nodes-failing-during-rollout with its eleven steps first", len(books))
	}
}

// A text is read at three in the morning on a small terminal, and its indent and
// label take four columns of it.
func TestEveryTextFitsFiveLinesOfAnEightyColumnScreen(t *testing.T) {
	t.Parallel()
	for _, b := range loaded(t) {
		for _, s := range b.Steps {
			for field, text := range map[string]string{"why": s.Why, "read": s.Read, "trap": s.Trap} {
				if n := strings.Count(ansi.Wordwrap(string(report.Clean(text)), 76, ""), "\n") + 1; n > 5 {
					t.Errorf("%s, step %s: %s takes %d lines of 76 columns, at most 5", b.ID, s.ID, field, n)
				}
			}
			if len(s.Title) > 60 {
				t.Errorf("%s, step %s: title is %d characters long, at most 60", b.ID, s.ID, len(s.Title))
			}
		}
	}
}

// Texts are plain sentences: what a terminal would show as markup stays out.
func TestTextsAreFullPlainSentences(t *testing.T) {
	t.Parallel()
	for _, b := range loaded(t) {
		for _, s := range b.Steps {
			for field, text := range map[string]string{"why": s.Why, "read": s.Read, "trap": s.Trap} {
				if !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "`*") {
					t.Errorf("%s, step %s: %s is not plain sentences: %q", b.ID, s.ID, field, text)
				}
			}
		}
	}
}

// Commands that articles recommend and that do not work, or show nothing.
var wrongCommands = regexp.MustCompile(`rollout status .*--all|rollout pause (ds|daemonset)|describe (ds|daemonset).*grep|rollout undo [^\n]*$`)

func TestCommandsAvoidWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	for _, b := range loaded(t) {
		for _, kind := range []report.Text{"DaemonSet", "StatefulSet", "Deployment"} {
			g := runbook.New(b, report.WorkloadKey{Kind: kind, Namespace: "kube-system", Name: "agent"}, everyValue(string(kind)))
			for _, s := range g.View().Steps {
				if len(s.Commands) != len(s.Says) {
					t.Fatalf("%s: %d commands, %d explanations", s.ID, len(s.Commands), len(s.Says))
				}
				for _, c := range s.Commands {
					line := string(c)
					if m := wrongCommands.FindString(line); m != "" && !strings.Contains(line, "--to-revision=6") {
						t.Errorf("step %s, %s: %q", s.ID, kind, line)
					}
					if strings.ContainsAny(line, "\n") || strings.Contains(line, "  -") || strings.Contains(line, "{{") || strings.Contains(line, "<no value>") {
						t.Errorf("step %s, %s: not one clean line: %q", s.ID, kind, line)
					}
					if m := regexp.MustCompile(`<[a-z-]+>`).FindString(line); m != "" {
						t.Errorf("step %s, %s: %s is not filled in: %q", s.ID, kind, m, line)
					}
				}
			}
		}
	}
}

func everyValue(kind string) runbook.Values {
	return runbook.Values{Kind: kind, Namespace: "kube-system", Name: "agent", Selector: "k8s-app=agent", Node: "node-1", LostNode: "node-2", Pod: "agent-x",
		Container: "agent", InitContainer: "install-cni", Revision: "7", KnownGood: "6", APIHost: "10.0.0.1", APIAddress: "10.0.0.1:6443",
		Since: "2026-07-03 02:09:00 UTC", Release: "net", Budget: "1", WiderBudget: "3"}
}

func TestASecondRunbookIsOneMoreFile(t *testing.T) {
	t.Parallel()
	first, err := files.ReadFile("nodes-failing-during-rollout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	second := strings.Replace(string(first), "id: nodes-failing-during-rollout", "id: another", 1)
	books, err := load(fstest.MapFS{"nodes-failing-during-rollout.yaml": {Data: first}, "another.yaml": {Data: []byte(second)}}, runbook.Names{})
	if err != nil || len(books) != 2 || books[0].ID != "another" {
		t.Fatalf("got %d runbooks, %v", len(books), err)
	}
	if _, err := load(fstest.MapFS{"misnamed.yaml": {Data: first}}, runbook.Names{}); err == nil || !strings.Contains(err.Error(), "misnamed.yaml") {
		t.Errorf("a file not named for its id: %v", err)
	}
}

func TestUnknownProbesAndActionsAreRefusedWithFileAndStep(t *testing.T) {
	t.Parallel()
	_, err := Load([]string{"rollouts"}, []string{"RollBack"})
	for _, want := range []string{"nodes-failing-during-rollout.yaml, step 2 (spreading)", `no probe "spread"`, `no action "SwitchToOnDelete"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
}
