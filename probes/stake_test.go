package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stakeNow is when the clusters of these tests are looked at.
var stakeNow = time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(stakeNow.Add(-d)) }

// stakes is a cluster being made: some nodes, what runs on them, and what fails.
type stakes struct {
	cluster.Objects
	cluster.Meta
}

// newStakes makes control-1 to control-3 and worker-1 to worker-6 in two zones, all
// Ready, of which everything was read.
func newStakes() *stakes {
	s := &stakes{Meta: cluster.Meta{AsOf: stakeNow, AllLeases: true, PodScope: cluster.PodScope{All: true}, Source: cluster.Source{Type: "files", Version: "v1.37.2"}}}
	for i := range 3 {
		s.node(fmt.Sprintf("control-%d", i+1), i).Labels["node-role.kubernetes.io/control-plane"] = ""
	}
	for i := range 6 {
		s.node(fmt.Sprintf("worker-%d", i+1), i)
	}
	s.lease(cluster.ControlPlaneNamespace, "kube-controller-manager", 15, time.Second)
	s.lease(cluster.ControlPlaneNamespace, "kube-scheduler", 15, 2*time.Second)
	return s
}

func (s *stakes) node(name string, i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(1000 * time.Hour), Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprint("z", i%2)}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: name, KubeletVersion: "v1.37.2"},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.2.%d", len(s.Nodes)+10)}, {Type: corev1.NodeHostName, Address: name}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(999 * time.Hour)}}}}
	s.Nodes = append(s.Nodes, n)
	s.lease(cluster.NodeLeaseNamespace, name, 40, 3*time.Second)
	return n
}

func (s *stakes) lease(namespace, name string, seconds int32, age time.Duration) {
	at, who := metav1.NewMicroTime(stakeNow.Add(-age)), name+"_1"
	for _, l := range s.Leases {
		if l.Namespace == namespace && l.Name == name {
			l.Spec.RenewTime = &at
			return
		}
	}
	s.Leases = append(s.Leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &who, LeaseDurationSeconds: &seconds, RenewTime: &at}})
}

// fell makes a node fail since then: Ready=False, or Unknown and silent, with both
// taints unless it is only seconds old.
func (s *stakes) fell(name string, status corev1.ConditionStatus, since time.Duration, taint bool) *corev1.Node {
	for _, n := range s.Nodes {
		if n.Name != name {
			continue
		}
		at, key, reason := ago(since), corev1.TaintNodeNotReady, "KubeletNotReady"
		if status == corev1.ConditionUnknown {
			key, reason = corev1.TaintNodeUnreachable, "NodeStatusUnknown"
			s.lease(cluster.NodeLeaseNamespace, name, 40, since+50*time.Second)
		}
		n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: reason, LastTransitionTime: at}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
		if taint {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at})
		}
		return n
	}
	panic("no node " + name)
}

// pod runs a Pod of a Deployment on a node; it tolerates what admission adds.
func (s *stakes) pod(namespace, app, node string) *corev1.Pod {
	yes, seconds := true, int64(300)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-7d9f-%d", app, len(s.Pods)), UID: types.UID(fmt.Sprintf("%s-%d", app, len(s.Pods))), CreationTimestamp: ago(100 * time.Hour),
		Labels:          map[string]string{"app": app, appsv1.DefaultDeploymentUniqueLabelKey: "7d9f"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9f", UID: types.UID("rs-" + namespace + app), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node, Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(99 * time.Hour)}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(99 * time.Hour)}}}}
	s.Pods = append(s.Pods, p)
	return p
}

// unready marks a Pod as the node controller does, or as a kubelet whose probe fails.
func unready(p *corev1.Pod, since time.Duration, containers bool) {
	p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, ago(since)
	if containers {
		p.Status.Conditions[1].Status, p.Status.Conditions[1].LastTransitionTime = corev1.ConditionFalse, ago(since)
	}
}

func (s *stakes) report() *report.Report {
	return probes.Diagnose(cluster.New(s.Objects, s.Meta), probes.Options{}).Report
}

// findings are the cluster's findings of a code.
func findings(r *report.Report, code report.Code) []report.Finding {
	var out []report.Finding
	for _, f := range r.ClusterFindings {
		if f.Code == code {
			out = append(out, f)
		}
	}
	return out
}

// says joins all that a report says of a topic.
func says(r *report.Report, t report.StakeTopic) string {
	var out []string
	for _, l := range r.AtStake {
		if l.Topic == t {
			out = append(out, l.State.Mark()+" "+string(l.Text))
		}
	}
	return strings.Join(out, "\n")
}

func mustSay(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q lacks %q", text, w)
		}
	}
}

