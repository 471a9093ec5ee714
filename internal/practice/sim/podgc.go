package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podGCPeriod     = 20 * time.Second
	podGCQuarantine = 40 * time.Second
)

// podGC removes Pods that no kubelet will ever finish: those of Node objects that
// are gone, those that were deleted before they were bound, and Terminating ones on
// a node that is declared out of service.
// Source: pkg/controller/podgc/gc_controller.go.
type podGC struct {
	w       *World
	missing map[string]time.Time // nodes that are gone, and since when that is known
}

func newPodGC(w *World) *podGC { return &podGC{w: w, missing: map[string]time.Time{}} }

func (c *podGC) start() { c.w.every(podGCPeriod, constantly(podGCPeriod), c.collect) }

func (c *podGC) collect() {
	now := c.w.now()
	for name := range c.missing {
		if c.w.nodes.get(name) != nil {
			delete(c.missing, name)
		}
	}
	for _, p := range c.w.pods.all() {
		n := c.w.nodes.get(p.Spec.NodeName)
		switch {
		case p.Spec.NodeName == "":
			if p.DeletionTimestamp != nil {
				c.force(p)
			}
		case n == nil:
			since, known := c.missing[p.Spec.NodeName]
			if !known {
				c.missing[p.Spec.NodeName] = now
			} else if now.Sub(since) >= podGCQuarantine {
				c.fail(p, "PodGC: node no longer exists")
			}
		case p.DeletionTimestamp != nil && nodeReadiness(n) != corev1.ConditionTrue && outOfService(n):
			c.fail(p, "")
		}
	}
}

func outOfService(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

// fail marks a Pod Failed before it removes it, so that its controller sees how it
// ended.
func (c *podGC) fail(p *corev1.Pod, why string) {
	p, err := c.w.pods.updateStatus(controllerManager, keyOf(p), func(p *corev1.Pod) bool {
		if podTerminal(p) {
			return false
		}
		p.Status.Phase = corev1.PodFailed
		if why != "" {
			setPodCondition(&p.Status, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: why,
			}, c.w.now())
		}
		return true
	})
	if err == nil {
		c.force(p)
	}
}

func (c *podGC) force(p *corev1.Pod) {
	now := int64(0)
	_ = c.w.pods.remove(p, &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
}
