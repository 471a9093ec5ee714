package cluster

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var now = time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)

func node(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}}}
}

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

func TestWhichNodesShouldRunAPodAndMayKeepOne(t *testing.T) {
	t.Parallel()
	plain := corev1.PodTemplateSpec{}
	host := corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}}
	wildcard := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
	blue := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"pool": "blue"}}}
	notReady := []corev1.Taint{taint(TaintNotReady, "NoSchedule"), taint(TaintNotReady, "NoExecute")}
	for _, tt := range []struct {
		name     string
		taints   []corev1.Taint
		template corev1.PodTemplateSpec
		run      bool
		stay     bool
		inPool   bool
	}{
		{"no taint", nil, plain, true, true, true},
		{"cordon is tolerated automatically", []corev1.Taint{taint(corev1.TaintNodeUnschedulable, "NoSchedule")}, plain, true, true, true},
		{"pressure is tolerated automatically", []corev1.Taint{taint(corev1.TaintNodeDiskPressure, "NoSchedule")}, plain, true, true, true},
		{"not ready: none is created, one may stay", notReady, plain, false, true, true},
		{"not ready with a wildcard toleration", notReady, wildcard, true, true, true},
		{"unreachable", []corev1.Taint{taint(TaintUnreachable, "NoSchedule"), taint(TaintUnreachable, "NoExecute")}, plain, false, true, true},
		{"network unavailable, host network", []corev1.Taint{taint(corev1.TaintNodeNetworkUnavailable, "NoSchedule")}, host, true, true, true},
		{"network unavailable, Pod network", []corev1.Taint{taint(corev1.TaintNodeNetworkUnavailable, "NoSchedule")}, plain, false, true, true},
		{"custom NoSchedule", []corev1.Taint{taint("dedicated", "NoSchedule")}, plain, false, true, false},
		{"custom NoExecute removes", []corev1.Taint{taint("dedicated", "NoExecute")}, plain, false, false, false},
		{"out of service removes", []corev1.Taint{taint(corev1.TaintNodeOutOfService, "NoExecute")}, plain, false, false, true},
		{"PreferNoSchedule does not count", []corev1.Taint{taint("dedicated", "PreferNoSchedule")}, plain, true, true, true},
		{"selector does not match", nil, blue, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := node("n", tt.taints...)
			run, stay := ShouldRun(n, &tt.template)
			if run != tt.run || stay != tt.stay || InPool(n, &tt.template) != tt.inPool {
				t.Errorf("shouldRun %v, mayStay %v, in pool %v; want %v, %v, %v", run, stay, InPool(n, &tt.template), tt.run, tt.stay, tt.inPool)
			}
		})
	}
}

func TestBudgetRoundsUpAndIsNeverNothing(t *testing.T) {
	t.Parallel()
	p := func(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }
	for _, tt := range []struct {
		unavailable, surge string
		desired            int
		want, wantSurge    int
	}{
		{"25%", "0", 50, 13, 0}, {"25%", "0", 10, 3, 0}, {"25%", "0", 12, 3, 0}, {"1%", "0", 3, 1, 0},
		{"0", "0", 5, 1, 0}, {"0", "10%", 12, 0, 2}, {"2", "0", 12, 2, 0},
	} {
		ds := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: p(tt.unavailable), MaxSurge: p(tt.surge)}}}}
		if u, s := Budget(ds, tt.desired); u != tt.want || s != tt.wantSurge {
			t.Errorf("%s and %s of %d: %d and %d, want %d and %d", tt.unavailable, tt.surge, tt.desired, u, s, tt.want, tt.wantSurge)
		}
	}
	if u, s := Budget(&appsv1.DaemonSet{}, 9); u != 1 || s != 0 {
		t.Errorf("without settings %d and %d, want 1 and 0", u, s)
	}
}

func daemonSet(template corev1.PodTemplateSpec) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "ds", Generation: 2,
		Annotations: map[string]string{TemplateGenerationOnObject: "2"}}, Spec: appsv1.DaemonSetSpec{Template: template, MinReadySeconds: 10}}
}

func daemonPod(name, node, hash string, ready bool, since time.Duration) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(now.Add(-since)),
			Labels:          map[string]string{RevisionHash: hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: &yes}}},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))}}},
	}
}

