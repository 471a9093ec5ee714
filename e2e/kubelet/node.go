package kubelet

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// noNetworkMessage is what a kubelet says of a node whose CNI configuration is
// missing: containerd's status as pkg/kubelet/runtime.go passes it on.
const noNetworkMessage = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"

// leaseSeconds is how long a node's Lease lasts: nodeLeaseDurationSeconds of
// pkg/kubelet/apis/config/v1beta1/defaults.go.
const leaseSeconds = 40

// Node is a node before it joins.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable is what it offers besides 4 CPUs, 16 GiB and 110 Pods, or instead.
	Allocatable corev1.ResourceList
}

func (n Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	for k, v := range n.Labels {
		labels[k] = v
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}, Spec: corev1.NodeSpec{Taints: n.Taints}}
}

// node is what the fleet knows of a node that has joined; guarded by Fleet.mu,
// lease by the queue, which looks at a node from one worker at a time.
type node struct {
	name      string
	uid       types.UID
	offers    corev1.ResourceList // of Node.Allocatable
	cutOff    bool
	noNetwork bool
	posted    corev1.ConditionStatus // of Ready, "" before the first status
	lease     *coordinationv1.Lease
	due       time.Time // of the next renewal
}

// syncNode reports the node's status where it has changed and renews its Lease
// when that is due.
func (f *Fleet) syncNode(ctx context.Context, name string) (again time.Duration, err error) {
	f.mu.Lock()
	n := f.nodes[name]
	if n == nil || n.cutOff {
		f.mu.Unlock()
		return 0, nil
	}
	ready, posted := corev1.ConditionTrue, n.posted
	if n.noNetwork {
		ready = corev1.ConditionFalse
	}
	f.mu.Unlock()

	if ready != posted {
		if err := f.postNode(ctx, n, ready); err != nil {
			return 0, err
		}
		f.mu.Lock()
		n.posted = ready
		f.mu.Unlock()
	}
	now := time.Now()
	if now.Before(n.due) {
		return n.due.Sub(now), nil
	}
	if err := f.renew(ctx, n, now); err != nil {
		return 0, err
	}
	n.due = now.Add(f.options.Heartbeat)
	return f.options.Heartbeat, nil
}

// postNode writes the node's status, and the kubelet's event where it turned.
func (f *Fleet) postNode(ctx context.Context, n *node, ready corev1.ConditionStatus) error {
	object, err := f.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	turned := false
	set := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
		c := corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		for i, old := range object.Status.Conditions {
			if old.Type != kind {
				continue
			}
			if old.Status == status {
				c.LastTransitionTime = old.LastTransitionTime
			} else if kind == corev1.NodeReady {
				turned = true
			}
			object.Status.Conditions[i] = c
			return
		}
		turned = turned || kind == corev1.NodeReady
		object.Status.Conditions = append(object.Status.Conditions, c)
	}
	set(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	set(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	set(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	if ready == corev1.ConditionTrue {
		set(corev1.NodeReady, ready, "KubeletReady", "kubelet is posting ready status")
	} else {
		set(corev1.NodeReady, ready, "KubeletNotReady", noNetworkMessage)
	}
	object.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	maps.Copy(object.Status.Capacity, n.offers)
	object.Status.Allocatable = object.Status.Capacity
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.name}, {Type: corev1.NodeInternalIP, Address: address(n.name)}}
	object.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: string(n.uid), SystemUUID: string(n.uid), BootID: string(n.uid),
		KernelVersion: "6.12.0", OSImage: "Linux", OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: "v1.37.2",
	}
	if _, err := f.client.CoreV1().Nodes().UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil || !turned {
		return err
	}
	reason := "NodeReady"
	if ready != corev1.ConditionTrue {
		reason = "NodeNotReady"
	}
	ref := corev1.ObjectReference{Kind: "Node", Name: n.name, UID: n.uid, APIVersion: "v1"}
	return f.event(ctx, n.name, ref, corev1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", n.name, reason))
}

func (f *Fleet) renew(ctx context.Context, n *node, now time.Time) error {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	renewed := metav1.NewMicroTime(now)
	if n.lease == nil {
		seconds := int32(leaseSeconds)
		lease, err := leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: n.name, UID: n.uid},
			}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer to an earlier try was lost
			lease, err = leases.Get(ctx, n.name, metav1.GetOptions{})
		}
		if err == nil {
			n.lease = lease
		}
		return err
	}
	lease := n.lease.DeepCopy()
	lease.Spec.RenewTime = &renewed
	lease, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		lease, err = leases.Get(ctx, n.name, metav1.GetOptions{})
	}
	if err == nil {
		n.lease = lease
	}
	return err
}

// address is a node's address in 10.0.0.0/8, by its name.
func address(name string) string {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return fmt.Sprintf("10.%d.%d.%d", h>>16&0xff, h>>8&0xff, h&0xff|1)
}
