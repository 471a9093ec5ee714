package api

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Delete deletes as the API server does. A Pod that is bound to a node gets a deletionTimestamp (now plus the grace
// period) and stays until its kubelet deletes it with a grace period of 0; a Pod without a node, a finished one, and
// every other kind go at once, unless finalizers hold them. Dependents that ownerReferences tie to the object follow,
// unless opts orphan them; here that happens within the call, on a real cluster soon after it. opts may be nil.
func (s *Server) Delete(gvr schema.GroupVersionResource, ns, name string, opts *metav1.DeleteOptions) error {
	r, err := resourceFor(gvr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err = s.delete(r, ns, name, opts)
	return err
}

// delete returns the object as it now is, or as it last was, and whether it is gone.
func (s *Server) delete(r *resource, ns, name string, opts *metav1.DeleteOptions) (object, bool, error) {
	s.expireEvents()
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	c := s.collections[r.stored().key()]
	k := key(ns, name)
	old := c.objects[k]
	if old == nil {
		return nil, false, apierrors.NewNotFound(r.key(), name)
	}
	if err := checkDeletePreconditions(r, old, opts.Preconditions); err != nil {
		return nil, false, err
	}
	if err := protected(r, name); err != nil {
		return nil, false, err
	}
	o := old.DeepCopyObject().(object)
	changed := s.propagate(o, opts)
	grace, graceful := gracePeriod(o, opts)
	switch {
	case graceful && o.GetDeletionTimestamp() != nil:
		if !s.shortenGrace(o, opts.GracePeriodSeconds) && !changed {
			return r.view(old), false, nil
		}
	case graceful:
		s.markDeleted(o, grace)
	case len(o.GetFinalizers()) > 0 || holdsNamespace(o):
		if o.GetDeletionTimestamp() == nil || o.GetDeletionGracePeriodSeconds() == nil || *o.GetDeletionGracePeriodSeconds() != 0 {
			s.markDeleted(o, 0)
			changed = true
		}
		if !changed {
			return r.view(old), false, nil
		}
	default:
		return r.view(s.finalize(c, k, o, isDryRun(opts.DryRun))), true, nil
	}
	o = s.commit(c, k, o, isDryRun(opts.DryRun))
	if !isDryRun(opts.DryRun) {
		s.afterMark(c, k, o)
	}
	return r.view(o), false, nil
}

// markDeleted sets the deletion's time: now plus the grace period, in seconds.
func (s *Server) markDeleted(o object, grace int64) {
	if ns, ok := o.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	// The first mark changes what is wanted (apiserver: pkg/registry/rest/delete.go).
	if o.GetDeletionTimestamp() == nil && o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	o.SetDeletionTimestamp(&metav1.Time{Time: s.now().Add(time.Duration(grace) * time.Second)})
	o.SetDeletionGracePeriodSeconds(&grace)
}

// shortenGrace is what a second deletion may do to the grace period of the first, and says whether it did
// (apiserver: pkg/registry/rest/delete.go, BeforeDelete).
func (s *Server) shortenGrace(o object, wanted *int64) bool {
	left := o.GetDeletionGracePeriodSeconds()
	if wanted == nil || left == nil || *wanted >= *left {
		return false
	}
	grace := max(*wanted, 1)
	at := o.GetDeletionTimestamp().Add(time.Duration(grace-*left) * time.Second)
	if now := s.now(); at.Before(now) {
		at, grace = now, 1
	}
	o.SetDeletionTimestamp(&metav1.Time{Time: at})
	o.SetDeletionGracePeriodSeconds(&grace)
	return true
}

// afterMark does what follows from a deletionTimestamp: a namespace is emptied, foreground deletion takes dependents.
func (s *Server) afterMark(c *collection, k string, o object) {
	if ns, ok := o.(*corev1.Namespace); ok {
		s.emptyNamespace(c, k, ns)
		return
	}
	if slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		s.foreground[o.GetUID()] = reference{c.resource.key(), k}
		s.collectDependents(o.GetUID())
		s.finishForeground(o.GetUID())
	}
}

// finalize removes an object and, after it, what depended on it.
func (s *Server) finalize(c *collection, k string, o object, dryRun bool) object {
	if dryRun {
		return o
	}
	last := s.remove(c, k, o)
	s.collectDependents(o.GetUID())
	for _, owner := range o.GetOwnerReferences() {
		s.finishForeground(owner.UID)
	}
	namespaces := s.collections[corev1.Resource("namespaces")]
	if ns, ok := namespaces.objects[o.GetNamespace()].(*corev1.Namespace); ok && ns.DeletionTimestamp != nil {
		s.emptyNamespace(namespaces, ns.Name, ns)
	}
	return last
}

// remove takes an object out of its collection, without regard to dependents.
func (s *Server) remove(c *collection, k string, o object) object {
	revision := s.nextRevision()
	last := o.DeepCopyObject().(object)
	last.SetResourceVersion(formatRevision(revision))
	s.indexOwners(c, k, c.objects[k], nil)
	delete(s.foreground, o.GetUID())
	c.remove(k, last, revision)
	return last
}

// gracePeriod is how long a deletion waits for a kubelet, in seconds (kubernetes: pkg/registry/core/pod/strategy.go,
// CheckGracefulDelete).
func gracePeriod(o object, opts *metav1.DeleteOptions) (seconds int64, graceful bool) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return 0, false
	}
	switch {
	case opts.GracePeriodSeconds != nil:
		seconds = *opts.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		seconds = 0
	}
	return seconds, seconds > 0
}

// graceOver says whether a marked object waits for finalizers only.
func graceOver(o object) bool {
	if ns, ok := o.(*corev1.Namespace); ok {
		return len(ns.Spec.Finalizers) == 0
	}
	seconds := o.GetDeletionGracePeriodSeconds()
	return seconds == nil || *seconds == 0
}

func holdsNamespace(o object) bool {
	ns, ok := o.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}

func checkDeletePreconditions(r *resource, old object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != old.GetUID() {
		return apierrors.NewConflict(r.key(), old.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*p.UID, old.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
		return apierrors.NewConflict(r.key(), old.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*p.ResourceVersion, old.GetResourceVersion()))
	}
	return nil
}

// protected names what no request may delete.
func protected(r *resource, name string) error {
	if r.gvr.Resource == "namespaces" && slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}, name) {
		return apierrors.NewForbidden(r.key(), name, fmt.Errorf("this namespace may not be deleted"))
	}
	return nil
}

func isDryRun(values []string) bool { return len(values) > 0 }
