package sim

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestRolloutWhosePodsNeverBecomeReadyHaltsByItself(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10, programs: map[string]Program{newImage: NeverReady("connection refused")}})
	l.change(image(newImage))
	l.run(10 * time.Minute)
	if old, new := l.count(has(oldImage), podReady), l.count(has(newImage)); old != 9 || new != 1 {
		t.Errorf("after ten minutes %d old Pods are ready and %d are new, want 9 and 1", old, new)
	}
	if s := l.get().Status; s.NumberUnavailable != 1 || s.UpdatedNumberScheduled != 1 || s.ObservedGeneration != l.get().Generation {
		t.Errorf("status is %+v", s)
	}
}

// The new revision becomes ready, and its node is lost a while later. With Unknown
// nodes the rollout brakes itself, for their Pods are marked; the number of nodes
// lost is what the controllers of Kubernetes 1.37 lose.
func TestDelayedBreakThatTurnsNodesUnknownIsBraked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		start       time.Duration
		unavailable int32
		spec        func(*appsv1.DaemonSet)
		lost        int
	}{
		{"20 s a step", 20 * time.Second, 1, wildcard, 4},
		{"5 s to start", 5 * time.Second, 1, wildcard, 7},
		{"three at a time", 20 * time.Second, 3, wildcard, 12},
		{"automatic tolerations only", 20 * time.Second, 1, nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 30, timers: exact, programs: map[string]Program{
				oldImage: {StopsIn: Exactly(4 * time.Second), ReadyAfter: Exactly(time.Second)},
				newImage: Program{ReadyAfter: Exactly(c.start - time.Second), StopsIn: Exactly(4 * time.Second)}.
					With(CutsNetwork(Exactly(5*time.Second), "")),
			}, spec: func(ds *appsv1.DaemonSet) {
				budget(ds, intstr.FromInt32(c.unavailable), intstr.FromInt32(0))
				if c.spec != nil {
					c.spec(ds)
				}
			}})
			l.change(image(newImage))
			l.run(6 * time.Minute)
			if lost := l.nodesWith(corev1.ConditionUnknown); lost != c.lost {
				t.Errorf("%d nodes were lost, want %d", lost, c.lost)
			}
			s := l.get().Status
			if c.spec == nil && (s.DesiredNumberScheduled != 26 || s.UpdatedNumberScheduled != 0 || s.NumberUnavailable != 0 || s.NumberMisscheduled != 4) {
				t.Errorf("without a toleration of its own the lost nodes leave every counter but one: %+v", s)
			}
		})
	}
}

func TestBreakThatLeavesTheKubeletAliveIsNotBraked(t *testing.T) {
	t.Parallel()
	for _, tolerates := range []bool{true, false} {
		t.Run(fmt.Sprintf("tolerates everything %v", tolerates), func(t *testing.T) {
			t.Parallel()
			spec := func(*appsv1.DaemonSet) {}
			if tolerates {
				spec = wildcard
			}
			l := newLab(t, setup{nodes: 30, zones: 3, spec: spec, programs: map[string]Program{
				newImage: Program{ReadyAfter: Exactly(5 * time.Second)}.With(BreaksCNI(Between(3*time.Second, 9*time.Second), "")),
			}})
			l.change(image(newImage))
			l.run(9 * time.Minute)
			if n := l.nodesWith(corev1.ConditionFalse); n != 30 {
				t.Errorf("%d of 30 nodes are lost", n)
			}
			s := l.get().Status
			if tolerates && s.UpdatedNumberScheduled != 30 || !tolerates && (s.DesiredNumberScheduled != 0 || s.NumberMisscheduled != 30) {
				t.Errorf("status is %+v", s)
			}
			if n := l.count(podReady); n != 30 {
				t.Errorf("%d Pods are ready: a kubelet that lives leaves them so", n)
			}
		})
	}
}

