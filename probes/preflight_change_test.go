package probes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/defaults"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// expect is one finding that must be there, or with no severity must not.
type expect struct {
	code     report.Code
	severity report.Severity
	says     string
}

func (e expect) check(t *testing.T, r *report.Report) {
	t.Helper()
	f := found(r, e.code)
	switch {
	case f == nil && e.severity != "":
		t.Errorf("%s is not found; there is %v", e.code, codes(r))
	case f != nil && f.Severity != e.severity:
		t.Errorf("%s is %s, want %q: %s", e.code, f.Severity, e.severity, f.Summary)
	case f != nil && !strings.Contains(fmt.Sprintf("%s %+v", f.Summary, f.Evidence), e.says):
		t.Errorf("%s does not say %q: %+v", e.code, e.says, f)
	case f != nil && len(f.Evidence) == 0:
		t.Errorf("%s carries no evidence", e.code)
	}
}

func resources(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}
}

// neighbour is a Pod of another workload on a node.
func neighbour(node, cpu, memory string, priority int32, port int32) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-" + node, UID: types.UID("cart-" + node), CreationTimestamp: metav1.NewTime(padTime.Add(-time.Hour))},
		Spec:   corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{{Name: "cart", Resources: resources(cpu, memory)}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if port > 0 {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	}
	return p
}

