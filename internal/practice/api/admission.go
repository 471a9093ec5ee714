package api

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// defaultTolerationSeconds is what the DefaultTolerationSeconds plugin adds for not-ready and unreachable nodes.
const defaultTolerationSeconds = 300

// admitPod is what the registry and the plugins Priority and DefaultTolerationSeconds do to a new Pod.
func (s *Server) admitPod(p *corev1.Pod) error {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(p)}
	if err := s.resolvePriority(p); err != nil {
		return err
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesNoExecute(p, key) {
			seconds := int64(defaultTolerationSeconds)
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
		}
	}
	return nil
}

func toleratesNoExecute(p *corev1.Pod, key string) bool {
	for _, t := range p.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

// resolvePriority sets priority and preemption policy from the class (kubernetes: plugin/pkg/admission/priority).
func (s *Server) resolvePriority(p *corev1.Pod) error {
	value, policy := int32(0), corev1.PreemptLowerPriority
	classes := s.collections[schedulingv1.Resource("priorityclasses")]
	if name := p.Spec.PriorityClassName; name != "" {
		class, _ := classes.objects[name].(*schedulingv1.PriorityClass)
		if class == nil {
			return apierrors.NewForbidden(corev1.Resource("pods"), p.Name, fmt.Errorf("no PriorityClass with name %s was found", name))
		}
		value, policy = class.Value, classPolicy(class)
	} else {
		for _, k := range classes.keys {
			if class := classes.objects[k].(*schedulingv1.PriorityClass); class.GlobalDefault {
				p.Spec.PriorityClassName, value, policy = class.Name, class.Value, classPolicy(class)
				break
			}
		}
	}
	if p.Spec.Priority != nil && *p.Spec.Priority != value {
		return apierrors.NewForbidden(corev1.Resource("pods"), p.Name, fmt.Errorf(
			"the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
			*p.Spec.Priority, value))
	}
	p.Spec.Priority = &value
	if p.Spec.PreemptionPolicy == nil {
		p.Spec.PreemptionPolicy = &policy
	}
	return nil
}

func classPolicy(c *schedulingv1.PriorityClass) corev1.PreemptionPolicy {
	if c.PreemptionPolicy != nil {
		return *c.PreemptionPolicy
	}
	return corev1.PreemptLowerPriority
}

// qosClass follows kubernetes: pkg/apis/core/v1/helper/qos/qos.go.
func qosClass(p *corev1.Pod) corev1.PodQOSClass {
	some, guaranteed := false, true
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range containers {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := quantity(c.Resources.Requests, name), quantity(c.Resources.Limits, name)
				some = some || !request.IsZero() || !limit.IsZero()
				guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
			}
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func quantity(l corev1.ResourceList, name corev1.ResourceName) apiresource.Quantity { return l[name] }
