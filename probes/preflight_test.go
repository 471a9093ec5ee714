package probes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/defaults"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// pad is a cluster that a rollout is planned on: nodes, one DaemonSet "agent" with a
// Ready Pod on each of them, and whatever a test adds.
type pad struct {
	cluster.Objects
	asOf    time.Time
	notRead []cluster.NotRead
	live    *appsv1.DaemonSet
}

var padTime = time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)

// newPad makes n nodes with 4 cores and 8 GiB and a careful log agent on each.
func newPad(n int) *pad {
	p := &pad{asOf: padTime}
	for i := range n {
		p.Nodes = append(p.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%02d", i+1), Labels: map[string]string{"kubernetes.io/os": "linux", "pool": "a"}, CreationTimestamp: metav1.NewTime(padTime.Add(-300 * time.Hour))},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(padTime.Add(-299 * time.Hour))}},
			}})
	}
	p.live = agentSet()
	p.live.UID, p.live.Generation = "uid-agent", 1
	p.live.CreationTimestamp = metav1.NewTime(padTime.Add(-200 * time.Hour))
	count := int32(n)
	p.live.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: count, CurrentNumberScheduled: count, UpdatedNumberScheduled: count, NumberReady: count, NumberAvailable: count}
	p.DaemonSets = []*appsv1.DaemonSet{p.live}
	raw, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": p.live.Spec.Template}})
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "uid-agent", Controller: &yes}}
	p.ControllerRevisions = []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "agent-one", UID: "uid-one", OwnerReferences: owner,
		Labels: map[string]string{cluster.RevisionHash: "one"}, CreationTimestamp: p.live.CreationTimestamp}, Revision: 1}}
	p.ControllerRevisions[0].Data.Raw = raw
	for _, node := range p.Nodes {
		p.Pods = append(p.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "agent-" + node.Name, UID: types.UID("pod-" + node.Name), OwnerReferences: owner,
				Labels: map[string]string{"app": "agent", cluster.RevisionHash: "one"}, CreationTimestamp: metav1.NewTime(padTime.Add(-20 * time.Minute))},
			Spec: *agentSpec(node.Name),
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(padTime.Add(-20*time.Minute + 10*time.Second))},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
		})
	}
	return p
}

func agentSpec(node string) *corev1.PodSpec {
	s := agentSet().Spec.Template.Spec
	priority := int32(2_000_000_000)
	s.NodeName, s.Priority = node, &priority
	return &s
}

// agentSet is a DaemonSet of which there is nothing to say.
func agentSet() *appsv1.DaemonSet {
	one := intstr.FromInt32(1)
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector:        &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			MinReadySeconds: 10,
			UpdateStrategy:  appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec: corev1.PodSpec{
					PriorityClassName: "system-cluster-critical",
					Containers: []corev1.Container{{Name: "agent", Image: "registry.example/agent:v1",
						Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("100Mi")}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}}},
				},
			},
		},
	}
	defaults.DaemonSet(&ds.Spec)
	return ds
}

// networkAgent makes it one that can take its node down.
func networkAgent(ds *appsv1.DaemonSet) {
	ds.Spec.Template.Spec.HostNetwork = true
	ds.Spec.Template.Spec.Volumes = append(ds.Spec.Template.Spec.Volumes, hostPath("cni", "/etc/cni/net.d"))
	ct := &ds.Spec.Template.Spec.Containers[0]
	ct.VolumeMounts = append(ct.VolumeMounts, corev1.VolumeMount{Name: "cni", MountPath: "/host/cni"})
}

func hostPath(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}

// revised is a new template with a new image, and what a test changes.
func (p *pad) revised(edit ...func(*appsv1.DaemonSet)) probes.Change {
	ds := p.live.DeepCopy()
	ds.UID, ds.Status = "", appsv1.DaemonSetStatus{}
	ds.Spec.Template.Spec.Containers[0].Image = "registry.example/agent:v2"
	for _, e := range edit {
		e(ds)
	}
	defaults.DaemonSet(&ds.Spec)
	ch := agentChange()
	ch.New, ch.Origin, ch.APIVersion = ds, "new.yaml:1", "apps/v1"
	return ch
}