func TestWhatAChangeWouldBreakAtOnce(t *testing.T) {
	t.Parallel()
	spec := func(ds *appsv1.DaemonSet) *corev1.PodSpec { return &ds.Spec.Template.Spec }
	taint := func(p *pad, n int, key string, effect corev1.TaintEffect) {
		for _, node := range p.Nodes[:n] {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
		}
	}
	tolerate := func(key string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			spec(ds).Tolerations = append(spec(ds).Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
	intolerant := func(ds *appsv1.DaemonSet) { spec(ds).Tolerations = nil }
	selector := func(key, value string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { spec(ds).NodeSelector = map[string]string{key: value} }
	}
	requests := func(cpu, memory string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { spec(ds).Containers[0].Resources = resources(cpu, memory) }
	}
	surge := func(ds *appsv1.DaemonSet) {
		zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &zero, MaxSurge: &one}
	}
	port := func(n int32) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			spec(ds).Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: n, HostPort: n, Protocol: corev1.ProtocolTCP}}
		}
	}
	hostNetwork := func(n int32) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			spec(ds).HostNetwork = true
			spec(ds).Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: n, Protocol: corev1.ProtocolTCP}}
		}
	}
	fail := func(p *pad, n int, status corev1.ConditionStatus) {
		for i := range n {
			p.Nodes[i].Status.Conditions[0].Status = status
			p.Nodes[i].Status.Conditions[0].LastTransitionTime = metav1.NewTime(padTime.Add(-time.Hour))
			p.Pods[i].Status.Conditions[0].Status = corev1.ConditionFalse
		}
	}
	type edits []func(*appsv1.DaemonSet)
	for _, tt := range []struct {
		name  string
		setup func(*pad)
		edits edits
		want  []expect
	}{
		{"a canary by nodeSelector", func(p *pad) { p.Nodes[0].Labels["canary"] = "true" }, edits{selector("canary", "true")},
			[]expect{{report.NodeNotCovered, report.Critical, "5 nodes would lose the Pod at the first sync"}, {report.NoEligibleNodes, "", ""}}},
		{"a selector that none has", nil, edits{selector("pool", "b")}, []expect{{report.NoEligibleNodes, report.Critical, `"a" on 6 nodes`}, {report.NodeNotCovered, "", ""}}},
		{"a slip of the pen", nil, edits{selector("kubernetes.io/os", "linxu")}, []expect{{report.NoEligibleNodes, report.Critical, `"linux" on 6 nodes`}}},
		{"a selector that all have", nil, edits{selector("pool", "a")}, []expect{{report.NodeNotCovered, "", ""}, {report.NoEligibleNodes, "", ""}}},
		{"required affinity for two nodes", nil, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-01"}}}}}}}}
		}}, []expect{{report.NodeNotCovered, report.Critical, "5 nodes"}}},
		{"a toleration of NoSchedule is lost", func(p *pad) { taint(p, 2, "dedicated", corev1.TaintEffectNoSchedule); tolerate("dedicated")(p.live) }, edits{intolerant},
			[]expect{{report.UntoleratedTaint, report.Critical, "2 nodes would lose the Pod when its turn comes"}}},
		{"a toleration of NoExecute is lost", func(p *pad) { taint(p, 2, "dedicated", corev1.TaintEffectNoExecute); tolerate("dedicated")(p.live) }, edits{intolerant},
			[]expect{{report.UntoleratedTaint, report.Critical, "at the first sync"}}},
		{"a taint that was never tolerated", func(p *pad) { taint(p, 2, "dedicated", corev1.TaintEffectNoSchedule) }, nil, []expect{{report.UntoleratedTaint, "", ""}}},
		{"a network agent would not come back to broken nodes", func(p *pad) {
			networkAgent(p.live)
			p.live.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, edits{intolerant}, []expect{{report.UntoleratedTaint, report.Warning, "a rollback would not reach it"}}},

		{"more than any node has", nil, edits{requests("5", "100Mi")}, []expect{{report.InsufficientHeadroom, report.Critical, "more than any of 6 nodes"}}},
		{"more than one node has free", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-02", "3500m", "1Gi", 2_100_000_000, 0)) }, edits{requests("600m", "100Mi")},
			[]expect{{report.InsufficientHeadroom, report.Critical, "1 node of 6"}, {report.InsufficientHeadroom, report.Critical, "shop/cart-worker-02 has 3500m"}}},
		{"the old Pod gives its share back", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-02", "3900m", "1Gi", 2_100_000_000, 0)) }, edits{requests("100m", "200Mi")},
			[]expect{{report.InsufficientHeadroom, "", ""}}},
		{"with surge it does not", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-02", "3900m", "1Gi", 2_100_000_000, 0)) }, edits{requests("100m", "200Mi"), surge},
			[]expect{{report.InsufficientHeadroom, report.Warning, "beside the old one"}}},
		{"others would have to go", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-02", "3500m", "1Gi", 0, 0)) }, edits{requests("600m", "100Mi")},
			[]expect{{report.InsufficientHeadroom, report.Warning, "only by preempting"}}},
		{"Pods were not all read", func(p *pad) {
			p.notRead = []cluster.NotRead{{Resource: cluster.Pods, Namespace: "shop", Reason: "Forbidden"}}
		}, edits{requests("5", "100Mi")}, []expect{{report.InsufficientHeadroom, report.Critical, "more than any"}}},

		{"surge and the host port that it has", func(p *pad) { port(9100)(p.live) }, edits{surge}, []expect{{report.HostPortBlocksSurge, report.Critical, "9100/TCP"}}},
		{"surge on the host's network", func(p *pad) { hostNetwork(9100)(p.live) }, edits{surge}, []expect{{report.HostPortBlocksSurge, report.Critical, "one of the node's"}}},
		{"another has the port", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-03", "100m", "1Mi", 0, 9100)) }, edits{port(9100)},
			[]expect{{report.HostPortConflict, report.Critical, "held by shop/cart-worker-03"}}},
		{"another has another port", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-03", "100m", "1Mi", 0, 9101)) }, edits{port(9100)}, []expect{{report.HostPortConflict, "", ""}}},

		{"minReadySeconds raised beyond the Pods' age", nil, edits{func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 3600 }},
			[]expect{{report.BudgetTooWide, report.Critical, "6 of them are Ready for less than the new minReadySeconds 3600"}}},
		{"minReadySeconds raised within it", nil, edits{func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = 600 }}, []expect{{report.BudgetTooWide, "", ""}}},
		{"three Pods are unready on good nodes", func(p *pad) {
			for _, pod := range p.Pods[:3] {
				pod.Status.Conditions[0].Status = corev1.ConditionFalse
			}
		}, nil, []expect{{report.BudgetTooWide, report.Critical, "3 Pods would be replaced in the first sync"}}},
		{"a dead node holds the budget", func(p *pad) { fail(p, 1, corev1.ConditionUnknown) }, nil, []expect{{report.ClusterNodesNotReady, report.Critical, "would not start"}, {report.BudgetTooWide, "", ""}}},
		{"a dead node and room in the budget", func(p *pad) { fail(p, 1, corev1.ConditionUnknown) }, edits{func(ds *appsv1.DaemonSet) {
			two := intstr.FromInt32(2)
			ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &two
		}}, []expect{{report.ClusterNodesNotReady, report.Warning, "1 of 6 nodes not Ready"}}},
		{"a cordoned node", func(p *pad) { p.Nodes[4].Spec.Unschedulable = true }, nil, []expect{{report.ClusterNodesCordoned, report.Warning, "worker-05"}}},
		{"all nodes well", nil, nil, []expect{{report.ClusterNodesNotReady, "", ""}, {report.ClusterNodesCordoned, "", ""}}},

		{"labels that the selector does not match", nil, edits{func(ds *appsv1.DaemonSet) { ds.Spec.Template.Labels = map[string]string{"app": "agnet"} }},
			[]expect{{report.AdmissionDenied, report.Critical, "does not match the labels"}}},
		{"another selector", nil, edits{func(ds *appsv1.DaemonSet) {
			ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent", "tier": "x"}}
			ds.Spec.Template.Labels["tier"] = "x"
		}}, []expect{{report.AdmissionDenied, report.Critical, "cannot be changed"}}},
		{"both budgets", nil, edits{func(ds *appsv1.DaemonSet) {
			one := intstr.FromInt32(1)
			ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one, MaxSurge: &one}
		}}, []expect{{report.AdmissionDenied, report.Critical, "may not both be set"}}},
		{"another workload's selector takes its Pods", func(p *pad) {
			other := agentSet()
			other.Name, other.UID = "agent-old", "uid-old"
			p.DaemonSets = append(p.DaemonSets, other)
		}, nil, []expect{{report.SelectorOverlap, report.Warning, "DaemonSet/agent-old"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(6)
			if tt.setup != nil {
				tt.setup(p)
			}
			r := p.judge(t, p.revised(tt.edits...))
			for _, e := range tt.want {
				e.check(t, r)
			}
			critical := slices.ContainsFunc(codes(r), func(c string) bool { return strings.HasPrefix(c, "critical") })
			if r.Workloads[0].Preflight.Pass == critical {
				t.Errorf("pass is %v with %v", r.Workloads[0].Preflight.Pass, codes(r))
			}
		})
	}
}

