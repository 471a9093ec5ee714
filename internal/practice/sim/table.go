package sim

import (
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type object interface {
	comparable
	runtime.Object
	metav1.Object
}

// table mirrors one kind of the API server's objects, as an informer does: it
// indexes them, tells its watchers of every change, and writes through. What it
// hands out is shared and never changed.
type table[T object] struct {
	w        *World
	resource schema.GroupVersionResource
	items    map[string]T
	keys     []string // sorted
	indexes  []*index[T]
	watchers []func(old, new T) // old or new is nil
}

type index[T object] struct {
	of   func(T) string // "" leaves the object out
	keys map[string]map[string]bool
}

func newTable[T object](w *World, resource schema.GroupVersionResource) *table[T] {
	t := &table[T]{w: w, resource: resource, items: map[string]T{}}
	w.mirrors = append(w.mirrors, t.resync)
	return t
}

func (t *table[T]) watch(f func(old, new T)) { t.watchers = append(t.watchers, f) }

func (t *table[T]) indexBy(of func(T) string) *index[T] {
	i := &index[T]{of: of, keys: map[string]map[string]bool{}}
	t.indexes = append(t.indexes, i)
	return i
}

func keyOf(o metav1.Object) string { return key(o.GetNamespace(), o.GetName()) }

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func splitKey(k string) (namespace, name string) {
	for i := range k {
		if k[i] == '/' {
			return k[:i], k[i+1:]
		}
	}
	return "", k
}

// get returns the object, nil where there is none.
func (t *table[T]) get(k string) T { return t.items[k] }

// all are the objects, sorted by key.
func (t *table[T]) all() []T {
	out := make([]T, len(t.keys))
	for i, k := range t.keys {
		out[i] = t.items[k]
	}
	return out
}

// by are the objects that an index files under value, sorted by key.
func (t *table[T]) by(i *index[T], value string) []T {
	keys := slices.Sorted(maps.Keys(i.keys[value]))
	out := make([]T, len(keys))
	for n, k := range keys {
		out[n] = t.items[k]
	}
	return out
}

// resync takes over what others wrote.
func (t *table[T]) resync() {
	listed := t.w.store.List(t.resource, "", nil)
	seen := make(map[string]bool, len(listed))
	for _, stored := range listed {
		o := stored.(T)
		k := keyOf(o)
		seen[k] = true
		if t.items[k] != o {
			t.put(o)
		}
	}
	if len(seen) == len(t.keys) {
		return
	}
	for _, k := range slices.Clone(t.keys) {
		if !seen[k] {
			t.drop(k)
		}
	}
}

func (t *table[T]) put(o T) {
	k := keyOf(o)
	old := t.items[k]
	t.items[k] = o
	var none T
	if old == none {
		at, _ := slices.BinarySearch(t.keys, k)
		t.keys = slices.Insert(t.keys, at, k)
	}
	t.file(k, old, o)
	for _, f := range t.watchers {
		f(old, o)
	}
}

func (t *table[T]) drop(k string) {
	var none T
	old := t.items[k]
	if old == none {
		return
	}
	delete(t.items, k)
	if at, found := slices.BinarySearch(t.keys, k); found {
		t.keys = slices.Delete(t.keys, at, at+1)
	}
	t.file(k, old, none)
	for _, f := range t.watchers {
		f(old, none)
	}
}

func (t *table[T]) file(k string, old, new T) {
	var none T
	for _, i := range t.indexes {
		var was, is string
		if old != none {
			was = i.of(old)
		}
		if new != none {
			is = i.of(new)
		}
		if was != "" && was != is {
			delete(i.keys[was], k)
		}
		if is != "" {
			if i.keys[is] == nil {
				i.keys[is] = map[string]bool{}
			}
			i.keys[is][k] = true
		}
	}
}

func (t *table[T]) create(manager string, o T) (T, error) {
	return t.written(t.w.store.Create(manager, o))
}

// update changes the spec and metadata of an object and writes it, unless edit
// returns false. A conflict, that is somebody else's write, is tried again on the
// newest object. It returns NotFound for an object that is gone.
func (t *table[T]) update(manager, k string, edit func(T) bool) (T, error) {
	return t.edit(k, edit, func(o T) (runtime.Object, error) { return t.w.store.Update(manager, o) })
}

// updateStatus does the same for the status.
func (t *table[T]) updateStatus(manager, k string, edit func(T) bool) (T, error) {
	return t.edit(k, edit, func(o T) (runtime.Object, error) { return t.w.store.UpdateStatus(manager, o) })
}

func (t *table[T]) edit(k string, edit func(T) bool, write func(T) (runtime.Object, error)) (T, error) {
	var none T
	for {
		old := t.items[k]
		if old == none {
			_, name := splitKey(k)
			return none, apierrors.NewNotFound(t.resource.GroupResource(), name)
		}
		o := old.DeepCopyObject().(T)
		if !edit(o) {
			return old, nil
		}
		stored, err := t.written(write(o))
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return stored, err
		}
		t.resync()
	}
}

// remove deletes an object; the Pod's own grace period applies unless opts say
// otherwise.
func (t *table[T]) remove(o T, opts *metav1.DeleteOptions) error {
	if err := t.w.store.Delete(t.resource, o.GetNamespace(), o.GetName(), opts); err != nil {
		t.w.stale = true // somebody else was there first
		return err
	}
	left, err := t.w.store.Get(t.resource, o.GetNamespace(), o.GetName())
	if err != nil {
		t.w.wrote(t.w.seen + 1)
		t.drop(keyOf(o))
		return nil
	}
	_, err = t.written(left, nil)
	return err
}

func (t *table[T]) written(o runtime.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	stored := o.(T)
	if t.items[keyOf(stored)] != stored {
		t.put(stored)
	}
	t.w.wrote(revisionOf(stored))
	return stored, nil
}

// wrote notes that a write of the World's own took the revision. Where the API
// server has moved by more than that, somebody else wrote too.
func (w *World) wrote(revision uint64) {
	if revision > w.seen+1 {
		w.stale = true
	}
	w.seen = max(w.seen, revision)
}

// catchUp takes over what others wrote since the last time.
func (w *World) catchUp() {
	newest, _ := strconv.ParseUint(w.store.ResourceVersion(), 10, 64)
	if newest == w.seen && !w.stale {
		return
	}
	w.seen, w.stale = newest, false
	for _, resync := range w.mirrors {
		resync()
	}
}

func revisionOf(o metav1.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}
