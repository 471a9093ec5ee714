package api

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateDaemonSetStrategy follows ValidateDaemonSetUpdateStrategy: exactly one of maxUnavailable and maxSurge is not 0.
func validateDaemonSetStrategy(s appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, s, []string{
			string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType)})}
	}
	rolling := path.Child("rollingUpdate")
	unavailable, surge := *s.RollingUpdate.MaxUnavailable, *s.RollingUpdate.MaxSurge
	errs := validateBudget(unavailable, rolling.Child("maxUnavailable"))
	errs = append(errs, validateBudget(surge, rolling.Child("maxSurge"))...)
	errs = append(errs, validateAtMost100(unavailable, rolling.Child("maxUnavailable"))...)
	errs = append(errs, validateAtMost100(surge, rolling.Child("maxSurge"))...)
	switch {
	case budget(unavailable) != 0 && budget(surge) != 0:
		errs = append(errs, field.Invalid(rolling.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	case budget(unavailable) == 0 && budget(surge) == 0:
		errs = append(errs, field.Required(rolling.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validateDeploymentStrategy(s appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, s, []string{
			string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)})}
	}
	unavailable, surge := *s.RollingUpdate.MaxUnavailable, *s.RollingUpdate.MaxSurge
	errs := validateBudget(unavailable, rolling.Child("maxUnavailable"))
	errs = append(errs, validateBudget(surge, rolling.Child("maxSurge"))...)
	if budget(unavailable) == 0 && budget(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, validateAtMost100(unavailable, rolling.Child("maxUnavailable"))...)
}

func validateStatefulSetStrategy(s appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), s.RollingUpdate,
				"only allowed for updateStrategy 'RollingUpdate'")}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
		return nonNegative(int64(*s.RollingUpdate.Partition), path.Child("rollingUpdate", "partition"))
	default:
		return field.ErrorList{field.Invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'")}
	}
}

func validateStatefulSetUpdate(s, old *appsv1.StatefulSetSpec, path *field.Path) field.ErrorList {
	fixed := *s
	fixed.Replicas, fixed.Template, fixed.UpdateStrategy = old.Replicas, old.Template, old.UpdateStrategy
	fixed.MinReadySeconds, fixed.Ordinals = old.MinReadySeconds, old.Ordinals
	fixed.RevisionHistoryLimit = old.RevisionHistoryLimit
	fixed.PersistentVolumeClaimRetentionPolicy = old.PersistentVolumeClaimRetentionPolicy
	if equality.Semantic.DeepEqual(fixed, *old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}

// validateBudget wants a number of at least 0 or a percentage.
func validateBudget(v intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.Int {
		return nonNegative(int64(v.IntVal), path)
	}
	var errs field.ErrorList
	for _, message := range validation.IsValidPercent(v.StrVal) {
		errs = append(errs, field.Invalid(path, v, message))
	}
	return errs
}

func validateAtMost100(v intstr.IntOrString, path *field.Path) field.ErrorList {
	if percent, ok := percentage(v); ok && percent > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}

// budget is the number or the percentage, as it stands: what validation asks is whether it is zero.
func budget(v intstr.IntOrString) int {
	if percent, ok := percentage(v); ok {
		return percent
	}
	return v.IntValue()
}

func percentage(v intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n, err == nil
}
