package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	templateHashLabel  = appsv1.DefaultDeploymentUniqueLabelKey
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// deploymentController is enough for rolling Deployments: a ReplicaSet for every
// template, scaled up within maxSurge and down within maxUnavailable, with
// revision numbers, conditions and the progress deadline. It leaves out Recreate,
// pausing and proportional scaling.
// Source: pkg/controller/deployment.
type deploymentController struct {
	w        *World
	queue    *workqueue
	recorder *recorder
}

func newDeploymentController(w *World) *deploymentController {
	c := &deploymentController{w: w, recorder: w.newRecorder("deployment-controller", "")}
	c.queue = w.newQueue(20*time.Millisecond, c.sync)
	w.deployments.watch(func(_, new *appsv1.Deployment) {
		if new != nil {
			c.queue.add(keyOf(new))
		}
	})
	w.replicaSets.watch(func(old, new *appsv1.ReplicaSet) {
		rs := new
		if rs == nil {
			rs = old
		}
		if ref := metav1.GetControllerOfNoCopy(rs); ref != nil && ref.Kind == "Deployment" {
			c.queue.add(key(rs.Namespace, ref.Name))
		}
	})
	return c
}

func (c *deploymentController) sync(k string) {
	d := c.w.deployments.get(k)
	if d == nil || d.DeletionTimestamp != nil || d.Spec.Paused {
		return
	}
	var current *appsv1.ReplicaSet
	var old []*appsv1.ReplicaSet
	highest := 0
	for _, rs := range c.w.replicaSets.all() {
		if ownerUID(rs) != string(d.UID) {
			continue
		}
		n, _ := strconv.Atoi(rs.Annotations[revisionAnnotation])
		highest = max(highest, n)
		if sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			current = rs
		} else {
			old = append(old, rs)
		}
	}
	if current = c.ensure(d, current, highest); current == nil {
		return
	}
	c.roll(d, current, old)
	c.updateStatus(k, keyOf(current), old)
}

// sameTemplate compares without the label that a ReplicaSet adds.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	delete(x.Labels, templateHashLabel)
	delete(y.Labels, templateHashLabel)
	return equality.Semantic.DeepEqual(x, y)
}

// ensure gives the current template a ReplicaSet with the highest revision number.
func (c *deploymentController) ensure(d *appsv1.Deployment, current *appsv1.ReplicaSet, highest int) *appsv1.ReplicaSet {
	if current == nil {
		data, _ := json.Marshal(&d.Spec.Template)
		hash := templateHash(data, d.Status.CollisionCount)
		t := d.Spec.Template.DeepCopy()
		t.Labels = withLabel(t.Labels, templateHashLabel, hash)
		selector := d.Spec.Selector.DeepCopy()
		selector.MatchLabels = withLabel(selector.MatchLabels, templateHashLabel, hash)
		highest++
		rs, err := c.w.replicaSets.create(controllerManager, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: t.Labels,
				Annotations:     withLabel(nil, revisionAnnotation, strconv.Itoa(highest)),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *t},
		})
		if err != nil {
			c.recorder.event(refApps("Deployment", d), corev1.EventTypeWarning, "ReplicaSetCreateError", "Failed to create new replica set %q: %v", d.Name+"-"+hash, err)
			return nil
		}
		current = rs
	}
	n, _ := strconv.Atoi(current.Annotations[revisionAnnotation])
	if n < highest {
		n = highest + 1
		current, _ = c.w.replicaSets.update(controllerManager, keyOf(current), func(rs *appsv1.ReplicaSet) bool {
			rs.Annotations = withLabel(rs.Annotations, revisionAnnotation, strconv.Itoa(n))
			return true
		})
	}
	_, _ = c.w.deployments.update(controllerManager, keyOf(d), func(d *appsv1.Deployment) bool {
		changed := d.Annotations[revisionAnnotation] != strconv.Itoa(n)
		d.Annotations = withLabel(d.Annotations, revisionAnnotation, strconv.Itoa(n))
		return changed
	})
	return current
}

func withLabel(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[k] = v
	return out
}

// roll scales the new ReplicaSet up within the surge, then old ones down as far as
// enough Pods stay available; Pods of old ones that are not available go first.
func (c *deploymentController) roll(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	wanted := int(*d.Spec.Replicas)
	surge, unavailable := rolloutBudget(d)
	total, available := int(*current.Spec.Replicas), int(current.Status.AvailableReplicas)
	for _, rs := range old {
		total += int(*rs.Spec.Replicas)
		available += int(rs.Status.AvailableReplicas)
	}
	if up := min(wanted+surge-total, wanted-int(*current.Spec.Replicas)); up > 0 {
		c.scale(d, current, int(*current.Spec.Replicas)+up)
		return
	}
	if int(*current.Spec.Replicas) > wanted {
		c.scale(d, current, wanted)
		return
	}
	newUnavailable := int(*current.Spec.Replicas) - int(current.Status.AvailableReplicas)
	down := total - (wanted - unavailable) - newUnavailable
	if down <= 0 {
		return
	}
	for _, rs := range old {
		bad := min(int(*rs.Spec.Replicas)-int(rs.Status.AvailableReplicas), down)
		if bad > 0 {
			c.scale(d, rs, int(*rs.Spec.Replicas)-bad)
			return
		}
	}
	down = available - (wanted - unavailable)
	for _, rs := range old {
		if n := min(int(*rs.Spec.Replicas), down); n > 0 {
			c.scale(d, rs, int(*rs.Spec.Replicas)-n)
			return
		}
	}
}

