package headless

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestARolloutIsNamedWhereTheVerdictNamesNoWorkload(t *testing.T) {
	t.Parallel()
	r := &report.Report{Verdict: report.Verdict{Attribution: report.NodesFailIndependently},
		Workloads: []report.Workload{{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent", Rollout: report.Rollout{State: report.Stuck}, Verdict: report.Verdict{Attribution: report.NodesFailIndependently}}}}
	var b bytes.Buffer
	writeText(&b, r, Options{})
	if want := "ROLLOUT   DaemonSet/kube-system/agent: Stuck"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
}
