package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// onOne is a lab with one node, and the agent's new revision just begun on it.
func onOne(t *testing.T, p Program, spec func(*appsv1.DaemonSet)) *lab {
	t.Helper()
	l := newLab(t, setup{nodes: 1, programs: map[string]Program{newImage: p}})
	l.change(func(ds *appsv1.DaemonSet) {
		image(newImage)(ds)
		if spec != nil {
			spec(ds)
		}
	})
	return l
}

func noProbe(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].ReadinessProbe = nil }

func (l *lab) container() corev1.ContainerStatus {
	l.t.Helper()
	p := l.podOn("node-000")
	if len(p.Status.ContainerStatuses) == 0 {
		l.t.Fatalf("no container status: %+v", p.Status)
	}
	return p.Status.ContainerStatuses[0]
}

func TestPodComesToLifeStepByStep(t *testing.T) {
	t.Parallel()
	l := onOne(t, Program{Pull: Exactly(10 * time.Second), ReadyAfter: Exactly(20 * time.Second)}, nil)
	l.run(8 * time.Second)
	p := l.podOn("node-000")
	if c := l.container(); p.Status.Phase != corev1.PodPending || c.State.Waiting == nil || c.State.Waiting.Reason != "ContainerCreating" {
		t.Errorf("while the image is pulled it is %s, %+v", p.Status.Phase, c.State)
	}
	if c := podCondition(&p.Status, corev1.PodReadyToStartContainers); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("its sandbox is there, but PodReadyToStartContainers is %+v", c)
	}
	l.run(14 * time.Second)
	if c := l.container(); l.podOn("node-000").Status.Phase != corev1.PodRunning || c.State.Running == nil || c.Ready || !*c.Started || c.ImageID == "" {
		t.Errorf("running it is %+v", c)
	}
	l.run(20 * time.Second)
	p = l.podOn("node-000")
	if !podReady(p) || p.Status.PodIP != "10.0.0.1" || p.Status.HostIP != "10.0.0.1" {
		t.Errorf("at last it is %+v", p.Status)
	}
	var reasons []string
	for _, e := range listed[*corev1.Event](l, "events") {
		if e.InvolvedObject.Name == p.Name {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	if want := []string{"Created", "Pulled", "Pulling", "Scheduled", "Started"}; !slices.Equal(reasons, want) {
		t.Errorf("events are %v, want %v", reasons, want)
	}
	images := l.node("node-000").Status.Images
	if !slices.ContainsFunc(images, func(i corev1.ContainerImage) bool { return i.Names[0] == newImage }) {
		t.Errorf("the node does not list the image: %v", images)
	}
}

func TestCrashingContainerIsHeldBackLongerEachTime(t *testing.T) {
	t.Parallel()
	l := onOne(t, Fails(Exactly(3*time.Second), 7), noProbe)
	var restarts []time.Duration
	last := int32(0)
	for d := time.Duration(0); d < 6*time.Minute; d += time.Second {
		l.run(time.Second)
		if len(l.pods()) == 1 && len(l.pods()[0].Status.ContainerStatuses) == 1 && l.container().RestartCount > last {
			last = l.container().RestartCount
			restarts = append(restarts, d)
		}
	}
	if len(restarts) < 5 {
		t.Fatalf("%d restarts in six minutes", len(restarts))
	}
	// A life of 3 s, a second until it is noticed, and the back-off.
	for i, backoff := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second} {
		gap := restarts[i+1] - restarts[i]
		if want := backoff + 4*time.Second; gap < want-time.Second || gap > want+2*time.Second {
			t.Errorf("restart %d came %s after the one before, want about %s", i+2, gap, want)
		}
	}
	l.run(20 * time.Second)
	c := l.container()
	if c.State.Waiting == nil || c.State.Waiting.Reason != "CrashLoopBackOff" || !strings.HasPrefix(c.State.Waiting.Message, "back-off ") ||
		c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 7 {
		t.Errorf("held back it is %+v, last %+v", c.State, c.LastTerminationState)
	}
	if len(l.events("BackOff")) == 0 || l.events("BackOff")[0].Type != corev1.EventTypeWarning || l.events("BackOff")[0].InvolvedObject.FieldPath != "spec.containers{agent}" {
		t.Errorf("events of the back-off: %+v", l.events("BackOff"))
	}
}

