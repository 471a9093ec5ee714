package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// deadNode is down since before anything was rolled out.
const deadNode = "node-00"

var (
	// agent carries the nodes' network; its new revision breaks it.
	agent = daemonSet{
		namespace: "kube-system", name: "net-agent", image: agentGood, maxUnavailable: 2,
		agent: true, hostNetwork: true, tolerations: everything,
	}
	// innocent rolls out over the same nodes in the same minutes and breaks
	// nothing; nothing holds it, since it does not select the dead node.
	innocent = daemonSet{
		namespace: "logging", name: "log-agent", image: logsOld, maxUnavailable: 3,
		hostNetwork: true, tolerations: notReady, selector: map[string]string{"logs": "yes"},
	}
	// held would roll out as well, and waits for the dead node.
	held = daemonSet{
		namespace: "monitoring", name: "node-probe", image: logsOld, maxUnavailable: 1,
		hostNetwork: true, tolerations: everything,
	}
)

// startCascade starts a cluster of 12 nodes, one of them dead since before, in
// which the agent's bad revision and the innocent ones begin to roll out.
func startCascade(t *testing.T) *cluster {
	t.Helper()
	nodes := append([]kubelet.Node{{Name: deadNode, Labels: map[string]string{corev1.LabelTopologyZone: "a"}}},
		named(11, map[string]string{"logs": "yes"})...)
	c := startCluster(t, controlplane.Options{Grace: 20 * time.Second}, kubelet.Options{Heartbeat: 5 * time.Second}, nodes...)
	c.deploy(t, agent, innocent, held)
	c.fleet.CutOff(deadNode)
	c.waitForNodes(t, corev1.ConditionUnknown, 1)
	c.roll(t, innocent, logsNew)
	c.roll(t, held, logsNew)
	c.roll(t, agent, agentBreaks)
	return c
}

// A rollout takes one node after another, and nothing brakes it, for the broken
// nodes' daemon Pods stay Ready. The program names it while it spreads and when it
// has reached everything; it never blames the innocent rollout beside it; and it
// changes nothing unless it is allowed to.
func TestModeB(t *testing.T) {
	t.Parallel()
	c := startCascade(t)

	c.wait(t, "triage names the agent's rollout", func(ctx context.Context) (bool, string) {
		r, res := c.triage(t, reader)
		if got := attributionOf(r, innocent); got == report.RolloutBreaksNodes {
			t.Fatalf("triage blames the innocent rollout:\n%s", res.stdout)
		}
		return blamesAgent(r) && r.Verdict.Confidence.AtLeast(report.Medium) &&
			attributionOf(r, held) == report.NodesBlockRollout, res.stdout
	})
	c.waitForNodes(t, corev1.ConditionFalse, 11)
	checkModeB(t, c)

	r, res := c.triage(t, reader)
	w := r.Workload(keyOf(agent))
	if !blamesAgent(r) || w == nil || w.Measures == nil {
		t.Fatalf("when all nodes have fallen, triage does not name the agent's rollout:\n%s", res.stdout)
	}
	if res.code != 1 {
		t.Errorf("exit code %d, want 1", res.code)
	}
	if r.Source.Type != "cluster" || r.Nodes.Total != 12 || r.Nodes.NotReady != 11 || r.Nodes.Unknown != 1 {
		t.Errorf("source %q, nodes %+v; want 12 of a cluster, 11 not Ready, 1 Unknown", r.Source.Type, r.Nodes)
	}
	if got := len(w.Measures.After); got < 9 {
		t.Errorf("%d nodes fell after their Pod was replaced (%v), want nearly all of 11", got, w.Measures.After)
	}
	if !slices.Contains(w.Measures.Prevalent, deadNode) || slices.Contains(w.Measures.After, deadNode) {
		t.Errorf("%s is down since before: it must be among %v and not among %v", deadNode, w.Measures.Prevalent, w.Measures.After)
	}
	rec := w.Recommendation
	if rec.Action != report.ActionRollBack || rec.ToRevision == nil || *rec.ToRevision != 1 {
		t.Errorf("recommendation %+v, want RollBack to revision 1", rec)
	}
	if len(rec.Reachable) != 11 || slices.Contains(rec.Reachable, deadNode) {
		t.Errorf("reachable %v, want the 11 nodes whose kubelets live", rec.Reachable)
	}

	t.Run("who may not patch is told before it is tried", func(t *testing.T) { refusedBeforeItIsTried(t, c) })
	t.Run("read-only changes nothing", func(t *testing.T) { readOnlyChangesNothing(t, c) })

	// The old revision mends the nodes; the tests above changed nothing.
	c.roll(t, agent, agentGood)
	c.waitForNodes(t, corev1.ConditionTrue, 11)
}

