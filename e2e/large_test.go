package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// LargeEnv names the variable that lets the test of a large cluster run. It takes
// some ten minutes and 4 GiB, and is no part of the others.
const LargeEnv = "ROLLCALL_E2E_LARGE"

var largeNodes = flag.Int("large-nodes", 5000, "how many nodes the large cluster has, at least 200")

const (
	largeLost    = 60   // of the nodes, whose kubelets fall silent
	largePods    = 1000 // of a workload that nobody asks about
	leasesAtMost = 50   // in any ten seconds
)

// A cluster of 5,000 nodes is answered within seconds, with little memory, and asked
// politely: the Pods of suspects only, and few Leases at a time.
func TestFiveThousandNodes(t *testing.T) {
	if os.Getenv(LargeEnv) == "" {
		t.Skipf("it takes some minutes: set %s=1", LargeEnv)
	}
	kwok, stages, err := binaries.Kwok(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	// kwok goes on renewing what it once had: those that are to be lost are not its own.
	c := startCluster(t, controlplane.Options{Grace: 2 * time.Minute}, kubelet.Options{}, named(largeLost, nil)...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	if err := c.StartKwok(ctx, kwok, stages); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stopwatch := func(what string) { t.Logf("%s after %s", what, time.Since(began).Round(time.Second)) }
	nodes := make([]*corev1.Node, *largeNodes-largeLost)
	for i := range nodes {
		name := fmt.Sprintf("kwok-%04d", i+1)
		nodes[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: string(rune('a' + i%3))},
			Annotations: map[string]string{controlplane.KwokManages: controlplane.KwokValue},
		}}
	}
	if err := each(ctx, nodes, func(n *corev1.Node) error {
		_, err := c.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	stopwatch("the nodes are made")
	// A node whose first Lease is late is called Unknown, and kwok does not give its
	// Pods back the readiness that they then lose.
	if err := errors.Join(c.awaitNodes(ctx, corev1.ConditionTrue, *largeNodes), c.awaitLeases(ctx)); err != nil {
		t.Fatal(err)
	}
	stopwatch("every node has its Lease")
	if err := c.populate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.awaitLarge(ctx, func(ds *appsv1.DaemonSet, d *appsv1.Deployment) bool {
		return ds.Status.NumberReady == int32(*largeNodes) && d.Status.ReadyReplicas == largePods
	}); err != nil {
		t.Fatal(err)
	}
	stopwatch("every Pod is Ready")

	r, healthy := c.measure(ctx, t, "all is well", reader)
	if w := r.Workload(keyOf(daemonSet{namespace: "kube-system", name: "net-agent"})); w != nil && w.Verdict.Attribution != report.Healthy {
		t.Errorf("with nothing wrong the agent is %s: %s", w.Verdict.Attribution, w.Verdict.Summary)
	}
	if r.Nodes.Total != *largeNodes || healthy.leases > leasesAtMost {
		t.Errorf("%d nodes and %d Leases read, of a cluster in which %d are well", r.Nodes.Total, healthy.leases, *largeNodes)
	}

	for _, n := range named(largeLost, nil) {
		c.fleet.CutOff(n.Name)
	}
	if err := c.awaitNodes(ctx, corev1.ConditionUnknown, largeLost); err != nil {
		t.Fatal(err)
	}
	stopwatch("the lost nodes are Unknown")
	r, _ = c.measure(ctx, t, fmt.Sprintf("%d nodes are lost", largeLost), operator)
	if r.Nodes.Unknown != largeLost || r.Verdict.Attribution != report.NodesFailIndependently {
		t.Errorf("with %d nodes lost the report counts %d Unknown and says %s: %s", largeLost, r.Nodes.Unknown, r.Verdict.Attribution, r.Verdict.Summary)
	}
	c.watchPolitely(ctx, t)
	stopwatch("done")
}

// populate makes a DaemonSet on every node, and a Deployment that is well.
func (c *cluster) populate(ctx context.Context) error {
	agent := daemonSet{namespace: "kube-system", name: "net-agent", image: agentGood, maxUnavailable: 1, agent: true, hostNetwork: true, tolerations: everything}
	if _, err := c.client.AppsV1().DaemonSets("kube-system").Create(ctx, agent.object(), metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	labels, replicas := map[string]string{"app": "web"}, int32(largePods)
	_, err := c.client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:v1"}},
		}},
	}}, metav1.CreateOptions{})
	return err
}

