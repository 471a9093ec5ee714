package files

import (
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// NodePool generates Nodes prefix-1 to prefix-count with their heartbeat Leases
// and CSINodes, spread over the zones in turn. A pool with role control-plane has
// that role's label and taint.
type NodePool struct {
	Prefix     string            `json:"prefix"`
	Count      int               `json:"count"`
	Role       string            `json:"role"`
	Zones      []string          `json:"zones"`
	Labels     map[string]string `json:"labels"`
	Taints     []corev1.Taint    `json:"taints"`
	CreatedAt  string            `json:"createdAt"`
	Kubelet    string            `json:"kubelet"`
	Kernel     string            `json:"kernel"`
	OS         string            `json:"os"`
	Runtime    string            `json:"runtime"`
	CPU        string            `json:"cpu"`
	Memory     string            `json:"memory"`
	Pods       string            `json:"pods"`
	CSIDrivers []string          `json:"csiDrivers"`
}

// most bounds what one generator makes: Kubernetes is supported to 5,000 nodes.
const most = 20000

func (w *world) pool(p NodePool) error {
	if p.Count > most || len(w.nodes)+p.Count > most {
		return fmt.Errorf("NodePool %s: %d nodes are too many", p.Prefix, p.Count)
	}
	created, err := w.c.when(p.CreatedAt)
	if err != nil {
		return fmt.Errorf("NodePool %s: createdAt: %w", p.Prefix, err)
	}
	capacity := corev1.ResourceList{}
	for name, pair := range map[corev1.ResourceName][2]string{
		corev1.ResourceCPU: {p.CPU, "4"}, corev1.ResourceMemory: {p.Memory, "16Gi"},
		corev1.ResourcePods: {p.Pods, "110"}, corev1.ResourceEphemeralStorage: {"", "100Gi"},
	} {
		q, err := resource.ParseQuantity(or(pair[0], pair[1]))
		if err != nil {
			return fmt.Errorf("NodePool %s: %s: %w", p.Prefix, name, err)
		}
		capacity[name] = q
	}
	for i := range p.Count {
		name := fmt.Sprintf("%s-%d", p.Prefix, i+1)
		labels := map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}
		if len(p.Zones) > 0 {
			labels[corev1.LabelTopologyZone] = p.Zones[i%len(p.Zones)]
		}
		taints := append([]corev1.Taint(nil), p.Taints...)
		if p.Role != "" {
			labels["node-role.kubernetes.io/"+p.Role] = ""
		}
		if p.Role == "control-plane" {
			taints = append(taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
		}
		for k, v := range p.Labels {
			labels[k] = v
		}
		// Heartbeats of healthy nodes lie within one renewal interval of now.
		beat := w.c.now.Add(-time.Duration(len(w.nodes)*7%100) * 100 * time.Millisecond)
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(created)},
			Spec:       corev1.NodeSpec{Taints: taints, PodCIDR: fmt.Sprintf("10.244.%d.0/24", len(w.nodes))},
			Status: corev1.NodeStatus{
				Capacity: capacity, Allocatable: capacity,
				Addresses: []corev1.NodeAddress{
					{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", len(w.nodes)+10)},
					{Type: corev1.NodeHostName, Address: name},
				},
				NodeInfo: corev1.NodeSystemInfo{
					BootID: string(uid("boot", name)), MachineID: string(uid("machine", name)), SystemUUID: string(uid("system", name)),
					KubeletVersion: or(p.Kubelet, "v1.37.2"), KernelVersion: or(p.Kernel, "6.12.9"), OSImage: or(p.OS, "Linux 12"),
					ContainerRuntimeVersion: or(p.Runtime, "containerd://2.1.4"), OperatingSystem: "linux", Architecture: "amd64",
				},
				Conditions: []corev1.NodeCondition{
					nodeCondition(corev1.NodeMemoryPressure, "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available", created, beat),
					nodeCondition(corev1.NodeDiskPressure, "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure", created, beat),
					nodeCondition(corev1.NodePIDPressure, "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available", created, beat),
					nodeCondition(corev1.NodeReady, "True", "KubeletReady", "kubelet is posting ready status", created.Add(20*time.Second), beat),
				},
			},
		}
		// The node's status is posted every five minutes while nothing changes.
		for j := range n.Status.Conditions {
			n.Status.Conditions[j].LastHeartbeatTime = metav1.NewTime(beat.Add(-time.Duration(len(w.nodes)*23%300) * time.Second).Truncate(time.Second))
		}
		w.add("Node", cluster.Nodes, n)
		w.nodes = append(w.nodes, n)
		w.add("Lease", cluster.Leases, nodeLease(n, created, beat))
		csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)}}
		for _, d := range p.CSIDrivers {
			csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: name})
		}
		w.add("CSINode", cluster.CSINodes, csi)
	}
	return nil
}

