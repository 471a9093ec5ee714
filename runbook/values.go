package runbook

import (
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Values are the names that commands are filled in with, {{.Namespace}} and so
// on. An empty one shows as its placeholder, so that nobody runs a command on a
// guess. They are quoted for the shell where they need it: a command is made to
// be pasted, and names may come from anywhere.
type Values struct {
	Kind          string `placeholder:"kind"` // "DaemonSet"; in commands as kubectl writes it: "daemonset"
	Namespace     string `placeholder:"namespace"`
	Name          string `placeholder:"name"`
	Selector      string `placeholder:"selector"` // of its Pods: "k8s-app=calico-node"
	Node          string `placeholder:"node"`     // a failing node
	LostNode      string `placeholder:"unreachable-node"`
	Pod           string `placeholder:"pod"` // of the new revision, on Node if it can be
	Container     string `placeholder:"container"`
	InitContainer string `placeholder:"init-container"`
	Revision      string `placeholder:"revision"`
	KnownGood     string `placeholder:"known-good-revision"`
	APIHost       string `placeholder:"api-host"`
	APIAddress    string `placeholder:"api-host:port"`
	Since         string `placeholder:"start-time"`            // shortly before the rollout began: "2026-07-03 02:09:00 UTC"
	Release       string `placeholder:"release"`               // value of app.kubernetes.io/instance
	Budget        string `placeholder:"max-unavailable"`       // as JSON: 1, "25%"
	WiderBudget   string `placeholder:"wider-max-unavailable"` // with room beside unreachable nodes
}

// filled returns the values as a template sees them: quoted, or a placeholder.
func (v Values) filled() Values {
	v.Kind = strings.ToLower(v.Kind)
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		f := s.Field(i)
		if f.String() == "" {
			f.SetString("<" + s.Type().Field(i).Tag.Get("placeholder") + ">")
			continue
		}
		f.SetString(report.Word(f.String()))
	}
	return v
}

// known tells whether the value of that name is known, and whether there is such a value.
func (v Values) known(name string) (known, exists bool) {
	f := reflect.ValueOf(v).FieldByName(name)
	return f.IsValid() && f.String() != "", f.IsValid()
}

// fill executes one command template.
func fill(run string, v Values) (report.Text, error) {
	t, err := template.New("command").Option("missingkey=error").Parse(run)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, v.filled()); err != nil {
		return "", err
	}
	return report.Clean(strings.TrimSpace(b.String())), nil
}

// quotedValue finds a value that a command template puts inside quotes, where its
// own quoting would end them.
func quotedValue(run string) string {
	var quotes []rune // open quotes and "(" of command substitutions, the innermost last
	in := func(q rune) bool { return len(quotes) > 0 && quotes[len(quotes)-1] == q }
	action := false // inside {{ }}
	for i, r := range run {
		rest := run[i:]
		switch {
		case strings.HasPrefix(rest, "{{"):
			action = true
			inner, _, _ := strings.Cut(rest[2:], "}}")
			word, _, _ := strings.Cut(strings.Trim(inner, "- "), " ")
			if (in('\'') || in('"')) && !slices.Contains([]string{"if", "else", "end"}, word) {
				return "{{" + inner + "}}"
			}
		case strings.HasPrefix(rest, "}}"):
			action = false
		case action:
		case r == '\'' && !in('"'), r == '"' && !in('\''):
			if in(r) {
				quotes = quotes[:len(quotes)-1]
			} else {
				quotes = append(quotes, r)
			}
		case strings.HasPrefix(rest, "$(") && !in('\''), strings.HasPrefix(rest, "<(") && !in('\'') && !in('"'):
			quotes = append(quotes, '(')
		case r == ')' && in('('):
			quotes = quotes[:len(quotes)-1]
		}
	}
	return ""
}
