// Package runbook is a checklist and the guide that walks it: which step is open,
// what each showed and when, what was skipped and why, which branch follows. A
// runbook is data, a YAML file in runbook/library; the answers to its questions
// are handed in. Nothing here asks a cluster, knows a terminal or has a clock.
package runbook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Book is one runbook, checked: every step has its texts, every name it uses is
// known, every condition and command template compiles.
type Book struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	Applies Applies `json:"applies"`
	Steps   []Step  `json:"steps"`
}

// Applies says when a runbook fits an incident.
type Applies struct {
	// When is a CEL condition over Facts; see condition.go for its variables.
	When string `json:"when"`
	// Priority decides between runbooks that fit both: the highest wins.
	Priority int `json:"priority"`

	when condition
}

// Step is one question of a runbook.
type Step struct {
	ID    string `json:"id"`
	Title string `json:"title"` // a question
	Probe string `json:"probe"` // the probe that answers it
	Why   string `json:"why"`   // why it is asked
	Read  string `json:"read"`  // how to read the answer
	Trap  string `json:"trap"`  // the mistake that people make here
	// Commands show the same by hand.
	Commands []Command `json:"commands"`
	// Unanswered are parts of the question that no probe looks at. They are
	// shown as not looked at, never as fine.
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	// Actions are the kinds of runbook/action that fit here.
	Actions []string `json:"actions,omitempty"`
	// Next are the ways on: the first whose condition holds is taken, otherwise
	// the step below.
	Next []Branch `json:"next,omitempty"`
}

// Command is one command to run by hand. Both texts are Go text/templates over
// Values.
type Command struct {
	Says string `json:"says"` // what it shows or does
	Run  string `json:"run"`
	// Needs names the Values without which the command makes no sense here: it
	// is left out while one of them is not known.
	Needs []string `json:"needs,omitempty"`
}

// Unanswered is a question that the operator must answer.
type Unanswered struct {
	Ask     string `json:"ask"`
	Because string `json:"because"` // why no probe answers it
	// By names what answers it once that was read on request: logs.
	By       string    `json:"by,omitempty"`
	Commands []Command `json:"commands,omitempty"`
}

// AnsweredByLogs is the By of a question that the logs of the Pods in question
// answer, once they were read.
const AnsweredByLogs = "logs"

// Branch leads to the step Go where the CEL condition When holds.
type Branch struct {
	When string `json:"when"`
	Go   string `json:"go"`

	when condition
}

// Names are what a runbook may refer to. A nil list checks nothing.
type Names struct {
	Probes  []string
	Actions []string
}

// Parse reads one runbook. Unknown fields are refused. The error lists everything
// that is wrong, a line each, with the file and the step; the book is nil then.
func Parse(file string, data []byte, names Names) (*Book, error) {
	var b Book
	if err := yaml.UnmarshalStrict(data, &b); err != nil {
		return nil, fmt.Errorf("runbook %s: not readable as a runbook: %w", file, err)
	}
	c := checker{file: file, names: names}
	c.book(&b)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return &b, nil
}

// step returns the index of the step, or -1.
func (b *Book) step(id string) int {
	return slices.IndexFunc(b.Steps, func(s Step) bool { return s.ID == id })
}

// Fits tells whether the runbook is made for an incident with these facts.
func (b *Book) Fits(f Facts) bool { return b.Applies.when.holds(f, StepFacts{}) }

// Choose returns the runbook for an incident: of those that fit, the one with the
// highest priority (the first of equals). Where none fits it returns the one with
// the highest priority and false; nil only where there are no books.
func Choose(books []*Book, f Facts) (best *Book, fits bool) {
	for _, b := range books {
		ok := b.Fits(f)
		if best == nil || ok && !fits || ok == fits && b.Applies.Priority > best.Applies.Priority {
			best, fits = b, ok
		}
	}
	return best, fits
}

// checker collects what is wrong with a runbook.
type checker struct {
	file  string
	names Names
	errs  []error
}

