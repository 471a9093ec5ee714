package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remembered is how long a Pod that is gone, and a node's transitions, are kept.
const remembered = 24 * time.Hour

// Interval is a time that is known to lie between two moments; From equals To
// where it is exact. Source says how it is known.
type Interval struct {
	From, To time.Time
	Source   string
}

// Exact is the interval of one moment.
func Exact(t time.Time, source string) Interval { return Interval{t, t, source} }

// IsZero tells that nothing is known.
func (i Interval) IsZero() bool { return i.To.IsZero() }

// Mid is the middle of the interval.
func (i Interval) Mid() time.Time { return i.From.Add(i.To.Sub(i.From) / 2) }

// Width is how uncertain the time is.
func (i Interval) Width() time.Duration { return i.To.Sub(i.From) }

// History is what the API forgets: each daemon Pod and each change of a node's
// Ready condition that was seen. It is a pure fold over the snapshots so far, so
// that the timeline outlives events and recovered conditions, and the same
// snapshots give the same History live, in a replay or in practice. It is never
// changed after it was published; the next snapshot gets a new one.
type History struct {
	Start time.Time // the first snapshot's AsOf
	pods  map[types.UID]PodRecord
	nodes map[string]NodeRecord

	byOwner map[types.UID][]PodRecord // pods again, the way probes ask
}

// PodRecord is one daemon Pod, present or gone.
type PodRecord struct {
	UID             types.UID
	Namespace, Name string
	Node            string
	Owner           types.UID
	Hash            string // revision label
	Generation      string // template generation label
	Created         time.Time
	DeleteRequested time.Time // exact, zero unless seen
	Gone            Interval  // zero while it exists
	Ready           time.Time // when it first became Ready, zero if never seen Ready
	// Unready is when it stopped being Ready for the last time, zero while it is
	// Ready or if it never was.
	Unready time.Time

	version string
}

// NodeRecord is what was seen of one node.
type NodeRecord struct {
	Name        string
	Transitions []Transition // the oldest first; the first is what the first snapshot showed
	Gone        Interval     // the Node object was deleted
	BootIDs     []string     // in the order seen
	// LabelChanges are those that were watched, the oldest first.
	LabelChanges []LabelChange

	labels map[string]string // as last seen
}

// Transition is a change of a node's Ready condition.
type Transition struct {
	To              corev1.ConditionStatus
	At              time.Time // lastTransitionTime
	Seen            time.Time // AsOf of the snapshot that showed it first
	Reason, Message string
	// LeaseRenewed is the node's last heartbeat as known while the node was in
	// this state; zero where its Lease was not read.
	LeaseRenewed time.Time
	BootID       string
	First        bool // it was so when watching began
}

// PodsOf returns the records of a DaemonSet's Pods, present and gone, by creation. The
// caller does not change them.
func (h *History) PodsOf(owner types.UID) []PodRecord {
	if h == nil {
		return nil
	}
	return h.byOwner[owner]
}

// ownedPods sorts the records by owner and creation.
func (h *History) ownedPods() map[types.UID][]PodRecord {
	m := map[types.UID][]PodRecord{}
	for _, r := range h.pods {
		m[r.Owner] = append(m[r.Owner], r)
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b PodRecord) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
	}
	return m
}

// LastGone is when the last of a DaemonSet's Pods was seen to be gone, zero for none.
func (h *History) LastGone(owner types.UID) time.Time {
	var last time.Time
	if h == nil {
		return last
	}
	for _, r := range h.byOwner[owner] {
		if r.Gone.To.After(last) {
			last = r.Gone.To
		}
	}
	return last
}

// Node returns what was seen of a node.
func (h *History) Node(name string) NodeRecord {
	if h == nil {
		return NodeRecord{}
	}
	return h.nodes[name]
}

// RemovedNodes returns the nodes whose Node object was seen and is gone, by name.
func (h *History) RemovedNodes() []NodeRecord {
	if h == nil {
		return nil
	}
	var out []NodeRecord
	for _, name := range sortedKeys(h.nodes) {
		if r := h.nodes[name]; !r.Gone.IsZero() {
			out = append(out, r)
		}
	}
	return out
}

// fold returns the History after s. h may be nil.
func (h *History) fold(s *Snapshot) *History {
	next := &History{Start: s.AsOf}
	if h != nil {
		*next = *h
	}
	next.foldPods(s)
	next.foldNodes(s)
	return next
}

func (h *History) foldPods(s *Snapshot) {
	old := h.pods
	var changed map[types.UID]PodRecord // a copy, made at the first change
	set := func(r PodRecord) {
		if changed == nil {
			if changed = maps.Clone(old); changed == nil {
				changed = map[types.UID]PodRecord{}
			}
		}
		changed[r.UID] = r
	}
	present := map[types.UID]bool{}
	for _, p := range s.Objects.Pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil || owner.Kind != "DaemonSet" {
			continue
		}
		present[p.UID] = true
		r, ok := old[p.UID]
		if ok && r.version == p.ResourceVersion && p.ResourceVersion != "" {
			continue
		}
		set(seePod(r, p, owner.UID))
	}
	for uid, r := range old {
		switch {
		case present[uid]:
		case r.Gone.IsZero() && s.PodsKnown(r.Owner) && !s.stale(Pods):
			r.Gone = Interval{r.lastAlive(), s.AsOf, "the Pod was gone at the next look"}
			set(r)
		case !r.Gone.IsZero() && s.AsOf.Sub(r.Gone.To) > remembered:
			set(r)
			delete(changed, uid)
		}
	}
	if changed != nil {
		h.pods = changed
		h.byOwner = h.ownedPods()
	}
}

