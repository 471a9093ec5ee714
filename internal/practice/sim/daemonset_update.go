package sim

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rollingUpdate replaces old Pods as far as the strategy allows, in random node
// order. It goes by the conditions of Pods; it never looks at a node's readiness.
// Source: pkg/controller/daemon/update.go, rollingUpdate.
func (s *daemonSync) rollingUpdate() {
	pods := s.podsByTarget(false)
	desired := 0
	runs := map[string]bool{}
	for _, n := range s.w.nodes.all() {
		if shouldRun, _ := s.place.on(n); shouldRun {
			desired++
			runs[n.Name] = true
			if _, known := pods[n.Name]; !known {
				pods[n.Name] = nil
			}
		}
	}
	surge, unavailable := s.budget(desired)
	order := slices.Sorted(maps.Keys(pods))
	s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if surge > 0 {
		s.surge(order, pods, runs, surge, desired)
		return
	}
	s.replace(order, pods, unavailable)
}

// budget resolves maxSurge and maxUnavailable; percentages of both round up.
func (s *daemonSync) budget(desired int) (surge, unavailable int) {
	r := s.ds.Spec.UpdateStrategy.RollingUpdate
	if r == nil {
		return 0, 1
	}
	if r.MaxSurge != nil {
		surge, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, desired, true)
	}
	if r.MaxUnavailable != nil {
		unavailable, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, desired, true)
	}
	if desired > 0 && surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// surges tells whether a node may have two Pods for a while.
func (s *daemonSync) surges() bool {
	if s.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return false
	}
	surge, _ := s.budget(1)
	return surge > 0
}

// pair finds the live new and old Pod of a node; ok is false where there is more
// than one of either.
func (s *daemonSync) pair(on []*corev1.Pod) (new, old *corev1.Pod, ok bool) {
	for _, p := range live(on) {
		kind := &old
		if s.updated(p) {
			kind = &new
		}
		if *kind != nil {
			return nil, nil, false
		}
		*kind = p
	}
	return new, old, true
}

// replace deletes old Pods first; manage creates the new ones when they are gone.
// Old Pods that are not available go regardless of the budget, and use it up.
func (s *daemonSync) replace(order []string, pods map[string][]*corev1.Pod, budget int) {
	used := 0
	var must, may []*corev1.Pod
	for _, node := range order {
		new, old, ok := s.pair(pods[node])
		switch {
		case !ok, (new == nil) == (old == nil):
			used++ // left to manage; a node with a Terminating Pod only is one of these
		case new != nil:
			if !s.available(new) {
				used++
			}
		case !s.available(old):
			must = append(must, old)
			used++
		case used < budget:
			may = append(may, old)
		}
	}
	rest := min(max(budget-used, 0), len(may))
	s.apply(append(must, may[:rest]...), nil)
}

// surge creates new Pods beside old ones, and deletes an old one when its new one
// is available.
func (s *daemonSync) surge(order []string, pods map[string][]*corev1.Pod, runs map[string]bool, limit, desired int) {
	used, available := 0, 0
	var remove, leaving []*corev1.Pod
	var allowed, candidates []string
	for _, node := range order {
		new, old, ok := s.pair(pods[node])
		if !ok {
			used++
			continue
		}
		if old != nil && s.available(old) || old == nil && new != nil && s.available(new) {
			available++
		}
		switch {
		case old == nil: // manage's business
		case new != nil && s.available(new):
			remove = append(remove, old)
		case new != nil:
			used++
		case !s.available(old) && runs[node]:
			allowed = append(allowed, node)
		case !s.available(old):
			remove = append(remove, old)
		case !runs[node]:
			leaving = append(leaving, old)
		case used < limit:
			candidates = append(candidates, node)
		}
	}
	// Pods of nodes that the template no longer selects go only as new ones elsewhere take over.
	if n := min(available-desired, len(leaving)); n > 0 {
		remove = append(remove, leaving[:n]...)
	}
	rest := min(max(limit-used, 0), len(candidates))
	s.apply(remove, append(allowed, candidates[:rest]...))
}

func (s *daemonSync) available(p *corev1.Pod) bool {
	return podAvailable(p, s.ds.Spec.MinReadySeconds, s.w.now())
}