func (c *checker) fail(where, format string, args ...any) {
	at := "runbook " + c.file
	if where != "" {
		at += ", " + where
	}
	c.errs = append(c.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

// text demands a text.
func (c *checker) text(where, field, s string) {
	if strings.TrimSpace(s) == "" {
		c.fail(where, "%s is missing", field)
	}
}

var idPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (c *checker) book(b *Book) {
	c.id("", b.ID)
	c.text("", "title", b.Title)
	c.text("", "applies.when", b.Applies.When)
	if len(b.Steps) == 0 {
		c.fail("", "it has no steps")
	}
	ids := make([]string, 0, len(b.Steps))
	for i := range b.Steps {
		ids = append(ids, b.Steps[i].ID)
	}
	b.Applies.when = c.condition("", "applies.when", b.Applies.When, ids)
	for i := range b.Steps {
		c.step(&b.Steps[i], i, ids)
	}
}

func (c *checker) id(where, id string) {
	if !idPattern.MatchString(id) {
		c.fail(where, "id %q is not made of lower-case words and dashes", id)
	}
}

func (c *checker) step(s *Step, i int, ids []string) {
	where := fmt.Sprintf("step %d (%s)", i+1, s.ID)
	c.id(where, s.ID)
	if first := slices.Index(ids, s.ID); first < i {
		c.fail(where, "step %d has the same id", first+1)
	}
	for _, t := range []struct{ field, text string }{
		{"title", s.Title}, {"probe", s.Probe}, {"why", s.Why}, {"read", s.Read}, {"trap", s.Trap},
	} {
		c.text(where, t.field, t.text)
	}
	if s.Title != "" && !strings.HasSuffix(s.Title, "?") {
		c.fail(where, "title %q is not a question", s.Title)
	}
	c.known(where, "probe", s.Probe, c.names.Probes)
	for _, a := range s.Actions {
		c.known(where, "action", a, c.names.Actions)
	}
	if len(s.Commands) == 0 {
		c.fail(where, "it has no commands")
	}
	c.commands(where, s.Commands)
	for j, u := range s.Unanswered {
		at := fmt.Sprintf("%s, unanswered %d", where, j+1)
		c.text(at, "ask", u.Ask)
		c.text(at, "because", u.Because)
		c.known(at, "answer", u.By, []string{AnsweredByLogs})
		c.commands(at, u.Commands)
	}
	for j := range s.Next {
		n := &s.Next[j]
		if !slices.Contains(ids, n.Go) {
			c.fail(where, "next leads to %q, which is no step of this runbook", n.Go)
		}
		n.when = c.condition(where, fmt.Sprintf("next %d", j+1), n.When, ids)
	}
}

func (c *checker) known(where, what, name string, names []string) {
	if names != nil && name != "" && !slices.Contains(names, name) {
		c.fail(where, "there is no %s %q; known are %s", what, name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
}

func (c *checker) commands(where string, cs []Command) {
	for i, cmd := range cs {
		at := fmt.Sprintf("%s, command %d", where, i+1)
		c.text(at, "says", cmd.Says)
		c.text(at, "run", cmd.Run)
		for _, t := range []string{cmd.Says, cmd.Run} {
			if _, err := fill(t, Values{}); err != nil {
				c.fail(at, "its template does not work: %v", err)
			}
		}
		if v := quotedValue(cmd.Run); v != "" {
			c.fail(at, "%s stands inside quotes; values bring their own, so close the quotes around it", v)
		}
		for _, n := range cmd.Needs {
			if _, ok := (Values{}).known(n); !ok {
				c.fail(at, "needs %q, which is no value", n)
			}
		}
	}
}

func (c *checker) condition(where, field, source string, steps []string) condition {
	if strings.TrimSpace(source) == "" {
		if field != "applies.when" { // said already
			c.fail(where, "%s has no condition", field)
		}
		return condition{}
	}
	cond, err := compile(source, steps)
	if err != nil {
		c.fail(where, "%s: %v", field, err)
	}
	return cond
}
