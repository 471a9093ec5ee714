// Package cluster is what was read of a cluster at one moment: the typed objects,
// indexed the way probes ask, how fresh each kind is, what could not be read, and
// the History of what the API forgets. It holds facts and computes what Kubernetes
// itself defines (which nodes a DaemonSet counts, which Pod is updated); it draws
// no conclusions and does no I/O.
package cluster

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is the plural name of a kind, as in a URL: "nodes", "daemonsets".
type Resource string

// The resources that a Snapshot holds.
const (
	Nodes                Resource = "nodes"
	Pods                 Resource = "pods"
	DaemonSets           Resource = "daemonsets"
	Deployments          Resource = "deployments"
	ReplicaSets          Resource = "replicasets"
	StatefulSets         Resource = "statefulsets"
	ControllerRevisions  Resource = "controllerrevisions"
	Events               Resource = "events"
	Leases               Resource = "leases"
	PodDisruptionBudgets Resource = "poddisruptionbudgets"
	ResourceQuotas       Resource = "resourcequotas"
	Namespaces           Resource = "namespaces"
	PriorityClasses      Resource = "priorityclasses"
	CSINodes             Resource = "csinodes"
	Services             Resource = "services"
	EndpointSlices       Resource = "endpointslices"
	ValidatingWebhooks   Resource = "validatingwebhookconfigurations"
	MutatingWebhooks     Resource = "mutatingwebhookconfigurations"
	ConfigMaps           Resource = "configmaps"
)

// Objects are the objects of a Snapshot, in any order. Whoever hands them over
// does not change them afterwards.
type Objects struct {
	Nodes                []*corev1.Node
	Pods                 []*corev1.Pod
	DaemonSets           []*appsv1.DaemonSet
	Deployments          []*appsv1.Deployment
	ReplicaSets          []*appsv1.ReplicaSet
	StatefulSets         []*appsv1.StatefulSet
	ControllerRevisions  []*appsv1.ControllerRevision
	Events               []*corev1.Event // events.k8s.io/v1 converted
	Leases               []*coordinationv1.Lease
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	ResourceQuotas       []*corev1.ResourceQuota
	Namespaces           []*corev1.Namespace
	PriorityClasses      []*schedulingv1.PriorityClass
	CSINodes             []*storagev1.CSINode
	Services             []*corev1.Service
	EndpointSlices       []*discoveryv1.EndpointSlice
	ValidatingWebhooks   []*admissionv1.ValidatingWebhookConfiguration
	MutatingWebhooks     []*admissionv1.MutatingWebhookConfiguration
	// Others are the metadata of ConfigMaps and of every kind not listed above. A live
	// snapshot holds there what takes effect without a rollout (see Demand.Settings).
	Others []*metav1.PartialObjectMetadata
}

// Source says where a Snapshot comes from.
type Source struct {
	Type    string // cluster, files or practice
	Context string
	Server  string
	Version string // of the API server: "v1.37.2"; "" where unknown
}

// Freshness is how current the picture of one resource is.
type Freshness struct {
	Loading bool      // the first read has not ended
	Since   time.Time // cluster time of the last successful contact
	Broken  string    // why it is not being updated now, "" while it is
}

// NotRead is something that the snapshot had to do without.
type NotRead struct {
	Resource  Resource
	Namespace string // "" for all
	Reason    string // Forbidden, Failed, Absent, NotAsked
	Detail    string
}

// NotAsked is the reason of a resource that nobody tried to read, because no probe
// asks for it there. That is no gap in the picture, but its absence proves nothing.
const NotAsked = "NotAsked"

// PodScope says whose Pods were read: all of them, or those of some workloads
// and nodes. A workload out of scope has unknown Pods, not none.
type PodScope struct {
	All    bool
	Owners map[types.UID]bool // DaemonSets, Deployments, StatefulSets
	Nodes  map[string]bool
}

// Meta is what a Snapshot knows besides its objects.
type Meta struct {
	// AsOf is the API server's clock; every age is measured against it.
	AsOf      time.Time
	Source    Source
	Freshness map[Resource]Freshness
	NotRead   []NotRead
	PodScope  PodScope
	// Newest is the latest time that the input holds where it was written after AsOf,
	// zero otherwise: then the objects show what they were later on.
	Newest time.Time
	// Past is the History of the snapshot before this one, nil at the start.
	Past *History
	// NodeGrace is node-monitor-grace-period where the operator gave it; 0 lets it be inferred.
	NodeGrace time.Duration
	// APIHost is the host that the program itself reaches the API server at, "" where unknown.
	APIHost string
	// LeaseScope says whose node Leases were read; a node out of it has an unknown Lease.
	// All of files' Leases are in scope.
	AllLeases bool
}

// Snapshot is everything read, at one moment. It is never changed after New
// returns and may be used by any number of goroutines.
type Snapshot struct {
	Objects
	Meta
	History *History

	index index
}

// New indexes objects and folds them into the History of meta.Past.
func New(o Objects, m Meta) *Snapshot {
	s := &Snapshot{Objects: o, Meta: m}
	s.Objects.sort()
	s.index = newIndex(&s.Objects)
	s.History = m.Past.fold(s)
	s.Meta.Past = nil
	return s
}

// Loading lists the resources whose first read has not ended, sorted.
func (s *Snapshot) Loading() []Resource {
	var out []Resource
	for r, f := range s.Freshness {
		if f.Loading {
			out = append(out, r)
		}
	}
	sortResources(out)
	return out
}

// Read tells whether the resource was read, at least in part.
func (s *Snapshot) Read(r Resource) bool {
	for _, n := range s.NotRead {
		if n.Resource == r && n.Namespace == "" {
			return false
		}
	}
	f, ok := s.Freshness[r]
	return !ok || !f.Loading
}

// PodsKnown tells whether the Pods of the workload with that UID were read.
func (s *Snapshot) PodsKnown(owner types.UID) bool {
	return s.Read(Pods) && (s.PodScope.All || s.PodScope.Owners[owner])
}
