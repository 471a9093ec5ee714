package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	whatIfRounds = 3
	whatIfAtOnce = 17 // changes of different nodes, which have nothing to do with each other
)

// whatIf asks what random changes of nodes would do, makes them, and compares with what
// the DaemonSet controller then does.
func (c *crowd) whatIf(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := c.quieten(ctx); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.story, "\n"))
	}
	seen := map[report.WhatIfEffect]int{}
	for round := range whatIfRounds {
		before, err := c.rest(ctx)
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(c.story, "\n"))
		}
		var changes []*changed
		for _, i := range c.rng.Perm(len(c.nodes))[:whatIfAtOnce] {
			changes = append(changes, c.drawChange(before.Node(c.nodes[i])))
		}
		for _, ch := range changes {
			if ch.said, err = probes.WhatIf(before, ch.NodeChange); err != nil {
				t.Fatal(err)
			}
		}
		for _, ch := range changes {
			c.tell("%s", ch.String())
			if err := c.editNode(ctx, ch.Nodes[0], ch.make, c.client.CoreV1().Nodes().Update); err != nil {
				t.Fatal(err)
			}
		}
		var wrong []string
		for range looks { // as the counters are compared
			after, err := c.rest(ctx)
			if err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(c.story, "\n"))
			}
			if wrong = c.compareWhatIf(before, after, changes); len(wrong) == 0 {
				break
			}
		}
		if len(wrong) > 0 {
			t.Errorf("round %d:\n  %s", round+1, strings.Join(wrong, "\n  "))
		}
		for _, ch := range changes {
			for _, ds := range ch.said.DaemonSets {
				for _, p := range ds.Pods {
					seen[p.Effect]++
				}
			}
		}
		if err := c.tidy(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("compared %d changes; predicted: %v", whatIfRounds*whatIfAtOnce, seen)
	for _, e := range []report.WhatIfEffect{report.PodAdded, report.PodRemoved, report.PodMisscheduled, report.PodRegained} {
		if seen[e] < 10 {
			t.Errorf("only %d Pods are %s: the comparison proves less than it says", seen[e], e)
		}
	}
}

// changed is one change, with what was said of it.
type changed struct {
	probes.NodeChange
	said *report.WhatIf
}

// quieten brings the rollouts to an end, so that Pods come and go for the changes
// alone: nothing is replaced any more, and what cannot be created is left out.
func (c *crowd) quieten(ctx context.Context) error {
	sets := c.client.AppsV1().DaemonSets(c.name)
	list, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	c.sets = nil
	for i := range list.Items {
		ds := &list.Items[i]
		if ds.Spec.Template.Spec.PriorityClassName != "" {
			background := metav1.DeletePropagationBackground
			if err := sets.Delete(ctx, ds.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				return err
			}
			continue
		}
		c.sets = append(c.sets, ds.Name)
	}
	patch := []byte(`{"spec":{"updateStrategy":{"type":"` + string(appsv1.OnDeleteDaemonSetStrategyType) + `","rollingUpdate":null}}}`)
	if err := each(ctx, c.sets, func(name string) error {
		_, err := sets.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "helm"})
		return err
	}); err != nil {
		return err
	}
	if err := c.sync(ctx); err != nil {
		return err
	}
	return c.tidy(ctx)
}

// tidy lets the kubelets end what is on its way out, and start the rest.
func (c *crowd) tidy(ctx context.Context) error {
	if err := c.answered(ctx); err != nil {
		return err
	}
	p, err := c.look(ctx)
	if err != nil {
		return err
	}
	return each(ctx, p.pods, func(pod *corev1.Pod) error {
		if pod.DeletionTimestamp != nil {
			return gone(c.client.CoreV1().Pods(c.name).Delete(ctx, pod.Name, metav1.DeleteOptions{
				GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
			}))
		}
		if pod.Spec.NodeName == "" || !p.reachable(pod.Spec.NodeName) || facts.PodReady(pod) {
			return nil
		}
		return c.setReady(ctx, pod, corev1.ConditionTrue, time.Now())
	})
}

// drawChange draws a change of one node.
func (c *crowd) drawChange(n *corev1.Node) *changed {
	ch := &changed{NodeChange: probes.NodeChange{Nodes: []string{n.Name}}}
	switch c.rng.IntN(10) {
	case 0, 1, 2:
		key := pick(c.rng, crowdKeys)
		ch.Labels = []probes.LabelEdit{{Key: key, Value: pick(c.rng, crowdLabels[key])}}
	case 3, 4:
		ch.Labels = []probes.LabelEdit{{Key: pick(c.rng, crowdKeys), Remove: true}}
	case 5, 6:
		t := pick(c.rng, crowdTaints)
		ch.Taints = []probes.TaintEdit{{Key: t.Key, Value: t.Value, Effect: t.Effect}}
	case 7, 8:
		ch.Taints = []probes.TaintEdit{drawUntaint(c.rng, n)}
	default:
		cordon := !n.Spec.Unschedulable
		ch.Cordon = &cordon
	}
	return ch
}

