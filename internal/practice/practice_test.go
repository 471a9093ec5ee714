package practice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// night is an incident that is being played.
type night struct {
	*Cluster
	t *testing.T
}

func play(t *testing.T, incident string, seed int64) *night {
	t.Helper()
	c, err := Start(incident, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &night{c, t}
}

func (n *night) until(d time.Duration) {
	n.t.Helper()
	if err := n.Step(Epoch.Add(d)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *night) run(d time.Duration) { n.t.Helper(); n.until(n.Now().Sub(Epoch) + d) }

// wait steps until something holds; it fails after ten minutes.
func (n *night) wait(what string, holds func() bool) {
	n.t.Helper()
	for range 600 {
		if holds() {
			return
		}
		n.run(time.Second)
	}
	n.t.Fatalf("ten minutes later still not: %s", what)
}

func (n *night) daemonSet(namespace, name string) *appsv1.DaemonSet {
	n.t.Helper()
	o, err := n.store.Get(appsv1.SchemeGroupVersion.WithResource("daemonsets"), namespace, name)
	if err != nil {
		n.t.Fatal(err)
	}
	return o.(*appsv1.DaemonSet)
}

func (n *night) edit(namespace, name string, edit func(*appsv1.DaemonSet)) {
	n.t.Helper()
	ds := n.daemonSet(namespace, name).DeepCopy()
	edit(ds)
	if _, err := n.store.Update("kubectl", ds); err != nil {
		n.t.Fatal(err)
	}
}

// agents are the network agent's Pods by node, those that are being deleted too.
func (n *night) agents() map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	for _, o := range n.store.List(corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceSystem, metaSelector(labelled(agent))) {
		p := o.(*corev1.Pod)
		out[p.Spec.NodeName] = p
	}
	return out
}

// revision is the agent's with that number.
func (n *night) revision(number int64) *appsv1.ControllerRevision {
	n.t.Helper()
	for _, o := range n.store.List(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), metav1.NamespaceSystem, metaSelector(labelled(agent))) {
		if r := o.(*appsv1.ControllerRevision); r.Revision == number {
			return r
		}
	}
	n.t.Fatalf("no revision %d", number)
	return nil
}

func (n *night) node(name string) *corev1.Node {
	for _, node := range n.nodes() {
		if node.Name == name {
			return node
		}
	}
	n.t.Fatalf("no node %s", name)
	return nil
}

