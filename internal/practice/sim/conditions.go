package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podCondition(s *corev1.PodStatus, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setPodCondition writes a condition, moving its transition time only when its
// status changes, and tells whether anything changed.
// Source: pkg/api/v1/pod/util.go, UpdatePodCondition.
func setPodCondition(s *corev1.PodStatus, c corev1.PodCondition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now)
	old := podCondition(s, c.Type)
	if old == nil {
		s.Conditions = append(s.Conditions, c)
		return true
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if *old == c {
		return false
	}
	*old = c
	return true
}

func podReady(p *corev1.Pod) bool {
	c := podCondition(&p.Status, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// podAvailable tells whether the Pod is Ready for minReady seconds.
// Source: pkg/api/v1/pod/util.go, IsPodAvailable.
func podAvailable(p *corev1.Pod, minReady int32, now time.Time) bool {
	if !podReady(p) {
		return false
	}
	since := podCondition(&p.Status, corev1.PodReady).LastTransitionTime
	return minReady == 0 || !since.IsZero() && !since.Add(time.Duration(minReady)*time.Second).After(now)
}

func podTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

func nodeCondition(s *corev1.NodeStatus, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// nodeReadiness is the status of the node's Ready condition, "" where there is none.
func nodeReadiness(n *corev1.Node) corev1.ConditionStatus {
	if c := nodeCondition(&n.Status, corev1.NodeReady); c != nil {
		return c.Status
	}
	return ""
}

func hasTaint(taints []corev1.Taint, key string, effect corev1.TaintEffect) bool {
	for i := range taints {
		if taints[i].Key == key && taints[i].Effect == effect {
			return true
		}
	}
	return false
}
