package action

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// The names of the cases say what the unmodified DaemonSet controller of 1.37 was
// seen to do in the same situation.
func TestPredictionIsWhatTheControllerDoes(t *testing.T) {
	t.Parallel()
	back := Request{Kind: RollBack, Workload: agent, ToRevision: 1}
	thaw := Request{Kind: Unfreeze, Workload: agent}
	tests := []struct {
		name    string
		request Request
		world   func() *world
		now     int // entries in Now
		then    int
		cannot  int
		never   int
		alone   int // Untouched
		says    []string
	}{
		{
			name:    "a new Pod that never gets Ready halts the rollout: undo replaces that one at once and leaves nine alone",
			request: back,
			world: func() *world {
				w := newWorld(10)
				for i := range 9 {
					w.on(nodeName(i), 1)
				}
				unready(w.podOn("node-10"))
				return w
			},
			now: 1, alone: 9, says: []string{"NOW 1 Pod replaced: they are not available", "LOSES AGENT 0 nodes"},
		},
		{
			name:    "six of ten unready: the first sync deletes all six although the budget is 1",
			request: back,
			world: func() *world {
				w := newWorld(10)
				for i := range 6 {
					unready(w.podOn(nodeName(i)))
				}
				return w
			},
			now: 6, then: 4, says: []string{"NOW 6 Pods replaced: they are not available and do not count", "THEN 4 Pods, 1 at a time"},
		},
		{
			name:    "Pods younger than minReadySeconds are unavailable: the first sync deletes all ten",
			request: back,
			world: func() *world {
				w := newWorld(10)
				w.ds.Spec.MinReadySeconds = 600
				for _, p := range w.pods {
					p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.now.Add(-time.Minute))
				}
				return w
			},
			now: 10, says: []string{"NOW 10 Pods replaced"},
		},
		{
			name:    "two of five updated nodes unreachable, budget 1: undo stalls for ever",
			request: back,
			world:   func() *world { return halfUpdated(1) },
			then:    3, cannot: 2, alone: 5,
			says: []string{"NOW 0 Pods replaced", "THEN 3 Pods wait for ever", "above 2", "CANNOT 2 nodes"},
		},
		{
			name:    "the same with budget 3 proceeds one at a time",
			request: back,
			world:   func() *world { return halfUpdated(3) },
			then:    3, cannot: 2, alone: 5,
			says: []string{"NOW 1 Pod replaced, in any order of nodes: maxUnavailable 3, 2 of it in use", "THEN 2 Pods, 1 at a time: 2 of the maxUnavailable of 3"},
		},
		{
			name:    "a template for no node at all: ten Pods deleted in the first sync with budget 1",
			request: back,
			world: func() *world {
				w := newWorld(10)
				narrow(w, map[string]string{"pool": "none"})
				return w
			},
			now: 10, never: 10, says: []string{"NOW 10 Pods removed at once", "LOSES AGENT 10 nodes"},
		},
		{
			name:    "frozen: 0 Pods, whatever is outdated",
			request: back,
			world: func() *world {
				w := newWorld(10)
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				return w
			},
			then: 10, says: []string{"NOW 0 Pods replaced, frozen", "THEN 10 Pods run another revision"},
		},
		{
			name:    "back to RollingUpdate with budget 2: two at the next sync",
			request: thaw,
			world: func() *world {
				w := newWorld(10)
				for i := range 10 {
					w.on(nodeName(i), 1)
				}
				w.budget(2)
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				return w
			},
			then: 10, says: []string{"NOW 2 Pods replaced", "THEN 8 Pods, 2 at a time"},
		},
		{
			name:    "undo after three of ten: seven Pods keep their names",
			request: back,
			world: func() *world {
				w := newWorld(10)
				for i := range 7 {
					w.on(nodeName(i), 1)
				}
				return w
			},
			then: 3, alone: 7, says: []string{"NOW 1 Pod replaced", "THEN 2 Pods, 1 at a time"},
		},
		{
			name:    "two of four nodes not-ready and without a Pod, not tolerated: they never get one",
			request: back,
			world: func() *world {
				w := newWorld(4)
				for i := range 2 {
					w.remove(nodeName(i))
					w.setReady(nodeName(i), corev1.ConditionFalse)
				}
				return w
			},
			then: 2, never: 2, says: []string{"LOSES AGENT 2 nodes"},
		},
		{
			name:    "a revision without the control plane's toleration takes the agent from all three",
			request: back,
			world: func() *world {
				w := newWorld(6)
				w.ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
				w.revs = w.revs[:1]
				w.revision(2, w.ds.Spec.Template)
				for i := range 3 {
					w.nodeNamed(nodeName(i)).Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
				}
				return w
			},
			then: 6, never: 3, says: []string{"LOSES AGENT 3 nodes"},
		},
		{
			name:    "a revision with a narrower nodeSelector: seven of ten deleted in the first sync",
			request: back,
			world: func() *world {
				w := newWorld(10)
				for i := range 3 {
					w.nodeNamed(nodeName(i)).Labels["pool"] = "a"
				}
				narrow(w, map[string]string{"pool": "a"})
				return w
			},
			now: 7, then: 3, never: 7, says: []string{"NOW 7 Pods removed at once", "LOSES AGENT 7 nodes"},
		},
		{
			name:    "the same while frozen: OnDelete does not hold the clean-up back",
			request: back,
			world: func() *world {
				w := newWorld(10)
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				for i := range 3 {
					w.nodeNamed(nodeName(i)).Labels["pool"] = "a"
				}
				narrow(w, map[string]string{"pool": "a"})
				return w
			},
			now: 7, then: 3, never: 7, says: []string{"NOW 7 Pods removed at once", "NOW 0 Pods replaced, frozen"},
		},
		{
			name:    "a node without a Pod gets one at once, even while frozen",
			request: back,
			world: func() *world {
				w := newWorld(4)
				w.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
				w.remove("node-01")
				return w
			},
			now: 1, then: 3, says: []string{"NOW 1 Pod made from this template"},
		},
		{
			name:    "with maxSurge the unavailable are joined by a new Pod at once, the rest by the surge",
			request: back,
			world: func() *world {
				w := newWorld(10)
				zero, two := intstr.FromInt32(0), intstr.FromInt32(2)
				w.ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &zero, MaxSurge: &two}
				unready(w.podOn("node-01"))
				return w
			},
			now: 1, then: 9, says: []string{"NOW 2 Pods replaced, in any order of nodes: maxSurge 2", "THEN 7 Pods, 2 at a time"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := test.world()
			p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Prediction
			for _, c := range []struct {
				what      string
				got, want int
			}{{"Now", len(got.Now), test.now}, {"Then", len(got.Then), test.then}, {"OutOfReach", len(got.OutOfReach), test.cannot},
				{"NeverBack", len(got.NeverBack), test.never}, {"Untouched", got.Untouched, test.alone}} {
				if c.got != c.want {
					t.Errorf("%s: %d, want %d\n%s", c.what, c.got, c.want, all(got))
				}
			}
			for _, s := range test.says {
				if !strings.Contains(all(got), s) {
					t.Errorf("does not say %q:\n%s", s, all(got))
				}
			}
		})
	}
}