func TestWhatATemplateRefersTo(t *testing.T) {
	t.Parallel()
	optional := true
	from := func(kind, name, key string) corev1.EnvVar {
		if kind == "ConfigMap" {
			return corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
		}
		return corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
	}
	edit := func(f func(*corev1.PodSpec)) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { f(&ds.Spec.Template.Spec) }
	}
	configMap := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: name}}
	}
	for _, tt := range []struct {
		name    string
		edit    func(*corev1.PodSpec)
		others  []*metav1.PartialObjectMetadata
		answers map[string]probes.Existence
		want    expect
		unknown string
	}{
		{name: "a ConfigMap that the API server does not find", edit: func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{from("ConfigMap", "settings", "level")} },
			answers: map[string]probes.Existence{"ConfigMap/logging/settings": probes.Missing}, want: expect{report.ContainerConfigMissing, report.Critical, "settings"}},
		{name: "one that is there, whose keys nobody reads", edit: func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{from("ConfigMap", "settings", "level")} },
			answers: map[string]probes.Existence{"ConfigMap/logging/settings": probes.Exists}, want: expect{report.ContainerConfigMissing, "", ""}, unknown: "keys"},
		{name: "a Secret that may not be looked at", edit: func(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{from("Secret", "login", "password")} },
			answers: map[string]probes.Existence{"Secret/logging/login": probes.Unknown}, want: expect{report.ContainerConfigMissing, "", ""}, unknown: "Secret logging/login"},
		{name: "an optional one", edit: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "extra", Optional: &optional}}}}
		}, answers: map[string]probes.Existence{"Secret/logging/extra": probes.Missing}, want: expect{report.ContainerConfigMissing, "", ""}},
		{name: "a projected one", edit: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}}}}}}}
		}, answers: map[string]probes.Existence{"ConfigMap/logging/ca": probes.Missing}, want: expect{report.ContainerConfigMissing, report.Critical, "spec.volumes[v]"}},
		{name: "a ConfigMap that is not among the files", edit: func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}, others: []*metav1.PartialObjectMetadata{configMap("kube-root-ca.crt")}, want: expect{report.ContainerConfigMissing, report.Critical, "not among the 1 that were read"}},
		{name: "one that is", edit: func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}, others: []*metav1.PartialObjectMetadata{configMap("settings")}, want: expect{report.ContainerConfigMissing, "", ""}},
		{name: "no ConfigMap was read", edit: func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		}, want: expect{report.ContainerConfigMissing, "", ""}, unknown: "no ConfigMap of namespace logging was read"},
		{name: "a service account", edit: func(s *corev1.PodSpec) { s.ServiceAccountName = "agent" }, answers: map[string]probes.Existence{"ServiceAccount/logging/agent": probes.Missing},
			want: expect{report.ServiceAccountMissing, report.Critical, "no Pod can be created"}},
		{name: "a priority class", edit: func(s *corev1.PodSpec) { s.PriorityClassName = "agents" }, answers: map[string]probes.Existence{"PriorityClass//agents": probes.Missing},
			want: expect{report.PriorityClassMissing, report.Critical, "agents"}},
		{name: "a runtime class", edit: func(s *corev1.PodSpec) { s.RuntimeClassName = new("gvisor") }, answers: map[string]probes.Existence{"RuntimeClass//gvisor": probes.Missing},
			want: expect{report.AdmissionDenied, report.Critical, "gvisor"}},
		{name: "a claim", edit: func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}, answers: map[string]probes.Existence{"PersistentVolumeClaim/logging/data": probes.Missing}, want: expect{report.VolumeMountFailed, report.Critical, "data"}},
		{name: "a pull secret", edit: func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}} },
			answers: map[string]probes.Existence{"Secret/logging/registry": probes.Missing}, want: expect{report.ImagePullUnauthorized, report.Warning, "registry"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(3)
			p.Others = tt.others
			ch := p.revised(edit(tt.edit))
			ch.References = map[string]probes.Answer{}
			for k, e := range tt.answers {
				ch.References[k] = probes.Answer{Existence: e, Why: "may not be read"}
			}
			r := p.judge(t, ch)
			tt.want.check(t, r)
			if got := fmt.Sprint(r.Workloads[0].Preflight.NotChecked); !strings.Contains(got, tt.unknown) {
				t.Errorf("not checked: %s, want %q", got, tt.unknown)
			}
		})
	}
}

