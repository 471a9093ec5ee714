package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
)

// The images of the incidents, and what they do to their nodes.
const (
	agentGood    = "registry.example/net-agent:v1" // its start repairs the node's network
	agentBreaks  = "registry.example/net-agent:v2" // becomes Ready, then breaks it: mode B
	agentCutsOff = "registry.example/net-agent:v3" // becomes Ready, then the node is gone: mode A
	logsOld      = "registry.example/log-agent:v1"
	logsNew      = "registry.example/log-agent:v2"
)

// breakDelay is how long after Ready the bad images have their effect.
const breakDelay = 4 * time.Second

// The users of the test clusters beside the admin.
const (
	operator = "operator" // may do everything
	observer = "observer" // may do everything, and is used with --read-only
	reader   = "reader"   // may read what the program reads, and change nothing
	podsOnly = "pods-only"
	nobody   = "nobody" // may ask what they may do, and nothing else
	kubelets = "kubelets"
)

func users() []controlplane.User {
	masters := []string{"system:masters"}
	return []controlplane.User{
		{Name: operator, Groups: masters},
		{Name: observer, Groups: masters},
		{Name: kubelets, Groups: masters},
		{Name: reader, Rules: []rbacv1.PolicyRule{
			controlplane.Reading("", "nodes", "pods", "events", "namespaces", "services", "resourcequotas"),
			controlplane.Reading("apps", "*"),
			controlplane.Reading("events.k8s.io", "events"),
			controlplane.Reading("coordination.k8s.io", "leases"),
			controlplane.Reading("policy", "poddisruptionbudgets"),
			controlplane.Reading("discovery.k8s.io", "endpointslices"),
			controlplane.Reading("admissionregistration.k8s.io", "*"),
		}},
		{Name: podsOnly, Rules: []rbacv1.PolicyRule{controlplane.Reading("", "pods", "events"), controlplane.Reading("apps", "*")}},
		{Name: nobody},
	}
}

// cluster is a control plane with a fleet of kubelets, of one test alone: the
// nodes of two incidents in one cluster would be one incident.
type cluster struct {
	*controlplane.ControlPlane
	fleet  *kubelet.Fleet
	client kubernetes.Interface
}

// startCluster starts one with the given nodes, all Ready, that ends with the test.
func startCluster(t *testing.T, plane controlplane.Options, script kubelet.Options, nodes ...kubelet.Node) *cluster {
	t.Helper()
	plane.Users = users()
	if script.Images == nil {
		script.Images = map[string]kubelet.Image{
			agentGood:    {Effect: kubelet.RepairsNetwork},
			agentBreaks:  {Effect: kubelet.BreaksNetwork, After: breakDelay},
			agentCutsOff: {Effect: kubelet.CutsOff, After: breakDelay},
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, t.TempDir(), programs, plane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cp.Logs())
		}
		cp.Stop()
	})
	c := &cluster{ControlPlane: cp}
	if c.client, err = kubernetes.NewForConfig(cp.Config(controlplane.Admin)); err != nil {
		t.Fatal(err)
	}
	if c.fleet, err = kubelet.New(cp.Config(kubelets), script); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var ended sync.WaitGroup
	ended.Go(func() { c.fleet.Run(running) })
	t.Cleanup(func() { stop(); ended.Wait() })
	if err := c.fleet.Join(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
	c.wait(t, "every node is Ready", func(ctx context.Context) (bool, string) {
		ready := c.nodesBy(ctx, t)[corev1.ConditionTrue]
		return len(ready) == len(nodes), fmt.Sprintf("%d of %d are", len(ready), len(nodes))
	})
	return c
}

// named makes nodes node-01, node-02 … in three zones.
func named(count int, labels map[string]string) []kubelet.Node {
	nodes := make([]kubelet.Node, count)
	for i := range nodes {
		nodes[i] = kubelet.Node{
			Name:   fmt.Sprintf("node-%02d", i+1),
			Labels: map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))},
		}
		for k, v := range labels {
			nodes[i].Labels[k] = v
		}
	}
	return nodes
}

// patience is how long a test waits for what must come. It is generous: the
// machine may be busy with other things.
const patience = 3 * time.Minute

