package api

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func exists(s *Server, name string) bool {
	_, err := s.Get(podsGVR, "default", name)
	return err == nil
}

func TestBoundPodsWaitForTheirKubelet(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	boundPod(t, s, "web")
	clock.advance(time.Minute)
	if err := s.Delete(podsGVR, "default", "web", nil); err != nil {
		t.Fatal(err)
	}
	p := get[*corev1.Pod](t, s, "default", "web")
	check := func(grace int64, at time.Duration) {
		t.Helper()
		p := get[*corev1.Pod](t, s, "default", "web")
		if *p.DeletionGracePeriodSeconds != grace || !p.DeletionTimestamp.Time.Equal(epoch.Add(at)) {
			t.Errorf("grace %d s, deletion at %v; want %d s, %v", *p.DeletionGracePeriodSeconds, p.DeletionTimestamp, grace, epoch.Add(at))
		}
	}
	check(30, 90*time.Second) // request time plus the grace period
	if p.Generation != 2 {
		t.Errorf("generation %d after the deletion was asked for, want 2", p.Generation)
	}
	version := s.ResourceVersion()
	if err := s.Delete(podsGVR, "default", "web", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](60)}); err != nil || s.ResourceVersion() != version {
		t.Errorf("a longer grace period was taken (%v)", err)
	}
	clock.advance(5 * time.Second)
	if err := s.Delete(podsGVR, "default", "web", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](10)}); err != nil {
		t.Fatal(err)
	}
	check(10, 70*time.Second)
	clock.advance(20 * time.Second)
	if err := s.Delete(podsGVR, "default", "web", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](5)}); err != nil {
		t.Fatal(err)
	}
	check(1, 85*time.Second) // not into the past
	if err := s.Delete(podsGVR, "default", "web", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](0)}); err != nil {
		t.Fatal(err)
	}
	if exists(s, "web") {
		t.Error("the Pod is still there after its kubelet deleted it")
	}
}

func TestPodsThatNoKubeletHoldsGoAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, pod("unbound"))
	failed := boundPod(t, s, "failed").DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	if _, err := s.UpdateStatus("kubelet", failed); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unbound", "failed"} {
		if err := s.Delete(podsGVR, "default", name, nil); err != nil || exists(s, name) {
			t.Errorf("%s: still there (%v)", name, err)
		}
	}
}

func TestPreconditionsGuardADeletion(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	p := create(t, s, pod("web"))
	for _, c := range []struct {
		name string
		*metav1.Preconditions
		conflict bool
	}{
		{"another UID", &metav1.Preconditions{UID: ptr(types.UID("other"))}, true},
		{"an older version", &metav1.Preconditions{ResourceVersion: ptr("1")}, true},
		{"both right", &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}, false},
	} {
		err := s.Delete(podsGVR, "default", "web", &metav1.DeleteOptions{Preconditions: c.Preconditions})
		if apierrors.IsConflict(err) != c.conflict || exists(s, "web") != c.conflict {
			t.Errorf("%s: %v, exists %v", c.name, err, exists(s, "web"))
		}
	}
}

func TestFinalizersHoldAnObject(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	p := pod("web")
	p.Finalizers = []string{"example.com/hold"}
	create(t, s, p)
	if err := s.Delete(podsGVR, "default", "web", nil); err != nil {
		t.Fatal(err)
	}
	held := get[*corev1.Pod](t, s, "default", "web")
	if held.DeletionTimestamp == nil {
		t.Fatal("no deletionTimestamp")
	}
	held = held.DeepCopy()
	held.Finalizers = nil
	if _, err := s.Update("tester", held); err != nil || exists(s, "web") {
		t.Errorf("still there without finalizers (%v)", err)
	}
}

// family creates a DaemonSet with a revision and two Pods, one of them bound.
func family(t *testing.T, s *Server) *appsv1.DaemonSet {
	t.Helper()
	ds := daemonSet("agent")
	ds.Namespace = "default"
	ds = create(t, s, ds)
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	create(t, s, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "agent-1", Namespace: "default", OwnerReferences: owner}, Revision: 1,
		Data: runtimeRaw(`{"spec":{}}`)})
	for _, name := range []string{"agent-a", "agent-b"} {
		p := pod(name)
		p.OwnerReferences = owner
		create(t, s, p)
	}
	if err := s.Bind("kube-scheduler", "default", "agent-a", "n1"); err != nil {
		t.Fatal(err)
	}
	create(t, s, pod("innocent"))
	return ds
}