func TestWhatTheAPIServerSays(t *testing.T) {
	t.Parallel()
	quota := `pods "agent-abcde" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=6, limited: pods=6`
	for _, tt := range []struct {
		name string
		runs []probes.DryRun
		want expect
		line string
	}{
		{"it accepts", []probes.DryRun{{Kind: "DaemonSet"}}, expect{report.AdmissionDenied, "", ""}, "DaemonSet: accepted"},
		{"nobody asked", []probes.DryRun{{Kind: "DaemonSet", NotSent: "the session is read-only"}}, expect{report.AdmissionDenied, "", ""}, "read-only"},
		{"it is not valid", []probes.DryRun{{Kind: "DaemonSet", Refused: `DaemonSet.apps "agent" is invalid: spec.selector: Invalid value: field is immutable`}}, expect{report.AdmissionDenied, report.Critical, "immutable"}, "refused"},
		{"a webhook does not answer", []probes.DryRun{{Kind: "Pod", Refused: `Internal error occurred: failed calling webhook "inject.example": failed to call webhook: Post "https://inject.mesh.svc:443/?timeout=10s": no endpoints available for service "inject"`}},
			expect{report.AdmissionWebhookUnavailable, report.Critical, "inject.example"}, "refused"},
		{"the quota is used by the Pods that go", []probes.DryRun{{Kind: "Pod", Refused: quota}}, expect{report.QuotaExceeded, report.Warning, "gives its share back"}, "refused"},
		{"Pod security", []probes.DryRun{{Kind: "Pod", Refused: `pods "agent-abcde" is forbidden: violates PodSecurity "restricted:latest": privileged (container "agent" must not set securityContext.privileged=true)`}},
			expect{report.PodSecurityViolation, report.Critical, "restricted"}, "refused"},
		{"Pod security as a warning of the workload", []probes.DryRun{{Kind: "DaemonSet", Warnings: []string{`would violate PodSecurity "restricted:latest": privileged`}}},
			expect{report.PodSecurityViolation, report.Critical, "restricted"}, "warning"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(6)
			ch := p.revised()
			ch.DryRuns = tt.runs
			r := p.judge(t, ch)
			tt.want.check(t, r)
			if got := fmt.Sprint(r.Workloads[0].Preflight.DryRun); !strings.Contains(got, tt.line) {
				t.Errorf("dry run: %s", got)
			}
		})
	}
}