// wait looks until the condition holds. It fails the test, saying what was seen
// last, when that takes longer than the patience.
func (c *cluster) wait(t *testing.T, what string, condition func(context.Context) (done bool, seen string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		done, seen := condition(ctx)
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s until %s; seen last: %s", patience, what, seen)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// nodesBy are the names of the nodes by the status of their Ready condition.
func (c *cluster) nodesBy(ctx context.Context, t *testing.T) map[corev1.ConditionStatus][]string {
	t.Helper()
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	by := map[corev1.ConditionStatus][]string{}
	for _, n := range list.Items {
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				by[cond.Status] = append(by[cond.Status], n.Name)
			}
		}
	}
	return by
}

// waitForNodes waits until so many nodes at least have that Ready condition.
func (c *cluster) waitForNodes(t *testing.T, status corev1.ConditionStatus, atLeast int) {
	t.Helper()
	c.wait(t, fmt.Sprintf("%d nodes are Ready=%s", atLeast, status), func(ctx context.Context) (bool, string) {
		by := c.nodesBy(ctx, t)
		return len(by[status]) >= atLeast, fmt.Sprint(by)
	})
}

// daemonSet is what the incidents' DaemonSets differ in.
type daemonSet struct {
	namespace, name, image string
	maxUnavailable         int
	agent                  bool // carries the node's network: privileged, with the CNI folder
	hostNetwork            bool
	tolerations            []corev1.Toleration
	selector               map[string]string // of nodes
}

func (d daemonSet) object() *appsv1.DaemonSet {
	labels := map[string]string{"app": d.name}
	grace, unavailable := int64(2), intstr.FromInt(d.maxUnavailable)
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		HostNetwork:                   d.hostNetwork,
		NodeSelector:                  d.selector,
		Tolerations:                   d.tolerations,
		Containers:                    []corev1.Container{{Name: d.name, Image: d.image}},
	}
	if d.agent {
		privileged := true
		spec.PriorityClassName = "system-node-critical"
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cni", MountPath: "/host/etc/cni/net.d"}}
		spec.Volumes = []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable},
			},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// everything tolerates every taint, as network agents do.
var everything = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}

// notReady tolerates nodes that are not Ready or unreachable.
var notReady = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
}

// deploy creates DaemonSets and waits until every Pod of theirs is available.
func (c *cluster) deploy(t *testing.T, sets ...daemonSet) {
	t.Helper()
	for _, d := range sets {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
		if _, err := c.client.CoreV1().Namespaces().Get(t.Context(), d.namespace, metav1.GetOptions{}); err != nil {
			if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.client.AppsV1().DaemonSets(d.namespace).Create(t.Context(), d.object(), metav1.CreateOptions{FieldManager: "helm"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range sets {
		c.wait(t, d.name+" is available everywhere", func(ctx context.Context) (bool, string) {
			s := c.daemonSet(ctx, t, d).Status
			return s.ObservedGeneration > 0 && s.DesiredNumberScheduled > 0 && s.NumberAvailable == s.DesiredNumberScheduled,
				fmt.Sprintf("%d of %d available", s.NumberAvailable, s.DesiredNumberScheduled)
		})
	}
}

func (c *cluster) daemonSet(ctx context.Context, t *testing.T, d daemonSet) *appsv1.DaemonSet {
	t.Helper()
	ds, err := c.client.AppsV1().DaemonSets(d.namespace).Get(ctx, d.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// roll gives a DaemonSet another image.
func (c *cluster) roll(t *testing.T, d daemonSet, image string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, d.name, image)
	_, err := c.client.AppsV1().DaemonSets(d.namespace).Patch(t.Context(), d.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "helm"})
	if err != nil {
		t.Fatal(err)
	}
}

// imagesOf are the images of the DaemonSet's live Pods by node.
func (c *cluster) imagesOf(ctx context.Context, t *testing.T, d daemonSet) map[string]string {
	t.Helper()
	pods, err := c.client.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + d.name})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			images[p.Spec.NodeName] = p.Spec.Containers[0].Image
		}
	}
	return images
}
