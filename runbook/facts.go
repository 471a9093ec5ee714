package runbook

import (
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Facts are what the conditions of a runbook ask of a report: the conclusions on
// one workload, and nothing that changes with every snapshot but counts.
type Facts struct {
	Kind      report.Text         `json:"kind"`
	Verdict   report.Verdict      `json:"verdict"`
	Rollout   report.RolloutState `json:"rollout"`
	Strategy  report.Text         `json:"strategy"`
	Spreading bool                `json:"spreading"`
	Mode      report.Text         `json:"mode,omitempty"`
	KnownGood *int64              `json:"knownGood,omitempty"`
	// Codes are the codes of the workload's findings, each once, sorted.
	Codes []report.Code `json:"codes,omitempty"`
	// Reachable and Unreachable count the broken nodes by whether a change made
	// through the API server takes effect on them.
	Reachable   int `json:"reachable"`
	Unreachable int `json:"unreachable"`
	// NodesDown counts nodes that are not Ready (False and Unknown) in the cluster.
	NodesDown     int `json:"nodesDown"`
	NodesTotal    int `json:"nodesTotal"`
	NotYetReached int `json:"notYetReached"`
	MayStillFall  int `json:"mayStillFall"`
}

// FactsOf takes the facts on a workload from a report. Where the report leaves the
// workload out, which it does with quiet ones, the attribution is "".
func FactsOf(r *report.Report, target report.WorkloadKey) Facts {
	f := Facts{Kind: target.Kind, NodesDown: r.Nodes.NotReady + r.Nodes.Unknown, NodesTotal: r.Nodes.Total}
	w := r.Workload(target)
	if w == nil {
		return f
	}
	f.Verdict = w.Verdict
	f.Rollout, f.Strategy, f.Spreading = w.Rollout.State, w.Rollout.Strategy, w.Rollout.Spreading
	f.Mode, f.KnownGood = w.Rollout.Mode, w.Rollout.KnownGoodRevision
	f.NotYetReached, f.MayStillFall = w.Rollout.NotYetReached, w.Rollout.MayStillFall
	f.Reachable, f.Unreachable = len(w.Recommendation.Reachable), len(w.Recommendation.Unreachable)
	for _, x := range w.Findings {
		f.Codes = append(f.Codes, x.Code)
	}
	slices.Sort(f.Codes)
	f.Codes = slices.Compact(f.Codes)
	return f
}

// changes says in which conclusions b differs from a; counts alone are no change,
// only whether there are any.
func (a Facts) changes(b Facts) []string {
	var out []string
	say := func(what, before, after string) {
		if before != after {
			out = append(out, what+": "+orNone(before)+" → "+orNone(after))
		}
	}
	say("verdict", string(a.Verdict.Attribution), string(b.Verdict.Attribution))
	say("confidence", string(a.Verdict.Confidence), string(b.Verdict.Confidence))
	say("root cause", string(a.Verdict.RootCause), string(b.Verdict.RootCause))
	say("rollout", string(a.Rollout), string(b.Rollout))
	say("strategy", string(a.Strategy), string(b.Strategy))
	say("still spreading", yesNo(a.Spreading), yesNo(b.Spreading))
	say("cascade mode", string(a.Mode), string(b.Mode))
	say("known-good revision", number(a.KnownGood), number(b.KnownGood))
	say("unreachable nodes", yesNo(a.Unreachable > 0), yesNo(b.Unreachable > 0))
	say("nodes not Ready", yesNo(a.NodesDown > 0), yesNo(b.NodesDown > 0))
	if added := without(b.Codes, a.Codes); len(added) > 0 {
		out = append(out, "new: "+strings.Join(added, ", "))
	}
	if gone := without(a.Codes, b.Codes); len(gone) > 0 {
		out = append(out, "gone: "+strings.Join(gone, ", "))
	}
	return out
}

func without(a, b []report.Code) []string {
	var out []string
	for _, c := range a {
		if !slices.Contains(b, c) {
			out = append(out, string(c))
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
