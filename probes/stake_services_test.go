package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// service makes a Service whose endpoints are the Pods of that app, as ready as they are.
func (s *stakes) service(namespace, app string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}, ClusterIP: fmt.Sprintf("10.96.0.%d", len(s.Services)+1)}}
	s.Services = append(s.Services, svc)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-x7k2p", Labels: map[string]string{discoveryv1.LabelServiceName: app}}, AddressType: discoveryv1.AddressTypeIPv4}
	for i, p := range s.Pods {
		if p.Namespace != namespace || p.Labels["app"] != app {
			continue
		}
		ready, ending, node := cluster.PodReady(p) && p.DeletionTimestamp == nil, p.DeletionTimestamp != nil, p.Spec.NodeName
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.0.%d", i)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Terminating: &ending}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.Name}})
	}
	s.EndpointSlices = append(s.EndpointSlices, slice)
	return svc
}

// silence makes nodes Unknown five minutes ago, with their Pods marked.
func (s *stakes) silence(names ...string) {
	for _, n := range names {
		s.fell(n, "Unknown", 4*time.Minute, true)
		for _, p := range s.Pods {
			if p.Spec.NodeName == n && p.Status.Conditions[0].Status == corev1.ConditionTrue {
				unready(p, 4*time.Minute, false)
			}
		}
	}
}

