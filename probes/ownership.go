package probes

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/owners"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// ownership is who owns a workload, and whether all who write it were seen.
type ownership struct {
	owners       []report.Owner
	writersKnown bool
}

// mostOwners bounds how many owners a recommendation warns of.
const mostOwners = 3

func ownersOf(kind report.Text, m *metav1.ObjectMeta) ownership {
	var o ownership
	o.owners, o.writersKnown = owners.Of(m, string(kind))
	return o
}

// findings are the owners as findings, each with the marks that it left.
func (o *ownership) findings(object report.Object) []report.Finding {
	var out []report.Finding
	for i := range o.owners {
		x := &o.owners[i]
		if x.Code == "" || x.Certainty == report.Hint {
			continue
		}
		out = append(out, report.Finding{Code: x.Code, Severity: x.Code.Severity(false), Object: object, Summary: x.WatchOut(), Evidence: slices.Clone(x.Evidence)})
	}
	return out
}

// advise adds to a recommendation what the owners will make of it: who puts a change by
// hand back comes first, since neither a freeze nor a rollback lasts before it is held.
func (o *ownership) advise(r *report.Recommendation, ro *report.Rollout) {
	if !changesByHand(r) {
		o.undoAtRisk(r, ro)
		return
	}
	if owners.InTheWay(o.owners) != nil && !slices.Contains(r.First, report.ActionChangeManager) && r.Action != report.ActionChangeManager {
		r.First = append([]report.RecommendedAction{report.ActionChangeManager}, r.First...)
	}
	for i, x := range owners.Sure(o.owners) {
		if i == mostOwners {
			break
		}
		if t := x.WatchOut(); !slices.Contains(r.WatchOut, t) && x.Reverts != report.RevertsNot {
			r.WatchOut = append(r.WatchOut, t)
		}
	}
}

// undoAtRisk warns while a template that somebody put in place by hand still has work
// to do: its owner may put another one in its place before the last node is well.
func (o *ownership) undoAtRisk(r *report.Recommendation, ro *report.Rollout) {
	x := owners.InTheWay(o.owners)
	if x == nil || ro.ChangedBy == nil || !owners.ByHand(string(*ro.ChangedBy)) || r.Action != report.ActionWait && r.Action != report.ActionDeletePod {
		return
	}
	r.First = append([]report.RecommendedAction{report.ActionChangeManager}, r.First...)
	r.WatchOut = append(r.WatchOut, report.Textf("the present template was put there by hand (%s), and %s", *ro.ChangedBy, x.WatchOut()))
}

// changesByHand tells whether a recommendation changes the object itself.
func changesByHand(r *report.Recommendation) bool {
	switch r.Action {
	case report.ActionRollBack, report.ActionOnDelete, report.ActionFixWorkload, report.ActionChangeManager:
		return true
	}
	return slices.Contains(r.First, report.ActionOnDelete)
}

// putBack turns a rollback into the change of its manager where an earlier one did not
// last: whoever put the template back would do it again.
func (o *ownership) putBack(r *report.Recommendation, v *report.Verdict, findings []report.Finding, ro *report.Rollout) {
	i := slices.IndexFunc(findings, func(f report.Finding) bool { return f.Code == report.RevisionReverted })
	if i < 0 {
		return
	}
	by := ""
	if ro.ChangedBy != nil {
		by = string(*ro.ChangedBy)
	}
	x := owners.Wrote(o.owners, by)
	if x == nil || x.Certainty == report.Hint {
		x = owners.InTheWay(o.owners)
	}
	if owners.ByHand(by) || by == "" && x == nil {
		return // somebody at a terminal, or nobody knows who: it need not happen again
	}
	v.Contributing = appendCode(v.Contributing, report.RevisionReverted, findings)
	if r.Action != report.ActionRollBack {
		return
	}
	r.Action = report.ActionChangeManager
	target := ""
	if r.ToRevision != nil {
		target = ", then roll back to revision " + number(r.ToRevision)
	}
	switch {
	case x == nil:
		r.Why = report.Textf("%s put revision %s back after an undo, and would again: change the template where it reads it from%s", by, number(ro.Revision), target)
		return
	case by == "":
		by = string(x.Name())
	}
	v.Contributing = appendCode(v.Contributing, x.Code, findings)
	r.Why = report.Textf("%s put revision %s back after an undo, and would again: %s%s", by, number(ro.Revision), x.Lever(), target)
}

