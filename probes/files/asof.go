package files

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// latest is the moment up to which the input tells: the latest time that the API
// server or the control plane wrote. Times that kubelets wrote count only up to
// the moment that more than half of the nodes have reached, for one node's clock
// may be wrong by hours. It is zero where the input holds no such time, and never
// the wall clock: a file is read years later with the same result.
func latest(o *cluster.Objects) time.Time {
	c := clock{nodes: map[string]time.Time{}}
	for _, n := range o.Nodes {
		c.nodes[n.Name] = time.Time{}
	}
	c.open = len(o.Nodes) == 0
	each(o, c.metadata)
	for _, n := range o.Nodes {
		c.node(n)
	}
	for _, p := range o.Pods {
		c.pod(p)
	}
	for _, l := range o.Leases {
		switch {
		case l.Spec.RenewTime == nil:
		case l.Namespace == cluster.NodeLeaseNamespace:
			c.kubelet(l.Name, l.Spec.RenewTime.Time)
		case l.Namespace == cluster.ControlPlaneNamespace:
			c.control(l.Spec.RenewTime.Time)
		}
	}
	for _, e := range o.Events {
		c.event(e)
	}
	for _, d := range o.Deployments {
		for _, s := range d.Status.Conditions {
			c.control(s.LastUpdateTime.Time)
			c.control(s.LastTransitionTime.Time)
		}
	}
	for _, r := range o.ReplicaSets {
		c.replicaSet(r)
	}
	if m := c.majority(); m.After(c.latest) {
		return m
	}
	return c.latest
}

// clock gathers the times of an input by who wrote them.
type clock struct {
	latest time.Time            // of the API server and the control plane
	nodes  map[string]time.Time // the latest of each kubelet, zero where it wrote none
	open   bool                 // the input holds no Node: those that are named are all there are
}

func (c *clock) control(t time.Time) {
	if t.After(c.latest) {
		c.latest = t
	}
}

func (c *clock) kubelet(node string, t time.Time) {
	if last, known := c.nodes[node]; node != "" && (known || c.open) && t.After(last) {
		c.nodes[node] = t
	}
}

// majority is the latest moment that more than half of the nodes have reached, or zero.
func (c *clock) majority() time.Time {
	if len(c.nodes) == 0 {
		return time.Time{}
	}
	times := slices.SortedFunc(maps.Values(c.nodes), func(a, b time.Time) int { return b.Compare(a) })
	return times[len(times)/2]
}

// metadata takes what the API server itself wrote.
func (c *clock) metadata(o metav1.Object) {
	c.control(o.GetCreationTimestamp().Time)
	if d := o.GetDeletionTimestamp(); d != nil {
		var grace int64
		if g := o.GetDeletionGracePeriodSeconds(); g != nil {
			grace = *g
		}
		c.control(d.Add(-time.Duration(grace) * time.Second))
	}
	for _, f := range o.GetManagedFields() {
		if f.Time != nil {
			c.control(f.Time.Time)
		}
	}
}

func (c *clock) node(n *corev1.Node) {
	for _, s := range n.Status.Conditions {
		c.kubelet(n.Name, s.LastHeartbeatTime.Time)
		if strings.HasPrefix(s.Reason, "NodeStatus") { // NodeStatusUnknown, NodeStatusNeverUpdated: the node controller's
			c.control(s.LastTransitionTime.Time)
		} else {
			c.kubelet(n.Name, s.LastTransitionTime.Time)
		}
	}
	for _, t := range n.Spec.Taints {
		if t.TimeAdded != nil {
			c.control(t.TimeAdded.Time)
		}
	}
}

func (c *clock) pod(p *corev1.Pod) {
	node := p.Spec.NodeName
	if p.Status.StartTime != nil {
		c.kubelet(node, p.Status.StartTime.Time)
	}
	for _, s := range p.Status.Conditions {
		if s.Type == corev1.PodScheduled {
			c.control(s.LastTransitionTime.Time)
		} else {
			c.kubelet(node, s.LastTransitionTime.Time)
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range list {
			for _, s := range []corev1.ContainerState{list[i].State, list[i].LastTerminationState} {
				if s.Running != nil {
					c.kubelet(node, s.Running.StartedAt.Time)
				}
				if s.Terminated != nil {
					c.kubelet(node, s.Terminated.StartedAt.Time)
					c.kubelet(node, s.Terminated.FinishedAt.Time)
				}
			}
		}
	}
}

func (c *clock) event(e *corev1.Event) {
	switch source := cluster.EventSource(e); {
	case source == "kubelet":
		host := e.Source.Host
		if host == "" {
			host = e.ReportingInstance
		}
		c.kubelet(host, cluster.EventLast(e))
	case controlPlane[source] || strings.HasSuffix(source, "-scheduler"):
		c.control(cluster.EventLast(e))
	}
}

// controlPlane are the reporters of events that run in the control plane. Any
// other may run on a node with a wrong clock; its events still count by their
// creationTimestamp.
var controlPlane = map[string]bool{
	"node-controller": true, "daemonset-controller": true, "deployment-controller": true,
	"replicaset-controller": true, "statefulset-controller": true, "job-controller": true,
	"cronjob-controller": true, "taint-eviction-controller": true, "attachdetach-controller": true,
	"persistentvolume-controller": true, "endpoint-controller": true, "endpoint-slice-controller": true,
	"controllermanager": true, "kube-controller-manager": true, "cloud-node-lifecycle-controller": true,
	"cloud-node-controller": true, "service-controller": true, "horizontal-pod-autoscaler": true,
}

func (c *clock) replicaSet(r *appsv1.ReplicaSet) {
	for _, s := range r.Status.Conditions {
		c.control(s.LastTransitionTime.Time)
	}
}

// each calls f with every object.
func each(o *cluster.Objects, f func(metav1.Object)) {
	all(o.Nodes, f)
	all(o.Pods, f)
	all(o.DaemonSets, f)
	all(o.Deployments, f)
	all(o.ReplicaSets, f)
	all(o.StatefulSets, f)
	all(o.ControllerRevisions, f)
	all(o.Events, f)
	all(o.Leases, f)
	all(o.PodDisruptionBudgets, f)
	all(o.ResourceQuotas, f)
	all(o.Namespaces, f)
	all(o.PriorityClasses, f)
	all(o.CSINodes, f)
	all(o.Services, f)
	all(o.EndpointSlices, f)
	all(o.ValidatingWebhooks, f)
	all(o.MutatingWebhooks, f)
	all(o.Others, f)
}

func all[T metav1.Object](list []T, f func(metav1.Object)) {
	for _, o := range list {
		f(o)
	}
}