// lastAlive is the latest moment at which the Pod is known to have existed.
func (r PodRecord) lastAlive() time.Time {
	t := r.Created
	if r.DeleteRequested.After(t) {
		t = r.DeleteRequested
	}
	return t
}

func seePod(r PodRecord, p *corev1.Pod, owner types.UID) PodRecord {
	r.UID, r.Namespace, r.Name, r.Owner = p.UID, p.Namespace, p.Name, owner
	r.Created, r.version = p.CreationTimestamp.Time, p.ResourceVersion
	r.Hash, r.Generation = p.Labels[RevisionHash], p.Labels[TemplateGenerationLabel]
	if n := TargetNode(p); n != "" {
		r.Node = n
	}
	if t := DeleteRequested(p); !t.IsZero() {
		r.DeleteRequested = t
	}
	c := PodCondition(p, corev1.PodReady)
	switch {
	case c == nil:
	case c.Status == corev1.ConditionTrue:
		if r.Ready.IsZero() {
			r.Ready = c.LastTransitionTime.Time
		}
		r.Unready = time.Time{}
	case !r.Ready.IsZero() && r.Unready.IsZero():
		r.Unready = c.LastTransitionTime.Time
	}
	return r
}

// stale tells whether the resource is not being updated at the moment, so that
// absence from the snapshot proves nothing.
func (s *Snapshot) stale(r Resource) bool {
	f, ok := s.Freshness[r]
	return ok && (f.Loading || f.Broken != "")
}

func (h *History) foldNodes(s *Snapshot) {
	if !s.Read(Nodes) {
		return
	}
	old := h.nodes
	var changed map[string]NodeRecord
	set := func(r NodeRecord) {
		if changed == nil {
			if changed = maps.Clone(old); changed == nil {
				changed = map[string]NodeRecord{}
			}
		}
		changed[r.Name] = r
	}
	for _, n := range s.Objects.Nodes {
		if r, ok := seeNode(old[n.Name], n, s); ok {
			set(r)
		}
	}
	if !s.stale(Nodes) {
		for name, r := range old {
			if r.Gone.IsZero() && s.Node(name) == nil {
				r.Gone = Interval{s.AsOf, s.AsOf, "the Node object was gone at the next look"}
				set(r)
			}
		}
	}
	if changed != nil {
		h.nodes = changed
	}
}

// seeNode returns the record after a look at n, and whether it differs.
func seeNode(r NodeRecord, n *corev1.Node, s *Snapshot) (NodeRecord, bool) {
	first := r.Name == ""
	r.Name = n.Name
	changed := first
	if was, differs := seeLabels(r, n, s, first || !r.Gone.IsZero()); differs {
		r, changed = was, true
	}
	if !r.Gone.IsZero() {
		r.Gone, changed = Interval{}, true
	}
	boot := n.Status.NodeInfo.BootID
	if boot != "" && (len(r.BootIDs) == 0 || r.BootIDs[len(r.BootIDs)-1] != boot) {
		r.BootIDs, changed = append(slices.Clone(r.BootIDs), boot), true
	}
	t := Transition{To: NodeReadiness(n), Seen: s.AsOf, BootID: boot, First: first}
	if c := NodeCondition(n, corev1.NodeReady); c != nil {
		t.At, t.Reason, t.Message = c.LastTransitionTime.Time, c.Reason, c.Message
	}
	t.LeaseRenewed = LeaseRenewed(s.NodeLease(n.Name))
	k := len(r.Transitions) - 1
	switch {
	case k < 0 || r.Transitions[k].To != t.To || !r.Transitions[k].At.Equal(t.At):
		r.Transitions, changed = append(slices.Clone(r.Transitions), t), true
	case t.To != corev1.ConditionTrue && r.Transitions[k].LeaseRenewed.Before(t.LeaseRenewed):
		// The heartbeat as known while the node is failing is what the onset is read from.
		ts := slices.Clone(r.Transitions)
		ts[k].LeaseRenewed = t.LeaseRenewed
		r.Transitions, changed = ts, true
	}
	for len(r.Transitions) > 2 && s.AsOf.Sub(r.Transitions[0].Seen) > remembered {
		r.Transitions = slices.Clone(r.Transitions[1:])
		changed = true
	}
	for len(r.LabelChanges) > 0 && s.AsOf.Sub(r.LabelChanges[0].Seen) > remembered {
		r.LabelChanges, changed = r.LabelChanges[1:], true
	}
	return r, changed
}
