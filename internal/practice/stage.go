package practice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// history is how long before Epoch a cluster was installed.
const history = 46 * 24 * time.Hour

// stage builds a cluster: its past is lived through, then what is to come is laid
// out. Its methods stop at the first error, which build returns.
type stage struct {
	clock *sim.Clock
	store *api.Server
	world *sim.World
	due   []event
	err   error
}

func newStage(seed int64, programs map[string]sim.Program) *stage {
	s := &stage{clock: sim.NewClock(Epoch.Add(-history))}
	s.store = api.New(s.clock.Now, seed)
	all := basePrograms()
	maps.Copy(all, programs)
	s.world = sim.New(s.clock, s.store, sim.Options{Seed: seed, Programs: all})
	return s
}

// until lets time pass up to t.
func (s *stage) until(t time.Time) { s.world.Step(t) }

// before lets time pass until d before Epoch.
func (s *stage) before(d time.Duration) { s.until(Epoch.Add(-d)) }

// later plans something for d after Epoch.
func (s *stage) later(d time.Duration, do func() error) {
	s.due = append(s.due, event{Epoch.Add(d), do})
	slices.SortStableFunc(s.due, func(a, b event) int { return a.at.Compare(b.at) })
}

// create stores objects as that field manager.
func (s *stage) create(manager string, objects ...runtime.Object) {
	for _, o := range objects {
		if s.err != nil {
			return
		}
		if _, err := s.store.Create(manager, o); err != nil {
			s.err = fmt.Errorf("creating %T: %w", o, err)
		}
	}
}

// editDaemonSet changes one as that field manager. Where somebody else writes at
// the same moment it is done again on what they wrote.
func (s *stage) editDaemonSet(manager, namespace, name string, edit func(*appsv1.DaemonSet)) error {
	for {
		o, err := s.store.Get(appsv1.SchemeGroupVersion.WithResource("daemonsets"), namespace, name)
		if err != nil {
			return err
		}
		ds := o.(*appsv1.DaemonSet).DeepCopy()
		edit(ds)
		if _, err = s.store.Update(manager, ds); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// upgrade plans a change of a DaemonSet; whoever plays may have deleted it by then.
func (s *stage) upgrade(at time.Duration, manager, namespace, name string, edit func(*appsv1.DaemonSet)) {
	s.later(at, func() error {
		err := s.editDaemonSet(manager, namespace, name, edit)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// change is editDaemonSet while the past is being told.
func (s *stage) change(manager, namespace, name string, edit func(*appsv1.DaemonSet)) {
	if s.err == nil {
		s.err = s.editDaemonSet(manager, namespace, name, edit)
	}
}

// relabel changes a node's labels as that field manager.
func (s *stage) relabel(manager, node string, edit func(labels map[string]string)) {
	if s.err != nil {
		return
	}
	o, err := s.store.Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", node)
	if err != nil {
		s.err = err
		return
	}
	n := o.(*corev1.Node).DeepCopy()
	edit(n.Labels)
	_, s.err = s.store.Update(manager, n)
}

// forceDelete takes Pods of a node away at once, as an operator does when no
// kubelet answers.
func (s *stage) forceDelete(node, namespace string, labels map[string]string) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	now := int64(0)
	for _, p := range s.pods(namespace, labels) {
		if p.Spec.NodeName == node && s.err == nil {
			s.err = s.store.Delete(pods, namespace, p.Name, &metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
	}
}

// lose takes nodes down so long before Epoch, and lets the control plane react:
// their Pods are evicted after five minutes and stay Terminating.
func (s *stage) lose(before time.Duration, nodes ...string) {
	s.before(before + 15*time.Second)
	s.world.Start()
	s.before(before)
	for _, n := range nodes {
		s.world.Host(n).Die()
	}
	s.before(before - 7*time.Minute)
	s.world.Stop()
}

// wake begins the heartbeats of the present, among the noise of an ordinary night:
// a probe that failed now and then, and kubelets that complain about the nameservers
// of their host.
func (s *stage) wake() {
	s.before(41 * time.Minute)
	for _, p := range s.pods("shop", labelled("catalog"))[:1] {
		s.world.Host(p.Spec.NodeName).Event(p, corev1.EventTypeWarning, "Unhealthy",
			"Readiness probe failed: Get \"http://"+p.Status.PodIP+":8080/healthz\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
	}
	complain := func() {
		for _, p := range s.pods("shop", labelled("frontend")) {
			s.world.Host(p.Spec.NodeName).Event(p, corev1.EventTypeWarning, "DNSConfigForming",
				"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.20.0.2 10.20.1.2 10.20.2.2")
		}
	}
	complain()
	s.before(4 * time.Minute)
	complain()
	s.before(100 * time.Second)
	s.world.Start()
	for at := 75 * time.Second; at < time.Hour; at += 4 * time.Minute {
		s.later(at, func() error { complain(); return nil })
	}
}

// pods are those with the labels.
func (s *stage) pods(namespace string, labels map[string]string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range s.store.List(corev1.SchemeGroupVersion.WithResource("pods"), namespace, metaSelector(labels)) {
		if p := o.(*corev1.Pod); p.Spec.NodeName != "" {
			out = append(out, p)
		}
	}
	return out
}

func image(ds *appsv1.DaemonSet, container, to string) {
	spec := &ds.Spec.Template.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				list[i].Image = to
			}
		}
	}
}

func env(ds *appsv1.DaemonSet, name, value string) {
	c := &ds.Spec.Template.Spec.Containers[0]
	for i := range c.Env {
		if c.Env[i].Name == name {
			c.Env[i].Value = value
			return
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
}
