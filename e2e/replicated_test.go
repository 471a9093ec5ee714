package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
)

// replicas is what a Deployment or a StatefulSet on a stage looks like now.
type replicas struct {
	deploy *appsv1.Deployment
	sts    *appsv1.StatefulSet
	pods   []*corev1.Pod
}

func (r replicas) ready() (n int) {
	for _, p := range r.pods {
		if p.DeletionTimestamp == nil && facts.PodReady(p) {
			n++
		}
	}
	return n
}

// move is one step of a case: something is done, and then waited for.
type move struct {
	patch string                      // of the workload, "" for none
	act   func(*corev1.Pod, int) bool // which Pods get what is due, by their order
	unfit int                         // so many Ready Pods stop being Ready
	until func(replicas) bool
	// says is what kubectl must come to, so that the case is the one it claims to be.
	says answer
}

func all(*corev1.Pod, int) bool { return true }

// first lets the first so many Pods move.
func first(n int) func(*corev1.Pod, int) bool {
	return func(_ *corev1.Pod, i int) bool { return i < n }
}

func image(v int) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.example/app:v%d"}]}}}}`, v)
}

func observed(r replicas) bool {
	if r.deploy != nil {
		return r.deploy.Status.ObservedGeneration >= r.deploy.Generation
	}
	return r.sts.Status.ObservedGeneration >= r.sts.Generation
}

// counts waits for the numbers of the status: replicas, updated, ready, available.
func counts(total, updated, ready, available int32) func(replicas) bool {
	return func(r replicas) bool {
		if !observed(r) {
			return false
		}
		if r.deploy != nil {
			s := r.deploy.Status
			return s.Replicas == total && s.UpdatedReplicas == updated && s.ReadyReplicas == ready && s.AvailableReplicas == available
		}
		s := r.sts.Status
		return s.Replicas == total && s.UpdatedReplicas == updated && s.ReadyReplicas == ready && s.AvailableReplicas == available
	}
}

// progressing waits for the reason of the condition Progressing.
func progressing(reason string) func(replicas) bool {
	return func(r replicas) bool {
		for _, c := range r.deploy.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing {
				return observed(r) && c.Reason == reason
			}
		}
		return false
	}
}

// play makes a workload and takes it through the moves, with a comparison after each.
func (s *stage) playReplicas(ctx context.Context, compared *statuses, object any, moves []move) error {
	var err error
	switch o := object.(type) {
	case *appsv1.Deployment:
		_, err = s.client.AppsV1().Deployments(s.name).Create(ctx, o, metav1.CreateOptions{FieldManager: "helm"})
	case *appsv1.StatefulSet:
		_, err = s.client.AppsV1().StatefulSets(s.name).Create(ctx, o, metav1.CreateOptions{FieldManager: "helm"})
	}
	if err != nil {
		return err
	}
	_, deployment := object.(*appsv1.Deployment)
	for i, m := range moves {
		if m.patch != "" {
			if deployment {
				_, err = s.client.AppsV1().Deployments(s.name).Patch(ctx, "app", types.StrategicMergePatchType, []byte(m.patch), metav1.PatchOptions{FieldManager: "helm"})
			} else {
				_, err = s.client.AppsV1().StatefulSets(s.name).Patch(ctx, "app", types.StrategicMergePatchType, []byte(m.patch), metav1.PatchOptions{FieldManager: "helm"})
			}
			if err != nil {
				return err
			}
		}
		if err := s.spoil(ctx, m.unfit); err != nil {
			return err
		}
		snapshot, err := s.moveUntil(ctx, deployment, m)
		if err != nil {
			return fmt.Errorf("move %d: %w", i+1, err)
		}
		var said answer
		if deployment {
			said, _, err = kubectlSays("Deployment", snapshot.Deployments[0])
		} else {
			said, _, err = kubectlSays("StatefulSet", snapshot.StatefulSets[0])
		}
		if err != nil {
			return err
		}
		if said != m.says {
			return fmt.Errorf("move %d: kubectl %s, and the case is for %s", i+1, said, m.says)
		}
		if wrong := compared.compare(snapshot); len(wrong) > 0 {
			return fmt.Errorf("move %d: %s", i+1, strings.Join(wrong, "; "))
		}
	}
	return nil
}