func (n *night) delete(p *corev1.Pod) {
	n.t.Helper()
	if err := n.store.Delete(corev1.SchemeGroupVersion.WithResource("pods"), p.Namespace, p.Name, nil); err != nil {
		n.t.Fatal(err)
	}
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestCNICascadeIfNobodyActs plays one night through: how it begins, what it looks
// like when four nodes have fallen, and how it ends.
func TestCNICascadeIfNobodyActs(t *testing.T) {
	t.Parallel()
	n := play(t, DefaultIncident, 2)
	n.beginsHealthyWithAPast(t)
	n.wait("the exporter's rollout ended", func() bool {
		ds := n.daemonSet("monitoring", "node-exporter")
		return ds.Generation == 2 && ds.Status.ObservedGeneration == 2 && ds.Status.UpdatedNumberScheduled == 11 && ds.Status.NumberAvailable == 11
	})
	if at := n.Now().Sub(Epoch); at < 80*time.Second {
		t.Errorf("the innocent rollout ended after %s: too early to be among the suspects", at)
	}
	n.wait("four nodes fell", func() bool { return n.FallenNodes() == 4 })
	n.isACascadeWithoutBrake(t)
	n.tellsInItsLogs(t)
	n.until(12 * time.Minute)
	if f := n.FallenNodes(); f != 11 {
		t.Errorf("%d nodes have fallen in the end, want all 11 that were up", f)
	}
	if s := n.daemonSet(metav1.NamespaceSystem, agent).Status; s.UpdatedNumberScheduled != 11 || s.NumberReady != 11 {
		t.Errorf("status is %+v", s)
	}
	if s := n.daemonSet("monitoring", "node-exporter").Status; s.NumberAvailable != 11 || s.NumberMisscheduled != 0 {
		t.Errorf("with all nodes down the exporter is %+v", s)
	}
}

func (n *night) beginsHealthyWithAPast(t *testing.T) {
	t.Helper()
	if !n.Now().Equal(Epoch) || n.FallenNodes() != 0 {
		t.Errorf("it is %s and %d nodes have fallen", n.Now(), n.FallenNodes())
	}
	zones := map[string]int{}
	for _, node := range n.nodes() {
		zones[node.Labels[corev1.LabelTopologyZone]]++
		if ready(node) == (node.Name == deadNode) {
			t.Errorf("%s is Ready=%v", node.Name, ready(node))
		}
		if age := Epoch.Sub(node.CreationTimestamp.Time); age < 40*24*time.Hour {
			t.Errorf("%s is only %s old", node.Name, age)
		}
	}
	if len(n.nodes()) != 12 || len(zones) != 3 {
		t.Errorf("%d nodes in zones %v, want 12 in three", len(n.nodes()), zones)
	}
	revisions := map[int64]bool{}
	for _, o := range n.store.List(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), metav1.NamespaceSystem, metaSelector(labelled(agent))) {
		revisions[o.(*appsv1.ControllerRevision).Revision] = true
	}
	if len(revisions) != 4 || !revisions[4] {
		t.Errorf("the agent's revisions are %v, want 1 to 4", revisions)
	}
	ds := n.daemonSet(metav1.NamespaceSystem, agent)
	if ds.Status.UpdatedNumberScheduled != 12 || ds.Status.NumberAvailable != 11 || ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntValue() != 2 {
		t.Errorf("the agent is %+v", ds.Status)
	}
	for _, m := range ds.ManagedFields {
		if m.Subresource == "" && m.Manager != "helm" {
			t.Errorf("%s owns fields of the agent", m.Manager)
		}
	}
	dead := n.agents()[deadNode]
	if podReady(dead) || dead.DeletionTimestamp != nil || dead.Status.Phase != corev1.PodRunning {
		t.Errorf("the dead node's agent should be running, not ready and not deleted: %+v", dead.Status.Conditions)
	}
	for _, d := range n.store.List(appsv1.SchemeGroupVersion.WithResource("deployments"), "", nil) {
		if d := d.(*appsv1.Deployment); d.Status.AvailableReplicas != *d.Spec.Replicas {
			t.Errorf("Deployment %s has %d of %d replicas available", d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas)
		}
	}
	for _, s := range n.store.List(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "shop", nil) {
		if s := s.(*discoveryv1.EndpointSlice); len(s.Endpoints) == 0 {
			t.Errorf("EndpointSlice %s is empty", s.Name)
		}
	}
	for _, o := range n.store.List(coordinationv1.SchemeGroupVersion.WithResource("leases"), "", nil) {
		l := o.(*coordinationv1.Lease)
		if age := Epoch.Sub(l.Spec.RenewTime.Time); (age > 12*time.Second) != (l.Name == deadNode) {
			t.Errorf("Lease %s was renewed %s ago", l.Name, age)
		}
	}
	for _, e := range n.store.List(corev1.SchemeGroupVersion.WithResource("events"), "", nil) {
		if e := e.(*corev1.Event); e.CreationTimestamp.Time.Before(Epoch.Add(-time.Hour)) && e.LastTimestamp.Time.Before(Epoch.Add(-time.Hour)) {
			t.Errorf("event %s outlived its hour", e.Name)
		}
	}
}

func (n *night) isACascadeWithoutBrake(t *testing.T) {
	t.Helper()
	if at := n.Now().Sub(Epoch); at < 90*time.Second || at > 5*time.Minute {
		t.Errorf("four nodes have fallen after %s", at)
	}
	for node, p := range n.agents() {
		switch state := n.node(node); {
		case node == deadNode:
			if p.DeletionTimestamp == nil || p.Spec.Containers[0].Image == agentV3 {
				t.Error("the dead node's agent should be Terminating, of the old revision")
			}
		case !ready(state):
			c := state.Status.Conditions[4]
			if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "cni plugin not initialized") {
				t.Errorf("%s: %+v", node, c)
			}
			if !podReady(p) || p.Spec.Containers[0].Image != agentV3 {
				t.Errorf("the agent of fallen %s should be new and Ready", node)
			}
		}
	}
}

