package files

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func loadCase(t *testing.T, dir string) *Case {
	t.Helper()
	c, err := LoadCase(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposedCaseIsAClusterAsKubectlWouldHaveShownIt(t *testing.T) {
	t.Parallel()
	s := loadCase(t, "../testdata/cases/cni-init-fails-budget-stops").Snapshot

	if got, want := s.AsOf, time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("AsOf = %v, want the case's now, %v", got, want)
	}
	if len(s.Nodes) != 12 {
		t.Fatalf("%d nodes, want 12", len(s.Nodes))
	}
	for _, r := range resources {
		if !s.Read(r) && r != cluster.ConfigMaps {
			t.Errorf("%s counts as not read", r)
		}
	}
	for _, d := range s.DaemonSets {
		pods := s.PodsOf(d.UID)
		want := int32(12)
		if d.Name == "log-agent" {
			want = 9 // it does not tolerate not-ready: three nodes have left its count
		}
		if len(pods) != 12 || d.Status.DesiredNumberScheduled != want || d.Status.NumberMisscheduled != 12-want {
			t.Errorf("%s: %d Pods, %+v, want 12 and %d desired", d.Name, len(pods), d.Status, want)
		}
		if d.Name != "net-agent" {
			if d.Status.NumberReady != want || d.Status.UpdatedNumberScheduled != want || d.Status.NumberAvailable != want {
				t.Errorf("%s is not healthy: %+v", d.Name, d.Status)
			}
			continue
		}
		if d.Status.UpdatedNumberScheduled != 3 || d.Status.NumberReady != 9 || d.Status.NumberUnavailable != 3 {
			t.Errorf("net-agent: %+v", d.Status)
		}
		if revs := s.RevisionsOf(d.UID); len(revs) != 2 || revs[0].Revision != 7 || revs[1].Revision != 6 {
			t.Errorf("revisions of net-agent: %v", revs)
		}
		if n := len(s.EventsOf("DaemonSet", d.Namespace, d.Name)); n != 6 {
			t.Errorf("%d events of net-agent, want three deletions and three creations", n)
		}
	}
	n := s.Node("worker-5")
	ready := cluster.NodeCondition(n, corev1.NodeReady)
	if ready.Status != corev1.ConditionFalse || ready.LastTransitionTime.UTC().Format(time.TimeOnly) != "10:20:16" {
		t.Errorf("worker-5: %+v, want Ready=False since 10:20:16", ready)
	}
	if age := s.AsOf.Sub(s.NodeLease("worker-5").Spec.RenewTime.Time); age < 0 || age > 10*time.Second {
		t.Errorf("the Lease of worker-5 is %v old: its kubelet is alive", age)
	}
	for _, p := range s.PodsOn("worker-5") {
		if p.Labels["k8s-app"] != "net-agent" {
			continue
		}
		if p.Status.Phase != corev1.PodPending || cluster.PodReady(p) || p.Status.InitContainerStatuses[0].RestartCount != 5 {
			t.Errorf("net-agent on worker-5: %+v", p.Status)
		}
	}
}

func TestEveryCaseOnDiskLoads(t *testing.T) {
	t.Parallel()
	dirs, err := Cases("../testdata/cases")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("cases: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			loadCase(t, dir)
		})
	}
}

