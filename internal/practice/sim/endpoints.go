package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// endpointSliceController keeps one slice for every Service with a selector: the
// Pods behind it, and which of them are ready.
type endpointSliceController struct {
	w     *World
	queue *workqueue
}

func newEndpointSliceController(w *World) *endpointSliceController {
	c := &endpointSliceController{w: w}
	c.queue = w.newQueue(50*time.Millisecond, c.sync)
	w.services.watch(func(_, new *corev1.Service) {
		if new != nil {
			c.queue.add(keyOf(new))
		}
	})
	w.pods.watch(func(old, new *corev1.Pod) {
		p := new
		if p == nil {
			p = old
		}
		for _, s := range w.services.all() {
			if s.Namespace == p.Namespace && selects(s, p) {
				c.queue.add(keyOf(s))
			}
		}
	})
	return c
}

func selects(s *corev1.Service, p *corev1.Pod) bool {
	return len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels))
}

func (c *endpointSliceController) sync(k string) {
	s := c.w.services.get(k)
	if s == nil || len(s.Spec.Selector) == 0 {
		return
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-" + templateHash([]byte(s.UID), nil), Namespace: s.Namespace,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, port := range s.Spec.Ports {
		name, protocol, number := port.Name, port.Protocol, port.TargetPort.IntVal
		want.Ports = append(want.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number})
	}
	for _, p := range c.w.pods.all() {
		if p.Namespace != s.Namespace || !selects(s, p) || p.Status.PodIP == "" || podTerminal(p) {
			continue
		}
		terminating := p.DeletionTimestamp != nil
		serving := podReady(p)
		ready := serving && !terminating
		node := p.Spec.NodeName
		want.Endpoints = append(want.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{p.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
			NodeName:   &node,
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		})
	}
	if c.w.slices.get(keyOf(want)) == nil {
		_, _ = c.w.slices.create(controllerManager, want)
		return
	}
	_, _ = c.w.slices.update(controllerManager, keyOf(want), func(e *discoveryv1.EndpointSlice) bool {
		if equality.Semantic.DeepEqual(e.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(e.Ports, want.Ports) {
			return false
		}
		e.Endpoints, e.Ports = want.Endpoints, want.Ports
		return true
	})
}