func keyOf(d daemonSet) report.WorkloadKey {
	return report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Clean(d.namespace), Name: report.Clean(d.name)}
}

// blamesAgent tells whether the incident's verdict is that the agent breaks nodes.
func blamesAgent(r *report.Report) bool {
	return r.Verdict.Attribution == report.RolloutBreaksNodes && string(r.Verdict.Workload) == keyOf(agent).String() &&
		attributionOf(r, agent) == report.RolloutBreaksNodes
}

// checkModeB holds the cluster against what mode B is: nodes Ready=False by their
// own kubelets, which live, and a controller that counts a success.
func checkModeB(t *testing.T, c *cluster) {
	t.Helper()
	ctx := t.Context()
	s := c.daemonSet(ctx, t, agent).Status
	if s.DesiredNumberScheduled != 12 || s.UpdatedNumberScheduled != 11 || s.NumberAvailable != 11 {
		t.Errorf("the controller counts desired %d, updated %d, available %d; want 12, 11, 11", s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable)
	}
	if image := c.imagesOf(ctx, t, agent)[deadNode]; image == agentBreaks {
		t.Error("the dead node has a Pod of the new revision: who started it?")
	}
	for i := 1; i <= 11; i++ {
		name := fmt.Sprintf("node-%02d", i)
		lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(lease.Spec.RenewTime.Time); age > 20*time.Second {
			t.Errorf("%s is Ready=False and its Lease is %s old: that is not mode B", name, age)
		}
		node, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Reason != "KubeletNotReady" {
				t.Errorf("%s: reason %s", name, cond.Reason)
			}
		}
	}
	c.wait(t, "the innocent rollout is complete", func(ctx context.Context) (bool, string) {
		s := c.daemonSet(ctx, t, innocent).Status
		return s.UpdatedNumberScheduled == 11 && s.NumberAvailable == 11, fmt.Sprintf("%+v", s)
	})
	if s := c.daemonSet(ctx, t, held).Status; s.UpdatedNumberScheduled != 0 {
		t.Errorf("the rollout that the dead node holds updated %d Pods", s.UpdatedNumberScheduled)
	}
}

// Nodes that fall silent brake the rollout, late: those updated within the grace
// period are lost, and the rest are spared.
func TestModeA(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{}, kubelet.Options{Starting: 12 * time.Second}, named(14, nil)...)
	one := agent
	one.maxUnavailable = 1
	c.deploy(t, one)
	c.roll(t, one, agentCutsOff)
	c.waitForNodes(t, corev1.ConditionUnknown, 1)

	c.wait(t, "triage names the agent's rollout", func(ctx context.Context) (bool, string) {
		r, res := c.triage(t, reader)
		return blamesAgent(r), res.stdout
	})

	// It stands when the lost Pods hold the whole budget and no node is still to fall.
	var lost []string
	c.wait(t, "every node that was updated is Unknown", func(ctx context.Context) (bool, string) {
		lost = c.nodesBy(ctx, t)[corev1.ConditionUnknown]
		var updated []string
		for node, image := range c.imagesOf(ctx, t, one) {
			if image == agentCutsOff {
				updated = append(updated, node)
			}
		}
		slices.Sort(updated)
		slices.Sort(lost)
		return slices.Equal(lost, updated), fmt.Sprintf("updated %v, Unknown %v", updated, lost)
	})
	if len(lost) < 2 || len(lost) > 10 {
		t.Errorf("%d of 14 nodes are lost (%v): want more than one, since the brake is late, and not all", len(lost), lost)
	}
	c.wait(t, "the controller counts the lost nodes' Pods as unavailable", func(ctx context.Context) (bool, string) {
		s := c.daemonSet(ctx, t, one).Status
		return int(s.UpdatedNumberScheduled) == len(lost) && int(s.NumberAvailable) == 14-len(lost),
			fmt.Sprintf("updated %d, available %d with %d nodes lost", s.UpdatedNumberScheduled, s.NumberAvailable, len(lost))
	})

	// Through the API nothing can be done for nodes that are cut off.
	r, res := c.triage(t, reader)
	w := r.Workload(keyOf(one))
	if !blamesAgent(r) || w == nil {
		t.Fatalf("triage does not name the agent's rollout:\n%s", res.stdout)
	}
	if got := len(w.Recommendation.Unreachable); got != len(lost) {
		t.Errorf("unreachable %v, want the nodes lost: %v", w.Recommendation.Unreachable, lost)
	}
	if r.Nodes.Unknown != len(lost) || r.Nodes.NotReady != 0 {
		t.Errorf("nodes %+v with %d lost", r.Nodes, len(lost))
	}
}
