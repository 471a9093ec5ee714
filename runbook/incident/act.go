package incident

import (
	"context"
	"errors"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// act asks for the preview of an action.
func (l *Loop) act(r action.Request) *job {
	if why := l.cannotAct(); why != "" {
		return l.refuse("%s: %s", r.Kind, why)
	}
	r, why := l.complete(r)
	if why != "" {
		return l.refuse("%s: %s", r.Kind, why)
	}
	if l.cfg.Want != nil {
		l.cfg.Want(r.Workload)
	}
	l.cancel()
	l.dialogs++
	id := l.dialogs
	ctx, giveUp := context.WithCancel(context.Background())
	l.giveUp = giveUp
	l.dialog = &Dialog{ID: id, Loading: true, Preview: action.Preview{Plan: action.Plan{Request: r, Title: title(r)}}}
	snap, api := l.snap, l.cfg.API
	type prepared struct {
		action.Preview
		err error
	}
	return &job{
		ctx: ctx,
		work: func(ctx context.Context) any {
			p, err := action.Prepare(ctx, api, snap, r)
			return prepared{p, err}
		},
		finish: func(x any) *job {
			giveUp()
			p := x.(prepared)
			switch {
			case l.dialog == nil || l.dialog.ID != id:
				return nil // closed meanwhile, or another one is open
			case errors.Is(p.err, context.Canceled):
				l.dialog = nil
				return nil
			case p.err != nil:
				l.dialog = nil
				return l.refuse("%v", p.err)
			}
			l.dialog = &Dialog{ID: id, Preview: p.Preview}
			l.actions++
			l.dialogAction = l.actions
			l.keep(session.ActionPreviewed, previewed(p.Preview), entry(l.actions, p.Preview))
			return nil
		},
	}
}

func title(r action.Request) report.Text {
	if r.Kind == action.DeletePod {
		return report.Textf("%s %s", r.Kind, r.Pod)
	}
	return report.Textf("%s %s", r.Kind, r.Workload.Name)
}

func previewed(p action.Preview) report.Text {
	if p.Blocked != "" {
		return report.Textf("%s: cannot be applied: %s", p.Title, p.Blocked)
	}
	return report.Textf("%s: dry run %s", p.Title, p.DryRun)
}

// cannotAct says why no action can be taken now, "" where it can.
func (l *Loop) cannotAct() report.Text {
	switch k := l.link(); {
	case l.cfg.API == nil:
		return "there is no cluster to act on"
	case l.snap == nil:
		return first(l.dead, "nothing was read yet")
	case !k.Live:
		return report.Textf("the picture is from %s UTC and not being updated (%s): actions wait until it is", k.Since.UTC().Format("15:04:05"), k.Why)
	}
	return ""
}

// complete fills in what the operator left open: the workload that is open or
// spreads worst, the revision and the Pod that the report proposes.
func (l *Loop) complete(r action.Request) (action.Request, report.Text) {
	if r.Workload == (report.WorkloadKey{}) {
		switch {
		case l.open != nil:
			r.Workload = l.open.Target()
		case r.Kind == action.Freeze:
			k, ok := l.worstSpreading()
			if !ok {
				return r, "nothing is spreading; open the workload that you mean first"
			}
			r.Workload = k
		default:
			return r, "open the workload that you mean first"
		}
	}
	w := l.diag.Report.Workload(r.Workload)
	switch {
	case r.Kind == action.RollBack && r.ToRevision == 0:
		if w != nil && w.Recommendation.ToRevision != nil {
			r.ToRevision = *w.Recommendation.ToRevision
		} else if w != nil && w.Rollout.KnownGoodRevision != nil {
			r.ToRevision = *w.Rollout.KnownGoodRevision
		} else {
			return r, "no revision is known to be good; name the one to go back to"
		}
	case r.Kind == action.DeletePod && r.Pod == "":
		if w == nil || w.Recommendation.Pod == "" {
			return r, "name the Pod"
		}
		r.Pod = string(w.Recommendation.Pod)
	case r.Kind == action.Unfreeze && r.Strategy == "":
		r.Strategy = l.frozen[r.Workload]
	}
	return r, ""
}

// worstSpreading is the first workload of the report that spreads: the report
// lists the worst first.
func (l *Loop) worstSpreading() (report.WorkloadKey, bool) {
	for i := range l.diag.Report.Workloads {
		if w := &l.diag.Report.Workloads[i]; w.Kind == "DaemonSet" && w.Rollout.Spreading {
			return w.Key(), true
		}
	}
	return report.WorkloadKey{}, false
}

// cancel closes the dialog, and gives up its preview without a word.
func (l *Loop) cancel() {
	if l.giveUp != nil {
		l.giveUp()
		l.giveUp = nil
	}
	l.dialog = nil
}

// confirm applies what the dialog shows.
func (l *Loop) confirm(i Confirm) *job {
	d := l.dialog
	switch {
	case d == nil || d.ID != i.Dialog:
		return l.refuse("this dialog is no longer open: nothing was done")
	case d.Loading:
		return l.refuse("the preview is not complete yet: nothing was done")
	case d.Preview.Blocked != "":
		return l.refuse("%s: %s", d.Preview.Title, d.Preview.Blocked)
	case l.applying:
		return l.refuse("another action is being applied: nothing was done; confirm again when it has ended")
	case d.Preview.Grade == action.Typed && report.Text(i.Typed) != d.Preview.Word:
		return l.refuse("nothing was done: to confirm, type %s", d.Preview.Word)
	}
	if why := l.cannotAct(); why != "" {
		return l.refuse("%s: %s", d.Preview.Title, why)
	}
	return l.apply(d.Preview)
}

func (l *Loop) apply(preview action.Preview) *job {
	p, api := preview.Plan, l.cfg.API
	l.dialog, l.applying = nil, true
	l.progress = &Progress{Title: p.Title, Phase: Applying, Lines: expected(preview)}
	a := entry(l.dialogAction, preview)
	l.keep(session.ActionConfirmed, report.Textf("%s: confirmed; %s", p.Title, p.Kubectl), a)
	type applied struct {
		out action.Outcome
		err error
	}
	return &job{
		work: func(ctx context.Context) any {
			o, err := action.Apply(ctx, api, p)
			return applied{o, err}
		},
		finish: func(x any) *job {
			got := x.(applied)
			l.applying = false
			if got.err == nil {
				l.applied(preview, a)
				return nil
			}
			l.progress.Phase, l.progress.Failed = Failed, got.out.Err
			a.Error, a.After = string(got.out.Err), nil
			l.keep(session.ActionFailed, report.Textf("%s: %s", p.Title, got.out.Err), a)
			switch {
			case errors.Is(got.err, action.ErrConflict):
				again := l.act(p.Request)
				l.refuse("%s: the object has changed since the preview, nothing was done: look at the new preview", p.Title)
				return again
			case errors.Is(got.err, context.Canceled):
				return nil // the program ends; the journal has it
			case errors.Is(got.err, action.ErrUnreachable):
				// It may have taken effect: whether it did, the next pictures show.
				l.remember(p.Request, string(p.Before))
				l.progress = nil
				l.watch(preview, a)
			}
			return l.refuse("%s failed: %s", p.Title, got.out.Err)
		},
	}
}

// applied is after the API server accepted an action.
func (l *Loop) applied(preview action.Preview, a acted) {
	p := preview.Plan
	l.keep(session.ActionApplied, report.Textf("%s: accepted by the API server", p.Title), a)
	l.remember(p.Request, string(p.Before))
	if p.Kind == action.RollBack {
		l.owe(p.Workload, preview.GiveBack)
	}
	l.done = append(l.done, p.Title)
	l.progress = nil
	l.watch(preview, a)
	l.say("%s: done, and being watched", p.Title)
}

// remember keeps what the way back needs.
func (l *Loop) remember(r action.Request, before string) {
	switch r.Kind {
	case action.Freeze:
		l.frozen[r.Workload] = before
	case action.Unfreeze:
		delete(l.frozen, r.Workload)
	}
}

// left lists what is still changed by hand, with what puts it back.
func (l *Loop) left() []report.Text {
	if l.snap == nil {
		return nil
	}
	var out []report.Text
	for _, ds := range l.snap.DaemonSets {
		k := report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Clean(ds.Namespace), Name: report.Clean(ds.Name)}
		if _, ours := l.frozen[k]; ours && ds.Spec.UpdateStrategy.Type == "OnDelete" {
			out = append(out, report.Textf("%s is still frozen (OnDelete): unfreezing it puts RollingUpdate back", k))
		}
	}
	return append(out, l.toGiveBack()...)
}
