package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

var asOf = time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)

func past(d time.Duration) metav1.Time { return metav1.NewTime(asOf.Add(-d)) }

// site is a small cluster with one Deployment, of which one Pod has no node.
type site struct {
	cluster.Objects
	meta cluster.Meta
	pod  *corev1.Pod
}

// machine is a Ready node with 4 CPUs and 8 Gi.
func machine(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: past(900 * time.Hour), Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: past(900 * time.Hour)}}}}
	for _, f := range change {
		f(n)
	}
	return n
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)(n)
}

func silent(n *corev1.Node) {
	n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", past(time.Hour)
	tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)(n)
	tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)(n)
}

// waiting is a site whose Deployment shop/web wants one Pod more than it has, about
// which the scheduler said the message.
func waiting(message string, nodes ...*corev1.Node) *site {
	yes, one := true, int32(1)
	dep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 1, CreationTimestamp: past(time.Hour), Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", LastTransitionTime: past(50 * time.Minute)}}}}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "web-1", CreationTimestamp: past(time.Hour), Annotations: dep.Annotations,
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "web", Controller: &yes}}}, Spec: appsv1.ReplicaSetSpec{Replicas: &one}, Status: appsv1.ReplicaSetStatus{Replicas: 1}}
	p := resident("web-1-x", "", "web", rs.UID)
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: past(time.Hour)}}
	if message == "" {
		p.Status.Conditions = nil
	}
	return &site{Objects: cluster.Objects{Nodes: nodes, Deployments: []*appsv1.Deployment{dep}, ReplicaSets: []*appsv1.ReplicaSet{rs}, Pods: []*corev1.Pod{p}},
		meta: cluster.Meta{AsOf: asOf, Source: cluster.Source{Type: "cluster"}, PodScope: cluster.PodScope{All: true}}, pod: p}
}

// resident is a running Pod of a workload on a node, made an hour ago.
func resident(name, node, app string, owner types.UID) *corev1.Pod {
	yes := true
	kind, of := "ReplicaSet", string(owner)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: past(time.Hour), Labels: map[string]string{"app": app},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: of, UID: owner, Controller: &yes}}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: past(59 * time.Minute)}}}}
}

func asking(p *corev1.Pod, name corev1.ResourceName, q string) *corev1.Pod {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(q)}
	return p
}

func (s *site) diagnose() *report.Workload {
	r := probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{All: true}).Report
	return r.Workload(report.WorkloadKey{Kind: "Deployment", Namespace: "shop", Name: "web"})
}

// told is everything that the report says about the workload.
func told(w *report.Workload) string {
	return fmt.Sprintf("%+v", *w)
}

