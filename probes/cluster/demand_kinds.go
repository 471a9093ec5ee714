package cluster

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// kindsWanted are the kinds that a rule would read now, sorted. Each costs the API
// server a list and a watch, so none is read because it might be needed one day.
func (s *Snapshot) kindsWanted(suspects bool) []Resource {
	var out []Resource
	if suspects {
		out = append(out, PodDisruptionBudgets) // few, and one without hope blocks every drain
	}
	if s.nodesFail() {
		// What else rests on those nodes: endpoints, and webhooks that answer from there.
		out = append(out, Services, EndpointSlices, ValidatingWebhooks, MutatingWebhooks)
	}
	if s.creationFails() {
		// Whatever may refuse a Pod.
		out = append(out, ResourceQuotas, Namespaces, PriorityClasses, ValidatingWebhooks, MutatingWebhooks)
		if s.webhookFails() {
			out = append(out, Services, EndpointSlices) // who should have answered, and from which node
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// oldTrouble is from when on a node that is down tells nothing new: what rested on it
// has gone elsewhere, and a watch on all endpoints for its sake would never end.
const oldTrouble = 12 * time.Hour

// nodesFail tells whether a node is not Ready now, and has not been so for long.
func (s *Snapshot) nodesFail() bool {
	return slices.ContainsFunc(s.Objects.Nodes, func(n *corev1.Node) bool {
		c := NodeCondition(n, corev1.NodeReady)
		if c == nil {
			return s.AsOf.Sub(n.CreationTimestamp.Time) < oldTrouble
		}
		return c.Status != corev1.ConditionTrue && s.AsOf.Sub(c.LastTransitionTime.Time) < oldTrouble
	})
}

// creationFails tells whether a workload has fewer Pods than it wants, or says that
// it cannot make them.
func (s *Snapshot) creationFails() bool {
	return slices.ContainsFunc(s.DaemonSets, func(d *appsv1.DaemonSet) bool {
		return d.Status.CurrentNumberScheduled < d.Status.DesiredNumberScheduled
	}) || slices.ContainsFunc(s.Deployments, func(d *appsv1.Deployment) bool {
		return d.Status.Replicas < replicasOf(d.Spec.Replicas) || slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		})
	}) || slices.ContainsFunc(s.ReplicaSets, func(r *appsv1.ReplicaSet) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
			return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
		})
	}) || slices.ContainsFunc(s.StatefulSets, func(d *appsv1.StatefulSet) bool {
		return d.Status.Replicas < replicasOf(d.Spec.Replicas)
	})
}

// webhookFails tells whether a Pod was not made because a webhook did not answer.
// Source: apiserver pkg/util/webhook/error.go, ErrCallingWebhook.
func (s *Snapshot) webhookFails() bool {
	return slices.ContainsFunc(s.Events, func(e *corev1.Event) bool {
		return strings.HasPrefix(e.Reason, "FailedCreate") && strings.Contains(e.Message, "failed calling webhook")
	})
}

// replicasOf is a spec's number of replicas; the API server's default is 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
