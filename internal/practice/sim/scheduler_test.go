package sim

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

func TestSchedulerSaysWhyAPodDoesNotFit(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 6, spec: wildcard, timers: exact})
	l.world.Host("node-000").CutOff()
	l.run(2 * time.Minute)
	n := l.node("node-001").DeepCopy()
	n.Spec.Unschedulable = true
	if _, err := l.store.Update("kubectl-cordon", n); err != nil {
		t.Fatal(err)
	}
	n = l.node("node-002").DeepCopy()
	n.Labels["disk"] = "slow"
	if _, err := l.store.Update("kubectl-label", n); err != nil {
		t.Fatal(err)
	}
	d := app(1)
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpDoesNotExist}},
		}}},
	}}
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("16Gi")}
	l.create(d)
	l.run(5 * time.Second)
	p := l.appPods()[0]
	const want = "0/6 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s), " +
		"1 node(s) were unschedulable, 3 Insufficient memory. " +
		"preemption: 0/6 nodes are available: 3 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
	if c := podCondition(&p.Status, corev1.PodScheduled); c == nil || c.Reason != "Unschedulable" || c.Message != want {
		t.Errorf("PodScheduled is %+v,\nwant %s", c, want)
	}
	e := l.events("FailedScheduling")
	if len(e) != 1 || e[0].Message != want || e[0].Source.Component != "" || e[0].ReportingController != "default-scheduler" ||
		!e[0].LastTimestamp.IsZero() || e[0].EventTime.IsZero() {
		t.Errorf("events: %+v", e)
	}
}

func TestDaemonPodThatDoesNotFitNamesItsOwnNodeOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 4})
	l.change(func(ds *appsv1.DaemonSet) {
		image(newImage)(ds)
		ds.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("64")}
	})
	l.run(time.Minute)
	var pending []*corev1.Pod
	for _, p := range l.pods() {
		if p.Spec.NodeName == "" {
			pending = append(pending, p)
		}
	}
	if len(pending) != 1 {
		t.Fatalf("%d Pods are pending, want one and a halt", len(pending))
	}
	got := podCondition(&pending[0].Status, corev1.PodScheduled).Message
	if !strings.HasPrefix(got, "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [NodeAffinity].") {
		t.Errorf("the scheduler says %s", got)
	}
}

func TestPendingPodIsBoundWhenRoomComes(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 1, spec: wildcard})
	n := l.node("node-000").DeepCopy()
	n.Spec.Unschedulable = true
	if _, err := l.store.Update("kubectl-cordon", n); err != nil {
		t.Fatal(err)
	}
	l.create(app(1))
	l.run(time.Minute)
	if p := l.appPods()[0]; p.Spec.NodeName != "" {
		t.Fatal("bound to a cordoned node")
	}
	n = l.node("node-000").DeepCopy()
	n.Spec.Unschedulable = false
	if _, err := l.store.Update("kubectl-uncordon", n); err != nil {
		t.Fatal(err)
	}
	l.run(30 * time.Second)
	if p := l.appPods()[0]; !podReady(p) {
		t.Errorf("after uncordoning it is on %q, %+v", p.Spec.NodeName, p.Status.Conditions)
	}
}

func TestHostPortKeepsASurgingPodAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 3, spec: func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.IntVal = 0
		ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntVal = 1
		ds.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100, Protocol: corev1.ProtocolTCP}}
	}})
	l.change(image(newImage))
	l.run(time.Minute)
	for _, p := range l.pods() {
		if has(newImage)(p) && !strings.Contains(podCondition(&p.Status, corev1.PodScheduled).Message, reasonPorts) {
			t.Errorf("the surging Pod is %+v", p.Status.Conditions)
		}
	}
	if n := l.count(has(oldImage), podReady); n != 3 {
		t.Errorf("%d old Pods serve", n)
	}
}

func TestDeploymentRollsWithinItsBudget(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 4, spec: wildcard})
	l.create(app(4))
	l.run(time.Minute)
	deployment := func() *appsv1.Deployment {
		o, err := l.store.Get(l.world.deployments.resource, "default", "shop")
		if err != nil {
			t.Fatal(err)
		}
		return o.(*appsv1.Deployment)
	}
	if d := deployment(); d.Status.AvailableReplicas != 4 || d.Annotations[revisionAnnotation] != "1" {
		t.Fatalf("it begins as %+v", d.Status)
	}
	nodes := map[string]bool{}
	for _, p := range l.appPods() {
		nodes[p.Spec.NodeName] = true
	}
	if len(nodes) != 4 {
		t.Errorf("its four Pods share nodes: %v", nodes)
	}
	d := deployment().DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:2"
	if _, err := l.store.Update("kubectl", d); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		l.run(time.Second)
		ready, live := 0, 0
		for _, p := range l.appPods() {
			if p.DeletionTimestamp == nil {
				live++
				if podReady(p) {
					ready++
				}
			}
		}
		if ready < 3 || live > 5 {
			t.Fatalf("%d ready and %d live Pods: 25%% of 4 is one either way", ready, live)
		}
	}
	if d := deployment(); d.Status.UpdatedReplicas != 4 || d.Status.AvailableReplicas != 4 || d.Status.Replicas != 4 || d.Annotations[revisionAnnotation] != "2" ||
		deploymentCondition(d, appsv1.DeploymentProgressing).Reason != "NewReplicaSetAvailable" {
		t.Errorf("it ends as %+v", d.Status)
	}
}

func TestDeploymentThatDoesNotProgressSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t, setup{nodes: 4, spec: wildcard, programs: map[string]Program{"registry.example/shop:2": ImageMissing("registry.example/shop:2")}})
	l.create(app(4))
	l.run(time.Minute)
	o, err := l.store.Get(l.world.deployments.resource, "default", "shop")
	if err != nil {
		t.Fatal(err)
	}
	d := o.(*appsv1.Deployment).DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:2"
	if _, err := l.store.Update("kubectl", d); err != nil {
		t.Fatal(err)
	}
	l.run(11 * time.Minute)
	o, _ = l.store.Get(l.world.deployments.resource, "default", "shop")
	d = o.(*appsv1.Deployment)
	if c := deploymentCondition(d, appsv1.DeploymentProgressing); c.Reason != "ProgressDeadlineExceeded" || c.Status != corev1.ConditionFalse {
		t.Errorf("Progressing is %+v", c)
	}
	if d.Status.AvailableReplicas != 3 {
		t.Errorf("%d are available, want 3: it scaled down what the budget allows", d.Status.AvailableReplicas)
	}
}
