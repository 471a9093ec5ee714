package practice

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// everything tolerates any taint, as node-critical agents do.
var everything = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}

func labelled(app string) map[string]string { return map[string]string{"app.kubernetes.io/name": app} }

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory),
	}}
}

// daemonSet is one that rolls with that budget; edit makes it what it is.
func daemonSet(namespace, name string, unavailable int32, spec corev1.PodSpec) *appsv1.DaemonSet {
	n, zero := intstr.FromInt32(unavailable), intstr.FromInt32(0)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labelled(name)},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &n, MaxSurge: &zero},
			},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelled(name)}, Spec: spec},
		},
	}
}

func deployment(namespace, name, image string, replicas int32, port int32, res corev1.ResourceRequirements) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labelled(name)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labelled(name)},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: name, Image: image, Resources: res,
					Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
					ReadinessProbe: httpProbe("/healthz", port),
				}}},
			},
		},
	}
}

func service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labelled(name)},
		Spec: corev1.ServiceSpec{
			Selector: labelled(name),
			Ports:    []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}},
		},
	}
}

func httpProbe(path string, port int32) *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds: 10,
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}},
	}
}

func execProbe(period int32, command ...string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: period, TimeoutSeconds: 10, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}}
}

func hostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

func mount(name, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: name, MountPath: path}
}

func privileged() *corev1.SecurityContext {
	yes := true
	return &corev1.SecurityContext{Privileged: &yes}
}

func seconds(n int64) *int64 { return &n }

// releasedBy marks an object as part of a Helm release.
func releasedBy(o metav1.Object, release string) {
	l := maps.Clone(o.GetLabels())
	l["app.kubernetes.io/managed-by"] = "Helm"
	l["app.kubernetes.io/instance"] = release
	o.SetLabels(l)
	o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": o.GetNamespace()})
}

// staticPod is the mirror Pod of one that a kubelet runs from a file.
func staticPod(n *corev1.Node, name, image string, port int32) *corev1.Pod {
	yes := true
	id := n.Status.NodeInfo.MachineID
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: name + "-" + n.Name,
			Labels: map[string]string{"component": name, "tier": "control-plane"},
			Annotations: map[string]string{
				corev1.MirrorPodAnnotationKey: id, "kubernetes.io/config.hash": id, "kubernetes.io/config.source": "file",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: n.Name, HostNetwork: true, PriorityClassName: "system-node-critical",
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			Containers: []corev1.Container{{
				Name: name, Image: image, Resources: requests("200m", "256Mi"), ReadinessProbe: httpProbe("/readyz", port),
			}},
		},
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func registry(path, tag string) string { return fmt.Sprintf("registry.example/%s:%s", path, tag) }