func TestRemovalThatTaintsTheNode(t *testing.T) {
	t.Parallel()
	for _, tolerates := range []bool{true, false} {
		t.Run(fmt.Sprintf("tolerates everything %v", tolerates), func(t *testing.T) {
			t.Parallel()
			spec := func(*appsv1.DaemonSet) {}
			if tolerates {
				spec = wildcard
			}
			l := newLab(t, setup{nodes: 10, timers: exact, spec: func(ds *appsv1.DaemonSet) {
				spec(ds)
				long := int64(60)
				ds.Spec.Template.Spec.TerminationGracePeriodSeconds = &long
			}, programs: map[string]Program{
				oldImage: Program{StopsIn: Exactly(20 * time.Second)}.With(RemovalBreaksCNI("")),
				newImage: NeverReady("no network"),
			}})
			l.change(image(newImage))
			l.run(9 * time.Minute)
			s := l.get().Status
			if tolerates {
				if n := l.nodesWith(corev1.ConditionFalse); n != 1 {
					t.Errorf("%d nodes are lost, want 1 and a halt", n)
				}
				return
			}
			if n := len(l.pods()); n != 0 || s.DesiredNumberScheduled != 0 {
				t.Errorf("%d Pods are left, status %+v; want none, and no node wanted", n, s)
			}
			// Undo does not reach nodes that the DaemonSet no longer counts.
			l.undo()
			l.run(5 * time.Minute)
			if n := len(l.pods()); n != 0 {
				t.Errorf("undo made %d Pods on nodes whose taint is not tolerated", n)
			}
		})
	}
}

func TestOldPodsThatAreUnreadyAreReplacedWithoutBudget(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10, programs: map[string]Program{newImage: NeverReady("x")}})
	for _, p := range l.pods()[:6] {
		l.world.Host(p.Spec.NodeName).FailProbe(p.Namespace, p.Name, "peer is down")
	}
	l.run(30 * time.Second)
	l.change(image(newImage))
	l.run(time.Second)
	if n := l.count(terminating); n != 6 {
		t.Errorf("the first sync deleted %d Pods, want 6", n)
	}
}

func TestUpdateWhilePodsAreTooYoungReplacesAllAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		after time.Duration
		want  int
	}{{"a minute after they became ready", time.Minute, 10}, {"after ten minutes", 11 * time.Minute, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 10, programs: map[string]Program{"registry.example/agent:3": NeverReady("x")}})
			l.change(func(ds *appsv1.DaemonSet) {
				image(newImage)(ds)
				ds.Spec.MinReadySeconds = 600
				budget(ds, intstr.FromString("100%"), intstr.FromInt32(0))
			})
			l.run(time.Minute + c.after)
			if n := l.count(has(newImage), podReady); n != 10 {
				t.Fatalf("%d Pods are ready", n)
			}
			l.change(func(ds *appsv1.DaemonSet) { budget(ds, intstr.FromInt32(1), intstr.FromInt32(0)) })
			l.run(time.Second)
			l.change(image("registry.example/agent:3"))
			l.run(time.Second)
			if n := l.count(terminating); n != c.want {
				t.Errorf("the first sync deleted %d Pods, want %d", n, c.want)
			}
		})
	}
}

// freezeAt lets a rollout run until so many Pods are new and ready, and holds it.
func (l *lab) freezeAt(updated int) {
	l.t.Helper()
	for range 600 {
		if l.count(has(newImage), podReady) >= updated {
			l.change(func(ds *appsv1.DaemonSet) {
				ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
			})
			l.run(20 * time.Second)
			return
		}
		l.run(time.Second)
	}
	l.t.Fatal("the rollout does not move")
}

func TestUndoWithUnreachableNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unavailable int32
		stuck       int // new Pods that are never rolled back although they are ready
	}{{1, 1}, {3, 0}} {
		t.Run(fmt.Sprintf("maxUnavailable %d", c.unavailable), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 10, timers: exact, spec: wildcard, programs: map[string]Program{newImage: {ReadyAfter: Exactly(5 * time.Second)}}})
			l.change(image(newImage))
			l.freezeAt(5)
			updated := l.count(has(newImage))
			lost := 0
			for _, p := range l.pods() {
				if has(newImage)(p) && lost < 2 {
					l.world.Host(p.Spec.NodeName).CutOff()
					lost++
				}
			}
			l.run(2 * time.Minute)
			l.change(func(ds *appsv1.DaemonSet) {
				budget(ds, intstr.FromInt32(c.unavailable), intstr.FromInt32(0))
				image(oldImage)(ds)
			})
			l.run(10 * time.Minute)
			if n := l.count(terminating); n != 2 {
				t.Errorf("%d Pods are Terminating, want the 2 of the lost nodes", n)
			}
			want := (updated - 2) * c.stuck
			if n := l.count(has(newImage), not(terminating)); n != want {
				t.Errorf("%d new Pods were not rolled back, want %d", n, want)
			}
			var numbers []int64
			for _, r := range l.world.revisions.all() {
				numbers = append(numbers, r.Revision)
			}
			if len(numbers) != 2 || max(numbers[0], numbers[1]) != 3 {
				t.Errorf("revisions are numbered %v, want the old one to be 3 now", numbers)
			}
		})
	}
}

