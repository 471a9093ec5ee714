package watch

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// store holds the objects of one reflector, sorted by namespace and name. What it
// hands out is never changed: a slice that was given away is copied before the next
// change, an object is replaced by another.
type store[T metav1.Object] struct {
	trim    func(T)            // drops what no probe reads; must bear being done twice
	changed func(content bool) // called without the lock; content is false for a bookmark

	mu     sync.Mutex
	items  []T
	shared bool
	synced bool
	rv     string // the resource version that the items are known to have reached
}

var (
	_ cache.ReflectorStore         = (*store[metav1.Object])(nil)
	_ cache.ResourceVersionUpdater = (*store[metav1.Object])(nil)
	_ cache.TransformingStore      = (*store[metav1.Object])(nil)
)

// list returns all objects; the slice is not to be changed.
func (s *store[T]) list() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = true
	return s.items
}

// reached tells whether the first read has ended and the store shows at least that
// resource version; "" asks only for the first.
func (s *store[T]) reached(rv string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || rv == "" {
		return s.synced
	}
	c, err := resourceversion.CompareResourceVersion(s.rv, rv)
	return err == nil && c >= 0
}

func (s *store[T]) Add(obj any) error    { return s.put(obj) }
func (s *store[T]) Update(obj any) error { return s.put(obj) }
func (s *store[T]) Resync() error        { return nil }

func (s *store[T]) put(obj any) error {
	o := obj.(T) // the reflector lets no other type through
	s.trim(o)
	s.mu.Lock()
	s.own()
	if i, ok := s.find(o); ok {
		s.items[i] = o
	} else {
		s.items = slices.Insert(s.items, i, o)
	}
	s.mu.Unlock()
	s.changed(true)
	return nil
}

// Delete removes the object.
func (s *store[T]) Delete(obj any) error {
	o := obj.(T)
	s.mu.Lock()
	if i, ok := s.find(o); ok {
		s.own()
		s.items = slices.Delete(s.items, i, i+1)
	}
	s.mu.Unlock()
	s.changed(true)
	return nil
}

// Replace takes the result of a list.
func (s *store[T]) Replace(objs []any, rv string) error {
	items := make([]T, len(objs))
	for i, obj := range objs {
		items[i] = obj.(T)
		s.trim(items[i])
	}
	slices.SortFunc(items, byKey)
	s.mu.Lock()
	s.items, s.shared, s.synced, s.rv = items, false, true, rv
	s.mu.Unlock()
	s.changed(true)
	return nil
}

// UpdateResourceVersion is called after every event, bookmarks included.
func (s *store[T]) UpdateResourceVersion(rv string) {
	s.mu.Lock()
	s.rv = rv
	s.mu.Unlock()
	s.changed(false)
}

// Transformer lets the reflector trim objects while they stream in.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(T); ok {
			s.trim(o)
		}
		return obj, nil
	}
}

// own makes sure that nobody else holds the slice.
func (s *store[T]) own() {
	if s.shared {
		s.items, s.shared = slices.Clone(s.items), false
	}
}

func (s *store[T]) find(o T) (int, bool) { return slices.BinarySearchFunc(s.items, o, byKey) }

func byKey[T metav1.Object](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
