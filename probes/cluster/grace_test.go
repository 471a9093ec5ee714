package cluster

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGraceIsGivenOrInferredOrTheVersionsDefault(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	lost := func(gaps ...time.Duration) Objects {
		var o Objects
		for i, gap := range gaps {
			name := string(rune('a' + i))
			renewed := metav1.NewMicroTime(now.Add(-5*time.Minute - gap))
			o.Nodes = append(o.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute))}}}})
			o.Leases = append(o.Leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: NodeLeaseNamespace, Name: name},
				Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
		}
		return o
	}
	const s = time.Second
	tests := []struct {
		name    string
		objects Objects
		meta    Meta
		want    time.Duration
	}{
		{"given", lost(130*s, 132*s), Meta{NodeGrace: 20 * s}, 20 * s},
		{"two lost nodes agree", lost(121*s, 128*s), Meta{}, 120 * s},
		{"one lost node proves nothing", lost(121 * s), Meta{}, 50 * s},
		{"lost nodes that do not agree", lost(40*s, 121*s), Meta{}, 50 * s},
		{"an old server", Objects{}, Meta{Source: Source{Version: "v1.31.4+rke2r1"}}, 40 * s},
		{"a new server", Objects{}, Meta{Source: Source{Version: "v1.32.0-eks-5ca49cb"}}, 50 * s},
		{"an unknown server", Objects{}, Meta{}, 50 * s},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.meta.AsOf = now
			if got, source := New(test.objects, test.meta).Grace(); got != test.want || source == "" {
				t.Errorf("%s (%s), want %s", got, source, test.want)
			}
		})
	}
}
