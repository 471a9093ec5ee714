package action

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (w *world) surge(max int32) {
	zero, m := intstr.FromInt32(0), intstr.FromInt32(max)
	w.ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &zero, MaxSurge: &m}
}

// silent is a node that was NotReady by its own kubelet before it fell silent: nobody
// marks its Pods, which go on counting as available.
func (w *world) silent(node string) { w.setReady(node, corev1.ConditionUnknown) }

// Each of these came out otherwise than predicted, once, on the unmodified DaemonSet
// controller of 1.37.
func TestPredictionFollowsTheControllerWhereNodesAndBudgetMeet(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                           string
		world                          func() *world
		now, then, cannot, never, left int
		says, silentOn                 []string
	}{
		{
			name: "Pods that are removed hold the budget while they end: none of the others is replaced meanwhile",
			world: func() *world {
				w := newWorld(6)
				for i := range 3 {
					w.nodeNamed(nodeName(i)).Labels["pool"] = "a"
				}
				narrow(w, map[string]string{"pool": "a"})
				w.budget(2)
				return w
			},
			now: 3, then: 3, never: 3, says: []string{"NOW 3 Pods removed at once", "THEN 3 Pods, 2 at a time"}, silentOn: []string{"any order"},
		},
		{
			name: "a silent node whose Pod still counts as available holds the budget only once its turn comes",
			world: func() *world {
				w := newWorld(4)
				w.tolerateAll()
				w.silent("node-04")
				return w
			},
			then: 3, cannot: 1,
			says:     []string{"NOW up to 1 Pod replaced", "THEN at most 3 Pods, in any order of nodes: the Pod of 1 node out of reach still counts as available"},
			silentOn: []string{"for ever"},
		},
		{
			name: "with maxSurge a node out of reach does not hold the surge: its old Pod goes, and nothing is beside it",
			world: func() *world {
				w := newWorld(4)
				w.tolerateAll()
				w.surge(1)
				w.setReady("node-04", corev1.ConditionUnknown)
				unready(w.podOn("node-04"))
				return w
			},
			then: 3, cannot: 1, says: []string{"NOW 1 Pod replaced, in any order of nodes: maxSurge 1, 0 of it in use", "THEN 2 Pods, 1 at a time"},
		},
		{
			name: "with maxSurge a silent node holds it: the new Pod stands beside one that stays Ready",
			world: func() *world {
				w := newWorld(4)
				w.tolerateAll()
				w.surge(1)
				unready(w.pod("node-04", 1))
				w.silent("node-04")
				return w
			},
			then: 3, cannot: 1, says: []string{"THEN 3 Pods wait for ever: 1 node out of reach holds the whole maxSurge of 1"},
		},
		{
			name: "an undo in the middle of a surge removes the new Pod that is not Ready and leaves the old one",
			world: func() *world {
				w := newWorld(3)
				w.surge(1)
				w.on("node-01", 1)
				w.on("node-02", 1)
				w.on("node-03", 1)
				unready(w.pod("node-03", 2))
				return w
			},
			now: 1, left: 2, says: []string{"NOW 1 Pod removed beside one of this template", "NOW 0 Pods replaced"},
		},
		{
			name: "a Pod of the target that is not available yet waits beside a Ready one and uses the surge",
			world: func() *world {
				w := newWorld(3)
				w.surge(1)
				unready(w.pod("node-03", 1))
				return w
			},
			then: 3, says: []string{"NOW 0 Pods replaced, in any order of nodes: maxSurge 1, 1 of it in use", "THEN 1 Pod removed when the one of this template beside it is available"},
		},
		{
			name: "of two surged revisions that are both another, the younger is removed and the older takes part",
			world: func() *world {
				w := newWorld(3)
				w.surge(1)
				w.on("node-01", 1)
				w.on("node-02", 1)
				young := w.pod("node-03", 3)
				young.CreationTimestamp = metav1.NewTime(w.now.Add(-time.Minute))
				unready(young)
				return w
			},
			then: 1, left: 2, says: []string{"NOW 1 Pod removed beside one of this template", "NOW 1 Pod replaced, in any order of nodes: maxSurge 1, 0 of it in use"},
		},
		{
			name: "with maxSurge available Pods that may stay where they are not wanted leave as others are available",
			world: func() *world {
				w := newWorld(4)
				w.surge(1)
				w.nodeNamed("node-04").Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
				return w
			},
			then: 4, never: 1,
			says: []string{"NOW 1 Pod removed for good, in any order of nodes", "NOW 1 Pod replaced, in any order of nodes: maxSurge 1, 0 of it in use"},
		},
		{
			name: "and stay where a node out of reach has none that is available",
			world: func() *world {
				w := newWorld(4)
				w.tolerateAll()
				w.surge(1)
				t := template("agent:v1")
				t.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists}}
				w.revs = w.revs[1:]
				w.revision(1, t)
				w.nodeNamed("node-04").Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
				w.setReady("node-03", corev1.ConditionUnknown)
				unready(w.podOn("node-03"))
				return w
			},
			then: 3, never: 1, cannot: 1, says: []string{"THEN 1 Pod stays for good: nodes out of reach have none that is available"},
		},
		{
			name: "frozen, the younger of two Pods goes at once, whichever revision it has",
			world: func() *world {
				w := newWorld(2)
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				for i, revision := range []int64{1, 1} {
					w.pod(nodeName(i), revision).CreationTimestamp = metav1.NewTime(w.now.Add(time.Duration(1-2*i) * time.Minute))
					w.podOn(nodeName(i)).CreationTimestamp = metav1.NewTime(w.now)
				}
				return w
			},
			now: 1, then: 1, says: []string{"NOW 2 Pods removed beside", "THEN 1 Pod runs another revision"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := test.world()
			p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), Request{Kind: RollBack, Workload: agent, ToRevision: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Prediction
			if g := [...]int{len(got.Now), len(got.Then), len(got.OutOfReach), len(got.NeverBack), got.Untouched}; g != [...]int{test.now, test.then, test.cannot, test.never, test.left} {
				t.Errorf("now, then, out of reach, never back, untouched: %v\n%s", g, all(got))
			}
			for _, s := range test.says {
				if !strings.Contains(all(got), s) {
					t.Errorf("does not say %q:\n%s", s, all(got))
				}
			}
			for _, s := range test.silentOn {
				if strings.Contains(all(got), s) {
					t.Errorf("says %q:\n%s", s, all(got))
				}
			}
		})
	}
}
