package api

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Evict deletes a Pod if its PodDisruptionBudget lets it go, else the error is 429 (kubernetes:
// pkg/registry/core/pod/storage/eviction.go). opts may be nil.
func (s *Server) Evict(ns, name string, opts *metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	return s.evict(ns, name, opts)
}

func (s *Server) evict(ns, name string, opts *metav1.DeleteOptions) error {
	pods := resourceNamed(corev1.SchemeGroupVersion.WithResource("pods"))
	o, err := s.get(pods, ns, name)
	if err != nil {
		return err
	}
	pod := o.(*corev1.Pod)
	if !leavesBudget(pod) {
		if err := s.spendBudget(pod, isDryRun(opts.DryRun)); err != nil {
			return err
		}
	}
	_, _, err = s.delete(pods, ns, name, opts)
	return err
}

// leavesBudget says whether a Pod counts for no budget: it runs no more, or not yet.
func leavesBudget(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed ||
		p.Status.Phase == corev1.PodPending
}

func (s *Server) spendBudget(pod *corev1.Pod, dryRun bool) error {
	budgets := resourceNamed(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"))
	c := s.collections[budgets.key()]
	var matching []*policyv1.PodDisruptionBudget
	for _, k := range c.within(pod.Namespace) {
		budget := c.objects[k].(*policyv1.PodDisruptionBudget)
		if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil && selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, budget)
		}
	}
	if len(matching) == 0 {
		return nil
	}
	if len(matching) > 1 {
		return apierrors.NewInternalError(fmt.Errorf("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	}
	budget := matching[0].DeepCopy()
	if budget.Status.ObservedGeneration < budget.Generation {
		return refused(fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name), 10)
	}
	if budget.Status.DisruptionsAllowed <= 0 {
		return refused(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy), 0)
	}
	budget.Status.DisruptionsAllowed--
	if budget.Status.DisruptedPods == nil {
		budget.Status.DisruptedPods = map[string]metav1.Time{}
	}
	budget.Status.DisruptedPods[pod.Name] = metav1.Time{Time: s.now()}
	_, err := s.update(budgets, budget, write{manager: "kube-apiserver", subresource: "status", dryRun: dryRun})
	return err
}

func refused(why string, retrySeconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retrySeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: why})
	return err
}
