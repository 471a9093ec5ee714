package runbook

import (
	"strings"
	"testing"
)

// walk is a small valid runbook; the tests break it one line at a time.
const walk = `
id: walk
title: A walk
applies: {when: 'nodesDown > 0', priority: 10}
steps:
  - id: first
    title: Which?
    probe: rollouts
    why: Why.
    read: Read.
    trap: Trap.
    commands: [{says: it lists, run: 'kubectl get {{.Kind}} -n {{.Namespace}}'}]
    unanswered: [{ask: 'Logs?', because: no probe reads them., commands: [{says: logs, run: 'kubectl logs {{.Pod}}'}]}]
    actions: [RollBack]
    next: [{when: 'unreachable == 0', go: third}]
  - id: second
    title: Where?
    probe: spread
    why: Why.
    read: Read.
    trap: Trap.
    commands: [{says: it lists, run: ls}]
  - id: third
    title: When?
    probe: spread
    why: Why.
    read: Read.
    trap: Trap.
    commands: [{says: it lists, run: ls, needs: [Pod]}]
    next: [{when: 'state == "Anomaly"', go: first}]
`

var walkNames = Names{Probes: []string{"rollouts", "spread"}, Actions: []string{"RollBack"}}

func walkBook(t testing.TB) *Book {
	t.Helper()
	b, err := Parse("walk.yaml", []byte(walk), walkNames)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMistakesInARunbookAreNamedWithFileAndStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", "    why: Why.\n", "    why: Why.\n    because: x\n", `"because"`},
		{"duplicate field", "id: walk\n", "id: walk\nid: run\n", `already set`},
		{"no YAML", "id: walk", "id: [", "not readable as a runbook"},
		{"missing text", "    why: Why.\n", "", "step 1 (first): why is missing"},
		{"blank text", "trap: Trap.", "trap: ' '", "step 1 (first): trap is missing"},
		{"title that asks nothing", "title: Which?", "title: Which", `"Which" is not a question`},
		{"no title", "title: A walk", "title: ''", "walk.yaml: title is missing"},
		{"no probe", "probe: rollouts", "probe: ''", "probe is missing"},
		{"unknown probe", "probe: rollouts", "probe: rolluots", `there is no probe "rolluots"; known are rollouts, spread`},
		{"unknown action", "[RollBack]", "[Rollback]", `there is no action "Rollback"`},
		{"unknown step", "go: third", "go: thrid", `step 1 (first): next leads to "thrid"`},
		{"duplicate id", "id: second", "id: first", "step 2 (first): step 1 has the same id"},
		{"bad id", "id: second", "id: Second Step", `id "Second Step"`},
		{"CEL syntax", "unreachable == 0", "unreachable ==", "is no valid condition"},
		{"CEL name", "unreachable == 0", "unreached == 0", "undeclared reference"},
		{"CEL type", "unreachable == 0", "unreachable == \"x\"", "no matching overload"},
		{"CEL no condition", "unreachable == 0", "unreachable", "is a int, not a condition"},
		{"CEL word that is never said", `state == "Anomaly"`, `state == "Anomalie"`, `compares with "Anomalie"`},
		{"applies is checked too", "nodesDown > 0", `attribution == "RolloutBreakNodes"`, `walk.yaml: applies.when: `},
		{"no condition to apply", "when: 'nodesDown > 0', ", "", "applies.when is missing"},
		{"no condition to branch", "when: 'unreachable == 0', ", "", "next 1 has no condition"},
		{"template syntax", "{{.Kind}}", "{{.Kind", "step 1 (first), command 1: its template does not work"},
		{"template name", "{{.Kind}}", "{{.Knid}}", "Knid"},
		{"value in single quotes", "-n {{.Namespace}}'", "-n ''x={{.Namespace}}'''", "{{.Namespace}} stands inside quotes"},
		{"value in double quotes", "-n {{.Namespace}}", `-n "{{.Namespace}}"`, "{{.Namespace}} stands inside quotes"},
		{"needs no value", "needs: [Pod]", "needs: [Pot]", `needs "Pot", which is no value`},
		{"no commands", "    commands: [{says: it lists, run: ls}]\n", "", "step 2 (second): it has no commands"},
		{"command without explanation", "says: it lists, run: ls}", "run: ls}", "command 1: says is missing"},
		{"question without reason", ", because: no probe reads them.", "", "step 1 (first), unanswered 1: because is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(walk, c.old, c.new, 1)
			if broken == walk {
				t.Fatal("the case changes nothing")
			}
			b, err := Parse("walk.yaml", []byte(broken), walkNames)
			if err == nil || b != nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "walk.yaml") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEveryMistakeIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(strings.Replace(walk, "probe: rollouts", "probe: x", 1), "go: third", "go: y", 1)
	_, err := Parse("walk.yaml", []byte(broken), walkNames)
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two lines, got %v", err)
	}
}

func TestQuotedValueKnowsTheShell(t *testing.T) {
	t.Parallel()
	for run, bad := range map[string]bool{
		`get {{.Name}}`:                              false,
		`get '{{.Name}}'`:                            true,
		`get "{{.Name}}"`:                            true,
		`get "{{printf "%s" .Name}}"`:                true,
		`-p '{"a":'{{.Name}}'}'`:                     false,
		`-p '{"a":{{.Name}}}'`:                       true,
		`-p '{"a"{{if eq .Kind "x"}}:1{{end}}}'`:     false,
		`echo "$(get {{.Name}})"`:                    false,
		`diff <(get {{.Name}}) <(get '{{.Name}}')`:   true,
		`get "it's" {{.Name}} '"' {{.Name}}`:         false,
		`awk '{print $5; exit}') | grep {{.Name}}`:   false,
		`jsonpath='{.a}{"\n"}' -l {{.Selector}} 'x'`: false,
	} {
		if got := quotedValue(run); (got != "") != bad {
			t.Errorf("%s: got %q", run, got)
		}
	}
}

func TestChoosePrefersWhatFitsThenPriority(t *testing.T) {
	t.Parallel()
	book := func(id, when, priority string) *Book {
		src := strings.NewReplacer("id: walk", "id: "+id, "'nodesDown > 0'", "'"+when+"'", "priority: 10", "priority: "+priority).Replace(walk)
		b, err := Parse(id, []byte(src), Names{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	nodes, pods, any := book("nodes", "nodesDown > 0", "10"), book("pods", `attribution == "RolloutBreaksPods"`, "20"), book("any", "true", "1")
	books := []*Book{any, nodes, pods}
	for _, c := range []struct {
		name  string
		facts Facts
		books []*Book
		want  string
		fits  bool
	}{
		{"one fits beside the one for everything", Facts{NodesDown: 1}, books, "nodes", true},
		{"only the one for everything", Facts{}, books, "any", true},
		{"none fits: the most important one", Facts{}, books[1:], "pods", false},
	} {
		if got, fits := Choose(c.books, c.facts); got.ID != c.want || fits != c.fits {
			t.Errorf("%s: got %s, %v", c.name, got.ID, fits)
		}
	}
	if got, fits := Choose(nil, Facts{}); got != nil || fits {
		t.Error("no books: want none")
	}
}
