package headless

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// errNotOurs says that what is recommended is nothing that this program does, so
// that there is no recovery to prove.
var errNotOurs = errors.New("nothing was changed")

// mend carries out what the report recommends, in the order that loses least:
// freeze, template back, one Pod, the proof that its node recovers, the rest. The
// error says what did not succeed.
func (a *Auto) mend(ctx context.Context, key report.WorkloadKey, r *report.Report) error {
	w := r.Workload(key)
	if w == nil || !w.Verdict.Confidence.AtLeast(report.Medium) {
		a.heading("Nothing is changed")
		a.line(0, "the verdict on %s is not at least of medium confidence", key)
		return errors.New("nothing was done: no verdict of at least medium confidence")
	}
	rec := w.Recommendation
	a.heading("Recommended: %s", recommended(rec))
	a.line(0, "%s", rec.Why)
	if !slices.Contains([]report.RecommendedAction{report.ActionRollBack, report.ActionOnDelete, report.ActionDeletePod}, rec.Action) {
		return fmt.Errorf("%w: %s is for a person to do", errNotOurs, rec.Action)
	}
	for _, first := range append(slices.Clone(rec.First), rec.Action) {
		if err := a.carryOut(ctx, key, rec, first); err != nil {
			return err
		}
	}
	if rec.Action == report.ActionRollBack {
		if err := a.replacePods(ctx, key, rec); err != nil {
			return err
		}
	}
	return a.proveRecovery(ctx)
}

func (a *Auto) carryOut(ctx context.Context, key report.WorkloadKey, rec report.Recommendation, what report.RecommendedAction) error {
	r := action.Request{Kind: action.Kind(what), Workload: key}
	switch what {
	case report.ActionOnDelete:
		if ds := a.daemonSet(key); ds != nil && ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return nil
		}
	case report.ActionRollBack:
		if rec.ToRevision != nil {
			r.ToRevision = *rec.ToRevision
		}
	case report.ActionDeletePod:
		r.Pod = string(rec.Pod)
	default:
		a.line(0, "%s is not done by this program: left out", what)
		return nil
	}
	return a.act(ctx, r, incident.Holding)
}

// act previews, confirms and watches one action until it is as far as asked.
func (a *Auto) act(ctx context.Context, r action.Request, until incident.Phase) error {
	a.do(ctx, incident.Act{Request: r})
	d := a.state.Dialog
	if d == nil {
		return fmt.Errorf("%s: %s", r.Kind, a.saidText())
	}
	a.dialog(d.Preview)
	if d.Preview.Blocked != "" {
		a.do(ctx, incident.Cancel{})
		return fmt.Errorf("%s: %s", d.Preview.Title, d.Preview.Blocked)
	}
	a.do(ctx, incident.Confirm{Dialog: d.ID, Typed: string(d.Preview.Word)})
	if p := a.state.Progress; a.state.Said != nil && a.state.Said.Bad || p == nil || p.Phase == incident.Failed {
		return fmt.Errorf("%s: %s", d.Preview.Title, a.saidText())
	}
	a.line(0, "%s UTC  confirmed: %s", a.clock(), d.Preview.Title)
	ok, err := a.until(ctx, untilHolds, func() bool {
		p := a.state.Progress
		return p.Phase == until || p.Phase == incident.Verified || p.Phase == incident.Failed || r.Kind == action.DeletePod && a.lost(d.Preview.Node)
	})
	if err != nil {
		return err
	}
	a.progress(a.clock(), *a.state.Progress)
	switch phase := a.state.Progress.Phase; {
	case !ok:
		return fmt.Errorf("%s: does not hold after %s", d.Preview.Title, untilHolds)
	case phase != until && phase != incident.Verified:
		return fmt.Errorf("%s: does not hold", d.Preview.Title)
	}
	return nil
}

// lost tells whether the API no longer reaches the node.
func (a *Auto) lost(node string) bool {
	n := a.snap.Node(node)
	return n == nil || cluster.NodeReadiness(n) == corev1.ConditionUnknown
}

// replacePods deletes the Pods that the roll back left outdated, on nodes that the
// API reaches: one broken node first, and only when that has recovered for as long
// as a proof takes, the rest, one by one.
func (a *Auto) replacePods(ctx context.Context, key report.WorkloadKey, rec report.Recommendation) error {
	until := incident.Verified
	tried := map[string]bool{}
	for {
		pod := a.nextOutdated(key, rec.Reachable, tried)
		if pod == nil {
			return nil
		}
		tried[pod.Name] = true
		err := a.act(ctx, action.Request{Kind: action.DeletePod, Workload: key, Pod: pod.Name}, until)
		switch {
		case err == nil:
			until = incident.Holding
		case ctx.Err() == nil && a.lost(pod.Spec.NodeName):
			a.line(1, "%s %s is lost: its Pod was not replaced in time; on with the next", report.StepNotice.Mark(), pod.Spec.NodeName)
		default:
			return err
		}
	}
}

// nextOutdated is the next Pod to replace. Broken nodes come first. The very first
// is no control-plane node, for it may go wrong; once it went well, those with a
// control plane come before the others.
func (a *Auto) nextOutdated(key report.WorkloadKey, broken []report.Text, tried map[string]bool) *corev1.Pod {
	ds := a.daemonSet(key)
	if ds == nil || ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		return nil // its controller replaces them by itself
	}
	hash := ""
	if r := a.snap.CurrentRevision(ds); r != nil {
		hash = r.Labels[cluster.RevisionHash]
	}
	var found *corev1.Pod
	best := -1
	for _, p := range a.snap.PodsOf(ds.UID) {
		n := a.snap.Node(cluster.TargetNode(p))
		if n == nil || a.lost(n.Name) || p.DeletionTimestamp != nil || tried[p.Name] || cluster.Updated(ds, hash, p) {
			continue
		}
		rank := 0
		if slices.Contains(broken, report.Clean(n.Name)) {
			rank += 2
		}
		_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
		if controlPlane == (len(tried) > 0) {
			rank++
		}
		if rank > best {
			found, best = p, rank
		}
	}
	return found
}

func (a *Auto) daemonSet(key report.WorkloadKey) *appsv1.DaemonSet {
	for _, ds := range a.snap.DaemonSets {
		if ds.Namespace == string(key.Namespace) && ds.Name == string(key.Name) {
			return ds
		}
	}
	return nil
}

// proveRecovery waits until every reachable node holds for two grace periods.
func (a *Auto) proveRecovery(ctx context.Context) error {
	if a.state.Recovery == nil {
		return nil
	}
	ok, err := a.until(ctx, untilWell, func() bool { return a.state.Recovery.Phase == incident.Verified })
	if err != nil {
		return err
	}
	a.heading("Recovery")
	a.progress(a.clock(), *a.state.Recovery)
	if !ok {
		return fmt.Errorf("the recovery does not hold after %s", untilWell)
	}
	return nil
}

func recommended(rec report.Recommendation) string {
	out := ""
	for _, f := range rec.First {
		out += string(f) + ", then "
	}
	out += string(rec.Action)
	if rec.ToRevision != nil {
		out += fmt.Sprintf(" to revision %d", *rec.ToRevision)
	}
	return out
}
