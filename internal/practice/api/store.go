package api

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// write says how a request writes.
type write struct {
	manager     string
	dryRun      bool
	subresource string // "" or "status"
	// fieldsDone says that managedFields are right already: server-side apply computes its own.
	fieldsDone bool
}

// Get returns one object, shared and never changed (see Server). ns is "" for kinds without namespaces.
func (s *Server) Get(gvr schema.GroupVersionResource, ns, name string) (runtime.Object, error) {
	r, err := resourceFor(gvr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.get(r, ns, name)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// List returns the objects that match, sorted by namespace and name; ns "" means all namespaces, a nil selector all
// objects. A kind that is not served gives nothing.
func (s *Server) List(gvr schema.GroupVersionResource, ns string, selector labels.Selector) []runtime.Object {
	r, err := resourceFor(gvr)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireEvents()
	c := s.collections[r.stored().key()]
	var out []runtime.Object
	for _, k := range c.within(ns) {
		o := c.objects[k]
		if selector == nil || selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, r.view(o))
		}
	}
	return out
}

// ListOf is List for one Go type, such as *corev1.Pod.
func ListOf[T runtime.Object](s *Server, ns string, selector labels.Selector) []T {
	r, err := resourceOf[T]()
	if err != nil {
		return nil
	}
	objects := s.List(r.gvr, ns, selector)
	out := make([]T, len(objects))
	for i, o := range objects {
		out[i] = o.(T)
	}
	return out
}

// GetOf is Get for one Go type.
func GetOf[T runtime.Object](s *Server, ns, name string) (T, error) {
	var none T
	r, err := resourceOf[T]()
	if err != nil {
		return none, err
	}
	o, err := s.Get(r.gvr, ns, name)
	if err != nil {
		return none, err
	}
	return o.(T), nil
}

// Create stores a copy of obj and returns what was stored. manager is the field manager. As on a real server a status is
// dropped (nodes keep theirs) and the system's metadata is set anew, from the virtual clock.
func (s *Server) Create(manager string, obj runtime.Object) (runtime.Object, error) {
	r, err := resourceOfType(obj)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return result(s.create(r, r.toStore(obj.(object)), write{manager: manager}))
}

// Update stores a copy of obj in place of the object of the same name; its status is ignored. A resourceVersion in obj
// must be the newest one, else the error is a conflict; without one the write is unconditional.
func (s *Server) Update(manager string, obj runtime.Object) (runtime.Object, error) {
	return s.updateAs(obj, write{manager: manager})
}

// UpdateStatus is Update of the status subresource: the spec is ignored and the generation stays.
func (s *Server) UpdateStatus(manager string, obj runtime.Object) (runtime.Object, error) {
	return s.updateAs(obj, write{manager: manager, subresource: "status"})
}

func (s *Server) updateAs(obj runtime.Object, w write) (runtime.Object, error) {
	r, err := resourceOfType(obj)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return result(s.update(r, r.toStore(obj.(object)), w))
}

// result hides the difference between a nil object and a nil interface.
func result(o object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *Server) get(r *resource, ns, name string) (object, error) {
	s.expireEvents()
	o := s.collections[r.stored().key()].objects[key(ns, name)]
	if o == nil {
		return nil, apierrors.NewNotFound(r.key(), name)
	}
	return r.view(o), nil
}

// view is a stored object as this version of its kind.
func (r *resource) view(o object) object {
	if r.fromStored == nil {
		return o
	}
	return r.fromStored(o)
}

// toStore copies an object from outside into the stored version.
func (r *resource) toStore(o object) object {
	c := o.DeepCopyObject().(object)
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if r.toStored != nil {
		c = r.toStored(c)
	}
	return c
}

// create takes over o, in the stored version.
func (s *Server) create(r *resource, o object, w write) (object, error) {
	s.expireEvents()
	st := r.stored()
	c := s.collections[st.key()]
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if !r.namespaced {
		o.SetNamespace("")
	} else if err := s.checkNamespace(r, o); err != nil {
		return nil, err
	}
	names := s.names
	if w.dryRun {
		names = s.dryNames
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		for ok := true; ok; _, ok = c.objects[key(o.GetNamespace(), o.GetName())] {
			o.SetName(names.name(o.GetGenerateName()))
		}
	}
	o.SetUID(names.uid())
	o.SetCreationTimestamp(metav1.Time{Time: s.now()})
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetSelfLink("")
	o.SetGeneration(0)
	fields := o.GetManagedFields() // kept only if this server made them, in a server-side apply
	if !w.fieldsDone {
		fields = nil
	}

	setDefaults(o)
	if err := s.prepareForCreate(st, o); err != nil {
		return nil, err
	}
	if err := invalid(st, o, validate(st, o)); err != nil {
		return nil, err
	}
	k := key(o.GetNamespace(), o.GetName())
	if c.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(r.key(), o.GetName())
	}
	o.SetManagedFields(fields)
	if !w.fieldsDone {
		s.recordFields(st, nil, o, w)
	}
	return r.view(s.commit(c, k, o, w.dryRun)), nil
}

