package sim

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The leader election of control plane components, at its defaults
// (component-base/config/v1alpha1/defaults.go).
const (
	leaderLease = 15 * time.Second
	leaderRetry = 2 * time.Second
)

// lead keeps the leader's Lease of a control plane component fresh. A cluster
// without control plane nodes is taken for one whose control plane is hosted
// elsewhere, and whose leaders do not show.
func (w *World) lead(component string) {
	if w.leaderHost() == "" {
		return
	}
	rng := w.random(component)
	w.every(between(rng, 0, leaderRetry), constantly(leaderRetry), func() {
		k, now := key(metav1.NamespaceSystem, component), metav1.NewMicroTime(w.now())
		if w.leases.get(k) == nil {
			holder := fmt.Sprintf("%s_%x", w.leaderHost(), rng.Uint64())
			seconds, transitions := int32(leaderLease/time.Second), int32(0)
			_, _ = w.leases.create(component, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: component},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions,
				},
			})
			return
		}
		_, _ = w.leases.update(component, k, func(l *coordinationv1.Lease) bool {
			l.Spec.RenewTime = &now
			return true
		})
	})
}

// leaderHost is the first control plane node, on which the leaders run; "" without
// one.
func (w *World) leaderHost() string {
	for _, n := range w.nodes.all() {
		if _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; ok {
			return n.Name
		}
	}
	return ""
}

// renewLease is a kubelet's heartbeat.
func (k *kubelet) renewLease() {
	if !k.reaches() {
		return
	}
	w, now := k.w, metav1.NewMicroTime(k.now())
	lk := key(corev1.NamespaceNodeLease, k.name)
	if w.leases.get(lk) == nil {
		n := w.nodes.get(k.name)
		seconds := int32(40)
		_, _ = w.leases.create("kubelet", &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: corev1.NamespaceNodeLease, Name: k.name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &k.name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		})
		return
	}
	_, _ = w.leases.update("kubelet", lk, func(l *coordinationv1.Lease) bool {
		l.Spec.RenewTime = &now
		return true
	})
}