func nodeLease(n *corev1.Node, created, renewed time.Time) *coordinationv1.Lease {
	holder, seconds, at := n.Name, int32(40), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.NodeLeaseNamespace, Name: n.Name, CreationTimestamp: metav1.NewTime(created)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at},
	}
}

func nodeCondition(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string, since, beat time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: t, Status: s, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(since), LastHeartbeatTime: metav1.NewTime(beat.Truncate(time.Second)),
	}
}

// NodeTrouble is something that happens to nodes, the i-th of them i times each later.
type NodeTrouble struct {
	On   []string `json:"nodes"`
	At   string   `json:"at"`
	Each string   `json:"each"`
	// Ready is "False" (the kubelet says so and its Lease stays fresh) or Unknown
	// (the node controller says so at `at`, after the Lease stopped at lastSeen,
	// 52 s before it; the Pods there turn Ready=False); "" leaves the node Ready.
	Ready    string `json:"ready"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	LastSeen string `json:"lastSeen"`
	// Cordoned marks the node unschedulable, from `at` on.
	Cordoned bool `json:"cordoned"`
	// Rebooted gives the node another boot ID, and an event.
	Rebooted bool           `json:"rebooted"`
	Taints   []corev1.Taint `json:"taints"`
	// Condition is another condition that turns True.
	Condition string `json:"condition"`
	NoEvent   bool   `json:"noEvent"` // the event has expired
	// Until is when it was over: the node is Ready again and takes Pods, and what
	// happened shows in events and the time of its condition alone. After a reboot
	// the containers there have restarted.
	Until string          `json:"until"`
	Patch json.RawMessage `json:"patch"` // a strategic merge on each Node
}

func (w *world) happen(t NodeTrouble) error {
	at, err := w.c.when(t.At)
	if err != nil {
		return err
	}
	each, err := span(t.Each)
	if err != nil {
		return err
	}
	nodes, err := w.on(t.On)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		shift := time.Duration(i) * each
		if t.Until != "" {
			until, err := w.c.when(t.Until)
			if err != nil {
				return err
			}
			w.recover(n, t, at.Add(shift), until.Add(shift))
			continue
		}
		if err := w.strike(n, t, at.Add(shift)); err != nil {
			return err
		}
	}
	return nil
}

// recover leaves behind what a trouble that is over leaves.
func (w *world) recover(n *corev1.Node, t NodeTrouble, at, until time.Time) {
	if t.Cordoned {
		w.nodeEvent(t, n, "NodeNotSchedulable", "Node "+n.Name+" status is now: NodeNotSchedulable", "kubelet", at)
		w.nodeEvent(t, n, "NodeSchedulable", "Node "+n.Name+" status is now: NodeSchedulable", "kubelet", until)
	}
	if t.Ready != "" {
		source := "kubelet"
		if t.Ready == "Unknown" {
			source = "node-controller"
		}
		for j := range n.Status.Conditions {
			c := &n.Status.Conditions[j]
			if c.Type != corev1.NodeReady && (t.Ready != "Unknown" || c.Type == corev1.NodeNetworkUnavailable) {
				continue
			}
			c.LastTransitionTime = metav1.NewTime(until)
			if c.LastHeartbeatTime.Time.Before(until) {
				c.LastHeartbeatTime = metav1.NewTime(until)
			}
		}
		w.nodeEvent(t, n, "NodeNotReady", "Node "+n.Name+" status is now: NodeNotReady", source, at)
		w.nodeEvent(t, n, "NodeReady", "Node "+n.Name+" status is now: NodeReady", "kubelet", until)
	}
	if t.Rebooted {
		back := until.Add(-4 * time.Second)
		n.Status.NodeInfo.BootID = string(uid("boot", n.Name, back.String()))
		w.boots[n.Name] = until
		w.nodeEvent(t, n, "Starting", "Starting kubelet.", "kubelet", back)
		w.nodeEvent(t, n, "Rebooted", "Node "+n.Name+" has been rebooted, boot id: "+n.Status.NodeInfo.BootID, "kubelet", back)
	}
}

func (w *world) strike(n *corev1.Node, t NodeTrouble, at time.Time) error {
	switch t.Ready {
	case "":
	case "False":
		ready := cluster.NodeCondition(n, corev1.NodeReady)
		*ready = nodeCondition(corev1.NodeReady, corev1.ConditionFalse, or(t.Reason, "KubeletNotReady"),
			or(t.Message, "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"), at, ready.LastHeartbeatTime.Time)
		if ready.LastHeartbeatTime.Time.Before(at) {
			ready.LastHeartbeatTime = metav1.NewTime(at)
		}
		w.condTaint(n, corev1.TaintNodeNotReady, at)
		w.nodeEvent(t, n, "NodeNotReady", "Node "+n.Name+" status is now: NodeNotReady", "kubelet", at)
	case "Unknown":
		seen := at.Add(-52 * time.Second)
		if t.LastSeen != "" {
			var err error
			if seen, err = w.c.when(t.LastSeen); err != nil {
				return err
			}
		}
		for j := range n.Status.Conditions {
			c := &n.Status.Conditions[j]
			if c.Type == corev1.NodeNetworkUnavailable {
				continue
			}
			c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", metav1.NewTime(at)
			if c.LastHeartbeatTime.Time.After(seen) {
				c.LastHeartbeatTime = metav1.NewTime(seen.Truncate(time.Second))
			}
		}
		if e := w.byKey[identity{string(cluster.Leases), cluster.NodeLeaseNamespace, n.Name}]; e != nil {
			renewed := metav1.NewMicroTime(seen)
			e.object.(*coordinationv1.Lease).Spec.RenewTime = &renewed
		}
		w.condTaint(n, corev1.TaintNodeUnreachable, at)
		w.nodeEvent(t, n, "NodeNotReady", "Node "+n.Name+" status is now: NodeNotReady", "node-controller", at)
	default:
		return fmt.Errorf("ready is %q: False (in quotes) and Unknown are known", t.Ready)
	}
	if t.Cordoned {
		n.Spec.Unschedulable = true
		added := metav1.NewTime(at)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added})
		w.nodeEvent(t, n, "NodeNotSchedulable", "Node "+n.Name+" status is now: NodeNotSchedulable", "kubelet", at)
	}
	if t.Rebooted {
		n.Status.NodeInfo.BootID = string(uid("boot", n.Name, at.String()))
		w.nodeEvent(t, n, "Rebooted", "Node "+n.Name+" has been rebooted, boot id: "+n.Status.NodeInfo.BootID, "kubelet", at)
	}
	if t.Condition != "" {
		c := cluster.NodeCondition(n, corev1.NodeConditionType(t.Condition))
		if c == nil {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(t.Condition)})
			c = &n.Status.Conditions[len(n.Status.Conditions)-1]
		}
		*c = nodeCondition(c.Type, corev1.ConditionTrue, t.Reason, t.Message, at, at)
	}
	n.Spec.Taints = append(n.Spec.Taints, t.Taints...)
	if len(t.Patch) > 0 {
		changed, err := merged(n, t.Patch)
		if err != nil {
			return err
		}
		*n = *changed
	}
	return nil
}

// condTaint adds both forms of the taint that the node controller derives from Ready.
func (w *world) condTaint(n *corev1.Node, key string, at time.Time) {
	added := metav1.NewTime(at.Add(time.Second).Truncate(time.Second))
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect, TimeAdded: &added})
	}
}

// nodeEvent records what happened to the node, unless events of that time have expired.
func (w *world) nodeEvent(t NodeTrouble, n *corev1.Node, reason, message, source string, at time.Time) {
	if t.NoEvent || w.c.now.Sub(at) > eventTTL {
		return
	}
	kind := corev1.EventTypeNormal
	if reason == "Rebooted" {
		kind = corev1.EventTypeWarning
	}
	w.event(corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}, kind, reason, message, source, n.Name, at)
}