// update takes over o, in the stored version.
func (s *Server) update(r *resource, o object, w write) (object, error) {
	s.expireEvents()
	st := r.stored()
	c := s.collections[st.key()]
	if !r.namespaced {
		o.SetNamespace("")
	}
	k := key(o.GetNamespace(), o.GetName())
	old := c.objects[k]
	if old == nil {
		if !r.createsOnPut || w.subresource != "" || o.GetUID() != "" {
			return nil, apierrors.NewNotFound(r.key(), o.GetName())
		}
		o.SetResourceVersion("")
		return s.create(r, o, w)
	}
	if w.subresource == "status" && !r.hasStatus {
		return nil, apierrors.NewNotFound(r.key(), o.GetName())
	}
	if err := checkPreconditions(r, old, o); err != nil {
		return nil, err
	}
	keepSystemFields(o, old)
	o.SetResourceVersion(old.GetResourceVersion())
	setDefaults(o)
	isolate(st, o, old, w.subresource)
	if !w.fieldsDone {
		s.recordFields(st, old, o, w)
	}
	prepareForUpdate(st, o, old, w.subresource)
	if err := invalid(st, o, validateUpdate(o, old, w.subresource)); err != nil {
		return nil, err
	}
	// Nothing changed: the version stays and no watch hears of it. The times in managedFields alone are no change
	// (apiserver: pkg/endpoints/handlers/fieldmanager/equality.go).
	fields := o.GetManagedFields()
	o.SetManagedFields(old.GetManagedFields())
	if equality.Semantic.DeepEqual(o, old) {
		if sameFields(fields, old.GetManagedFields()) {
			return r.view(old), nil
		}
	}
	o.SetManagedFields(fields)
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && graceOver(o) {
		return r.view(s.finalize(c, k, o, w.dryRun)), nil
	}
	return r.view(s.commit(c, k, o, w.dryRun)), nil
}

// commit gives o its version and stores it; after that nobody may change it. A dry run returns it as it would have been.
func (s *Server) commit(c *collection, k string, o object, dryRun bool) object {
	if dryRun {
		return o
	}
	revision := s.nextRevision()
	o.SetResourceVersion(formatRevision(revision))
	s.indexOwners(c, k, c.objects[k], o)
	c.put(k, o, revision)
	if c.resource.expires {
		s.expireLater(k, o)
	}
	return o
}

func checkPreconditions(r *resource, old, o object) error {
	if o.GetUID() != "" && o.GetUID() != old.GetUID() {
		return apierrors.NewConflict(r.key(), o.GetName(), fmt.Errorf(
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", o.GetUID(), old.GetUID()))
	}
	switch version := o.GetResourceVersion(); {
	case version == "" || version == "0":
		if r.mustVersion {
			return invalid(r, o, mustSpecifyVersion())
		}
	case version != old.GetResourceVersion():
		return apierrors.NewConflict(r.key(), o.GetName(), errModified)
	}
	return nil
}

// errModified is registry.OptimisticLockErrorMsg of the API server.
var errModified = fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again")

// keepSystemFields carries over what no update may change (apiserver: pkg/registry/rest/update.go).
func keepSystemFields(o, old object) {
	o.SetUID(old.GetUID())
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	if old.GetDeletionTimestamp() != nil { // else validation refuses one that an update sets
		o.SetDeletionTimestamp(old.GetDeletionTimestamp())
		o.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	o.SetGeneration(old.GetGeneration())
	o.SetGenerateName(old.GetGenerateName())
	o.SetSelfLink("")
}

// checkNamespace refuses a write into a namespace that is missing or going away (the NamespaceLifecycle admission plugin).
func (s *Server) checkNamespace(r *resource, o object) error {
	if o.GetNamespace() == "" {
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	namespaces := s.collections[corev1.Resource("namespaces")]
	found, _ := namespaces.objects[o.GetNamespace()].(*corev1.Namespace)
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), o.GetNamespace())
	}
	if found.DeletionTimestamp != nil {
		err := apierrors.NewForbidden(r.key(), o.GetName(), fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", o.GetNamespace()))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", o.GetNamespace()),
			Field: "metadata.namespace"})
		return err
	}
	return nil
}

// resourceFor finds a served resource; the error is what the API server answers for an unknown path.
func resourceFor(gvr schema.GroupVersionResource) (*resource, error) {
	for _, r := range resources {
		if r.gvr == gvr {
			return r, nil
		}
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{Group: gvr.Group, Kind: gvr.Resource}}}
}

// resourceOf finds the resource of a pointer type such as *corev1.Pod.
func resourceOf[T runtime.Object]() (*resource, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("practice API server: %s is no pointer to a Kubernetes kind", t)
	}
	return resourceOfType(reflect.New(t.Elem()).Interface().(runtime.Object))
}

// resourceOfType finds the resource of a Go type.
func resourceOfType(o runtime.Object) (*resource, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return nil, fmt.Errorf("practice API server: %T is no Kubernetes kind it knows: %w", o, err)
	}
	for _, r := range resources {
		if r.gvk() == kinds[0] {
			return r, nil
		}
	}
	return nil, fmt.Errorf("practice API server: does not serve %s", kinds[0])
}
