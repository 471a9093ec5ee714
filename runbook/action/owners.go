package action

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/owners"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// mostOwners bounds how many owners a preview warns of.
const mostOwners = 3

// part is what of an object an action changes.
type part string

const (
	theTemplate part = "template"
	theStrategy part = "update strategy"
)

// reverts tells whether the owner puts that part back when it puts its own back.
func (p part) reverts(o *report.Owner) bool { return p == theTemplate || !o.LeavesStrategy }

// owned adds to a preview who owns the object and what that makes of the change, first
// of all there is to watch out for, and what must be given back once it was held.
func (d *draft) owned(ds *appsv1.DaemonSet, p part) {
	list, known := owners.Of(ds, "DaemonSet")
	var watch []report.Text
	for i := range list {
		o := &list[i]
		switch {
		case o.Certainty == report.Hint:
			d.Prediction.Unknown = append(d.Prediction.Unknown, report.Textf("who else owns it: %s %s", o.Name(), o.Does))
		case o.Reverts == report.RevertsNot || len(watch) == mostOwners:
		case p == theStrategy && !o.Reconciles():
			// It leaves the freeze alone until somebody runs it, and that is no reason to wait.
		case !p.reverts(o):
			watch = append(watch, report.Textf("%s does not apply the %s, so that this stays; it puts back the template", o.Name(), p))
		default:
			watch = append(watch, o.WatchOut())
		}
		if o.Certainty != report.Hint {
			d.owe(o, p)
		}
	}
	d.WatchOut = append(watch, d.WatchOut...)
	if !known {
		d.Prediction.Unknown = append(d.Prediction.Unknown, "who else writes it: the API server sent no managedFields with it")
	}
}

// owe says what an owner must get back when it is over: its freedom, and a template of
// its own that is no longer the bad one.
func (d *draft) owe(o *report.Owner, p part) {
	switch {
	case o.Reconciles() && len(o.GiveBack) > 0:
		d.GiveBack = append(d.GiveBack, report.Textf("%s: mend what it applies; where it was suspended, then give it back: %s", o.Name(), o.GiveBack[0].Do()))
	case p == theTemplate && o.Reverts != report.RevertsNot && o.Lever() != "":
		d.GiveBack = append(d.GiveBack, report.Textf("%s still has its own template: %s", o.Name(), o.Lever()))
	}
}

// putBackLine says that a part of the object is not what the action made of it, by whom
// and when, and how that one is held.
func putBackLine(ds *appsv1.DaemonSet, p part, what string, e *metav1.ManagedFieldsEntry) report.Line {
	list, _ := owners.Of(ds, "DaemonSet")
	who, o := "somebody put it back", owners.InTheWay(list)
	if e != nil && !owners.Own(e.Manager) {
		who = e.Manager + " put it back at " + e.Time.UTC().Format("15:04:05") + " UTC"
		if x := owners.Wrote(list, e.Manager); x != nil {
			o = x
		}
	}
	held := ""
	if o != nil && p.reverts(o) && o.Lever() != "" {
		held = "; " + string(o.Name()) + ": " + string(o.Lever())
	}
	return badLine("%s (generation %d): %s%s", what, ds.Generation, who, held)
}

// mayRevert are the owners that may still put a part back: the proof holds for as long
// as it was watched, and their rounds can be longer.
func mayRevert(ds *appsv1.DaemonSet, p part) []report.Line {
	list, _ := owners.Of(ds, "DaemonSet")
	var lines []report.Line
	for _, o := range owners.Sure(list) {
		if o.Reconciles() && p.reverts(&o) {
			lines = append(lines, report.Line{State: report.StepNotice, Text: report.Textf("%s %s, unless it is suspended", o.Name(), o.Does)})
		}
	}
	return lines
}

// touchedSince says that the object was changed again although what the action was to
// bring about still stands.
func touchedSince(ds *appsv1.DaemonSet, p Plan, e *metav1.ManagedFieldsEntry) []report.Line {
	if ds.Generation <= p.Generation+1 {
		return nil
	}
	by := ""
	if e != nil && !owners.Own(e.Manager) {
		by = " by " + e.Manager
	}
	return []report.Line{{State: report.StepNotice, Text: report.Textf("it was changed again since%s (generation %d), and this still stands", by, ds.Generation)}}
}
