package probes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func diagnosed(t *testing.T, name string) *probes.Diagnosis {
	t.Helper()
	c, err := files.LoadCase(t.Context(), "testdata/cases/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return probes.Diagnose(c.Snapshot, probes.Options{})
}

func lines(r report.Result) string {
	var b strings.Builder
	for _, l := range r.Lines {
		b.WriteString(string(l.State) + " " + string(l.Text) + "\n")
	}
	return b.String()
}

func TestTheStepThatMendsNamesTheOwnerAndOffersItsCommands(t *testing.T) {
	t.Parallel()
	target := report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"}
	for name, tc := range map[string]struct{ says, command string }{
		"flux-applies-the-agent":          {"Notice owner: Flux Kustomization infra/cni will revert this within its interval", "flux suspend kustomization cni -n infra"},
		"an-operator-that-helm-installed": {"Notice owner: tigera-operator (Installation default)", "kubectl edit installation.operator.tigera.io default -n kube-system"},
		"helm-released-the-agent":         {"Notice owner: Helm release kube-system/net leaves a change by hand", "helm rollback net -n kube-system <revision>"},
		"cascade-no-managed-fields":       {"Unknown who writes it is not known for certain: managedFields were not read", ""},
	} {
		c := diagnosed(t, name)
		r := probes.Probes["mend"](c, target)
		if !strings.Contains(lines(r), tc.says) {
			t.Errorf("%s: nothing says %q in\n%s", name, tc.says, lines(r))
		}
		if tc.command != "" && !slices.ContainsFunc(r.Commands, func(x report.Command) bool { return string(x.Run) == tc.command && x.Says != "" }) {
			t.Errorf("%s: %q is not offered: %+v", name, tc.command, r.Commands)
		}
		if got := lines(probes.Probes["recovery"](c, target)); strings.Contains(got, "was suspended") != (name == "flux-applies-the-agent" || name == "an-operator-that-helm-installed") {
			t.Errorf("%s: what is to be given back:\n%s", name, got)
		}
	}
}

// What a neighbour's labels say is the neighbour's.
func TestEachWorkloadHasItsOwnOwner(t *testing.T) {
	t.Parallel()
	c, err := files.LoadCase(t.Context(), "testdata/cases/flux-applies-the-agent")
	if err != nil {
		t.Fatal(err)
	}
	r := probes.Diagnose(c.Snapshot, probes.Options{All: true}).Report
	for key, want := range map[report.WorkloadKey]report.Code{
		{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"}:     report.ManagedByGitOps,
		{Kind: "DaemonSet", Namespace: "logging", Name: "log-agent"}:         report.ManagedByHelm,
		{Kind: "DaemonSet", Namespace: "kube-system", Name: "csi-disk-node"}: "",
	} {
		w := r.Workload(key)
		if w == nil {
			t.Fatalf("%s is missing", key)
		}
		var got report.Code
		for _, f := range w.Findings {
			if f.Code == report.ManagedByGitOps || f.Code == report.ManagedByHelm || f.Code == report.ManagedByOperator {
				got += f.Code
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q; %+v", key, got, want, w.Owners)
		}
	}
}

func TestTheAuthorOfAChangeIsNamedWithItsOrders(t *testing.T) {
	t.Parallel()
	c := diagnosed(t, "flux-applies-the-agent")
	if got := lines(probes.Probes["rollouts"](c, report.WorkloadKey{})); !strings.Contains(got, "by kustomize-controller (Flux Kustomization infra/cni)") {
		t.Errorf("%s", got)
	}
}

func TestWithoutManagedFieldsTheWritersAreNotKnown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"cascade-no-managed-fields": false, "helm-released-the-agent": true} {
		w := diagnosed(t, name).Report.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"})
		if w == nil || w.WritersKnown != want {
			t.Fatalf("%s: %+v", name, w)
		}
		if said := slices.ContainsFunc(w.Verdict.Missing, func(t report.Text) bool { return strings.Contains(string(t), "managedFields") }); said == want {
			t.Errorf("%s: missing %q", name, w.Verdict.Missing)
		}
	}
}

// A rollback that the owner itself carries out, from Git, is not at risk from it.
func TestAnOwnerDoesNotThreatenItsOwnRollback(t *testing.T) {
	t.Parallel()
	for _, byHand := range []bool{true, false} {
		c, err := files.LoadCase(t.Context(), "testdata/cases/an-undo-that-its-owner-may-put-back")
		if err != nil {
			t.Fatal(err)
		}
		for _, ds := range c.Snapshot.DaemonSets {
			for i := range ds.ManagedFields {
				if f := &ds.ManagedFields[i]; !byHand && f.Manager == "kubectl" {
					f.Manager = "kustomize-controller"
				}
			}
		}
		w := probes.Diagnose(c.Snapshot, probes.Options{}).Report.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"})
		if w == nil || slices.Contains(w.Recommendation.First, report.ActionChangeManager) != byHand {
			t.Errorf("by hand %v: %+v", byHand, w)
		}
	}
}

// A person who undoes an undo at a terminal is no manager that does it again.
func TestOnlyAManagerThatPutsItsTemplateBackIsToBeChanged(t *testing.T) {
	t.Parallel()
	target := report.WorkloadKey{Kind: "DaemonSet", Namespace: "logging", Name: "log-shipper"}
	for name, want := range map[string]report.RecommendedAction{"two-undos-in-a-row": report.ActionRollBack, "the-undo-was-put-back": report.ActionChangeManager} {
		w := diagnosed(t, name).Report.Workload(target)
		if w == nil || w.Recommendation.Action != want || w.Recommendation.ToRevision == nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
