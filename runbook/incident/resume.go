package incident

import (
	"slices"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// replay brings a new loop to where a journal ends: the checklists and their
// places, what was done and what is still changed by hand.
func (l *Loop) replay(entries []session.Entry) {
	events := map[guideKey][]runbook.Event{}
	var order []guideKey
	unfit := 0
	for _, e := range entries {
		var err error
		switch e.Kind {
		case session.Note:
			l.notes++
		case WorkloadOpened:
			var o OpenWorkload
			if err = e.Decode(&o); err == nil {
				l.open = l.known(o.Workload, o.Runbook)
			}
		case WorkloadClosed:
			l.open = nil
		case session.ActionApplied:
			var a acted
			if err = e.Decode(&a); err == nil {
				l.replayAction(a)
			}
		case session.CommandCopied:
			if len(e.Data) > 0 {
				var h session.Held
				if err = e.Decode(&h); err == nil && h.Owner != "" {
					l.held = h.Update(l.held)
				}
			}
		case session.EvidenceRead:
			var v signs.Evidence
			if err = e.Decode(&v); err == nil {
				l.remembered(v)
			}
		case session.ActionPreviewed:
			var a session.Action
			if err = e.Decode(&a); err == nil {
				l.actions = max(l.actions, a.ID)
			}
		case session.VerdictChanged, session.StepEntered, session.StepResult, session.StepSkipped:
			var w struct {
				walked
				Verdict *verdictMark `json:"incident"`
			}
			switch err = e.Decode(&w); {
			case err != nil:
			case w.Verdict != nil:
				l.verdict = *w.Verdict
			default:
				k := guideKey{w.Workload, w.Runbook}
				if events[k] == nil {
					order = append(order, k)
				}
				events[k] = append(events[k], w.Event)
			}
		}
		if err != nil {
			unfit++
		}
	}
	for _, k := range order {
		if g := l.known(k.workload, k.book); g != nil {
			unfit += len(g.Replay(events[k]))
		} else {
			unfit += len(events[k])
		}
	}
	l.keep(session.SessionResumed, report.Textf("resumed after %d entries", len(entries)), l.started())
	unanswered := session.Unfinished(entries)
	switch {
	case len(unanswered) > 0:
		l.refuse("the last session ended before the answer to this was kept: %s; whether it took effect is not known, look before you repeat it", unanswered[len(unanswered)-1].Text)
	case unfit > 0:
		l.refuse("%d entries of the journal do not fit this version of the program; the rest stands", unfit)
	default:
		l.say("resumed where the last session ended")
	}
}

func (l *Loop) replayAction(a acted) {
	l.done = append(l.done, report.Clean(a.Title))
	l.remember(a.Request, string(a.Before))
	if a.Request.Kind == action.RollBack {
		owed := make([]report.Text, 0, len(a.GiveBack))
		for _, t := range a.GiveBack {
			owed = append(owed, report.Clean(t))
		}
		l.owe(a.Request.Workload, owed)
	}
	if a.Request.Kind != action.Freeze {
		l.mended = &a.Request.Workload
	}
}

// known is the guide of a book that there still is, nil without one.
func (l *Loop) known(k report.WorkloadKey, book string) *runbook.Guide {
	i := slices.IndexFunc(l.cfg.Books, func(b *runbook.Book) bool { return b.ID == book })
	if i < 0 {
		return nil
	}
	return l.guide(k, l.cfg.Books[i])
}

// startOver begins anew to prove the recovery from what an earlier session did.
func (l *Loop) startOver() {
	if l.mended == nil {
		return
	}
	l.recover(*l.mended)
	l.mended = nil
}