func TestNarrowedSelectorDeletesEverywhereAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10})
	l.change(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{"canary": "true"} })
	l.run(time.Second)
	if n := l.count(terminating); n != 10 {
		t.Errorf("the first sync deleted %d Pods, want 10", n)
	}
}

func TestPercentagesRoundUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		percent     string
		nodes, want int
	}{{"25%", 50, 13}, {"25%", 10, 3}, {"25%", 12, 3}, {"1%", 3, 1}} {
		s := &daemonSync{ds: testDaemonSet()}
		budget(s.ds, intstr.FromString(c.percent), intstr.FromInt32(0))
		if _, n := s.budget(c.nodes); n != c.want {
			t.Errorf("%s of %d is %d, want %d", c.percent, c.nodes, n, c.want)
		}
		budget(s.ds, intstr.FromInt32(0), intstr.FromString(c.percent))
		if n, _ := s.budget(c.nodes); n != c.want {
			t.Errorf("maxSurge %s of %d is %d, want %d", c.percent, c.nodes, n, c.want)
		}
	}
}

func TestCountersOfNodesThatAreNotReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		spec                 func(*appsv1.DaemonSet)
		desired, misschedule int32
	}{{"automatic tolerations", func(*appsv1.DaemonSet) {}, 8, 2}, {"tolerates everything", wildcard, 10, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 10, timers: exact, spec: c.spec})
			l.world.Host("node-000").BreakCNI()
			l.world.Host("node-001").CutOff()
			l.run(2 * time.Minute)
			if s := l.get().Status; s.DesiredNumberScheduled != c.desired || s.NumberMisscheduled != c.misschedule {
				t.Errorf("desired %d, misscheduled %d; want %d, %d", s.DesiredNumberScheduled, s.NumberMisscheduled, c.desired, c.misschedule)
			}
		})
	}
}

func TestOnDeleteHoldsAndRollingUpdateGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10})
	l.change(func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		image(newImage)(ds)
	})
	l.run(time.Minute)
	if n := l.count(has(oldImage), not(terminating)); n != 10 {
		t.Errorf("%d old Pods are left under OnDelete, want 10", n)
	}
	revisions := len(l.world.revisions.all())
	l.change(func(ds *appsv1.DaemonSet) { budget(ds, intstr.FromInt32(2), intstr.FromInt32(0)) })
	l.run(time.Second)
	if n := l.count(terminating); n != 2 {
		t.Errorf("RollingUpdate deleted %d at once, want 2", n)
	}
	if n := len(l.world.revisions.all()); n != revisions {
		t.Errorf("the change of strategy made %d revisions out of %d", n, revisions)
	}
}

func TestDeadNodeHoldsTheBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                     string
		spec                     func(*appsv1.DaemonSet)
		unavailable, misschedule int32
	}{{"automatic tolerations", func(*appsv1.DaemonSet) {}, 0, 1}, {"tolerates everything", wildcard, 1, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 10, timers: exact, spec: c.spec})
			l.world.Host("node-003").Die()
			l.run(2 * time.Minute)
			l.change(image(newImage))
			l.run(4 * time.Minute)
			s := l.get().Status
			if s.UpdatedNumberScheduled != 0 || s.NumberUnavailable != c.unavailable || s.NumberMisscheduled != c.misschedule {
				t.Errorf("updated %d, unavailable %d, misscheduled %d; want 0, %d, %d",
					s.UpdatedNumberScheduled, s.NumberUnavailable, s.NumberMisscheduled, c.unavailable, c.misschedule)
			}
			if n := l.count(terminating); n != 1 {
				t.Errorf("%d Pods are Terminating, want that of the dead node", n)
			}
		})
	}
}

