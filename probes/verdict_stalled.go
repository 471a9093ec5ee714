package probes

import "github.com/rollcall-k8s/rollcall/probes/report"

// stalled gives the verdict for a workload whose controller does not act on it. Where
// the controller manager has let its Lease expire, that is the reason.
func (c *Diagnosis) stalled(what report.Text) (report.Verdict, report.Recommendation) {
	v := report.Verdict{Attribution: report.ControllerStalled, RootCause: report.RolloutNotObserved, Confidence: report.Medium, Summary: what,
		For: []report.Text{"no event shows that the controller is at work on it"}}
	r := report.Recommendation{Action: report.ActionFixCluster, Why: "look at kube-controller-manager: its Lease in kube-system, its log"}
	switch st := c.leaderOf(controllerManager); {
	case st.down != nil:
		v.RootCause, v.Confidence, v.Contributing = report.ControllerManagerDown, report.High, []report.Code{report.RolloutNotObserved}
		v.Summary += "; " + st.down.Summary
		v.For = append(v.For, st.down.Summary)
		r.Why = "bring kube-controller-manager back: its static Pods or units on the control-plane nodes; nothing moves before"
	case !st.known:
		v.Missing = []report.Text{"whether kube-controller-manager is alive: no Lease of it was read"}
	case st.relic == "":
		v.Against = []report.Text{report.Textf("kube-controller-manager renewed its Lease %s ago", short(st.age))}
	}
	return v, r
}
