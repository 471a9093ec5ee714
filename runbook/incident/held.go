package incident

import (
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// copied keeps a command that was copied. One that holds the owner of a workload, or
// gives it back, is remembered: whoever is suspended must be resumed. The program does
// not see whether it was run.
func (l *Loop) copied(command report.Text) {
	h, ok := l.holds(command)
	if !ok {
		l.keep(session.CommandCopied, command, nil)
		return
	}
	l.held = h.Update(l.held)
	l.keep(session.CommandCopied, command, h)
}

// holds finds the owner that a command holds or gives back.
func (l *Loop) holds(command report.Text) (session.Held, bool) {
	if l.diag == nil {
		return session.Held{}, false
	}
	for i := range l.diag.Report.Workloads {
		for _, o := range l.diag.Report.Workloads[i].Owners {
			if len(o.GiveBack) == 0 {
				continue
			}
			h := session.Held{Owner: string(o.Name()), GiveBack: string(o.GiveBack[0].Do())}
			for j, c := range o.Hold {
				if c.Run == command {
					h.GiveBack = string(o.GiveBack[min(j, len(o.GiveBack)-1)].Do())
					return h, true
				}
			}
			for _, c := range o.GiveBack {
				if c.Run == command {
					h.Returned = true
					return h, true
				}
			}
		}
	}
	return session.Held{}, false
}

// toGiveBack lists owners that must be given back: those of whom a command that holds
// them was copied, and those that want another template than the one that was put back.
func (l *Loop) toGiveBack() []report.Text {
	var out []report.Text
	for _, h := range l.held {
		out = append(out, report.Textf("%s was to be suspended: mend what it applies, then give it back: %s", h.Owner, h.GiveBack))
	}
	for _, c := range l.changed {
		for _, t := range c.giveBack {
			if !slices.ContainsFunc(l.held, func(h session.Held) bool { return strings.HasPrefix(string(t), h.Owner) }) {
				out = append(out, t)
			}
		}
	}
	return out
}

// changed is a workload of which the template was put back by hand, and what its owners
// are still owed for that.
type changed struct {
	workload report.WorkloadKey
	giveBack []report.Text
}

// owe remembers it; a later change of the same workload takes the place of an earlier one.
func (l *Loop) owe(k report.WorkloadKey, giveBack []report.Text) {
	l.changed = slices.DeleteFunc(l.changed, func(c changed) bool { return c.workload == k })
	l.changed = append(l.changed, changed{k, giveBack})
}
