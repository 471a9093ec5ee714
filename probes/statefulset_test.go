package probes

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// replica is one Pod of a StatefulSet, in times after its revision was made; ready
// is negative for one that never was Ready.
type replica struct {
	n              int
	revision       string
	created, ready time.Duration
	lost           bool // it was Ready and is not any more
}

func TestAStatefulSetsRolloutIsCompleteOnceItsReplicasWereThere(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	const sec, min, hour, never = time.Second, time.Minute, time.Hour, -1
	type revision struct {
		name   string
		number int64
		age    time.Duration
	}
	one := func(age time.Duration) []revision { return []revision{{"db-a", 1, age}} }
	for name, c := range map[string]struct {
		want              int32
		update, current   string
		parallel          bool
		partition, offset int32
		onDelete          bool
		revisions         []revision
		pods              []replica
		noPods            bool // they were not read
		state             report.RolloutState
	}{
		"all are Ready": {want: 2, update: "db-a", current: "db-a", revisions: one(hour), pods: []replica{{0, "db-a", 0, 20 * sec, false}, {1, "db-a", 21 * sec, 40 * sec, false}}, state: report.Complete},
		"the first rollout starts its second Pod": {want: 3, update: "db-a", current: "db-a", revisions: one(min), state: report.Progressing,
			pods: []replica{{0, "db-a", sec, 30 * sec, false}, {1, "db-a", 31 * sec, never, false}}},
		"the first rollout's first Pod never started": {want: 3, update: "db-a", current: "db-a", revisions: one(hour), state: report.Stuck,
			pods: []replica{{0, "db-a", sec, never, false}}},
		"the first rollout cannot make its next Pod": {want: 2, update: "db-a", current: "db-a", revisions: one(min), state: report.Progressing,
			pods: []replica{{0, "db-a", sec, 30 * sec, false}}},
		"in parallel, all start": {want: 2, update: "db-a", current: "db-a", parallel: true, revisions: one(min), state: report.Progressing,
			pods: []replica{{0, "db-a", sec, never, false}, {1, "db-a", sec, 30 * sec, false}}},
		"in parallel, a Pod was replaced": {want: 2, update: "db-a", current: "db-a", parallel: true, revisions: one(hour), state: report.Complete,
			pods: []replica{{0, "db-a", 59 * min, never, false}, {1, "db-a", sec, 30 * sec, false}}},
		"a Pod lost Ready later": {want: 2, update: "db-a", current: "db-a", revisions: one(hour), state: report.Complete,
			pods: []replica{{0, "db-a", 0, 20 * sec, false}, {1, "db-a", 21 * sec, 40 * min, true}}},
		"in order, a lower one was replaced": {want: 2, update: "db-a", current: "db-a", revisions: one(hour), state: report.Complete,
			pods: []replica{{0, "db-a", 59 * min, never, false}, {1, "db-a", 21 * sec, 40 * sec, false}}},
		"in order, a lower one is missing": {want: 3, update: "db-a", current: "db-a", offset: 5, revisions: one(hour), state: report.Complete,
			pods: []replica{{5, "db-a", sec, 10 * sec, false}, {7, "db-a", 41 * sec, 60 * sec, false}}},
		"in order, the last was replaced": {want: 2, update: "db-a", current: "db-a", revisions: one(hour), state: report.Complete,
			pods: []replica{{0, "db-a", sec, 20 * sec, false}, {1, "db-a", 59 * min, never, false}}},
		"a replica was added": {want: 3, update: "db-a", current: "db-a", revisions: one(hour), state: report.Complete,
			pods: []replica{{0, "db-a", sec, 20 * sec, false}, {1, "db-a", 21 * sec, 40 * sec, false}, {2, "db-a", 59 * min, never, false}}},
		"an update was complete, whatever is missing now": {want: 2, update: "db-b", current: "db-b", revisions: []revision{{"db-b", 2, hour}, {"db-a", 1, 9 * hour}}, state: report.Complete,
			pods: []replica{{0, "db-b", 20 * sec, 40 * sec, false}}},
		"an undo goes on": {want: 2, update: "db-a", current: "db-a", revisions: []revision{{"db-a", 3, 9 * hour}, {"db-b", 2, min}}, state: report.Progressing,
			pods: []replica{{0, "db-a", 9*hour - 20*sec, never, false}, {1, "db-b", 9*hour - 30*sec, 9*hour - 10*sec, false}}},
		"an update waits for its last Pod": {want: 2, update: "db-b", current: "db-a", revisions: []revision{{"db-b", 2, min}, {"db-a", 1, hour}}, state: report.Progressing,
			pods: []replica{{0, "db-b", 40 * sec, never, false}, {1, "db-b", sec, 30 * sec, false}}},
		"an update reached its partition": {want: 3, update: "db-b", current: "db-a", partition: 2, revisions: []revision{{"db-b", 2, hour}, {"db-a", 1, 9 * hour}}, state: report.Complete,
			pods: []replica{{0, "db-a", -9 * min, -8 * min, false}, {1, "db-a", -8 * min, -7 * min, false}, {2, "db-b", sec, 20 * sec, false}}},
		"an update did not reach its partition": {want: 3, update: "db-b", current: "db-a", partition: 1, revisions: []revision{{"db-b", 2, min}, {"db-a", 1, 9 * hour}}, state: report.Progressing,
			pods: []replica{{0, "db-a", -9 * min, -8 * min, false}, {1, "db-a", -8 * min, -7 * min, false}, {2, "db-b", sec, 20 * sec, false}}},
		"the partition is beyond the replicas": {want: 1, update: "db-b", current: "db-a", partition: 5, revisions: []revision{{"db-b", 2, min}, {"db-a", 1, 9 * hour}}, state: report.Complete,
			pods: []replica{{0, "db-a", -9 * min, -8 * min, false}}},
		"OnDelete, and old Pods": {want: 1, update: "db-b", current: "db-a", onDelete: true, revisions: []revision{{"db-b", 2, min}, {"db-a", 1, 9 * hour}}, state: report.OnDelete,
			pods: []replica{{0, "db-a", -9 * min, -8 * min, false}}},
		"Pods were not read": {want: 2, update: "db-a", current: "db-a", revisions: one(hour), noPods: true, state: report.Complete,
			pods: []replica{{0, "db-a", sec, 20 * sec, false}}},
		"none wanted": {want: 0, update: "db-a", current: "db-a", revisions: one(hour), state: report.Complete},
	} {
		s := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-20 * hour))},
			Spec: appsv1.StatefulSetSpec{Replicas: &c.want, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &c.partition}}, PodManagementPolicy: appsv1.OrderedReadyPodManagement},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: c.update, CurrentRevision: c.current},
		}
		if c.parallel {
			s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}
		if c.onDelete {
			s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}
		if c.offset > 0 {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: c.offset}
		}
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		o := cluster.Objects{StatefulSets: []*appsv1.StatefulSet{s}}
		began := now
		for _, r := range c.revisions {
			at := now.Add(-r.age)
			o.ControllerRevisions = append(o.ControllerRevisions, &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: r.name, CreationTimestamp: metav1.NewTime(at), OwnerReferences: owner}, Revision: r.number})
			if r.name == c.update {
				began = at
			}
		}
		for _, r := range c.pods {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("db-%d", r.n), CreationTimestamp: metav1.NewTime(began.Add(r.created)),
					OwnerReferences: owner, Labels: map[string]string{cluster.RevisionHash: r.revision}},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "db"}}},
			}
			ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: p.CreationTimestamp}
			if r.ready != never {
				ready.LastTransitionTime = metav1.NewTime(began.Add(r.ready))
				if !r.lost {
					ready.Status = corev1.ConditionTrue
					s.Status.ReadyReplicas++
					s.Status.AvailableReplicas++
				}
			}
			if r.revision == c.update {
				s.Status.UpdatedReplicas++
			}
			s.Status.Replicas++
			p.Status.Conditions = []corev1.PodCondition{ready}
			if !c.noPods {
				o.Pods = append(o.Pods, p)
			}
		}
		snap := cluster.New(o, cluster.Meta{AsOf: now, PodScope: cluster.PodScope{All: !c.noPods}})
		w := Diagnose(snap, Options{All: true}).Report.Workload(report.WorkloadKey{Kind: "StatefulSet", Namespace: "shop", Name: "db"})
		if w == nil || w.Rollout.State != c.state {
			t.Errorf("%s: %v, want %s", name, w.Rollout.State, c.state)
		}
	}
}

func TestAStatefulSetsBudgetIsOneUnlessTheAPIServerKnowsAnother(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"": 1, "2": 2, "30%": 3, "5%": 1, "x": 1} {
		s := &appsv1.StatefulSet{}
		if value != "" {
			v := intstr.Parse(value)
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &v}
		}
		if _, got := statefulSetBudget(s, 10); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}
