package practice

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The base cluster: three control plane nodes and nine workers in three zones.
const (
	controlPlanes = 3
	workers       = 9
	controlPlane  = "node-role.kubernetes.io/control-plane"
	scraped       = "monitoring.example.com/scrape" // a node label
)

var zones = []string{"eu-1a", "eu-1b", "eu-1c"}

func metaSelector(l map[string]string) labels.Selector { return labels.SelectorFromSet(l) }

// nodes are those of the base cluster, as their kubelets registered them.
func nodes() []*corev1.Node {
	var out []*corev1.Node
	for i := range controlPlanes {
		n := node(fmt.Sprintf("cp-%d", i+1), i, 10+i, "4", "16Gi")
		n.Labels[controlPlane] = ""
		n.Spec.Taints = []corev1.Taint{{Key: controlPlane, Effect: corev1.TaintEffectNoSchedule}}
		out = append(out, n)
	}
	for i := range workers {
		n := node(fmt.Sprintf("worker-%d", i+1), i, 21+i, "8", "32Gi")
		n.Labels["node.example.com/pool"] = "general"
		if i >= 7 { // the newest machines came with the next kernel
			n.Status.NodeInfo.KernelVersion = "6.8.0-55-generic"
		}
		out = append(out, n)
	}
	return out
}

func node(name string, i, address int, cpu, memory string) *corev1.Node {
	now := metav1.NewTime(Epoch.Add(-history))
	zone := zones[i%len(zones)]
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	uuid := func(from int) string {
		s := id[from : from+32]
		return fmt.Sprintf("%s-%s-4%s-a%s-%s", s[:8], s[8:12], s[13:16], s[17:20], s[20:32])
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory),
		corev1.ResourceEphemeralStorage: apiresource.MustParse("203070420Ki"), corev1.ResourcePods: apiresource.MustParse("110"),
	}
	allocatable := capacity.DeepCopy()
	reserved := allocatable[corev1.ResourceMemory]
	reserved.Sub(apiresource.MustParse("1Gi"))
	allocatable[corev1.ResourceMemory] = reserved
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-1", scraped: "true",
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.244.%d.0/24", address), PodCIDRs: []string{fmt.Sprintf("10.244.%d.0/24", address)}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.20.%d.%d", i%len(zones), address)},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "CalicoIsUp", "Calico is running on this node"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: id[:32], SystemUUID: uuid(0), BootID: uuid(32), KernelVersion: "6.8.0-52-generic", OSImage: "Ubuntu 24.04.2 LTS",
				ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
}

// installNodes registers the machines, within the cluster's first minutes.
func (s *stage) installNodes(list []*corev1.Node) {
	for _, n := range list {
		s.create("kubelet", n)
		s.until(s.clock.Now().Add(9 * time.Second))
	}
}
