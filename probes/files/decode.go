package files

import (
	"encoding/json"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// kept are the kinds that are kept whole, at the versions that are decoded.
var kept = map[schema.GroupVersionKind]struct {
	resource cluster.Resource
	empty    func() metav1.Object
}{
	corev1.SchemeGroupVersion.WithKind("Node"):                                {cluster.Nodes, func() metav1.Object { return new(corev1.Node) }},
	corev1.SchemeGroupVersion.WithKind("Pod"):                                 {cluster.Pods, func() metav1.Object { return new(corev1.Pod) }},
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                           {cluster.DaemonSets, func() metav1.Object { return new(appsv1.DaemonSet) }},
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                          {cluster.Deployments, func() metav1.Object { return new(appsv1.Deployment) }},
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):                          {cluster.ReplicaSets, func() metav1.Object { return new(appsv1.ReplicaSet) }},
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                         {cluster.StatefulSets, func() metav1.Object { return new(appsv1.StatefulSet) }},
	appsv1.SchemeGroupVersion.WithKind("ControllerRevision"):                  {cluster.ControllerRevisions, func() metav1.Object { return new(appsv1.ControllerRevision) }},
	corev1.SchemeGroupVersion.WithKind("Event"):                               {cluster.Events, func() metav1.Object { return new(corev1.Event) }},
	eventsv1.SchemeGroupVersion.WithKind("Event"):                             {cluster.Events, func() metav1.Object { return new(eventsv1.Event) }},
	coordinationv1.SchemeGroupVersion.WithKind("Lease"):                       {cluster.Leases, func() metav1.Object { return new(coordinationv1.Lease) }},
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):               {cluster.PodDisruptionBudgets, func() metav1.Object { return new(policyv1.PodDisruptionBudget) }},
	corev1.SchemeGroupVersion.WithKind("ResourceQuota"):                       {cluster.ResourceQuotas, func() metav1.Object { return new(corev1.ResourceQuota) }},
	corev1.SchemeGroupVersion.WithKind("Namespace"):                           {cluster.Namespaces, func() metav1.Object { return new(corev1.Namespace) }},
	schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"):                 {cluster.PriorityClasses, func() metav1.Object { return new(schedulingv1.PriorityClass) }},
	storagev1.SchemeGroupVersion.WithKind("CSINode"):                          {cluster.CSINodes, func() metav1.Object { return new(storagev1.CSINode) }},
	corev1.SchemeGroupVersion.WithKind("Service"):                             {cluster.Services, func() metav1.Object { return new(corev1.Service) }},
	discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"):                  {cluster.EndpointSlices, func() metav1.Object { return new(discoveryv1.EndpointSlice) }},
	admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): {cluster.ValidatingWebhooks, func() metav1.Object { return new(admissionv1.ValidatingWebhookConfiguration) }},
	admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"):   {cluster.MutatingWebhooks, func() metav1.Object { return new(admissionv1.MutatingWebhookConfiguration) }},
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):                           {cluster.ConfigMaps, nil}, // metadata only
}

// typeMeta is what is looked at before an object is decoded.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// head is what is looked at before an object is decoded.
type head struct {
	typeMeta
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items         []json.RawMessage `json:"items"`
	Message       string            `json:"message"` // of a Status
	ServerVersion *struct {
		GitVersion string `json:"gitVersion"`
	} `json:"serverVersion"`

	object bool // it is a mapping at all
}

// peek reads the head of a JSON value. A field of the wrong type is no error here:
// decoding the object finds it and says what is wrong.
func peek(raw []byte) *head {
	var h head
	err := json.Unmarshal(raw, &h)
	h.object = len(raw) > 0 && raw[0] == '{' && (err == nil || isMistyped(err))
	return &h
}