func TestContainerKilledForItsMemorySaysSo(t *testing.T) {
	t.Parallel()
	l := onOne(t, OOM(Exactly(5*time.Second)), noProbe)
	l.run(30 * time.Second)
	if last := l.container().LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("last state is %+v", last)
	}
}

func TestInitContainerThatFailsKeepsThePodFromStarting(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 1, programs: map[string]Program{"registry.example/init:1": Fails(Exactly(2*time.Second), 1)}})
	l.change(func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "registry.example/init:1"}}
	})
	l.run(2 * time.Minute)
	p := l.podOn("node-000")
	first, main := p.Status.InitContainerStatuses[0], p.Status.ContainerStatuses[0]
	if first.RestartCount < 2 || first.LastTerminationState.Terminated == nil || first.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("the init container is %+v", first)
	}
	if main.State.Waiting == nil || main.State.Waiting.Reason != "PodInitializing" || main.ContainerID != "" || p.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s, the main container is %+v: it cannot have started", p.Status.Phase, main)
	}
	if c := podCondition(&p.Status, corev1.PodInitialized); c.Status != corev1.ConditionFalse {
		t.Errorf("Initialized is %+v", c)
	}
}

func TestImageThatIsMissing(t *testing.T) {
	t.Parallel()
	l := onOne(t, ImageMissing(newImage), nil)
	l.run(time.Minute)
	w := l.container().State.Waiting
	if w == nil || w.Reason != "ImagePullBackOff" || !strings.Contains(w.Message, "not found") {
		t.Errorf("it waits for %+v", w)
	}
	for _, e := range l.events("BackOff") {
		if e.Type != corev1.EventTypeNormal {
			t.Errorf("the image's back-off is a %s", e.Type)
		}
	}
	if len(l.events("BackOff")) == 0 || len(l.events("Failed")) < 2 {
		t.Errorf("%d BackOff and %d Failed events", len(l.events("BackOff")), len(l.events("Failed")))
	}
}

func TestPodWithoutNetworkWaitsForTheCNIConfiguration(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 1, spec: wildcard})
	l.create(app(1))
	l.run(20 * time.Second)
	if !podReady(l.appPods()[0]) {
		t.Fatal("the app does not run")
	}
	l.world.Host("node-000").BreakCNI()
	l.run(20 * time.Second)
	if !podReady(l.appPods()[0]) {
		t.Error("a Pod that runs loses its readiness with the configuration")
	}
	// Deleted, it cannot go: its sandbox needs the configuration.
	p := l.appPods()[0]
	if err := l.store.Delete(l.world.pods.resource, p.Namespace, p.Name, nil); err != nil {
		t.Fatal(err)
	}
	l.run(time.Minute)
	if !slices.ContainsFunc(l.appPods(), func(q *corev1.Pod) bool { return q.Name == p.Name }) || len(l.events("FailedKillPod")) == 0 {
		t.Error("the Pod is gone, or nothing says that its sandbox cannot be taken down")
	}
	l.world.Host("node-000").WriteCNI()
	l.run(40 * time.Second)
	if pods := l.appPods(); len(pods) != 1 || pods[0].Name == p.Name || !podReady(pods[0]) {
		t.Errorf("with the configuration back there are %d Pods", len(pods))
	}
}

func TestSandboxOfANewPodWaitsForTheNetwork(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 1, spec: wildcard})
	l.world.Host("node-000").BreakCNI()
	d := app(1)
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	l.run(20 * time.Second)
	l.create(d)
	l.run(30 * time.Second)
	p := l.appPods()[0]
	if c := podCondition(&p.Status, corev1.PodReadyToStartContainers); c == nil || c.Status != corev1.ConditionFalse {
		t.Errorf("it has a sandbox: %+v", c)
	}
	e := l.events("NetworkNotReady")
	if len(e) != 1 || e[0].Count < 5 || !strings.HasPrefix(e[0].Message, "network is not ready: container runtime network not ready") {
		t.Errorf("events: %+v", e)
	}
}