// rolloutBudget resolves the strategy: maxSurge rounds up, maxUnavailable down, and
// both 0 means one unavailable.
func rolloutBudget(d *appsv1.Deployment) (surge, unavailable int) {
	wanted := int(*d.Spec.Replicas)
	quarter := intstr.FromString("25%")
	up, down := &quarter, &quarter
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		if r.MaxSurge != nil {
			up = r.MaxSurge
		}
		if r.MaxUnavailable != nil {
			down = r.MaxUnavailable
		}
	}
	surge, _ = intstr.GetScaledValueFromIntOrPercent(up, wanted, true)
	unavailable, _ = intstr.GetScaledValueFromIntOrPercent(down, wanted, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, wanted)
}

func (c *deploymentController) scale(d *appsv1.Deployment, rs *appsv1.ReplicaSet, to int) {
	from := int(*rs.Spec.Replicas)
	verb := "up"
	if to < from {
		verb = "down"
	}
	_, err := c.w.replicaSets.update(controllerManager, keyOf(rs), func(rs *appsv1.ReplicaSet) bool {
		n := int32(to)
		rs.Spec.Replicas = &n
		return true
	})
	if err == nil {
		c.recorder.event(refApps("Deployment", d), corev1.EventTypeNormal, "ScalingReplicaSet",
			"Scaled %s replica set %s from %d to %d", verb, rs.Name, from, to)
	}
}

func (c *deploymentController) updateStatus(k, currentKey string, old []*appsv1.ReplicaSet) {
	current := c.w.replicaSets.get(currentKey)
	_, _ = c.w.deployments.updateStatus(controllerManager, k, func(d *appsv1.Deployment) bool {
		n := appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: current.Status.Replicas, UpdatedReplicas: current.Status.Replicas,
			ReadyReplicas: current.Status.ReadyReplicas, AvailableReplicas: current.Status.AvailableReplicas,
			CollisionCount: d.Status.CollisionCount,
		}
		for _, rs := range old {
			n.Replicas += rs.Status.Replicas
			n.ReadyReplicas += rs.Status.ReadyReplicas
			n.AvailableReplicas += rs.Status.AvailableReplicas
		}
		n.UnavailableReplicas = max(*d.Spec.Replicas-n.AvailableReplicas, 0)
		n.Conditions = c.conditions(k, d, &n, current.Name)
		if equality.Semantic.DeepEqual(d.Status, n) {
			return false
		}
		d.Status = n
		return true
	})
}

func (c *deploymentController) conditions(k string, d *appsv1.Deployment, n *appsv1.DeploymentStatus, rs string) []appsv1.DeploymentCondition {
	now := metav1.NewTime(c.w.now())
	_, unavailable := rolloutBudget(d)
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.",
	}
	if int(n.AvailableReplicas) < int(*d.Spec.Replicas)-unavailable {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		available.Message = "Deployment does not have minimum availability."
	}
	wanted := *d.Spec.Replicas
	complete := n.UpdatedReplicas == wanted && n.Replicas == wanted && n.AvailableReplicas == wanted
	old := deploymentCondition(d, appsv1.DeploymentProgressing)
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	deadline := 600 * time.Second
	if d.Spec.ProgressDeadlineSeconds != nil {
		deadline = time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
	}
	moved := n.UpdatedReplicas > d.Status.UpdatedReplicas || n.ReadyReplicas > d.Status.ReadyReplicas ||
		n.AvailableReplicas > d.Status.AvailableReplicas || n.Replicas-n.UpdatedReplicas < d.Status.Replicas-d.Status.UpdatedReplicas
	started := d.Status.ObservedGeneration != d.Generation
	switch {
	case complete:
		progressing.Reason, progressing.Message = "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", rs)
	case old == nil || moved || started:
		progressing.Reason, progressing.Message = "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", rs)
		progressing.LastUpdateTime = now
		c.queue.addAfter(k, deadline+time.Second)
	case old.Reason == "NewReplicaSetAvailable": // Pods that die later are no matter of progress
		progressing = *old
	case now.Sub(old.LastUpdateTime.Time) > deadline:
		progressing.Status, progressing.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
		progressing.Message = fmt.Sprintf("ReplicaSet %q has timed out progressing.", rs)
	default:
		progressing = *old
	}
	return []appsv1.DeploymentCondition{
		carryTimes(deploymentCondition(d, appsv1.DeploymentAvailable), available, now),
		carryTimes(old, progressing, now),
	}
}

func deploymentCondition(d *appsv1.Deployment, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == t {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func carryTimes(old *appsv1.DeploymentCondition, c appsv1.DeploymentCondition, now metav1.Time) appsv1.DeploymentCondition {
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
		if old.Reason == c.Reason && c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = old.LastUpdateTime
		}
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = now
	}
	if c.LastUpdateTime.IsZero() {
		c.LastUpdateTime = now
	}
	return c
}
