package e2e

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// plain is a node like any other.
func plain(count int) []kubelet.Node { return make([]kubelet.Node, count) }

// offering is a node that offers so much of something.
func offering(what corev1.ResourceName, howMuch string) []kubelet.Node {
	return []kubelet.Node{{Allocatable: corev1.ResourceList{what: resource.MustParse(howMuch)}}}
}

// refusedByScheduler are Pods that have no place.
func refusedByScheduler() []refused {
	const gpu = corev1.ResourceName("example.com/gpu")
	return []refused{
		{name: "cpu", kind: "DaemonSet", nodes: plain(1), spec: requests(corev1.ResourceCPU, "5"), says: "Insufficient cpu", code: report.InsufficientResources},
		{name: "memory", kind: "Deployment", nodes: plain(2), spec: requests(corev1.ResourceMemory, "20Gi"), says: "Insufficient memory", code: report.InsufficientResources},
		{name: "ephemeral-storage", kind: "DaemonSet", nodes: offering(corev1.ResourceEphemeralStorage, "2Gi"),
			spec: requests(corev1.ResourceEphemeralStorage, "3Gi"), says: "Insufficient ephemeral-storage", code: report.InsufficientResources},
		{name: "gpu", kind: "DaemonSet", nodes: offering(gpu, "1"), spec: requests(gpu, "2"), says: "Insufficient example.com/gpu", code: report.InsufficientResources},
		{name: "gpu-nowhere", kind: "Deployment", nodes: plain(1), spec: requests(gpu, "1"), says: "Insufficient example.com/gpu", code: report.InsufficientResources},
		{name: "pods", kind: "DaemonSet", nodes: offering(corev1.ResourcePods, "1"), before: holder(nil), says: "Too many pods", code: report.InsufficientResources},
		{name: "no-victims", kind: "Deployment", nodes: plain(1), before: holder(requests(corev1.ResourceCPU, "3")),
			spec: requests(corev1.ResourceCPU, "2"), says: "No preemption victims found", code: report.InsufficientResources},
		{name: "never-preempts", kind: "DaemonSet", nodes: plain(1), before: holder(requests(corev1.ResourceCPU, "3")),
			spec: func(s *corev1.PodSpec) {
				requests(corev1.ResourceCPU, "2")(s)
				s.PriorityClassName = "high-and-polite"
			}, says: "preemptionPolicy=Never", code: report.InsufficientResources},
		{name: "tainted", kind: "Deployment", nodes: []kubelet.Node{{Taints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}}},
			says: "untolerated taint", code: report.UntoleratedTaint},
		{name: "no-such-label", kind: "Deployment", nodes: plain(1),
			spec: func(s *corev1.PodSpec) { s.NodeSelector["disk"] = "nvme" }, says: "didn't match Pod's node affinity/selector", code: report.NodeAffinityMismatch},
		{name: "ports", kind: "DaemonSet", nodes: plain(1), before: holder(hostPort), spec: hostPort, says: "didn't have free ports", code: report.HostPortConflict},
		{name: "cordoned", kind: "Deployment", nodes: plain(2), before: cordonAll, says: "were unschedulable", code: report.NodesCordoned},
		{name: "volume-elsewhere", kind: "DaemonSet", nodes: plain(1), before: volume(nil, "no-such-node"), spec: claim,
			says: "didn't match PersistentVolume's node affinity", code: report.VolumeTopologyConflict},
		{name: "volume-zone", kind: "DaemonSet", nodes: []kubelet.Node{{Labels: map[string]string{corev1.LabelTopologyZone: "a"}}},
			before: volume(map[string]string{corev1.LabelTopologyZone: "z"}, ""), spec: claim, says: "no available volume zone", code: report.VolumeTopologyConflict},
		{name: "claim-unbound", kind: "Deployment", nodes: plain(1), before: unboundClaim, spec: claim, says: "unbound immediate PersistentVolumeClaims", code: report.VolumeTopologyConflict},
		{name: "claim-missing", kind: "Deployment", nodes: plain(1), spec: claim, says: `persistentvolumeclaim "data" not found`, code: report.VolumeTopologyConflict},
		{name: "volume-count", kind: "DaemonSet", nodes: plain(1), before: volumesLimited, spec: func(s *corev1.PodSpec) {
			claim(s)
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "more"}}})
		}, says: "exceed max volume count", code: report.VolumeTopologyConflict},
		{name: "spread", kind: "Deployment", nodes: plain(2), replicas: 3, spec: func(s *corev1.PodSpec) {
			three := int32(3)
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, MinDomains: &three, TopologyKey: corev1.LabelHostname,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread"}}}}
		}, says: "didn't match pod topology spread constraints", code: report.PodSpreadConflict},
		{name: "spread-no-label", kind: "Deployment", nodes: plain(1), spec: func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack",
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread-no-label"}}}}
		}, says: "topology spread constraints (missing required label)", code: report.PodSpreadConflict},
		{name: "anti-affinity", kind: "Deployment", nodes: plain(1), replicas: 2, spec: apart("anti-affinity"), says: "didn't match pod anti-affinity rules", code: report.PodSpreadConflict},
		{name: "unwanted", kind: "DaemonSet", nodes: plain(1), before: holder(apart("unwanted")), says: "didn't satisfy existing pods anti-affinity rules", code: report.PodSpreadConflict},
		{name: "pod-affinity", kind: "Deployment", nodes: plain(1), spec: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: beside("no-such-app")}}
		}, says: "didn't match pod affinity rules", code: report.PodSpreadConflict},
		{name: "surge-port", kind: "DaemonSet", nodes: plain(1), strategy: surges, rolls: true, spec: func(s *corev1.PodSpec) {
			s.HostNetwork = true
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100}}
		}, says: "didn't have free ports", code: report.SurgePortConflict},
		{name: "surge-room", kind: "DaemonSet", nodes: plain(1), strategy: surges, rolls: true, spec: requests(corev1.ResourceCPU, "3"), says: "Insufficient cpu", code: report.SurgeNoRoom},
		{name: "two-reasons", kind: "Deployment", nodes: append(plain(1), kubelet.Node{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}}),
			spec: requests(corev1.ResourceMemory, "17Gi"), says: "Insufficient memory", code: report.InsufficientResources},
	}
}

