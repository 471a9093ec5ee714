package api

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is what every stored kind is.
type object interface {
	runtime.Object
	metav1.Object
}

type groupResource = schema.GroupResource

// resource says how one kind is served. The table below is the one place to add a kind.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	singular   string
	short      []string
	categories []string
	namespaced bool
	example    object // an empty value of the kind's Go type

	hasStatus    bool // has a status subresource
	countsSpec   bool // metadata.generation counts changes of the spec
	mustVersion  bool // an update must name a resourceVersion (AllowUnconditionalUpdate false)
	createsOnPut bool // a PUT of a missing object creates it (AllowCreateOnUpdate)
	keepsStatus  bool // a status given at creation is kept: nodes, which register with it
	expires      bool // lives for EventTTL
	returnsLast  bool // a DELETE answers with the object, not with a Status (ReturnDeletedObject)
	storedAs     *resource
	toStored     func(object) object // from this version of the kind to the stored one
	fromStored   func(object) object
	otherSubs    []subresource
}

// subresource is one that discovery lists beside "status".
type subresource struct {
	name, group, version, kind string
	verbs                      []string
}

func (r *resource) key() groupResource { return r.gvr.GroupResource() }
func (r *resource) gvk() schema.GroupVersionKind {
	return r.gvr.GroupVersion().WithKind(r.kind)
}

// stored is the resource whose collection holds this one's objects.
func (r *resource) stored() *resource {
	if r.storedAs != nil {
		return r.storedAs
	}
	return r
}

func coreEvents() *resource {
	return &resource{gvr: corev1.SchemeGroupVersion.WithResource("events"), kind: "Event", singular: "event", short: []string{"ev"},
		namespaced: true, example: &corev1.Event{}, createsOnPut: true, expires: true}
}

var storedEvents = coreEvents()

