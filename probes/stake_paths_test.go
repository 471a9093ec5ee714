package probes_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestTheProgramsOwnPathIsJudgedByAddresses(t *testing.T) {
	t.Parallel()
	announcer := func(s *stakes, name, env, value string) {
		s.DaemonSets = append(s.DaemonSets, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: "vip"},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"node-role.kubernetes.io/control-plane": ""}, HostNetwork: true,
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: name, Image: "registry.example/" + name + ":v1", Env: []corev1.EnvVar{{Name: env, Value: value}}}}}}}})
	}
	for name, c := range map[string]struct {
		host   string
		change func(s *stakes)
		risk   string // the node
		want   string
	}{
		"that of a failing node":         {"192.0.2.13", func(s *stakes) { s.silence("worker-1") }, "worker-1", "is that of node worker-1, which fails (Ready=Unknown)"},
		"with its port":                  {"192.0.2.13:6443", func(s *stakes) { s.silence("worker-1") }, "worker-1", ""},
		"as a URL":                       {"https://192.0.2.13:6443", func(s *stakes) { s.silence("worker-1") }, "worker-1", ""},
		"by its name":                    {"Worker-1:6443", func(s *stakes) { s.silence("worker-1") }, "worker-1", ""},
		"IPv6, written in another way":   {"[2001:DB8::0:13]:6443", func(s *stakes) { s.silence("worker-1"); s.Nodes[3].Status.Addresses[0].Address = "2001:db8::13" }, "worker-1", ""},
		"that of a healthy node":         {"192.0.2.10", func(s *stakes) { s.silence("worker-1") }, "", "✓ your path to the API server (192.0.2.10) is that of node control-1, which is Ready"},
		"another's, and workers fail":    {"api.example.com", func(s *stakes) { s.silence("worker-1") }, "", "✓ your path to the API server (api.example.com) is not on failing nodes"},
		"another's, a control plane's":   {"api.example.com", func(s *stakes) { s.silence("control-1") }, "", "? your path to the API server (api.example.com) is no node's address"},
		"not recorded":                   {"", func(s *stakes) { s.silence("worker-1"); s.Source.Type = "cluster" }, "", "? your path to the API server: the address was not recorded"},
		"a tunnel on the operator's own": {"127.0.0.1:41234", func(s *stakes) { s.silence("worker-1") }, "", "begins at this very machine"},
		"a VIP of which some announcers fail": {"192.0.2.200", func(s *stakes) {
			announcer(s, "kube-vip", "address", "192.0.2.200")
			s.silence("control-1")
		}, "", "! your path to the API server (192.0.2.200) is announced by DaemonSet kube-system/kube-vip; 1 of its 3 nodes belong to the incident"},
		"a VIP of which all announcers fail": {"192.0.2.200", func(s *stakes) {
			announcer(s, "keepalived", "VIP", "192.0.2.200/32")
			s.silence("control-1", "control-2", "control-3")
		}, "control-1", "all of whose nodes belong to the incident"},
		"a VIP of healthy announcers": {"192.0.2.200", func(s *stakes) {
			announcer(s, "kube-vip", "address", "192.0.2.200")
			s.silence("worker-1")
		}, "", "none of whose nodes belongs to the incident"},
		"an agent that is told where to ask announces nothing": {"192.0.2.200", func(s *stakes) {
			announcer(s, "net-agent", "KUBERNETES_SERVICE_HOST", "192.0.2.200")
			s.silence("control-1", "control-2", "control-3")
		}, "", "? your path"},
		"static Pods announce it": {"192.0.2.200", func(s *stakes) {
			for _, n := range []string{"control-1", "control-2"} {
				p := s.pod("kube-system", "kube-vip", n)
				p.Annotations, p.OwnerReferences = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, nil
				p.Spec.Containers = []corev1.Container{{Name: "kube-vip", Env: []corev1.EnvVar{{Name: "address", Value: "192.0.2.200"}}}}
			}
			s.silence("control-1", "control-2")
		}, "control-1", "is announced by static Pods such as kube-system/kube-vip"},
		"the address inside the cluster": {"10.96.0.1", func(s *stakes) {
			s.Services = append(s.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"}})
			s.EndpointSlices = append(s.EndpointSlices, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.10"}}, {Addresses: []string{"192.0.2.11"}}}})
			s.silence("control-1")
		}, "", "! your path to the API server (10.96.0.1) is that of Service default/kubernetes: 1 of its 2 endpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			s.APIHost = c.host
			c.change(s)
			r := s.report()
			f := findings(r, report.APIPathAtRisk)
			if (len(f) > 0) != (c.risk != "") {
				t.Fatalf("APIPathAtRisk %v; %s", f, says(r, report.StakeAPIPath))
			}
			if c.risk != "" && (string(f[0].Node) != c.risk || len(f[0].Evidence) < 2) {
				t.Errorf("%+v", f[0])
			}
			mustSay(t, says(r, report.StakeAPIPath), c.want)
		})
	}
}

