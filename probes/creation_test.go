package probes_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// refused is a DaemonSet agents/agent on three nodes without any Pod, of which the
// controller said the message at `last`.
func refused(message string, last time.Duration) *site {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "agent", UID: "agent", Generation: 1, CreationTimestamp: past(time.Hour)},
		Spec:   appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}}, Spec: corev1.PodSpec{PriorityClassName: "agents-first", Containers: []corev1.Container{{Name: "agent"}}}}},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3}}
	s := &site{Objects: cluster.Objects{Nodes: []*corev1.Node{machine("w1"), machine("w2"), machine("w3")}, DaemonSets: []*appsv1.DaemonSet{ds}},
		meta: cluster.Meta{AsOf: asOf, Source: cluster.Source{Type: "cluster"}, PodScope: cluster.PodScope{All: true}}}
	s.Events = []*corev1.Event{said("FailedCreate", message, last)}
	return s
}

func said(reason, message string, last time.Duration) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: reason + last.String()}, InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "agents", Name: "agent", UID: "agent"},
		Reason: reason, Message: message, FirstTimestamp: past(last + 10*time.Minute), LastTimestamp: past(last), Source: corev1.EventSource{Component: "daemonset-controller"}}
}

func (s *site) agent() *report.Workload {
	r := probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{All: true}).Report
	return r.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: "agents", Name: "agent"})
}

func (s *site) hook(client admissionv1.WebhookClientConfig) {
	fail := admissionv1.Fail
	s.MutatingWebhooks = []*admissionv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "policies"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "pods.example.com", FailurePolicy: &fail, ClientConfig: client}}}}
}

const (
	overQuota = `Error creating: pods "agent-x7k2p" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=10, limited: pods=10`
	noAnswer  = `Error creating: Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "https://policies.guard.svc:443/mutate?timeout=10s": no endpoints available for service "policies"`
)

