package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func incident() (*cluster.Snapshot, *report.Report) {
	yes := true
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "calico-node", UID: "ds", Labels: map[string]string{"app.kubernetes.io/instance": "calico",
			"kustomize.toolkit.fluxcd.io/name": "net", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "network:apps/DaemonSet:kube-system/calico-node", "meta.helm.sh/release-name": "calico-rel"}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "calico-node"}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "upgrade-ipam"}, {Name: "install-cni"}},
				Containers:     []corev1.Container{{Name: "calico-node"}, {Name: "metrics"}},
			}},
		},
	}
	pod := func(name string, created time.Time) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, CreationTimestamp: metav1.NewTime(created),
				OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "calico-node", UID: "ds", Controller: &yes}}},
			Spec: corev1.PodSpec{NodeName: "node-1", InitContainers: ds.Spec.Template.Spec.InitContainers, Containers: ds.Spec.Template.Spec.Containers},
			Status: corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{
					{Name: "upgrade-ipam", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
					{Name: "install-cni", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
				},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "calico-node", Ready: true}, {Name: "metrics"}},
			},
		}
	}
	s := cluster.New(cluster.Objects{
		DaemonSets: []*appsv1.DaemonSet{ds},
		Nodes:      []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}},
		Pods:       []*corev1.Pod{pod("calico-node-old", epoch), pod("calico-node-new", epoch.Add(time.Minute))},
	}, cluster.Meta{AsOf: epoch.Add(time.Hour), PodScope: cluster.PodScope{All: true}})
	rev, good := int64(7), int64(6)
	r := &report.Report{
		Source: report.Source{Server: "https://[2001:db8::1]:6443"},
		Nodes:  report.NodeCounts{Total: 12, Ready: 8, NotReady: 3, Unknown: 1},
		Workloads: []report.Workload{{
			Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node",
			Rollout: report.Rollout{Revision: &rev, KnownGoodRevision: &good, MaxUnavailable: "25%", MaxUnavailableResolved: 3, StartedAt: report.At(epoch),
				State: report.Stuck, Strategy: "RollingUpdate", Spreading: true, Mode: "B", NotYetReached: 4, MayStillFall: 2},
			Verdict:        report.Verdict{Attribution: report.RolloutBreaksNodes},
			Findings:       []report.Finding{{Code: report.RolloutStuck}, {Code: report.RolloutSpreading}, {Code: report.RolloutStuck}},
			Recommendation: report.Recommendation{Reachable: []report.Text{"node-1"}, Unreachable: []report.Text{"node-3", "node-4"}},
		}},
	}
	return s, r
}

func TestValuesNameTheIncident(t *testing.T) {
	t.Parallel()
	s, r := incident()
	want := Values{
		Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node", Selector: "k8s-app=calico-node",
		Node: "node-1", LostNode: "node-3", Pod: "calico-node-new", Container: "metrics", InitContainer: "install-cni",
		Revision: "7", KnownGood: "6", APIHost: "2001:db8::1", APIAddress: "[2001:db8::1]:6443", Since: "2026-07-03 02:09:00 UTC",
		Release: "calico",
		Budget:  `"25%"`, WiderBudget: "5",
	}
	if diff := cmp.Diff(want, ValuesOf(s, r, target)); diff != "" {
		t.Error(diff)
	}
}

func TestValuesStayEmptyWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	want := Values{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}
	if diff := cmp.Diff(want, ValuesOf(cluster.New(cluster.Objects{}, cluster.Meta{}), &report.Report{}, target)); diff != "" {
		t.Error(diff)
	}
}

func TestThePodAndNodeAreThoseThatAFindingNames(t *testing.T) {
	t.Parallel()
	s, r := incident()
	r.Workloads[0].Findings = append(r.Workloads[0].Findings, report.Finding{Code: report.InitContainerFailed, Node: "node-9", Object: report.Object{Kind: "Pod", Name: "calico-node-x"}})
	if v := ValuesOf(s, r, target); v.Pod != "calico-node-x" || v.Node != "node-9" || v.InitContainer != "upgrade-ipam" {
		t.Errorf("got Pod %q on %q, init container %q", v.Pod, v.Node, v.InitContainer)
	}
}

func TestWithNothingReachableTheNodeIsALostOne(t *testing.T) {
	t.Parallel()
	s, r := incident()
	r.Workloads[0].Recommendation.Reachable = nil
	if v := ValuesOf(s, r, target); v.Node != "node-3" {
		t.Errorf("got %q", v.Node)
	}
}

func TestTheBudgetIsALeverOnlyForDaemonSetsWithoutSurge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change        func(*report.Workload)
		budget, wider string
	}{
		"a number":              {func(w *report.Workload) { w.Rollout.MaxUnavailable, w.Rollout.MaxUnavailableResolved = "1", 1 }, "1", "3"},
		"nothing unreachable":   {func(w *report.Workload) { w.Recommendation.Unreachable = nil }, `"25%"`, ""},
		"surge":                 {func(w *report.Workload) { w.Rollout.MaxSurgeResolved = 1 }, "", ""},
		"a Deployment":          {func(w *report.Workload) { w.Kind = "Deployment" }, "", ""},
		"no budget in strategy": {func(w *report.Workload) { w.Rollout.MaxUnavailable = "" }, "", ""},
	} {
		_, r := incident()
		c.change(&r.Workloads[0])
		if b, w := budgets(&r.Workloads[0]); b != c.budget || w != c.wider {
			t.Errorf("%s: got %q, %q", name, b, w)
		}
	}
}

func TestTheAddressIsTheOneThatThisProgramUses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, apiHost, host, address string }{
		{"https://10.0.0.1:6443", "", "10.0.0.1", "10.0.0.1:6443"},
		{"https://api.example.com", "", "api.example.com", "api.example.com:443"},
		{"http://localhost", "", "localhost", "localhost:80"},
		{"10.0.0.1:6443", "", "10.0.0.1", "10.0.0.1:6443"},
		{"https://10.0.0.1:6443", "10.0.0.9", "10.0.0.9", "10.0.0.9:6443"},
		{"https://10.0.0.1:6443", "10.0.0.9:8443", "10.0.0.9", "10.0.0.9:8443"},
		{"", "", "", ""},
	} {
		h, a := address(cluster.New(cluster.Objects{}, cluster.Meta{APIHost: c.apiHost}), &report.Report{Source: report.Source{Server: report.Text(c.server)}})
		if h != c.host || a != c.address {
			t.Errorf("%s, %s: got %s, %s", c.server, c.apiHost, h, a)
		}
	}
}

func TestFactsComeFromTheWorkloadAndItsCluster(t *testing.T) {
	t.Parallel()
	_, r := incident()
	f := FactsOf(r, target)
	good := int64(6)
	want := Facts{Kind: "DaemonSet", Verdict: report.Verdict{Attribution: report.RolloutBreaksNodes}, Rollout: report.Stuck, Strategy: "RollingUpdate",
		Spreading: true, Mode: "B", KnownGood: &good, Codes: []report.Code{report.RolloutSpreading, report.RolloutStuck},
		Reachable: 1, Unreachable: 2, NodesDown: 4, NodesTotal: 12, NotYetReached: 4, MayStillFall: 2}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	other := report.WorkloadKey{Kind: "DaemonSet", Namespace: "logging", Name: "quiet"}
	if diff := cmp.Diff(Facts{Kind: "DaemonSet", NodesDown: 4, NodesTotal: 12}, FactsOf(r, other)); diff != "" {
		t.Error(diff)
	}
}