func TestCNICascadeIsStoppedAndMended(t *testing.T) {
	t.Parallel()
	n := play(t, "cni-cascade", 3)
	good := n.revision(4)
	n.wait("four nodes fell", func() bool { return n.FallenNodes() == 4 })
	// Frozen: those that were updated may still fall, no other is touched.
	n.edit(metav1.NamespaceSystem, agent, func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	})
	n.run(2 * time.Minute)
	fallen := n.FallenNodes()
	n.run(3 * time.Minute)
	if f := n.FallenNodes(); f != fallen || f > 6 {
		t.Fatalf("frozen with %d fallen nodes, later there were %d", fallen, f)
	}
	// The template back: no Pod moves.
	_, err := n.store.Patch("kubectl", appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem, agent,
		types.StrategicMergePatchType, good.Data.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	n.run(time.Minute)
	if again := n.revision(6); again.Name != good.Name {
		t.Errorf("the undo made %s the current revision instead of raising %s to 6", again.Name, good.Name)
	}
	var bad []*corev1.Pod
	for node, p := range n.agents() {
		if p.Spec.Containers[0].Image == agentV3 {
			bad = append(bad, p)
		} else if node != deadNode && p.DeletionTimestamp != nil {
			t.Errorf("%s lost its agent under OnDelete", node)
		}
	}
	if n.FallenNodes() != fallen || len(bad) != fallen {
		t.Errorf("with the template back %d nodes are down and %d have the bad agent, want %d", n.FallenNodes(), len(bad), fallen)
	}
	// One Pod: its node comes back, no other.
	n.delete(bad[0])
	n.run(45 * time.Second)
	if !ready(n.node(bad[0].Spec.NodeName)) || n.FallenNodes() != fallen-1 {
		t.Fatalf("%s is Ready=%v, %d nodes are down", bad[0].Spec.NodeName, ready(n.node(bad[0].Spec.NodeName)), n.FallenNodes())
	}
	for _, p := range bad[1:] {
		n.delete(p)
	}
	n.run(time.Minute)
	for range 4 {
		if f := n.FallenNodes(); f != 0 {
			t.Fatalf("%d nodes are still down", f)
		}
		n.run(30 * time.Second)
	}
	for _, node := range n.nodes() {
		for _, taint := range node.Spec.Taints {
			if node.Name != deadNode && taint.Key != controlPlane {
				t.Errorf("%s keeps the taint %s", node.Name, taint.Key)
			}
		}
	}
}

func TestUnknownCascadeBrakesItself(t *testing.T) {
	t.Parallel()
	n := play(t, "cni-cascade-unknown", 1)
	n.until(8 * time.Minute)
	fallen := n.FallenNodes()
	if fallen < 4 || fallen > 9 {
		t.Errorf("%d nodes have fallen, want some, and a brake before all 12", fallen)
	}
	for _, node := range n.nodes() {
		p := n.agents()[node.Name]
		if !ready(node) && (node.Status.Conditions[4].Status != corev1.ConditionUnknown || podReady(p) || p.Spec.Containers[0].Image != agentV3) {
			t.Errorf("%s: %+v, its agent Ready=%v with %s", node.Name, node.Status.Conditions[4], podReady(p), p.Spec.Containers[0].Image)
		}
	}
	n.run(5 * time.Minute)
	if f := n.FallenNodes(); f != fallen {
		t.Errorf("five minutes later %d nodes are down instead of %d", f, fallen)
	}
}

func TestMissingImageHaltsAtItsFirstNode(t *testing.T) {
	t.Parallel()
	n := play(t, "image-missing", 1)
	n.until(6 * time.Minute)
	if f := n.FallenNodes(); f != 0 {
		t.Errorf("%d nodes have fallen: they should be well", f)
	}
	waiting := 0
	for _, o := range n.store.List(corev1.SchemeGroupVersion.WithResource("pods"), "storage", nil) {
		p := o.(*corev1.Pod)
		if w := p.Status.ContainerStatuses[0].State.Waiting; w != nil {
			waiting++
			if w.Reason != "ImagePullBackOff" && w.Reason != "ErrImagePull" || !strings.Contains(w.Message, "not found") {
				t.Errorf("it waits for %+v", w)
			}
		}
	}
	if waiting != 1 {
		t.Errorf("%d Pods wait for the image, want 1", waiting)
	}
}

func TestDeadNodesBlockARollout(t *testing.T) {
	t.Parallel()
	n := play(t, "dead-nodes-block", 1)
	n.until(8 * time.Minute)
	s := n.daemonSet(metav1.NamespaceSystem, agent).Status
	if s.UpdatedNumberScheduled != 0 || s.NumberUnavailable != 3 || n.FallenNodes() != 0 {
		t.Errorf("updated %d, unavailable %d, fallen %d; want 0, 3, 0", s.UpdatedNumberScheduled, s.NumberUnavailable, n.FallenNodes())
	}
}

