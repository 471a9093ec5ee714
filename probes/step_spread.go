package probes

import (
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// firstFall is when the first node of the incident fell: nodes that have been down
// for a day are not of it.
func (c *Diagnosis) firstFall() time.Time {
	var first time.Time
	for _, n := range c.nodeList {
		if e := n.current(); e != nil && c.s.AsOf.Sub(e.onset.From) < 12*time.Hour && (first.IsZero() || e.onset.From.Before(first)) {
			first = e.onset.From
		}
	}
	return first
}

// stepSpread answers whether it is still spreading, and what is at stake.
func stepSpread(c *Diagnosis, target report.WorkloadKey) report.Result {
	d := c.daemonSet(target)
	if d == nil {
		w := c.find(target)
		if w == nil {
			return gone(target)
		}
		var a answer
		a.say(report.StepOK, "%s: %s; a %s is not tied to nodes and does not spread over them", target.Name, w.Rollout.State, target.Kind)
		return a.result()
	}
	if !d.podsKnown {
		return cannot("its Pods were not read")
	}
	var a answer
	r := &d.rollout
	bad := d.verdict.Attribution == report.RolloutBreaksNodes
	switch {
	case r.Spreading && bad:
		a.say(report.StepAnomaly, "SPREADING: nothing brakes it, %s not reached yet. Freeze it first, diagnose after", count(r.NotYetReached, "node"))
	case r.Spreading:
		a.say(report.StepNotice, "moves on to %s not reached yet", count(r.NotYetReached, "node"))
	case r.Brake != "" && r.NotYetReached > 0:
		a.say(report.StepNotice, "halted: %s; %s not reached yet", r.Brake, count(r.NotYetReached, "node"))
	case r.NotYetReached == 0:
		a.say(report.StepOK, "every node of its pool has been reached")
	default:
		a.say(report.StepOK, "%s, %s not reached yet", r.State, count(r.NotYetReached, "node"))
	}
	m := &d.analysis.measures
	if n := len(m.After); n > 0 {
		a.say(report.StepAnomaly, "%s fell after their Pod was replaced: %s", count(n, "node"), joinTexts(m.After, 6))
	}
	if r.MayStillFall > 0 && r.FallUntil != nil {
		they := "they"
		if r.MayStillFall == 1 {
			they = "it"
		}
		a.say(report.StepNotice, "%s too fresh to tell: %s may fall until %s", count(r.MayStillFall, "node"), they, stamp(r.FallUntil.Time))
	}
	if n := len(m.Prevalent); n > 0 {
		a.say(report.StepNotice, "%s broken from before, not counted: %s", count(n, "node"), joinTexts(m.Prevalent, 4))
	}
	for i := range c.stake.lines {
		l := &c.stake.lines[i]
		a.say(l.State, "%s", l.Text)
	}
	a.Findings = append(a.Findings, c.stake.findings...)
	return a.result()
}
