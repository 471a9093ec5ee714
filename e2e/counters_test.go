package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
)

var (
	crowdSeed  = flag.Uint64("crowd-seed", 1, "the seed of the nodes and DaemonSets whose counters are compared")
	crowdSets  = flag.Int("crowd-sets", 300, "how many DaemonSets those are")
	crowdNodes = flag.Int("crowd-nodes", 30, "over how many nodes")
)

// What is counted of a DaemonSet is what its controller counts, once the controller
// has seen the cluster as it is; and what a change of nodes is said to do is what the
// controller then does.
func TestDaemonSetsAreCountedAndForetoldAsTheirControllerDoes(t *testing.T) {
	t.Parallel()
	cp := startCluster(t, controlplane.Options{Grace: 12 * time.Hour}, kubelet.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	stopwatch := func(what string) { t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond)) }
	c, err := newCrowd(ctx, cp.client, "crowd", *crowdSeed, *crowdNodes, *crowdSets)
	if err != nil {
		t.Fatal(err)
	}
	stopwatch("the first Pods stand")
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the kubelets have begun", func(ctx context.Context) error { return c.begin(ctx, "first") }},
		{"templates have changed", c.rollSome},
		{"the kubelets have gone on", func(ctx context.Context) error { return c.begin(ctx, "second") }},
		{"nodes have changed", c.changeNodes},
	} {
		if err := step.do(ctx); err != nil {
			t.Fatalf("until %s: %v\n%s", step.what, err, strings.Join(c.story, "\n"))
		}
		stopwatch(step.what)
	}
	seen := c.compareCounters(ctx, t)
	stopwatch("compared")
	for what, least := range enough {
		if seen[what] < least {
			t.Errorf("only %d times %s: the comparison proves less than it says, which takes %d", seen[what], what, least)
		}
	}
	t.Logf("compared %d DaemonSets; nodes of DaemonSets seen: %v", len(c.sets), seen)
	t.Run("what if", func(t *testing.T) { c.whatIf(ctx, t) })
	stopwatch("what was said of changes compared")
}

