package watch

import (
	"cmp"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// build makes a snapshot of what the stores hold. It changes nothing: the History
// goes on from s.past, which is the caller's to move.
func (s *Source) build(now time.Time) *cluster.Snapshot {
	pods, known := s.follows.collect(s)
	o := cluster.Objects{
		Nodes:               s.nodes.store.list(),
		DaemonSets:          s.daemonSets.store.list(),
		Deployments:         s.deployments.store.list(),
		StatefulSets:        s.statefulSets.store.list(),
		ReplicaSets:         s.replicaSets.store.list(),
		ControllerRevisions: s.revisions.store.list(),
		Pods:                pods,
		Events:              s.follows.collectEvents(s),
		Leases:              s.leases.list(s.follows.leases),

		Services:             heldOf[*corev1.Service](&s.follows, cluster.Services),
		EndpointSlices:       heldOf[*discoveryv1.EndpointSlice](&s.follows, cluster.EndpointSlices),
		ValidatingWebhooks:   heldOf[*admissionv1.ValidatingWebhookConfiguration](&s.follows, cluster.ValidatingWebhooks),
		MutatingWebhooks:     heldOf[*admissionv1.MutatingWebhookConfiguration](&s.follows, cluster.MutatingWebhooks),
		ResourceQuotas:       heldOf[*corev1.ResourceQuota](&s.follows, cluster.ResourceQuotas),
		Namespaces:           heldOf[*corev1.Namespace](&s.follows, cluster.Namespaces),
		PriorityClasses:      heldOf[*schedulingv1.PriorityClass](&s.follows, cluster.PriorityClasses),
		PodDisruptionBudgets: heldOf[*policyv1.PodDisruptionBudget](&s.follows, cluster.PodDisruptionBudgets),

		Others: s.settings.list(),
	}
	fresh, notRead := s.freshness()
	return cluster.New(o, cluster.Meta{
		AsOf:      now,
		Source:    cluster.Source{Type: s.cfg.Type, Context: s.conn.Context, Server: s.conn.Server, Version: s.conn.Version()},
		Freshness: fresh,
		NotRead:   notRead,
		PodScope:  known,
		Past:      s.past,
		NodeGrace: s.cfg.NodeGrace,
		APIHost:   s.conn.Host(),
	})
}

// collect gathers the Pods of the suspects and ledgers, and says whose they are.
func (w *follows) collect(s *Source) ([]*corev1.Pod, cluster.PodScope) {
	known := cluster.PodScope{Owners: map[types.UID]bool{}, Nodes: map[string]bool{}}
	owners := make(map[types.UID]bool, len(w.suspects))
	for uid, sus := range w.suspects {
		owners[uid] = true
		if w.read(sus) {
			known.Owners[uid] = true
		}
	}
	for _, rs := range s.replicaSets.store.list() {
		if c := metav1.GetControllerOfNoCopy(rs); c != nil && owners[c.UID] {
			owners[rs.UID] = true
		}
	}
	var lists [][]*corev1.Pod
	for sc, f := range w.pods {
		items := f.store.list()
		if sc.fields == "" {
			items = slices.Clone(items)
			items = slices.DeleteFunc(items, func(p *corev1.Pod) bool {
				c := metav1.GetControllerOfNoCopy(p)
				return c == nil || !owners[c.UID]
			})
		}
		lists = append(lists, items)
	}
	for n := range w.ledgers {
		if f := w.pods[ledger(n)]; f != nil && f.reached("") {
			known.Nodes[n] = true
		}
	}
	return union(lists), known
}

func (w *follows) collectEvents(s *Source) []*corev1.Event {
	lists := [][]*corev1.Event{s.nodeEvents.store.list()}
	for _, f := range w.events {
		lists = append(lists, f.store.list())
	}
	return union(lists)
}

// union merges lists that may hold the same object, the newer version wins.
func union[T metav1.Object](lists [][]T) []T {
	if len(lists) == 1 {
		return lists[0]
	}
	at := map[types.UID]int{}
	var out []T
	for _, l := range lists {
		for _, o := range l {
			i, dup := at[o.GetUID()]
			switch {
			case !dup:
				at[o.GetUID()] = len(out)
				out = append(out, o)
			case newer(o, out[i]):
				out[i] = o
			}
		}
	}
	return out
}

func newer(a, b metav1.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c > 0
}

// freshness says of each resource how current it is, and what could not be read.
func (s *Source) freshness() (map[cluster.Resource]cluster.Freshness, []cluster.NotRead) {
	s.mu.Lock()
	contact, lost := s.contact, s.lostErr
	s.mu.Unlock()
	out := map[cluster.Resource]cluster.Freshness{}
	var notRead []cluster.NotRead
	add := func(r cluster.Resource, loading bool, broken error, since time.Time) {
		f := cluster.Freshness{Loading: loading, Since: contact}
		switch {
		case broken != nil:
			f.Broken, f.Since = s.conn.Explain("read "+string(r), broken).Why, since
		case lost != nil:
			f.Broken = s.conn.Explain("read "+string(r), lost).Why
		}
		if before, ok := out[r]; ok {
			f.Loading = f.Loading || before.Loading
			if before.Broken != "" && (f.Broken == "" || before.Since.Before(f.Since)) {
				f.Broken, f.Since = before.Broken, before.Since
			}
		}
		out[r] = f
	}
	refuse := func(r cluster.Resource, ns, why, detail string) {
		notRead = append(notRead, cluster.NotRead{Resource: r, Namespace: ns, Reason: why, Detail: detail})
	}

	for _, f := range s.feeds() {
		st := f.state()
		if st.scope.or != "" && st.scope.namespace != "" {
			refuse(st.resource, "", "Forbidden", "only namespace "+st.scope.namespace+" may be read")
		}
		switch {
		case st.refused == "":
			add(st.resource, st.loading, st.broken, st.since)
		case st.scope.fields == "" || st.resource == cluster.Events: // a node's ledger that may not be read is missing from PodScope
			add(st.resource, false, nil, contact)
			refuse(st.resource, st.scope.namespace, st.refused, s.conn.Explain("read", st.broken).Why)
		}
	}
	loading, failed, read, refused := s.leases.state()
	add(cluster.Leases, loading, failed, read)
	for ns, why := range refused {
		refuse(cluster.Leases, ns, why, "")
	}
	set := s.settings.state()
	if set.asked {
		add(cluster.ConfigMaps, set.loading, set.broken, set.read)
	} else {
		refuse(cluster.ConfigMaps, "", cluster.NotAsked, "nothing in the picture asks for it")
	}
	notRead = append(notRead, set.refused...)
	// Which Pods are wanted is known only once the workloads are.
	if _, ok := out[cluster.Pods]; !ok {
		add(cluster.Pods, s.workloadsLoading(), nil, contact)
	}
	for _, r := range s.follows.notAsked() {
		refuse(r, "", cluster.NotAsked, "nothing in the picture asks for it")
	}
	slices.SortFunc(notRead, func(a, b cluster.NotRead) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Reason, b.Reason))
	})
	return out, slices.Compact(notRead)
}

func (s *Source) workloadsLoading() bool {
	for _, f := range []feeder{s.daemonSets, s.deployments, s.statefulSets} {
		if st := f.state(); st.loading && st.refused == "" {
			return true
		}
	}
	return false
}
