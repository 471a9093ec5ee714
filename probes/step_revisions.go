package probes

import "github.com/rollcall-k8s/rollcall/probes/report"

// stepRevisions answers what changed, and which revision was last healthy.
func stepRevisions(c *Diagnosis, target report.WorkloadKey) report.Result {
	w := c.find(target)
	if w == nil {
		return gone(target)
	}
	var a answer
	r := &w.Rollout
	if len(r.Revisions) == 0 && target.Kind == "DaemonSet" {
		return cannot("its ControllerRevisions were not read")
	}
	for i := range r.Revisions {
		if i == 6 {
			a.say(report.StepNone, "and %d older ones", len(r.Revisions)-i)
			break
		}
		v := &r.Revisions[i]
		note := ""
		switch {
		case v.Current && v.KnownGood:
			note = ", current, healthy"
		case v.Current:
			note = ", current"
		case v.KnownGood:
			note = ", last healthy"
		}
		if v.SameAs != 0 {
			note += string(report.Textf(", same template as %d", v.SameAs))
		}
		state := report.StepNone
		if v.KnownGood {
			state = report.StepOK
		}
		if v.Current && w.Verdict.Attribution == report.RolloutBreaksNodes {
			state = report.StepAnomaly
		}
		a.say(state, "revision %d%s: %s, %d of them Ready on Ready nodes; images %s", v.Number, note, count(v.Pods, "Pod"), v.Healthy, joinTexts(v.Images, 2))
	}
	shown := r.KnownGoodRevision
	if shown == nil {
		shown = r.PreviousRevision
	}
	for i := range r.Revisions {
		v := &r.Revisions[i]
		if shown == nil || v.Number != *shown || v.Current {
			continue
		}
		a.say(report.StepNone, "back to revision %d would change:", v.Number)
		for j, line := range v.Diff {
			if j == 12 {
				a.sub(report.StepNone, "and %d more lines", len(v.Diff)-j)
				break
			}
			a.sub(report.StepNone, "%s", line)
		}
	}
	const most = 4
	changed := c.inPlaceFindings()
	for i := range changed {
		if i == most {
			a.say(report.StepNone, "and %d more changes that no revision contains", len(changed)-most)
			break
		}
		f := &changed[i]
		a.say(report.StepNotice, "in no revision: %s %s: %s", f.Object.Kind, f.Object.Name, f.Summary)
		a.Findings = append(a.Findings, *f)
	}
	if r.KnownGoodRevision == nil {
		a.say(report.StepNotice, "no revision other than a blamed one runs Ready on a Ready node: which was healthy cannot be shown")
	}
	return a.result()
}