// spoil takes the readiness of so many Pods.
func (s *stage) spoil(ctx context.Context, count int) error {
	p, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, pod := range p.pods {
		if count > 0 && facts.PodReady(pod) && pod.DeletionTimestamp == nil {
			count--
			// It had been well for a while.
			if err := s.setReady(ctx, pod, corev1.ConditionFalse, time.Now().Add(time.Minute)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveUntil lets Pods move until what the move waits for is so.
func (s *stage) moveUntil(ctx context.Context, deployment bool, m move) (*facts.Snapshot, error) {
	for {
		p, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		snapshot, err := s.replicated(ctx)
		if err != nil {
			return nil, err
		}
		r := replicas{pods: snapshot.Pods}
		if deployment {
			r.deploy = snapshot.Deployments[0]
		} else {
			r.sts = snapshot.StatefulSets[0]
		}
		if m.until(r) && p.awaits() == "" {
			return snapshot, nil
		}
		i := -1
		if _, err := s.act(ctx, p, time.Now(), func(pod *corev1.Pod) bool {
			if pod.DeletionTimestamp == nil && !facts.PodReady(pod) {
				i++
			}
			return m.act != nil && m.act(pod, i) && (pod.DeletionTimestamp != nil || !facts.PodReady(pod))
		}); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("what was waited for does not come: %+v", snapshotStatus(r))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func snapshotStatus(r replicas) any {
	if r.deploy != nil {
		return r.deploy.Status
	}
	return r.sts.Status
}

// replicated is what the program reads of the stage's Deployment or StatefulSet.
func (s *stage) replicated(ctx context.Context) (*facts.Snapshot, error) {
	var o facts.Objects
	apps := s.client.AppsV1()
	deployments, err := apps.Deployments(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		o.Deployments = append(o.Deployments, &deployments.Items[i])
	}
	sets, err := apps.StatefulSets(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		o.StatefulSets = append(o.StatefulSets, &sets.Items[i])
	}
	replicaSets, err := apps.ReplicaSets(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range replicaSets.Items {
		o.ReplicaSets = append(o.ReplicaSets, &replicaSets.Items[i])
	}
	revisions, err := apps.ControllerRevisions(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		o.ControllerRevisions = append(o.ControllerRevisions, &revisions.Items[i])
	}
	p, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	o.Pods = p.pods
	for _, n := range p.nodes {
		o.Nodes = append(o.Nodes, n)
	}
	return facts.New(o, facts.Meta{AsOf: time.Now(), PodScope: facts.PodScope{All: true}, Source: facts.Source{Type: "cluster", Version: "v1.37.2"}}), nil
}

// What the report says of Deployments and StatefulSets is what `kubectl rollout
// status` says, and where it is not, the reason is known.
func (c *cluster) comparesReplicas(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "app"}
	labels := map[string]string{"app": "app"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	three := int32(3)
	template := func(stage string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{ownNode: stage},
			Containers:   []corev1.Container{{Name: "app", Image: "registry.example/app:v1"}},
		}}
	}
	deployment := func(change func(*appsv1.Deployment)) func(string) any {
		return func(stage string) any {
			zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
			d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &three, Selector: selector, Template: template(stage),
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &zero, MaxSurge: &one}}}}
			if change != nil {
				change(d)
			}
			return d
		}
	}
	statefulSet := func(change func(*appsv1.StatefulSet)) func(string) any {
		return func(stage string) any {
			s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &three, Selector: selector, Template: template(stage), ServiceName: "app"}}
			if change != nil {
				change(s)
			}
			return s
		}
	}
	complete := move{act: all, until: counts(3, 3, 3, 3), says: done}
	tests := []struct {
		name   string
		object func(stage string) any
		moves  []move
	}{
		{"d-first", deployment(nil), []move{{until: counts(3, 3, 0, 0), says: waits}, {act: first(1), until: counts(3, 3, 1, 1), says: waits}, complete}},
		{"d-rolls", deployment(nil), []move{complete, {patch: image(2), until: counts(4, 1, 3, 3), says: waits}, {act: all, until: counts(3, 3, 3, 3), says: done}}},
		{"d-recreates", deployment(func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		}), []move{complete, {patch: image(2), until: counts(0, 0, 0, 0), says: waits}, {act: all, until: counts(3, 3, 3, 3), says: done}}},
		{"d-paused-midway", deployment(nil), []move{complete, {patch: image(2), until: counts(4, 1, 3, 3), says: waits}, {patch: `{"spec":{"paused":true}}`, until: observed, says: waits}}},
		{"d-paused-before", deployment(nil), []move{complete, {patch: `{"spec":{"paused":true}}`, until: observed, says: done}, {patch: image(2), until: counts(3, 0, 3, 3), says: waits}}},
		{"d-deadline", deployment(func(d *appsv1.Deployment) { one := int32(1); d.Spec.ProgressDeadlineSeconds = &one }),
			[]move{{until: progressing("ProgressDeadlineExceeded"), says: timedOut}, {act: all, until: counts(3, 3, 3, 3), says: done}}},
		{"d-deadline-roll", deployment(func(d *appsv1.Deployment) { one := int32(1); d.Spec.ProgressDeadlineSeconds = &one }),
			[]move{complete, {patch: image(2), until: progressing("ProgressDeadlineExceeded"), says: timedOut}}},
		{"d-unready-later", deployment(nil), []move{complete, {unfit: 1, until: counts(3, 3, 2, 2), says: waits}}},
		{"d-scaled-up", deployment(nil), []move{complete, {patch: `{"spec":{"replicas":5}}`, until: counts(5, 5, 3, 3), says: waits}, {act: all, until: counts(5, 5, 5, 5), says: done}}},
		{"d-scaled-to-0", deployment(nil), []move{complete, {patch: `{"spec":{"replicas":0}}`, act: all, until: counts(0, 0, 0, 0), says: done}}},
		{"d-soaks", deployment(func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 300 }), []move{{act: all, until: counts(3, 3, 3, 0), says: waits}}},
		{"s-first", statefulSet(nil), []move{{until: counts(1, 1, 0, 0), says: waits}, {act: all, until: counts(3, 3, 3, 3), says: done}}},
		{"s-rolls", statefulSet(nil), []move{complete,
			{patch: image(2), act: func(p *corev1.Pod, _ int) bool { return p.DeletionTimestamp != nil }, until: counts(3, 1, 2, 2), says: waits},
			{act: all, until: func(r replicas) bool {
				return counts(3, 3, 3, 3)(r) && r.sts.Status.CurrentRevision == r.sts.Status.UpdateRevision
			}, says: done}}},
		{"s-on-delete", statefulSet(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }),
			[]move{{act: all, until: counts(3, 3, 3, 3), says: refuses}, {patch: image(2), until: counts(3, 0, 3, 3), says: refuses}}},
		{"s-partition", statefulSet(nil), []move{complete,
			{patch: `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, until: observed, says: done},
			{patch: image(2), until: counts(3, 0, 3, 3), says: waits},
			{act: all, until: counts(3, 1, 3, 3), says: done}}},
		{"s-unready-later", statefulSet(nil), []move{complete, {unfit: 1, until: counts(3, 3, 2, 2), says: waits}}},
		{"s-parallel", statefulSet(func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }),
			[]move{{until: counts(3, 3, 0, 0), says: waits}, {act: first(2), until: func(r replicas) bool { return r.ready() >= 2 && counts(3, 3, int32(r.ready()), int32(r.ready()))(r) }, says: waits}}},
	}
	var compared statuses
	t.Cleanup(func() {
		for what, n := range compared.compared {
			t.Logf("%d times %s", n, what)
		}
	})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s := &stage{client: c.client, name: test.name, rng: rand.New(rand.NewPCG(1, 1))}
			if err := s.open(ctx, 2, nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.playReplicas(ctx, &compared, test.object(test.name), test.moves); err != nil {
				t.Error(err)
			}
		})
	}
}
