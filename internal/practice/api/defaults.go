package api

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/defaults"
)

// setDefaults fills in what clients leave out, as decoding does on a real server (kubernetes: pkg/apis/*/v1/defaults.go).
// Probes and kubectl depend on these; two objects that mean the same must also compare the same.
func setDefaults(o object) {
	switch o := o.(type) {
	case *corev1.Pod:
		defaults.PodSpec(&o.Spec)
		defaults.Fallback(&o.Spec.EnableServiceLinks, true)
		defaults.LimitsAreRequests(&o.Spec)
	case *corev1.Node:
		if o.Status.Allocatable == nil {
			o.Status.Allocatable = o.Status.Capacity.DeepCopy()
		}
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
	case *corev1.Service:
		defaultService(&o.Spec)
	case *appsv1.DaemonSet:
		defaults.DaemonSet(&o.Spec)
	case *appsv1.Deployment:
		defaults.Deployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaults.StatefulSet(&o.Spec)
	case *appsv1.ReplicaSet:
		defaults.Fallback(&o.Spec.Replicas, 1)
		defaults.PodSpec(&o.Spec.Template.Spec)
	case *appsv1.ControllerRevision:
		// Protobuf carries only the encoded form.
		if o.Data.Raw == nil && o.Data.Object != nil {
			if data, err := json.Marshal(o.Data.Object); err == nil {
				o.Data = runtime.RawExtension{Raw: data}
			}
		}
	case *schedulingv1.PriorityClass:
		defaults.Fallback(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			defaults.Fallback(&o.Ports[i].Name, "")
			defaults.Fallback(&o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
			defaults.Fallback(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		}
	}
}

func defaultService(s *corev1.ServiceSpec) {
	if s.Type == "" {
		s.Type = corev1.ServiceTypeClusterIP
	}
	if s.SessionAffinity == "" {
		s.SessionAffinity = corev1.ServiceAffinityNone
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if s.Type != corev1.ServiceTypeExternalName {
		defaults.Fallback(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
}

func defaultWebhook(failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector,
	timeout **int32, client *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	defaults.Fallback(failure, admissionv1.Fail)
	defaults.Fallback(match, admissionv1.Equivalent)
	defaults.Fallback(namespaces, metav1.LabelSelector{})
	defaults.Fallback(objects, metav1.LabelSelector{})
	defaults.Fallback(timeout, 10)
	if client.Service != nil {
		defaults.Fallback(&client.Service.Port, 443)
	}
	for i := range rules {
		defaults.Fallback(&rules[i].Scope, admissionv1.AllScopes)
	}
}
