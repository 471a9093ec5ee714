package probes

import "github.com/rollcall-k8s/rollcall/probes/report"

// Probes are the probes by the name that a runbook's step uses. A new probe is one
// file and one line here.
var Probes = map[string]Probe{
	"coverage":        stepCoverage,
	"rollouts":        stepRollouts,
	"spread":          stepSpread,
	"strategy":        stepStrategy,
	"timeline":        stepTimeline,
	"node-conditions": stepNodeConditions,
	"new-pod":         stepNewPod,
	"node-console":    stepNodeConsole,
	"revisions":       stepRevisions,
	"mend":            stepMend,
	"recovery":        stepRecovery,
	"prevention":      stepPrevention,
}

// answer builds a Result line by line; its state is the worst of its lines.
type answer struct{ report.Result }

func (a *answer) say(state report.StepState, format string, args ...any) {
	a.Lines = append(a.Lines, report.Line{State: state, Text: report.Textf(format, args...)})
}

func (a *answer) sub(state report.StepState, format string, args ...any) {
	a.Lines = append(a.Lines, report.Line{State: state, Text: report.Textf(format, args...), Indent: 1})
}

// result sets the state: the worst of what was said.
func (a *answer) result() report.Result {
	worst := report.StepOK
	for _, l := range a.Lines {
		if severity(l.State) > severity(worst) {
			worst = l.State
		}
	}
	a.State = worst
	return a.Result
}

func severity(s report.StepState) int {
	switch s {
	case report.StepAnomaly:
		return 4
	case report.StepUnknown:
		return 3
	case report.StepNotice:
		return 2
	}
	return 1
}

// cannot says that a probe could not look, and why.
func cannot(why report.Text) report.Result {
	return report.Result{State: report.StepUnknown, Reason: why}
}

// find returns the target's entry in the report, looked at even where the report
// itself leaves it out.
func (c *Diagnosis) find(k report.WorkloadKey) *report.Workload {
	if w := c.Report.Workload(k); w != nil {
		return w
	}
	if d := c.daemonSet(k); d != nil {
		w := c.daemonSetView(d)
		w.Coverage = c.coverageView(d)
		tidy(&w)
		return &w
	}
	for _, r := range c.replicated {
		if r.key == k {
			w := r.view()
			tidy(&w)
			return &w
		}
	}
	return nil
}

func (c *Diagnosis) daemonSet(k report.WorkloadKey) *daemonSet {
	for _, d := range c.daemonSets {
		if d.key == k {
			return d
		}
	}
	return nil
}

func gone(k report.WorkloadKey) report.Result {
	return cannot(report.Textf("%s %s/%s is not in the picture: it was deleted, or may not be read", k.Kind, k.Namespace, k.Name))
}
