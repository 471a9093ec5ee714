package e2e

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
)

// crowd is a stage with many DaemonSets of all shapes over nodes of all shapes.
type crowd struct {
	*stage
	seed uint64
	sets []string // names, in the order in which they were drawn
}

// handsFull is how many requests the crowd has in flight.
const handsFull = 8

// newCrowd makes the nodes and then the DaemonSets, and waits until the controllers
// have answered each of them once.
func newCrowd(ctx context.Context, client kubernetes.Interface, name string, seed uint64, nodes, sets int) (*crowd, error) {
	c := &crowd{stage: &stage{client: client, name: name, rng: rand.New(rand.NewPCG(seed, 0x63726f7764))}, seed: seed}
	if err := c.open(ctx, 0, nil, nil); err != nil {
		return nil, err
	}
	for range nodes {
		if err := c.addNode(ctx); err != nil {
			return nil, err
		}
	}
	// A third of them are not in order before the first Pod comes.
	for range nodes / 3 {
		if err := c.misfortune(ctx, pick(c.rng, c.nodes)); err != nil {
			return nil, err
		}
	}
	var drawn []*appsv1.DaemonSet
	for i := range sets {
		drawn = append(drawn, c.drawSet(fmt.Sprintf("ds-%03d", i+1)))
	}
	err := each(ctx, drawn, func(ds *appsv1.DaemonSet) error {
		_, err := client.AppsV1().DaemonSets(name).Create(ctx, ds, metav1.CreateOptions{FieldManager: "helm"})
		if err != nil {
			return fmt.Errorf("creating %s: %w", ds.Name, err)
		}
		return nil
	})
	for _, ds := range drawn {
		c.sets = append(c.sets, ds.Name)
	}
	if err != nil {
		return nil, err
	}
	return c, c.answered(ctx)
}

// each does one thing for each of many, a few at a time.
func each[T any](ctx context.Context, of []T, do func(T) error) error {
	errs := make([]error, len(of))
	workqueue.ParallelizeUntil(ctx, handsFull, len(of), func(i int) { errs[i] = do(of[i]) })
	return errors.Join(append(errs, ctx.Err())...)
}

// lot draws for one object by its name, so that the answer does not depend on which
// of them the controllers made first. It is from 0 to 99.
func (c *crowd) lot(names ...string) int {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, c.seed, strings.Join(names, "/"))
	return int(h.Sum64() >> 8 % 100)
}

// What nodes may have, and DaemonSets may ask for.
var (
	crowdLabels = map[string][]string{
		"pool":                   {"a", "b", "c", "d"},
		corev1.LabelTopologyZone: {"1", "2", "3"},
		"disk":                   {"ssd", "hdd", "ssd", ""},
		"gen":                    {"1", "2", "5", "9", "10", "old", "007"},
		"gpu":                    {"", "l4"},
	}
	crowdKeys   = []string{"pool", corev1.LabelTopologyZone, "disk", "gen", "gpu"}
	crowdTaints = []corev1.Taint{
		{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule},
		{Key: "dedicated", Value: "b", Effect: corev1.TaintEffectNoSchedule},
		{Key: "dedicated", Value: "b", Effect: corev1.TaintEffectNoExecute},
		{Key: "maintenance", Effect: corev1.TaintEffectNoExecute},
		{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule},
		{Key: "spot", Value: "true", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "node.example/agent-not-ready", Effect: corev1.TaintEffectNoSchedule},
	}
)

func (c *crowd) addNode(ctx context.Context) error {
	labels := map[string]string{}
	for _, key := range crowdKeys {
		if chance(c.rng, 75) {
			labels[key] = pick(c.rng, crowdLabels[key])
		}
	}
	var taints []corev1.Taint
	for range c.rng.IntN(12) / 8 {
		taints = append(taints, pick(c.rng, crowdTaints))
	}
	if err := c.join(ctx, labels, taints); err != nil {
		return err
	}
	node := c.nodes[len(c.nodes)-1]
	c.tell("%s joins: %v %v", node, labels, taints)
	if !chance(c.rng, 10) {
		return nil
	}
	c.tell("%s has room for 5 Pods", node)
	return c.editNodeStatus(ctx, node, func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("5")
	})
}

