package api

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"reflect"
)

// What each kind's registry does to an object before it is stored (kubernetes: pkg/registry/*/*/strategy.go), and the
// admission plugins whose effects probes read.

func (s *Server) prepareForCreate(r *resource, o object) error {
	if r.hasStatus && !r.keepsStatus {
		part(o, "Status").SetZero()
	}
	if r.countsSpec {
		o.SetGeneration(1)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		return s.admitPod(o)
	case *corev1.Node:
		taintUnreadyNode(o)
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceActive
		o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		o.Labels = withValue(o.Labels, corev1.LabelMetadataName, o.Name)
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, 1)
	}
	return nil
}

// isolate keeps a write to one half of an object from touching the other.
func isolate(r *resource, o, old object, subresource string) {
	if r.hasStatus {
		if subresource == "status" {
			carryOver(o, old, "Spec")
		} else {
			carryOver(o, old, "Status")
		}
	}
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, templateGeneration(old.(*appsv1.DaemonSet)))
	case *corev1.Pod:
		if subresource != "status" {
			break
		}
		// kubernetes: pkg/registry/core/pod/strategy.go
		o.OwnerReferences = old.GetOwnerReferences()
		if o.Status.QOSClass == "" {
			o.Status.QOSClass = old.(*corev1.Pod).Status.QOSClass
		}
	}
}

// prepareForUpdate counts changes of what is wanted.
func prepareForUpdate(r *resource, o, old object, subresource string) {
	if subresource != "" || !r.countsSpec {
		return
	}
	if ds, ok := o.(*appsv1.DaemonSet); ok {
		was := old.(*appsv1.DaemonSet)
		if !equality.Semantic.DeepEqual(ds.Spec.Template, was.Spec.Template) {
			setTemplateGeneration(ds, templateGeneration(was)+1)
		}
	}
	_, copied := o.(*appsv1.Deployment) // whose annotations are copied to its ReplicaSets
	if wanted(o, old) || copied && !equality.Semantic.DeepEqual(o.GetAnnotations(), old.GetAnnotations()) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
}

// wanted says whether anything but metadata and status differs. Most kinds have a spec; the others (webhook
// configurations, priority classes, endpoint slices) keep what is wanted at their top.
func wanted(o, old object) bool {
	if spec := part(o, "Spec"); spec.IsValid() {
		return !equality.Semantic.DeepEqual(spec.Interface(), part(old, "Spec").Interface())
	}
	a, b := reflect.ValueOf(o).Elem(), reflect.ValueOf(old).Elem()
	for i := range a.NumField() {
		switch a.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			return true
		}
	}
	return false
}

// The template's generation lives in an annotation of apps/v1 (kubernetes: pkg/apis/apps/v1/conversion.go).

func templateGeneration(ds *appsv1.DaemonSet) int64 {
	n, _ := strconv.ParseInt(ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	return n
}

func setTemplateGeneration(ds *appsv1.DaemonSet, n int64) {
	ds.Annotations = withValue(ds.Annotations, appsv1.DeprecatedTemplateGeneration, strconv.FormatInt(n, 10))
}

// withValue is m with one more entry; m itself stays.
func withValue(m map[string]string, k, v string) map[string]string {
	if m[k] == v {
		return m
	}
	c := maps.Clone(m)
	if c == nil {
		c = map[string]string{}
	}
	c[k] = v
	return c
}

// taintUnreadyNode is the NodeTaint admission plugin: a new node is kept free of Pods until the node lifecycle controller
// has seen it Ready. (The plugin taints every new node; one that is created Ready stands for a node that has long been
// there, so it is left alone.)
func taintUnreadyNode(n *corev1.Node) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule {
			return
		}
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
}
