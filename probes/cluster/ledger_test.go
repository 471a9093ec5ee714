package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return out
}

func container(name string, requests corev1.ResourceList, ports ...corev1.ContainerPort) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}, Ports: ports}
}

func podOn(node, name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: containers}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func withRoom(name string, r corev1.ResourceList) *corev1.Node {
	n := node(name)
	n.Status.Allocatable = r
	return n
}

func ledgerOf(meta Meta, n *corev1.Node, pods ...*corev1.Pod) Ledger {
	return New(Objects{Nodes: []*corev1.Node{n}, Pods: pods}, meta).Ledger(n.Name)
}

func amounts(r corev1.ResourceList) string {
	var out []string
	for k, v := range r {
		out = append(out, fmt.Sprintf("%s=%s", k, v.String()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

var everything = Meta{AsOf: now, PodScope: PodScope{All: true}}

func TestWhatAPodAsksOfANode(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("proxy", resources("cpu=50m", "memory=64Mi"))
	sidecar.RestartPolicy = &always
	for _, tt := range []struct {
		name string
		spec corev1.PodSpec
		want string
	}{
		{"nothing but its place", corev1.PodSpec{Containers: []corev1.Container{container("a", nil)}}, "pods=1"},
		{"the sum of its containers", corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu=100m", "memory=1Gi")), container("b", resources("cpu=250m"))}}, "cpu=350m memory=1Gi pods=1"},
		{"what its largest init container needs, where that is more", corev1.PodSpec{InitContainers: []corev1.Container{container("i", resources("cpu=1", "memory=10Mi"))},
			Containers: []corev1.Container{container("a", resources("cpu=100m", "memory=1Gi"))}}, "cpu=1 memory=1Gi pods=1"},
		{"sidecars on top of both", corev1.PodSpec{InitContainers: []corev1.Container{sidecar, container("i", resources("cpu=1"))},
			Containers: []corev1.Container{container("a", resources("cpu=100m"))}}, "cpu=1050m memory=64Mi pods=1"},
		{"overhead of its runtime", corev1.PodSpec{Overhead: resources("cpu=10m", "memory=120Mi"), Containers: []corev1.Container{container("a", resources("cpu=100m"))}}, "cpu=110m memory=120Mi pods=1"},
		{"what is set for the Pod as a whole", corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu=2")}, Containers: []corev1.Container{container("a", resources("cpu=100m", "memory=1Gi"))}}, "cpu=2 memory=1Gi pods=1"},
		{"extended resources", corev1.PodSpec{Containers: []corev1.Container{container("a", resources("example.com/nic=2"))}}, "example.com/nic=2 pods=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := amounts(PodRequests(&tt.spec)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhichPodsHaveAClaimOnANode(t *testing.T) {
	t.Parallel()
	with := func(p *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod { f(p); return p }
	cpu := func(q string) corev1.Container { return container("c", resources("cpu="+q)) }
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"a running one", podOn("n", "p", cpu("1")), "cpu=1 pods=1"},
		{"one that was bound and has not started", with(podOn("n", "p", cpu("1")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), "cpu=1 pods=1"},
		{"one that is being deleted, until it is gone", with(podOn("n", "p", cpu("1")), func(p *corev1.Pod) { at := metav1.NewTime(now); p.DeletionTimestamp = &at }), "cpu=1 pods=1"},
		{"not one that succeeded", with(podOn("n", "p", cpu("1")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), ""},
		{"not one that was evicted", with(podOn("n", "p", cpu("1")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), ""},
		{"not one that is aimed at it and waits", with(podOn("", "p", cpu("1")), func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}}}}}}
		}), ""},
		{"not one of another node", podOn("m", "p", cpu("1")), ""},
		{"as much as its kubelet has granted, while it is being resized", with(podOn("n", "p", cpu("1")), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: resources("cpu=3"), Resources: &corev1.ResourceRequirements{Requests: resources("cpu=3")}}}
		}), "cpu=3 pods=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := amounts(ledgerOf(everything, withRoom("n", resources("cpu=4", "pods=110")), tt.pod).Requested); got != tt.want {
				t.Errorf("requested %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALedgerSaysWhatIsFreeAndWhoHasTheRest(t *testing.T) {
	t.Parallel()
	low, high := int32(-5), int32(1000)
	small, big := podOn("n", "small", container("c", resources("cpu=500m", "memory=1Gi"))), podOn("n", "big", container("c", resources("cpu=100m", "memory=6Gi")))
	small.Spec.Priority, big.Spec.Priority = &high, &low
	l := ledgerOf(everything, withRoom("n", resources("cpu=2", "memory=8Gi", "pods=3")), small, big)
	if got := amounts(l.Free); got != "cpu=1400m memory=1Gi pods=1" {
		t.Errorf("free: %s", got)
	}
	if len(l.Claims) != 2 || l.Claims[0].Pod != big || l.Claims[0].Priority != -5 || l.Claims[0].Share != 0.75 || l.Claims[1].Priority != 1000 {
		t.Errorf("claims: %+v", l.Claims)
	}
	if got := l.Largest(corev1.ResourceCPU, 1); len(got) != 1 || got[0].Pod != small {
		t.Errorf("the largest by cpu: %+v", got)
	}
	if got := l.Largest("example.com/nic", 3); len(got) != 0 {
		t.Errorf("somebody has what nobody requested: %+v", got)
	}
}

func TestWhatANodeLacksForAPod(t *testing.T) {
	t.Parallel()
	fullOf := func(q ...string) *corev1.Pod { return podOn("n", "p", container("c", resources(q...))) }
	for _, tt := range []struct {
		name    string
		node    corev1.ResourceList
		pod     *corev1.Pod
		request corev1.ResourceList
		want    string
	}{
		{"nothing", resources("cpu=2", "pods=110"), fullOf("cpu=1"), resources("cpu=1", "pods=1"), ""},
		{"a little of one", resources("cpu=2", "memory=4Gi", "pods=110"), fullOf("cpu=1900m", "memory=1Gi"), resources("cpu=250m", "memory=1Gi", "pods=1"), "cpu 250m of 100m, 150m lacking"},
		{"what is not requested is not lacking on an overbooked node", resources("cpu=1", "pods=110"), fullOf("cpu=2"), resources("cpu=0", "pods=1"), ""},
		{"an overbooked node has nothing to give, not less", resources("cpu=1", "pods=110"), fullOf("cpu=2"), resources("cpu=100m"), "cpu 100m of 0, 100m lacking"},
		{"a resource that it does not have", resources("cpu=2", "pods=110"), fullOf(), resources("example.com/nic=1"), "example.com/nic 1 of 0, 1 lacking"},
		{"its places", resources("cpu=2", "pods=1"), fullOf(), resources("cpu=1", "pods=1"), "pods 1 of 0, 1 lacking"},
		{"a node that does not say how many Pods it takes", resources("cpu=2"), fullOf(), resources("pods=1"), ""},
		{"two, by name", resources("cpu=1", "memory=1Gi", "pods=110"), fullOf("cpu=1", "memory=1Gi"), resources("memory=1Gi", "cpu=1"), "cpu 1 of 0, 1 lacking; memory 1Gi of 0, 1Gi lacking"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range ledgerOf(everything, withRoom("n", tt.node), tt.pod).Lacks(tt.request) {
				got = append(got, fmt.Sprintf("%s %s of %s, %s lacking", s.Resource, s.Requested.String(), s.Free.String(), s.Lacking.String()))
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALedgerIsKnownOnlyWhereAllPodsOfItsNodeWereRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		meta Meta
		want bool
	}{
		{"all Pods", everything, true},
		{"all Pods of that node", Meta{AsOf: now, PodScope: PodScope{Nodes: map[string]bool{"n": true}}}, true},
		{"all Pods of another node", Meta{AsOf: now, PodScope: PodScope{Nodes: map[string]bool{"m": true}}}, false},
		{"some workloads' Pods", Meta{AsOf: now, PodScope: PodScope{Owners: nil}}, false},
		{"Pods may not be read", Meta{AsOf: now, PodScope: PodScope{All: true}, NotRead: []NotRead{{Resource: Pods, Reason: "Forbidden"}}}, false},
		{"Pods of one namespace may not be read", Meta{AsOf: now, PodScope: PodScope{All: true}, NotRead: []NotRead{{Resource: Pods, Namespace: "x", Reason: "Forbidden"}}}, false},
		{"still being read", Meta{AsOf: now, PodScope: PodScope{All: true}, Freshness: map[Resource]Freshness{Pods: {Loading: true}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ledgerOf(tt.meta, withRoom("n", resources("cpu=2"))).Known; got != tt.want {
				t.Errorf("known: %v, want %v", got, tt.want)
			}
		})
	}
	if New(Objects{}, everything).Ledger("gone").Known {
		t.Error("the ledger of a node that does not exist is known")
	}
}

func TestANodeWithoutAllocatableOffersItsCapacity(t *testing.T) {
	t.Parallel()
	n := node("n")
	n.Status.Capacity = resources("cpu=2")
	if got := amounts(ledgerOf(everything, n).Free); got != "cpu=2" {
		t.Errorf("free: %s", got)
	}
}

func TestWhichPortsOfItsNodeAPodTakes(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("s", nil, corev1.ContainerPort{HostPort: 15001})
	sidecar.RestartPolicy = &always
	for _, tt := range []struct {
		name string
		spec corev1.PodSpec
		want string
	}{
		{"none without a host port", corev1.PodSpec{Containers: []corev1.Container{container("a", nil, corev1.ContainerPort{ContainerPort: 80})}}, "[]"},
		{"its host port, TCP on all addresses by default", corev1.PodSpec{Containers: []corev1.Container{container("a", nil, corev1.ContainerPort{ContainerPort: 80, HostPort: 8080})}}, "[8080/TCP]"},
		{"the container's port on the host's network", corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container("a", nil, corev1.ContainerPort{ContainerPort: 9100})}}, "[9100/TCP]"},
		{"protocol and address", corev1.PodSpec{Containers: []corev1.Container{container("a", nil, corev1.ContainerPort{HostPort: 53, Protocol: "UDP", HostIP: "10.0.0.1"})}}, "[10.0.0.1:53/UDP]"},
		{"a sidecar's, not an init container's", corev1.PodSpec{InitContainers: []corev1.Container{sidecar, container("i", nil, corev1.ContainerPort{HostPort: 1234})}}, "[15001/TCP]"},
		{"each once", corev1.PodSpec{Containers: []corev1.Container{container("a", nil, corev1.ContainerPort{HostPort: 53}), container("b", nil, corev1.ContainerPort{HostPort: 53, Protocol: "TCP"})}}, "[53/TCP]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := fmt.Sprint(HostPorts(&tt.spec)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhichHostPortsConflict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b HostPort
		want bool
	}{
		{HostPort{Port: 80}, HostPort{Port: 80}, true},
		{HostPort{Port: 80}, HostPort{Port: 81}, false},
		{HostPort{Port: 53}, HostPort{Port: 53, Protocol: "UDP"}, false},
		{HostPort{Port: 53, Protocol: "TCP"}, HostPort{Port: 53}, true},
		{HostPort{Port: 80, Address: "127.0.0.1"}, HostPort{Port: 80}, true},
		{HostPort{Port: 80, Address: "127.0.0.1"}, HostPort{Port: 80, Address: "0.0.0.0"}, true},
		{HostPort{Port: 80, Address: "127.0.0.1"}, HostPort{Port: 80, Address: "10.0.0.1"}, false},
		{HostPort{Port: 80, Address: "127.0.0.1"}, HostPort{Port: 80, Address: "127.0.0.1"}, true},
		{HostPort{}, HostPort{}, false},
	} {
		if tt.a.Conflicts(tt.b) != tt.want || tt.b.Conflicts(tt.a) != tt.want {
			t.Errorf("%s and %s: want %v either way", tt.a, tt.b, tt.want)
		}
	}
}

func TestALedgerNamesWhoHoldsAPort(t *testing.T) {
	t.Parallel()
	holder, other := podOn("n", "exporter", container("a", nil, corev1.ContainerPort{HostPort: 9100})), podOn("n", "other", container("a", nil, corev1.ContainerPort{HostPort: 9101}))
	ended := podOn("n", "ended", container("a", nil, corev1.ContainerPort{HostPort: 9100}))
	ended.Status.Phase = corev1.PodSucceeded
	got := ledgerOf(everything, withRoom("n", nil), other, ended, holder).Holders([]HostPort{{Port: 9100, Address: "10.0.0.1"}})
	if len(got) != 1 || got[0].Pod != holder || got[0].Port != 9100 {
		t.Errorf("holders: %+v", got)
	}
}