func mustNotFind(t *testing.T, r *report.Report, codes ...report.Code) {
	t.Helper()
	for _, code := range codes {
		if f := findings(r, code); len(f) > 0 {
			t.Errorf("%s: %s", code, f[0].Summary)
		}
	}
}

func TestNothingIsAtStakeInAQuietCluster(t *testing.T) {
	t.Parallel()
	r := newStakes().report()
	if len(r.AtStake) != 0 || len(r.ClusterFindings) != 0 {
		t.Errorf("at stake %v, findings %v", r.AtStake, r.ClusterFindings)
	}
}

func TestComponentsAreDownByTheirOwnLeasesOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(s *stakes)
		down      bool
		scheduler bool
	}{
		"both renew":                     {func(*stakes) {}, false, false},
		"a late renewal":                 {func(s *stakes) { s.lease("kube-system", "kube-controller-manager", 15, 50*time.Second) }, false, false},
		"the controller manager stopped": {func(s *stakes) { s.lease("kube-system", "kube-controller-manager", 15, 3*time.Minute) }, true, false},
		"the scheduler stopped":          {func(s *stakes) { s.lease("kube-system", "kube-scheduler", 15, 3*time.Minute) }, false, true},
		"no Lease at all":                {func(s *stakes) { s.Leases = s.Leases[2:] }, false, false},
		"longer terms, as some distributions set": {func(s *stakes) {
			s.Leases = s.Leases[:len(s.Leases)-2]
			s.lease("kube-system", "kube-controller-manager", 137, 2*time.Minute)
		}, false, false},
		"Leases read minutes before the rest": {func(s *stakes) {
			s.lease("kube-system", "kube-controller-manager", 15, 301*time.Second)
			s.lease("kube-system", "kube-scheduler", 15, 302*time.Second)
			for _, n := range s.Nodes {
				s.lease("kube-node-lease", n.Name, 40, 303*time.Second)
			}
		}, false, false},
		"only the Leases of kube-system, read before the rest": {func(s *stakes) {
			s.Leases, s.AllLeases = nil, false
			s.lease("kube-system", "kube-controller-manager", 15, 301*time.Second)
			s.lease("kube-system", "kube-scheduler", 15, 302*time.Second)
		}, false, false},
		"a relic, and its owner at work": {func(s *stakes) {
			s.lease("kube-system", "kube-controller-manager", 15, 900*time.Hour)
			at := ago(time.Minute)
			s.Nodes[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: &at}}
		}, false, false},
		"its clock is behind, and the API server's write is fresh": {func(s *stakes) {
			s.lease("kube-system", "kube-controller-manager", 15, 5*time.Minute)
			at := ago(2 * time.Second)
			for _, l := range s.Leases {
				if l.Name == "kube-controller-manager" {
					l.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`)}}
				}
			}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			c.change(s)
			r := s.report()
			if got := len(findings(r, report.ControllerManagerDown)) > 0; got != c.down {
				t.Errorf("ControllerManagerDown is %v", got)
			}
			if got := len(findings(r, report.SchedulerDown)) > 0; got != c.scheduler {
				t.Errorf("SchedulerDown is %v", got)
			}
		})
	}
}

func TestQuorumIsCountedWhereEtcdRuns(t *testing.T) {
	t.Parallel()
	etcd := func(s *stakes, nodes ...string) {
		for _, n := range nodes {
			p := s.pod("kube-system", "etcd", n)
			p.Labels, p.OwnerReferences = map[string]string{"component": "etcd", "tier": "control-plane"}, nil
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}
	}
	for name, c := range map[string]struct {
		change func(s *stakes)
		found  bool
		want   []string
	}{
		"workers alone fail": {func(s *stakes) { s.fell("worker-1", "False", time.Minute, true) }, false, []string{"control plane: 3 of 3 nodes Ready"}},
		"one of three is silent": {func(s *stakes) {
			etcd(s, "control-1", "control-2", "control-3")
			s.fell("control-2", "Unknown", time.Minute, true)
		}, true, []string{"1 of 3 control-plane nodes fails: control-2", "1 of 3 etcd members runs on them: etcd keeps its quorum and can lose no further member"}},
		"two are silent": {func(s *stakes) {
			etcd(s, "control-1", "control-2", "control-3")
			s.fell("control-2", "Unknown", time.Minute, true)
			s.fell("control-3", "Unknown", time.Minute, true)
		}, true, []string{"2 of 3 etcd members run on nodes that do not answer: if they are down, etcd has lost its quorum"}},
		"two say False, their kubelets are alive": {func(s *stakes) {
			etcd(s, "control-1", "control-2", "control-3")
			s.fell("control-2", "False", time.Minute, true)
			s.fell("control-3", "False", time.Minute, true)
		}, true, []string{"their kubelets are alive: should those nodes be lost for good, etcd has no quorum"}},
		"etcd is elsewhere": {func(s *stakes) { s.fell("control-2", "Unknown", time.Minute, true) }, true, []string{"where etcd runs is not known"}},
		"its Pods were not read": {func(s *stakes) {
			s.PodScope = cluster.PodScope{}
			s.fell("control-2", "Unknown", time.Minute, true)
			s.fell("control-1", "Unknown", time.Minute, true)
		}, true, []string{"if etcd runs on them and they are down, it has lost its quorum", "where etcd runs was not read"}},
		"etcd on nodes of its own": {func(s *stakes) {
			for _, n := range s.Nodes {
				delete(n.Labels, "node-role.kubernetes.io/control-plane")
			}
			for _, n := range s.Nodes[6:] {
				n.Labels["node-role.kubernetes.io/etcd"] = "true"
			}
			s.fell(s.Nodes[7].Name, "Unknown", time.Minute, true)
		}, true, []string{"1 of 3 etcd members runs on them"}},
		"a managed control plane": {func(s *stakes) {
			s.Nodes = s.Nodes[3:]
			s.fell("worker-1", "Unknown", time.Minute, true)
		}, false, []string{"no node has its label"}},
		"one is taken away on purpose": {func(s *stakes) {
			n := s.fell("control-2", "Unknown", time.Minute, true)
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule})
			s.fell("worker-1", "False", time.Minute, true)
		}, false, nil},
		"one is down for days, a worker fell now": {func(s *stakes) {
			etcd(s, "control-1", "control-2", "control-3")
			s.fell("control-2", "Unknown", 80*time.Hour, true)
			s.fell("worker-1", "False", time.Minute, true)
		}, true, []string{"control-2 (down for 3d)", "can lose no further member"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			c.change(s)
			r := s.report()
			f := findings(r, report.ControlPlaneAtRisk)
			if (len(f) > 0) != c.found {
				t.Fatalf("ControlPlaneAtRisk: %v", f)
			}
			mustSay(t, says(r, report.StakeControlPlane), c.want...)
			if c.found && (len(f[0].Evidence) == 0 || f[0].Severity != report.Critical) {
				t.Errorf("%+v", f[0])
			}
		})
	}
}
