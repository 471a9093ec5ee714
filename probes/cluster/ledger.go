package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Ledger is what a node has to give and who has taken it, as the scheduler counts.
type Ledger struct {
	Node string
	// Known tells whether the node and all of its Pods were read. Otherwise Requested
	// is only a lower bound, Free an upper one, and a port that nobody is seen to hold
	// may be taken all the same; what is listed is true.
	Known       bool
	Allocatable corev1.ResourceList
	Requested   corev1.ResourceList // by Pods that have not ended, "pods" is their number
	Free        corev1.ResourceList // Allocatable less Requested; may be negative
	Claims      []Claim             // the largest first: by the greatest share of what is allocatable, then by name
	HostPorts   []PortHolder        // by port, protocol, address and Pod
}

// Claim is what one Pod has of a node. A Pod that is being deleted keeps its claim
// until it is gone.
type Claim struct {
	Pod      *corev1.Pod
	Requests corev1.ResourceList // "pods" is 1
	Priority int32               // 0 where the Pod has none
	Share    float64             // the greatest share of the node's cpu, memory or ephemeral storage, 0 to 1
}

// HostPort is a port of the node's own addresses. Address 0.0.0.0 stands for all of them.
type HostPort struct {
	Address  string
	Protocol corev1.Protocol
	Port     int32
}

// PortHolder is a host port and the Pod that holds it.
type PortHolder struct {
	HostPort
	Pod *corev1.Pod
}

// Shortage is a resource of which a node has less than is asked for.
type Shortage struct {
	Resource  corev1.ResourceName
	Requested resource.Quantity // by the Pod that is to be placed
	Free      resource.Quantity // on the node, never below 0
	Lacking   resource.Quantity // Requested less what is free
}

// Ledger works out the ledger of a node. Counted are the Pods bound to it that are
// neither Succeeded nor Failed, those under deletion included, and of each what the
// scheduler counts: init containers, sidecars, Pod-level resources, overhead, and a
// resize that is under way.
// Source: pkg/scheduler/eventhandlers.go, addAllEventHandlers; pkg/scheduler/framework/types.go, NodeInfo.
func (s *Snapshot) Ledger(node string) Ledger {
	n := s.Node(node)
	l := Ledger{Node: node, Known: n != nil && s.allPodsOn(node), Allocatable: corev1.ResourceList{}, Requested: corev1.ResourceList{}, Free: corev1.ResourceList{}}
	if n != nil {
		l.Allocatable = allocatable(n)
	}
	for _, p := range s.PodsOn(node) {
		if p.Spec.NodeName != node || PodTerminal(p) {
			continue
		}
		claim := Claim{Pod: p, Requests: podClaims(p)}
		if p.Spec.Priority != nil {
			claim.Priority = *p.Spec.Priority
		}
		for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			if total := l.Allocatable[r]; total.Sign() > 0 {
				q := claim.Requests[r]
				claim.Share = max(claim.Share, q.AsApproximateFloat64()/total.AsApproximateFloat64())
			}
		}
		l.Claims = append(l.Claims, claim)
		addTo(l.Requested, claim.Requests)
		for _, port := range HostPorts(&p.Spec) {
			l.HostPorts = append(l.HostPorts, PortHolder{HostPort: port, Pod: p})
		}
	}
	slices.SortStableFunc(l.Claims, func(a, b Claim) int { return cmp.Or(cmp.Compare(b.Share, a.Share), byPodName(a.Pod, b.Pod)) })
	slices.SortStableFunc(l.HostPorts, func(a, b PortHolder) int {
		return cmp.Or(comparePorts(a.HostPort, b.HostPort), byPodName(a.Pod, b.Pod))
	})
	for r, q := range l.Allocatable {
		l.Free[r] = q.DeepCopy()
	}
	for r, q := range l.Requested {
		free := l.Free[r]
		free.Sub(q)
		l.Free[r] = free
	}
	return l
}

// allPodsOn tells whether every Pod of the node was read, whatever workload it belongs to.
func (s *Snapshot) allPodsOn(node string) bool {
	if !s.Read(Pods) || !s.PodScope.All && !s.PodScope.Nodes[node] {
		return false
	}
	// A namespace that could not be read may hold Pods of any node.
	return !slices.ContainsFunc(s.NotRead, func(n NotRead) bool { return n.Resource == Pods && n.Namespace != "" })
}

// allocatable is what a node offers; where it reports none, its capacity, as the API
// server fills it in.
// Source: pkg/apis/core/v1/defaults.go, SetDefaults_NodeStatus.
func allocatable(n *corev1.Node) corev1.ResourceList {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		return n.Status.Capacity
	}
	return n.Status.Allocatable
}