func TestWhatARefusalMeans(t *testing.T) {
	t.Parallel()
	service := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "guard", Name: "policies"}}
	for _, tt := range []struct {
		name    string
		message string
		change  func(*site)
		want    report.Code
		action  report.RecommendedAction
		says    []string
		silent  []string
	}{
		{"a quota that was not read", overQuota, func(s *site) {
			s.meta.NotRead = []cluster.NotRead{{Resource: cluster.ResourceQuotas, Reason: cluster.NotAsked}}
		},
			report.QuotaExceeded, report.ActionFixCluster, []string{"pods: 10 of 10 used, 1 more asked for", "resourcequotas were not read", "kubectl -n agents describe resourcequota compute"}, []string{"does not exist any more"}},
		{"a quota that has room again", overQuota, func(s *site) {
			q := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20")}
			s.ResourceQuotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "compute"}, Status: corev1.ResourceQuotaStatus{Hard: q, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}}}}
		}, report.QuotaExceeded, report.ActionFixCluster, []string{"has room now"}, nil},
		{"a quota for another class", overQuota, func(s *site) {
			s.ResourceQuotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"agents-first"}}}}}}}
		}, report.QuotaExceeded, report.ActionFixCluster, []string{"PriorityClass In [agents-first] only"}, nil},
		{"a quota that wants limits", `Error creating: pods "agent-" is forbidden: failed quota: compute: must specify limits.cpu for: agent`, nil,
			report.QuotaExceeded, report.ActionFixWorkload, []string{"limits.cpu for: agent"}, nil},
		{"a webhook by URL", `Error creating: Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://policy.example.com:8443/validate": x509: certificate has expired or is not yet valid`, nil,
			report.AdmissionWebhookUnavailable, report.ActionFixCluster, []string{"certificate has expired", "bring https://policy.example.com:8443/validate back", "no configuration names the webhook"}, nil},
		{"webhooks that were not read", noAnswer, func(s *site) {
			s.meta.NotRead = []cluster.NotRead{{Resource: cluster.MutatingWebhooks, Reason: "Forbidden"}, {Resource: cluster.Services, Reason: cluster.NotAsked}, {Resource: cluster.EndpointSlices, Reason: cluster.NotAsked}}
		}, report.AdmissionWebhookUnavailable, report.ActionFixCluster, []string{"webhook configurations were not read", "services were not read", "endpointslices were not read"}, []string{"no configuration names", "does not exist", "no ready endpoint"}},
		{"a webhook whose Service is gone", noAnswer, func(s *site) { s.hook(service) }, report.AdmissionWebhookUnavailable, report.ActionFixCluster,
			[]string{"Service guard/policies does not exist", "failurePolicy Fail, Service guard/policies", "kubectl patch mutatingwebhookconfiguration policies", "/webhooks/0/failurePolicy"}, []string{"a circle"}},
		{"a webhook that no longer insists", noAnswer, func(s *site) {
			s.hook(service)
			ignore := admissionv1.Ignore
			s.MutatingWebhooks[0].Webhooks[0].FailurePolicy = &ignore
		}, report.AdmissionWebhookUnavailable, report.ActionFixCluster, []string{"failurePolicy is Ignore now"}, []string{"kubectl patch"}},
		{"a webhook that is served by what it blocks", noAnswer, func(s *site) {
			s.hook(service)
			s.Services = []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "guard", Name: "policies"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "agent"}}}}
			s.DaemonSets[0].Namespace, s.Events[0].InvolvedObject.Namespace = "guard", "guard"
		}, report.AdmissionWebhookUnavailable, report.ActionFixCluster, []string{"a circle: DaemonSet guard/agent serves the webhook"}, nil},
		{"a webhook that is well and was not for a moment", noAnswer, func(s *site) {
			s.hook(service)
			yes := true
			s.Services = []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "guard", Name: "policies"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "policies"}}}}
			s.EndpointSlices = []*discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Namespace: "guard", Name: "policies-1", Labels: map[string]string{discoveryv1.LabelServiceName: "policies"}}, Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &yes}}}}}
		}, report.AdmissionWebhookUnavailable, report.ActionFixCluster, []string{"1 of 1 endpoint ready"}, []string{"a circle", "no ready endpoint"}},
		{"a level that is the API server's default", `Error creating: pods "agent-" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "agent" must set securityContext.runAsNonRoot=true)`,
			func(s *site) { s.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "agents"}}} }, report.PodSecurityViolation, report.ActionFixCluster, []string{"the level is the API server's own default"}, nil},
		{"a limit range", `Error creating: pods "agent-" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi`, nil, report.AdmissionDenied, report.ActionFixWorkload, []string{"get limitrange,resourcequota"}, nil},
		{"the controller lost its role: no admission", `Error creating: pods is forbidden: User "system:serviceaccount:kube-system:daemon-set-controller" cannot create resource "pods" in API group "" in the namespace "agents"`, nil,
			"", report.ActionFixCluster, []string{"may not create Pods in namespace agents"}, []string{"AdmissionDenied"}},
		{"the Pod is not valid: no admission", `Error creating: Pod "agent-x" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "run"`, nil, "", report.ActionFixWorkload, []string{"mend the template"}, []string{"AdmissionDenied"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := refused(tt.message, time.Minute)
			if tt.change != nil {
				tt.change(s)
			}
			r := probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{All: true}).Report
			w := &r.Workloads[0]
			if w.Verdict.Attribution != report.ClusterBlocksPods || w.Recommendation.Action != tt.action || tt.want != "" && w.Verdict.RootCause != tt.want || tt.want == "" && w.Verdict.RootCause != "" && w.Verdict.RootCause != report.RolloutStuck {
				t.Errorf("got %s / %s / %s, want %s / %s", w.Verdict.Attribution, w.Verdict.RootCause, w.Recommendation.Action, tt.want, tt.action)
			}
			text := told(w)
			for _, x := range tt.says {
				if !strings.Contains(text, x) {
					t.Errorf("nothing says %q: %s", x, text)
				}
			}
			for _, x := range tt.silent {
				if strings.Contains(text, x) {
					t.Errorf("something says %q: %s", x, text)
				}
			}
		})
	}
}

