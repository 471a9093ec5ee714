package sim

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeThatSaysNotReadyIsTaintedAndItsPodsAreLeftAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: wildcard})
	l.run(10 * time.Second)
	before := l.podOn("node-001").ResourceVersion
	l.world.Host("node-001").BreakCNI()
	l.run(16 * time.Second)
	n := l.node("node-001")
	c := nodeCondition(&n.Status, corev1.NodeReady)
	if c.Status != corev1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != networkNotReady {
		t.Fatalf("sixteen seconds later Ready is %+v", c)
	}
	l.run(90 * time.Second)
	if p := l.podOn("node-001"); p.ResourceVersion != before || !podReady(p) {
		t.Error("its Pod was written to, or is not ready any more")
	}
	for _, e := range l.events("NodeNotReady") {
		if e.Source.Component != "kubelet" || e.InvolvedObject.Kind != "Node" || e.Namespace != "default" {
			t.Errorf("event from %s about a %s in %s: only the kubelet speaks, about the Node, in default", e.Source.Component, e.InvolvedObject.Kind, e.Namespace)
		}
	}
	if len(l.events("NodeNotReady")) != 1 {
		t.Errorf("%d NodeNotReady events, want 1", len(l.events("NodeNotReady")))
	}
	n = l.node("node-001")
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		if !hasTaint(n.Spec.Taints, corev1.TaintNodeNotReady, effect) {
			t.Errorf("no %s taint: %v", effect, n.Spec.Taints)
		}
	}
	for _, taint := range n.Spec.Taints {
		if taint.TimeAdded == nil {
			t.Errorf("taint %s:%s does not say since when", taint.Key, taint.Effect)
		}
	}
	l.world.Host("node-001").WriteCNI()
	l.run(12 * time.Second)
	if n := l.node("node-001"); nodeReadiness(n) != corev1.ConditionTrue || len(n.Spec.Taints) != 0 {
		t.Errorf("twelve seconds after the repair it is %s with %v", nodeReadiness(n), n.Spec.Taints)
	}
}

func TestSilentNodeTurnsUnknownAndItsPodsAreMarked(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: wildcard, timers: Timers{Exact: true}})
	host := l.world.Host("node-001")
	was := podCondition(&l.podOn("node-001").Status, corev1.PodReady).LastTransitionTime
	host.CutOff() // just after its last heartbeat, which the controller saw at the same moment
	l.run(54 * time.Second)
	if s := nodeReadiness(l.node("node-001")); s != corev1.ConditionTrue {
		t.Fatalf("54 s after its last heartbeat it is %s already", s)
	}
	l.run(2 * time.Second)
	n := l.node("node-001")
	for _, c := range n.Status.Conditions {
		want := corev1.ConditionUnknown
		if c.Type == corev1.NodeNetworkUnavailable {
			want = corev1.ConditionFalse
		}
		if c.Status != want {
			t.Errorf("%s is %s, want %s", c.Type, c.Status, want)
		}
		if want == corev1.ConditionUnknown && (!c.LastTransitionTime.Time.Equal(epoch.Add(55*time.Second)) || c.Reason != "NodeStatusUnknown") {
			t.Errorf("%s turned Unknown at %s for %s, want 55 s after the last heartbeat", c.Type, c.LastTransitionTime, c.Reason)
		}
	}
	p := l.podOn("node-001")
	if podReady(p) || podCondition(&p.Status, corev1.ContainersReady).Status != corev1.ConditionTrue {
		t.Errorf("the Pod's conditions are %+v; want Ready=False and ContainersReady as it was", p.Status.Conditions)
	}
	var nodeEvents, podEvents int
	for _, e := range l.events("NodeNotReady") {
		if e.Source.Component != "node-controller" {
			t.Errorf("event from %s", e.Source.Component)
		}
		if e.InvolvedObject.Kind == "Node" && e.Type == corev1.EventTypeNormal {
			nodeEvents++
		}
		if e.InvolvedObject.Kind == "Pod" && e.Type == corev1.EventTypeWarning {
			podEvents++
		}
	}
	if nodeEvents != 1 || podEvents != 1 {
		t.Errorf("%d events about the node and %d about its Pod, want 1 and 1", nodeEvents, podEvents)
	}
	// Back again: the outage leaves its trace on the node, none on the Pod.
	host.Reconnect()
	l.run(20 * time.Second)
	p, n = l.podOn("node-001"), l.node("node-001")
	if now := podCondition(&p.Status, corev1.PodReady); now.Status != corev1.ConditionTrue || !now.LastTransitionTime.Equal(&was) {
		t.Errorf("after recovery the Pod is Ready=%s since %s, want True since %s", now.Status, now.LastTransitionTime, was)
	}
	if c := nodeCondition(&n.Status, corev1.NodeReady); c.Status != corev1.ConditionTrue || c.LastTransitionTime.Time.Before(epoch.Add(56*time.Second)) || len(n.Spec.Taints) > 0 {
		t.Errorf("after recovery the node is %+v with taints %v", c, n.Spec.Taints)
	}
}