// document decides what becomes of one object.
func (l *loader) document(s *stream, d document) {
	t := d.head
	if t == nil {
		t = peek(d.raw)
	}
	if !t.object {
		l.problem(d.file, d.line, "is not a Kubernetes object: it is no mapping with a kind")
		return
	}
	switch {
	case t.Kind == "" && strings.HasSuffix(d.list, "List"):
		t.Kind = strings.TrimSuffix(d.list, "List")
		l.object(d, t.typeMeta)
	case t.Kind == "" && t.ServerVersion != nil:
		l.version = t.ServerVersion.GitVersion
	case t.Kind == "":
		l.problem(d.file, d.line, "is not a Kubernetes object: it has no kind")
	case strings.HasPrefix(t.APIVersion, ownGroup):
		l.own(s, d, t.Kind)
	case l.compose != nil && l.compose.file == s:
		l.compose.add(t.Kind, d)
	case t.Kind == "Status":
		l.problem(d.file, d.line, "is an error that the API server answered, not an object: %.200q", t.Message)
	case strings.HasSuffix(t.Kind, "List") && t.Metadata.Name == "":
		for _, raw := range t.Items {
			l.document(s, document{file: d.file, dir: d.dir, line: d.line, raw: raw, list: t.Kind})
		}
		l.emptyList(t.Kind)
	default:
		l.object(d, t.typeMeta)
	}
}

func isMistyped(err error) bool {
	var mistyped *json.UnmarshalTypeError
	return errors.As(err, &mistyped)
}

// emptyList takes note that a list was read, so that none is told from not read.
func (l *loader) emptyList(kind string) {
	if _, k, ok := byKind(typeMeta{Kind: strings.TrimSuffix(kind, "List")}); ok {
		l.store.seen[k] = true
	}
}

// byKind finds the resource of a kind that is kept. Items of a typed list name
// neither kind nor version: then the kind alone decides.
func byKind(t typeMeta) (schema.GroupVersionKind, cluster.Resource, bool) {
	gvk := schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
	if k, ok := kept[gvk]; ok {
		return gvk, k.resource, true
	}
	if t.APIVersion == "" {
		for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion,
			policyv1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion, storagev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, admissionv1.SchemeGroupVersion} {
			if k, ok := kept[gv.WithKind(t.Kind)]; ok {
				return gv.WithKind(t.Kind), k.resource, true
			}
		}
	}
	return gvk, "", false
}

// object decodes one object and keeps it, or what is kept of it.
func (l *loader) object(d document, t typeMeta) {
	if t.Kind == "Secret" && (t.APIVersion == "v1" || t.APIVersion == "") {
		l.stats.Secrets++
		return
	}
	gvk, resource, known := byKind(t)
	var o metav1.Object
	whole := known && kept[gvk].empty != nil
	if whole {
		o = kept[gvk].empty()
	} else {
		o = new(metav1.PartialObjectMetadata)
	}
	// Fields that a newer server knows and this program does not are passed over.
	if err := kjson.Unmarshal(d.raw, o); err != nil {
		l.problem(d.file, d.line, "is not a valid %s: %s", t.Kind, strings.TrimPrefix(err.Error(), "json: "))
		return
	}
	if o.GetName() == "" {
		l.problem(d.file, d.line, "is a %s without a name", t.Kind)
		return
	}
	if e, ok := o.(*eventsv1.Event); ok {
		o = coreEvent(e)
	}
	key := identity{kind: string(resource), namespace: o.GetNamespace(), name: o.GetName()}
	if !whole {
		m := o.(*metav1.PartialObjectMetadata)
		m.Kind, m.APIVersion = gvk.Kind, gvk.GroupVersion().String()
		delete(m.Annotations, corev1.LastAppliedConfigAnnotation) // the data again, in clear
		key.kind = gvk.GroupKind().String()
	} else if p, ok := o.(*corev1.Pod); ok {
		dropFields(p)
	}
	if known {
		l.store.seen[resource] = true
	}
	l.store.put(key, o)
}

// dropFields keeps who wrote an object and when, and drops which fields: of Pods
// nobody asks for them, and they are half the size. Of kinds whose metadata alone is
// kept they tell what was changed in place.
func dropFields(o metav1.Object) {
	fields := o.GetManagedFields()
	for i := range fields {
		fields[i].FieldsV1 = nil
	}
}

// coreEvent turns an event of the events.k8s.io API into the core/v1 form that
// the API server itself gives of it.
// Source: pkg/apis/events/v1/conversion.go.
func coreEvent(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Reason:              e.Reason,
		Message:             e.Note,
		Type:                e.Type,
		Action:              e.Action,
		EventTime:           e.EventTime,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
	}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}
