package cluster_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func TestKindsAreDemandedWhileARuleWouldReadThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	node := func(ready corev1.ConditionStatus, since time.Duration) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-" + string(ready)}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-since))}}}}
	}
	two, none := int32(2), int32(0)
	daemons := func(desired, current, ready int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "ds"},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: desired, CurrentNumberScheduled: current, UpdatedNumberScheduled: desired, NumberReady: ready}}
	}
	event := func(reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: reason}, Reason: reason, Message: message}
	}
	stake := []cluster.Resource{cluster.EndpointSlices, cluster.MutatingWebhooks, cluster.Services, cluster.ValidatingWebhooks}
	refusals := []cluster.Resource{cluster.MutatingWebhooks, cluster.Namespaces, cluster.PriorityClasses, cluster.ResourceQuotas, cluster.ValidatingWebhooks}
	join := func(lists ...[]cluster.Resource) []cluster.Resource {
		out := slices.Concat(lists...)
		slices.Sort(out)
		return slices.Compact(out)
	}
	budgets := []cluster.Resource{cluster.PodDisruptionBudgets}
	for name, c := range map[string]struct {
		objects cluster.Objects
		want    []cluster.Resource
	}{
		"nothing is wrong": {cluster.Objects{Nodes: []*corev1.Node{node("True", 48*time.Hour)}, DaemonSets: []*appsv1.DaemonSet{daemons(2, 2, 2)}}, nil},
		"a node is down": {cluster.Objects{Nodes: []*corev1.Node{node("True", 48*time.Hour), node("Unknown", time.Hour)},
			DaemonSets: []*appsv1.DaemonSet{daemons(2, 2, 2)}}, stake},
		"a node is down, for days": {cluster.Objects{Nodes: []*corev1.Node{node("True", 48*time.Hour), node("Unknown", 48*time.Hour)},
			DaemonSets: []*appsv1.DaemonSet{daemons(2, 2, 2)}}, nil},
		"a node has no condition yet": {cluster.Objects{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.NewTime(now)}}}}, stake},
		"Pods are unready":            {cluster.Objects{DaemonSets: []*appsv1.DaemonSet{daemons(2, 2, 1)}}, budgets},
		"a DaemonSet lacks Pods":      {cluster.Objects{DaemonSets: []*appsv1.DaemonSet{daemons(2, 1, 1)}}, join(budgets, refusals)},
		"a webhook does not answer": {cluster.Objects{DaemonSets: []*appsv1.DaemonSet{daemons(2, 1, 1)}, Events: []*corev1.Event{
			event("FailedCreate", `Error creating: Internal error occurred: failed calling webhook "pods.example.com": timeout`)}}, join(budgets, refusals, stake)},
		"an event of a webhook, and every Pod is there": {cluster.Objects{Events: []*corev1.Event{event("FailedCreate", `failed calling webhook "x"`)}}, nil},
		"a ReplicaSet cannot make Pods": {cluster.Objects{ReplicaSets: []*appsv1.ReplicaSet{{Status: appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{
			{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}}}}}, refusals},
		"a Deployment says so itself": {cluster.Objects{Deployments: []*appsv1.Deployment{{Spec: appsv1.DeploymentSpec{Replicas: &none}, Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue}}}}}}, refusals},
		"a StatefulSet is one short": {cluster.Objects{StatefulSets: []*appsv1.StatefulSet{{Spec: appsv1.StatefulSetSpec{Replicas: &two},
			Status: appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}}}}, join(budgets, refusals)},
	} {
		if got := cluster.New(c.objects, cluster.Meta{AsOf: now}).Demand().Kinds; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
