package action

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// owned makes Flux, an operator or whoever else the marks name the DaemonSet's owner.
func (w *world) owned(labels, annotations map[string]string, refs []metav1.OwnerReference, fields ...metav1.ManagedFieldsEntry) *world {
	w.ds.Labels = labels
	for k, v := range annotations {
		w.ds.Annotations[k] = v
	}
	w.ds.OwnerReferences = refs
	w.ds.ManagedFields = fields
	return w
}

func wrote(manager string, op metav1.ManagedFieldsOperationType, at time.Time, fields ...string) metav1.ManagedFieldsEntry {
	t := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, APIVersion: "apps/v1", Time: &t, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + strings.Join(fields, `":{},"f:`) + `":{}}}`)}
}

func text(list ...any) string { return fmt.Sprint(list...) }

func fluxWorld(fields ...metav1.ManagedFieldsEntry) *world {
	return newWorld(3).owned(map[string]string{"kustomize.toolkit.fluxcd.io/name": "cni", "kustomize.toolkit.fluxcd.io/namespace": "infra"}, nil, nil, fields...)
}

func TestAPreviewWarnsOfWhoeverPutsItBack(t *testing.T) {
	t.Parallel()
	yes := true
	const fluxWarns = "Flux Kustomization infra/cni will revert this within its interval; suspend it first: flux suspend kustomization cni -n infra"
	const fluxOwed = "where it was suspended, then give it back: flux resume kustomization cni -n infra"
	for name, tc := range map[string]struct {
		w       *world
		r       Request
		watch   string // the first thing to watch out for
		owed    string
		unknown string
		silent  string
	}{
		"a roll back under Flux": {w: fluxWorld(wrote("kustomize-controller", "Apply", epoch, "template", "updateStrategy")), r: Request{Kind: RollBack, Workload: agent, ToRevision: 1}, watch: fluxWarns, owed: fluxOwed},
		"a freeze under Flux":    {w: fluxWorld(wrote("kustomize-controller", "Apply", epoch, "template", "updateStrategy")), r: Request{Kind: Freeze, Workload: agent}, watch: fluxWarns, owed: fluxOwed},
		"a freeze where Flux applies no strategy": {w: fluxWorld(wrote("kustomize-controller", "Apply", epoch, "template")), r: Request{Kind: Freeze, Workload: agent},
			watch: "does not apply the update strategy, so that this stays; it puts back the template", owed: fluxOwed},
		"an operator": {w: newWorld(3).owned(nil, nil, []metav1.OwnerReference{{APIVersion: "operator.tigera.io/v1", Kind: "Installation", Name: "default", Controller: &yes}}, wrote("operator", "Update", epoch, "template")),
			r: Request{Kind: RollBack, Workload: agent, ToRevision: 1}, watch: "tigera-operator (Installation default) puts its own template back within seconds to minutes; suspend it first: kubectl annotate daemonset agent -n kube-system unsupported.operator.tigera.io/ignore=true",
			owed: "kubectl annotate daemonset agent -n kube-system unsupported.operator.tigera.io/ignore-"},
		"Helm": {w: newWorld(3).owned(map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{"meta.helm.sh/release-name": "net", "meta.helm.sh/release-namespace": "kube-system"}, nil, wrote("helm", "Update", epoch, "template")),
			r: Request{Kind: RollBack, Workload: agent, ToRevision: 1}, watch: "what lasts: helm rollback net -n kube-system", owed: "Helm release kube-system/net still has its own template"},
		"a label that Helm charts set too": {w: newWorld(3).owned(map[string]string{"app.kubernetes.io/instance": "net"}, nil, nil, wrote("kubectl", "Update", epoch, "template")),
			r: Request{Kind: RollBack, Workload: agent, ToRevision: 1}, watch: "revision 1 gets a new, higher number", unknown: "who else owns it: Argo CD Application net may own it"},
		"nobody": {w: newWorld(3).owned(nil, nil, nil, wrote("kubectl", "Update", epoch, "template")), r: Request{Kind: RollBack, Workload: agent, ToRevision: 1},
			watch: "revision 1 gets a new, higher number", silent: "own"},
		"an answer without managedFields": {w: newWorld(3), r: Request{Kind: RollBack, Workload: agent, ToRevision: 1}, watch: "revision 1 gets", unknown: "no managedFields"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Prepare(t.Context(), &fakeAPI{w: tc.w}, tc.w.snapshot(), tc.r)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.WatchOut) == 0 || !strings.Contains(string(p.WatchOut[0]), tc.watch) {
				t.Errorf("watch out %q, want first %q", p.WatchOut, tc.watch)
			}
			if !strings.Contains(text(p.GiveBack), tc.owed) || tc.owed == "" && len(p.GiveBack) > 0 {
				t.Errorf("give back %q, want %q", p.GiveBack, tc.owed)
			}
			if !strings.Contains(text(p.Prediction.Unknown), tc.unknown) {
				t.Errorf("unknown %q, want %q", p.Prediction.Unknown, tc.unknown)
			}
			if all := text(p.WatchOut[1:], p.Prediction.Unknown); tc.silent != "" && strings.Contains(all, tc.silent) {
				t.Errorf("speaks of an owner: %q", all)
			}
		})
	}
}

