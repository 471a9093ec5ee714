package files

import (
	"cmp"
	"slices"
	"strconv"

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

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// identity tells objects apart: the resource of a kind that is kept whole, the
// group and kind of any other.
type identity struct{ kind, namespace, name string }

// store holds one copy of each object, in the order in which they came.
type store struct {
	kept       map[identity]int
	list       []metav1.Object
	seen       map[cluster.Resource]bool // kinds that the input holds, if only as an empty list
	duplicates int
}

func newStore() store {
	return store{kept: map[identity]int{}, seen: map[cluster.Resource]bool{}}
}

// put keeps the object. Of two copies the one with the newer resourceVersion
// stays, and the later one where that does not tell.
func (s *store) put(k identity, o metav1.Object) {
	i, again := s.kept[k]
	if !again {
		s.kept[k] = len(s.list)
		s.list = append(s.list, o)
		return
	}
	s.duplicates++
	if !older(o, s.list[i]) {
		s.list[i] = o
	}
}

// older compares resourceVersions, which are ordered as numbers.
func older(a, b metav1.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x < y
}

// objects sorts what was kept by type and counts it.
func (s *store) objects(st *Stats) cluster.Objects {
	var o cluster.Objects
	for _, v := range s.list {
		switch v := v.(type) {
		case *corev1.Node:
			o.Nodes = append(o.Nodes, v)
		case *corev1.Pod:
			o.Pods = append(o.Pods, v)
		case *appsv1.DaemonSet:
			o.DaemonSets = append(o.DaemonSets, v)
		case *appsv1.Deployment:
			o.Deployments = append(o.Deployments, v)
		case *appsv1.ReplicaSet:
			o.ReplicaSets = append(o.ReplicaSets, v)
		case *appsv1.StatefulSet:
			o.StatefulSets = append(o.StatefulSets, v)
		case *appsv1.ControllerRevision:
			o.ControllerRevisions = append(o.ControllerRevisions, v)
		case *corev1.Event:
			o.Events = append(o.Events, v)
		case *coordinationv1.Lease:
			o.Leases = append(o.Leases, v)
		case *policyv1.PodDisruptionBudget:
			o.PodDisruptionBudgets = append(o.PodDisruptionBudgets, v)
		case *corev1.ResourceQuota:
			o.ResourceQuotas = append(o.ResourceQuotas, v)
		case *corev1.Namespace:
			o.Namespaces = append(o.Namespaces, v)
		case *schedulingv1.PriorityClass:
			o.PriorityClasses = append(o.PriorityClasses, v)
		case *storagev1.CSINode:
			o.CSINodes = append(o.CSINodes, v)
		case *corev1.Service:
			o.Services = append(o.Services, v)
		case *discoveryv1.EndpointSlice:
			o.EndpointSlices = append(o.EndpointSlices, v)
		case *admissionv1.ValidatingWebhookConfiguration:
			o.ValidatingWebhooks = append(o.ValidatingWebhooks, v)
		case *admissionv1.MutatingWebhookConfiguration:
			o.MutatingWebhooks = append(o.MutatingWebhooks, v)
		case *metav1.PartialObjectMetadata:
			o.Others = append(o.Others, v)
			st.MetadataOnly[v.Kind]++
		}
	}
	// Objects of different kinds may share a name: their kind orders them too.
	slices.SortStableFunc(o.Others, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	for k := range s.kept {
		if slices.Contains(resources, cluster.Resource(k.kind)) {
			st.Kept[cluster.Resource(k.kind)]++
		}
	}
	return o
}

// resources are those of which a snapshot says whether they were read.
var resources = []cluster.Resource{
	cluster.Nodes, cluster.Pods, cluster.DaemonSets, cluster.Deployments, cluster.ReplicaSets, cluster.StatefulSets,
	cluster.ControllerRevisions, cluster.Events, cluster.Leases, cluster.PodDisruptionBudgets, cluster.ResourceQuotas,
	cluster.Namespaces, cluster.PriorityClasses, cluster.CSINodes, cluster.Services, cluster.EndpointSlices,
	cluster.ValidatingWebhooks, cluster.MutatingWebhooks, cluster.ConfigMaps,
}

// scope says what the snapshot had to do without: a kind that is absent from the
// input was not read, which is not the same as none.
func (s *store) scope(o *cluster.Objects, m *cluster.Meta) {
	m.Freshness = map[cluster.Resource]cluster.Freshness{}
	for _, r := range resources {
		if s.seen[r] {
			m.Freshness[r] = cluster.Freshness{Since: m.AsOf}
			continue
		}
		m.NotRead = append(m.NotRead, cluster.NotRead{Resource: r, Reason: "Absent"})
	}
	for _, l := range o.Leases {
		m.AllLeases = m.AllLeases || l.Namespace == cluster.NodeLeaseNamespace
	}
	if s.seen[cluster.Pods] {
		podScope(o, m)
	}
}

// podScope says whose Pods are in the input. `kubectl get pods -n one` beside
// workloads of all namespaces leaves the others' Pods unknown: a namespace
// without a single Pod whose workloads count some was not read.
func podScope(o *cluster.Objects, m *cluster.Meta) {
	read := map[string]bool{}
	for _, p := range o.Pods {
		read[p.Namespace] = true
	}
	missing := map[string]bool{}
	owners := map[types.UID]bool{}
	look := func(w metav1.Object, counted int32) {
		if !read[w.GetNamespace()] && counted > 0 {
			missing[w.GetNamespace()] = true
			return
		}
		owners[w.GetUID()] = true
	}
	for _, d := range o.DaemonSets {
		look(d, d.Status.CurrentNumberScheduled)
	}
	for _, d := range o.Deployments {
		look(d, d.Status.Replicas)
	}
	for _, d := range o.StatefulSets {
		look(d, d.Status.Replicas)
	}
	if len(missing) == 0 {
		m.PodScope.All = true
		return
	}
	m.PodScope.Owners = owners
	namespaces := make([]string, 0, len(missing))
	for ns := range missing {
		namespaces = append(namespaces, ns)
	}
	slices.Sort(namespaces)
	for _, ns := range namespaces {
		m.NotRead = append(m.NotRead, cluster.NotRead{Resource: cluster.Pods, Namespace: ns, Reason: "Absent", Detail: "its workloads count Pods, the input holds none"})
	}
}
