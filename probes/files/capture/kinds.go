package capture

import (
	"path"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// kind says how one resource is read.
type kind struct {
	resource   cluster.Resource
	group      string // "" is the core group
	version    string
	kind       string
	namespaced bool
	// cached lists are answered from the API server's memory (resourceVersion=0):
	// what is small and hardly changes. That answer comes whole and may be some
	// moments old; everything else is read as of now, in pages.
	cached   bool
	metadata bool // its metadata alone is asked for
	// plural is its name in a URL where resource, which tells groups apart, is another.
	plural string
}

// kinds are those that package files keeps, in the order in which they are read:
// what changes least comes first, so that the picture of nodes, Pods and Leases is
// of one moment as nearly as it can be.
var kinds = []kind{
	{resource: cluster.Namespaces, version: "v1", kind: "Namespace", cached: true},
	{resource: cluster.PriorityClasses, group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", cached: true},
	{resource: cluster.CSINodes, group: "storage.k8s.io", version: "v1", kind: "CSINode", cached: true},
	{resource: cluster.ValidatingWebhooks, group: "admissionregistration.k8s.io", version: "v1", kind: "ValidatingWebhookConfiguration", cached: true},
	{resource: cluster.MutatingWebhooks, group: "admissionregistration.k8s.io", version: "v1", kind: "MutatingWebhookConfiguration", cached: true},
	{resource: cluster.ConfigMaps, version: "v1", kind: "ConfigMap", namespaced: true, metadata: true},
	{resource: cluster.ResourceQuotas, version: "v1", kind: "ResourceQuota", namespaced: true, cached: true},
	{resource: cluster.PodDisruptionBudgets, group: "policy", version: "v1", kind: "PodDisruptionBudget", namespaced: true, cached: true},
	{resource: cluster.Services, version: "v1", kind: "Service", namespaced: true, cached: true},
	{resource: cluster.EndpointSlices, group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", namespaced: true},
	{resource: cluster.ControllerRevisions, group: "apps", version: "v1", kind: "ControllerRevision", namespaced: true},
	{resource: cluster.ReplicaSets, group: "apps", version: "v1", kind: "ReplicaSet", namespaced: true},
	{resource: cluster.Events, version: "v1", kind: "Event", namespaced: true},
	{resource: cluster.Pods, version: "v1", kind: "Pod", namespaced: true},
	{resource: cluster.Deployments, group: "apps", version: "v1", kind: "Deployment", namespaced: true},
	{resource: cluster.StatefulSets, group: "apps", version: "v1", kind: "StatefulSet", namespaced: true},
	{resource: cluster.DaemonSets, group: "apps", version: "v1", kind: "DaemonSet", namespaced: true},
	{resource: cluster.Nodes, version: "v1", kind: "Node"},
	{resource: cluster.Leases, group: "coordination.k8s.io", version: "v1", kind: "Lease", namespaced: true},
}

// part is one read of a resource: a list, or an object by its name.
type part struct {
	namespace string
	name      string
	fields    string // selector
}

// parts are the reads of a resource where namespace, "" for all, is captured.
func (k kind) parts(namespace string) []part {
	switch {
	case k.resource == cluster.Leases:
		// The nodes' heartbeats, and whether the control plane's parts are alive. Others
		// are locks of controllers, which nobody asks about.
		return []part{
			{namespace: cluster.NodeLeaseNamespace},
			{namespace: cluster.ControlPlaneNamespace, name: "kube-controller-manager"},
			{namespace: cluster.ControlPlaneNamespace, name: "kube-scheduler"},
		}
	case k.resource == cluster.Events && namespace != "" && namespace != nodeEvents:
		return []part{{namespace: namespace}, {namespace: nodeEvents, fields: "involvedObject.kind=Node"}}
	case k.namespaced:
		return []part{{namespace: namespace}}
	}
	return []part{{}}
}

// nodeEvents is the namespace of Node events, whatever the Node's own.
// Source: client-go tools/record/event.go, makeEvent.
const nodeEvents = "default"

// path is where a part is read.
func (k kind) path(p part) string {
	base := path.Join("/apis", k.group, k.version)
	if k.group == "" {
		base = path.Join("/api", k.version)
	}
	if p.namespace != "" {
		base = path.Join(base, "namespaces", p.namespace)
	}
	name := k.plural
	if name == "" {
		name = string(k.resource)
	}
	return path.Join(base, name, p.name)
}

func (k kind) apiVersion() string { return path.Join(k.group, k.version) }
