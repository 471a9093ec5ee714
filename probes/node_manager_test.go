package probes

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// TestABurstOfRegisteredNodeIsTheControllerManagersStart tells a new leader, to which
// every node is new, from nodes that join.
func TestABurstOfRegisteredNodeIsTheControllerManagersStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)
	restart := now.Add(-3 * time.Minute)
	for name, tc := range map[string]struct {
		nodes, registered int
		created           time.Time
		want              time.Time
	}{
		"all of them":     {12, 12, now.Add(-90 * 24 * time.Hour), restart},
		"most of them":    {12, 8, now.Add(-90 * 24 * time.Hour), restart},
		"a few":           {12, 3, now.Add(-90 * 24 * time.Hour), time.Time{}},
		"nodes that join": {12, 12, restart, time.Time{}},
		"two nodes":       {2, 2, now.Add(-90 * 24 * time.Hour), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o cluster.Objects
			for i := range tc.nodes {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%d", i), CreationTimestamp: metav1.NewTime(tc.created)}}
				o.Nodes = append(o.Nodes, n)
				if i < tc.registered {
					at := metav1.NewTime(restart.Add(time.Duration(i) * time.Second))
					o.Events = append(o.Events, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: n.Name + ".1"}, Reason: "RegisteredNode",
						InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: n.Name}, FirstTimestamp: at, LastTimestamp: at, Source: corev1.EventSource{Component: "node-controller"}})
				}
			}
			s := cluster.New(o, cluster.Meta{AsOf: now})
			if got := managerStarted(s); !got.Equal(tc.want) {
				t.Errorf("started %v, want %v", got, tc.want)
			}
			c := &Diagnosis{s: s, grace: 50 * time.Second, managerStarted: managerStarted(s)}
			least, most := c.silentFor(now), c.silentFor(restart.Add(time.Minute))
			if least != time.Minute || tc.want.IsZero() != (most == least) {
				t.Errorf("silent for %v at most, and %v after a start of the controller manager", least, most)
			}
		})
	}
}
