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

// The stand-in and the real controllers make the cascade that the program is
// for: nothing brakes it, for the broken nodes' daemon Pods stay Ready.
func TestModeBReachesEveryNodeAndTheControllerCountsASuccess(t *testing.T) {
	t.Parallel()
	c := startCascade(t)
	c.waitForNodes(t, corev1.ConditionFalse, 11)

	ctx := t.Context()
	s := c.daemonSet(ctx, t, agent).Status
	if s.DesiredNumberScheduled != 12 || s.UpdatedNumberScheduled != 11 || s.NumberAvailable != 11 {
		t.Errorf("the controller counts desired %d, updated %d, available %d; want 12, 11, 11", s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable)
	}
	if image := c.imagesOf(ctx, t, agent)[deadNode]; image == agentBreaks {
		t.Error("the dead node has a Pod of the new revision: who started it?")
	}
	now := time.Now()
	for i := 1; i <= 11; i++ {
		name := fmt.Sprintf("node-%02d", i)
		lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if age := now.Sub(lease.Spec.RenewTime.Time); age > 20*time.Second {
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

	// The old revision mends them.
	c.roll(t, agent, agentGood)
	c.waitForNodes(t, corev1.ConditionTrue, 11)
}

// Nodes that fall silent brake the rollout, late: those updated within the grace
// period are lost, and the rest are spared.
func TestModeAStopsByItselfAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{}, kubelet.Options{Starting: 12 * time.Second}, named(14, nil)...)
	one := agent
	one.maxUnavailable = 1
	c.deploy(t, one)
	c.roll(t, one, agentCutsOff)
	c.waitForNodes(t, corev1.ConditionUnknown, 1)

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
	s := c.daemonSet(t.Context(), t, one).Status
	if len(lost) < 2 || len(lost) > 10 {
		t.Errorf("%d of 14 nodes are lost (%v): want more than one, since the brake is late, and not all", len(lost), lost)
	}
	if int(s.UpdatedNumberScheduled) != len(lost) || int(s.NumberAvailable) != 14-len(lost) {
		t.Errorf("the controller counts updated %d, available %d with %d nodes lost", s.UpdatedNumberScheduled, s.NumberAvailable, len(lost))
	}
}
