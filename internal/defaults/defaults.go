// Package defaults fills in what a manifest leaves out, as the API server does when it
// decodes one: two objects that mean the same then also compare the same.
// Source: kubernetes pkg/apis/*/v1/defaults.go.
package defaults

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Fallback sets an optional field that was left out.
func Fallback[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// DaemonSet fills in a DaemonSet's spec.
func DaemonSet(s *appsv1.DaemonSetSpec) {
	PodSpec(&s.Template.Spec)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		Fallback(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		Fallback(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		Fallback(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	Fallback(&s.RevisionHistoryLimit, 10)
}

// Deployment fills in a Deployment's spec.
func Deployment(s *appsv1.DeploymentSpec) {
	PodSpec(&s.Template.Spec)
	Fallback(&s.Replicas, 1)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		Fallback(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		Fallback(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		Fallback(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	Fallback(&s.RevisionHistoryLimit, 10)
	Fallback(&s.ProgressDeadlineSeconds, 600)
}

// StatefulSet fills in a StatefulSet's spec.
func StatefulSet(s *appsv1.StatefulSetSpec) {
	PodSpec(&s.Template.Spec)
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		Fallback(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		Fallback(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	Fallback(&s.Replicas, 1)
	Fallback(&s.RevisionHistoryLimit, 10)
	Fallback(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType})
}

// PodSpec fills in the spec of a Pod or of a template.
func PodSpec(s *corev1.PodSpec) {
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.DNSPolicy == "" {
		s.DNSPolicy = corev1.DNSClusterFirst
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	Fallback(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	Fallback(&s.SecurityContext, corev1.PodSecurityContext{})
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
		Fallback(&p.GRPC.Service, "")
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
		Fallback(&v.Secret.DefaultMode, mode)
	}
	if v.ConfigMap != nil {
		Fallback(&v.ConfigMap.DefaultMode, mode)
	}
	if v.HostPath != nil {
		Fallback(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		Fallback(&v.DownwardAPI.DefaultMode, mode)
		defaultDownward(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		Fallback(&v.Projected.DefaultMode, mode)
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.ServiceAccountToken != nil {
				Fallback(&source.ServiceAccountToken.ExpirationSeconds, 3600)
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

// LimitsAreRequests fills the requests of a Pod (not of a template) from its limits.
func LimitsAreRequests(s *corev1.PodSpec) {
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
