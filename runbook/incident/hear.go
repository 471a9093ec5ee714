package incident

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
)

// mostSigns bounds the signs that a step shows; all of them stand in the notes.
const mostSigns = 5

// asked lists the Pods and the nodes that could tell more.
func (l *Loop) asked() (pods []AskedPod, nodes []report.Text) {
	if l.diag == nil {
		return nil, nil
	}
	if l.open != nil && l.cfg.Logs != nil {
		for _, a := range l.pods(l.diag, l.open.Target()) {
			p := AskedPod{Namespace: report.Clean(a.Pod.Namespace), Name: report.Clean(a.Pod.Name), Node: report.Clean(a.Pod.Spec.NodeName), Why: a.Why}
			p.Read = l.wasRead(p)
			pods = append(pods, p)
		}
	}
	for _, n := range l.consoles(l.diag) {
		nodes = append(nodes, report.Clean(n))
	}
	return pods, nodes
}

// heardOf is what the logs of a Pod said.
func (l *Loop) heardOf(p AskedPod) []signs.Evidence {
	var out []signs.Evidence
	for _, e := range l.heard {
		if e.From.Pod == p.Name && e.From.Namespace == p.Namespace {
			out = append(out, e)
		}
	}
	return out
}

// wasRead tells whether a Pod's logs were read; one that could not be read was not.
func (l *Loop) wasRead(p AskedPod) bool {
	all := l.heardOf(p)
	return len(all) > 0 && !slices.ContainsFunc(all, func(e signs.Evidence) bool { return e.Failed != "" && !e.Never })
}

// hear adds to what a probe answers what was read on request: a log or a console
// belongs to the step that asks for it.
func (l *Loop) hear(probe string, r report.Result) report.Result {
	switch probe {
	case "new-pod":
		return l.hearPods(r)
	case "node-console":
		return l.hearConsoles(r)
	}
	return r
}

// hearPods answers what the logs say. A sign answers it, and so does reading all
// Pods in question without finding one; silence of some of them does not.
func (l *Loop) hearPods(r report.Result) report.Result {
	pods, _ := l.asked()
	var h hearing
	unread := 0
	for _, p := range pods {
		if !p.Read {
			unread++
		}
		for _, e := range l.heardOf(p) {
			h.take(e)
		}
	}
	switch {
	case l.cfg.Logs != nil && len(pods) == 0 && r.State == report.StepOK:
		h.say(report.StepNone, "no Pod is in question, so no log is asked for")
	case h.sources == 0:
		return r
	}
	if h.found == 0 && unread > 0 {
		h.say(report.StepNone, "%s in question whose logs were not read", count(unread, "more Pod"))
	} else {
		r.Answered = append(slices.Clip(r.Answered), runbook.AnsweredByLogs)
	}
	if h.found > 0 { // nearest to the cause
		r.Lines = append(h.done(), r.Lines...)
	} else {
		r.Lines = append(slices.Clip(r.Lines), h.done()...)
	}
	if r.State != report.StepUnknown {
		r.State = worse(r.State, h.worst)
	}
	return r
}

// hearConsoles answers what the nodes themselves say, by the same rule.
func (l *Loop) hearConsoles(r report.Result) report.Result {
	_, nodes := l.asked()
	var h hearing
	silent := slices.Clone(nodes)
	for _, e := range l.heard {
		if e.From.Pod == "" {
			h.take(e)
			silent = slices.DeleteFunc(silent, func(n report.Text) bool { return n == e.From.Node })
		}
	}
	if h.sources == 0 {
		return r
	}
	if len(nodes) == 0 { // nothing needs a console any more; it stays on record
		for i := range h.lines {
			h.lines[i].State = report.StepNone
		}
		r.Lines = append(slices.Clip(r.Lines), h.done()...)
		return r
	}
	switch {
	case h.found > 0 || len(silent) == 0:
		if r.State == report.StepUnknown {
			r.State, r.Reason = worse(report.StepOK, h.worst), ""
		}
		if len(silent) > 0 {
			h.say(report.StepNone, "nothing was pasted yet of %s", some(silent, 4))
		}
	default:
		r.Reason = report.Textf("no known sign so far; nothing was pasted yet of %s", some(silent, 4))
	}
	r.Lines = append(slices.Clip(r.Lines), h.done()...)
	return r
}

// hearing is what several sources said, as lines of a step.
type hearing struct {
	lines   []report.Line
	worst   report.StepState
	sources int
	found   int
	more    int // signs beyond mostSigns
}

func (h *hearing) say(state report.StepState, format string, args ...any) {
	h.lines = append(h.lines, report.Line{State: state, Text: report.Textf(format, args...)})
}

func (h *hearing) sub(format string, args ...any) {
	h.lines = append(h.lines, report.Line{Text: report.Textf(format, args...), Indent: 1})
}

// take says what a source told.
func (h *hearing) take(e signs.Evidence) {
	h.sources++
	for _, f := range e.Found {
		h.worst = worse(h.worst, f.State)
		if h.found++; h.found > mostSigns {
			h.more++
			continue
		}
		h.say(f.State, "%s: %s", e.From, f.Headline())
		h.sub("“%s”", f.Line)
		h.sub("%s %s", f.Means, f.Do)
	}
	switch {
	case e.Never:
		h.say(report.StepNone, "%s: %s", e.From, e.Failed)
	case e.Failed != "":
		h.say(report.StepUnknown, "%s: %s", e.From, e.Failed)
	case len(e.Found) == 0 && len(e.Unknown) > 0:
		h.worst = worse(h.worst, report.StepNotice)
		h.say(report.StepNotice, "%s: no known sign in %s; it calls this an error:", e.From, count(e.Lines, "line"))
		for _, t := range e.Unknown {
			h.sub("“%s”", t)
		}
	case len(e.Found) == 0:
		h.say(report.StepOK, "%s: no known sign in %s", e.From, count(e.Lines, "line"))
	}
}

func (h *hearing) done() []report.Line {
	if h.more > 0 {
		h.say(report.StepNone, "and %s", count(h.more, "more sign"))
	}
	return h.lines
}

// worse is the graver of two states of what was looked at.
func worse(a, b report.StepState) report.StepState {
	rank := func(s report.StepState) int {
		return slices.Index([]report.StepState{report.StepOK, report.StepNotice, report.StepAnomaly}, s)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func some(names []report.Text, most int) string {
	out := texts(names[:min(len(names), most)])
	if n := len(names) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}