func TestNodeThatGoesSilentAfterItSaidNotReadyLeavesNoTrace(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: wildcard})
	l.world.Host("node-001").BreakCNI()
	l.run(30 * time.Second)
	before := len(l.events("NodeNotReady"))
	l.world.Host("node-001").CutOff()
	l.run(2 * time.Minute)
	if s := nodeReadiness(l.node("node-001")); s != corev1.ConditionUnknown {
		t.Fatalf("node is %s", s)
	}
	if n := len(l.events("NodeNotReady")); n != before {
		t.Errorf("%d more events", n-before)
	}
	if !podReady(l.podOn("node-001")) {
		t.Error("its Pod was marked not ready")
	}
	if n := l.node("node-001"); hasTaint(n.Spec.Taints, corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute) ||
		!hasTaint(n.Spec.Taints, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute) {
		t.Errorf("taints are %v, want not-ready swapped for unreachable", n.Spec.Taints)
	}
}

func TestEvictionTaintsAreHandedOutSlowlyAndNotInABrokenZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken int
		after  time.Duration
		want   func(tainted int) bool
	}{
		{"one node in ten seconds", 4, 25 * time.Second, func(n int) bool { return n >= 1 && n <= 3 }},
		{"all four in time", 4, 2 * time.Minute, func(n int) bool { return n == 4 }},
		{"most of a small zone: none any more", 8, 5 * time.Minute, func(n int) bool { return n < 3 }},
		{"the whole cluster: all taken off", 10, 5 * time.Minute, func(n int) bool { return n == 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, setup{nodes: 10, spec: wildcard})
			for i := range c.broken {
				l.world.Host(l.nodes()[i].Name).BreakCNI()
			}
			l.run(c.after)
			n := 0
			for _, node := range l.nodes() {
				if hasTaint(node.Spec.Taints, corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute) {
					n++
				}
			}
			if !c.want(n) {
				t.Errorf("%d of %d broken nodes are tainted NoExecute", n, c.broken)
			}
		})
	}
}

// app is a Deployment with two Pods that tolerate a lost node for five minutes.
func app(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "shop"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "registry.example/shop:1"}}},
			},
		},
	}
}

func (l *lab) appPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range l.pods() {
		if p.Labels["app"] == "shop" {
			out = append(out, p)
		}
	}
	return out
}

func TestPodsOfALostNodeAreEvictedAfterFiveMinutesAndStayTerminating(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: wildcard})
	l.create(app(2))
	l.run(time.Minute)
	if n := len(l.appPods()); n != 2 {
		t.Fatalf("%d Pods", n)
	}
	lost := l.appPods()[0]
	l.world.Host(lost.Spec.NodeName).Die()
	l.run(5*time.Minute + 30*time.Second)
	if n := len(l.appPods()); n != 2 {
		t.Errorf("%d Pods before the five minutes are over", n)
	}
	l.run(time.Minute + 30*time.Second)
	var left, replaced int
	for _, p := range l.appPods() {
		if p.Name == lost.Name && p.DeletionTimestamp != nil {
			left++
			if c := podCondition(&p.Status, corev1.DisruptionTarget); c == nil || c.Reason != "DeletionByTaintManager" {
				t.Errorf("the evicted Pod does not say why: %+v", p.Status.Conditions)
			}
		} else if p.Spec.NodeName != lost.Spec.NodeName && podReady(p) {
			replaced++
		}
	}
	if left != 1 || replaced != 2 {
		t.Errorf("%d Terminating on the lost node and %d ready elsewhere, want 1 and 2", left, replaced)
	}
	if p := l.podOn(lost.Spec.NodeName); p.DeletionTimestamp != nil && p.Name != lost.Name {
		t.Error("the daemon Pod of the lost node was evicted")
	}
	found := false
	for _, e := range l.events("TaintManagerEviction") {
		found = found || e.InvolvedObject.Name == lost.Name && e.InvolvedObject.UID == "" && e.Source.Component == "taint-eviction-controller"
	}
	if !found {
		t.Error("no TaintManagerEviction event without UID")
	}
}

func TestPodsOfADeletedNodeAreCollected(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: wildcard})
	if err := l.store.Delete(l.world.nodes.resource, "", "node-002", nil); err != nil {
		t.Fatal(err)
	}
	l.run(30 * time.Second)
	if n := len(l.pods()); n != 3 {
		t.Errorf("%d Pods within the quarantine, want 3", n)
	}
	l.run(time.Minute)
	if n := len(l.pods()); n != 2 {
		t.Errorf("%d Pods after it, want 2", n)
	}
}

func TestNodeThatJoinsBecomesReadyAndGetsItsAgent(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 2})
	n := testNode(7, 1)
	n.Status.Conditions = nil
	l.create(n)
	l.run(40 * time.Second)
	joined := l.node("node-007")
	if nodeReadiness(joined) != corev1.ConditionTrue || len(joined.Spec.Taints) != 0 {
		t.Errorf("it is Ready=%s with taints %v", nodeReadiness(joined), joined.Spec.Taints)
	}
	if !podReady(l.podOn("node-007")) || l.get().Status.DesiredNumberScheduled != 3 {
		t.Errorf("its agent is not ready, or it is not counted: %+v", l.get().Status)
	}
	if _, err := l.store.Get(l.world.leases.resource, corev1.NamespaceNodeLease, "node-007"); err != nil {
		t.Error(err)
	}
	if e := l.events("RegisteredNode"); len(e) != 1 || e[0].InvolvedObject.Name != "node-007" {
		t.Errorf("events: %+v", e)
	}
}
