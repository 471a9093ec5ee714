package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// aimed is a Pod that is not bound yet: its controller pins it to the node.
func aimed(name, node, hash string, age time.Duration) *corev1.Pod {
	p := daemonPod(name, "", hash, false, age)
	p.Status.Phase = corev1.PodPending
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	return p
}

func deleted(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: now}
	return p
}

func ended(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase, p.Status.Conditions[0].Status = phase, corev1.ConditionFalse
	return p
}

func TestCountersAreThoseOfTheController(t *testing.T) {
	t.Parallel()
	notReady := []corev1.Taint{taint(TaintNotReady, "NoSchedule"), taint(TaintNotReady, "NoExecute")}
	generation := daemonPod("generation", "n1", "drifted", true, time.Hour)
	generation.Labels[TemplateGenerationLabel] = "2"
	foreign := daemonPod("foreign", "n1", "new", true, time.Hour)
	foreign.OwnerReferences[0].UID = "another"
	astray := daemonPod("astray", "", "new", false, time.Hour)
	for _, tt := range []struct {
		name   string
		taints []corev1.Taint // of the first of two nodes
		pods   []*corev1.Pod
		want   string // desired current ready available unavailable updated misscheduled
	}{
		{"none", nil, nil, "2 0 0 0 2 0 0"},
		{"one that works", nil, []*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour)}, "2 1 1 1 1 1 0"},
		{"Ready for less than minReadySeconds", nil, []*corev1.Pod{daemonPod("a", "n1", "new", true, 5*time.Second)}, "2 1 1 0 2 1 0"},
		{"Pending and only aimed at the node", nil, []*corev1.Pod{aimed("a", "n1", "new", time.Minute)}, "2 1 0 0 2 1 0"},
		{"updated by template generation", nil, []*corev1.Pod{generation}, "2 1 1 1 1 1 0"},
		{"being deleted and still Ready", nil, []*corev1.Pod{deleted(daemonPod("a", "n1", "old", true, time.Hour))}, "2 1 1 1 1 0 0"},
		{"being deleted and ended", nil, []*corev1.Pod{deleted(ended(daemonPod("a", "n1", "old", false, time.Hour), corev1.PodSucceeded))}, "2 0 0 0 2 0 0"},
		{"failed and not deleted yet", nil, []*corev1.Pod{ended(daemonPod("a", "n1", "new", false, time.Hour), corev1.PodFailed)}, "2 1 0 0 2 1 0"},
		{"surge: the old Pod stands for the node", nil,
			[]*corev1.Pod{daemonPod("a-new", "n1", "new", true, time.Minute), daemonPod("b-old", "n1", "old", true, time.Hour)}, "2 1 1 1 1 0 0"},
		{"a bound Pod comes before an older one that is not", nil,
			[]*corev1.Pod{aimed("a", "n1", "old", time.Hour), daemonPod("b", "n1", "new", true, time.Minute)}, "2 1 1 1 1 1 0"},
		{"of one age the name decides", nil,
			[]*corev1.Pod{daemonPod("b", "n1", "new", true, time.Hour), daemonPod("a", "n1", "old", false, time.Hour)}, "2 1 0 0 2 0 0"},
		{"two Pods are one node", nil,
			[]*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour), daemonPod("b", "n1", "new", true, time.Hour)}, "2 1 1 1 1 1 0"},
		{"not-ready: its Pod is visible to one counter only", notReady, []*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour)}, "1 0 0 0 1 0 1"},
		{"not-ready without a Pod", notReady, nil, "1 0 0 0 1 0 0"},
		{"taint added later", []corev1.Taint{taint("dedicated", "NoSchedule")}, []*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour)}, "1 0 0 0 1 0 1"},
		{"to be removed, and not gone", []corev1.Taint{taint("dedicated", "NoExecute")}, []*corev1.Pod{deleted(daemonPod("a", "n1", "new", true, time.Hour))}, "1 0 0 0 1 0 1"},
		{"two misscheduled Pods are one node", []corev1.Taint{taint("dedicated", "NoSchedule")},
			[]*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour), daemonPod("b", "n1", "old", true, time.Hour)}, "1 0 0 0 1 0 1"},
		{"cordoned", []corev1.Taint{taint(corev1.TaintNodeUnschedulable, "NoSchedule")}, []*corev1.Pod{daemonPod("a", "n1", "new", true, time.Hour)}, "2 1 1 1 1 1 0"},
		{"on a node that does not exist", nil, []*corev1.Pod{daemonPod("a", "gone", "new", true, time.Hour)}, "2 0 0 0 2 0 0"},
		{"of another owner", nil, []*corev1.Pod{foreign}, "2 0 0 0 2 0 0"},
		{"aimed at no node", nil, []*corev1.Pod{astray}, "2 0 0 0 2 0 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ds := daemonSet(corev1.PodTemplateSpec{})
			s := New(Objects{Nodes: []*corev1.Node{node("n2"), node("n1", tt.taints...)}, DaemonSets: []*appsv1.DaemonSet{ds}, Pods: tt.pods}, Meta{AsOf: now, PodScope: PodScope{All: true}})
			c := s.Counters(ds, func(p *corev1.Pod) bool { return Updated(ds, "new", p) })
			if got := fmt.Sprint(c.Desired, c.Current, c.Ready, c.Available, c.Unavailable, c.Updated, c.Misscheduled); got != tt.want || !c.Known {
				t.Errorf("desired current ready available unavailable updated misscheduled: %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCountersNameTheNodesBehindThem(t *testing.T) {
	t.Parallel()
	ds := daemonSet(corev1.PodTemplateSpec{})
	o := Objects{Nodes: []*corev1.Node{node("n3"), node("n1", taint("dedicated", "NoSchedule")), node("n2", taint("dedicated", "NoSchedule"))},
		Pods: []*corev1.Pod{daemonPod("b", "n1", "new", true, time.Hour), daemonPod("a", "gone", "new", true, time.Hour)}}
	s := New(o, Meta{AsOf: now, PodScope: PodScope{All: true}})
	c := s.Counters(ds, func(*corev1.Pod) bool { return true })
	var got []string
	for _, p := range c.Nodes {
		got = append(got, fmt.Sprint(p.Node, " ", len(p.Pods), " ", p.ShouldRun, " ", p.MayStay, " ", p.Missing))
	}
	// A node that should run none and has none is not listed.
	if want := []string{"n1 1 false true false", "n3 0 true true false", "gone 1 false false true"}; !slices.Equal(got, want) {
		t.Errorf("nodes are %q, want %q", got, want)
	}
}

func TestPodsThatWereNotReadAreNotCountedAsNone(t *testing.T) {
	t.Parallel()
	ds := daemonSet(corev1.PodTemplateSpec{})
	s := New(Objects{Nodes: []*corev1.Node{node("n1"), node("n2", taint("dedicated", "NoSchedule"))}}, Meta{AsOf: now, PodScope: PodScope{Owners: map[types.UID]bool{"another": true}}})
	c := s.Counters(ds, func(*corev1.Pod) bool { return true })
	if c.Known || c.Desired != 1 || c.Unavailable != 0 || len(c.Nodes) != 1 {
		t.Errorf("known %v, desired %d, unavailable %d of %d nodes; want unknown Pods, one desired, nothing said of availability", c.Known, c.Desired, c.Unavailable, len(c.Nodes))
	}
}