func agentChange() probes.Change {
	return probes.Change{Target: report.WorkloadKey{Kind: "DaemonSet", Namespace: "logging", Name: "agent"}, FailOn: report.Critical}
}

func (p *pad) snapshot() *cluster.Snapshot {
	return cluster.New(p.Objects, cluster.Meta{AsOf: p.asOf, Source: cluster.Source{Type: "files"}, NotRead: p.notRead, PodScope: cluster.PodScope{All: true}})
}

func (p *pad) judge(t *testing.T, ch probes.Change) *report.Report {
	t.Helper()
	r, err := probes.Preflight(p.snapshot(), ch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found is the first finding of a code, nil without one.
func found(r *report.Report, code report.Code) *report.Finding {
	for _, list := range [][]report.Finding{r.Workloads[0].Findings, r.ClusterFindings} {
		for i := range list {
			if list[i].Code == code {
				return &list[i]
			}
		}
	}
	return nil
}

func codes(r *report.Report) []string {
	var out []string
	for _, f := range slices.Concat(r.Workloads[0].Findings, r.ClusterFindings) {
		out = append(out, fmt.Sprintf("%s %s", f.Severity, f.Code))
	}
	return out
}

func TestACarefulWorkloadPassesWithNothingToSay(t *testing.T) {
	t.Parallel()
	p := newPad(6)
	for name, ch := range map[string]probes.Change{"live": agentChange(), "new image": p.revised()} {
		r := p.judge(t, ch)
		if got := codes(r); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if f := r.Workloads[0].Preflight; !f.Pass || f.Nodes != 6 || f.Requests != "cpu 100m, memory 100Mi" || f.TotalRequests != "cpu 600m, memory 600Mi" || f.QoSClass != "Burstable" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if r := p.judge(t, p.revised()); len(r.Workloads[0].Preflight.Changes) != 2 || r.Verdict.Attribution != report.Healthy {
		t.Errorf("changes %q, verdict %s", r.Workloads[0].Preflight.Changes, r.Verdict.Attribution)
	}
}

// settings are the rules that look at the template and the strategy: each edit brings
// one code out, and its counterpart does not.
func TestRisksOfSettings(t *testing.T) {
	t.Parallel()
	spec := func(ds *appsv1.DaemonSet) *corev1.PodSpec { return &ds.Spec.Template.Spec }
	budget := func(unavailable, surge string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			u, s := intstr.Parse(unavailable), intstr.Parse(surge)
			ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &u, MaxSurge: &s}
		}
	}
	onDelete := func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	}
	seconds := func(n int32) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = n }
	}
	noProbe := func(ds *appsv1.DaemonSet) { spec(ds).Containers[0].ReadinessProbe = nil }
	mounted := func(path string, readOnly bool) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) {
			spec(ds).Volumes = append(spec(ds).Volumes, hostPath("host", path))
			ct := &spec(ds).Containers[0]
			ct.VolumeMounts = append(ct.VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/host", ReadOnly: readOnly})
		}
	}
	port := func(ds *appsv1.DaemonSet) {
		spec(ds).Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100, HostPort: 9100, Protocol: corev1.ProtocolTCP}}
	}
	image := func(s string) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { spec(ds).Containers[0].Image = s }
	}
	grace := func(n int64) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { spec(ds).TerminationGracePeriodSeconds = &n }
	}
	history := func(n int32) func(*appsv1.DaemonSet) {
		return func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = &n }
	}
	type edits []func(*appsv1.DaemonSet)
	for _, tt := range []struct {
		name  string
		nodes int
		edits edits
		code  report.Code
		want  report.Severity // "" where it must not be there
	}{
		{"a network agent updates by itself", 12, edits{networkAgent}, report.CriticalDaemonSetAutoUpdates, report.Warning},
		{"it waits for somebody", 12, edits{networkAgent, onDelete}, report.CriticalDaemonSetAutoUpdates, ""},
		{"it soaks long enough", 12, edits{networkAgent, seconds(120)}, report.CriticalDaemonSetAutoUpdates, ""},
		{"it soaks, and no probe tells", 12, edits{networkAgent, seconds(120), noProbe}, report.CriticalDaemonSetAutoUpdates, report.Warning},
		{"a log agent updates by itself", 12, nil, report.CriticalDaemonSetAutoUpdates, ""},
		{"an exporter on the host's network that reads the root", 12, edits{func(ds *appsv1.DaemonSet) { spec(ds).HostNetwork, spec(ds).HostPID = true, true }, mounted("/", true)}, report.CriticalDaemonSetAutoUpdates, ""},
		{"the root can be written", 12, edits{mounted("/", false)}, report.CriticalDaemonSetAutoUpdates, report.Warning},

		{"25 % of 12 for a network agent", 12, edits{networkAgent, budget("25%", "0")}, report.BudgetTooWide, report.Warning},
		{"25 % of 12 for a log agent", 12, edits{budget("25%", "0")}, report.BudgetTooWide, ""},
		{"half of 12 for a log agent", 12, edits{budget("50%", "0")}, report.BudgetTooWide, report.Warning},
		{"all of them", 12, edits{networkAgent, budget("100%", "0")}, report.BudgetTooWide, report.Critical},
		{"1 % of 12 is one node", 12, edits{networkAgent, budget("1%", "0")}, report.BudgetTooWide, ""},
		{"all with surge", 12, edits{networkAgent, budget("0", "100%")}, report.BudgetTooWide, report.Warning},
		{"4 of 200", 200, edits{networkAgent, budget("2%", "0")}, report.BudgetTooWide, ""},

		{"no probe", 6, edits{noProbe}, report.NoReadinessProbe, report.Warning},
		{"a probe on another container", 6, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Containers = append(spec(ds).Containers, corev1.Container{Name: "side", Image: "registry.example/side:v1"})
		}}, report.NoReadinessProbe, ""},

		{"a network agent soaks 10 s", 12, edits{networkAgent}, report.NoMinReadySeconds, report.Warning},
		{"a network agent soaks 110 s", 12, edits{networkAgent, seconds(110)}, report.NoMinReadySeconds, ""},
		{"a network agent on OnDelete", 12, edits{networkAgent, onDelete}, report.NoMinReadySeconds, ""},
		{"a log agent without any brake", 12, edits{seconds(0), noProbe}, report.NoMinReadySeconds, report.Warning},
		{"a log agent with a probe", 12, edits{seconds(0)}, report.NoMinReadySeconds, ""},

		{"no priority", 6, edits{func(ds *appsv1.DaemonSet) { spec(ds).PriorityClassName = "" }}, report.NoPriorityClass, report.Warning},
		{"no requests", 6, edits{func(ds *appsv1.DaemonSet) { spec(ds).Containers[0].Resources = corev1.ResourceRequirements{} }}, report.NoResourceRequests, report.Warning},
		{"limits stand for requests", 6, edits{func(ds *appsv1.DaemonSet) {
			r := &spec(ds).Containers[0].Resources
			r.Limits, r.Requests = r.Requests, nil
		}}, report.NoResourceRequests, ""},
		{"no memory request", 6, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1m")}
		}}, report.NoResourceRequests, report.Warning},

		{"tolerates everything", 6, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}}, report.ToleratesEverything, report.Warning},
		{"tolerates one key", 6, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}}, report.ToleratesEverything, ""},

		{"writes /etc", 6, edits{mounted("/etc/", false)}, report.BroadHostPath, report.Warning},
		{"reads /var/log", 6, edits{mounted("/var/log", true)}, report.BroadHostPath, report.Info},
		{"has the runtime's socket, to read", 6, edits{mounted("/run/containerd/containerd.sock", true)}, report.BroadHostPath, report.Warning},
		{"has a folder of its own", 6, edits{mounted("/var/lib/agent", false)}, report.BroadHostPath, ""},

		{"privileged", 6, edits{func(ds *appsv1.DaemonSet) {
			yes := true
			spec(ds).InitContainers = []corev1.Container{{Name: "install", Image: "registry.example/install:v1", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}}
		}}, report.PrivilegedContainer, report.Warning},
		{"a capability is not all", 6, edits{func(ds *appsv1.DaemonSet) {
			spec(ds).Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}
		}}, report.PrivilegedContainer, ""},

		{"surge with a new host port", 6, edits{budget("0", "1"), port}, report.HostPortBlocksSurge, report.Warning},
		{"no surge with a host port", 6, edits{port}, report.HostPortBlocksSurge, ""},

		{"killed at once", 6, edits{grace(0)}, report.ShortGracePeriod, report.Warning},
		{"five seconds", 6, edits{grace(5)}, report.ShortGracePeriod, report.Warning},
		{"the default", 6, edits{grace(30)}, report.ShortGracePeriod, ""},
		{"sleeps longer than it lives", 6, edits{grace(20), func(ds *appsv1.DaemonSet) {
			spec(ds).Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 25}}}
		}}, report.ShortGracePeriod, report.Warning},

		{"no history", 6, edits{history(0)}, report.NoRevisionHistory, report.Warning},
		{"one old revision", 6, edits{history(1)}, report.NoRevisionHistory, report.Warning},
		{"two", 6, edits{history(2)}, report.NoRevisionHistory, ""},

		{"latest", 6, edits{image("registry.example/agent:latest")}, report.MutableImageTag, report.Warning},
		{"no tag, a registry with a port", 6, edits{image("registry.example:5000/agent")}, report.MutableImageTag, report.Warning},
		{"a digest wins", 6, edits{image("registry.example/agent:latest@sha256:" + strings.Repeat("a", 64))}, report.MutableImageTag, ""},
		{"a version", 6, edits{image("registry.example:5000/agent:v3")}, report.MutableImageTag, ""},

		{"600 nodes one by one", 600, nil, report.UpdateTakesLong, report.Warning},
		{"600 nodes, 10 % at a time", 600, edits{budget("10%", "0")}, report.UpdateTakesLong, ""},
		{"600 nodes by hand", 600, edits{onDelete}, report.UpdateTakesLong, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(tt.nodes)
			r := p.judge(t, p.revised(tt.edits...))
			f := found(r, tt.code)
			switch {
			case f == nil && tt.want != "":
				t.Errorf("%s is not found; there is %v", tt.code, codes(r))
			case f != nil && f.Severity != tt.want:
				t.Errorf("%s is %s, want %q: %s", tt.code, f.Severity, tt.want, f.Summary)
			case f != nil && (len(f.Evidence) == 0 || f.Summary == ""):
				t.Errorf("%s carries no evidence: %+v", tt.code, f)
			}
		})
	}
}