func all(p Prediction) string {
	return fmt.Sprintf("%q\nnow %q\nthen %q\nnever %q", p.Summary, p.Now, p.Then, p.NeverBack)
}

func nodeName(i int) string { return fmt.Sprintf("node-%02d", i+1) }

// halfUpdated: five of ten nodes have revision 2, two of those are unreachable.
func halfUpdated(budget int32) *world {
	w := newWorld(10)
	w.tolerateAll()
	w.budget(budget)
	for i := range 5 {
		w.on(nodeName(i), 1)
	}
	for _, n := range []string{"node-09", "node-10"} {
		w.setReady(n, corev1.ConditionUnknown)
		unready(w.podOn(n))
	}
	return w
}

// narrow gives revision 1 a node selector.
func narrow(w *world, selector map[string]string) {
	t := template("agent:v1")
	t.Spec.NodeSelector = selector
	w.revs = w.revs[1:]
	w.revision(1, t)
}

func TestFreezeInvitesNobodyToDeleteGoodPods(t *testing.T) {
	t.Parallel()
	w := newWorld(5)
	w.on("node-01", 1)
	w.on("node-02", 1)
	p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), Request{Kind: Freeze, Workload: agent})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(all(p.Prediction), "THEN 2 Pods run an earlier revision and stay so; one that is deleted comes back from the present template") {
		t.Error(all(p.Prediction))
	}
}

func TestPredictionSaysUnknownWherePodsWereNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.scope = cluster.PodScope{}
	p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), Request{Kind: Freeze, Workload: agent})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(p.Prediction.Summary); s != "[NOW unknown]" {
		t.Errorf("a prediction without Pods says %s", s)
	}
	if len(p.Prediction.Unknown) == 0 {
		t.Error("what is missing is not said")
	}
}

func TestPredictionCountsImagesThatNodesList(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.nodes[0].Status.Images = []corev1.ContainerImage{{Names: []string{"docker.io/library/agent:v1"}}}
	w.nodes[1].Status.Images = []corev1.ContainerImage{{Names: []string{"agent:v2"}}}
	p, err := Prepare(t.Context(), &fakeAPI{w: w}, w.snapshot(), Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(all(p.Prediction), "IMAGES seen on 1 of 3 nodes") {
		t.Error(all(p.Prediction))
	}
}
