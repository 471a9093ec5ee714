package probes

import (
	"slices"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepMend answers what to do, in the order that loses least.
func stepMend(c *Diagnosis, target report.WorkloadKey) report.Result {
	w := c.find(target)
	if w == nil {
		return gone(target)
	}
	var a answer
	r := &w.Recommendation
	if r.Action == report.ActionNone {
		a.say(report.StepOK, "nothing to mend: %s", w.Verdict.Summary)
		return a.result()
	}
	a.owners(w)
	for _, f := range r.First {
		a.say(report.StepNotice, "first: %s", f)
	}
	to := ""
	if r.ToRevision != nil {
		to = string(report.Textf(" to revision %d", *r.ToRevision))
	}
	if r.Pod != "" {
		to = " " + string(r.Pod)
	}
	a.say(report.StepNotice, "%s%s: %s", r.Action, to, r.Why)
	if len(r.Reachable) > 0 {
		a.say(report.StepOK, "works through the API on %s: %s", count(len(r.Reachable), "node"), joinTexts(r.Reachable, 6))
	}
	if len(r.Unreachable) > 0 {
		a.say(report.StepAnomaly, "out of reach: %s, only at their console: %s", count(len(r.Unreachable), "node"), joinTexts(r.Unreachable, 6))
	}
	for _, t := range r.WatchOut {
		if !slices.ContainsFunc(w.Owners, func(o report.Owner) bool { return o.WatchOut() == t }) {
			a.say(report.StepNotice, "watch out: %s", t)
		}
	}
	return a.result()
}
