package library

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/util/jsonpath"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
)

// everyCommand renders every command for every kind, with the values given.
func everyCommand(t *testing.T, values runbook.Values, check func(step, command string)) {
	t.Helper()
	for _, b := range loaded(t) {
		for _, kind := range []string{"DaemonSet", "StatefulSet", "Deployment"} {
			values.Kind = kind
			g := runbook.New(b, report.WorkloadKey{Kind: report.Text(kind), Namespace: "kube-system", Name: "agent"}, values)
			for _, s := range g.View().Steps {
				for _, c := range s.Commands {
					check(s.ID+", "+kind, string(c))
				}
			}
		}
	}
}

// expression finds what kubectl is asked to print. A value inside closes and opens
// the quotes, which no expression does.
var expression = regexp.MustCompile(`-o jsonpath='([^']*)'`)

// sample has one object of what the expressions walk over.
var sample = map[string]any{
	"clusters": []any{map[string]any{"cluster": map[string]any{"server": "https://10.0.0.1:6443"}}},
	"metadata": map[string]any{"name": "agent", "labels": map[string]any{"app": "agent"}},
	"spec": map[string]any{"renewTime": "2026-07-03T02:09:58.000000Z", "minReadySeconds": 0, "strategy": map[string]any{"type": "RollingUpdate"}, "updateStrategy": map[string]any{"type": "RollingUpdate"},
		"template": map[string]any{"spec": map[string]any{"hostNetwork": true, "containers": []any{map[string]any{"name": "agent"}}}},
		"taints":   []any{map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}}},
	"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}},
	"items": []any{
		map[string]any{"metadata": map[string]any{"name": "node-1", "namespace": "shop", "labels": map[string]any{"kubernetes.io/service-name": "cart"}},
			"spec":      map[string]any{"taints": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-07-03T02:10:12Z"}}},
			"endpoints": []any{map[string]any{"conditions": map[string]any{"ready": false}}},
			"webhooks":  []any{map[string]any{"name": "check.example.com", "failurePolicy": "Fail", "clientConfig": map[string]any{"service": map[string]any{"namespace": "shop", "name": "check"}}}}},
		map[string]any{"metadata": map[string]any{"name": "node-2"}, "spec": map[string]any{}},
	},
}

func TestJSONPathsWorkAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	printed := map[string]string{}
	everyCommand(t, everyValue("DaemonSet"), func(step, command string) {
		if strings.Contains(command, "jsonpath=") != expression.MatchString(command) {
			t.Errorf("step %s: the expression is not one quoted word: %s", step, command)
		}
		for _, m := range expression.FindAllStringSubmatch(command, -1) {
			p := jsonpath.New("command").AllowMissingKeys(true)
			if err := p.Parse(m[1]); err != nil {
				t.Errorf("step %s: %v in %s", step, err, command)
				continue
			}
			var out bytes.Buffer
			if err := p.Execute(&out, sample); err != nil {
				t.Errorf("step %s: %v in %s", step, err, command)
			}
			if strings.TrimSpace(out.String()) == "" {
				t.Errorf("step %s prints nothing: %s", step, command)
			}
			printed[m[1]] = out.String()
		}
	})
	for part, want := range map[string]string{
		"NoExecute":      "node-1\tnode.kubernetes.io/not-ready since 2026-07-03T02:10:12Z  \nnode-2\t\n",
		"service-name":   "shop/cart\tfalse\n/\t\n",
		"failurePolicy":  "check.example.com\tshop/check\n",
		"?(@.spec.taint": "node-1\tnode.kubernetes.io/not-ready\n",
	} {
		found := false
		for e, out := range printed {
			if strings.Contains(e, part) && strings.Contains(e, "range .items") {
				found = true
				if out != want {
					t.Errorf("%s prints %q, want %q", e, out, want)
				}
			}
		}
		if !found {
			t.Errorf("no expression with %s", part)
		}
	}
}

// A command is made to be pasted. Whatever the names are, it is one command line
// that the shell can read, and no name becomes a command of its own.
func TestCommandsAreValidShellWhateverTheNamesAre(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to ask")
	}
	evil := `x'"; touch /tmp/owned; $(touch /tmp/owned) #`
	hostile := runbook.Values{Namespace: evil, Name: evil, Selector: evil, Node: evil, LostNode: evil, Pod: evil, Container: evil, InitContainer: evil, Revision: evil, KnownGood: evil,
		APIHost: evil, APIAddress: evil, Since: evil, Release: evil, Budget: evil, WiderBudget: evil}
	for name, values := range map[string]runbook.Values{"usual": everyValue(""), "hostile": hostile} {
		var script strings.Builder
		everyCommand(t, values, func(_, command string) { script.WriteString(command + "\n") })
		cmd := exec.Command(bash, "-n")
		cmd.Stdin = strings.NewReader(script.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s names: %v\n%s", name, err, out)
		}
		if name == "hostile" && strings.Count(script.String(), `'x'\''"; touch /tmp/owned; $(touch /tmp/owned) #'`) != strings.Count(script.String(), "touch /tmp/owned;") {
			t.Error("a hostile name stands unquoted somewhere")
		}
	}
}