// awaitNodes waits for so many nodes with that readiness, and does not look often.
func (c *cluster) awaitNodes(ctx context.Context, status corev1.ConditionStatus, count int) error {
	for {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		have := 0
		for i := range list.Items {
			if facts.NodeReadiness(&list.Items[i]) == status {
				have++
			}
		}
		if have >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d nodes are Ready=%s, not %d: %w", have, status, count, ctx.Err())
		case <-time.After(3 * time.Second):
		}
	}
}

func (c *cluster) awaitLeases(ctx context.Context) error {
	for {
		// Of a list that is cut short the server tells how much is left.
		list, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		have := len(list.Items)
		if list.RemainingItemCount != nil {
			have += int(*list.RemainingItemCount)
		}
		if have >= *largeNodes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d nodes have a Lease: %w", have, ctx.Err())
		case <-time.After(2 * time.Second):
		}
	}
}

func (c *cluster) awaitLarge(ctx context.Context, stands func(*appsv1.DaemonSet, *appsv1.Deployment) bool) error {
	for {
		ds, err := c.client.AppsV1().DaemonSets("kube-system").Get(ctx, "net-agent", metav1.GetOptions{})
		if err != nil {
			return err
		}
		d, err := c.client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || stands(ds, d) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d daemon Pods and %d of %d others are Ready: %w", ds.Status.NumberReady, ds.Status.DesiredNumberScheduled, d.Status.ReadyReplicas, largePods, ctx.Err())
		case <-time.After(2 * time.Second):
		}
	}
}

// asked is what one run of the program asked of the API server.
type asked struct{ requests, leases int }

// measure runs triage once, as a user of whom nothing was asked before, and tells
// what that took.
func (c *cluster) measure(ctx context.Context, t *testing.T, when, user string) (*report.Report, asked) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(ctx, t.TempDir(), c.Kubeconfig(user), "triage", "-o", "json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("triage printed no report: %v\n%s", err, stderr.String())
	}
	if len(r.NotRead) > 0 {
		t.Errorf("when %s, these were not read: %v", when, r.NotRead)
	}
	requests := c.politely(t, user)
	a := asked{requests: len(requests)}
	for _, q := range requests {
		if q.Resource == "leases" {
			a.leases++
		}
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("when %s, triage takes %s, %s of the processor, at most %d MiB, and %d requests, %d of them for Leases; its report has %d KiB",
		when, took.Round(time.Millisecond), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Millisecond), usage.Maxrss>>10, a.requests, a.leases, stdout.Len()>>10)
	return &r, a
}

// politely looks at all that the user asked for: no list or watch of all Pods, and no
// more than so many Leases in ten seconds.
func (c *cluster) politely(t *testing.T, user string) []controlplane.Request {
	t.Helper()
	requests, err := c.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	var leases []time.Time
	for _, q := range requests {
		u, err := url.Parse(q.URI)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		switch {
		case q.Resource == "pods" && q.Namespace == "" && q.Name == "" && !query.Has("labelSelector") && !query.Has("fieldSelector"):
			t.Errorf("all Pods of the cluster are asked for: %s", q)
		case q.Resource == "leases" && q.Name == "" && q.Namespace == corev1.NamespaceNodeLease:
			t.Errorf("the Leases of all nodes are asked for: %s", q)
		case q.Resource == "leases" && q.Namespace == corev1.NamespaceNodeLease:
			leases = append(leases, q.At)
		}
		if q.Mutates() && !q.AsksForAccess() {
			t.Errorf("triage changes something: %s", q)
		}
	}
	// One that has just become of interest is read at once and again in the next round
	// of all: so many in each round, and as many once besides.
	if len(leases) > 0 {
		rounds := 1 + int(leases[len(leases)-1].Sub(leases[0])/(10*time.Second))
		if most := leasesAtMost * (rounds + 1); len(leases) > most {
			t.Errorf("%d times a Lease of a node is asked for, at most %d is polite in %s", len(leases), most, leases[len(leases)-1].Sub(leases[0]).Round(time.Second))
		}
	}
	return requests
}

// watchPolitely lets triage --watch run until it has polled Leases several times.
func (c *cluster) watchPolitely(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := command(ctx, t.TempDir(), c.Kubeconfig(observer), "triage", "--watch", "-o", "json")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for polls := 0; polls < 4 && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		requests, err := c.Requests(observer)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, q := range requests {
			if q.Resource == "leases" && q.Namespace == corev1.NamespaceNodeLease {
				seen[q.Name]++
			}
		}
		for _, n := range seen {
			polls = max(polls, n)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("triage --watch does not poll Leases: %s", stderr.String())
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	requests := c.politely(t, observer)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("triage --watch over four polls of Leases: %d requests, %d reports, at most %d MiB", len(requests), strings.Count(stdout.String(), "\n"), usage.Maxrss>>10)
}