// The reconciler's write takes its fields back: of the undo nothing is left but two
// generations.
func TestARevertIsSeenAndNamed(t *testing.T) {
	t.Parallel()
	for _, r := range []Request{{Kind: RollBack, Workload: agent, ToRevision: 1}, {Kind: Freeze, Workload: agent}} {
		w := fluxWorld(wrote("kustomize-controller", "Apply", epoch.Add(-time.Hour), "template", "updateStrategy"))
		before := w.ds.DeepCopy()
		v := Verify(apply(t, &fakeAPI{w: w}, r).Plan, nodeGrace)
		run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
			{do: caughtUp, holds: true, says: "Flux Kustomization infra/cni will revert this within its interval, unless it is suspended"},
			{after: 100 * time.Second, holds: true, done: true},
			{after: 5 * time.Minute, do: func(w *world) {
				w.ds.Spec = before.Spec
				w.ds.Generation++
				w.ds.ManagedFields = []metav1.ManagedFieldsEntry{wrote("kustomize-controller", "Apply", w.now, "template", "updateStrategy")}
				caughtUp(w)
			}, done: true, says: "kustomize-controller put it back at 10:06:40 UTC; Flux Kustomization infra/cni: flux suspend kustomization cni -n infra"},
		})
	}
}

func TestAChangeOfSomethingElseIsNoRevert(t *testing.T) {
	t.Parallel()
	w := newWorld(3).owned(nil, nil, nil, wrote("helm", "Update", epoch, "template"))
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: RollBack, Workload: agent, ToRevision: 1}).Plan, nodeGrace)
	w.ds.Spec.MinReadySeconds = 30
	w.ds.Generation++
	w.ds.ManagedFields = append(w.ds.ManagedFields, wrote("kubectl-edit", "Update", epoch.Add(time.Minute), "minReadySeconds"))
	caughtUp(w)
	p := v.Observe(w.snapshot())
	if !p.Holds || !strings.Contains(text(p.Lines), "it was changed again since") {
		t.Errorf("%+v", p)
	}
}

func TestTheStrategyThatAnOwnerDoesNotApplyIsNotBlamedOnIt(t *testing.T) {
	t.Parallel()
	w := fluxWorld(wrote("kustomize-controller", "Apply", epoch.Add(-time.Hour), "template"))
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: Freeze, Workload: agent}).Plan, nodeGrace)
	w.ds.Spec.UpdateStrategy.Type = "RollingUpdate"
	w.ds.Generation++
	w.ds.ManagedFields = append(w.ds.ManagedFields, wrote("kubectl-patch", "Update", epoch.Add(time.Minute), "updateStrategy"))
	caughtUp(w)
	var said report.Text
	for _, l := range v.Observe(w.snapshot()).Lines {
		said += l.Text
	}
	if !strings.Contains(string(said), "kubectl-patch put it back") || strings.Contains(string(said), "flux") {
		t.Errorf("%s", said)
	}
}
