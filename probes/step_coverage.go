package probes

import (
	"fmt"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepCoverage answers which nodes should have the Pod and which have it: the
// counters explained, what keeps nodes out, and the four invariants.
func stepCoverage(c *Diagnosis, target report.WorkloadKey) report.Result {
	d := c.daemonSet(target)
	if d == nil {
		return gone(target)
	}
	v := c.coverageView(d)
	if v.Reason != "" {
		return cannot(v.Reason)
	}
	var a answer
	for _, x := range v.Invariants {
		state := report.StepOK
		switch x.Holds {
		case report.DoesNotHold:
			state = report.StepAnomaly
		case report.NotKnown:
			state = report.StepUnknown
		}
		a.say(state, "%s %s: %s", x.Name, x.Holds, x.Why)
	}
	a.say(report.StepNone, "%d of %s eligible", v.Eligible, count(v.Nodes, "node"))
	for _, e := range v.Excluded {
		state := report.StepNone
		if !e.Deliberate {
			state = report.StepNotice
		}
		a.sub(state, "%d not: %s (%s)", e.Count, e.Why, joinTexts(e.Nodes, 3))
	}
	for _, x := range v.Counters {
		c.sayCounter(&a, v, &x)
	}
	shown := 0
	for i := range d.coverage.gaps {
		g := &d.coverage.gaps[i]
		if g.severity == report.Info {
			continue
		}
		if shown++; shown > nodesBehind {
			break
		}
		what := "has no Pod"
		if g.pod != nil {
			what = "has Pod " + g.pod.Name + ", which should not be there"
		}
		a.say(report.StepAnomaly, "%s %s: %s", g.node.name, what, g.why)
		for _, x := range constraints(g.node.node, &d.ds.Spec.Template) {
			state := report.StepOK
			if !x.ok {
				state = report.StepAnomaly
			}
			a.sub(state, "%s", x.String())
		}
	}
	for _, f := range d.findings {
		switch f.Code {
		case report.NoEligibleNodes, report.NodeNotCovered, report.NodeMisscheduled, report.MisscheduledStatusStale, report.SelectorOverlap, report.UntoleratedTaint:
			a.Findings = append(a.Findings, f)
		}
	}
	return a.result()
}

func (c *Diagnosis) sayCounter(a *answer, v *report.Coverage, x *report.Counter) {
	text := fmt.Sprintf("%s %d", x.Name, x.Status)
	state := report.StepNone
	switch x.State {
	case report.CounterSettling:
		text += fmt.Sprintf(", and %d as it is now: %s", *x.Computed, v.Settling)
	case report.CounterContradicts:
		state = report.StepNotice
		text += fmt.Sprintf(" in status, and the nodes and Pods as they are make it %d", *x.Computed)
	case report.CounterUnknown:
		text += " by status; its Pods were not read"
	}
	a.say(state, "%s", text)
	for _, n := range x.Behind {
		a.sub(report.StepNone, "%s %s: %s", n.Node, n.Pod, n.Why)
	}
	if x.More > 0 {
		a.sub(report.StepNone, "and %d more", x.More)
	}
}
