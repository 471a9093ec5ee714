package headless

import "github.com/rollcall-k8s/rollcall/probes/report"

// The exit codes of every command.
const (
	ExitOK         = 0 // nothing at or above the threshold
	ExitFindings   = 1 // findings at or above it, or an undetermined verdict
	ExitUnanswered = 2 // the question could not be answered
)

// ExitCode is the exit code that the report asks for: findings at or above the
// threshold are ExitFindings, and so is a verdict for which the evidence was not
// enough, whatever the threshold. A picture with neither nodes nor workloads
// answers nothing.
func ExitCode(r *report.Report, threshold report.Severity) int {
	if blind(r) {
		return ExitUnanswered
	}
	if r.Verdict.Attribution == report.Undetermined {
		return ExitFindings
	}
	for _, w := range r.Workloads {
		if reaches(w.Findings, threshold) {
			return ExitFindings
		}
	}
	if reaches(r.ClusterFindings, threshold) {
		return ExitFindings
	}
	return ExitOK
}

func reaches(list []report.Finding, threshold report.Severity) bool {
	for _, f := range list {
		if f.Severity.Rank() >= threshold.Rank() {
			return true
		}
	}
	return false
}

// blind tells whether neither nodes nor any kind of workload could be read. Where
// workloads of one namespace alone may be read, those are there.
func blind(r *report.Report) bool {
	if len(r.Workloads)+r.Quiet > 0 {
		return false
	}
	missing := map[report.Text]bool{}
	for _, n := range r.NotRead {
		if n.Namespace == "" {
			missing[n.Resource] = true
		}
	}
	return missing["nodes"] && missing["daemonsets"] && missing["deployments"] && missing["statefulsets"]
}