func TestMinReadySecondsLimitsADelayedBreak(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minReady int32
		lost     int
	}{{0, 4}, {30, 2}, {90, 1}} {
		t.Run(fmt.Sprintf("%d s", c.minReady), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 30, timers: exact, programs: map[string]Program{
				oldImage: {StopsIn: Exactly(4 * time.Second), ReadyAfter: Exactly(time.Second)},
				newImage: Program{ReadyAfter: Exactly(19 * time.Second)}.With(CutsNetwork(Exactly(5*time.Second), "")),
			}, spec: func(ds *appsv1.DaemonSet) {
				wildcard(ds)
				ds.Spec.MinReadySeconds = c.minReady
			}})
			l.change(image(newImage))
			l.run(6 * time.Minute)
			if lost := l.nodesWith(corev1.ConditionUnknown); lost != c.lost {
				t.Errorf("%d nodes were lost, want %d", lost, c.lost)
			}
		})
	}
}

func TestCrashLoopWithoutProbeLeaksBeyondTheBudget(t *testing.T) {
	t.Parallel()
	crash := Fails(Exactly(5*time.Second), 1)
	updated := func(minReady int32) int {
		l := newLab(t, setup{nodes: 10, programs: map[string]Program{newImage: crash}, spec: func(ds *appsv1.DaemonSet) {
			ds.Spec.MinReadySeconds = minReady
			ds.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
		}})
		l.change(image(newImage))
		l.run(20 * time.Minute)
		return l.count(has(newImage))
	}
	if n := updated(0); n < 2 {
		t.Errorf("%d node got the crashing revision: a container without a probe is ready at each start, so it should leak", n)
	}
	if n := updated(30); n != 1 {
		t.Errorf("with minReadySeconds %d nodes got it, want 1", n)
	}
}

func TestSurgeKeepsTheOldPodServing(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10, programs: map[string]Program{newImage: NeverReady("x")}, spec: func(ds *appsv1.DaemonSet) {
		budget(ds, intstr.FromInt32(0), intstr.FromInt32(1))
	}})
	l.change(image(newImage))
	l.run(10 * time.Minute)
	if old, new := l.count(has(oldImage), podReady), l.count(has(newImage)); old != 10 || new != 1 {
		t.Fatalf("%d old Pods serve beside %d new ones, want 10 and 1", old, new)
	}
	if s := l.get().Status; s.UpdatedNumberScheduled != 0 {
		t.Errorf("updatedNumberScheduled is %d: the old Pod speaks for its node", s.UpdatedNumberScheduled)
	}
	surged := ""
	for _, p := range l.pods() {
		if has(newImage)(p) {
			surged = pinnedTo(p)
		}
	}
	unready := 0
	for _, p := range l.pods() {
		if has(oldImage)(p) && p.Spec.NodeName != surged && unready < 3 {
			l.world.Host(p.Spec.NodeName).FailProbe(p.Namespace, p.Name, "peer is down")
			unready++
		}
	}
	l.run(2 * time.Minute)
	if n := l.count(has(newImage)); n != 4 {
		t.Errorf("%d nodes have new Pods, want 4: those of unready old ones come beyond maxSurge", n)
	}
}

func TestUndoLeavesPodsOfTheTargetRevisionAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 10})
	before := map[string]bool{}
	l.change(image(newImage))
	l.freezeAt(3)
	for _, p := range l.pods() {
		if has(oldImage)(p) && !terminating(p) {
			before[p.Name] = true
		}
	}
	l.change(func(ds *appsv1.DaemonSet) {
		image(oldImage)(ds)
		budget(ds, intstr.FromInt32(1), intstr.FromInt32(0))
	})
	l.run(10 * time.Minute)
	if n := l.count(has(oldImage), podReady); n != 10 {
		t.Fatalf("%d Pods are back on the old revision", n)
	}
	kept := 0
	for _, p := range l.pods() {
		if before[p.Name] {
			kept++
		}
	}
	if kept != len(before) || kept > 7 {
		t.Errorf("%d of %d Pods that had the target revision kept their names", kept, len(before))
	}
}