func TestWebhooksThatMustAnswerAndCannot(t *testing.T) {
	t.Parallel()
	ignore, namespaced, url := admissionv1.Ignore, admissionv1.NamespacedScope, "https://192.0.2.13:9443/validate"
	rule := func(group, resource string, ops ...admissionv1.OperationType) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{Operations: ops, Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}}}
	}
	base := func(s *stakes) *admissionv1.ValidatingWebhook {
		s.pod("policy", "guard", "worker-1")
		s.pod("policy", "guard", "worker-2")
		s.silence("worker-1", "worker-2")
		s.service("policy", "guard")
		w := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "pods.guard.example",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "policy", Name: "guard"}},
			Rules:        []admissionv1.RuleWithOperations{rule("", "pods", admissionv1.Create, admissionv1.Update)}}}}
		s.ValidatingWebhooks = append(s.ValidatingWebhooks, w)
		return &w.Webhooks[0]
	}
	for name, c := range map[string]struct {
		change func(s *stakes)
		found  bool
		want   []string // in the finding, or the topic where there is none
	}{
		"all endpoints gone, and Fail is the default": {func(s *stakes) { base(s) }, true,
			[]string{"webhook pods.guard.example must answer", "none of 2 endpoints of Service policy/guard is ready: worker-1, worker-2", "blocks creating Pods, changing Pods"}},
		"it may be passed over":         {func(s *stakes) { base(s).FailurePolicy = &ignore }, false, []string{"✓ no webhook that must answer"}},
		"it looks at something else":    {func(s *stakes) { base(s).Rules[0] = rule("networking.k8s.io", "ingresses", "*") }, false, nil},
		"everything, by wildcards":      {func(s *stakes) { base(s).Rules[0] = rule("*", "*/*", "*") }, true, []string{"blocks creating Pods, deleting Pods, changing Pods, placing Pods and 10 more"}},
		"subresources are not asked by": {func(s *stakes) { base(s).Rules[0] = rule("*", "*", admissionv1.Connect) }, false, nil},
		"DaemonSets":                    {func(s *stakes) { base(s).Rules[0] = rule("apps", "daemonsets", admissionv1.Update) }, true, []string{"changing DaemonSets (freeze, rollback)"}},
		"Leases, of all things":         {func(s *stakes) { base(s).Rules[0] = rule("coordination.k8s.io", "leases", admissionv1.Update) }, true, []string{"heartbeats (Leases)"}},
		"nodes, of a rule for namespaced objects": {func(s *stakes) {
			w := base(s)
			w.Rules[0] = rule("", "nodes", admissionv1.Update)
			w.Rules[0].Scope = &namespaced
		}, false, nil},
		"one endpoint is elsewhere": {func(s *stakes) {
			base(s)
			s.pod("policy", "guard", "worker-3")
			s.EndpointSlices, s.Services = nil, nil
			s.service("policy", "guard")
		}, false, nil},
		"its Pods are ready on nodes whose kubelets are alive": {func(s *stakes) {
			base(s)
			for _, n := range s.Nodes[3:5] {
				n.Status.Conditions[0].Status = corev1.ConditionFalse
			}
			for _, p := range s.Pods {
				p.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			for _, n := range s.Nodes {
				s.lease(cluster.NodeLeaseNamespace, n.Name, 40, time.Second)
			}
			s.EndpointSlices, s.Services = nil, nil
			s.service("policy", "guard")
		}, true, []string{"all endpoints of Service policy/guard that are ready (2 of 2) stand on failing nodes"}},
		"kube-system is left out by name": {func(s *stakes) {
			base(s).NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}}}}
		}, true, []string{"its namespaceSelector leaves out kube-system"}},
		"kube-system is left out by a label": {func(s *stakes) {
			base(s).NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "guard", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"off"}}}}
			s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", Labels: map[string]string{"guard": "off"}}})
		}, true, []string{"its namespaceSelector leaves out kube-system"}},
		"some objects only": {func(s *stakes) {
			base(s).ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
		}, true,
			[]string{"only objects that its objectSelector means (guarded=yes)"}},
		"at the address of a failing node": {func(s *stakes) {
			base(s).ClientConfig = admissionv1.WebhookClientConfig{URL: &url}
		}, true, []string{"its address is that of node worker-1"}},
		"its Service does not exist": {func(s *stakes) { base(s); s.Services, s.EndpointSlices = nil, nil }, false, nil},
		"what stands behind it was not read": {func(s *stakes) {
			base(s)
			s.Services, s.EndpointSlices, s.PodScope = nil, nil, cluster.PodScope{}
			s.NotRead = []cluster.NotRead{{Resource: cluster.Services, Reason: "Forbidden"}}
		}, false, []string{"where 1 webhook that must answer runs is not known", "services (forbidden)"}},
		"configurations were not read": {func(s *stakes) {
			s.silence("worker-1")
			s.NotRead = []cluster.NotRead{{Resource: cluster.ValidatingWebhooks, Reason: "Forbidden"}, {Resource: cluster.MutatingWebhooks, Reason: "Forbidden"}}
		}, false, []string{"? whether webhooks run on failing nodes is not known"}},
		"a mutating one": {func(s *stakes) {
			w := base(s)
			s.MutatingWebhooks = append(s.MutatingWebhooks, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "inject"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "inject.example", ClientConfig: w.ClientConfig, Rules: w.Rules}}})
			s.ValidatingWebhooks = nil
		}, true, []string{"webhook inject.example must answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			c.change(s)
			r := s.report()
			f := findings(r, report.WebhookOnBrokenNodes)
			if (len(f) > 0) != c.found {
				t.Fatalf("WebhookOnBrokenNodes: %v; %s", f, says(r, report.StakeWebhooks))
			}
			text := says(r, report.StakeWebhooks)
			if c.found {
				text = string(f[0].Summary)
				if len(f[0].Evidence) < 2 && name != "at the address of a failing node" {
					t.Errorf("%+v", f[0].Evidence)
				}
				mustSay(t, string(r.Stake(report.StakeWebhooks).Brief), "1 webhook on failing nodes")
			}
			mustSay(t, text, c.want...)
		})
	}
}
