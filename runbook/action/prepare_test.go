package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestPlansCarryCommandReverseAndGrade(t *testing.T) {
	t.Parallel()
	tests := []struct {
		request          Request
		frozen           bool
		title            report.Text
		kubectl, reverse string
		grade            Grade
		word             report.Text
	}{
		{Request{Kind: Freeze, Workload: agent}, false, "Freeze DaemonSet agent: OnDelete",
			`kubectl patch daemonset agent -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete"}}}'`,
			`kubectl patch daemonset agent -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}'`, Key, ""},
		{Request{Kind: Unfreeze, Workload: agent}, true, "Let DaemonSet agent roll again: RollingUpdate",
			`kubectl patch daemonset agent -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}'`,
			`kubectl patch daemonset agent -n kube-system --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete"}}}'`, Typed, "agent"},
		{Request{Kind: RollBack, Workload: agent, ToRevision: 1}, false, "Roll back DaemonSet agent, revision 2 → 1",
			"kubectl rollout undo daemonset/agent -n kube-system --to-revision=1",
			"kubectl rollout undo daemonset/agent -n kube-system --to-revision=2", Typed, "agent"},
		{Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}, false, "Delete Pod agent-node-01-r2 on node-01",
			"kubectl delete pod agent-node-01-r2 -n kube-system", "nothing: the Pod is made anew", Typed, "agent-node-01-r2"},
	}
	for _, test := range tests {
		t.Run(string(test.request.Kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			if test.frozen {
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			}
			p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			if p.Title != test.title || string(p.Kubectl) != test.kubectl || !strings.HasPrefix(string(p.Reverse), test.reverse) || p.Grade != test.grade || p.Word != test.word {
				t.Errorf("got %q\n%q\n%q\n%s %q", p.Title, p.Kubectl, p.Reverse, p.Grade, p.Word)
			}
			if p.Blocked != "" || p.DryRun != DryRunAccepted || p.Permission == nil || !*p.Permission {
				t.Errorf("blocked %q, dry run %s %s, permission %v", p.Blocked, p.DryRun, p.DryRunWhy, p.Permission)
			}
			if len(p.Diff) == 0 {
				t.Error("no diff")
			}
		})
	}
}

func TestFreezeChangesTheTypeAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.budget(3)
	api := &fakeAPI{w: w}
	was := w.ds.DeepCopy()
	apply(t, api, Request{Kind: Freeze, Workload: agent})
	was.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	was.Generation++
	if d := cmp.Diff(was, w.ds); d != "" {
		t.Errorf("a freeze changed more than the type:\n%s", d)
	}
	w.ds.Status.ObservedGeneration = w.ds.Generation
	apply(t, api, Request{Kind: Unfreeze, Workload: agent})
	if w.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || w.ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue() != 3 {
		t.Errorf("the way back gave %+v", w.ds.Spec.UpdateStrategy)
	}
}

func TestUnfreezePutsRememberedSettingsBackWhereTheyAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(4)
	w.budget(3)
	api := &fakeAPI{w: w}
	o := apply(t, api, Request{Kind: Freeze, Workload: agent})
	w.ds.Spec.UpdateStrategy.RollingUpdate = nil // somebody removed them
	p := prepare(t, api, Request{Kind: Unfreeze, Workload: agent, Strategy: string(o.Before)})
	if _, err := Apply(t.Context(), api, p.Plan); err != nil {
		t.Fatal(err)
	}
	if ru := w.ds.Spec.UpdateStrategy.RollingUpdate; ru == nil || ru.MaxUnavailable.IntValue() != 3 {
		t.Errorf("the budget from before is lost: %+v", w.ds.Spec.UpdateStrategy)
	}
}

func TestUnfreezeSaysThatUnknownSettingsBecomeDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	p := prepare(t, &fakeAPI{w: w}, Request{Kind: Unfreeze, Workload: agent})
	if !strings.Contains(fmt.Sprint(p.WatchOut), "maxUnavailable 1") {
		t.Errorf("watch out: %q", p.WatchOut)
	}
}

func TestRollBackPutsTheStoredTemplateBackVerbatim(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	// A field that this program's types do not know must survive.
	w.revs[0].Data.Raw = []byte(strings.Replace(string(w.revs[0].Data.Raw), `"hostNetwork":true`, `"hostNetwork":true,"fieldOfTheFuture":{"a":1}`, 1))
	p := prepare(t, &fakeAPI{w: w}, Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(p.Patch, &ops); err != nil {
		t.Fatal(err)
	}
	if len(ops) != 3 || ops[0].Op+ops[0].Path != "test/metadata/uid" || ops[1].Op+ops[1].Path != "test/metadata/generation" || ops[2].Op+ops[2].Path != "replace/spec/template" {
		t.Fatalf("operations: %s", p.Patch)
	}
	var stored struct {
		Spec struct{ Template map[string]any }
	}
	if err := json.Unmarshal(w.revs[0].Data.Raw, &stored); err != nil {
		t.Fatal(err)
	}
	delete(stored.Spec.Template, "$patch")
	var sent map[string]any
	if err := json.Unmarshal(ops[2].Value, &sent); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stored.Spec.Template, sent); d != "" {
		t.Errorf("sent another template than the stored one:\n%s", d)
	}
}

func TestWhatCannotBePreviewedIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	rollBack := Request{Kind: RollBack, Workload: agent, ToRevision: 1}
	tests := []struct {
		name    string
		request Request
		bend    func(*world, *fakeAPI)
		says    string
	}{
		{"a revision that does not exist", Request{Kind: RollBack, Workload: agent, ToRevision: 9}, nil, "kube-system/agent has no revision 9; stored: 2, 1"},
		{"a revision that was pruned since the picture", rollBack, func(w *world, a *fakeAPI) {
			a.before = func(c string) {
				if c == "get controllerrevisions" {
					w.revs = w.revs[1:]
				}
			}
		}, "has been removed meanwhile; stored: 2"},
		{"the controller is behind", rollBack, func(w *world, _ *fakeAPI) { w.ds.Generation = 3 }, "has seen generation 2 of kube-system/agent but not yet 3"},
		{"being deleted", rollBack, func(w *world, _ *fakeAPI) { now := metav1.NewTime(w.now); w.ds.DeletionTimestamp = &now }, "is being deleted since 10:00:00"},
		{"no such workload", Request{Kind: Freeze, Workload: report.WorkloadKey{Kind: "DaemonSet", Namespace: "x", Name: "y"}}, nil, "read DaemonSet/x/y"},
		{"a Deployment", Request{Kind: Freeze, Workload: report.WorkloadKey{Kind: "Deployment", Namespace: "x", Name: "y"}}, nil, "works on DaemonSets so far"},
		{"a name that is none", Request{Kind: DeletePod, Workload: agent, Pod: "x; rm -rf"}, nil, "is no name of a Kubernetes object"},
		{"no Pod named", Request{Kind: DeletePod, Workload: agent}, nil, "is no name of a Kubernetes object"},
		{"a Pod that is gone", Request{Kind: DeletePod, Workload: agent, Pod: "agent-gone"}, nil, "does not exist (any more)"},
		{"another workload's Pod", Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}, func(w *world, _ *fakeAPI) { w.pods[0].OwnerReferences[0].UID = "other" }, "does not belong to DaemonSet/kube-system/agent"},
		{"an unknown action", Request{Kind: "Explode", Workload: agent}, nil, `"Explode" is not an action`},
		{"a dead API server", rollBack, func(_ *world, a *fakeAPI) { a.fail = map[string]error{"get daemonsets": ErrUnreachable} }, "cannot be reached"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			s := w.snapshot()
			api := &fakeAPI{w: w}
			if test.bend != nil {
				test.bend(w, api)
			}
			_, err := Prepare(t.Context(), api, s, test.request)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("error %v, want %q", err, test.says)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestWhatCannotBeAppliedIsBlockedInThePreview(t *testing.T) {
	t.Parallel()
	rollBack := Request{Kind: RollBack, Workload: agent, ToRevision: 1}
	delete01 := Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}
	tests := []struct {
		name    string
		request Request
		bend    func(*world, *fakeAPI)
		dryRun  DryRun
		says    string
	}{
		{"read-only", rollBack, func(_ *world, a *fakeAPI) { a.readOnly = true }, DryRunNotSent, "read-only"},
		{"read-only deletion", delete01, func(_ *world, a *fakeAPI) { a.readOnly = true }, DryRunNotSent, "read-only"},
		{"no right to patch", rollBack, func(_ *world, a *fakeAPI) { a.deny = "patch" }, DryRunNotSent, "not permitted: patch on daemonsets kube-system/agent"},
		{"no right to delete", delete01, func(_ *world, a *fakeAPI) { a.deny = "delete" }, DryRunNotSent, "not permitted: delete on pods"},
		{"refused by admission", rollBack, func(_ *world, a *fakeAPI) {
			a.fail = map[string]error{"dry-run patch": errors.New("admission webhook denied it")}
		}, DryRunRefused, "the API server refuses it: admission webhook denied it"},
		{"no answer", rollBack, func(_ *world, a *fakeAPI) { a.fail = map[string]error{"dry-run patch": ErrUnreachable} }, DryRunFailed, "did not answer"},
		{"the same template", Request{Kind: RollBack, Workload: agent, ToRevision: 2}, nil, DryRunNotSent, "already matches revision 2"},
		{"frozen already", Request{Kind: Freeze, Workload: agent}, func(w *world, _ *fakeAPI) {
			w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}, DryRunNotSent, "frozen already"},
		{"not frozen", Request{Kind: Unfreeze, Workload: agent}, nil, DryRunNotSent, "not frozen"},
		{"a Pod on a node out of reach", delete01, func(w *world, _ *fakeAPI) { w.setReady("node-01", corev1.ConditionUnknown) }, DryRunNotSent, "only be recorded"},
		{"a Pod that goes already", delete01, func(w *world, _ *fakeAPI) { now := metav1.NewTime(w.now); w.pods[0].DeletionTimestamp = &now }, DryRunNotSent, "being deleted already"},
		{"a Pod on a node that is gone", delete01, func(w *world, _ *fakeAPI) { w.nodes = w.nodes[1:] }, DryRunNotSent, "was not found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			api := &fakeAPI{w: w}
			if test.bend != nil {
				test.bend(w, api)
			}
			p := prepare(t, api, test.request)
			if !strings.Contains(string(p.Blocked), test.says) || p.DryRun != test.dryRun {
				t.Errorf("blocked %q (dry run %s: %s), want %q (%s)", p.Blocked, p.DryRun, p.DryRunWhy, test.says, test.dryRun)
			}
			for _, c := range api.calls {
				if c == "patch" || c == "delete" {
					t.Errorf("a preview changed the cluster: %v", api.calls)
				}
			}
		})
	}
}