// begin lets the kubelets do to each Pod what its lot is.
func (c *crowd) begin(ctx context.Context, when string) error {
	p, err := c.look(ctx)
	if err != nil {
		return err
	}
	long, now := time.Now().Add(-2*soak), time.Now()
	err = each(ctx, p.pods, func(pod *corev1.Pod) error {
		if pod.Spec.NodeName == "" || !p.reachable(pod.Spec.NodeName) || facts.PodReady(pod) {
			return nil
		}
		set, node := pod.Labels["app"], pod.Spec.NodeName
		if pod.DeletionTimestamp != nil {
			if c.lot(set, node, when, "ends") < 60 {
				return gone(c.client.CoreV1().Pods(c.name).Delete(ctx, pod.Name, metav1.DeleteOptions{
					GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
				}))
			}
			return nil
		}
		switch lot := c.lot(set, node, when); {
		case lot < 60:
			return c.setReady(ctx, pod, corev1.ConditionTrue, long)
		case lot < 70: // too young where there are minReadySeconds
			return c.setReady(ctx, pod, corev1.ConditionTrue, now)
		case lot < 80:
			return c.setReady(ctx, pod, corev1.ConditionFalse, now)
		case lot < 83: // Ready, and on its way out
			if err := c.setReady(ctx, pod, corev1.ConditionTrue, long); err != nil {
				return err
			}
			return gone(c.client.CoreV1().Pods(c.name).Delete(ctx, pod.Name, metav1.DeleteOptions{}))
		case lot < 85: // it has failed: the controller deletes it and makes another
			return c.fail(ctx, pod)
		case lot < 87: // it ends, and has ended: the controller makes another beside it
			if err := c.client.CoreV1().Pods(c.name).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
				return gone(err)
			}
			now, err := c.client.CoreV1().Pods(c.name).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return gone(err)
			}
			return c.fail(ctx, now)
		case lot < 90: // it is of this revision by one label alone
			if err := c.setReady(ctx, pod, corev1.ConditionTrue, long); err != nil {
				return err
			}
			key := pickBy(lot, facts.RevisionHash, facts.TemplateGenerationLabel)
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"another"}}}`, key)
			_, err := c.client.CoreV1().Pods(c.name).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return gone(err)
		}
		return nil // not begun
	})
	if err != nil {
		return err
	}
	return c.answered(ctx)
}

func pickBy[T any](lot int, of ...T) T { return of[lot%len(of)] }

// fail ends a Pod as a kubelet that could not admit it.
func (c *crowd) fail(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
	_, err := c.client.CoreV1().Pods(c.name).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return gone(err)
}

// rollSome gives two in five DaemonSets another template, of which some go elsewhere.
func (c *crowd) rollSome(ctx context.Context) error {
	patches := map[string]string{}
	var rolled []string
	for _, set := range c.sets {
		switch n := c.rng.IntN(50); {
		case n < 16:
			patches[set] = fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"registry.example/%s:v2"}]}}}}`, set)
		case n < 18:
			patches[set] = fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{"disk":%q}}}}}`, pick(c.rng, crowdLabels["disk"]))
		case n < 20:
			patches[set] = `{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`
		default:
			continue
		}
		c.tell("%s is changed: %s", set, patches[set])
		rolled = append(rolled, set)
	}
	err := each(ctx, rolled, func(set string) error {
		_, err := c.client.AppsV1().DaemonSets(c.name).Patch(ctx, set, types.StrategicMergePatchType, []byte(patches[set]), metav1.PatchOptions{FieldManager: "helm"})
		return err
	})
	if err != nil {
		return err
	}
	return c.answered(ctx)
}

// changeNodes does something to most nodes; then some leave, and some join.
func (c *crowd) changeNodes(ctx context.Context) error {
	for range len(c.nodes) {
		if err := c.misfortune(ctx, pick(c.rng, c.nodes)); err != nil {
			return err
		}
	}
	for range 2 {
		if err := c.remove(ctx, pick(c.rng, c.nodes)); err != nil {
			return err
		}
		if err := c.addNode(ctx); err != nil {
			return err
		}
	}
	return c.answered(ctx)
}

// enough is of what the cluster must have how much, or the comparison proves little:
// nodes of DaemonSets, by what is so about them.
var enough = map[string]int{
	"counted":                          500,
	"misscheduled":                     50,
	"misscheduled, and may stay":       20,
	"no Pod":                           10, // the API server refuses it
	"the Pod is not bound":             10,
	"the Pod is Ready and too young":   10,
	"the Pod is of another revision":   50,
	"updated by its generation alone":  3,
	"updated by its hash alone":        3,
	"the Pod ends and is Ready":        10,
	"two Pods":                         5,
	"a Pod that has ended besides":     3,
	"not Ready, and a Pod that counts": 10,
}

// looks is how many times the controllers are brought to rest before a difference is
// one: the controller's own picture may be a moment older than what was just read.
const looks = 3

// compareCounters compares the counters of every DaemonSet, and counts what there
// was to count.
func (c *crowd) compareCounters(ctx context.Context, t *testing.T) map[string]int {
	t.Helper()
	var s *facts.Snapshot
	for look := 1; ; look++ {
		var err error
		if s, err = c.rest(ctx); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(c.story, "\n"))
		}
		var wrong []string
		for _, ds := range s.DaemonSets {
			if d := differs(s, ds); d != "" {
				wrong = append(wrong, d)
			}
		}
		if len(wrong) == 0 {
			break
		}
		if look == looks {
			t.Errorf("the counters of %d of %d DaemonSets are others than the controller's:\n%s", len(wrong), len(s.DaemonSets), strings.Join(wrong, "\n"))
			break
		}
	}
	seen := map[string]int{}
	for _, ds := range s.DaemonSets {
		for _, n := range countersOf(s, ds).Nodes {
			for _, what := range describePlacement(s, ds, n) {
				seen[what]++
			}
		}
	}
	return seen
}

func countersOf(s *facts.Snapshot, ds *appsv1.DaemonSet) facts.Counters {
	hash := ""
	if r := s.CurrentRevision(ds); r != nil {
		hash = r.Labels[facts.RevisionHash]
	}
	return s.Counters(ds, func(p *corev1.Pod) bool { return facts.Updated(ds, hash, p) })
}

// differs says where a DaemonSet's counters are others than its status, node by node.
func differs(s *facts.Snapshot, ds *appsv1.DaemonSet) string {
	ours, status := countersOf(s, ds), ds.Status
	var wrong []string
	for _, n := range []struct {
		name   string
		ours   int
		theirs int32
	}{
		{"desired", ours.Desired, status.DesiredNumberScheduled},
		{"current", ours.Current, status.CurrentNumberScheduled},
		{"ready", ours.Ready, status.NumberReady},
		{"available", ours.Available, status.NumberAvailable},
		{"unavailable", ours.Unavailable, status.NumberUnavailable},
		{"updated", ours.Updated, status.UpdatedNumberScheduled},
		{"misscheduled", ours.Misscheduled, status.NumberMisscheduled},
	} {
		if n.ours != int(n.theirs) {
			wrong = append(wrong, fmt.Sprintf("%s %d, the controller's %d", n.name, n.ours, n.theirs))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s: %s", ds.Name, strings.Join(wrong, "; "))
	for _, n := range ours.Nodes {
		fmt.Fprintf(&b, "\n    %s: should run %v, may stay %v: %s", n.Node, n.ShouldRun, n.MayStay, strings.Join(describePlacement(s, ds, n), ", "))
		if node := s.Node(n.Node); node != nil {
			fmt.Fprintf(&b, "; %v", node.Labels)
			for _, taint := range node.Spec.Taints {
				fmt.Fprintf(&b, " %s", taint.ToString())
			}
		}
	}
	spec := ds.Spec.Template.Spec
	fmt.Fprintf(&b, "\n    nodeName %q, nodeSelector %v, affinity %v, hostNetwork %v, tolerations", spec.NodeName, spec.NodeSelector, spec.Affinity, spec.HostNetwork)
	for i := range spec.Tolerations {
		fmt.Fprintf(&b, " %s", spec.Tolerations[i].String())
	}
	return b.String()
}

// describePlacement says what is so about one node of a DaemonSet.
func describePlacement(s *facts.Snapshot, ds *appsv1.DaemonSet, n facts.Placement) (out []string) {
	say := func(what string, is bool) {
		if is {
			out = append(out, what)
		}
	}
	node := s.Node(n.Node)
	say("counted", n.ShouldRun && len(n.Pods) > 0)
	say("no Pod", len(n.Pods) == 0)
	say("the node is gone", node == nil)
	say("misscheduled", node != nil && !n.ShouldRun && len(n.Pods) > 0)
	say("misscheduled, and may stay", node != nil && !n.ShouldRun && n.MayStay && len(n.Pods) > 0)
	ended := 0
	for _, p := range s.PodsOf(ds.UID) {
		if facts.TargetNode(p) == n.Node && facts.PodTerminal(p) && p.DeletionTimestamp != nil {
			ended++
		}
	}
	say("a Pod that has ended besides", ended > 0)
	if len(n.Pods) == 0 {
		return out
	}
	first := n.Pods[0]
	say("two Pods", len(n.Pods) > 1)
	say("the Pod is not bound", first.Spec.NodeName == "")
	say("the Pod is not Ready", !n.Ready)
	say("the Pod is Ready and too young", n.Ready && !n.Available)
	say("the Pod is of another revision", !n.Updated)
	say("the Pod ends and is Ready", n.Ready && first.DeletionTimestamp != nil)
	byGeneration := first.Labels[facts.TemplateGenerationLabel] == ds.Annotations[facts.TemplateGenerationOnObject]
	say("updated by its hash alone", n.Updated && !byGeneration)
	if r := s.CurrentRevision(ds); r != nil {
		say("updated by its generation alone", n.Updated && first.Labels[facts.RevisionHash] != r.Labels[facts.RevisionHash])
	}
	say("not Ready, and a Pod that counts", node != nil && n.ShouldRun && !facts.NodeReady(node))
	return out
}

func numberOf(s string) *intstr.IntOrString {
	n := intstr.Parse(s)
	return &n
}
