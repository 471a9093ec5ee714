package action

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// rollBack puts the template of a stored revision back, verbatim, as `kubectl
// rollout undo` does, but always with an explicit revision and only while nobody
// else has changed the object since it was looked at: a second plain undo returns
// to the bad revision.
type rollBack struct{}

func (rollBack) verb() string  { return "patch" }
func (rollBack) hold() int     { return 2 }
func (rollBack) lever() string { return "template" }

// revisionMark is what a journal keeps of a template: which stored revision it
// was, never the template itself, whose environment may hold secrets.
type revisionMark struct {
	Revision int64  `json:"revision"`
	Name     string `json:"controllerRevision,omitempty"`
}

func (rollBack) work(ctx context.Context, api API, s *cluster.Snapshot, r Request) (draft, error) {
	ds, err := readDaemonSet(ctx, api, s, r.Workload)
	if err != nil {
		return draft{}, err
	}
	if err := ds.observed(); err != nil {
		return draft{}, err
	}
	target, err := readRevision(ctx, api, s, ds.DaemonSet, r.ToRevision)
	if err != nil {
		return draft{}, err
	}
	p := Plan{
		Request: r, Object: daemonSetRef(r.Workload), UID: string(ds.UID), Generation: ds.Generation,
		PatchType: JSONPatch, Patch: patch(ds.DaemonSet, operation{"replace", "/spec/template", target.raw}),
		Title:   report.Textf("Roll back DaemonSet %s to revision %d", ds.Name, target.number),
		Kubectl: report.Textf("kubectl rollout undo daemonset/%s -n %s --to-revision=%d", ds.Name, ds.Namespace, target.number),
		Reverse: "nothing known: the present template is not among the stored revisions, save it first with kubectl get -o yaml",
		Grade:   Typed, Word: report.Clean(ds.Name),
		After: mustJSON(revisionMark{target.number, target.name}),
	}
	if cur := s.CurrentRevision(ds.DaemonSet); cur != nil {
		p.Title = report.Textf("Roll back DaemonSet %s, revision %d → %d", ds.Name, cur.Revision, target.number)
		p.Reverse = report.Textf("kubectl rollout undo daemonset/%s -n %s --to-revision=%d", ds.Name, ds.Namespace, cur.Revision)
		p.Before = mustJSON(revisionMark{cur.Revision, cur.Name})
	}
	d := draft{Preview: Preview{Plan: p, Diff: templateDiff(&ds.Spec.Template, &target.template)}}
	if cluster.SameTemplate(&ds.Spec.Template, &target.template) {
		d.Blocked = report.Textf("already matches revision %d: there is nothing to roll back", target.number)
	}
	after := ds.DeepCopy()
	after.Spec.Template = target.template
	d.Prediction = predict(s, future{ds: after, template: &target.template, updated: func(pod *corev1.Pod) bool {
		// A Pod of that revision is left alone by its hash; its template generation
		// is an older one than the object will have.
		return target.hash != "" && pod.Labels[cluster.RevisionHash] == target.hash
	}, images: true})
	if target.drifted {
		d.Prediction.Unknown = append(d.Prediction.Unknown, report.Textf(
			"revision %d was stored by a control plane before 1.34: a newer one may record it as a new revision and then replaces the Pods that run it as well", target.number))
	}
	d.Prediction.Unknown = append(d.Prediction.Unknown, "whether the ConfigMaps and Secrets that this revision names still have their old contents, and whether companions of the same release changed too")
	d.WatchOut = append(d.WatchOut, report.Textf("revision %d gets a new, higher number by this; a plain undo afterwards would return to the bad one", target.number))
	d.owned(ds.DaemonSet, theTemplate)
	d.mutated = func(o Object) report.Text {
		var got struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		if len(o.Raw) == 0 || json.Unmarshal(o.Raw, &got) != nil || cluster.SameTemplate(&got.Spec.Template, &target.template) {
			return ""
		}
		return "the API server would store another template than the revision's: an admission webhook or a default changes it, and its Pods will count as a new revision"
	}
	return d, nil
}

func (rollBack) holds(p Plan, s *cluster.Snapshot) []report.Line {
	ds, gone := sameDaemonSet(p, s)
	if ds == nil {
		return gone
	}
	lines := []report.Line{observedLine(ds)}
	want, err := plannedTemplate(p)
	switch {
	case err != nil:
		return append(lines, report.Line{State: report.StepUnknown, Text: report.Textf("what was asked for cannot be read any more: %v", err)})
	case cluster.SameTemplate(want, &ds.Spec.Template):
		lines = append(lines, okLine("the template is that of revision %d", p.ToRevision))
		return slices.Concat(lines, touchedSince(ds, p, cluster.TemplateOwner(ds)), mayRevert(ds, theTemplate))
	case ds.Generation > p.Generation+1:
		return append(lines, putBackLine(ds, theTemplate, "the template is another again", cluster.TemplateOwner(ds)))
	}
	return append(lines, badLine("the template is not yet that of revision %d", p.ToRevision))
}

// plannedTemplate is the template that the plan's patch puts in place.
func plannedTemplate(p Plan) (*corev1.PodTemplateSpec, error) {
	var ops []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(p.Patch, &ops); err != nil {
		return nil, err
	}
	t := &corev1.PodTemplateSpec{}
	for _, op := range ops {
		if op.Path == "/spec/template" {
			return t, json.Unmarshal(op.Value, t)
		}
	}
	return t, nil
}