func TestUpdateLoopCountsNodesAsTheControllerDoes(t *testing.T) {
	t.Parallel()
	ds := daemonSet(corev1.PodTemplateSpec{})
	terminating := daemonPod("terminating", "n5", "old", true, time.Hour)
	terminating.DeletionTimestamp = &metav1.Time{Time: now}
	generation := daemonPod("generation", "n7", "drifted", true, time.Hour)
	generation.Labels[TemplateGenerationLabel] = "2"
	outside := daemonPod("outside", "n8", "old", false, time.Hour)
	o := Objects{DaemonSets: []*appsv1.DaemonSet{ds}}
	for i := range 8 {
		o.Nodes = append(o.Nodes, node(fmt.Sprintf("n%d", i+1)))
	}
	o.Nodes[7].Spec.Taints = []corev1.Taint{taint(TaintUnreachable, "NoSchedule")}
	o.Pods = []*corev1.Pod{
		daemonPod("new", "n1", "new", true, time.Hour),
		daemonPod("young", "n2", "new", true, 5*time.Second), // Ready for less than minReadySeconds
		daemonPod("old", "n3", "old", true, time.Hour),
		daemonPod("ill", "n4", "old", false, time.Hour),
		terminating, generation, outside,
		daemonPod("vanished", "n9", "old", true, time.Hour),
	}
	s := New(o, Meta{AsOf: now, PodScope: PodScope{All: true}})
	u := s.UpdateLoop(ds, &ds.Spec.Template, func(p *corev1.Pod) bool { return Updated(ds, "new", p) })
	want := map[string]SlotState{"n1": SlotNewAvailable, "n2": SlotNewUnavailable, "n3": SlotOldAvailable, "n4": SlotOldUnavailable,
		"n5": SlotTerminating, "n6": SlotEmpty, "n7": SlotNewAvailable, "n8": SlotOldUnavailable, "n9": SlotOldAvailable}
	for _, slot := range u.Slots {
		if slot.State != want[slot.Node] {
			t.Errorf("%s: state %d, want %d", slot.Node, slot.State, want[slot.Node])
		}
		delete(want, slot.Node)
	}
	if len(want) > 0 {
		t.Errorf("not considered: %v", want)
	}
	// A node outside DESIRED uses up the budget all the same.
	if u.Desired != 7 || u.Used != 5 || u.MaxUnavailable != 1 {
		t.Errorf("desired %d, used %d, maxUnavailable %d; want 7, 5, 1", u.Desired, u.Used, u.MaxUnavailable)
	}
}

func TestTemplatesAreComparedByMeaning(t *testing.T) {
	t.Parallel()
	ds := daemonSet(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}}})
	yes := true
	rev := func(name string, number int64, raw string) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", UID: "ds", Controller: &yes}}}, Revision: number}
		r.Data.Raw = []byte(raw)
		return r
	}
	// Written by a server up to 1.33: creationTimestamp is null, not absent.
	before := rev("before", 1, `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"c","image":"i:1","resources":{}}]}}}}`)
	other := rev("other", 2, `{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"c","image":"i:2"}]}}}}`)
	s := New(Objects{DaemonSets: []*appsv1.DaemonSet{ds}, ControllerRevisions: []*appsv1.ControllerRevision{other, before}}, Meta{AsOf: now})
	if got := s.CurrentRevision(ds); got != before {
		t.Errorf("the current revision is %v, want the one of the same meaning", got)
	}
	if list := s.RevisionsOf("ds"); list[0] != other {
		t.Errorf("revisions are not ordered by number")
	}
}

func TestTemplateOwnerIsTheLastWriterOfTheTemplate(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *metav1.Time { v := metav1.NewTime(now.Add(d)); return &v }
	fields := func(s string) *metav1.FieldsV1 {
		f := &metav1.FieldsV1{}
		if err := f.UnmarshalJSON([]byte(s)); err != nil {
			t.Fatal(err)
		}
		return f
	}
	o := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "helm", Time: at(-time.Hour), FieldsV1: fields(`{"f:spec":{"f:template":{"f:spec":{}}}}`)},
		{Manager: "argocd", Time: at(-time.Minute), FieldsV1: fields(`{"f:spec":{"f:template":{"f:metadata":{}}}}`)},
		{Manager: "strategy", Time: at(0), FieldsV1: fields(`{"f:spec":{"f:updateStrategy":{}},"f:metadata":{"f:annotations":{"f:template":{}}}}`)},
		{Manager: "kube-controller-manager", Time: at(0), Subresource: "status", FieldsV1: fields(`{"f:status":{}}`)},
	}}
	if e := TemplateOwner(o); e == nil || e.Manager != "argocd" {
		t.Errorf("owner is %v, want argocd", e)
	}
}
