package cluster

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func look(past *History, at time.Duration, o Objects, mend ...func(*Meta)) *Snapshot {
	m := Meta{AsOf: now.Add(at), PodScope: PodScope{All: true}, Past: past}
	for _, f := range mend {
		f(&m)
	}
	return New(o, m)
}

func TestHistoryRemembersPodsThatAreGone(t *testing.T) {
	t.Parallel()
	old := daemonPod("old", "n1", "r6", true, time.Hour)
	s := look(nil, 0, Objects{Pods: []*corev1.Pod{old}})
	ill := old.DeepCopy()
	ill.ResourceVersion = "2"
	ill.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(4 * time.Second))}
	s = look(s.History, 5*time.Second, Objects{Pods: []*corev1.Pod{ill}})
	dying := ill.DeepCopy()
	dying.ResourceVersion = "3"
	grace := int64(30)
	dying.DeletionTimestamp, dying.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(40 * time.Second)}, &grace
	s = look(s.History, 12*time.Second, Objects{Pods: []*corev1.Pod{dying}})
	fresh := daemonPod("fresh", "n1", "r7", true, 0)
	s = look(s.History, 20*time.Second, Objects{Pods: []*corev1.Pod{fresh}})
	got := s.History.PodsOf("ds")
	if len(got) != 2 {
		t.Fatalf("%d Pods remembered, want 2", len(got))
	}
	r := got[0]
	if !r.DeleteRequested.Equal(now.Add(10*time.Second)) || !r.Gone.To.Equal(now.Add(20*time.Second)) || !r.Unready.Equal(now.Add(4*time.Second)) {
		t.Errorf("the Pod that is gone: deletion asked %v, gone %v, unready %v", r.DeleteRequested, r.Gone, r.Unready)
	}
}

func TestHistoryDoesNotTakeUnreadForGone(t *testing.T) {
	t.Parallel()
	o := Objects{Pods: []*corev1.Pod{daemonPod("p", "n1", "r6", true, time.Hour)}, Nodes: []*corev1.Node{node("n1")}}
	first := look(nil, 0, o)
	for name, mend := range map[string]func(*Meta){
		"its workload is not followed any more": func(m *Meta) { m.PodScope = PodScope{} },
		"the watch is broken": func(m *Meta) {
			m.Freshness = map[Resource]Freshness{Pods: {Broken: "timeout"}, Nodes: {Broken: "timeout"}}
		},
		"Pods may not be read": func(m *Meta) {
			m.NotRead = []NotRead{{Resource: Pods, Reason: "Forbidden"}, {Resource: Nodes, Reason: "Forbidden"}}
		},
	} {
		s := look(first.History, time.Second, Objects{}, mend)
		if got := s.History.PodsOf("ds"); len(got) != 1 || !got[0].Gone.IsZero() {
			t.Errorf("%s: the Pod counts as gone", name)
		}
	}
	if s := look(first.History, time.Second, Objects{}); s.History.PodsOf("ds")[0].Gone.IsZero() || len(s.History.RemovedNodes()) != 1 {
		t.Error("a Pod and a node that are really gone do not count as gone")
	}
}

func TestHistoryKeepsATransitionAfterTheConditionRecovered(t *testing.T) {
	t.Parallel()
	n := node("n1")
	s := look(nil, 0, Objects{Nodes: []*corev1.Node{n}})
	down := n.DeepCopy()
	down.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(60 * time.Second))}
	beat := metav1.NewMicroTime(now.Add(8 * time.Second))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: NodeLeaseNamespace, Name: "n1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &beat}}
	s = look(s.History, 61*time.Second, Objects{Nodes: []*corev1.Node{down}, Leases: []*coordinationv1.Lease{lease}})
	up := n.DeepCopy()
	up.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(200 * time.Second))
	s = look(s.History, 201*time.Second, Objects{Nodes: []*corev1.Node{up}})
	ts := s.History.Node("n1").Transitions
	if len(ts) != 3 || ts[1].To != corev1.ConditionUnknown || !ts[1].LeaseRenewed.Equal(beat.Time) || ts[2].To != corev1.ConditionTrue {
		t.Errorf("transitions: %+v", ts)
	}
}

func TestHistoryOfAPublishedSnapshotNeverChanges(t *testing.T) {
	t.Parallel()
	s := look(nil, 0, Objects{Pods: []*corev1.Pod{daemonPod("p", "n1", "r6", true, time.Hour)}, Nodes: []*corev1.Node{node("n1")}})
	h := s.History
	look(h, time.Second, Objects{})
	if !h.PodsOf("ds")[0].Gone.IsZero() || len(h.RemovedNodes()) != 0 {
		t.Error("a later fold changed an earlier History")
	}
}

func TestDemandSuspectsWhatMovesAndWhatChangedBeforeTrouble(t *testing.T) {
	t.Parallel()
	settled := func(name string) *appsv1.DaemonSet {
		ds := daemonSet(corev1.PodTemplateSpec{})
		ds.Name, ds.UID, ds.Status.ObservedGeneration = name, types.UID(name), 2
		return ds
	}
	quiet, moving, complete := settled("quiet"), settled("moving"), settled("complete")
	moving.Status.DesiredNumberScheduled, moving.Status.UpdatedNumberScheduled = 3, 1
	yes := true
	rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "complete-1", CreationTimestamp: metav1.NewTime(now.Add(-10 * time.Minute)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", UID: complete.UID, Controller: &yes}}}}
	down := node("n1")
	down.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
	o := Objects{DaemonSets: []*appsv1.DaemonSet{quiet, moving, complete}, ControllerRevisions: []*appsv1.ControllerRevision{rev}, Nodes: []*corev1.Node{down, node("n2")}}
	d := look(nil, 0, o).Demand()
	if slices.Contains(d.Workloads, quiet.UID) || !slices.Contains(d.Workloads, moving.UID) || !slices.Contains(d.Workloads, complete.UID) {
		t.Errorf("under suspicion: %v", d.Workloads)
	}
	if !slices.Equal(d.Leases, []string{"n1"}) {
		t.Errorf("Leases wanted: %v, want that of n1", d.Leases)
	}
	o.Nodes = []*corev1.Node{node("n1"), node("n2")}
	if d := look(nil, 0, o).Demand(); slices.Contains(d.Workloads, complete.UID) {
		t.Error("without node trouble a complete rollout is under suspicion")
	}
}