// drawUntaint removes a taint that somebody gave the node, where there is one.
func drawUntaint(rng *rand.Rand, n *corev1.Node) probes.TaintEdit {
	var given []corev1.Taint
	for _, t := range n.Spec.Taints {
		if !facts.ConditionTaint(t.Key) {
			given = append(given, t)
		}
	}
	if len(given) == 0 {
		given = crowdTaints
	}
	t := pick(rng, given)
	e := probes.TaintEdit{Key: t.Key, Effect: t.Effect, Remove: true}
	if chance(rng, 30) {
		e.Effect = "" // every one of the key
	}
	return e
}

// make changes the node as kubectl does.
func (ch *changed) make(n *corev1.Node) {
	for _, e := range ch.Labels {
		if e.Remove {
			delete(n.Labels, e.Key)
		} else {
			n.Labels[e.Key] = e.Value
		}
	}
	for _, e := range ch.Taints {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == e.Key && (e.Effect == "" || t.Effect == e.Effect)
		})
		if !e.Remove {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: e.Key, Value: e.Value, Effect: e.Effect})
		}
	}
	if ch.Cordon != nil {
		n.Spec.Unschedulable = *ch.Cordon
	}
}

// compareWhatIf lists what came out otherwise than was said, by DaemonSet and node.
func (c *crowd) compareWhatIf(before, after *facts.Snapshot, changes []*changed) (wrong []string) {
	desired := map[string]int{} // by DaemonSet, by how much it was said to change
	for _, ch := range changes {
		node := ch.Nodes[0]
		said := map[string][]report.WhatIfPod{}
		for _, d := range ch.said.DaemonSets {
			said[string(d.Name)] = d.Pods
			desired[string(d.Name)] += d.DesiredAfter - d.DesiredBefore
		}
		for _, ds := range after.DaemonSets {
			for _, what := range otherwise(before, after, ds, node, said[ds.Name]) {
				wrong = append(wrong, fmt.Sprintf("%s: %s on %s: %s; said was %+v", ch.String(), ds.Name, node, what, said[ds.Name]))
			}
		}
	}
	for _, ds := range after.DaemonSets {
		was := before.DaemonSets[slices.IndexFunc(before.DaemonSets, func(o *appsv1.DaemonSet) bool { return o.UID == ds.UID })]
		if said := int(was.Status.DesiredNumberScheduled) + desired[ds.Name]; said != int(ds.Status.DesiredNumberScheduled) {
			wrong = append(wrong, fmt.Sprintf("%s: DESIRED is %d, and was said to become %d, from %d", ds.Name, ds.Status.DesiredNumberScheduled, said, was.Status.DesiredNumberScheduled))
		}
		if d := differs(after, ds); d != "" {
			wrong = append(wrong, d)
		}
	}
	return wrong
}

// otherwise compares one DaemonSet on one node.
func otherwise(before, after *facts.Snapshot, ds *appsv1.DaemonSet, node string, said []report.WhatIfPod) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	live := func(s *facts.Snapshot) map[string]bool {
		pods := map[string]bool{}
		for _, p := range s.PodsOf(ds.UID) {
			if p.DeletionTimestamp == nil && facts.TargetNode(p) == node {
				pods[p.Name] = true
			}
		}
		return pods
	}
	was, is := live(before), live(after)
	come, gone := 0, 0
	for p := range is {
		if !was[p] {
			come++
		}
	}
	for p := range was {
		if !is[p] {
			gone++
		}
	}
	shouldRun, misscheduled := placed(after, ds, node)
	added, removed := 0, 0
	for _, p := range said {
		switch p.Effect {
		case report.PodAdded:
			added++
		case report.PodRemoved, report.PodEvictedOnce, report.PodEvictedOften:
			if p.After == 0 {
				removed++
			}
			if is[string(p.Pod)] != (p.After > 0) { // what goes later goes after the test
				say("%s is there %v", p.Pod, is[string(p.Pod)])
			}
		case report.PodMisscheduled:
			if !is[string(p.Pod)] || !misscheduled {
				say("%s is there %v, misscheduled %v", p.Pod, is[string(p.Pod)], misscheduled)
			}
		case report.PodRegained:
			if !is[string(p.Pod)] || !shouldRun {
				say("%s is there %v, and the node counts %v", p.Pod, is[string(p.Pod)], shouldRun)
			}
		case report.NodeDropped:
			if shouldRun || len(is) > 0 {
				say("the node counts %v and has %d Pods", shouldRun, len(is))
			}
		}
	}
	if come != added || gone != removed {
		say("%d Pods came and %d went", come, gone)
	}
	if should, mis := placed(before, ds, node); len(said) == 0 && mis != misscheduled && len(was) > 0 {
		say("it counted %v and was misscheduled %v, and now %v and %v", should, mis, shouldRun, misscheduled)
	}
	return wrong
}

// placed tells whether the DaemonSet's status counts the node, and whether as misscheduled.
func placed(s *facts.Snapshot, ds *appsv1.DaemonSet, node string) (shouldRun, misscheduled bool) {
	for _, n := range countersOf(s, ds).Nodes {
		if n.Node == node {
			return n.ShouldRun, !n.ShouldRun && len(n.Pods) > 0
		}
	}
	return false, false
}