// dump is everything that is stored, byte for byte.
func (n *night) dump() []byte {
	var out bytes.Buffer
	for _, r := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("events"), corev1.SchemeGroupVersion.WithResource("services"),
		appsv1.SchemeGroupVersion.WithResource("daemonsets"), appsv1.SchemeGroupVersion.WithResource("controllerrevisions"),
		appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithResource("replicasets"),
		coordinationv1.SchemeGroupVersion.WithResource("leases"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
	} {
		for _, o := range n.store.List(r, "", nil) {
			data, err := json.Marshal(o)
			if err != nil {
				n.t.Fatal(err)
			}
			out.Write(append(data, '\n'))
		}
	}
	return out.Bytes()
}

func TestTheSameSeedPlaysTheSame(t *testing.T) {
	t.Parallel()
	dumpOf := func(seed int64, step time.Duration) []byte {
		n := play(t, "cni-cascade", seed)
		for n.Now().Before(Epoch.Add(3 * time.Minute)) {
			n.run(step)
		}
		return n.dump()
	}
	a := dumpOf(7, time.Minute)
	if b := dumpOf(7, 5*time.Second); !bytes.Equal(a, b) {
		x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
		for i := range min(len(x), len(y)) {
			if !bytes.Equal(x[i], y[i]) {
				t.Fatalf("object %d differs:\n%s\n%s", i, x[i], y[i])
			}
		}
		t.Fatalf("%d objects and %d", len(x), len(y))
	}
	if b := dumpOf(8, time.Minute); bytes.Equal(a, b) {
		t.Error("another seed plays the same")
	}
}

func TestUnknownIncidentNamesTheNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"cni-casade", "did you mean cni-cascade?"}, {"image-mising", "did you mean image-missing?"},
		{"dead-ndoes-block", "did you mean dead-nodes-block?"}, {"zzz", "there are cni-cascade, cni-cascade-unknown, image-missing, config-broken, dead-nodes-block"},
	} {
		_, err := Start(c.name, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", c.name, err, c.want)
		}
	}
	if _, err := Start("zzz", 1); strings.Contains(err.Error(), "did you mean") {
		t.Errorf("zzz is near nothing: %v", err)
	}
}

// The cluster follows the wall clock while clients write and read: what they write
// is acted on.
func TestClientsAndTheRunningClusterWriteAtTheSameTime(t *testing.T) {
	t.Parallel()
	n := play(t, "cni-cascade", 5)
	client, err := kubernetes.NewForConfig(n.Config())
	if err != nil {
		t.Fatal(err)
	}
	wall := make(chan time.Time)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- n.Run(ctx, 10, wall) }()
	played := make(chan struct{})
	go func() {
		defer close(played)
		for s := range 12 {
			wall <- time.Unix(1_000_000+int64(s), 0)
		}
	}()
	sets := client.AppsV1().DaemonSets(metav1.NamespaceSystem)
	for i := range 30 {
		patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, i%2)
		if _, err := sets.Patch(ctx, agent, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		_, _ = client.CoreV1().Pods(metav1.NamespaceSystem).GetLogs(n.agents()["worker-1"].Name, &corev1.PodLogOptions{Container: agent}).DoRaw(ctx)
	}
	<-played
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if d := n.Now().Sub(Epoch); d != 110*time.Second {
		t.Errorf("eleven seconds of the wall clock were %s, want ten times as much", d)
	}
	n.run(5 * time.Second)
	if ds := n.daemonSet(metav1.NamespaceSystem, agent); ds.Generation < 30 || ds.Status.ObservedGeneration != ds.Generation {
		t.Errorf("generation %d, observed %d", ds.Generation, ds.Status.ObservedGeneration)
	}
}

func (n *night) tellsInItsLogs(t *testing.T) {
	t.Helper()
	for node, p := range n.agents() {
		if node == deadNode || ready(n.node(node)) {
			continue
		}
		text, err := n.world.Logs(p.Namespace, p.Name, &corev1.PodLogOptions{Container: agent})
		if err != nil || !strings.Contains(text, "replaced /host/etc/cni/net.d/10-calico.conflist") {
			t.Errorf("%s: %v\n%s", node, err, text)
		}
		if _, err := n.world.Logs(p.Namespace, p.Name, &corev1.PodLogOptions{Container: agent, Previous: true}); err == nil {
			t.Errorf("%s: there is no previous container", node)
		}
	}
	p := n.agents()[deadNode]
	if _, err := n.world.Logs(p.Namespace, p.Name, &corev1.PodLogOptions{Container: agent}); err == nil || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("logs of the dead node: %v", err)
	}
}