// writersMissing says in a verdict that asks for a change by hand that not everybody
// who writes the object was seen.
func (o *ownership) writersMissing(v *report.Verdict, r *report.Recommendation) {
	const missing = "who changed the template: managedFields were not read"
	if !o.writersKnown && changesByHand(r) && !slices.Contains(v.Missing, missing) {
		v.Missing = append(v.Missing, missing)
	}
}

// own works out who owns a DaemonSet and what that does to the recommendation.
func (d *daemonSet) own() {
	d.ownership = ownersOf(d.key.Kind, &d.ds.ObjectMeta)
	d.findings = append(d.findings, d.ownership.findings(d.object())...)
	d.putBack(&d.recommend, &d.verdict, d.findings, &d.rollout)
	d.advise(&d.recommend, &d.rollout)
	d.writersMissing(&d.verdict, &d.recommend)
}

// own is the same for a Deployment or StatefulSet.
func (r *replicated) own() {
	r.ownership = ownersOf(r.key.Kind, r.meta)
	r.findings = append(r.findings, r.ownership.findings(report.Object{Kind: r.key.Kind, Namespace: r.key.Namespace, Name: r.key.Name})...)
	r.advise(&r.recommend, &r.rollout)
	r.writersMissing(&r.verdict, &r.recommend)
}

// changedBy says who changed a template last and on whose behalf, "" where
// managedFields do not tell.
func changedBy(ro *report.Rollout, list []report.Owner) string {
	if ro.ChangedBy == nil {
		return ""
	}
	by := string(*ro.ChangedBy)
	if x := owners.Wrote(list, by); x != nil && x.Object != "" && x.Certainty != report.Hint {
		by += " (" + string(x.Name()) + ")"
	}
	return by
}

// owners says who owns a workload and gives the commands that hold them.
func (a *answer) owners(w *report.Workload) {
	for i := range w.Owners {
		o := &w.Owners[i]
		if o.Certainty == report.Hint {
			a.say(report.StepNotice, "%s %s (a hint, no proof)", o.Name(), o.Does)
			continue
		}
		state := report.StepNotice
		if o.Reverts == report.RevertsNot {
			state = report.StepOK
		}
		a.say(state, "owner: %s %s", o.Name(), o.Does)
		a.holds(o)
		for _, t := range o.Beware {
			a.sub(report.StepNone, "beware: %s", t)
		}
	}
	switch {
	case !w.WritersKnown:
		a.say(report.StepUnknown, "who writes it is not known for certain: managedFields were not read")
	case len(w.Owners) == 0:
		a.say(report.StepOK, "nobody owns it who leaves a label, an annotation, an owner reference or writes of their own")
	}
}

// holds lists an owner's commands, to read and to copy.
func (a *answer) holds(o *report.Owner) {
	if o.Reconciles() {
		a.commands(o.Hold, "suspend it first: ", "or: ", report.Textf("hold %s, or it may put its own back", o.Name()))
		a.commands(o.GiveBack, "give it back afterwards: ", "or: ", "")
	}
	a.commands(o.Instead, "where the change belongs: ", "and: ", report.Textf("change it where %s takes it from", o.Name()))
}

// commands writes them and, where says tells what they are for, offers them to be copied.
func (a *answer) commands(list []report.Command, first, rest string, says report.Text) {
	for i, c := range list {
		a.sub(report.StepNone, "%s%s", []string{first, rest}[min(i, 1)], c)
		if c.Run != "" && says != "" {
			a.Commands = append(a.Commands, report.Command{Run: c.Run, Says: says})
		}
	}
}

// givenBack says what must be given back once a workload is well again.
func (a *answer) givenBack(w *report.Workload) {
	for i := range w.Owners {
		o := &w.Owners[i]
		if o.Certainty == report.Hint || len(o.GiveBack) == 0 || !o.Reconciles() && o.Reverts != report.RevertsNot {
			continue
		}
		a.say(report.StepNone, "where %s was suspended: mend what it applies, then give it back", o.Name())
		a.commands(o.GiveBack, "", "or: ", report.Textf("give %s back", o.Name()))
	}
}