// A stored revision of the same meaning and other bytes is not found again: a new
// one is recorded, and no Pod is touched, for the generation's label still matches.
func TestRevisionWithOtherBytesIsRecordedAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 5})
	names := map[string]bool{}
	for _, p := range l.pods() {
		names[p.Name] = true
	}
	r := l.world.revisions.all()[0].DeepCopy()
	if err := l.store.Delete(l.world.revisions.resource, r.Namespace, r.Name, nil); err != nil {
		t.Fatal(err)
	}
	r.ResourceVersion = ""
	r.Data.Raw = append([]byte(`{"metadata":{"creationTimestamp":null},`), r.Data.Raw[1:]...)
	l.create(r)
	l.change(func(ds *appsv1.DaemonSet) { ds.Labels = map[string]string{"touched": "yes"} })
	l.run(time.Minute)
	s := l.get().Status
	if s.CollisionCount == nil || *s.CollisionCount != 1 || len(l.world.revisions.all()) != 2 || s.UpdatedNumberScheduled != 5 {
		t.Errorf("status %+v with %d revisions; want one collision, two revisions, 5 updated", s, len(l.world.revisions.all()))
	}
	for _, p := range l.pods() {
		if !names[p.Name] {
			t.Errorf("Pod %s was made: nothing should have been replaced", p.Name)
		}
	}
}

// Updated nodes make old Pods elsewhere unready: those are replaced regardless of
// the budget.
func TestAvalancheOfUnreadyOldPods(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 30, programs: map[string]Program{newImage: NeverReady("no peer")}})
	l.change(image(newImage))
	l.run(30 * time.Second)
	for _, p := range l.pods() {
		if has(oldImage)(p) {
			l.world.Host(p.Spec.NodeName).FailProbe(p.Namespace, p.Name, "peer is down")
		}
	}
	l.run(10 * time.Second)
	if n := l.count(has(newImage), not(podReady)); n < 29 {
		t.Errorf("%d new Pods are unready ten seconds later, want at least 29", n)
	}
}

func TestFailedPodIsReplacedWithBackoff(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 2})
	fail := func() {
		p := l.podOn("node-000").DeepCopy()
		p.Status.Phase = corev1.PodFailed
		if _, err := l.store.UpdateStatus("test", p); err != nil {
			t.Fatal(err)
		}
	}
	first := l.podOn("node-000").Name
	fail()
	l.run(5 * time.Second)
	if l.podOn("node-000").Name == first || len(l.events("FailedDaemonPod")) != 1 {
		t.Errorf("the failed Pod is not replaced, or no event tells of it: %v", l.events("FailedDaemonPod"))
	}
}

func TestDaemonSetEventsAreCombinedAndDropped(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 40, seed: 3, spec: wildcard})
	before := len(l.events("SuccessfulCreate"))
	if before > 12 {
		t.Errorf("%d events tell of 40 Pods created at once", before)
	}
	l.change(image(newImage))
	l.run(8 * time.Minute)
	if n := l.get().Status.UpdatedNumberScheduled; n != 40 {
		t.Fatalf("%d nodes are updated", n)
	}
	created, deleted := l.events("SuccessfulCreate"), l.events("SuccessfulDelete")
	if n := len(created) + len(deleted); n == 0 || n > 20 {
		t.Errorf("%d events tell of 80 changes, want no more than 9 of each reason and their combination", n)
	}
}

func TestUndoMendsNodesWhoseKubeletsLiveOneByOne(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 6, spec: wildcard, programs: map[string]Program{
		oldImage: Program{ReadyAfter: Exactly(3 * time.Second)}.With(WritesCNI(Exactly(time.Second), "")),
		newImage: Program{ReadyAfter: Exactly(3 * time.Second)}.With(BreaksCNI(Exactly(3*time.Second), "")),
	}})
	l.change(image(newImage))
	l.run(3 * time.Minute)
	if n := l.nodesWith(corev1.ConditionFalse); n != 6 {
		t.Fatalf("%d of 6 nodes are down", n)
	}
	l.undo()
	most := 0
	for range 120 {
		l.run(time.Second)
		most = max(most, l.count(not(podReady)))
	}
	if n := l.nodesWith(corev1.ConditionTrue); n != 6 || most > 1 {
		t.Errorf("%d nodes are up again, with up to %d Pods unready at once; want 6 and 1", n, most)
	}
}
