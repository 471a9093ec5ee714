package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
)

// situation is a stage with one DaemonSet, "agent", that was rolled out from
// revision 1 on and stands where it stands, drawn at random.
type situation struct {
	*stage
	revisions     int // how many templates it has had
	minReady      time.Duration
	statuses      *statuses
	disagreements []string // with kubectl
	bare          bool     // a node that is NotReady has no Pod, and gets none
	dead          bool     // a node out of reach holds the whole budget
	dedicated     bool     // some nodes carry a taint that only some revisions tolerate
}

const agentName = "agent"

// The tolerations of which a revision has one set.
var tolerationSets = []struct {
	name string
	set  []corev1.Toleration
}{
	{"none", nil},
	{"not-ready and unreachable", notReady},
	{"dedicated", []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}},
	{"dedicated, not-ready and unreachable", append([]corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, notReady...)},
	{"every taint", everything},
}

func chance(rng *rand.Rand, percent int) bool { return rng.IntN(100) < percent }

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// play draws a situation and brings it about, by the real controller.
func play(ctx context.Context, client kubernetes.Interface, name string, seed uint64) (*situation, error) {
	rng := rand.New(rand.NewPCG(seed, 0x6f6c6c63616c6c))
	s := &situation{stage: &stage{client: client, name: name, rng: rng}}
	// Two kinds that chance seldom brings about have seeds of their own.
	s.bare, s.dead = seed%10 == 3, seed%10 == 7
	s.dedicated = chance(rng, 35) && !s.bare && !s.dead
	err := s.open(ctx, 4+rng.IntN(5),
		func(int) map[string]string { return map[string]string{"pool": pick(rng, []string{"a", "a", "b"})} },
		func(int) []corev1.Taint {
			if s.dedicated && chance(rng, 40) {
				return []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			}
			return nil
		})
	if err != nil {
		return s, err
	}
	if err := s.deploy(ctx); err != nil {
		return s, fmt.Errorf("first rollout: %w", err)
	}
	for range rng.IntN(2) {
		if s.bare || s.dead {
			break
		}
		if err := s.disturb(ctx); err != nil {
			return s, err
		}
	}
	for range 1 + rng.IntN(100)/70 {
		if err := s.roll(ctx); err != nil {
			return s, fmt.Errorf("roll out: %w", err)
		}
	}
	switch {
	case s.bare:
		return s, s.strip(ctx)
	case s.dead:
		if err := s.finish(ctx); err != nil {
			return s, err
		}
		s.tell("%s Ready=Unknown, from True", s.nodes[0])
		return s, s.turn(ctx, s.nodes[0], corev1.ConditionUnknown)
	}
	for range rng.IntN(4) {
		if err := s.disturb(ctx); err != nil {
			return s, err
		}
	}
	if chance(rng, 20) {
		s.tell("switched to OnDelete")
		return s, s.patch(ctx, `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	}
	return s, nil
}

func (s *situation) patch(ctx context.Context, patch string) error {
	_, err := s.client.AppsV1().DaemonSets(s.name).Patch(ctx, agentName, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "helm"})
	return err
}

// template draws the next revision's; the first is the base of the others.
func (s *situation) template() corev1.PodTemplateSpec {
	s.revisions++
	grace := int64(2)
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": agentName}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			HostNetwork:                   chance(s.rng, 50),
			NodeSelector:                  map[string]string{ownNode: s.name},
			Containers:                    []corev1.Container{{Name: agentName, Image: fmt.Sprintf("registry.example/agent:v%d", s.revisions)}},
		},
	}
	tolerates := pick(s.rng, tolerationSets)
	if s.bare {
		tolerates = tolerationSets[0]
	}
	t.Spec.Tolerations = tolerates.set
	where := "everywhere"
	kind := s.rng.IntN(6)
	if s.bare || s.dead {
		kind = 5
	}
	switch kind {
	case 0:
		where, t.Spec.NodeSelector["pool"] = "nodeSelector pool=a", "a"
	case 1:
		where = "affinity pool in (a)"
		t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
			}}},
		}}}
	}
	s.tell("template %d: tolerates %s, %s, hostNetwork %v", s.revisions, tolerates.name, where, t.Spec.HostNetwork)
	return t
}

// deploy creates the DaemonSet and completes its first rollout.
func (s *situation) deploy(ctx context.Context) error {
	zero := intstr.FromInt32(0)
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: agentName, Namespace: s.name}, Spec: appsv1.DaemonSetSpec{
		Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": agentName}},
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
		Template:       s.template(),
	}}
	budgets := []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromInt32(3), intstr.FromString("1%"), intstr.FromString("30%"), intstr.FromString("50%")}
	budget := pick(s.rng, budgets)
	switch n := s.rng.IntN(10); {
	case s.dead:
		one := intstr.FromInt32(1)
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one}
		s.tell("maxUnavailable 1")
	case n < 2:
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		s.tell("OnDelete")
	case n < 5:
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &budget, MaxUnavailable: &zero}
		s.tell("maxSurge %s", budget.String())
	default:
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &budget}
		s.tell("maxUnavailable %s", budget.String())
	}
	if chance(s.rng, 25) {
		s.minReady = time.Hour
		ds.Spec.MinReadySeconds = int32(s.minReady.Seconds())
		s.tell("minReadySeconds %d", ds.Spec.MinReadySeconds)
	}
	if _, err := s.client.AppsV1().DaemonSets(s.name).Create(ctx, ds, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	return s.finish(ctx)
}

// since is when a Pod became Ready that a kubelet starts now: long enough ago to be
// available, or just now where it is to be too young.
func (s *situation) since(young bool) time.Time {
	if young {
		return time.Now()
	}
	return time.Now().Add(-2 * s.minReady).Add(-time.Second)
}

// finish lets the kubelets do everything that is due, until nothing is.
func (s *situation) finish(ctx context.Context) error {
	for {
		p, _, err := s.settle(ctx, agentName)
		if err != nil {
			return err
		}
		acted, err := s.act(ctx, p, s.since(false), func(*corev1.Pod) bool { return true })
		if err != nil || !acted {
			return err
		}
	}
}

// roll changes the template and lets the rollout get somewhere.
func (s *situation) roll(ctx context.Context) error {
	ds, err := s.client.AppsV1().DaemonSets(s.name).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": s.template()}})
	if err != nil {
		return err
	}
	if _, err := s.client.AppsV1().DaemonSets(s.name).Patch(ctx, agentName, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	rounds, share, young := s.rng.IntN(6), pick(s.rng, []int{50, 80, 100}), s.minReady > 0 && chance(s.rng, 50)
	s.tell("%d rounds, in each of which %d%% of the Pods get what is due, young %v", rounds, share, young)
	frozen := ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	for range rounds {
		p, _, err := s.settle(ctx, agentName)
		if err != nil {
			return err
		}
		if frozen && len(p.pods) > 0 {
			if err := s.delete(ctx, pick(s.rng, p.pods)); err != nil {
				return err
			}
		}
		if _, err := s.act(ctx, p, s.since(young), func(*corev1.Pod) bool { return chance(s.rng, share) }); err != nil {
			return err
		}
	}
	_, _, err = s.settle(ctx, agentName)
	return err
}

// strip leaves a node without a Pod, NotReady, where the template tolerates no such node.
func (s *situation) strip(ctx context.Context) error {
	node := s.nodes[0]
	s.tell("%s Ready=False, and its Pods are gone", node)
	if err := s.turn(ctx, node, corev1.ConditionFalse); err != nil {
		return err
	}
	p, _, err := s.settle(ctx, agentName)
	if err != nil {
		return err
	}
	live, _ := p.on(node)
	for _, pod := range live {
		if err := s.delete(ctx, pod); err != nil {
			return err
		}
	}
	if p, _, err = s.settle(ctx, agentName); err != nil {
		return err
	}
	_, err = s.act(ctx, p, s.since(false), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node && pod.DeletionTimestamp != nil })
	return err
}

func (s *situation) delete(ctx context.Context, pod *corev1.Pod) error {
	s.tell("deleted %s on %s", pod.Name, pod.Spec.NodeName)
	return s.client.CoreV1().Pods(s.name).Delete(ctx, pod.Name, metav1.DeleteOptions{})
}

// disturb does something to a node or to a Pod, and lets the controllers react, so
// that none of them still has to hear of it when the next thing happens.
func (s *situation) disturb(ctx context.Context) error {
	p, _, err := s.settle(ctx, agentName)
	if err != nil {
		return err
	}
	if err := s.misfortune(ctx, p); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, agentName)
	return err
}

func (s *situation) misfortune(ctx context.Context, p *picture) error {
	node := pick(s.rng, s.nodes)
	live, _ := p.on(node)
	taint := func(effect corev1.TaintEffect) error {
		t := corev1.Taint{Key: pick(s.rng, []string{"dedicated", "maintenance"}), Effect: effect}
		s.tell("tainted %s with %s", node, t.ToString())
		return s.editNode(ctx, node, func(n *corev1.Node) {
			if !slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return t.MatchTaint(&o) }) {
				n.Spec.Taints = append(n.Spec.Taints, t)
			}
		}, s.client.CoreV1().Nodes().Update)
	}
	readiness := facts.NodeReadiness(p.nodes[node])
	switch s.rng.IntN(10) {
	case 0, 1:
		if readiness == corev1.ConditionTrue {
			s.tell("%s Ready=False", node)
			return s.turn(ctx, node, corev1.ConditionFalse)
		}
		s.tell("%s Ready=True", node)
		return s.turn(ctx, node, corev1.ConditionTrue)
	case 2, 3:
		if readiness != corev1.ConditionUnknown {
			s.tell("%s Ready=Unknown, from %s", node, readiness)
			return s.turn(ctx, node, corev1.ConditionUnknown)
		}
	case 4: // its kubelet says False first, so that nobody marks its Pods
		if readiness == corev1.ConditionTrue {
			s.tell("%s Ready=False, then Unknown", node)
			if err := s.turn(ctx, node, corev1.ConditionFalse); err != nil {
				return err
			}
			if _, _, err := s.settle(ctx, agentName); err != nil {
				return err
			}
			return s.turn(ctx, node, corev1.ConditionUnknown)
		}
	case 5, 6:
		for _, name := range s.nodes {
			if live, _ := p.on(name); len(live) > 0 && p.reachable(name) && chance(s.rng, 40) {
				s.tell("%s on %s unready", live[0].Name, name)
				if err := s.setReady(ctx, live[0], corev1.ConditionFalse, time.Now()); err != nil {
					return err
				}
			}
		}
	case 7:
		return taint(corev1.TaintEffectNoSchedule)
	case 8:
		return taint(corev1.TaintEffectNoExecute)
	default:
		if len(live) > 0 {
			if err := s.delete(ctx, live[0]); err != nil {
				return err
			}
		}
		if chance(s.rng, 50) { // and end it, so that the node is without a Pod where it gets none
			p, _, err := s.settle(ctx, agentName)
			if err != nil {
				return err
			}
			_, err = s.act(ctx, p, s.since(false), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node && pod.DeletionTimestamp != nil })
			return err
		}
	}
	return nil
}
