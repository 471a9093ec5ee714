package api

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults fills in what clients leave out, as decoding does on a real server (kubernetes: pkg/apis/*/v1/defaults.go).
// Probes and kubectl depend on these; two objects that mean the same must also compare the same.
func setDefaults(o object) {
	switch o := o.(type) {
	case *corev1.Pod:
		defaultPodSpec(&o.Spec)
		fallback(&o.Spec.EnableServiceLinks, true)
		limitsAreRequests(&o.Spec)
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
		defaultDaemonSet(&o.Spec)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.ReplicaSet:
		fallback(&o.Spec.Replicas, 1)
		defaultPodSpec(&o.Spec.Template.Spec)
	case *appsv1.ControllerRevision:
		// Protobuf carries only the encoded form.
		if o.Data.Raw == nil && o.Data.Object != nil {
			if data, err := json.Marshal(o.Data.Object); err == nil {
				o.Data = runtime.RawExtension{Raw: data}
			}
		}
	case *schedulingv1.PriorityClass:
		fallback(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			fallback(&o.Ports[i].Name, "")
			fallback(&o.Ports[i].Protocol, corev1.ProtocolTCP)
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
			fallback(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		}
	}
}

// fallback sets an optional field that was left out.
func fallback[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultDaemonSet(s *appsv1.DaemonSetSpec) {
	defaultPodSpec(&s.Template.Spec)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		fallback(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		fallback(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		fallback(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	fallback(&s.RevisionHistoryLimit, 10)
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	defaultPodSpec(&s.Template.Spec)
	fallback(&s.Replicas, 1)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		fallback(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		fallback(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		fallback(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	fallback(&s.RevisionHistoryLimit, 10)
	fallback(&s.ProgressDeadlineSeconds, 600)
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	defaultPodSpec(&s.Template.Spec)
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		fallback(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		fallback(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	fallback(&s.Replicas, 1)
	fallback(&s.RevisionHistoryLimit, 10)
	fallback(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType})
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
		fallback(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
}

func defaultWebhook(failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector,
	timeout **int32, client *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	fallback(failure, admissionv1.Fail)
	fallback(match, admissionv1.Equivalent)
	fallback(namespaces, metav1.LabelSelector{})
	fallback(objects, metav1.LabelSelector{})
	fallback(timeout, 10)
	if client.Service != nil {
		fallback(&client.Service.Port, 443)
	}
	for i := range rules {
		fallback(&rules[i].Scope, admissionv1.AllScopes)
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.DNSPolicy == "" {
		s.DNSPolicy = corev1.DNSClusterFirst
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	fallback(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	fallback(&s.SecurityContext, corev1.PodSecurityContext{})
	// One of the two names of the same field is old; each follows the other.
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i], s.HostNetwork)
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i], s.HostNetwork)
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i].VolumeSource)
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if tag := imageTag(c.Image); tag == "latest" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	if c.TerminationMessagePath == "" {
		c.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
	for i := range c.Ports {
		if c.Ports[i].Protocol == "" {
			c.Ports[i].Protocol = corev1.ProtocolTCP
		}
		if hostNetwork && c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == "" {
			from.FieldRef.APIVersion = "v1"
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			defaultProbe(p)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil && h.HTTPGet != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultProbe(p *corev1.Probe) {
	for _, f := range []struct {
		field *int32
		value int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if p.HTTPGet != nil {
		defaultHTTPGet(p.HTTPGet)
	}
	if p.GRPC != nil {
		fallback(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a.Path == "" {
		a.Path = "/"
	}
	if a.Scheme == "" {
		a.Scheme = corev1.URISchemeHTTP
	}
}

// imageTag is what decides the default pull policy: "latest" when there is neither tag nor digest.
func imageTag(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[i+1:]
	}
	return "latest"
}

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	const mode = int32(0o644)
	if v.Secret != nil {
		fallback(&v.Secret.DefaultMode, mode)
	}
	if v.ConfigMap != nil {
		fallback(&v.ConfigMap.DefaultMode, mode)
	}
	if v.HostPath != nil {
		fallback(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		fallback(&v.DownwardAPI.DefaultMode, mode)
		defaultDownward(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		fallback(&v.Projected.DefaultMode, mode)
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.ServiceAccountToken != nil {
				fallback(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
			if source.DownwardAPI != nil {
				defaultDownward(source.DownwardAPI.Items)
			}
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if ref := items[i].FieldRef; ref != nil && ref.APIVersion == "" {
			ref.APIVersion = "v1"
		}
	}
}

// limitsAreRequests fills the requests of a Pod (not of a template) from its limits.
func limitsAreRequests(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, ok := r.Requests[name]; !ok {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit.DeepCopy()
				}
			}
		}
	}
}
