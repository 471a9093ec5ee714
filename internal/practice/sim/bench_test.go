package sim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1 "k8s.io/api/apps/v1"
)

// Ten minutes of a rollout over 200 nodes.
func BenchmarkLargeRollout(b *testing.B) {
	for b.Loop() {
		l := newLab(b, setup{nodes: 200, zones: 3, spec: func(ds *appsv1.DaemonSet) {
			wildcard(ds)
			budget(ds, intstr.FromString("10%"), intstr.FromInt32(0))
		}})
		l.change(image(newImage))
		l.run(10 * time.Minute)
		if n := l.get().Status.UpdatedNumberScheduled; n != 200 {
			b.Fatalf("%d nodes are updated", n)
		}
	}
}