func TestAGlobalDefaultPriorityClassIsAPriority(t *testing.T) {
	t.Parallel()
	p := newPad(3)
	p.PriorityClasses = []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 100, GlobalDefault: true}}
	ch := p.revised(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.PriorityClassName = "" })
	if f := found(p.judge(t, ch), report.NoPriorityClass); f != nil {
		t.Errorf("%s", f.Summary)
	}
}

func TestACanaryDaemonSetIsAGuard(t *testing.T) {
	t.Parallel()
	for image, guarded := range map[string]bool{"registry.example/agent:v2": true, "registry.example/agent:v1": false, "registry.example/other:v2": false} {
		p := newPad(6)
		networkAgent(p.live)
		p.Nodes[0].Labels["pool"] = "canary"
		outside := func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"} }
		outside(p.live)
		canary := agentSet()
		networkAgent(canary)
		canary.Name, canary.UID = "agent-canary", "uid-canary"
		canary.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "canary"}
		canary.Spec.Template.Spec.Containers[0].Image = image
		p.DaemonSets = append(p.DaemonSets, canary)
		r := p.judge(t, p.revised())
		if f := found(r, report.CriticalDaemonSetAutoUpdates); (f == nil) != guarded {
			t.Errorf("canary with %s: %v", image, codes(r))
		}
	}
}