func TestTerminationTakesAtMostTheGracePeriod(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 1, programs: map[string]Program{oldImage: {StopsIn: Exactly(time.Hour)}}})
	first := l.podOn("node-000")
	l.change(image(newImage))
	l.run(4 * time.Second)
	if p := l.podOn("node-000"); p.Name != first.Name || p.DeletionTimestamp == nil || !podReady(p) {
		t.Errorf("four seconds into the grace period it is %+v", p.Status.Conditions)
	}
	if len(l.events("Killing")) != 1 || l.events("Killing")[0].Source.Host != "node-000" {
		t.Errorf("events: %+v", l.events("Killing"))
	}
	l.run(3 * time.Second)
	if p := l.podOn("node-000"); p.Name == first.Name {
		t.Error("the grace period of 5 s is over, and the Pod is still there")
	}
}

func TestCutOffKubeletChangesNothingAtTheAPIServer(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 2, spec: wildcard})
	lease := func() time.Time {
		for _, o := range l.store.List(coordinationv1.SchemeGroupVersion.WithResource("leases"), corev1.NamespaceNodeLease, nil) {
			if o := o.(*coordinationv1.Lease); o.Name == "node-000" {
				return o.Spec.RenewTime.Time
			}
		}
		return time.Time{}
	}
	l.world.Host("node-000").CutOff()
	renewed := lease()
	p := l.podOn("node-000")
	if err := l.store.Delete(l.world.pods.resource, p.Namespace, p.Name, nil); err != nil {
		t.Fatal(err)
	}
	l.run(5 * time.Minute)
	if !lease().Equal(renewed) {
		t.Error("its Lease was renewed")
	}
	if q := l.podOn("node-000"); q.Name != p.Name || q.DeletionTimestamp == nil {
		t.Error("a deletion was finished without the kubelet")
	}
	l.world.Host("node-000").Reconnect()
	l.run(30 * time.Second)
	if q := l.podOn("node-000"); q.Name == p.Name || !podReady(q) {
		t.Error("the deletion was not finished, or no new Pod came, after the reconnection")
	}
}

func TestRebootStartsEverythingAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 2, spec: wildcard})
	was := l.node("node-000").Status.NodeInfo.BootID
	l.world.Host("node-000").Reboot()
	l.run(3 * time.Minute)
	n, c := l.node("node-000"), l.container()
	if n.Status.NodeInfo.BootID == was || nodeReadiness(n) != corev1.ConditionTrue {
		t.Errorf("boot id %s, Ready %s", n.Status.NodeInfo.BootID, nodeReadiness(n))
	}
	if c.RestartCount != 1 || c.LastTerminationState.Terminated == nil || !c.Ready {
		t.Errorf("its container is %+v", c)
	}
	if len(l.events("Rebooted")) != 1 || len(l.events("Starting")) != 1 {
		t.Errorf("%d Rebooted and %d Starting events", len(l.events("Rebooted")), len(l.events("Starting")))
	}
}

func TestClockOfANodeStampsItsTransitionsOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 2, spec: wildcard})
	l.world.Host("node-000").SetClock(10 * time.Minute)
	l.run(2 * time.Minute)
	if s := nodeReadiness(l.node("node-000")); s != corev1.ConditionTrue {
		t.Errorf("a clock that is ahead makes the node %s", s)
	}
	l.world.Host("node-000").BreakCNI()
	l.run(20 * time.Second)
	n := l.node("node-000")
	if at := nodeCondition(&n.Status, corev1.NodeReady).LastTransitionTime; at.Time.Before(epoch.Add(12 * time.Minute)) {
		t.Errorf("Ready turned at %s, want it by the node's own clock", at)
	}
	for _, taint := range n.Spec.Taints {
		if taint.TimeAdded.Time.After(epoch.Add(3 * time.Minute)) {
			t.Errorf("the controller's taint is stamped %s", taint.TimeAdded)
		}
	}
}
