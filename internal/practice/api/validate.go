package api

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validation of what an operator can get wrong by hand, with the API server's paths and words (kubernetes:
// pkg/apis/{core,apps}/validation/validation.go). It is no complete validation: what it lets pass may still be refused by a
// real server.

// invalid wraps what validation found as the API server does, or is nil.
func invalid(r *resource, o object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.gvk().GroupKind(), o.GetName(), errs)
}

func mustSpecifyVersion() field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), uint64(0), "must be specified for an update")}
}

// validate checks a new object.
func validate(r *resource, o object) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessor(o, r.namespaced, nameRule(o), field.NewPath("metadata"))
	return append(errs, validateSpec(o)...)
}

// validateUpdate checks an object that takes the place of old.
func validateUpdate(o, old object, subresource string) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(o, old, field.NewPath("metadata"))
	if subresource != "" {
		return errs
	}
	errs = append(errs, validateImmutable(o, old)...)
	return append(errs, validateSpec(o)...)
}

func nameRule(o object) apivalidation.ValidateNameFunc {
	switch o.(type) {
	case *corev1.Namespace:
		return apivalidation.NameIsDNSLabel
	case *corev1.Service:
		return apivalidation.NameIsDNS1035Label
	default:
		return apivalidation.NameIsDNSSubdomain
	}
}

func validateSpec(o object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *corev1.Pod:
		return validatePodSpec(&o.Spec, spec)
	case *corev1.Node:
		return validateTaints(o.Spec.Taints, field.NewPath("metadata", "taints")) // the server's own slip: not spec.taints
	case *appsv1.DaemonSet:
		errs := validateTemplate(o.Spec.Selector, &o.Spec.Template, "daemonset", spec)
		errs = append(errs, nonNegative(int64(o.Spec.MinReadySeconds), spec.Child("minReadySeconds"))...)
		errs = append(errs, validateDaemonSetStrategy(o.Spec.UpdateStrategy, spec.Child("updateStrategy"))...)
		return append(errs, nonNegative(int64(*o.Spec.RevisionHistoryLimit), spec.Child("revisionHistoryLimit"))...)
	case *appsv1.Deployment:
		errs := nonNegative(int64(*o.Spec.Replicas), spec.Child("replicas"))
		errs = append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, "deployment", spec)...)
		errs = append(errs, validateDeploymentStrategy(o.Spec.Strategy, spec.Child("strategy"))...)
		errs = append(errs, nonNegative(int64(o.Spec.MinReadySeconds), spec.Child("minReadySeconds"))...)
		errs = append(errs, nonNegative(int64(*o.Spec.RevisionHistoryLimit), spec.Child("revisionHistoryLimit"))...)
		errs = append(errs, nonNegative(int64(*o.Spec.ProgressDeadlineSeconds), spec.Child("progressDeadlineSeconds"))...)
		if *o.Spec.ProgressDeadlineSeconds <= o.Spec.MinReadySeconds {
			errs = append(errs, field.Invalid(spec.Child("progressDeadlineSeconds"), *o.Spec.ProgressDeadlineSeconds, "must be greater than minReadySeconds"))
		}
		return errs
	case *appsv1.StatefulSet:
		errs := nonNegative(int64(*o.Spec.Replicas), spec.Child("replicas"))
		errs = append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, "statefulset", spec)...)
		return append(errs, validateStatefulSetStrategy(o.Spec.UpdateStrategy, spec.Child("updateStrategy"))...)
	case *appsv1.ReplicaSet:
		errs := nonNegative(int64(*o.Spec.Replicas), spec.Child("replicas"))
		return append(errs, validateTemplate(o.Spec.Selector, &o.Spec.Template, "replicaset", spec)...)
	case *appsv1.ControllerRevision:
		if o.Data.Raw == nil && o.Data.Object == nil {
			return field.ErrorList{field.Required(field.NewPath("data"), "data is mandatory")}
		}
		return nonNegative(o.Revision, field.NewPath("revision"))
	}
	return nil
}

// validateTemplate checks the selector of a workload against its template, and the template.
func validateTemplate(selector *metav1.LabelSelector, t *corev1.PodTemplateSpec, kind string, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	template := spec.Child("template")
	if selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(spec.Child("selector"), selector, "empty selector is invalid for "+kind))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(template.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, metavalidation.ValidateLabels(t.Labels, template.Child("labels"))...)
	errs = append(errs, validatePodSpec(&t.Spec, template.Child("spec"))...)
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(template.Child("spec", "restartPolicy"), t.Spec.RestartPolicy, []string{string(corev1.RestartPolicyAlways)}))
	}
	return errs
}

func validateImmutable(o, old object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		return apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*appsv1.DaemonSet).Spec.Selector, spec.Child("selector"))
	case *appsv1.Deployment:
		return apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*appsv1.Deployment).Spec.Selector, spec.Child("selector"))
	case *appsv1.ReplicaSet:
		return apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*appsv1.ReplicaSet).Spec.Selector, spec.Child("selector"))
	case *appsv1.StatefulSet:
		return validateStatefulSetUpdate(&o.Spec, &old.(*appsv1.StatefulSet).Spec, spec)
	case *appsv1.ControllerRevision:
		return apivalidation.ValidateImmutableField(o.Data, old.(*appsv1.ControllerRevision).Data, field.NewPath("data"))
	case *corev1.Pod:
		return validatePodUpdate(&o.Spec, &old.(*corev1.Pod).Spec, spec)
	case *corev1.ConfigMap:
		return validateConfigMapUpdate(o, old.(*corev1.ConfigMap))
	}
	return nil
}

func validateConfigMapUpdate(o, old *corev1.ConfigMap) field.ErrorList {
	if old.Immutable == nil || !*old.Immutable {
		return nil
	}
	var errs field.ErrorList
	if o.Immutable == nil || !*o.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if len(apivalidation.ValidateImmutableField(o.Data, old.Data, field.NewPath("data"))) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, t := range taints {
		at := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		case "":
			errs = append(errs, field.Required(at.Child("effect"), ""))
		default:
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, []string{
				string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}))
		}
		id := strings.Join([]string{t.Key, string(t.Effect)}, ":")
		if seen[id] {
			dup := field.Duplicate(at, t)
			dup.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, dup)
		}
		seen[id] = true
	}
	return errs
}

func nonNegative(n int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(n, path)
}
