package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// Grace is node-monitor-grace-period, and how it is known: as the operator gave
// it, read off nodes that went Unknown, or the default for the server's version,
// 50 s from 1.32 on and 40 s before. Only the flags of the running controller
// manager are authoritative, and managed clusters change them.
// Source: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go.
func (s *Snapshot) Grace() (grace time.Duration, source string) {
	if s.NodeGrace > 0 {
		return s.NodeGrace, "as given"
	}
	if g, ok := s.inferredGrace(); ok {
		return g, "inferred from Leases and conditions"
	}
	if v, err := version.ParseGeneric(s.Source.Version); err == nil && v.LessThan(version.MustParseGeneric("1.32.0")) {
		return 40 * time.Second, "Kubernetes' default"
	}
	return 50 * time.Second, "Kubernetes' default"
}

// inferredGrace reads it off nodes whose last heartbeat and whose transition to
// Unknown are both known: they lie the grace period and at most some 10 s apart.
// One node proves nothing, and several must agree.
func (s *Snapshot) inferredGrace() (time.Duration, bool) {
	var gaps []time.Duration
	for _, n := range s.Objects.Nodes {
		c, renewed := NodeCondition(n, corev1.NodeReady), LeaseRenewed(s.NodeLease(n.Name))
		if c == nil || c.Status != corev1.ConditionUnknown || renewed.IsZero() || s.AsOf.Sub(c.LastTransitionTime.Time) > remembered {
			continue
		}
		if gap := c.LastTransitionTime.Sub(renewed); gap >= 5*time.Second && gap < 10*time.Minute {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) < 2 {
		return 0, false
	}
	slices.Sort(gaps)
	g := gaps[0].Truncate(5 * time.Second)
	return g, g >= 5*time.Second && gaps[len(gaps)-1]-gaps[0] <= 15*time.Second
}
