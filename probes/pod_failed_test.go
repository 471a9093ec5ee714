package probes

import (
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// TestAKubeletsRefusalIsReadByItsReason covers what kubelets put into a failed Pod's status.
func TestAKubeletsRefusalIsReadByItsReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, message string
		code            report.Code
		ofNode          bool
	}{
		{"Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 61420Ki.", report.PodEvicted, true},
		{"Evicted", "The node had condition: [DiskPressure]. ", report.PodEvicted, true},
		{"Preempting", "Preempted in order to admit critical pod", report.PodPreempted, false},
		{"NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down.", report.NodeShutdownPod, true},
		{"Terminated", "Pod was terminated in response to imminent node shutdown.", report.NodeShutdownPod, true},
		{"OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 3800, capacity: 4000", report.InsufficientResources, false},
		{"OutOfpods", "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110", report.InsufficientResources, false},
		{"UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0, which is unexpected", report.InsufficientResources, false},
		{"UnexpectedAdmissionError", "Pod was rejected: plugin registration failed", "", false},
		{"NodePorts", "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports", report.HostPortConflict, false},
		{"NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector", report.NodeAffinityMismatch, false},
		{"TaintToleration", "Predicate TaintToleration failed", report.UntoleratedTaint, false},
		{"TopologyAffinityError", "Resources cannot be allocated with Topology locality", report.InsufficientResources, false},
		{"Error", "", "", false},
	} {
		if code, ofNode := rejection(tc.reason, tc.message); code != tc.code || ofNode != tc.ofNode {
			t.Errorf("%s %q: %s, of the node %v; want %s, %v", tc.reason, tc.message, code, ofNode, tc.code, tc.ofNode)
		}
	}
}

func TestThePodAndNodeOfAFailedDaemonPodAreReadOffTheEvent(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][3]string{
		"Found failed daemon pod monitoring/metrics-agent-x7k2p on node worker-4, will try to kill it": {"monitoring", "metrics-agent-x7k2p", "worker-4"},
		"Found failed daemon pod a/b on node": {},
		"Deleted pod: metrics-agent-x7k2p":    {},
		"":                                    {},
	} {
		if ns, name, node := failedDaemonPod(message); [3]string{ns, name, node} != want {
			t.Errorf("%q: %s/%s on %s", message, ns, name, node)
		}
	}
}
