package api

import (
	"fmt"
	"slices"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// historyLength is how many changes of one kind are kept for watches and paged lists that lag behind; older versions are
// answered with 410.
const historyLength = 1 << 14

// change is one write, as watches see it.
type change struct {
	revision uint64
	event    watch.EventType // Added, Modified, Deleted or Bookmark
	object   object          // the new object; at a deletion the last one, carrying the deletion's revision
	previous object          // nil when added
}

// collection holds the objects of one stored kind and the changes that led to them.
type collection struct {
	resource *resource
	objects  map[string]object
	keys     []string // of objects, sorted
	history  []change
	// forgotten counts the changes before history, oldest is the newest revision among them: what came after it can be
	// replayed.
	forgotten int
	oldest    uint64
	changed   chan struct{} // closed and replaced at each change
}

func newCollection(r *resource) *collection {
	return &collection{resource: r, objects: map[string]object{}, changed: make(chan struct{})}
}

// key orders objects as etcd does: by namespace, then name.
func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// put stores o, which nobody may change any more, at its revision.
func (c *collection) put(k string, o object, revision uint64) {
	old := c.objects[k]
	c.objects[k] = o
	event := watch.Modified
	if old == nil {
		event = watch.Added
		i, _ := slices.BinarySearch(c.keys, k)
		c.keys = slices.Insert(c.keys, i, k)
	}
	c.record(change{revision: revision, event: event, object: o, previous: old})
}

func (c *collection) remove(k string, last object, revision uint64) {
	old := c.objects[k]
	delete(c.objects, k)
	if i, found := slices.BinarySearch(c.keys, k); found {
		c.keys = slices.Delete(c.keys, i, i+1)
	}
	c.record(change{revision: revision, event: watch.Deleted, object: last, previous: old})
}

func (c *collection) record(e change) {
	// Forgetting half at a time keeps appending cheap.
	if len(c.history) >= 2*historyLength {
		c.forget(len(c.history) - historyLength)
	}
	c.history = append(c.history, e)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *collection) forget(n int) {
	if n == 0 {
		return
	}
	c.oldest = c.history[n-1].revision
	c.forgotten += n
	// A copy: watches may still read the old slice, without the lock.
	c.history = append([]change(nil), c.history[n:]...)
}

// cursor is the position of the first change after a revision.
func (c *collection) cursor(revision uint64) (int, error) {
	if revision < c.oldest {
		return 0, errTooOld(revision, c.oldest)
	}
	i := sort.Search(len(c.history), func(i int) bool { return c.history[i].revision > revision })
	return c.forgotten + i, nil
}

// end is the position of the next change.
func (c *collection) end() int { return c.forgotten + len(c.history) }

// from returns the changes from a cursor on. They stay valid without the lock.
func (c *collection) from(cursor int) ([]change, error) {
	if cursor < c.forgotten {
		return nil, apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	return c.history[cursor-c.forgotten:], nil
}

// within returns the sorted keys of a namespace, or all of them.
func (c *collection) within(namespace string) []string {
	return keysWithin(c.keys, namespace)
}

func keysWithin(keys []string, namespace string) []string {
	if namespace == "" {
		return keys
	}
	from, _ := slices.BinarySearch(keys, namespace+"/")
	to, _ := slices.BinarySearch(keys, namespace+"0") // '0' follows '/'
	return keys[from:to]
}

// at returns the objects as they stood at a revision, which the pages of one list need. Nothing is copied: objects are
// immutable, so undoing the changes after the revision gives the state back.
func (c *collection) at(revision uint64) (keys []string, objects map[string]object, err error) {
	cursor, err := c.cursor(revision)
	if err != nil || cursor == c.end() {
		return c.keys, c.objects, err
	}
	changes, err := c.from(cursor)
	if err != nil {
		return nil, nil, err
	}
	objects = make(map[string]object, len(c.objects))
	for k, o := range c.objects {
		objects[k] = o
	}
	for _, e := range slices.Backward(changes) {
		switch {
		case e.event == watch.Bookmark:
		case e.previous == nil:
			delete(objects, key(e.object.GetNamespace(), e.object.GetName()))
		default:
			objects[key(e.previous.GetNamespace(), e.previous.GetName())] = e.previous
		}
	}
	keys = make([]string, 0, len(objects))
	for k := range objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys, objects, nil
}

// Compact forgets all past versions, as etcd's compaction does: a watch or a page that asks for one is answered with 410.
// Watches that have not yet sent what is forgotten end the same way.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.forgotten += len(c.history)
		c.history = nil
		c.oldest = s.revision
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Bookmark sends a BOOKMARK at the newest resourceVersion, after everything written before it, to every open watch that
// allows bookmarks, and returns that version.
func (s *Server) Bookmark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireEvents()
	for _, c := range s.collections {
		c.record(change{revision: s.revision, event: watch.Bookmark})
	}
	return formatRevision(s.revision)
}

// errTooOld is the watch cache's answer (apiserver: pkg/storage/cacher/watch_cache.go).
func errTooOld(revision, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, oldest))
}
