package files

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Serving generates a Service and its EndpointSlice: an endpoint for each Pod that
// the selector means, removals considered. Defaults: namespace default, port 80,
// created 500 hours ago.
type Serving struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Selector  map[string]string `json:"selector"`
	Port      int32             `json:"port"`
	ClusterIP string            `json:"clusterIP"`
	CreatedAt string            `json:"createdAt"`
	// Changed is when the endpoints last changed.
	Changed string `json:"changed"`
}

func (s *Serving) fill() {
	s.Namespace = or(s.Namespace, metav1.NamespaceDefault)
	s.ClusterIP = or(s.ClusterIP, "10.96.7.31")
	s.CreatedAt = or(s.CreatedAt, "-500h")
	if s.Port == 0 {
		s.Port = 80
	}
}

func (s *Serving) slice() string { return s.Name + "-" + suffix(5, s.Namespace, s.Name, "slice") }

func (w *world) serve(s *Serving) error {
	created, err := w.c.when(s.CreatedAt)
	if err != nil {
		return fmt.Errorf("createdAt: %w", err)
	}
	changed := created
	if s.Changed != "" {
		if changed, err = w.c.when(s.Changed); err != nil {
			return fmt.Errorf("changed: %w", err)
		}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels, CreationTimestamp: metav1.NewTime(created)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: s.ClusterIP, ClusterIPs: []string{s.ClusterIP}, Selector: s.Selector,
			Ports: []corev1.ServicePort{{Name: "main", Port: s.Port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(s.Port)}},
		},
	}
	w.add("Service", cluster.Services, service)
	name, protocol := "main", corev1.ProtocolTCP
	w.add("EndpointSlice", cluster.EndpointSlices, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.slice(), CreationTimestamp: metav1.NewTime(created),
			Labels:          map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
			Annotations:     map[string]string{corev1.EndpointsLastChangeTriggerTime: changed.UTC().Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &s.Port, Protocol: &protocol}},
	})
	return nil
}

// countServing fills in the endpoints as the controller would.
// Source: staging/src/k8s.io/endpointslice/reconciler.go, reconcile, and utils.go, podToEndpoint.
func (w *world) countServing(s *Serving) {
	e := w.byKey[identity{string(cluster.EndpointSlices), s.Namespace, s.slice()}]
	if e == nil || e.object == nil || len(s.Selector) == 0 {
		return
	}
	slice, ok := e.object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	selector := labels.SelectorFromSet(s.Selector)
	for _, o := range w.order {
		p, ok := o.object.(*corev1.Pod)
		if !ok || p.Namespace != s.Namespace || p.Status.PodIP == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		serving, going := cluster.PodReady(p), p.DeletionTimestamp != nil
		ready, node := serving && !going, p.Spec.NodeName
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Status.PodIP}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &going},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		})
	}
}