func TestDependentsFollowTheirOwner(t *testing.T) {
	t.Parallel()
	revisions := func(s *Server) int { return len(ListOf[*appsv1.ControllerRevision](s, "default", nil)) }
	daemonSets := func(s *Server) int { return len(ListOf[*appsv1.DaemonSet](s, "default", nil)) }
	remove := func(t *testing.T, s *Server, policy metav1.DeletionPropagation) {
		t.Helper()
		if err := s.Delete(daemonSetsGVR, "default", "agent", &metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		family(t, s)
		remove(t, s, metav1.DeletePropagationBackground)
		if daemonSets(s) != 0 || revisions(s) != 0 || exists(s, "agent-b") {
			t.Error("the DaemonSet, its revision or its unbound Pod is left")
		}
		if get[*corev1.Pod](t, s, "default", "agent-a").DeletionTimestamp == nil {
			t.Error("the bound Pod is not being deleted")
		}
		if get[*corev1.Pod](t, s, "default", "innocent").DeletionTimestamp != nil {
			t.Error("a Pod without that owner was deleted")
		}
	})
	t.Run("in the foreground the owner goes last", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		family(t, s)
		remove(t, s, metav1.DeletePropagationForeground)
		if get[*appsv1.DaemonSet](t, s, "default", "agent").DeletionTimestamp == nil {
			t.Fatal("the DaemonSet is not marked")
		}
		if err := s.Delete(podsGVR, "default", "agent-a", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](0)}); err != nil {
			t.Fatal(err)
		}
		if daemonSets(s) != 0 || revisions(s) != 0 {
			t.Error("something is left after the last Pod went")
		}
	})
	t.Run("orphans stay and lose the reference", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		family(t, s)
		remove(t, s, metav1.DeletePropagationOrphan)
		if daemonSets(s) != 0 || revisions(s) != 1 {
			t.Error("wanted no DaemonSet and its revision")
		}
		if p := get[*corev1.Pod](t, s, "default", "agent-a"); p.DeletionTimestamp != nil || len(p.OwnerReferences) != 0 {
			t.Errorf("deletion %v, owners %v", p.DeletionTimestamp, p.OwnerReferences)
		}
	})
	t.Run("a second owner keeps a dependent", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		family(t, s)
		config := create(t, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "default"}})
		p := get[*corev1.Pod](t, s, "default", "agent-a").DeepCopy()
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: config.UID})
		if _, err := s.Update("tester", p); err != nil {
			t.Fatal(err)
		}
		remove(t, s, metav1.DeletePropagationBackground)
		if p := get[*corev1.Pod](t, s, "default", "agent-a"); p.DeletionTimestamp != nil || len(p.OwnerReferences) != 1 {
			t.Errorf("deletion %v, owners %v", p.DeletionTimestamp, p.OwnerReferences)
		}
	})
}

func TestANamespaceGoesWhenItsPodsHaveGone(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	create(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	p := pod("web")
	p.Namespace = "team"
	create(t, s, p)
	if err := s.Bind("kube-scheduler", "team", "web", "n1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(namespaces, "", "team", nil); err != nil {
		t.Fatal(err)
	}
	if ns := get[*corev1.Namespace](t, s, "", "team"); ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("phase %s", ns.Status.Phase)
	}
	late := pod("late")
	late.Namespace = "team"
	if _, err := s.Create("tester", late); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("creating in a terminating namespace: %v", err)
	}
	if err := s.Delete(podsGVR, "team", "web", &metav1.DeleteOptions{GracePeriodSeconds: ptr[int64](0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(namespaces, "", "team"); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is left: %v", err)
	}
}

func TestEvictionAsksTheDisruptionBudget(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	for _, name := range []string{"a", "b"} {
		p := boundPod(t, s, name).DeepCopy()
		p.Status.Phase = corev1.PodRunning
		if _, err := s.UpdateStatus("kubelet", p); err != nil {
			t.Fatal(err)
		}
	}
	budget := create(t, s, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
	budget = budget.DeepCopy()
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1}
	if _, err := s.UpdateStatus("kube-controller-manager", budget); err != nil {
		t.Fatal(err)
	}
	if err := s.Evict("default", "a", nil); err != nil {
		t.Fatalf("the first: %v", err)
	}
	if get[*corev1.Pod](t, s, "default", "a").DeletionTimestamp == nil {
		t.Error("the evicted Pod is not being deleted")
	}
	err := s.Evict("default", "b", nil)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("the second: %v", err)
	}
	if get[*corev1.Pod](t, s, "default", "b").DeletionTimestamp != nil {
		t.Error("the refused Pod is being deleted")
	}
}