func TestOfSeveralReasonsTheOneThatWouldEndItIsTheRoot(t *testing.T) {
	t.Parallel()
	role := tainted("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule)
	for _, tt := range []struct {
		name    string
		message string
		nodes   []*corev1.Node
		change  func(*site)
		want    report.Code
		by      report.Attribution
		says    []string
	}{
		{"workers full beside a control plane that is out of bounds", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
			[]*corev1.Node{machine("cp", role), machine("w1"), machine("w2")}, func(s *site) {
				s.Pods = append(s.Pods, asking(resident("db", "w1", "db", "db"), corev1.ResourceCPU, "3900m"), asking(resident("db2", "w2", "db", "db"), corev1.ResourceCPU, "3500m"))
				asking(s.pod, corev1.ResourceCPU, "1")
			}, report.InsufficientResources, report.ClusterBlocksPods, []string{"cpu: 1 asked for, 500m of 4 free", "cpu: 1 asked for, 100m of 4 free", "every Pod there has an equal or a higher priority"}},
		{"a taint that the sentence does not name", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) had untolerated taint(s).",
			[]*corev1.Node{machine("cp", role), machine("w1", tainted("dedicated", corev1.TaintEffectNoSchedule)), machine("w2", tainted("dedicated", corev1.TaintEffectNoExecute))}, nil,
			report.UntoleratedTaint, report.ClusterBlocksPods, []string{"dedicated:NoSchedule on w1", "dedicated:NoExecute on w2"}},
		{"the selector rather than the control plane's taint", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector.",
			[]*corev1.Node{machine("cp", role), machine("w1", labelled("disk", "hdd")), machine("w2", labelled("disk", "hdd"))},
			func(s *site) { s.pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} }, report.NodeAffinityMismatch, report.ClusterBlocksPods, []string{"accepts 0 of 3 nodes; nodes have hdd"}},
		{"more nodes silent than short of room", "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
			[]*corev1.Node{machine("w1", silent), machine("w2", silent), machine("w3", silent), machine("w4")}, func(s *site) { asking(s.pod, corev1.ResourceCPU, "8") },
			report.NodeUnreachable, report.NodesFailIndependently, []string{"waits for nodes that fail"}},
		{"a cordon rather than a rule that keeps replicas apart", "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules.",
			[]*corev1.Node{machine("w1"), machine("w2"), machine("w3", cordoned)}, nil, report.NodesCordoned, report.ClusterBlocksPods, []string{"kubectl uncordon w3"}},
		{"room rather than a rule that keeps replicas apart", "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod anti-affinity rules.",
			[]*corev1.Node{machine("w1"), machine("w2"), machine("w3")}, nil, report.InsufficientResources, report.ClusterBlocksPods, nil},
		{"a claim that does not exist comes before every node", `0/2 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.`,
			[]*corev1.Node{machine("w1"), machine("w2", cordoned)}, nil, report.VolumeTopologyConflict, report.ClusterBlocksPods, []string{"kubectl -n shop get pvc data"}},
		{"a spread that no node keeps", "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.",
			[]*corev1.Node{machine("w1", labelled("zone", "a")), machine("w2", labelled("zone", "a")), machine("w3", labelled("zone", "b"))}, func(s *site) {
				s.pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
				s.Pods = append(s.Pods, resident("web-1-a", "w1", "web", "web-1"), resident("web-1-b", "w2", "web", "web-1"), resident("other", "w3", "db", "db"))
			}, report.PodSpreadConflict, report.ClusterBlocksPods, []string{"a 2, b 0"}},
		{"preemption that its class forbids", "0/1 nodes are available: 1 Insufficient memory. preemption: not eligible due to preemptionPolicy=Never.",
			[]*corev1.Node{machine("w1")}, func(s *site) {
				never := corev1.PreemptNever
				asking(s.pod, corev1.ResourceMemory, "9Gi").Spec.PreemptionPolicy = &never
			}, report.InsufficientResources, report.ClusterBlocksPods, []string{"no Pod makes way for it"}},
		{"a reason without a code keeps its words", "0/1 nodes are available: 1 node(s) didn't match Pod's required features.", []*corev1.Node{machine("w1")}, nil,
			report.SchedulerSilent, report.ClusterBlocksPods, []string{"didn't match Pod's required features"}},
		{"words that are no sentence", `running "VolumeBinding" filter plugin: context deadline exceeded`, []*corev1.Node{machine("w1")}, nil, report.SchedulerSilent, report.ClusterBlocksPods, []string{"context deadline exceeded"}},
		{"no word at all", "", []*corev1.Node{machine("w1")}, nil, report.SchedulerSilent, report.ClusterBlocksPods, []string{"the scheduler has not said why"}},
		{"gates that nobody opens", "", []*corev1.Node{machine("w1")}, func(s *site) {
			s.pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota.example/reserve"}}
		},
			report.SchedulerSilent, report.ClusterBlocksPods, []string{"behind its scheduling gates quota.example/reserve"}},
		{"a scheduler of its own", "", []*corev1.Node{machine("w1")}, func(s *site) { s.pod.Spec.SchedulerName = "batch-scheduler" }, report.SchedulerSilent, report.ClusterBlocksPods, []string{`the scheduler \"batch-scheduler\"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := waiting(tt.message, tt.nodes...)
			if tt.change != nil {
				tt.change(s)
			}
			w := s.diagnose()
			if w.Verdict.RootCause != tt.want || w.Verdict.Attribution != tt.by {
				t.Errorf("got %s / %s, want %s / %s: %s", w.Verdict.Attribution, w.Verdict.RootCause, tt.by, tt.want, w.Verdict.Summary)
			}
			for _, text := range tt.says {
				if !strings.Contains(strings.ReplaceAll(told(w), `"`, `\"`), text) {
					t.Errorf("nothing says %q: %s", text, told(w))
				}
			}
		})
	}
}

func TestANodeThatTheAutoscalerPromisedIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := waiting("0/1 nodes are available: 1 Insufficient cpu.", machine("w1"))
	event := func(reason string, d time.Duration) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: reason}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: s.pod.Name, UID: s.pod.UID}, Reason: reason, FirstTimestamp: past(d), LastTimestamp: past(d)}
	}
	s.Events = []*corev1.Event{event("TriggeredScaleUp", 2*time.Minute)}
	if w := s.diagnose(); w.Verdict.Attribution == report.ClusterBlocksPods {
		t.Errorf("a node is on its way: %s", w.Verdict.Summary)
	}
	s.Events = append(s.Events, event("NotTriggerScaleUp", time.Minute))
	if w := s.diagnose(); w.Verdict.RootCause != report.InsufficientResources {
		t.Errorf("the autoscaler gave up: %s %s", w.Verdict.Attribution, w.Verdict.RootCause)
	}
	s.Events = []*corev1.Event{event("TriggeredScaleUp", 20*time.Minute)}
	if w := s.diagnose(); w.Verdict.RootCause != report.InsufficientResources {
		t.Errorf("the promise is old: %s %s", w.Verdict.Attribution, w.Verdict.RootCause)
	}
}

