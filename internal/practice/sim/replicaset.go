package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// createPod makes a Pod from a controller's template.
// Source: pkg/controller/controller_utils.go, GetPodFromTemplate.
func (w *World) createPod(t *corev1.PodTemplateSpec, owner metav1.Object, kind schema.GroupVersionKind) (*corev1.Pod, error) {
	return w.pods.create(controllerManager, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), GenerateName: owner.GetName() + "-",
			Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: *t.Spec.DeepCopy(),
	})
}

// replicaSetController keeps as many Pods as asked for. Pods that are being
// deleted count as gone.
type replicaSetController struct {
	w        *World
	queue    *workqueue
	recorder *recorder
}

func newReplicaSetController(w *World) *replicaSetController {
	c := &replicaSetController{w: w, recorder: w.newRecorder("replicaset-controller", "")}
	c.queue = w.newQueue(20*time.Millisecond, c.sync)
	w.replicaSets.watch(func(_, new *appsv1.ReplicaSet) {
		if new != nil {
			c.queue.add(keyOf(new))
		}
	})
	w.pods.watch(func(old, new *corev1.Pod) {
		p := new
		if p == nil {
			p = old
		}
		if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == "ReplicaSet" {
			c.queue.add(key(p.Namespace, ref.Name))
		}
	})
	return c
}

func (c *replicaSetController) sync(k string) {
	rs := c.w.replicaSets.get(k)
	if rs == nil || rs.DeletionTimestamp != nil {
		return
	}
	failed := c.scale(rs)
	pods := c.active(rs)
	n := appsv1.ReplicaSetStatus{Replicas: int32(len(pods)), ObservedGeneration: rs.Generation, Conditions: failed}
	now := c.w.now()
	for _, p := range pods {
		if p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] {
			n.FullyLabeledReplicas++
		}
		if podReady(p) {
			n.ReadyReplicas++
			if podAvailable(p, rs.Spec.MinReadySeconds, now) {
				n.AvailableReplicas++
			}
		}
	}
	if n.ReadyReplicas != n.AvailableReplicas {
		c.queue.addAfter(k, time.Duration(rs.Spec.MinReadySeconds)*time.Second)
	}
	_, _ = c.w.replicaSets.updateStatus(controllerManager, k, func(rs *appsv1.ReplicaSet) bool {
		if equality.Semantic.DeepEqual(rs.Status, n) {
			return false
		}
		rs.Status = n
		return true
	})
}

func (c *replicaSetController) active(rs *appsv1.ReplicaSet) []*corev1.Pod {
	return slices.DeleteFunc(c.w.pods.by(c.w.podsByOwner, string(rs.UID)), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || podTerminal(p)
	})
}

// scale creates or deletes Pods; it returns the conditions of a failure.
func (c *replicaSetController) scale(rs *appsv1.ReplicaSet) []appsv1.ReplicaSetCondition {
	pods := c.active(rs)
	surplus := len(pods) - int(*rs.Spec.Replicas)
	for ; surplus < 0; surplus++ {
		p, err := c.w.createPod(&rs.Spec.Template, rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		if err != nil {
			c.recorder.event(refApps("ReplicaSet", rs), corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			c.queue.addAfter(keyOf(rs), 5*time.Second)
			return []appsv1.ReplicaSetCondition{{
				Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
				Message: err.Error(), LastTransitionTime: metav1.NewTime(c.w.now()),
			}}
		}
		c.recorder.event(refApps("ReplicaSet", rs), corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", p.Name)
	}
	// Unbound and unready Pods go first, then the youngest.
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			boolFirst(a.Spec.NodeName == "", b.Spec.NodeName == ""),
			boolFirst(!podReady(a), !podReady(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	for _, p := range pods[:max(surplus, 0)] {
		if c.w.pods.remove(p, nil) == nil {
			c.recorder.event(refApps("ReplicaSet", rs), corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %s", p.Name)
		}
	}
	return nil
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
