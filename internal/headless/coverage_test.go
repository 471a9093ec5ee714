package headless

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestCoverageIsSaidInTextAndMarkdown(t *testing.T) {
	t.Parallel()
	eleven := 11
	behind := []report.CounterNode{{Node: "worker-1", Pod: "agent-a", Why: "crash loop"}, {Node: "worker-2", Pod: "agent-b", Why: "crash loop"}, {Node: "worker-3", Pod: "agent-c", Why: "crash loop"}, {Node: "worker-4", Pod: "agent-d", Why: "crash loop"}}
	r := &report.Report{Workloads: []report.Workload{{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent", Coverage: &report.Coverage{
		Nodes: 14, Eligible: 12, Excluded: []report.Excluded{{Why: "taint dedicated=db:NoSchedule is not tolerated", Count: 2, Nodes: []report.Text{"db-1", "db-2"}}},
		Counters:   []report.Counter{{Name: "DESIRED", Status: 12, Computed: &eleven, State: report.CounterContradicts}, {Name: "READY", Status: 8, State: report.CounterUnknown, Behind: behind, More: 5}},
		Invariants: []report.Invariant{{Name: "coverage", Holds: report.Holds, Why: "one each"}, {Name: "resources", Holds: report.NotKnown, Why: "not read"}, {Name: "availability", Holds: report.DoesNotHold, Why: "not on 4"}}}}}}
	for _, format := range []Format{Text, Markdown} {
		var b bytes.Buffer
		if err := Render(&b, r, Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		out := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{"12 of 14 nodes eligible; 2 not: taint dedicated=db:NoSchedule is not tolerated", "DESIRED=12 (as it is now: 11), READY=8", "the status contradicts the nodes and Pods",
			"worker-1, agent-a: crash loop", "READY: and 7 more nodes", "+ coverage holds: one each", "? resources unknown: not read", "- availability does not hold: not on 4"} {
			if format == Markdown {
				want = strings.Join(strings.Fields(escape(want)), " ")
			}
			if !strings.Contains(out, want) {
				t.Errorf("%s: nothing says %q:\n%s", format, want, b.String())
			}
		}
		if strings.Contains(out, "worker-3") {
			t.Errorf("%s lists every node:\n%s", format, b.String())
		}
	}
}
