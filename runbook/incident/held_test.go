package incident

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/owners"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

const (
	suspend = "flux suspend kustomization cni -n infra"
	resume  = "flux resume kustomization cni -n infra"
)

// fluxed makes Flux the owner of the DaemonSet, in the API and in the report.
func fluxed(t *testing.T) *tester {
	t.Helper()
	x := newTester(t)
	x.w.ds.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "cni", "kustomize.toolkit.fluxcd.io/namespace": "infra"}
	at := metav1.NewTime(epoch)
	x.w.ds.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", Operation: "Apply", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{}}}`)}}
	x.loop.diagnose = func(s *cluster.Snapshot, o probes.Options) *probes.Diagnosis {
		d := x.w.diagnose(s, o)
		d.Report.Workloads[0].Owners, d.Report.Workloads[0].WritersKnown = owners.Of(x.w.ds, "DaemonSet")
		return d
	}
	x.after(0)
	return x
}

func TestAnOwnerThatIsHeldIsLeftToBeGivenBack(t *testing.T) {
	t.Parallel()
	x := fluxed(t)
	st := x.handle(Copied{Command: suspend})
	if len(st.Left) != 1 || !strings.Contains(string(st.Left[0]), "Flux Kustomization infra/cni") || !strings.Contains(string(st.Left[0]), resume) {
		t.Fatalf("after the suspension: %q", st.Left)
	}
	if st = x.handle(Copied{Command: "kubectl get nodes"}); len(st.Left) != 1 {
		t.Errorf("another command: %q", st.Left)
	}
	earlier := x.loop
	x.loop = x.newLoop(x.journal.entries)
	if st = x.after(time.Second); !strings.Contains(fmt.Sprint(st.Left), resume) {
		t.Errorf("a resumed session forgets it: %q", st.Left)
	}
	x.loop = earlier
	if st = x.handle(Copied{Command: resume}); len(st.Left) != 0 {
		t.Errorf("after it was given back: %q", st.Left)
	}
	if held := session.HeldOwners(x.journal.entries); len(held) != 0 {
		t.Errorf("the journal still holds %+v", held)
	}
}

func TestAfterARollBackTheOwnerIsOwedItsTemplate(t *testing.T) {
	t.Parallel()
	x := fluxed(t)
	x.confirm(action.Request{Kind: action.RollBack, Workload: agent})
	st := x.after(time.Second)
	if len(st.Left) != 1 || !strings.Contains(string(st.Left[0]), "mend what it applies") || !strings.Contains(string(st.Left[0]), resume) {
		t.Fatalf("left %q", st.Left)
	}
	// Suspended by a command of the checklist: said once.
	if st = x.handle(Copied{Command: suspend}); len(st.Left) != 1 || !strings.Contains(string(st.Left[0]), "was to be suspended") {
		t.Errorf("left %q", st.Left)
	}
}
