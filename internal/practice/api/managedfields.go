package api

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldManagers are apimachinery's own, one for each kind and subresource, built when first used.
var fieldManagers = struct {
	sync.Mutex
	byKind map[fieldManagerKey]*managedfields.FieldManager
	types  managedfields.TypeConverter
}{byKind: map[fieldManagerKey]*managedfields.FieldManager{}}

type fieldManagerKey struct {
	kind        schema.GroupVersionKind
	subresource string
}

func fieldManagerOf(r *resource, subresource string) (*managedfields.FieldManager, error) {
	m := &fieldManagers
	m.Lock()
	defer m.Unlock()
	k := fieldManagerKey{r.gvk(), subresource}
	if f := m.byKind[k]; f != nil {
		return f, nil
	}
	if m.types == nil {
		m.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	}
	f, err := managedfields.NewDefaultFieldManager(m.types, sameVersion{}, noDefaults{}, scheme.Scheme, k.kind,
		k.kind.GroupVersion(), subresource, nil)
	if err == nil {
		m.byKind[k] = f
	}
	return f, err
}

// recordFields sets o's managedFields to who owns what after this write. old is nil at a creation.
func (s *Server) recordFields(r *resource, old, o object, w write) {
	if old != nil {
		if at, ok := ownsAlready(r, old, o, w); ok {
			fields := slices.Clone(old.GetManagedFields())
			if at >= 0 {
				fields[at].Time = &metav1.Time{Time: s.now()}
			}
			o.SetManagedFields(inOrder(fields))
			return
		}
	}
	shape, plain := "", false
	if old == nil && len(o.GetManagedFields()) == 0 {
		if shape, plain = shapeOf(o); plain {
			shape = r.gvk().String() + " " + w.subresource + shape
			if f := createdFields(shape); f != nil {
				o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: managerName(w.manager), Operation: metav1.ManagedFieldsOperationUpdate,
					APIVersion: r.gvr.GroupVersion().String(), Time: &metav1.Time{Time: s.now()}, FieldsType: "FieldsV1", FieldsV1: f, Subresource: w.subresource}})
				return
			}
		}
	}
	s.compareFields(r, old, o, w)
	if fields := o.GetManagedFields(); plain && len(fields) == 1 {
		rememberCreated(shape, fields[0].FieldsV1)
	}
}

// compareFields is recordFields for any write.
func (s *Server) compareFields(r *resource, old, o object, w write) {
	f, err := fieldManagerOf(r, w.subresource)
	if err != nil {
		panic(err) // only a kind missing from client-go's schema could do this: a mistake in the table of resources
	}
	var live object
	if old == nil {
		live = emptyOf(r)
	} else {
		live = withKind(r, old)
	}
	o.GetObjectKind().SetGroupVersionKind(r.gvk())
	f.UpdateNoErrors(live, o, managerName(w.manager))
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	s.stampFields(live, o)
}

// stampFields puts the cluster's time on the entries that this write made: apimachinery takes the wall clock's.
func (s *Server) stampFields(old, o object) {
	before := map[metav1.ManagedFieldsEntry]*metav1.Time{}
	for _, e := range old.GetManagedFields() {
		before[entryKey(e)] = e.Time
	}
	fields := o.GetManagedFields()
	for i, e := range fields {
		if t, ok := before[entryKey(e)]; ok && t.Equal(e.Time) {
			continue
		}
		fields[i].Time = &metav1.Time{Time: s.now()}
	}
	o.SetManagedFields(inOrder(fields)) // the wall clock may have said otherwise
}

// inOrder sorts entries as internal/managedfields.go of apimachinery does.
func inOrder(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	slices.SortStableFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), a.Time.Compare(b.Time.Time), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	return fields
}

func entryKey(e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	e.Time, e.FieldsV1 = nil, nil
	return e
}

// sameFields compares ownership without times.
func sameFields(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if entryKey(a[i]) != entryKey(b[i]) || !equality.Semantic.DeepEqual(a[i].FieldsV1, b[i].FieldsV1) {
			return false
		}
	}
	return true
}

func managerName(manager string) string {
	if manager == "" {
		return "unknown"
	}
	return manager
}

func emptyOf(r *resource) object {
	o, err := scheme.Scheme.New(r.gvk())
	if err != nil {
		panic(err) // the kind is in client-go's scheme, or the table of resources would not compile
	}
	o.GetObjectKind().SetGroupVersionKind(r.gvk())
	return o.(object)
}

// sameVersion is the converter for a server that keeps every kind in the one version it serves.
type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error { return nil }
func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// noDefaults: objects are defaulted before they get here.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}
