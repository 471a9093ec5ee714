// Package wording turns the codes of a report into the few plain words that a
// screen has room for. It concludes nothing: every word stands for a code.
package wording

import (
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Verdict is Attribution of an incident's verdict, which need not be about a workload.
func Verdict(v *report.Verdict) string {
	if v.Attribution == report.NodesFailIndependently {
		return "nodes fail by themselves"
	}
	return Attribution(v.Attribution)
}

// Attribution says in two or three words what a workload's verdict blames.
func Attribution(a report.Attribution) string {
	switch a {
	case report.RolloutBreaksNodes:
		return "breaks nodes"
	case report.RolloutBreaksPods:
		return "breaks its own Pods"
	case report.NodesFailIndependently:
		return "its nodes fail"
	case report.NodesBlockRollout:
		return "waits for broken nodes"
	case report.ClusterBlocksPods:
		return "cluster refuses its Pods"
	case report.ControllerStalled:
		return "controller is stalled"
	case report.CoverageGap:
		return "nodes without its Pod"
	case report.WaitingForOperator:
		return "waits for you, by design"
	case report.Undetermined:
		return "undetermined"
	case report.Healthy:
		return "fine"
	}
	return string(a)
}

// State is how bad an attribution is, as a step's state.
func State(a report.Attribution) report.StepState {
	switch a {
	case report.RolloutBreaksNodes, report.RolloutBreaksPods, report.NodesFailIndependently:
		return report.StepAnomaly
	case report.Undetermined:
		return report.StepUnknown
	case report.Healthy:
		return report.StepOK
	case report.WaitingForOperator:
		return report.StepNotYet
	}
	return report.StepNotice
}

// Rollout is where a rollout stands, in one word.
func Rollout(s report.RolloutState) string {
	switch s {
	case report.Complete:
		return "complete"
	case report.Progressing:
		return "moving"
	case report.Slow:
		return "slow"
	case report.Stuck:
		return "stuck"
	case report.Paused:
		return "paused"
	case report.OnDelete:
		return "OnDelete"
	case report.NotObserved:
		return "not observed"
	}
	return string(s)
}

// Revisions is "6→7", or what is known of it.
func Revisions(r report.Rollout) string {
	switch {
	case r.Revision == nil:
		return ""
	case r.PreviousRevision == nil:
		return fmt.Sprintf("rev %d", *r.Revision)
	}
	return fmt.Sprintf("%d→%d", *r.PreviousRevision, *r.Revision)
}

// Recommended says what to do, as an order.
func Recommended(a report.RecommendedAction, to *int64) string {
	switch a {
	case report.ActionWait:
		return "wait"
	case report.ActionRollBack:
		if to != nil {
			return fmt.Sprintf("roll back to revision %d", *to)
		}
		return "roll back"
	case report.ActionOnDelete:
		return "freeze"
	case report.ActionDeletePod:
		return "delete one Pod"
	case report.ActionFixNode:
		return "mend the nodes"
	case report.ActionFixWorkload:
		return "mend the template"
	case report.ActionFixCluster:
		return "mend the cluster"
	case report.ActionChangeManager:
		return "change it where it is owned"
	case report.ActionInvestigate:
		return "look closer"
	}
	return ""
}

// Phase is how far an action is.
func Phase(p incident.Phase) string {
	switch p {
	case incident.Applying:
		return "being sent"
	case incident.Verifying:
		return "watching: not there yet"
	case incident.Holding:
		return "it holds; proving that it lasts"
	case incident.Verified:
		return "proved"
	case incident.Failed:
		return "failed"
	}
	return string(p)
}

// Running tells whether an action still needs the program.
func Running(p *incident.Progress) bool {
	return p != nil && (p.Phase == incident.Applying || p.Phase == incident.Verifying || p.Phase == incident.Holding)
}

// Clock is the time of day of a moment of the cluster, in UTC as the notes have it.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// Moment is Clock, with the date where it is another day than that of now.
func Moment(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("01-02 15:04")
	}
	return t.Format("15:04:05")
}

