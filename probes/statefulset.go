package probes

import (
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// atOnce is how long the StatefulSet controller needs at most to create the next
// Pod of a rollout. One that came later was added, or replaces one that was lost.
const atOnce = 2 * time.Minute

func (c *Diagnosis) readStatefulSet(s *appsv1.StatefulSet) *replicated {
	r := &replicated{key: report.WorkloadKey{Kind: "StatefulSet", Namespace: report.Clean(s.Namespace), Name: report.Clean(s.Name)}, uid: s.UID, meta: &s.ObjectMeta,
		template: &s.Spec.Template, podsKnown: c.s.PodsKnown(s.UID), want: replicas(s.Spec.Replicas), observed: s.Status.ObservedGeneration >= s.Generation}
	r.onDelete = s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	r.missing = max(r.want-int(s.Status.AvailableReplicas), 0)
	partition := int32(0)
	if ru := s.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil {
		partition = *ru.Partition
	}
	for _, p := range c.s.PodsOf(s.UID) {
		if s.Status.UpdateRevision == "" || p.Labels[cluster.RevisionHash] == s.Status.UpdateRevision {
			r.pods = append(r.pods, p)
		} else {
			r.older = append(r.older, p)
		}
	}
	for _, rev := range c.s.RevisionsOf(s.UID) {
		n := rev.Revision
		if rev.Name == s.Status.UpdateRevision {
			r.rollout.Revision, r.started = &n, rev.CreationTimestamp.Time
		} else if rev.Name == s.Status.CurrentRevision {
			r.rollout.PreviousRevision = &n
		}
	}
	ro := &r.rollout
	ro.Strategy = report.Clean(string(s.Spec.UpdateStrategy.Type))
	ro.MaxUnavailable, ro.MaxUnavailableResolved = statefulSetBudget(s, r.want)
	ro.MinReadySeconds = int(s.Spec.MinReadySeconds)
	ro.Desired, ro.Updated, ro.Ready, ro.Available = r.want, int(s.Status.UpdatedReplicas), int(s.Status.ReadyReplicas), int(s.Status.AvailableReplicas)
	c.finishReplicated(r, r.statefulSetMoves(s, int(partition), c.stored(s)))
	return r
}

// statefulSetBudget is how many Pods the controller takes down at once: one, unless
// the API server knows a maxUnavailable.
// Source: pkg/controller/statefulset/stateful_set_utils.go, getStatefulSetMaxUnavailable.
func statefulSetBudget(s *appsv1.StatefulSet, want int) (report.Text, int) {
	ru := s.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.MaxUnavailable == nil {
		return "1", 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(ru.MaxUnavailable, want, false)
	if err != nil {
		return "1", 1
	}
	return report.Clean(ru.MaxUnavailable.String()), max(n, 1)
}

// statefulSetMoves tells whether a rollout is in progress: Pods that the partition
// lets through have another revision, or replicas that it has not brought up yet.
// Replicas that were there and are lost do not reopen it.
func (r *replicated) statefulSetMoves(s *appsv1.StatefulSet, partition int, settled bool) bool {
	st := s.Status
	updating := st.UpdateRevision != "" && st.UpdateRevision != st.CurrentRevision
	if r.onDelete {
		return updating && int(st.UpdatedReplicas) < r.want
	}
	if updating {
		// Without a partition the controller makes the update current once it is complete.
		return int(st.UpdatedReplicas) < r.want-partition || partition == 0 && int(st.ReadyReplicas) < r.want
	}
	// An undo makes the revision current at once, and Pods of the other one remain.
	for _, p := range r.older {
		if n, ok := ordinal(s, p); ok && n >= partition && n < r.want && p.DeletionTimestamp == nil {
			return true
		}
	}
	return int(st.ReadyReplicas) < r.want && !settled && !r.allThereOnce(s)
}

// stored tells whether the revisions show that the rollout of the present one was
// complete: the controller makes an update current only once every Pod has it and is
// Ready. It does not show where there is no other revision, or where an older one
// was taken again.
// Source: pkg/controller/statefulset/stateful_set_status_updater.go and
// stateful_set_utils.go, completeRollingUpdate.
func (c *Diagnosis) stored(s *appsv1.StatefulSet) bool {
	revisions := c.s.RevisionsOf(s.UID)
	if s.Status.UpdateRevision == "" || s.Status.UpdateRevision != s.Status.CurrentRevision || len(revisions) < 2 || revisions[0].Name != s.Status.UpdateRevision {
		return false
	}
	for _, rev := range revisions[1:] {
		if !rev.CreationTimestamp.Before(&revisions[0].CreationTimestamp) {
			return false
		}
	}
	return true
}

// allThereOnce tells whether each replica that is not Ready was there before, or was
// added after the others had come up. Where Pods were not read it is taken for so:
// what a rollout that is in progress waits for could not be said either.
func (r *replicated) allThereOnce(s *appsv1.StatefulSet) bool {
	if !r.podsKnown {
		return true
	}
	pods, top := make(map[int]*corev1.Pod, len(r.pods)), -1
	for _, p := range r.pods {
		if n, ok := ordinal(s, p); ok {
			pods[n], top = p, max(top, n)
		}
	}
	ordered := s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	before := r.started // when the controller could create the replica at the latest
	for n := range r.want {
		p := pods[n]
		ready := p != nil && cluster.PodReady(p)
		switch {
		case ready, p != nil && wasAvailable(p):
		case ordered && n < top: // else its successor would not be there
		case p == nil:
			return false // it may never have been
		case before.IsZero() || p.CreationTimestamp.Sub(before) <= atOnce+time.Duration(s.Spec.MinReadySeconds)*time.Second:
			return false
		}
		if cond := podReadyCondition(p); ordered && ready && cond != nil {
			before = maxTime(before, cond.LastTransitionTime.Time)
		}
	}
	return true
}

func podReadyCondition(p *corev1.Pod) *corev1.PodCondition {
	if p == nil {
		return nil
	}
	return cluster.PodCondition(p, corev1.PodReady)
}

// ordinal is the number of a StatefulSet's Pod, counted from the first one.
func ordinal(s *appsv1.StatefulSet, p *corev1.Pod) (int, bool) {
	n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil {
		return 0, false
	}
	if s.Spec.Ordinals != nil {
		n -= int(s.Spec.Ordinals.Start)
	}
	return n, n >= 0
}