// misfortune is anything that may happen to a node while it exists.
func (c *crowd) misfortune(ctx context.Context, node string) error {
	switch c.rng.IntN(12) {
	case 0, 1:
		key := pick(c.rng, crowdKeys)
		return c.label(ctx, node, key, pick(c.rng, crowdLabels[key]))
	case 2:
		return c.unlabel(ctx, node, pick(c.rng, crowdKeys))
	case 3, 4:
		return c.taint(ctx, node, pick(c.rng, crowdTaints))
	case 5:
		return c.untaint(ctx, node)
	case 6:
		return c.cordon(ctx, node)
	case 7, 8:
		status := pick(c.rng, []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown})
		c.tell("%s Ready=%s", node, status)
		return c.turn(ctx, node, status)
	case 9, 10:
		kind := pick(c.rng, []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure})
		return c.condition(ctx, node, kind)
	default:
		return c.condition(ctx, node, corev1.NodeNetworkUnavailable)
	}
}

func (c *crowd) label(ctx context.Context, node, key, value string) error {
	c.tell("%s is labelled %s=%s", node, key, value)
	return c.editNode(ctx, node, func(n *corev1.Node) { n.Labels[key] = value }, c.client.CoreV1().Nodes().Update)
}

func (c *crowd) unlabel(ctx context.Context, node, key string) error {
	c.tell("%s loses the label %s", node, key)
	return c.editNode(ctx, node, func(n *corev1.Node) { delete(n.Labels, key) }, c.client.CoreV1().Nodes().Update)
}

func (c *crowd) taint(ctx context.Context, node string, t corev1.Taint) error {
	c.tell("%s is tainted %s", node, t.ToString())
	return c.editNode(ctx, node, func(n *corev1.Node) {
		if !slices.ContainsFunc(n.Spec.Taints, func(o corev1.Taint) bool { return t.MatchTaint(&o) }) {
			n.Spec.Taints = append(n.Spec.Taints, t)
		}
	}, c.client.CoreV1().Nodes().Update)
}

// untaint takes away a node's taints, but those that tell of its condition.
func (c *crowd) untaint(ctx context.Context, node string) error {
	c.tell("%s loses the taints that somebody gave it", node)
	return c.editNode(ctx, node, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return !facts.ConditionTaint(t.Key) })
	}, c.client.CoreV1().Nodes().Update)
}

// cordon cordons a node, or uncordons it.
func (c *crowd) cordon(ctx context.Context, node string) error {
	return c.editNode(ctx, node, func(n *corev1.Node) {
		n.Spec.Unschedulable = !n.Spec.Unschedulable
		c.tell("%s cordoned %v", node, n.Spec.Unschedulable)
	}, c.client.CoreV1().Nodes().Update)
}

// condition sets a condition that the node controller makes a taint of, or clears it.
func (c *crowd) condition(ctx context.Context, node string, kind corev1.NodeConditionType) error {
	return c.editNodeStatus(ctx, node, func(n *corev1.Node) {
		now, status := metav1.Now(), corev1.ConditionTrue
		if old := facts.NodeCondition(n, kind); old != nil && old.Status == corev1.ConditionTrue {
			status = corev1.ConditionFalse
		}
		n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now})
		c.tell("%s %s=%s", node, kind, status)
	})
}

// remove deletes a Node object under its Pods.
func (c *crowd) remove(ctx context.Context, node string) error {
	c.tell("%s is removed", node)
	c.nodes = slices.DeleteFunc(c.nodes, func(n string) bool { return n == node })
	return c.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
}

