package watch

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// manySelectors is from how many workloads of one namespace on a single watch on
// all its Pods is cheaper for the API server than one for each.
const manySelectors = 20

// follows are the reads that come and go with suspicion: Pods by workload and by
// node, events by namespace, some kinds whole. Only the goroutine that builds snapshots uses it.
type follows struct {
	src    *Source
	pods   map[scope]*feed[*corev1.Pod]
	events map[string]*feed[*corev1.Event]
	kinds  map[cluster.Resource]*demanded

	suspects map[types.UID]suspect
	ledgers  map[string]time.Time // nodes whose Pods are wanted, and when they last were
	whole    map[string]bool      // namespaces whose Pods are read by one watch
	leases   []string             // nodes whose Leases are wanted now
}

// suspect is a workload whose Pods are read.
type suspect struct {
	namespace, selector string
	wanted              time.Time // cluster time at which it last was under suspicion
}

func newFollows(s *Source) follows {
	return follows{
		src: s, pods: map[scope]*feed[*corev1.Pod]{}, events: map[string]*feed[*corev1.Event]{}, kinds: map[cluster.Resource]*demanded{},
		suspects: map[types.UID]suspect{}, ledgers: map[string]time.Time{}, whole: map[string]bool{},
	}
}

func (w *follows) feeds() []feeder {
	out := make([]feeder, 0, len(w.pods)+len(w.events)+len(w.kinds))
	for _, f := range w.pods {
		out = append(out, f)
	}
	for _, f := range w.events {
		out = append(out, f)
	}
	for _, k := range w.kinds {
		out = append(out, k.feeder)
	}
	return out
}

// follow starts what is demanded and stops what was not for long. It tells whether
// a snapshot built now might show more than the last one, and whether reads began
// that the last one does not show as loading.
func (w *follows) follow(d cluster.Demand, now time.Time) (more, began bool) {
	w.suspect(d.Workloads, now)
	w.src.mu.Lock()
	asked := slices.Clone(w.src.wantNodes)
	w.src.mu.Unlock()
	for _, n := range append(asked, d.Nodes...) {
		w.ledgers[n] = now
	}
	maps.DeleteFunc(w.ledgers, func(_ string, at time.Time) bool { return now.Sub(at) > w.src.cfg.Linger })
	w.leases = d.Leases
	began = w.followKinds(d.Kinds, now)
	before := w.src.settings.state().asked
	w.src.settings.want(d, now)
	began = began || before != w.src.settings.state().asked

	pods, namespaces := w.scopes()
	for sc := range pods {
		if w.pods[sc] == nil {
			f := newFeed(w.src, corev1.SchemeGroupVersion, cluster.Pods, sc, &corev1.Pod{}, w.src.trim.pod)
			f.start(w.src.ctx)
			w.pods[sc], began = f, true
		}
	}
	for ns := range namespaces {
		if w.events[ns] == nil {
			f := newFeed(w.src, corev1.SchemeGroupVersion, cluster.Events, scope{namespace: ns}, &corev1.Event{}, w.src.trim.event)
			f.start(w.src.ctx)
			w.events[ns], began = f, true
		}
	}
	maps.DeleteFunc(w.pods, func(sc scope, f *feed[*corev1.Pod]) bool {
		// One that a watch on its whole namespace replaces stays until that one has loaded.
		all := w.pods[scope{namespace: sc.namespace}]
		if pods[sc] || w.whole[sc.namespace] && sc.labels != "" && !all.reached("") {
			return false
		}
		f.stop()
		return true
	})
	maps.DeleteFunc(w.events, func(ns string, f *feed[*corev1.Event]) bool {
		if !namespaces[ns] {
			f.stop()
		}
		return !namespaces[ns]
	})
	return began || w.src.leases.missing(w.leases) || w.src.settings.due(now), began
}

// suspect brings the list of suspects up to date.
func (w *follows) suspect(uids []types.UID, now time.Time) {
	wanted := make(map[types.UID]bool, len(uids))
	for _, u := range uids {
		wanted[u] = true
	}
	w.src.mu.Lock()
	asked := slices.Clone(w.src.wants)
	w.src.mu.Unlock()
	look := func(kind string, o metav1.Object, sel *metav1.LabelSelector) {
		if !wanted[o.GetUID()] && !slices.Contains(asked, Workload{kind, o.GetNamespace(), o.GetName()}) {
			return
		}
		s, err := metav1.LabelSelectorAsSelector(sel)
		if err != nil || s.Empty() {
			return // the API server accepts neither
		}
		w.suspects[o.GetUID()] = suspect{o.GetNamespace(), s.String(), now}
	}
	for _, o := range w.src.daemonSets.store.list() {
		look("DaemonSet", o, o.Spec.Selector)
	}
	for _, o := range w.src.deployments.store.list() {
		look("Deployment", o, o.Spec.Selector)
	}
	for _, o := range w.src.statefulSets.store.list() {
		look("StatefulSet", o, o.Spec.Selector)
	}
	maps.DeleteFunc(w.suspects, func(_ types.UID, s suspect) bool { return now.Sub(s.wanted) > w.src.cfg.Linger })
}

// scopes are the reads that the suspects and ledgers need.
func (w *follows) scopes() (pods map[scope]bool, namespaces map[string]bool) {
	pods, namespaces = map[scope]bool{}, map[string]bool{}
	count := map[string]int{}
	for _, s := range w.suspects {
		namespaces[s.namespace] = true
		count[s.namespace]++
	}
	for ns, n := range count {
		if n > manySelectors {
			w.whole[ns] = true
		}
	}
	maps.DeleteFunc(w.whole, func(ns string, _ bool) bool { return !namespaces[ns] })
	for _, s := range w.suspects {
		pods[w.scopeOf(s)] = true
	}
	for n := range w.ledgers {
		pods[ledger(n)] = true
	}
	return pods, namespaces
}

func (w *follows) scopeOf(s suspect) scope {
	if w.whole[s.namespace] {
		return scope{namespace: s.namespace}
	}
	return scope{namespace: s.namespace, labels: s.selector}
}

// read tells whether the Pods of a suspect have been read.
func (w *follows) read(s suspect) bool {
	for _, sc := range []scope{w.scopeOf(s), {namespace: s.namespace, labels: s.selector}} {
		if f := w.pods[sc]; f != nil && f.reached("") {
			return true
		}
	}
	return false
}

// ledger is the scope of all Pods of one node.
func ledger(node string) scope { return scope{fields: "spec.nodeName=" + node} }