func TestThePreflightFailsFromItsThresholdOn(t *testing.T) {
	t.Parallel()
	p := newPad(6)
	for failOn, want := range map[report.Severity]bool{report.Critical: true, report.Warning: false, report.Info: false} {
		ch := p.revised(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].ReadinessProbe = nil })
		ch.FailOn = failOn
		r := p.judge(t, ch)
		if got := r.Workloads[0].Preflight.Pass; got != want {
			t.Errorf("--fail-on %s: pass is %v: %v", failOn, got, codes(r))
		}
	}
}

func TestAWorkloadThatDoesNotExistNeedsAManifest(t *testing.T) {
	t.Parallel()
	p := newPad(3)
	ch := agentChange()
	ch.Target.Name = "agnet"
	if _, err := probes.Preflight(p.snapshot(), ch); err == nil || !strings.Contains(err.Error(), "logging/agnet") {
		t.Errorf("error %v", err)
	}
	fresh := p.revised(func(ds *appsv1.DaemonSet) {
		ds.Name = "fresh"
		ds.Spec.Selector.MatchLabels = map[string]string{"app": "fresh"}
		ds.Spec.Template.Labels = map[string]string{"app": "fresh"}
	})
	fresh.Target.Name = "fresh"
	r := p.judge(t, fresh)
	if w := r.Workloads[0]; !w.Preflight.New || !w.Preflight.Pass || w.Preflight.Nodes != 3 || w.Name != "fresh" || len(w.Findings) > 0 {
		t.Errorf("%+v %v", w.Preflight, codes(r))
	}
}