// prepare makes what is no namespace's.
func (r *refusals) prepare(ctx context.Context) error {
	never := corev1.PreemptNever
	for _, class := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "high-and-polite"}, Value: 100000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: limited}, Value: 1000},
		{ObjectMeta: metav1.ObjectMeta{Name: "scoped"}, Value: 2000},
	} {
		if _, err := r.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// holder makes a Pod that is on the case's first node already.
func holder(spec func(*corev1.PodSpec)) func(context.Context, *refusals, refused) error {
	return func(ctx context.Context, r *refusals, c refused) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "holder", Labels: map[string]string{"app": "holder"}}, Spec: corev1.PodSpec{
			NodeName:   c.name + "-1",
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/holder:v1"}},
		}}
		if spec != nil {
			spec(&pod.Spec)
		}
		if _, err := r.client.CoreV1().Pods(c.name).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		return r.until(ctx, func() (string, error) {
			p, err := r.client.CoreV1().Pods(c.name).Get(ctx, "holder", metav1.GetOptions{})
			if err != nil || p.Status.Phase == corev1.PodRunning {
				return "", err
			}
			return "the Pod that holds the place to run", nil
		})
	}
}

func hostPort(s *corev1.PodSpec) {
	s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 18080}}
}

func cordonAll(ctx context.Context, r *refusals, c refused) error {
	for i := range c.nodes {
		s := &stage{client: r.client}
		if err := s.editNode(ctx, fmt.Sprintf("%s-%d", c.name, i+1), func(n *corev1.Node) { n.Spec.Unschedulable = true }, r.client.CoreV1().Nodes().Update); err != nil {
			return err
		}
	}
	return nil
}

func surges(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: numberOf("1"), MaxUnavailable: numberOf("0")}}
}

func beside(app string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
}

// apart keeps a Pod off the nodes that have one of that name.
func apart(app string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: beside(app)}}
	}
}

// claim lets a Pod use the claim "data".
func claim(s *corev1.PodSpec) {
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
}

// volume makes a volume with those labels, on that node where one is named, and the
// claim "data" that is bound to it.
func volume(labels map[string]string, node string) func(context.Context, *refusals, refused) error {
	return func(ctx context.Context, r *refusals, c refused) error {
		source := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}
		if node != "" {
			source = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}}
		}
		return r.bind(ctx, c, "data", source, labels, node)
	}
}

func (r *refusals) bind(ctx context.Context, c refused, name string, source corev1.PersistentVolumeSource, labels map[string]string, node string) error {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	none := ""
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.name + "-" + name, Labels: labels}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: source,
		ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.name, Name: name},
	}}
	if node != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	if _, err := r.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		return err
	}
	wanted := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: &none, VolumeName: volume.Name,
		Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	if _, err := r.client.CoreV1().PersistentVolumeClaims(c.name).Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return err
	}
	return r.until(ctx, func() (string, error) {
		claim, err := r.client.CoreV1().PersistentVolumeClaims(c.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil || claim.Status.Phase == corev1.ClaimBound {
			return "", err
		}
		return "the claim to be bound", nil
	})
}

// unboundClaim makes the claim "data", for which there is no volume.
func unboundClaim(ctx context.Context, r *refusals, c refused) error {
	none := ""
	_, err := r.client.CoreV1().PersistentVolumeClaims(c.name).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &none,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	return err
}

// volumesLimited makes two volumes of a driver that can attach one to the node.
func volumesLimited(ctx context.Context, r *refusals, c refused) error {
	const driver = "disks.example.com"
	attach, one := true, int32(1)
	_, err := r.client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	node := c.name + "-1"
	if _, err := r.client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: driver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &one}},
	}}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"data", "more"} {
		source := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: c.name + name}}
		if err := r.bind(ctx, c, name, source, nil, ""); err != nil {
			return err
		}
	}
	return nil
}