// PodRequests is what a Pod with that spec asks of a node: the sum of its containers
// or what its largest init container needs, sidecars and overhead included, Pod-level
// requests where they are set, and one of "pods".
// Source: component-helpers resource/helpers.go, PodRequests.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	return one(resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{}))
}

// podClaims is PodRequests of a Pod that is bound: what its kubelet has granted counts
// where that is more.
// Source: pkg/scheduler/framework/types.go, PodInfo.calculateResource.
func podClaims(p *corev1.Pod) corev1.ResourceList {
	return one(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true, UseDRANodeAllocatableResourceClaimStatus: true}))
}

func one(r corev1.ResourceList) corev1.ResourceList {
	r[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return r
}

func addTo(sum, more corev1.ResourceList) {
	for r, q := range more {
		total := sum[r]
		total.Add(q)
		sum[r] = total
	}
}

// Lacks lists, by name, the resources of which the node has too little for the
// request. What is not requested is never lacking, even on a node that is overbooked.
// Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
func (l Ledger) Lacks(request corev1.ResourceList) []Shortage {
	var out []Shortage
	for r, q := range request {
		free := l.Free[r]
		if _, offered := l.Allocatable[r]; r == corev1.ResourcePods && !offered {
			continue // the node does not say how many Pods it takes
		}
		if q.Sign() <= 0 || q.Cmp(free) <= 0 {
			continue
		}
		lacking := q.DeepCopy()
		if free.Sign() < 0 {
			free = *resource.NewQuantity(0, q.Format)
		}
		lacking.Sub(free)
		out = append(out, Shortage{Resource: r, Requested: q.DeepCopy(), Free: free, Lacking: lacking})
	}
	slices.SortFunc(out, func(a, b Shortage) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// Largest lists the Pods that have most of one resource, the largest first, at most
// that many; Pods that have none of it are left out.
func (l Ledger) Largest(r corev1.ResourceName, most int) []Claim {
	var out []Claim
	for _, c := range l.Claims {
		if q := c.Requests[r]; q.Sign() > 0 {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Claim) int {
		p, q := a.Requests[r], b.Requests[r]
		return cmp.Or(q.Cmp(p), byPodName(a.Pod, b.Pod))
	})
	return out[:min(len(out), most)]
}

// Holders are the holders of ports that stand in the way of those wanted.
func (l Ledger) Holders(want []HostPort) []PortHolder {
	var out []PortHolder
	for _, h := range l.HostPorts {
		if slices.ContainsFunc(want, h.Conflicts) {
			out = append(out, h)
		}
	}
	return out
}

// HostPorts are the ports of its node that a Pod with that spec takes, each once. A
// Pod on the host's network takes the ports that its containers name. Of the init
// containers only those count that keep running.
// Source: pkg/scheduler/util/utils.go, GetHostPorts; pkg/apis/core/v1/defaults.go, defaultHostNetworkPorts.
func HostPorts(spec *corev1.PodSpec) []HostPort {
	var out []HostPort
	add := func(ct *corev1.Container) {
		for _, p := range ct.Ports {
			port := p.HostPort
			if port == 0 && spec.HostNetwork {
				port = p.ContainerPort
			}
			if port <= 0 {
				continue
			}
			h := HostPort{Address: p.HostIP, Protocol: p.Protocol, Port: port}.full()
			if !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	slices.SortFunc(out, comparePorts)
	return out
}

const everyAddress = "0.0.0.0"

func (h HostPort) full() HostPort {
	if h.Address == "" {
		h.Address = everyAddress
	}
	if h.Protocol == "" {
		h.Protocol = corev1.ProtocolTCP
	}
	return h
}

// Conflicts tells whether two Pods cannot both have their port on one node: the same
// number and protocol, on the same address or with one of them on all addresses.
// Source: staging/src/k8s.io/kube-scheduler/framework, HostPortInfo.CheckConflict.
func (h HostPort) Conflicts(o HostPort) bool {
	h, o = h.full(), o.full()
	return h.Port > 0 && h.Port == o.Port && h.Protocol == o.Protocol && (h.Address == o.Address || h.Address == everyAddress || o.Address == everyAddress)
}

// String writes a port as "9100/TCP", with its address unless it is on all of them.
func (h HostPort) String() string {
	h = h.full()
	s := fmt.Sprintf("%d/%s", h.Port, h.Protocol)
	if h.Address != everyAddress {
		s = h.Address + ":" + s
	}
	return s
}

func comparePorts(a, b HostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Address, b.Address))
}

func byPodName(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