// composedIn writes a composition on the healthy base and loads it.
func composedIn(t *testing.T, objects string) (*cluster.Snapshot, Stats, error) {
	t.Helper()
	dir, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(filepath.Join(dir, "bases", "healthy-12.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, content := range map[string]string{"bases/healthy-12.yaml": string(base), "cases/one/objects.yaml": objects} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(context.Background(), []string{filepath.Join(root, "cases/one/objects.yaml")}, Options{})
}

const caseHeader = "apiVersion: rollcall/v1\nkind: Case\nbase: healthy-12\nnow: \"10:30:00\"\n"

func composedCase(t *testing.T, objects string) *cluster.Snapshot {
	t.Helper()
	s, stats, err := composedIn(t, caseHeader+objects)
	if err != nil || len(stats.Problems) > 0 {
		t.Fatalf("%v, %v", err, stats.Problems)
	}
	return s
}

func TestHealthyBaseIsHealthyAtTheNowOfItsCase(t *testing.T) {
	t.Parallel()
	s := composedCase(t, "")
	for _, n := range s.Nodes {
		if age := s.AsOf.Sub(s.NodeLease(n.Name).Spec.RenewTime.Time); !cluster.NodeReady(n) || age < 0 || age > 10*time.Second {
			t.Errorf("%s: Ready %v, Lease %v old", n.Name, cluster.NodeReady(n), age)
		}
		if len(s.PodsOn(n.Name)) < 3 {
			t.Errorf("%s has %d Pods", n.Name, len(s.PodsOn(n.Name)))
		}
	}
	for _, p := range s.Pods {
		if !cluster.PodReady(p) || s.Node(p.Spec.NodeName) == nil || p.CreationTimestamp.After(s.AsOf) {
			t.Errorf("%s/%s is not well: %+v", p.Namespace, p.Name, p.Status)
		}
	}
	for _, d := range s.Deployments {
		if d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.UpdatedReplicas != *d.Spec.Replicas {
			t.Errorf("%s: %+v", d.Name, d.Status)
		}
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		if l := s.ControlPlaneLease(name); l == nil || s.AsOf.Sub(l.Spec.RenewTime.Time) > 5*time.Second {
			t.Errorf("the Lease of %s is not fresh: %+v", name, l)
		}
	}
}

func TestNodeThatIsUnknownLosesItsLeaseAndItsPodsTheirReadiness(t *testing.T) {
	t.Parallel()
	s := composedCase(t, "---\napiVersion: rollcall/v1\nkind: NodeTrouble\nnodes: [worker-3]\nready: Unknown\nat: \"10:20:00\"\n")
	n := s.Node("worker-3")
	if cluster.NodeReadiness(n) != corev1.ConditionUnknown || s.NodeLease("worker-3").Spec.RenewTime.UTC().Format(time.TimeOnly) != "10:19:08" {
		t.Errorf("node %v, Lease %v", cluster.NodeReadiness(n), s.NodeLease("worker-3").Spec.RenewTime)
	}
	for _, p := range s.PodsOn("worker-3") {
		ready, containers := cluster.PodCondition(p, corev1.PodReady), cluster.PodCondition(p, corev1.ContainersReady)
		if ready.Status != corev1.ConditionFalse || containers.Status != corev1.ConditionTrue || ready.LastTransitionTime.UTC().Format(time.TimeOnly) != "10:20:00" {
			t.Errorf("%s: Ready %v, ContainersReady %v", p.Name, ready, containers)
		}
	}
	if e := s.EventsOf("Node", "", "worker-3"); len(e) != 1 || cluster.EventSource(e[0]) != "node-controller" {
		t.Errorf("events: %v", e)
	}
}

func TestCaseRemovesPatchesReplacesAndAdds(t *testing.T) {
	t.Parallel()
	s := composedCase(t, `remove: [Pod/shop/web-*, Deployment/shop/web]
patch:
- target: Node/worker-[12]
  merge: {metadata: {labels: {pool: blue}}, status: {nodeInfo: {kernelVersion: "6.8.1"}}}
- target: DaemonSet/kube-system/kube-proxy
  merge: {status: {observedGeneration: 0}, metadata: {annotations: {at: "@10:29:00"}}}
---
apiVersion: rollcall/v1
kind: App
name: coredns
namespace: kube-system
replicas: 4
revisions: [{at: "-500h"}, {at: "10:10:00", change: {spec: {containers: [{name: coredns, image: "registry.example/coredns:v2"}]}}}]
progress: {status: "False", reason: ProgressDeadlineExceeded, at: "10:21:00"}
pods:
- {count: 3, revision: 1}
- {count: 2, fail: {reason: ImagePullBackOff, message: not found}}
---
apiVersion: rollcall/v1
kind: Occurrences
events:
- {about: Pod/kube-system/x, reason: Failed, message: "Failed to pull image", at: "10:11:00", last: "10:29:00", count: 7, host: worker-1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop, creationTimestamp: "@-2h"}
`)
	if len(s.Deployments) != 1 || s.Deployments[0].Status.Replicas != 5 || s.Deployments[0].Status.UpdatedReplicas != 2 || s.Deployments[0].Status.AvailableReplicas != 3 {
		t.Errorf("Deployments: %+v", s.Deployments[0].Status)
	}
	if sets := s.ReplicaSetsOf(s.Deployments[0].UID); len(sets) != 2 {
		t.Errorf("%d ReplicaSets", len(sets))
	}
	for _, p := range s.Pods {
		if p.Namespace == "shop" {
			t.Errorf("%s was to be removed", p.Name)
		}
	}
	if s.Node("worker-1").Labels["pool"] != "blue" || s.Node("worker-2").Status.NodeInfo.KernelVersion != "6.8.1" || s.Node("worker-3").Labels["pool"] != "general" {
		t.Error("the patch did not meet the nodes that it names, and no other")
	}
	for _, d := range s.DaemonSets {
		if d.Name == "kube-proxy" && (d.Status.ObservedGeneration != 0 || d.Status.DesiredNumberScheduled != 12 || d.Annotations["at"] != "2026-07-03T10:29:00.000000Z") {
			t.Errorf("kube-proxy: %+v %v", d.Status, d.Annotations)
		}
	}
	if e := s.EventsOf("Pod", "kube-system", "x"); len(e) != 1 || e[0].Count != 7 || cluster.EventLast(e[0]).UTC().Format(time.TimeOnly) != "10:29:00" {
		t.Errorf("events: %+v", e)
	}
	if len(s.Others) != 1 || s.Others[0].CreationTimestamp.UTC().Format(time.TimeOnly) != "08:30:00" {
		t.Errorf("others: %+v", s.Others)
	}
}

func TestCompositionIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	const dir = "../testdata/cases/cni-init-fails-budget-stops"
	if a, b := loadCase(t, dir).Snapshot, loadCase(t, dir).Snapshot; !reflect.DeepEqual(a.Objects, b.Objects) {
		t.Error("two readings of one case differ")
	}
}

func TestSlipsInACaseAreErrors(t *testing.T) {
	t.Parallel()
	generator := "---\napiVersion: rollcall/v1\nkind: "
	for name, tt := range map[string]struct{ objects, want string }{
		"no such base":           {"apiVersion: rollcall/v1\nkind: Case\nbase: none\n", `no base "none"`},
		"a path as a base":       {"apiVersion: rollcall/v1\nkind: Case\nbase: ../secret\n", "not a plain name"},
		"an unknown field":       {caseHeader + "removes: [x]\n", "removes"},
		"an unknown generator":   {caseHeader + generator + "Nodes\nname: x\n", "no generator"},
		"a field of a generator": {caseHeader + generator + "Daemon\nname: x\nmaxUnavailble: 2\n", "maxUnavailble"},
		"no such node":           {caseHeader + generator + "NodeTrouble\nnodes: [worker-99]\nat: \"10:00:00\"\n", "worker-99"},
		"no such time":           {caseHeader + generator + "NodeTrouble\nnodes: [worker-9]\nat: noon\n", "noon"},
		"a bare False":           {caseHeader + generator + "NodeTrouble\nnodes: [worker-9]\nat: \"10:00:00\"\nready: Flase\n", "Flase"},
		"no such revision":       {caseHeader + generator + "Daemon\nname: x\npods: [{revision: 9}]\n", "no revision 9"},
		"no such container":      {caseHeader + generator + "Daemon\nname: x\npods: [{fail: {container: other, reason: z}}]\n", "no container other"},
		"removes nothing":        {caseHeader + "remove: [Pod/shop/nothing]\n", "matches nothing"},
		"patches nothing":        {caseHeader + "patch: [{target: Node/nothing, merge: {}}]\n", "matches nothing"},
		"a broken object":        {caseHeader + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: 7\n", "not a valid Pod"},
		"a second Case":          {caseHeader + "---\n" + caseHeader, "second Case"},
		"too many nodes":         {caseHeader + generator + "NodePool\nprefix: x\ncount: 1000000000\ncreatedAt: \"-1h\"\n", "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stats, err := composedIn(t, tt.objects)
			text := ""
			if err != nil {
				text = err.Error()
			}
			for _, p := range stats.Problems {
				text += p.String()
			}
			if !strings.Contains(text, tt.want) {
				t.Errorf("%q does not say %q", text, tt.want)
			}
		})
	}
}

func TestPlainCasesNeedNoCaseDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"objects.yaml": listYAML(nodeYAML, podYAML),
		"answer.yaml":  "attribution: Healthy\nabsent: [RolloutStuck, {code: NodeNotReady, node: node-1}]\nasOf: \"2026-07-03T10:00:00Z\"\ngrace: 40s\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := loadCase(t, dir)
	if names(c.Snapshot) != "node-1 shop/web-1" || !c.Snapshot.AsOf.Equal(at("10:00:00")) || c.Snapshot.NodeGrace != 40*time.Second {
		t.Errorf("%s as of %v", names(c.Snapshot), c.Snapshot.AsOf)
	}
	if a := c.Answer; a.Attribution != "Healthy" || len(a.Absent) != 2 || a.Absent[0].Code != "RolloutStuck" || a.Absent[1].Node != "node-1" {
		t.Errorf("answer: %+v", a)
	}
}