func TestWhenARefusalStillSpeaks(t *testing.T) {
	t.Parallel()
	blocked := func(s *site) bool { return s.agent().Verdict.Attribution == report.ClusterBlocksPods }
	withPods := func(s *site, made time.Duration, nodes ...string) *site {
		for _, n := range nodes {
			p := resident("agent-"+n, n, "agent", "agent")
			p.Namespace, p.OwnerReferences[0].Kind, p.CreationTimestamp = "agents", "DaemonSet", past(made)
			s.Pods = append(s.Pods, p)
			s.DaemonSets[0].Status.CurrentNumberScheduled++
		}
		return s
	}
	for _, tt := range []struct {
		name string
		site *site
		want bool
	}{
		{"just now", refused(overQuota, time.Minute), true},
		{"long ago, and nothing was created since", refused(overQuota, 50*time.Minute), true},
		{"its gap has closed", withPods(refused(overQuota, time.Minute), 30*time.Minute, "w1", "w2", "w3"), false},
		{"Pods were created after it", withPods(refused(overQuota, 20*time.Minute), 10*time.Minute, "w1", "w2"), false},
		{"in the very batch in which others were created", withPods(refused(overQuota, 10*time.Minute), 10*time.Minute-3*time.Second, "w1"), true},
		{"Pods were created before it", withPods(refused(overQuota, time.Minute), 30*time.Minute, "w1", "w2"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := blocked(tt.site); got != tt.want {
				t.Errorf("blocked: %v, want %v: %s", got, tt.want, tt.site.agent().Verdict.Summary)
			}
		})
	}
	success := refused(overQuota, 20*time.Minute)
	success.Events = append(success.Events, said("SuccessfulCreate", "Created pod: agent-w1", 5*time.Minute))
	if blocked(success) {
		t.Error("an event says that a Pod was created after the refusal")
	}
	another := refused(overQuota, time.Minute)
	another.Events[0].InvolvedObject.UID = "an-earlier-one"
	if blocked(another) {
		t.Error("the event is about an earlier object of that name")
	}
	if w := refused(overQuota, 50*time.Minute).agent(); w.Verdict.Confidence == report.High {
		t.Error("a refusal older than the controller's patience is as sure as a fresh one")
	}
}

func TestAReplicaSetThatIsRefusedSpeaksForItsDeployment(t *testing.T) {
	t.Parallel()
	s := waiting("", machine("w1"))
	s.Pods = nil
	s.ReplicaSets[0].Status.Replicas = 0
	s.Deployments[0].Status.Replicas, s.Deployments[0].Status.UpdatedReplicas = 0, 0
	s.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "shop", Name: "web-1", UID: "web-1"}, Reason: "FailedCreate", Message: overQuota, FirstTimestamp: past(time.Hour), LastTimestamp: past(time.Minute)}}
	if w := s.diagnose(); w.Verdict.RootCause != report.QuotaExceeded {
		t.Errorf("by its event: %s %s", w.Verdict.Attribution, w.Verdict.RootCause)
	}
	s.Events = nil
	s.ReplicaSets[0].Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: strings.TrimPrefix(overQuota, "Error creating: "), LastTransitionTime: past(time.Hour)}}
	if w := s.diagnose(); w.Verdict.RootCause != report.QuotaExceeded || w.Verdict.Confidence != report.High {
		t.Errorf("by its condition: %s %s", w.Verdict.Attribution, w.Verdict.RootCause)
	}
	s.ReplicaSets[0].Status.Replicas = 1 // the condition is as old as the gap was
	if w := s.diagnose(); w.Verdict.RootCause == report.QuotaExceeded {
		t.Errorf("the gap has closed: %s", w.Verdict.Summary)
	}
}

func TestTheStepAboutTheNewPodSaysWhoRefusesIt(t *testing.T) {
	t.Parallel()
	s := refused(overQuota, time.Minute)
	c := probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{})
	r := probes.Probes["new-pod"](c, report.WorkloadKey{Kind: "DaemonSet", Namespace: "agents", Name: "agent"})
	if r.State != report.StepAnomaly || len(r.Lines) == 0 || !strings.Contains(string(r.Lines[0].Text), "3 Pods cannot be created: quota compute of namespace agents is used up") {
		t.Errorf("%+v", r)
	}
}

func TestTheStepAboutTheNewPodTakesTheSentenceApart(t *testing.T) {
	t.Parallel()
	s := waiting("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.", machine("w1"), machine("w2", cordoned))
	asking(s.pod, corev1.ResourceCPU, "5")
	r := probes.Probes["new-pod"](probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{}), report.WorkloadKey{Kind: "Deployment", Namespace: "shop", Name: "web"})
	var lines []string
	for _, l := range r.Lines {
		lines = append(lines, string(l.Text))
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"1 node: Insufficient cpu", "1 node: were unschedulable", "preemption: on 1 node no Pod of lower priority could make room, on 1 it would not help", "Ledger of node w1: cpu: 5 asked for, 4 of 4 free", "Node w2: is cordoned"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line says %q:\n%s", want, text)
		}
	}
}
