package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func TestPodsAreDemandedOfTheNodesThatARuleWouldLookAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	node := func(name string, ready corev1.ConditionStatus, since, joined time.Duration) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-joined)), Labels: map[string]string{}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-since))}}}}
	}
	const old = 1000 * time.Hour
	plane := node("cp", "True", old, old)
	plane.Labels["node-role.kubernetes.io/control-plane"] = ""
	many := []*corev1.Node{}
	for i := range 30 {
		many = append(many, node(fmt.Sprintf("m%02d", i), "Unknown", time.Duration(60-i)*time.Second, old))
	}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		want  []string
	}{
		"all are Ready":                              {[]*corev1.Node{plane, node("a", "True", old, old)}, nil},
		"one is down for days":                       {[]*corev1.Node{plane, node("a", "Unknown", 70*time.Hour, old)}, nil},
		"the earliest goes first":                    {[]*corev1.Node{node("a", "False", time.Minute, old), node("b", "Unknown", 2*time.Minute, old)}, []string{"b", "a"}},
		"its Pods are gone long ago":                 {[]*corev1.Node{node("a", "False", time.Hour, old), node("b", "Unknown", time.Minute, old)}, []string{"b", "a"}},
		"the control plane's, while any node fails":  {[]*corev1.Node{node("a", "False", time.Minute, old), plane}, []string{"cp", "a"}},
		"a node that has just joined":                {[]*corev1.Node{node("new", "False", 5*time.Minute, 5*time.Minute), node("b", "Unknown", 9*time.Minute, old)}, []string{"new", "b"}},
		"a node without any condition":               {[]*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "bare", CreationTimestamp: metav1.NewTime(now)}}}, []string{"bare"}},
		"never more than a live cluster should bear": {many, nil},
	} {
		got := cluster.New(cluster.Objects{Nodes: c.nodes}, cluster.Meta{AsOf: now}).Demand().Nodes
		if name == "never more than a live cluster should bear" {
			if len(got) != 20 || got[0] != "m00" {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
