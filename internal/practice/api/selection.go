package api

import (
	"fmt"
	"net/http"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selection is which objects a LIST or WATCH wants.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// everything says whether the selectors leave nothing out.
func (s selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

// matches looks at an object of the stored version.
func (s selection) matches(o object) bool {
	if s.namespace != "" && o.GetNamespace() != s.namespace {
		return false
	}
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	return s.fields.Empty() || s.fields.Matches(fieldsOf(o))
}

// readListOptions reads the parameters of LIST and WATCH.
func readListOptions(req *http.Request) (*internalversion.ListOptions, error) {
	opts := &internalversion.ListOptions{}
	if err := internalscheme.ParameterCodec.DecodeParameters(req.URL.Query(), metav1.SchemeGroupVersion, opts); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(opts, true)
	if errs := internalvalidation.ValidateListOptions(opts, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return opts, nil
}

func readSelection(req *http.Request, q *request) (selection, error) {
	opts, err := readListOptions(req)
	if err != nil {
		return selection{}, err
	}
	return selectionOf(opts, q)
}

// selectionOf checks the selectors against what the kind supports; a name in the URL is a field selector.
func selectionOf(opts *internalversion.ListOptions, q *request) (selection, error) {
	s := selection{namespace: q.namespace, labels: labels.Everything(), fields: fields.Everything()}
	if opts.LabelSelector != nil {
		s.labels = opts.LabelSelector
	}
	if opts.FieldSelector != nil {
		known, err := opts.FieldSelector.Transform(func(label, value string) (string, string, error) {
			return q.resource.fieldLabel(label, value)
		})
		if err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
		s.fields = known
	}
	if q.name != "" {
		if name, ok := s.fields.RequiresExactMatch("metadata.name"); !s.fields.Empty() && (!ok || name != q.name) {
			return s, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
		s.fields = fields.OneTermEqualSelector("metadata.name", q.name)
	}
	return s, nil
}

// fieldLabel turns a label of a field selector into the stored version's (kubernetes: pkg/apis/*/v1/conversion.go).
func (r *resource) fieldLabel(label, value string) (string, string, error) {
	if r.storedAs == storedEvents {
		label = renamed(label, map[string]string{
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
			"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
			"regarding.apiVersion": "involvedObject.apiVersion", "regarding.resourceVersion": "involvedObject.resourceVersion",
			"regarding.fieldPath": "involvedObject.fieldPath", "reportingController": "reportingComponent"})
	}
	if r.kind == "Pod" {
		label = renamed(label, map[string]string{"spec.host": "spec.nodeName"})
	}
	if _, ok := fieldsOf(r.stored().example)[label]; ok {
		return label, value, nil
	}
	if r.gvr.Group == "" {
		return "", "", fmt.Errorf("field label not supported: %s", label)
	}
	return "", "", fmt.Errorf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", label)
}

func renamed(label string, names map[string]string) string {
	if name, ok := names[label]; ok {
		return name
	}
	return label
}

// fieldsOf are the fields that selectors can ask for (kubernetes: ToSelectableFields in pkg/registry/*/*/strategy.go).
func fieldsOf(o object) fields.Set {
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	switch o := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
		set["spec.restartPolicy"] = string(o.Spec.RestartPolicy)
		set["spec.schedulerName"] = o.Spec.SchedulerName
		set["spec.serviceAccountName"] = o.Spec.ServiceAccountName
		set["spec.hostNetwork"] = strconv.FormatBool(o.Spec.HostNetwork)
		set["status.phase"] = string(o.Status.Phase)
		set["status.podIP"] = o.Status.PodIP
		set["status.nominatedNodeName"] = o.Status.NominatedNodeName
	case *corev1.Node:
		delete(set, "metadata.namespace")
		set["spec.unschedulable"] = strconv.FormatBool(o.Spec.Unschedulable)
	case *corev1.Namespace:
		delete(set, "metadata.namespace")
		set["status.phase"] = string(o.Status.Phase)
	case *corev1.Secret:
		set["type"] = string(o.Type)
	case *corev1.Service:
		set["spec.clusterIP"] = o.Spec.ClusterIP
		set["spec.type"] = string(o.Spec.Type)
	case *appsv1.ReplicaSet:
		set["status.replicas"] = strconv.Itoa(int(o.Status.Replicas))
	case *corev1.Event:
		about := o.InvolvedObject
		set["involvedObject.kind"] = about.Kind
		set["involvedObject.namespace"] = about.Namespace
		set["involvedObject.name"] = about.Name
		set["involvedObject.uid"] = string(about.UID)
		set["involvedObject.apiVersion"] = about.APIVersion
		set["involvedObject.resourceVersion"] = about.ResourceVersion
		set["involvedObject.fieldPath"] = about.FieldPath
		set["reason"] = o.Reason
		set["reportingComponent"] = o.ReportingController
		set["source"] = o.Source.Component
		if set["source"] == "" {
			set["source"] = o.ReportingController
		}
		set["type"] = o.Type
	}
	return set
}
