package cluster

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatANodeFilterAccepts(t *testing.T) {
	t.Parallel()
	cordon := node("n", taint(corev1.TaintNodeUnschedulable, "NoSchedule"))
	cordon.Spec.Unschedulable = true
	bare := node("n")
	bare.Spec.Unschedulable = true // the taint follows a moment later
	blue := node("n")
	blue.Labels = map[string]string{"pool": "blue"}
	wildcard := corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	for _, tt := range []struct {
		name string
		node *corev1.Node
		spec corev1.PodSpec
		want bool
	}{
		{"a plain node", node("n"), corev1.PodSpec{}, true},
		{"a cordon", cordon, corev1.PodSpec{}, false},
		{"a cordon without its taint yet", bare, corev1.PodSpec{}, false},
		{"a cordon that is tolerated", bare, wildcard, true},
		{"a taint", node("n", taint("dedicated", "NoSchedule")), corev1.PodSpec{}, false},
		{"a NoExecute taint", node("n", taint("dedicated", "NoExecute")), corev1.PodSpec{}, false},
		{"a taint that only prefers", node("n", taint("dedicated", "PreferNoSchedule")), corev1.PodSpec{}, true},
		{"a taint that is tolerated", node("n", taint("dedicated", "NoSchedule")), wildcard, true},
		{"a node that is not ready: nobody tolerates it for the Pod", node("n", taint(TaintNotReady, "NoSchedule")), corev1.PodSpec{}, false},
		{"its selector", blue, corev1.PodSpec{NodeSelector: map[string]string{"pool": "blue"}}, true},
		{"another selector", blue, corev1.PodSpec{NodeSelector: map[string]string{"pool": "green"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := NewNodeFilter(&tt.spec).Accepts(tt.node); got != tt.want {
				t.Errorf("accepts: %v, want %v", got, tt.want)
			}
		})
	}
}

// homeless is a Pod that the scheduler found no node for.
func homeless(name string, owner types.UID, target string) *corev1.Pod {
	yes := true
	p := podOn("", name)
	p.UID = types.UID(name)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: string(owner), UID: owner, Controller: &yes}}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	if target != "" {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{target}}}}}}}}
	}
	return p
}

func TestLedgersAreDemandedOfNodesThatMightTakeAPod(t *testing.T) {
	t.Parallel()
	nodes := func(n int) []*corev1.Node {
		var out []*corev1.Node
		for i := range n {
			out = append(out, node(fmt.Sprintf("w%02d", i)))
		}
		return out
	}
	gone, bound, other := homeless("gone", "a", "w99"), homeless("bound", "b", ""), homeless("gated", "c", "")
	bound.Spec.NodeName = "w01"
	other.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	tainted := append(nodes(2), node("w90", taint("dedicated", "NoSchedule")))
	for _, tt := range []struct {
		name  string
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  []string
	}{
		{"nobody waits", nodes(3), []*corev1.Pod{podOn("w00", "p")}, nil},
		{"the one node of a daemon Pod", nodes(3), []*corev1.Pod{homeless("a", "ds", "w02")}, []string{"w02"}},
		{"some nodes that would take the Pod, once for a workload", nodes(9), []*corev1.Pod{homeless("a", "rs", ""), homeless("b", "rs", "")}, []string{"w00", "w01", "w02", "w03", "w04", "w05"}},
		{"none that its taint keeps off", tainted, []*corev1.Pod{homeless("a", "rs", "")}, []string{"w00", "w01"}},
		{"daemon Pods first", nodes(3), []*corev1.Pod{homeless("a", "rs", ""), homeless("b", "ds", "w02")}, []string{"w02", "w00", "w01"}},
		{"not a node that does not exist, nor for Pods that are bound or gated", nodes(3), []*corev1.Pod{gone, bound, other}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := New(Objects{Nodes: tt.nodes, Pods: tt.pods}, Meta{AsOf: now.Add(100 * 60 * 60 * 1e9)}).Demand().Nodes; !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	var pods []*corev1.Pod
	for i := range 60 {
		pods = append(pods, homeless(fmt.Sprintf("p%02d", i), types.UID(fmt.Sprint(i)), fmt.Sprintf("w%02d", i)))
	}
	if got := New(Objects{Nodes: nodes(60), Pods: pods}, everything).Demand().Nodes; len(got) != maxLedgers {
		t.Errorf("%d ledgers are demanded at once, %d allowed", len(got), maxLedgers)
	}
}