func TestBudgetsOverDaemonPods(t *testing.T) {
	t.Parallel()
	percent, one := intstr.FromString("90%"), intstr.FromInt32(1)
	failed := policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: "found no controllers for pod \"agent-worker-01\"", LastTransitionTime: metav1.NewTime(padTime.Add(-time.Hour))}}}
	mine := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	for _, tt := range []struct {
		name     string
		spec     policyv1.PodDisruptionBudgetSpec
		status   policyv1.PodDisruptionBudgetStatus
		want     report.Severity // in a preflight
		outside  report.Severity // in a triage
		sayWords string
	}{
		{"a percentage that failed", policyv1.PodDisruptionBudgetSpec{MinAvailable: &percent, Selector: mine}, failed, report.Warning, report.Warning, "blocks drains"},
		{"a percentage, not judged yet", policyv1.PodDisruptionBudgetSpec{MinAvailable: &percent, Selector: mine}, policyv1.PodDisruptionBudgetStatus{}, report.Warning, "", "will be refused"},
		{"maxUnavailable", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: mine}, policyv1.PodDisruptionBudgetStatus{}, report.Warning, "", "maxUnavailable 1"},
		{"an integer", policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: mine}, policyv1.PodDisruptionBudgetStatus{}, report.Info, "", "evictions alone"},
		{"another's", policyv1.PodDisruptionBudgetSpec{MinAvailable: &percent, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}, failed, "", "", ""},
		{"nobody's", policyv1.PodDisruptionBudgetSpec{MinAvailable: &percent}, failed, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPad(4)
			p.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "logging", Name: "agent"}, Spec: tt.spec, Status: tt.status}}
			r := p.judge(t, p.revised())
			f := found(r, report.PDBDoesNotCoverDaemonSet)
			if f == nil != (tt.want == "") || f != nil && (f.Severity != tt.want || !strings.Contains(string(f.Summary), tt.sayWords)) {
				t.Errorf("preflight: %+v", f)
			}
			triage := probes.Diagnose(p.snapshot(), probes.Options{All: true}).Report
			f = found(triage, report.PDBDoesNotCoverDaemonSet)
			if f == nil != (tt.outside == "") || f != nil && f.Severity != tt.outside {
				t.Errorf("triage: %+v", f)
			}
		})
	}
}
