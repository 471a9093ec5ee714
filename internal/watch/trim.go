package watch

import (
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leftOut stands where kubectl apply's copy of the object was: it may hold what the
// operator's manifest kept in plain text, and no probe reads it.
const leftOut = "(left out)"

// trimmer drops what no probe reads and shares what many objects repeat. It is
// safe for concurrent use.
type trimmer struct {
	mu     sync.Mutex
	fields map[string]*metav1.FieldsV1
	images map[string][]string // by their first name
}

func newTrimmer() *trimmer {
	return &trimmer{fields: map[string]*metav1.FieldsV1{}, images: map[string][]string{}}
}

// maxShared bounds each table: a cluster whose images or owners change for weeks
// must not grow it for ever.
const maxShared = 8192

// meta keeps who owns what was written when, and which fields only where keep says so.
func (t *trimmer) meta(m *metav1.ObjectMeta, keep func(*metav1.ManagedFieldsEntry) bool) {
	if _, ok := m.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		m.Annotations[corev1.LastAppliedConfigAnnotation] = leftOut
	}
	for i := range m.ManagedFields {
		e := &m.ManagedFields[i]
		switch {
		case e.FieldsV1 == nil:
		case keep == nil || !keep(e):
			e.FieldsV1 = nil
		default:
			e.FieldsV1 = t.share(e.FieldsV1)
		}
	}
}

func (t *trimmer) share(f *metav1.FieldsV1) *metav1.FieldsV1 {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := f.GetRawString()
	if s := t.fields[k]; s != nil {
		return s
	}
	if len(t.fields) >= maxShared {
		clear(t.fields)
	}
	t.fields[k] = f
	return f
}

// node keeps which images a node has (they decide how fast a rollback can be), but
// each image's names once for the cluster: 5,000 nodes with the same fifty images
// repeat some 40 MB of them.
func (t *trimmer) node(n *corev1.Node) {
	t.meta(&n.ObjectMeta, func(e *metav1.ManagedFieldsEntry) bool {
		raw := e.FieldsV1.GetRawString() // who set the taint or label, and when
		return e.Subresource == "" && (strings.Contains(raw, `"f:taints"`) || strings.Contains(raw, `"f:labels"`))
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range n.Status.Images {
		names := n.Status.Images[i].Names
		if len(names) == 0 {
			continue
		}
		if s := t.images[names[0]]; slices.Equal(s, names) {
			n.Status.Images[i].Names = s
			continue
		}
		if len(t.images) >= maxShared {
			clear(t.images)
		}
		t.images[names[0]] = names
	}
}

// spec keeps the fields of whoever wrote the spec: who owns the template and the
// strategy is asked of them. The status is the controller's.
func spec(e *metav1.ManagedFieldsEntry) bool { return e.Subresource == "" }

func (t *trimmer) daemonSet(o *appsv1.DaemonSet)     { t.meta(&o.ObjectMeta, spec) }
func (t *trimmer) deployment(o *appsv1.Deployment)   { t.meta(&o.ObjectMeta, spec) }
func (t *trimmer) statefulSet(o *appsv1.StatefulSet) { t.meta(&o.ObjectMeta, spec) }

func (t *trimmer) replicaSet(o *appsv1.ReplicaSet)       { t.meta(&o.ObjectMeta, nil) }
func (t *trimmer) revision(o *appsv1.ControllerRevision) { t.meta(&o.ObjectMeta, nil) }
func (t *trimmer) pod(o *corev1.Pod)                     { t.meta(&o.ObjectMeta, nil) }

func (t *trimmer) event(o *corev1.Event) { o.ManagedFields = nil }

// setting keeps who wrote which fields when, and the mark of a leader's lock.
func (t *trimmer) setting(o *metav1.PartialObjectMetadata) {
	t.meta(&o.ObjectMeta, spec)
	leader := o.Annotations[leaderLock]
	o.Annotations, o.Labels = nil, nil
	if leader != "" {
		o.Annotations = map[string]string{leaderLock: leader}
	}
}

// leaderLock is the annotation of a ConfigMap that holds a leader election.
const leaderLock = "control-plane.alpha.kubernetes.io/leader"

// plain is the trim of kinds that are few and small.
func plain[T metav1.Object](o T) {
	o.SetManagedFields(nil)
	if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		a[corev1.LastAppliedConfigAnnotation] = leftOut
	}
}

func (t *trimmer) service(o *corev1.Service) {
	plain(o)
	o.Status = corev1.ServiceStatus{}
}

// endpointSlice keeps who answers, and where. In a large cluster slices are most of
// what is read on demand.
func (t *trimmer) endpointSlice(o *discoveryv1.EndpointSlice) {
	o.ManagedFields, o.Annotations = nil, nil
	for i := range o.Endpoints {
		o.Endpoints[i].Hints, o.Endpoints[i].DeprecatedTopology = nil, nil
	}
}

// A webhook's CA bundle is most of its configuration and says nothing here. Who
// wrote its webhooks when does: that takes effect without a rollout.
func (t *trimmer) validatingWebhook(o *admissionv1.ValidatingWebhookConfiguration) {
	t.meta(&o.ObjectMeta, spec)
	for i := range o.Webhooks {
		o.Webhooks[i].ClientConfig.CABundle = nil
	}
}

func (t *trimmer) mutatingWebhook(o *admissionv1.MutatingWebhookConfiguration) {
	t.meta(&o.ObjectMeta, spec)
	for i := range o.Webhooks {
		o.Webhooks[i].ClientConfig.CABundle = nil
	}
}
