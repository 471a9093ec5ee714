package watch

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func newTestStore() *store[*corev1.Pod] {
	return &store[*corev1.Pod]{trim: func(*corev1.Pod) {}, changed: func(bool) {}}
}

// A store is a map by namespace and name that always lists in order, and what it
// once listed stays as it was.
func TestStoreIsASortedMapWhoseListsStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newTestStore()
		model := map[string]*corev1.Pod{}
		want := func() []*corev1.Pod {
			var out []*corev1.Pod
			for _, p := range model {
				out = append(out, p)
			}
			slices.SortFunc(out, func(a, b *corev1.Pod) int {
				return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
			})
			return out
		}
		type given struct{ list, copy []*corev1.Pod }
		var lists []given
		pod := func() *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "ns")), Name: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "name")),
			}}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p := pod()
			k := p.Namespace + "/" + p.Name
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				s.Add(p)
				model[k] = p
			case 1:
				s.Update(p)
				model[k] = p
			case 2:
				s.Delete(p)
				delete(model, k)
			case 3:
				clear(model)
				var objs []any
				for range rapid.IntRange(0, 4).Draw(t, "many") {
					q := pod()
					if key := q.Namespace + "/" + q.Name; model[key] == nil {
						model[key] = q
						objs = append(objs, q)
					}
				}
				s.Replace(objs, "1")
			case 4:
				l := s.list()
				lists = append(lists, given{l, slices.Clone(l)})
			}
			if got := s.list(); !slices.Equal(got, want()) {
				t.Fatalf("got %v", got)
			}
		}
		for _, g := range lists {
			if !slices.Equal(g.list, g.copy) {
				t.Fatal("a list that was handed out has changed")
			}
		}
	})
}

func TestStoreReachesAVersion(t *testing.T) {
	t.Parallel()
	s := newTestStore()
	s.UpdateResourceVersion("50")
	if s.reached("") || s.reached("10") {
		t.Error("reached before the first list")
	}
	s.Replace(nil, "99")
	for rv, want := range map[string]bool{"": true, "99": true, "98": true, "100": false, "9": true, "1000": false} {
		if got := s.reached(rv); got != want {
			t.Errorf("reached(%q) = %v", rv, got)
		}
	}
	s.UpdateResourceVersion("1000")
	if !s.reached("1000") {
		t.Error("a bookmark does not count")
	}
}
