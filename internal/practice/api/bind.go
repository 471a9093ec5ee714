package api

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bind puts a Pod on a node, as the scheduler does through the binding subresource: spec.nodeName is set and the condition
// PodScheduled becomes True. A Pod that is bound already, or being deleted, is a conflict
// (kubernetes: pkg/registry/core/pod/storage/storage.go, setPodNodeAndMetadata).
func (s *Server) Bind(manager, ns, name, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bind(ns, name, node, write{manager: manager})
}

func (s *Server) bind(ns, name, node string, w write) error {
	pods := corev1.Resource("pods")
	c := s.collections[pods]
	k := key(ns, name)
	old, _ := c.objects[k].(*corev1.Pod)
	switch {
	case old == nil:
		return apierrors.NewNotFound(pods, name)
	case node == "":
		return apierrors.NewBadRequest("target.name is required in a Binding")
	case old.DeletionTimestamp != nil:
		return apierrors.NewConflict(pods, name, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", name))
	case old.Spec.NodeName != "":
		return apierrors.NewConflict(pods, name, fmt.Errorf("pod %s is already assigned to node %q", name, old.Spec.NodeName))
	}
	p := old.DeepCopy()
	p.Spec.NodeName = node
	setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Time{Time: s.now()}})
	w.subresource = "binding"
	s.recordFields(c.resource, old, p, w)
	s.commit(c, k, p, w.dryRun)
	return nil
}

func setPodCondition(p *corev1.Pod, c corev1.PodCondition) {
	for i, old := range p.Status.Conditions {
		if old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			p.Status.Conditions[i] = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}
