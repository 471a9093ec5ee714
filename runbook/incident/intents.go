package incident

import (
	"context"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// take does the quick part of an intent and returns the slow part, nil without one.
func (l *Loop) take(i Intent) *job {
	l.said = nil
	switch i := i.(type) {
	case OpenWorkload:
		return l.openWorkload(i)
	case CloseWorkload:
		if l.open != nil {
			l.keep(WorkloadClosed, report.Textf("back to triage from %s", l.open.Target()), nil)
			l.open = nil
		}
	case NextStep, PreviousStep, GoToStep, SkipStep:
		return l.step(i)
	case Act:
		return l.act(i.Request)
	case Confirm:
		return l.confirm(i)
	case Cancel:
		l.cancel()
	case Note:
		text := report.Clean(i.Text)
		if text == "" {
			return l.refuse("an empty note was not taken")
		}
		l.notes++
		l.keep(session.Note, text, nil)
		l.say("noted")
	case Copied:
		l.copied(report.Clean(i.Command))
	case ReadLogs:
		return l.readLogs(i)
	case PasteConsole:
		return l.pasteConsole(i)
	case WriteNotes:
		return l.writeNotes(i.Path)
	case Retry:
		// Run acts on it; without Run there is no connection to retry.
		l.say("trying again")
	default:
		return l.refuse("%s is not something that this program does", i.IntentName())
	}
	return nil
}

func (l *Loop) writeNotes(path string) *job {
	if l.cfg.WriteNotes == nil {
		return l.refuse("this session keeps no journal, so there are no notes to write")
	}
	type written struct {
		path string
		err  error
	}
	// The job runs beside the loop, so it gets what it needs now.
	st, worst := l.State(), l.worst
	return &job{
		work: func(context.Context) any {
			p, err := l.cfg.WriteNotes(path, st, worst)
			return written{p, err}
		},
		finish: func(r any) *job {
			w := r.(written)
			if w.err != nil {
				return l.refuse("the notes were not written: %v", w.err)
			}
			l.keep(session.NotesWritten, report.Textf("notes written to %s", w.path), nil)
			l.say("notes written to %s", w.path)
			return nil
		},
	}
}