// answered waits until the controller has synced every DaemonSet in its present
// generation, and no Pod waits for the scheduler's answer.
func (c *crowd) answered(ctx context.Context) error {
	for {
		list, err := c.client.AppsV1().DaemonSets(c.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		waits := ""
		for i := range list.Items {
			if ds := &list.Items[i]; ds.Status.ObservedGeneration < ds.Generation {
				waits = fmt.Sprintf("the DaemonSet controller, for generation %d of %s", ds.Generation, ds.Name)
			}
		}
		p, err := c.look(ctx)
		if err != nil {
			return err
		}
		if waits == "" {
			waits = p.awaits()
		}
		if waits == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controllers have not answered: %w; still awaited: %s", ctx.Err(), waits)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sync makes the controller run a whole time over every DaemonSet as it is now.
func (c *crowd) sync(ctx context.Context) error {
	c.syncs++
	patch := fmt.Appendf(nil, `{"spec":{"revisionHistoryLimit":%d}}`, 20+c.syncs%2)
	sets := c.client.AppsV1().DaemonSets(c.name)
	wanted := make([]int64, len(c.sets))
	index := make([]int, len(c.sets))
	for i := range index {
		index[i] = i
	}
	if err := each(ctx, index, func(i int) error {
		ds, err := sets.Patch(ctx, c.sets[i], types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "settle"})
		if err == nil {
			wanted[i] = ds.Generation
		}
		return err
	}); err != nil {
		return err
	}
	for polls := 1; ; polls++ {
		list, err := sets.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		observed := map[string]int64{}
		for i := range list.Items {
			observed[list.Items[i].Name] = list.Items[i].Status.ObservedGeneration
		}
		var late []string
		for i, name := range c.sets {
			if observed[name] < wanted[i] {
				late = append(late, name)
			}
		}
		if len(late) == 0 {
			return nil
		}
		if polls%stuckAfter == 0 {
			if err := c.unstickSets(ctx, late); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the DaemonSet controller does not observe %v: %w", late, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unstickSets does for some DaemonSets what stage.unstick does for all Pods.
func (c *crowd) unstickSets(ctx context.Context, sets []string) error {
	p, err := c.look(ctx)
	if err != nil {
		return err
	}
	c.tell("the controller expects deletions of %v: what is on its way out ends", sets)
	_, err = c.act(ctx, p, time.Now(), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil && slices.Contains(sets, pod.Labels["app"])
	})
	return err
}

// snapshot is all that the program would read of the crowd.
func (c *crowd) snapshot(ctx context.Context) (*facts.Snapshot, error) {
	p, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	o := facts.Objects{Pods: p.pods}
	for _, n := range p.nodes {
		o.Nodes = append(o.Nodes, n)
	}
	sets, err := c.client.AppsV1().DaemonSets(c.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		o.DaemonSets = append(o.DaemonSets, &sets.Items[i])
	}
	revisions, err := c.client.AppsV1().ControllerRevisions(c.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		o.ControllerRevisions = append(o.ControllerRevisions, &revisions.Items[i])
	}
	return facts.New(o, facts.Meta{AsOf: time.Now(), PodScope: facts.PodScope{All: true}, Source: facts.Source{Type: "cluster", Version: "v1.37.2"}}), nil
}

// rest waits until the controllers are at rest: a whole sync of every DaemonSet
// between two looks that show the same nodes and Pods, so that the status is that
// of the nodes and Pods as they are.
func (c *crowd) rest(ctx context.Context) (*facts.Snapshot, error) {
	var last *facts.Snapshot
	for {
		if err := c.answered(ctx); err != nil {
			return nil, err
		}
		if err := c.sync(ctx); err != nil {
			return nil, err
		}
		now, err := c.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		if last != nil && slices.Equal(versions(last), versions(now)) {
			return now, nil
		}
		last = now
	}
}

// versions are what a look showed of nodes and Pods.
func versions(s *facts.Snapshot) []string {
	var out []string
	for _, n := range s.Nodes {
		out = append(out, string(n.UID)+n.ResourceVersion)
	}
	for _, p := range s.Pods {
		out = append(out, string(p.UID)+p.ResourceVersion)
	}
	return out
}

// drawSet draws a DaemonSet of any shape that the API server accepts.
func (c *crowd) drawSet(name string) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	grace := int64(30)
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			HostNetwork:                   chance(c.rng, 30),
			NodeSelector:                  map[string]string{},
			Containers:                    []corev1.Container{{Name: "agent", Image: "registry.example/" + name + ":v1"}},
		}},
	}}
	if chance(c.rng, 25) {
		ds.Spec.MinReadySeconds = int32(soak.Seconds())
	}
	c.drawStrategy(ds)
	spec := &ds.Spec.Template.Spec
	for range 1 + c.rng.IntN(2) {
		key := pick(c.rng, crowdKeys)
		spec.NodeSelector[key] = pick(c.rng, crowdLabels[key])
	}
	if chance(c.rng, 55) { // affinity alone, or beside one selector
		clear(spec.NodeSelector)
		if chance(c.rng, 30) {
			spec.NodeSelector["pool"] = pick(c.rng, crowdLabels["pool"])
		}
		var terms []corev1.NodeSelectorTerm
		for range 1 + c.rng.IntN(3) {
			terms = append(terms, c.drawTerm())
		}
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	switch {
	case chance(c.rng, 4):
		spec.NodeName = pick(c.rng, c.nodes)
	case chance(c.rng, 1):
		spec.NodeName = "no-such-node"
	}
	if chance(c.rng, 4) {
		spec.PriorityClassName = "no-such-class" // its Pods are refused
	}
	for range c.rng.IntN(3) {
		spec.Tolerations = append(spec.Tolerations, pick(c.rng, crowdTolerations))
	}
	return ds
}

