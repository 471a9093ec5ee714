package cluster

import (
	"slices"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeLeaseNamespace holds the kubelets' heartbeats, ControlPlaneNamespace the
// Leases of the control plane's components.
const (
	NodeLeaseNamespace    = "kube-node-lease"
	ControlPlaneNamespace = "kube-system"
)

type eventKey struct{ kind, namespace, name string }

type index struct {
	node         map[string]*corev1.Node
	pod          map[types.NamespacedName]*corev1.Pod
	podsByOwner  map[types.UID][]*corev1.Pod
	podsByNode   map[string][]*corev1.Pod
	revisions    map[types.UID][]*appsv1.ControllerRevision
	replicaSets  map[types.UID][]*appsv1.ReplicaSet
	nodeLease    map[string]*coordinationv1.Lease
	controlLease map[string]*coordinationv1.Lease
	events       map[eventKey][]*corev1.Event
}

func byName[T metav1.Object](s []T) {
	slices.SortFunc(s, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		if c := strings.Compare(a.GetName(), b.GetName()); c != 0 {
			return c
		}
		return strings.Compare(string(a.GetUID()), string(b.GetUID()))
	})
}

// sort puts every list into one order, so that the order of the input never
// shows in a report. The lists are copied: the caller's stay as they are.
func (o *Objects) sort() {
	sorted(&o.Nodes)
	sorted(&o.Pods)
	sorted(&o.DaemonSets)
	sorted(&o.Deployments)
	sorted(&o.ReplicaSets)
	sorted(&o.StatefulSets)
	sorted(&o.ControllerRevisions)
	sorted(&o.Events)
	sorted(&o.Leases)
	sorted(&o.PodDisruptionBudgets)
	sorted(&o.ResourceQuotas)
	sorted(&o.Namespaces)
	sorted(&o.PriorityClasses)
	sorted(&o.CSINodes)
	sorted(&o.Services)
	sorted(&o.EndpointSlices)
	sorted(&o.ValidatingWebhooks)
	sorted(&o.MutatingWebhooks)
	sorted(&o.Others)
}

func sorted[T metav1.Object](s *[]T) {
	c := slices.Clone(*s)
	byName(c)
	*s = c
}

func newIndex(o *Objects) index {
	x := index{
		node:         make(map[string]*corev1.Node, len(o.Nodes)),
		pod:          make(map[types.NamespacedName]*corev1.Pod, len(o.Pods)),
		podsByOwner:  map[types.UID][]*corev1.Pod{},
		podsByNode:   map[string][]*corev1.Pod{},
		revisions:    map[types.UID][]*appsv1.ControllerRevision{},
		replicaSets:  map[types.UID][]*appsv1.ReplicaSet{},
		nodeLease:    map[string]*coordinationv1.Lease{},
		controlLease: map[string]*coordinationv1.Lease{},
		events:       map[eventKey][]*corev1.Event{},
	}
	for _, n := range o.Nodes {
		x.node[n.Name] = n
	}
	for _, p := range o.Pods {
		x.pod[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
		if c := metav1.GetControllerOfNoCopy(p); c != nil {
			x.podsByOwner[c.UID] = append(x.podsByOwner[c.UID], p)
		}
		if t := TargetNode(p); t != "" {
			x.podsByNode[t] = append(x.podsByNode[t], p)
		}
	}
	for _, r := range o.ControllerRevisions {
		if c := metav1.GetControllerOfNoCopy(r); c != nil {
			x.revisions[c.UID] = append(x.revisions[c.UID], r)
		}
	}
	for _, rs := range x.revisions {
		sort.SliceStable(rs, func(i, j int) bool { return rs[i].Revision > rs[j].Revision })
	}
	for _, r := range o.ReplicaSets {
		if c := metav1.GetControllerOfNoCopy(r); c != nil {
			x.replicaSets[c.UID] = append(x.replicaSets[c.UID], r)
		}
	}
	for _, l := range o.Leases {
		switch l.Namespace {
		case NodeLeaseNamespace:
			x.nodeLease[l.Name] = l
		case ControlPlaneNamespace:
			x.controlLease[l.Name] = l
		}
	}
	for _, e := range o.Events {
		k := eventKey{e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name}
		if k.kind == "Node" {
			k.namespace = "" // Node events carry no or any namespace
		}
		x.events[k] = append(x.events[k], e)
	}
	for _, es := range x.events {
		sort.SliceStable(es, func(i, j int) bool { return EventOnset(es[i]).Before(EventOnset(es[j])) })
	}
	return x
}

// Node returns the Node object of that name, or nil.
func (s *Snapshot) Node(name string) *corev1.Node { return s.index.node[name] }

// Pod returns the Pod of that name, or nil.
func (s *Snapshot) Pod(namespace, name string) *corev1.Pod {
	return s.index.pod[types.NamespacedName{Namespace: namespace, Name: name}]
}

// PodsOf returns the Pods controlled by the object with that UID. For a
// Deployment ask with the UIDs of its ReplicaSets.
func (s *Snapshot) PodsOf(owner types.UID) []*corev1.Pod { return s.index.podsByOwner[owner] }

// PodsOn returns the Pods that run on the node or are aimed at it.
func (s *Snapshot) PodsOn(node string) []*corev1.Pod { return s.index.podsByNode[node] }

// RevisionsOf returns the ControllerRevisions of a DaemonSet or StatefulSet, the
// highest number first. The number orders history, the creation time does not.
func (s *Snapshot) RevisionsOf(owner types.UID) []*appsv1.ControllerRevision {
	return s.index.revisions[owner]
}

// ReplicaSetsOf returns the ReplicaSets of a Deployment.
func (s *Snapshot) ReplicaSetsOf(owner types.UID) []*appsv1.ReplicaSet {
	return s.index.replicaSets[owner]
}

// NodeLease returns the heartbeat of a node, or nil where it was not read.
func (s *Snapshot) NodeLease(node string) *coordinationv1.Lease { return s.index.nodeLease[node] }

// ControlPlaneLease returns the leader election Lease of a component, or nil.
func (s *Snapshot) ControlPlaneLease(component string) *coordinationv1.Lease {
	return s.index.controlLease[component]
}

// EventsOf returns the events about an object, by their onset. Node events are
// matched by name only: their UID differs between kubelet versions.
func (s *Snapshot) EventsOf(kind, namespace, name string) []*corev1.Event {
	if kind == "Node" {
		namespace = ""
	}
	return s.index.events[eventKey{kind, namespace, name}]
}

func sortResources(r []Resource) { slices.Sort(r) }
