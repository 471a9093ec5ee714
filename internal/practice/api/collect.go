package api

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// reference is where a stored object lies.
type reference struct {
	kind groupResource
	key  string
}

// indexOwners keeps the dependents of each owner findable. old or o is nil when the object is new or goes.
func (s *Server) indexOwners(c *collection, k string, old, o object) {
	ref := reference{c.resource.key(), k}
	if old != nil {
		for _, owner := range old.GetOwnerReferences() {
			delete(s.dependents[owner.UID], ref)
			if len(s.dependents[owner.UID]) == 0 {
				delete(s.dependents, owner.UID)
			}
		}
	}
	if o != nil {
		for _, owner := range o.GetOwnerReferences() {
			if s.dependents[owner.UID] == nil {
				s.dependents[owner.UID] = map[reference]bool{}
			}
			s.dependents[owner.UID][ref] = true
		}
	}
}

// dependentsOf lists them in a fixed order, so that runs repeat.
func (s *Server) dependentsOf(owner types.UID) []reference {
	out := make([]reference, 0, len(s.dependents[owner]))
	for ref := range s.dependents[owner] {
		out = append(out, ref)
	}
	slices.SortFunc(out, func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind.String(), b.kind.String()), cmp.Compare(a.key, b.key))
	})
	return out
}

// collectDependents deletes what depended on an owner that is gone or waits for them. A dependent that has another owner
// left only loses the reference (kubernetes: pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteItem).
func (s *Server) collectDependents(owner types.UID) {
	for _, ref := range s.dependentsOf(owner) {
		c := s.collections[ref.kind]
		o := c.objects[ref.key]
		if o == nil {
			continue // went with another dependent
		}
		if s.hasOtherOwner(o, owner) {
			s.dropOwner(c, ref.key, o, owner)
			continue
		}
		uid, background := o.GetUID(), metav1.DeletePropagationBackground
		// The only error could be a precondition, and the lock is held.
		_, _, _ = s.delete(c.resource, o.GetNamespace(), o.GetName(), &metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	}
}

func (s *Server) hasOtherOwner(o object, gone types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID != gone && s.exists(ref, o.GetNamespace())
	})
}

// exists looks an owner up. One of a kind that is not served here counts as existing: the garbage collector deletes only
// what it has seen to be orphaned.
func (s *Server) exists(ref metav1.OwnerReference, ns string) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return true
	}
	for _, r := range resources {
		if r.gvk() != gv.WithKind(ref.Kind) {
			continue
		}
		if !r.namespaced {
			ns = ""
		}
		o := s.collections[r.stored().key()].objects[key(ns, ref.Name)]
		return o != nil && o.GetUID() == ref.UID
	}
	return true
}

func (s *Server) dropOwner(c *collection, k string, old object, owner types.UID) {
	o := old.DeepCopyObject().(object)
	o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner }))
	s.commit(c, k, o, false)
}

// propagate prepares a deletion's policy: orphans lose their owner at once, foreground deletion gets its finalizer. It
// says whether o changed.
func (s *Server) propagate(o object, opts *metav1.DeleteOptions) bool {
	policy := metav1.DeletePropagationBackground
	if opts.PropagationPolicy != nil {
		policy = *opts.PropagationPolicy
	} else if opts.OrphanDependents != nil && *opts.OrphanDependents { //nolint:staticcheck // old clients still send it
		policy = metav1.DeletePropagationOrphan
	}
	switch policy {
	case metav1.DeletePropagationOrphan:
		if isDryRun(opts.DryRun) {
			return false
		}
		for _, ref := range s.dependentsOf(o.GetUID()) {
			c := s.collections[ref.kind]
			s.dropOwner(c, ref.key, c.objects[ref.key], o.GetUID())
		}
	case metav1.DeletePropagationForeground:
		if len(s.dependents[o.GetUID()]) > 0 && !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			o.SetFinalizers(append(o.GetFinalizers(), metav1.FinalizerDeleteDependents))
			return true
		}
	}
	return false
}

// finishForeground lets an owner go whose last blocking dependent has gone.
func (s *Server) finishForeground(owner types.UID) {
	ref, waiting := s.foreground[owner]
	if !waiting {
		return
	}
	for _, d := range s.dependentsOf(owner) {
		for _, o := range s.collections[d.kind].objects[d.key].GetOwnerReferences() {
			if o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion {
				return
			}
		}
	}
	c := s.collections[ref.kind]
	o := c.objects[ref.key].DeepCopyObject().(object)
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
	delete(s.foreground, owner)
	if len(o.GetFinalizers()) == 0 && graceOver(o) {
		s.finalize(c, ref.key, o, false)
		return
	}
	s.commit(c, ref.key, o, false)
}

// emptyNamespace deletes a terminating namespace's objects and then the namespace. Pods that wait for their kubelet hold
// it; finalize calls this again when they go.
func (s *Server) emptyNamespace(c *collection, k string, ns *corev1.Namespace) {
	left := false
	for _, r := range resources {
		if !r.namespaced || r.storedAs != nil {
			continue
		}
		content := s.collections[r.key()]
		for _, k := range slices.Clone(content.within(ns.Name)) {
			o := content.objects[k]
			if o == nil {
				continue
			}
			if o.GetDeletionTimestamp() != nil {
				left = true
				continue
			}
			background := metav1.DeletePropagationBackground
			if _, gone, err := s.delete(r, ns.Name, o.GetName(), &metav1.DeleteOptions{PropagationPolicy: &background}); err != nil || !gone {
				left = true
			}
		}
	}
	current, _ := c.objects[k].(*corev1.Namespace)
	if left || current == nil || current.UID != ns.UID {
		return
	}
	last := current.DeepCopy()
	last.Spec.Finalizers = nil
	if len(last.Finalizers) > 0 {
		s.commit(c, k, last, false)
		return
	}
	s.finalize(c, k, last, false)
}