func TestAnOldAPIVersionAndStrayFieldsAreNamed(t *testing.T) {
	t.Parallel()
	p := newPad(3)
	ch := p.revised()
	ch.APIVersion = "extensions/v1beta1"
	expect{report.AdmissionDenied, report.Critical, "extensions/v1beta1"}.check(t, p.judge(t, ch))
	ch = p.revised()
	ch.Strays = []report.Text{`unknown field "spec.template.spec.containers[0].readynessProbe"`}
	expect{report.AdmissionDenied, report.Warning, "readynessProbe"}.check(t, p.judge(t, ch))
}

func TestARollbackDoesNotCountPodsThatHaveTheTemplateAlready(t *testing.T) {
	t.Parallel()
	p := newPad(6)
	old := p.live.Spec.Template.DeepCopy()
	p.live.Spec.Template.Spec.Containers[0].Image = "registry.example/agent:v2"
	for _, pod := range p.Pods[:4] {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse // of the old template, which is the planned one
	}
	ch := p.revised(func(ds *appsv1.DaemonSet) { ds.Spec.Template = *old })
	expect{report.BudgetTooWide, "", ""}.check(t, p.judge(t, ch))
}

func TestDeploymentsAndStatefulSets(t *testing.T) {
	t.Parallel()
	zero, one, all := intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("100%")
	make := func(edit ...func(*appsv1.Deployment)) *appsv1.Deployment {
		replicas := int32(3)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "agent"}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: *agentSet().Spec.Template.DeepCopy()}}
		d.Spec.Template.Labels = map[string]string{"app": "web"}
		for _, e := range edit {
			e(d)
		}
		defaults.Deployment(&d.Spec)
		return d
	}
	rolling := func(unavailable, surge intstr.IntOrString) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}}
		}
	}
	port := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
	}
	for _, tt := range []struct {
		name  string
		setup func(*pad)
		edits []func(*appsv1.Deployment)
		want  expect
	}{
		{"nothing to say", nil, nil, expect{report.BudgetTooWide, "", ""}},
		{"all may go", nil, []func(*appsv1.Deployment){rolling(all, zero)}, expect{report.BudgetTooWide, report.Warning, "all 3 Pods"}},
		{"Recreate", nil, []func(*appsv1.Deployment){func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }}, expect{report.BudgetTooWide, report.Warning, "Recreate"}},
		{"each holds a port, and none may go", nil, []func(*appsv1.Deployment){port, rolling(zero, one)}, expect{report.HostPortBlocksSurge, report.Critical, "wait for ever"}},
		{"each holds a port, one may go", nil, []func(*appsv1.Deployment){port, rolling(one, one)}, expect{report.HostPortBlocksSurge, report.Warning, "no node left"}},
		{"no room for one more", func(p *pad) {
			for _, n := range p.Nodes {
				p.Pods = append(p.Pods, neighbour(n.Name, "3850m", "1Gi", 2_100_000_000, 0))
			}
		}, []func(*appsv1.Deployment){rolling(zero, one)}, expect{report.InsufficientHeadroom, report.Critical, "wait for ever"}},
		{"room on one node", func(p *pad) { p.Pods = append(p.Pods, neighbour("worker-01", "3850m", "1Gi", 2_100_000_000, 0)) }, []func(*appsv1.Deployment){rolling(zero, one)}, expect{report.InsufficientHeadroom, "", ""}},
		{"room on a cordoned node only", func(p *pad) {
			for _, n := range p.Nodes[1:] {
				p.Pods = append(p.Pods, neighbour(n.Name, "3850m", "1Gi", 2_100_000_000, 0))
			}
			p.Nodes[0].Spec.Unschedulable = true
		}, []func(*appsv1.Deployment){rolling(zero, one)}, expect{report.InsufficientHeadroom, report.Critical, ""}},
		{"no priority class is usual", nil, []func(*appsv1.Deployment){func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "" }}, expect{report.NoPriorityClass, "", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(3)
			if tt.setup != nil {
				tt.setup(p)
			}
			ch := probes.Change{Target: report.WorkloadKey{Kind: "Deployment", Namespace: "logging", Name: "agent"}, FailOn: report.Critical, New: make(tt.edits...), Origin: "new.yaml:1", APIVersion: "apps/v1"}
			tt.want.check(t, p.judge(t, ch))
		})
	}
	p := newPad(3)
	replicas := int32(200)
	sts := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "store"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}}, Template: *agentSet().Spec.Template.DeepCopy()}}
	sts.Spec.Template.Labels = map[string]string{"app": "store"}
	defaults.StatefulSet(&sts.Spec)
	r := p.judge(t, probes.Change{Target: report.WorkloadKey{Kind: "StatefulSet", Namespace: "logging", Name: "store"}, FailOn: report.Critical, New: sts, Origin: "new.yaml:1", APIVersion: "apps/v1"})
	expect{report.UpdateTakesLong, report.Warning, "200 rounds"}.check(t, r)
}

func TestAPreflightIsTheSameTwice(t *testing.T) {
	t.Parallel()
	look := func() string {
		p := newPad(30)
		for i, n := range p.Nodes {
			n.Spec.Taints = []corev1.Taint{{Key: fmt.Sprintf("k%d", i%7), Effect: corev1.TaintEffectNoSchedule}}
		}
		p.live.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		r := p.judge(t, p.revised(func(ds *appsv1.DaemonSet) {
			ds.Spec.Template.Spec.Tolerations = nil
			ds.Spec.Template.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
		}))
		return fmt.Sprintf("%+v", r.Workloads[0].Findings)
	}
	first := look()
	for range 5 {
		if look() != first {
			t.Fatal("two runs on one input differ")
		}
	}
}
