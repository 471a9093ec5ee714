package files

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func TestNodeThatRebootedIsReadyAgainAndItsContainersRestarted(t *testing.T) {
	t.Parallel()
	s := composedCase(t, `---
apiVersion: rollcall/v1
kind: NodeTrouble
nodes: [worker-3]
ready: Unknown
at: "10:12:00"
until: "10:13:40"
rebooted: true
`)
	n := s.Node("worker-3")
	ready := cluster.NodeCondition(n, corev1.NodeReady)
	if ready.Status != corev1.ConditionTrue || ready.LastTransitionTime.UTC().Format("15:04:05") != "10:13:40" || len(n.Spec.Taints) > 0 {
		t.Errorf("Ready is %s since %s, taints %v", ready.Status, ready.LastTransitionTime, n.Spec.Taints)
	}
	if age := s.AsOf.Sub(s.NodeLease(n.Name).Spec.RenewTime.Time).Seconds(); age > 10 {
		t.Errorf("its Lease is %gs old", age)
	}
	restarted := 0
	for _, p := range s.Pods {
		if p.Spec.NodeName == n.Name {
			restarted += int(p.Status.ContainerStatuses[0].RestartCount)
			if r := cluster.PodCondition(p, corev1.PodReady); r.LastTransitionTime.Time.Before(ready.LastTransitionTime.Time) {
				t.Errorf("Pod %s is Ready since %s, before its node came back", p.Name, r.LastTransitionTime)
			}
		}
	}
	if restarted == 0 {
		t.Error("no container restarted with the node")
	}
	var reasons []string
	for _, e := range s.Events {
		if e.InvolvedObject.Name == n.Name {
			reasons = append(reasons, e.Reason+" of "+e.Source.Component)
		}
	}
	for _, want := range []string{"NodeNotReady of node-controller", "Rebooted of kubelet", "Starting of kubelet", "NodeReady of kubelet"} {
		if !strings.Contains(strings.Join(reasons, ", "), want) {
			t.Errorf("events %v lack %s", reasons, want)
		}
	}
}

func TestPodsOfADeadNodeAreToldToGoAndReplacedElsewhere(t *testing.T) {
	t.Parallel()
	s := composedCase(t, `---
apiVersion: rollcall/v1
kind: NodeTrouble
nodes: [worker-3]
ready: Unknown
at: "10:12:00"
`)
	leaving, elsewhere := 0, 0
	for _, p := range s.Pods {
		switch {
		case p.Labels["app"] != "web":
		case p.Spec.NodeName == "worker-3" && p.DeletionTimestamp != nil:
			leaving++
		case p.DeletionTimestamp == nil && cluster.PodReady(p):
			elsewhere++
		}
	}
	counted := int32(0)
	for _, d := range s.Deployments {
		if d.Name == "web" {
			counted = d.Status.AvailableReplicas
		}
	}
	if leaving != 1 || elsewhere != 6 || counted != 6 {
		t.Errorf("%d Pods leave the node, %d run elsewhere, %d are counted; want 1, 6 and 6", leaving, elsewhere, counted)
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName == "worker-3" && p.Labels["k8s-app"] != "" && p.DeletionTimestamp != nil {
			t.Errorf("daemon Pod %s tolerates the taint and was told to go", p.Name)
		}
	}
}

func TestOfManyReplacementsMostEventsAreDropped(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("---\napiVersion: rollcall/v1\nkind: NodePool\nprefix: m\ncount: 40\ncreatedAt: \"-700h\"\n---\napiVersion: rollcall/v1\nkind: Daemon\nname: agent\ntolerates: everything\n")
	b.WriteString("revisions: [{at: \"-90h\"}, {at: \"10:20:00\"}]\npods: [{revision: 1}, {nodes: [\"m-*\"], revision: 2, deleted: \"10:20:02\", created: \"10:20:07\", each: 10s}]\n")
	s := composedCase(t, b.String())
	count := map[string]int{}
	for _, e := range s.Events {
		if e.InvolvedObject.Kind == "DaemonSet" && e.InvolvedObject.Name == "agent" {
			kind := "alone"
			if strings.HasPrefix(e.Message, "(combined") {
				kind = "merged"
			}
			count[kind+" "+e.Reason]++
		}
	}
	// As the real recorder did with forty deletions and creations ten seconds apart.
	want := map[string]int{"alone SuccessfulDelete": 9, "alone SuccessfulCreate": 9, "merged SuccessfulDelete": 1, "merged SuccessfulCreate": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", count, want)
	}
}
