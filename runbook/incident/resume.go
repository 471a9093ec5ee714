package incident

import (
	"encoding/json"
	"slices"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// keep appends an entry to the journal. A journal that cannot be written stops
// nobody from mending a cluster, but is said again and again.
func (l *Loop) keep(k Kind, workload, text report.Text, data any) {
	if l.cfg.Journal == nil {
		return
	}
	e := Entry{At: l.cfg.Clock.Now().UTC(), Kind: k, Workload: workload, Text: text}
	if l.snap != nil {
		e.AsOf = l.snap.AsOf
	}
	var err error
	if data != nil {
		e.Data, err = json.Marshal(data)
	}
	if err == nil {
		err = l.cfg.Journal.Keep(e)
	}
	l.trouble = ""
	if err != nil {
		l.trouble = report.Textf("the journal cannot be written: %v", err)
	}
}

// replay brings a new loop to where a journal ends.
func (l *Loop) replay(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	events := map[guideKey][]runbook.Event{}
	var unanswered *intended
	unfit := 0
	for _, e := range entries {
		var err error
		switch e.Kind {
		case Verdict:
			err = json.Unmarshal(e.Data, &l.verdict)
		case NoteTaken:
			l.notes++
		case WorkloadOpened:
			var o OpenWorkload
			if err = json.Unmarshal(e.Data, &o); err == nil {
				l.open = l.known(o.Workload, o.Runbook)
			}
		case WorkloadClosed:
			l.open = nil
		case ActionIntended:
			unanswered = &intended{}
			err = json.Unmarshal(e.Data, unanswered)
		case ActionApplied, ActionFailed:
			var o outcome
			if err = json.Unmarshal(e.Data, &o); err == nil {
				l.replayOutcome(e.Kind, o)
			}
			unanswered = nil
		case Kind(runbook.StepEntered), Kind(runbook.StepResult), Kind(runbook.StepSkipped), Kind(runbook.VerdictChanged):
			var w walked
			if err = json.Unmarshal(e.Data, &w); err == nil {
				k := guideKey{w.Workload, w.Runbook}
				events[k] = append(events[k], w.Event)
			}
		}
		if err != nil {
			unfit++
		}
	}
	for k, es := range events {
		if g := l.known(k.workload, k.book); g != nil {
			unfit += len(g.Replay(es))
		}
	}
	l.keep(Resumed, "", report.Textf("resumed after %d entries", len(entries)), nil)
	switch {
	case unanswered != nil:
		l.refuse("the last session ended before the answer to %q was kept: whether it took effect is not known, look before you repeat it", unanswered.Plan.Title)
	case unfit > 0:
		l.refuse("%d entries of the journal could not be read by this version; the rest stands", unfit)
	default:
		l.say("resumed where the last session ended")
	}
}

func (l *Loop) replayOutcome(k Kind, o outcome) {
	if k == ActionFailed {
		return
	}
	l.done = append(l.done, o.Title)
	l.remember(o.Request, string(o.Before))
	if o.Request.Kind != action.Freeze {
		l.mended = &o.Request.Workload
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
