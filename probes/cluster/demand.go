package cluster

import (
	"slices"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxLeases bounds how many Leases are polled: a heartbeat of each of 5,000
	// nodes would be 500 requests a second on an API server that suffers.
	maxLeases = 50
	// maxLedgers bounds the nodes whose Pods are all read.
	maxLedgers = 20
	// freshFor is how long after its Pod was replaced a node's heartbeat is
	// watched: the default grace period and a minute.
	freshFor = 110 * time.Second
)

// SuspectBefore is how long before the first node trouble a new revision is still
// suspected.
const SuspectBefore = time.Hour

// Demand is what a live snapshot should read next, by what it shows so far: Pods
// and their events are read for workloads under suspicion only, Leases for nodes
// under suspicion and freshly updated ones.
type Demand struct {
	Workloads []types.UID // whose Pods are wanted: DaemonSets, Deployments, StatefulSets
	Leases    []string    // nodes, the oldest trouble first, at most 50
	Nodes     []string    // whose Pods of every workload are wanted, at most 20
	Kinds     []Resource  // read whole, sorted; what is not named here stays NotAsked
	// Settings tells that the metadata of what takes effect without a rollout is
	// wanted, once and now and then again: network policies and settings of network
	// agents, and these ConfigMaps, sorted, at most 50.
	Settings   bool
	ConfigMaps []types.NamespacedName
}

// Demand works it out. Under suspicion are workloads with a rollout in progress,
// with unavailable or misscheduled Pods, and those whose revision became current
// within an hour before the first node trouble: the worst rollouts look complete.
func (s *Snapshot) Demand() Demand {
	var d Demand
	trouble := s.firstTrouble()
	for _, ds := range s.DaemonSets {
		if daemonSetMoves(ds) || !trouble.IsZero() && s.changedAt(ds, &ds.ObjectMeta).After(trouble.Add(-SuspectBefore)) {
			d.Workloads = append(d.Workloads, ds.UID)
		}
	}
	for _, dep := range s.Deployments {
		if deploymentMoves(dep) {
			d.Workloads = append(d.Workloads, dep.UID)
		}
	}
	for _, sts := range s.StatefulSets {
		if statefulSetMoves(sts) {
			d.Workloads = append(d.Workloads, sts.UID)
		}
	}
	d.Leases = s.suspectNodes()
	d.Nodes = s.nodesWanted()
	slices.Sort(d.Workloads)
	d.Kinds = s.kindsWanted(len(d.Workloads) > 0)
	if s.settingsWanted() {
		d.Settings, d.ConfigMaps = true, s.configMapsWanted(d.Workloads)
	}
	return d
}

func daemonSetMoves(ds *appsv1.DaemonSet) bool {
	st := ds.Status
	return st.ObservedGeneration < ds.Generation || st.UpdatedNumberScheduled < st.DesiredNumberScheduled ||
		st.NumberUnavailable > 0 || st.NumberMisscheduled > 0 || st.NumberReady < st.DesiredNumberScheduled ||
		st.CurrentNumberScheduled < st.DesiredNumberScheduled
}

func deploymentMoves(d *appsv1.Deployment) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	st := d.Status
	return st.ObservedGeneration < d.Generation || st.UpdatedReplicas < want || st.Replicas > st.UpdatedReplicas ||
		st.UnavailableReplicas > 0 || st.AvailableReplicas < want
}

func statefulSetMoves(d *appsv1.StatefulSet) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	st := d.Status
	return st.ObservedGeneration < d.Generation || st.ReadyReplicas < want || st.AvailableReplicas < want ||
		st.UpdateRevision != "" && st.CurrentRevision != st.UpdateRevision
}

// changedAt is the latest moment at which the template may have changed: the
// newest stored revision, or the last write of whoever owns the template.
func (s *Snapshot) changedAt(ds *appsv1.DaemonSet, o metav1.Object) time.Time {
	var t time.Time
	for _, r := range s.RevisionsOf(ds.UID) {
		if r.CreationTimestamp.After(t) {
			t = r.CreationTimestamp.Time
		}
	}
	if e := TemplateOwner(o); e != nil && e.Time.After(t) {
		t = e.Time.Time
	}
	return t
}

// firstTrouble is the earliest onset of a node's trouble within a day; zero
// without any. Nodes that have been down for longer say nothing of a rollout now.
func (s *Snapshot) firstTrouble() time.Time {
	var first time.Time
	see := func(t time.Time) {
		if s.AsOf.Sub(t) < remembered && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for _, n := range s.Objects.Nodes {
		if c := NodeCondition(n, corev1.NodeReady); c != nil && c.Status != corev1.ConditionTrue {
			see(c.LastTransitionTime.Time)
		}
		for _, t := range s.History.Node(n.Name).Transitions {
			if t.To != corev1.ConditionTrue && !t.First {
				see(t.At)
			}
		}
	}
	return first
}

func (s *Snapshot) suspectNodes() []string {
	type suspect struct {
		name  string
		since time.Time
	}
	var out []suspect
	seen := map[string]bool{}
	for _, n := range s.Objects.Nodes {
		if c := NodeCondition(n, corev1.NodeReady); c == nil || c.Status != corev1.ConditionTrue {
			since := n.CreationTimestamp.Time
			if c != nil {
				since = c.LastTransitionTime.Time
			}
			out, seen[n.Name] = append(out, suspect{n.Name, since}), true
		}
	}
	for _, p := range s.Objects.Pods {
		node := TargetNode(p)
		if c := metav1.GetControllerOfNoCopy(p); c == nil || c.Kind != "DaemonSet" || node == "" || seen[node] {
			continue
		}
		if s.AsOf.Sub(p.CreationTimestamp.Time) < freshFor || p.DeletionTimestamp != nil {
			out, seen[node] = append(out, suspect{node, p.CreationTimestamp.Time}), true
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].since.Before(out[j].since) })
	// Nodes that fell long ago are known to be down: the newest troubles tell more
	// when there are more than can be asked.
	if len(out) > maxLeases {
		out = out[len(out)-maxLeases:]
	}
	names := make([]string, 0, len(out))
	for _, o := range out {
		names = append(names, o.name)
	}
	return names
}