var resources = []*resource{
	{gvr: corev1.SchemeGroupVersion.WithResource("nodes"), kind: "Node", singular: "node", short: []string{"no"},
		example: &corev1.Node{}, hasStatus: true, keepsStatus: true},
	{gvr: corev1.SchemeGroupVersion.WithResource("namespaces"), kind: "Namespace", singular: "namespace", short: []string{"ns"},
		example: &corev1.Namespace{}, returnsLast: true, hasStatus: true},
	{gvr: corev1.SchemeGroupVersion.WithResource("pods"), kind: "Pod", singular: "pod", short: []string{"po"}, categories: []string{"all"},
		namespaced: true, example: &corev1.Pod{}, returnsLast: true, hasStatus: true, countsSpec: true,
		otherSubs: []subresource{
			{name: "binding", version: "v1", kind: "Binding", verbs: []string{"create"}},
			{name: "eviction", group: "policy", version: "v1", kind: "Eviction", verbs: []string{"create"}},
			{name: "log", version: "v1", kind: "Pod", verbs: []string{"get"}},
		}},
	storedEvents,
	{gvr: eventsv1.SchemeGroupVersion.WithResource("events"), kind: "Event", singular: "event", short: []string{"ev"},
		namespaced: true, example: &eventsv1.Event{}, createsOnPut: true, expires: true,
		storedAs: storedEvents, toStored: eventToCore, fromStored: eventFromCore},
	{gvr: corev1.SchemeGroupVersion.WithResource("configmaps"), kind: "ConfigMap", singular: "configmap", short: []string{"cm"},
		namespaced: true, example: &corev1.ConfigMap{}},
	{gvr: corev1.SchemeGroupVersion.WithResource("secrets"), kind: "Secret", singular: "secret",
		namespaced: true, example: &corev1.Secret{}},
	{gvr: corev1.SchemeGroupVersion.WithResource("services"), kind: "Service", singular: "service", short: []string{"svc"}, categories: []string{"all"},
		namespaced: true, example: &corev1.Service{}, returnsLast: true, hasStatus: true},
	{gvr: corev1.SchemeGroupVersion.WithResource("endpoints"), kind: "Endpoints", singular: "endpoints", short: []string{"ep"},
		namespaced: true, example: &corev1.Endpoints{}, createsOnPut: true},
	{gvr: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), kind: "ServiceAccount", singular: "serviceaccount", short: []string{"sa"},
		namespaced: true, example: &corev1.ServiceAccount{}, returnsLast: true},
	{gvr: corev1.SchemeGroupVersion.WithResource("resourcequotas"), kind: "ResourceQuota", singular: "resourcequota", short: []string{"quota"},
		namespaced: true, example: &corev1.ResourceQuota{}, returnsLast: true, hasStatus: true},
	{gvr: discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), kind: "EndpointSlice", singular: "endpointslice",
		namespaced: true, example: &discoveryv1.EndpointSlice{}, countsSpec: true},
	{gvr: coordinationv1.SchemeGroupVersion.WithResource("leases"), kind: "Lease", singular: "lease",
		namespaced: true, example: &coordinationv1.Lease{}, createsOnPut: true, mustVersion: true},
	{gvr: appsv1.SchemeGroupVersion.WithResource("daemonsets"), kind: "DaemonSet", singular: "daemonset", short: []string{"ds"}, categories: []string{"all"},
		namespaced: true, example: &appsv1.DaemonSet{}, hasStatus: true, countsSpec: true},
	{gvr: appsv1.SchemeGroupVersion.WithResource("deployments"), kind: "Deployment", singular: "deployment", short: []string{"deploy"}, categories: []string{"all"},
		namespaced: true, example: &appsv1.Deployment{}, hasStatus: true, countsSpec: true},
	{gvr: appsv1.SchemeGroupVersion.WithResource("replicasets"), kind: "ReplicaSet", singular: "replicaset", short: []string{"rs"}, categories: []string{"all"},
		namespaced: true, example: &appsv1.ReplicaSet{}, hasStatus: true, countsSpec: true},
	{gvr: appsv1.SchemeGroupVersion.WithResource("statefulsets"), kind: "StatefulSet", singular: "statefulset", short: []string{"sts"}, categories: []string{"all"},
		namespaced: true, example: &appsv1.StatefulSet{}, hasStatus: true, countsSpec: true},
	{gvr: appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), kind: "ControllerRevision", singular: "controllerrevision",
		namespaced: true, example: &appsv1.ControllerRevision{}},
	{gvr: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), kind: "PodDisruptionBudget", singular: "poddisruptionbudget", short: []string{"pdb"},
		namespaced: true, example: &policyv1.PodDisruptionBudget{}, hasStatus: true, countsSpec: true, mustVersion: true},
	{gvr: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), kind: "NetworkPolicy", singular: "networkpolicy", short: []string{"netpol"},
		namespaced: true, example: &networkingv1.NetworkPolicy{}, countsSpec: true},
	{gvr: schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"), kind: "PriorityClass", singular: "priorityclass", short: []string{"pc"},
		example: &schedulingv1.PriorityClass{}, countsSpec: true},
	{gvr: storagev1.SchemeGroupVersion.WithResource("csinodes"), kind: "CSINode", singular: "csinode",
		example: &storagev1.CSINode{}, returnsLast: true},
	{gvr: admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), kind: "ValidatingWebhookConfiguration", singular: "validatingwebhookconfiguration",
		categories: []string{"api-extensions"}, example: &admissionv1.ValidatingWebhookConfiguration{}, countsSpec: true},
	{gvr: admissionv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"), kind: "MutatingWebhookConfiguration", singular: "mutatingwebhookconfiguration",
		categories: []string{"api-extensions"}, example: &admissionv1.MutatingWebhookConfiguration{}, countsSpec: true},
}

// resourceNamed is resourceFor for a resource of the table.
func resourceNamed(gvr schema.GroupVersionResource) *resource {
	r, err := resourceFor(gvr)
	if err != nil {
		panic(err) // the table lost a kind that the server itself needs
	}
	return r
}