func TestServicesAreLostOnlyToTheNodesOfTheIncident(t *testing.T) {
	t.Parallel()
	on := func(s *stakes, app string, nodes ...string) {
		for _, n := range nodes {
			s.pod("shop", app, n)
		}
	}
	for name, c := range map[string]struct {
		change func(s *stakes)
		lost   []string // Services
		want   []string // of the topic
	}{
		"all endpoints on nodes that fell": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.silence("worker-1", "worker-2")
			s.service("shop", "web")
		}, []string{"web"}, []string{"1 Service has no ready endpoint left", "shop/web 0/2"}},
		"one is left elsewhere": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-3")
			s.silence("worker-1")
			s.service("shop", "web")
		}, nil, []string{"no Service lost its last endpoint"}},
		"Pods still say Ready on a silent node": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.fell("worker-1", "Unknown", 4*time.Minute, true)
			s.service("shop", "web")
		}, []string{"web"}, nil},
		"kubelets are alive and the Pods Ready": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.fell("worker-1", "False", 4*time.Minute, true)
			s.service("shop", "web")
		}, nil, nil},
		"kubelets are alive and probes fail since": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.fell("worker-1", "False", 4*time.Minute, true)
			unready(s.Pods[0], 3*time.Minute, true)
			s.service("shop", "web")
		}, []string{"web"}, nil},
		"the Pods had failed long before the node": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-3")
			unready(s.Pods[0], 3*time.Hour, true)
			unready(s.Pods[1], 3*time.Hour, true)
			s.silence("worker-1")
			s.service("shop", "web")
		}, nil, nil},
		"a bad image everywhere, one of its Pods on the node": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2", "worker-3", "worker-4")
			for _, p := range s.Pods {
				unready(p, time.Hour, true)
			}
			s.silence("worker-1")
			s.service("shop", "web")
			s.Pods, s.PodScope = nil, cluster.PodScope{}
		}, nil, nil},
		"the last one that worked went with the node": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-3")
			unready(s.Pods[1], 3*time.Hour, true)
			s.silence("worker-1")
			s.service("shop", "web")
		}, []string{"web"}, nil},
		"replacements are starting": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-3", "worker-4")
			gone := ago(10 * time.Second)
			s.Pods[0].DeletionTimestamp = &gone
			for _, p := range s.Pods[1:] {
				p.CreationTimestamp = ago(20 * time.Second)
				unready(p, 20*time.Second, true)
			}
			s.silence("worker-1")
			s.service("shop", "web")
		}, []string{"web"}, nil},
		"no Pods were read, the slices tell": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.silence("worker-1", "worker-2")
			s.service("shop", "web")
			s.Pods, s.PodScope = nil, cluster.PodScope{}
		}, []string{"web"}, nil},
		"no slices were read, all Pods tell": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.silence("worker-1", "worker-2")
			s.service("shop", "web")
			s.EndpointSlices, s.NotRead = nil, []cluster.NotRead{{Resource: cluster.EndpointSlices, Reason: "Absent"}}
		}, []string{"web"}, nil},
		"neither slices nor all Pods were read": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.silence("worker-1", "worker-2")
			s.service("shop", "web")
			s.EndpointSlices, s.NotRead, s.PodScope = nil, []cluster.NotRead{{Resource: cluster.EndpointSlices, Reason: "Forbidden"}}, cluster.PodScope{}
		}, nil, []string{"? whether Services lost their endpoints is not known: endpointslices (forbidden)"}},
		"Services were not read": {func(s *stakes) {
			s.silence("worker-1")
			s.NotRead = []cluster.NotRead{{Resource: cluster.Services, Reason: "NotAsked"}}
		}, nil, []string{"services (not asked for"}},
		"ExternalName, no selector, and nobody behind": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.silence("worker-1")
			s.service("shop", "web").Spec.Type = corev1.ServiceTypeExternalName
			s.service("shop", "nobody")
			s.service("shop", "web").Spec.Selector = nil
		}, nil, nil},
		"both IP families": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.silence("worker-1", "worker-2")
			s.service("shop", "web")
			other := s.EndpointSlices[0].DeepCopy()
			other.Name, other.AddressType = "web-v6", discoveryv1.AddressTypeIPv6
			for i := range other.Endpoints {
				other.Endpoints[i].Addresses = []string{fmt.Sprintf("2001:db8::%d", i)}
			}
			s.EndpointSlices = append(s.EndpointSlices, other)
		}, []string{"web"}, []string{"shop/web 0/2"}},
		"the node has been down for days, another fell now": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.fell("worker-1", "Unknown", 90*time.Hour, true)
			unready(s.Pods[0], 90*time.Hour, false)
			s.silence("worker-2")
			s.service("shop", "web")
		}, nil, nil},
		"half went with a node of days ago, half now": {func(s *stakes) {
			on(s, "web", "worker-1", "worker-2")
			s.fell("worker-1", "Unknown", 90*time.Hour, true)
			unready(s.Pods[0], 90*time.Hour, false)
			s.silence("worker-2")
			s.service("shop", "web")
		}, []string{"web"}, nil},
		"the node is taken away on purpose": {func(s *stakes) {
			on(s, "web", "worker-1")
			s.silence("worker-1", "worker-2")
			s.Nodes[3].DeletionTimestamp = &s.Nodes[3].CreationTimestamp
			s.service("shop", "web")
		}, nil, nil},
		"publishes those that are not ready": {func(s *stakes) {
			on(s, "web", "worker-3")
			unready(s.Pods[0], time.Hour, true)
			s.silence("worker-1")
			s.service("shop", "web").Spec.PublishNotReadyAddresses = true
			s.EndpointSlices = nil
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			on(s, "neighbour", "worker-4", "worker-5", "worker-6")
			s.service("shop", "neighbour")
			s.Pods = s.Pods[:0:0]
			s.Services, s.EndpointSlices = s.Services[:0:0], s.EndpointSlices[:0:0]
			c.change(s)
			r := s.report()
			var got []string
			for _, f := range findings(r, report.ServiceWithoutEndpoints) {
				got = append(got, string(f.Object.Name))
				if f.Severity != report.Critical || len(f.Evidence) == 0 || f.Since == nil {
					t.Errorf("%+v", f)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.lost) {
				t.Errorf("lost %v, want %v (%s)", got, c.lost, says(r, report.StakeServices))
			}
			mustSay(t, says(r, report.StakeServices), c.want...)
		})
	}
}

