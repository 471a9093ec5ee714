package api

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	volumes := map[string]bool{}
	for i, v := range s.Volumes {
		at := path.Child("volumes").Index(i).Child("name")
		errs = append(errs, validateName(v.Name, at)...)
		if volumes[v.Name] {
			errs = append(errs, field.Duplicate(at, v.Name))
		}
		volumes[v.Name] = true
	}
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	names := map[string]bool{}
	for i := range s.InitContainers {
		errs = append(errs, validateContainer(&s.InitContainers[i], names, volumes, path.Child("initContainers").Index(i))...)
	}
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], names, volumes, path.Child("containers").Index(i))...)
	}
	errs = append(errs, oneOf(s.RestartPolicy, path.Child("restartPolicy"),
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, oneOf(s.DNSPolicy, path.Child("dnsPolicy"),
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	if s.NodeName != "" {
		for _, message := range apivalidation.NameIsDNSSubdomain(s.NodeName, false) {
			errs = append(errs, field.Invalid(path.Child("nodeName"), s.NodeName, message))
		}
	}
	return append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
}

func validateContainer(c *corev1.Container, names, volumes map[string]bool, path *field.Path) field.ErrorList {
	errs := validateName(c.Name, path.Child("name"))
	if names[c.Name] {
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	}
	names[c.Name] = true
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	errs = append(errs, oneOf(c.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	for i, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			errs = append(errs, field.NotFound(path.Child("volumeMounts").Index(i).Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(path.Child("volumeMounts").Index(i).Child("mountPath"), ""))
		}
	}
	for i, p := range c.Ports {
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("ports").Index(i).Child("containerPort"), ""))
			continue
		}
		for _, message := range validation.IsValidPortNum(int(p.ContainerPort)) {
			errs = append(errs, field.Invalid(path.Child("ports").Index(i).Child("containerPort"), p.ContainerPort, message))
		}
	}
	for name, limit := range c.Resources.Limits {
		if request, ok := c.Resources.Requests[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("resources", "requests"), request.String(),
				"must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		at := path.Index(i)
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpEqual, "":
			if t.Key == "" {
				errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
			}
		default:
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []string{string(corev1.TolerationOpEqual), string(corev1.TolerationOpExists)}))
		}
	}
	return errs
}

// validatePodUpdate lets only images, tolerations (additions) and the active deadline of a Pod change.
func validatePodUpdate(s, old *corev1.PodSpec, path *field.Path) field.ErrorList {
	if len(s.Containers) != len(old.Containers) {
		return field.ErrorList{field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers")}
	}
	if len(s.InitContainers) != len(old.InitContainers) {
		return field.ErrorList{field.Forbidden(path.Child("initContainers"), "pod updates may not add or remove containers")}
	}
	var errs field.ErrorList
	for _, t := range old.Tolerations {
		if !slices.ContainsFunc(s.Tolerations, func(n corev1.Toleration) bool {
			return n.Key == t.Key && n.Effect == t.Effect && n.Operator == t.Operator && n.Value == t.Value
		}) {
			errs = append(errs, field.Forbidden(path.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
			break
		}
	}
	fixed := s.DeepCopy()
	for i := range fixed.Containers {
		fixed.Containers[i].Image = old.Containers[i].Image
	}
	for i := range fixed.InitContainers {
		fixed.InitContainers[i].Image = old.InitContainers[i].Image
	}
	fixed.ActiveDeadlineSeconds, fixed.Tolerations = old.ActiveDeadlineSeconds, old.Tolerations
	if !equality.Semantic.DeepEqual(fixed, old) {
		errs = append(errs, field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

func validateName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

func oneOf[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}