// Duration is a time span for people: 41 s, 12 min, 3 h, 2 d.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}

// Count is "1 node", "3 nodes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Names lists the first names and how many more there are.
func Names(names []report.Text, most int) string {
	var out []string
	for i, n := range names {
		if i == most {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(names)-most)
		}
		out = append(out, string(n))
	}
	return strings.Join(out, ", ")
}

// impact are the topics of what others lose, the gravest first.
var impact = []report.StakeTopic{report.StakeControlPlane, report.StakeControllerManager, report.StakeScheduler, report.StakeServices, report.StakeDNS, report.StakeWebhooks}

// Impact says in few words what failing nodes take from others.
func Impact(r *report.Report) []string {
	var out []string
	for _, t := range impact {
		for _, s := range r.AtStake {
			if s.Topic == t && s.State == report.StepAnomaly {
				out = append(out, brief(&s))
			}
		}
	}
	return out
}

// Evictions says in few words when Pods go.
func Evictions(r *report.Report) []string {
	var out []string
	for _, s := range r.AtStake {
		if s.Topic == report.StakeEvictions && s.Brief != "" {
			out = append(out, string(s.Brief))
		}
	}
	return out
}

func brief(s *report.Stake) string {
	if s.Brief != "" {
		return string(s.Brief)
	}
	return string(s.Text)
}

// Owner is who matters most for a change of w by hand, in a sentence with the lever;
// "" where nobody is known who would mind.
func Owner(w *report.Workload) string {
	if w == nil {
		return ""
	}
	for i := range w.Owners {
		o := &w.Owners[i]
		switch {
		case o.Certainty == report.Hint || o.Reverts == report.RevertsNot || o.Code == "":
		case !o.Reconciles() && o.Lever() != "":
			return string(o.Name()) + " owns it; what lasts: " + string(o.Lever())
		case len(o.Hold) > 0 && o.Reverts == report.RevertsIfTold:
			return string(o.Name()) + " may put it back: suspend it first: " + string(o.Hold[0].Do())
		case len(o.Hold) > 0:
			return string(o.Name()) + " would put it back: suspend it first: " + string(o.Hold[0].Do())
		default:
			return string(o.WatchOut())
		}
	}
	return ""
}

// Freezable tells whether the workload's rollout can be frozen, and if not, why.
func Freezable(w *report.Workload) (bool, string) {
	switch {
	case w == nil:
		return false, "no workload is selected"
	case w.Kind != "DaemonSet":
		return false, "freezing is for DaemonSets; " + string(w.Name) + " is a " + string(w.Kind)
	case w.Rollout.Strategy == "OnDelete":
		return false, string(w.Name) + " is frozen already: its strategy is OnDelete"
	}
	return true, ""
}

// Action names an action as the operator would.
func Action(k action.Kind, name string) string {
	switch k {
	case action.Freeze:
		return "freeze " + name + " (OnDelete)"
	case action.Unfreeze:
		return "let " + name + " roll again (RollingUpdate)"
	case action.RollBack:
		return "roll back " + name
	case action.DeletePod:
		return "delete one Pod of " + name
	}
	return string(k) + " " + name
}

// Worst is the workload that the incident's verdict names, or the first one; nil without any.
func Worst(r *report.Report) *report.Workload {
	if r == nil || len(r.Workloads) == 0 {
		return nil
	}
	for i := range r.Workloads {
		if r.Verdict.Workload != "" && r.Workloads[i].Key().String() == string(r.Verdict.Workload) {
			return &r.Workloads[i]
		}
	}
	return &r.Workloads[0]
}

// ActionShort names a kind of action in a few words.
func ActionShort(k action.Kind) string {
	switch k {
	case action.Freeze:
		return "freeze"
	case action.Unfreeze:
		return "let it roll again"
	case action.RollBack:
		return "roll back"
	case action.DeletePod:
		return "delete one Pod"
	}
	return string(k)
}
