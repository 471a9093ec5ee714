package probes_test

import (
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestTheProofOfRecoveryCountsTaintsOfNodesThatStillFail(t *testing.T) {
	t.Parallel()
	got := lines(probes.Probes["recovery"](diagnosed(t, "cascade-without-a-brake"), report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"}))
	if !strings.Contains(got, "still tainted: app-1") || strings.Contains(got, "no not-ready or unreachable taint") {
		t.Errorf("nodes that fail carry the taint, and the proof says:\n%s", got)
	}
}

func TestTheProofOfRecoverySaysOnceWhatIsToBeGivenBack(t *testing.T) {
	t.Parallel()
	got := lines(probes.Probes["recovery"](diagnosed(t, "flux-applies-the-agent"), report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "net-agent"}))
	if n := strings.Count(got, "was suspended"); n != 1 {
		t.Errorf("said %d times:\n%s", n, got)
	}
}
