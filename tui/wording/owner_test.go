package wording

import (
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestTheOwnerInOneSentence(t *testing.T) {
	t.Parallel()
	hold := []report.Command{{Run: "flux suspend kustomization cni -n infra"}}
	last := []report.Command{{Run: "helm rollback net -n kube-system <revision>"}}
	for name, tc := range map[string]struct {
		owners []report.Owner
		want   string
	}{
		"nobody":           {nil, ""},
		"only a hint":      {[]report.Owner{{Tool: "Argo CD", Code: report.ManagedByGitOps, Certainty: report.Hint, Reverts: report.RevertsIfTold, Hold: hold}}, ""},
		"told to leave it": {[]report.Owner{{Tool: "Flux", Code: report.ManagedByGitOps, Certainty: report.Certain, Reverts: report.RevertsNot, Hold: hold}}, ""},
		"kubectl apply":    {[]report.Owner{{Tool: "kubectl apply", Certainty: report.Certain, Reverts: report.RevertsLater}}, ""},
		"one that reverts": {[]report.Owner{{Tool: "Flux", Object: "Kustomization infra/cni", Code: report.ManagedByGitOps, Certainty: report.Certain, Reverts: report.RevertsPeriodically, Hold: hold}},
			"Flux Kustomization infra/cni would put it back: suspend it first: flux suspend kustomization cni -n infra"},
		"one that may": {[]report.Owner{{Tool: "Flux", Code: report.ManagedByGitOps, Certainty: report.Likely, Reverts: report.RevertsIfTold, Hold: hold}},
			"Flux may put it back: suspend it first: flux suspend kustomization cni -n infra"},
		"one that comes later": {[]report.Owner{{Tool: "Helm", Code: report.ManagedByHelm, Certainty: report.Certain, Reverts: report.RevertsLater, Instead: last}},
			"Helm owns it; what lasts: helm rollback net -n kube-system <revision>"},
		"one without a lever": {[]report.Owner{{Tool: "add-on manager", Code: report.ManagedByOperator, Certainty: report.Certain, Reverts: report.RevertsPeriodically, Does: "puts its own template back"}},
			"add-on manager puts its own template back"},
	} {
		if got := Owner(&report.Workload{Owners: tc.owners}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := Owner(nil); got != "" {
		t.Errorf("of no workload: %q", got)
	}
}
