package incident

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// watch is an action that was applied and is being verified.
type watch struct {
	proof    *action.Verification
	entry    acted // for the journal
	expected []report.Line
	shown    Progress
}

// recovery is the proof that a workload's nodes are well again.
type recovery struct {
	proof *action.Recovery
	shown Progress
}

// expected is the prediction, to stand beside what happens.
func expected(p action.Preview) []report.Line {
	var out []report.Line
	for _, t := range p.Prediction.Summary {
		out = append(out, report.Line{State: report.StepNone, Text: "expected: " + t})
	}
	return out
}

// watch begins to verify an action that the API server accepted. Earlier actions
// go on being verified, unless this one moves the same lever.
func (l *Loop) watch(preview action.Preview, a acted) {
	p := preview.Plan
	grace, _ := l.snap.Grace()
	w := &watch{proof: action.Verify(p, grace), entry: a, expected: expected(preview)}
	w.shown = Progress{Title: p.Title, Phase: Verifying, Lines: w.expected}
	var rest []*watch
	for _, old := range l.watches {
		if !old.proof.Replaces(p) {
			rest = append(rest, old)
		}
	}
	l.watches, l.last = append(rest, w), w
	if p.Kind == action.Freeze {
		return // a freeze mends nothing
	}
	if l.recovery == nil || l.recovery.proof.Workload != p.Workload || p.Kind == action.RollBack {
		l.recover(p.Workload)
	}
}

// recover begins to prove that the workload's nodes are well again.
func (l *Loop) recover(k report.WorkloadKey) {
	grace, _ := l.snap.Grace()
	l.recovery = &recovery{proof: action.Recover(k, l.snap, l.brokenBefore(k), grace)}
	l.recovery.shown = Progress{Title: report.Textf("Recovery of %s", k.Name), Phase: Verifying}
}

// brokenBefore names the nodes that the rollout did not break: no change of the
// workload mends them.
func (l *Loop) brokenBefore(k report.WorkloadKey) []report.Text {
	w := l.diag.Report.Workload(k)
	if w == nil || w.Measures == nil {
		return nil
	}
	var out []report.Text
	for _, class := range [][]report.Text{w.Measures.Prevalent, w.Measures.Before, w.Measures.NewNodes} {
		out = append(out, class...)
	}
	return out
}

// prove shows the last snapshot to every proof that is running.
func (l *Loop) prove() {
	for _, w := range l.watches {
		if w.proof.Plan.Kind == action.DeletePod && w.shown.Phase == Verified {
			continue // from here on the recovery watches the node
		}
		p := w.proof.Observe(l.snap)
		before := w.shown.Phase
		advance(&w.shown, p, w.expected)
		l.noteProof(w, before, p)
	}
	if r := l.recovery; r != nil {
		before := r.shown.Phase
		advance(&r.shown, r.proof.Observe(l.snap), nil)
		if before != r.shown.Phase {
			l.keep(RecoveryChanged, phaseText(r.shown), recovering{r.proof.Workload, r.shown.Phase, lineTexts(r.shown.Lines)})
		}
	}
}

// advance brings what is shown of a proof up to date.
func advance(shown *Progress, p action.Proof, expected []report.Line) {
	shown.Lines = append(expected[:len(expected):len(expected)], p.Lines...)
	shown.Until, shown.Failed = p.Until, ""
	switch {
	case p.Done && p.Holds:
		shown.Phase = Verified
	case p.Done:
		shown.Phase, shown.Failed = Failed, report.Textf("it held long enough to count as proved, and does not hold any more: %s", worst(p.Lines))
	case p.Holds:
		shown.Phase = Holding
	default:
		shown.Phase = Verifying
	}
}

func worst(lines []report.Line) report.Text {
	for _, s := range []report.StepState{report.StepAnomaly, report.StepUnknown, report.StepLooking} {
		for _, l := range lines {
			if l.State == s {
				return l.Text
			}
		}
	}
	return ""
}

// noteProof keeps what the proof of an action says anew.
func (l *Loop) noteProof(w *watch, before Phase, p action.Proof) {
	if before == w.shown.Phase {
		return
	}
	kind := ProofChanged
	if w.shown.Phase == Verified {
		kind = session.ActionVerified
	}
	a := w.entry
	a.Effect, a.Error = lineTexts(p.Lines), string(w.shown.Failed)
	l.keep(kind, phaseText(w.shown), a)
}

func phaseText(p Progress) report.Text {
	switch p.Phase {
	case Holding:
		return report.Textf("%s: holds, proved if it still does at %s UTC", p.Title, p.Until.UTC().Format("15:04:05"))
	case Verified:
		return report.Textf("%s: verified, it held for two grace periods", p.Title)
	case Failed:
		return report.Textf("%s: %s", p.Title, p.Failed)
	}
	return report.Textf("%s: does not hold: %s", p.Title, worst(p.Lines))
}