func TestPreviewWithoutAccessReviewStillStands(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	p := prepare(t, &fakeAPI{w: w, fail: map[string]error{"can-i patch daemonsets": errors.New("no such API")}}, Request{Kind: Freeze, Workload: agent})
	if p.Permission != nil || p.PermissionWhy == "" || p.Blocked != "" || p.DryRun != DryRunAccepted {
		t.Errorf("permission %v %q, blocked %q, dry run %s", p.Permission, p.PermissionWhy, p.Blocked, p.DryRun)
	}
}

func TestDeletePodWarnsWhereNoPodComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.setReady("node-01", corev1.ConditionFalse) // alive, but tainted, and the template does not tolerate it
	p := prepare(t, &fakeAPI{w: w}, Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"})
	if len(p.Prediction.NeverBack) != 1 || !strings.Contains(fmt.Sprint(p.WatchOut), "gets no Pod back: it does not tolerate node.kubernetes.io/not-ready:NoSchedule") {
		t.Errorf("%q %q", p.Prediction.NeverBack, p.WatchOut)
	}
}

func TestDeletePodWarnsOfANodeWhoseHeartbeatIsLate(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{12 * time.Second: false, 31 * time.Second: true} {
		w := newWorld(2)
		w.lease("node-01", w.now.Add(-age))
		p := prepare(t, &fakeAPI{w: w}, Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"})
		if got := strings.Contains(fmt.Sprint(p.WatchOut), "has not renewed its Lease for 31s"); got != want || p.Blocked != "" {
			t.Errorf("%s: %q, blocked %q", age, p.WatchOut, p.Blocked)
		}
	}
}

func TestRollBackWarnsOfARevisionStoredByAnOlderControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.revs[0].Data.Raw = []byte(strings.Replace(string(w.revs[0].Data.Raw), `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1))
	p := prepare(t, &fakeAPI{w: w}, Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	if !strings.Contains(fmt.Sprint(p.Prediction.Unknown), "before 1.34") {
		t.Errorf("unknown: %q", p.Prediction.Unknown)
	}
}

func TestDryRunThatStoresAnotherTemplateIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	api := &mutating{fakeAPI{w: w}}
	p, err := Prepare(t.Context(), api, w.snapshot(), Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(p.WatchOut), "another template") {
		t.Errorf("watch out: %q", p.WatchOut)
	}
}

// mutating is an API server with a webhook that changes images.
type mutating struct{ fakeAPI }

func (m *mutating) Patch(ctx context.Context, ref Ref, t PatchType, patch []byte, dryRun bool) (Object, error) {
	o, err := m.fakeAPI.Patch(ctx, ref, t, patch, dryRun)
	o.Raw = []byte(strings.ReplaceAll(string(o.Raw), "agent:v1", "mirror/agent:v1"))
	return o, err
}

func TestRollBackUsesTheListedRevisionWhereReadingItIsForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	p := prepare(t, &fakeAPI{w: w, fail: map[string]error{"get controllerrevisions": ErrForbidden}}, Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	if p.Blocked != "" || !strings.Contains(string(p.Patch), "agent:v1") {
		t.Errorf("blocked %q, patch %s", p.Blocked, p.Patch)
	}
}

func prepare(t *testing.T, api *fakeAPI, r Request) Preview {
	t.Helper()
	p, err := Prepare(t.Context(), api, api.w.snapshot(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, api *fakeAPI, r Request) Outcome {
	t.Helper()
	p := prepare(t, api, r)
	if p.Blocked != "" {
		t.Fatalf("blocked: %s", p.Blocked)
	}
	o, err := Apply(t.Context(), api, p.Plan)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