// soak is the minReadySeconds of those that have any: longer than the test, so that
// a Pod that has just become Ready stays too young.
const soak = time.Hour

func (c *crowd) drawStrategy(ds *appsv1.DaemonSet) {
	zero, budget := numberOf("0"), numberOf(pick(c.rng, []string{"1", "2", "3", "30%"}))
	ds.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	switch c.rng.IntN(4) {
	case 0:
		ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	case 1:
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: budget, MaxUnavailable: zero}
	default:
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: budget}
	}
}

func (c *crowd) drawTerm() (term corev1.NodeSelectorTerm) {
	if chance(c.rng, 5) {
		return term // an empty term selects no node
	}
	if chance(c.rng, 12) {
		op := pick(c.rng, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn})
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: op, Values: []string{pick(c.rng, c.nodes)}}}
		if op == corev1.NodeSelectorOpIn {
			return term
		}
	}
	for range 1 + c.rng.IntN(2) {
		r := corev1.NodeSelectorRequirement{Key: pick(c.rng, crowdKeys)}
		r.Operator = pick(c.rng, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
			corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt})
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			for range 1 + c.rng.IntN(2) {
				r.Values = append(r.Values, pick(c.rng, crowdLabels[r.Key]))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			r.Key = "gen" // some of its values are no numbers
			r.Values = []string{strconv.Itoa(c.rng.IntN(10))}
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	return term
}

// crowdTolerations are the shapes in which tolerations come. The seconds are longer
// than the test: what is evicted and comes back for ever is another matter.
var crowdTolerations = []corev1.Toleration{
	{Operator: corev1.TolerationOpExists},
	{Key: "dedicated", Operator: corev1.TolerationOpExists},
	{Key: "dedicated", Value: "b"}, // Equal, every effect
	{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "b", Effect: corev1.TaintEffectNoSchedule},
	{Key: "maintenance", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds(86400)},
	{Key: "maintenance", Operator: corev1.TolerationOpEqual},
	{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds(86400)},
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds(300)},
	{Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: "node.example/agent-not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

func seconds(n int64) *int64 { return &n }

// gone forgives that what was to be changed is not there any more, or has just been
// changed by somebody else.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