func TestWhatIsFreeIsNotClaimedWhereNotAllPodsWereRead(t *testing.T) {
	t.Parallel()
	s := waiting("0/1 nodes are available: 1 Insufficient cpu.", machine("w1"))
	asking(s.pod, corev1.ResourceCPU, "1")
	s.meta.PodScope = cluster.PodScope{Owners: map[types.UID]bool{"web": true}}
	w := s.diagnose()
	if w.Verdict.RootCause != report.InsufficientResources || !strings.Contains(told(w), "not all Pods were read") || strings.Contains(told(w), "has room for it") {
		t.Errorf("%s: %s", w.Verdict.RootCause, told(w))
	}
	s.meta.PodScope.Nodes = map[string]bool{"w1": true}
	if w := s.diagnose(); !strings.Contains(told(w), "has room for it by what was read") && !strings.Contains(told(w), "1 short of cpu") {
		t.Errorf("the ledger is known now: %s", told(w))
	}
}

func TestAPortHeldByTheOldReplicaSetIsASurgeConflict(t *testing.T) {
	t.Parallel()
	port := []corev1.ContainerPort{{HostPort: 8443}}
	s := waiting("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", machine("w1"))
	yes, one := true, int32(1)
	s.ReplicaSets = append(s.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "web-0", Annotations: map[string]string{"deployment.kubernetes.io/revision": "0"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "web", Controller: &yes}}}, Spec: appsv1.ReplicaSetSpec{Replicas: &one}, Status: appsv1.ReplicaSetStatus{Replicas: 1}})
	old := resident("web-0-x", "w1", "web", "web-0")
	old.Spec.Containers[0].Ports, s.pod.Spec.Containers[0].Ports = port, port
	s.Pods = append(s.Pods, old)
	if w := s.diagnose(); w.Verdict.RootCause != report.SurgePortConflict {
		t.Errorf("got %s: %s", w.Verdict.RootCause, w.Verdict.Summary)
	}
	old.OwnerReferences[0].UID, old.OwnerReferences[0].Name = "ingress", "ingress"
	w := s.diagnose()
	if w.Verdict.RootCause != report.HostPortConflict || !strings.Contains(told(w), "port 8443/TCP of w1 is held by shop/web-0-x (ReplicaSet shop/ingress)") {
		t.Errorf("got %s: %s", w.Verdict.RootCause, w.Verdict.Summary)
	}
}

// BenchmarkPendingPods diagnoses hundreds of workloads without a node on thousands of
// nodes: the nodes that are held against Pods are bounded.
func BenchmarkPendingPods(b *testing.B) {
	for _, reason := range []string{"Insufficient cpu", "node(s) didn't match Pod's node affinity/selector", "node(s) didn't match pod topology spread constraints", "node(s) didn't have free ports for the requested pod ports"} {
		b.Run(strings.ReplaceAll(reason, " ", "-"), func(b *testing.B) {
			s := waiting("0/5000 nodes are available: 5000 " + reason + ".")
			s.pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}}}
			s.pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
			if strings.Contains(reason, "affinity") {
				s.pod.Spec.NodeSelector = map[string]string{"disk": "ssd", "pool": "blue"}
			}
			for i := range 5000 {
				s.Nodes = append(s.Nodes, machine(fmt.Sprintf("node-%04d", i)))
				for j := range 10 {
					s.Pods = append(s.Pods, resident(fmt.Sprintf("p-%d-%d", i, j), fmt.Sprintf("node-%04d", i), "db", "db"))
				}
			}
			for i := range 300 {
				for j := range 3 {
					p := s.pod.DeepCopy()
					p.Name = fmt.Sprintf("web-%d-%d", i, j)
					p.UID, p.OwnerReferences[0].UID = types.UID(p.Name), types.UID(fmt.Sprintf("rs-%d", i))
					s.Pods = append(s.Pods, asking(p, corev1.ResourceCPU, "9"))
				}
				d, rs := s.Deployments[0].DeepCopy(), s.ReplicaSets[0].DeepCopy()
				d.Name, d.UID = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("web-%d", i))
				rs.Name, rs.UID, rs.OwnerReferences[0].UID = fmt.Sprintf("rs-%d", i), types.UID(fmt.Sprintf("rs-%d", i)), d.UID
				s.Deployments, s.ReplicaSets = append(s.Deployments, d), append(s.ReplicaSets, rs)
			}
			snapshot := cluster.New(s.Objects, s.meta)
			b.ResetTimer()
			for range b.N {
				probes.Diagnose(snapshot, probes.Options{})
			}
		})
	}
}
