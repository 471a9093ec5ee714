package api

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bootstrap creates what an API server brings by itself.
func (s *Server) bootstrap() {
	for _, name := range []string{metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem} {
		s.mustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	lower := corev1.PreemptLowerPriority
	s.mustCreate(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: 2_000_000_000,
		PreemptionPolicy: &lower, Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."})
	s.mustCreate(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: 2_000_001_000,
		PreemptionPolicy: &lower, Description: "Used for system critical pods that must not be moved from their current node."})
}

func (s *Server) mustCreate(o object) {
	if _, err := s.Create("kube-apiserver", o); err != nil {
		panic(err) // the objects above are constant and valid
	}
}