func TestTheListOfLostServicesIsBounded(t *testing.T) {
	t.Parallel()
	s := newStakes()
	for i := range 30 {
		s.pod("shop", fmt.Sprintf("svc-%02d", i), "worker-1")
	}
	s.pod("shop", "svc-07", "worker-1")
	s.silence("worker-1")
	for i := range 30 {
		s.service("shop", fmt.Sprintf("svc-%02d", i))
	}
	s.Services[20].Spec.Type = corev1.ServiceTypeLoadBalancer
	r := s.report()
	f := findings(r, report.ServiceWithoutEndpoints)
	if len(f) != 20 {
		t.Fatalf("%d findings", len(f))
	}
	l := r.Stake(report.StakeServices)
	mustSay(t, string(l.Text), "30 Services have no ready endpoint left", "shop/svc-20 0/1, shop/svc-07 0/2")
	mustSay(t, string(l.Brief), "30 Services without endpoints (shop/svc-20 0/1)")
	mustSay(t, toString(f), "so it is with 10 Services more")
}

func TestClusterDNSIsCountedAgainstWhatItShouldHave(t *testing.T) {
	t.Parallel()
	dns := func(s *stakes, replicas int32, nodes ...string) {
		for _, n := range nodes {
			s.pod("kube-system", "coredns", n)
		}
		s.Deployments = append(s.Deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns", UID: "dns"},
			Spec:   appsv1.DeploymentSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "coredns"}}}},
			Status: appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, UpdatedReplicas: replicas}})
	}
	label := func(s *stakes) {
		svc := s.service("kube-system", "coredns")
		svc.Labels = map[string]string{"k8s-app": "kube-dns"}
	}
	for name, c := range map[string]struct {
		change func(s *stakes)
		found  bool
		want   string
	}{
		"two of two, elsewhere": {func(s *stakes) { dns(s, 2, "worker-3", "worker-4"); s.silence("worker-1"); label(s) }, false, "2 of 2 endpoints ready, none on failing nodes"},
		"one of two":            {func(s *stakes) { dns(s, 2, "worker-1", "worker-4"); s.silence("worker-1"); label(s) }, true, "1 of 2 endpoints ready; 1 stands on failing nodes (worker-1)"},
		"ready on a failing node whose kubelet is alive": {func(s *stakes) {
			dns(s, 2, "worker-1", "worker-4")
			s.fell("worker-1", "False", time.Minute, true)
			label(s)
		}, true, "2 of 2 endpoints ready; of those that are ready 1 stands on failing nodes"},
		"fewer than its replicas, the Pod is gone": {func(s *stakes) { dns(s, 3, "worker-3", "worker-4"); s.silence("worker-1"); label(s) }, true, "2 of 3 endpoints ready"},
		"none at all, and no node fails": {func(s *stakes) {
			dns(s, 2, "worker-3", "worker-4")
			unready(s.Pods[0], time.Hour, true)
			unready(s.Pods[1], time.Hour, true)
			label(s)
		}, true, "0 of 2 endpoints ready"},
		"its own rollout, and no node fails": {func(s *stakes) {
			dns(s, 2, "worker-3", "worker-4")
			unready(s.Pods[0], 10*time.Second, true)
			label(s)
		}, false, ""},
		"scaled to nothing": {func(s *stakes) { dns(s, 0); s.silence("worker-1"); label(s) }, false, ""},
		"known by its name alone": {func(s *stakes) {
			dns(s, 2, "worker-1", "worker-4")
			s.silence("worker-1")
			s.service("kube-system", "coredns")
		}, true, "1 of 2 endpoints ready"},
		"of another namespace": {func(s *stakes) {
			s.pod("shop", "coredns", "worker-1")
			s.pod("shop", "coredns", "worker-4")
			s.silence("worker-1")
			s.service("shop", "coredns").Labels = map[string]string{"k8s-app": "kube-dns"}
		}, false, "no Service of the cluster's DNS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			c.change(s)
			r := s.report()
			f := findings(r, report.ClusterDNSDegraded)
			if (len(f) > 0) != c.found {
				t.Fatalf("ClusterDNSDegraded: %v", f)
			}
			mustSay(t, says(r, report.StakeDNS), c.want)
			mustNotFind(t, r, report.ServiceWithoutEndpoints)
			if c.found && !strings.Contains(string(r.Stake(report.StakeDNS).Brief), "DNS ") {
				t.Errorf("brief is %q", r.Stake(report.StakeDNS).Brief)
			}
		})
	}
}
