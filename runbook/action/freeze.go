package action

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// freeze stops a DaemonSet's rollout: with the OnDelete strategy its controller
// replaces no Pod by itself. A DaemonSet cannot be paused. Only the strategy's
// type changes: the rolling update settings stay in the object for the way back,
// and a strategy is not part of the template, so that no revision is made.
type freeze struct{}

func (freeze) verb() string  { return "patch" }
func (freeze) hold() int     { return 2 }
func (freeze) lever() string { return "strategy" }

func (freeze) work(ctx context.Context, api API, s *cluster.Snapshot, r Request) (draft, error) {
	ds, err := readDaemonSet(ctx, api, s, r.Workload)
	if err != nil {
		return draft{}, err
	}
	p := strategyPlan(r, ds, appsv1.OnDeleteDaemonSetStrategyType, nil)
	p.Title = report.Textf("Freeze DaemonSet %s: OnDelete", ds.Name)
	p.Grade = Key
	d := draft{Preview: Preview{Plan: p, Diff: strategyDiff(p)}}
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		d.Blocked = report.Textf("%s is frozen already: its strategy is OnDelete", ds.Name)
	}
	after := ds.DeepCopy()
	after.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	d.Prediction = predict(s, future{ds: after, template: &after.Spec.Template, updated: updatedNow(s, after), same: true})
	d.WatchOut = append(d.WatchOut, "Pods that are gone already, or go later, still come back from the present template: freeze, then roll back")
	d.owned(ds.DaemonSet, theStrategy)
	return d, nil
}

func (freeze) holds(p Plan, s *cluster.Snapshot) []report.Line {
	return strategyHolds(p, s, appsv1.OnDeleteDaemonSetStrategyType)
}

// unfreeze lets the controller replace Pods again, with the settings it had.
type unfreeze struct{}

func (unfreeze) verb() string  { return "patch" }
func (unfreeze) hold() int     { return 2 }
func (unfreeze) lever() string { return "strategy" }

func (unfreeze) work(ctx context.Context, api API, s *cluster.Snapshot, r Request) (draft, error) {
	ds, err := readDaemonSet(ctx, api, s, r.Workload)
	if err != nil {
		return draft{}, err
	}
	after := ds.DeepCopy()
	after.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	var remembered json.RawMessage
	var watch []report.Text
	if after.Spec.UpdateStrategy.RollingUpdate == nil {
		var was appsv1.DaemonSetUpdateStrategy
		if r.Strategy != "" && json.Unmarshal([]byte(r.Strategy), &was) == nil && was.RollingUpdate != nil {
			was.Type = appsv1.RollingUpdateDaemonSetStrategyType
			after.Spec.UpdateStrategy, remembered = was, mustJSON(was)
		} else {
			watch = append(watch, "the settings from before are not known: the API server puts its defaults, maxUnavailable 1 and maxSurge 0")
		}
	}
	p := strategyPlan(r, ds, appsv1.RollingUpdateDaemonSetStrategyType, remembered)
	p.Title = report.Textf("Let DaemonSet %s roll again: RollingUpdate", ds.Name)
	p.Grade, p.Word = Typed, report.Clean(ds.Name)
	d := draft{Preview: Preview{Plan: p, Diff: strategyDiff(p), WatchOut: watch}}
	if ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		d.Blocked = report.Textf("%s is not frozen: its strategy is RollingUpdate", ds.Name)
	}
	d.Prediction = predict(s, future{ds: after, template: &after.Spec.Template, updated: updatedNow(s, after), same: true})
	d.owned(ds.DaemonSet, theStrategy)
	return d, nil
}

func (unfreeze) holds(p Plan, s *cluster.Snapshot) []report.Line {
	return strategyHolds(p, s, appsv1.RollingUpdateDaemonSetStrategyType)
}

// strategyPlan changes the strategy's type; whole, where given, takes the place of
// the strategy.
func strategyPlan(r Request, ds daemonSet, t appsv1.DaemonSetUpdateStrategyType, whole json.RawMessage) Plan {
	var after map[string]json.RawMessage
	op := operation{"replace", "/spec/updateStrategy/type", t}
	body := map[string]any{"type": t}
	if whole != nil {
		op = operation{"replace", "/spec/updateStrategy", whole}
		_ = json.Unmarshal(whole, &after)
		body = map[string]any{}
		for k, v := range after {
			body[k] = v
		}
	} else {
		_ = json.Unmarshal(ds.strategy, &after)
		if after == nil {
			after = map[string]json.RawMessage{}
		}
		after["type"] = mustJSON(t)
	}
	return Plan{
		Request: r, Object: daemonSetRef(r.Workload), UID: string(ds.UID), Generation: ds.Generation,
		PatchType: JSONPatch, Patch: patch(ds.DaemonSet, op),
		Kubectl: strategyCommand(ds.DaemonSet, body),
		Reverse: strategyCommand(ds.DaemonSet, map[string]any{"type": ds.Spec.UpdateStrategy.Type}),
		Before:  ds.strategy, After: mustJSON(after),
	}
}

// strategyCommand is a merge patch: it leaves the settings beside the type alone.
func strategyCommand(ds *appsv1.DaemonSet, strategy map[string]any) report.Text {
	body := mustJSON(map[string]any{"spec": map[string]any{"updateStrategy": strategy}})
	return report.Textf("kubectl patch daemonset %s -n %s --type=merge -p '%s'", ds.Name, ds.Namespace, body)
}

func strategyDiff(p Plan) []report.Text {
	return diffYAML(asYAML(p.Before, "updateStrategy"), asYAML(p.After, "updateStrategy"))
}

// strategyHolds tells whether the strategy is the one wanted and the controller
// has seen it: until then it may still delete by the old one.
func strategyHolds(p Plan, s *cluster.Snapshot, want appsv1.DaemonSetUpdateStrategyType) []report.Line {
	ds, gone := sameDaemonSet(p, s)
	if ds == nil {
		return gone
	}
	lines := []report.Line{observedLine(ds)}
	got, by := ds.Spec.UpdateStrategy.Type, cluster.StrategyOwner(ds)
	switch {
	case got == want:
		lines = append(lines, okLine("the strategy is %s", want))
		return slices.Concat(lines, touchedSince(ds, p, by), mayRevert(ds, theStrategy))
	case ds.Generation > p.Generation+1:
		return append(lines, putBackLine(ds, theStrategy, fmt.Sprintf("the strategy is %s again", got), by))
	}
	return append(lines, badLine("the strategy is %s, not yet %s", got, want))
}

// updatedNow is the controller's rule for the template as it stands.
func updatedNow(s *cluster.Snapshot, ds *appsv1.DaemonSet) func(*corev1.Pod) bool {
	hash := ""
	if r := s.CurrentRevision(ds); r != nil {
		hash = r.Labels[cluster.RevisionHash]
	}
	return func(p *corev1.Pod) bool { return cluster.Updated(ds, hash, p) }
}
