package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
)

var eventsResource = corev1.SchemeGroupVersion.WithResource("events")

// recorder writes the events of one component as client-go's legacy recorder
// does: the correlator is client-go's own, so repeats are counted, many alike are
// combined, and more than it allows are dropped without a trace.
type recorder struct {
	w          *World
	source     corev1.EventSource
	correlator *record.EventCorrelator
	last       time.Time
}

func (w *World) newRecorder(component, host string) *recorder {
	r := &recorder{w: w, source: corev1.EventSource{Component: component, Host: host}}
	r.correlator = record.NewEventCorrelator(r)
	return r
}

// Now is the cluster's time, but never twice the same: events are named by the
// nanosecond that they were made in.
func (r *recorder) Now() time.Time {
	now := r.w.now()
	if !now.After(r.last) {
		now = r.last.Add(time.Nanosecond)
	}
	r.last = now
	return now
}

// Since is how long ago t was.
func (r *recorder) Since(t time.Time) time.Duration { return r.w.clock.Since(t) }

// event records what happened to an object.
func (r *recorder) event(about corev1.ObjectReference, kind, reason, format string, args ...any) {
	r.send(r.make(about, kind, reason, format, args...))
}

// make is the event as it would be sent now.
func (r *recorder) make(about corev1.ObjectReference, kind, reason, format string, args ...any) *corev1.Event {
	now := metav1.NewTime(r.Now())
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano()), Namespace: namespace},
		InvolvedObject:      about,
		Reason:              reason,
		Message:             fmt.Sprintf(format, args...),
		Source:              r.source,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
		Type:                kind,
		ReportingController: r.source.Component,
		ReportingInstance:   r.source.Host,
	}
}

// send passes an event through the correlator and writes what is left of it.
func (r *recorder) send(e *corev1.Event) {
	result, err := r.correlator.EventCorrelate(e)
	if err != nil || result.Skip {
		return
	}
	manager := r.source.Component
	if manager != "kubelet" {
		manager = "kube-controller-manager"
	}
	var stored *corev1.Event
	if result.Event.Count > 1 {
		stored = r.repeat(manager, result.Event)
	}
	if stored == nil {
		result.Event.ResourceVersion = ""
		o, err := r.w.store.Create(manager, result.Event)
		if err != nil {
			return
		}
		stored = o.(*corev1.Event)
	}
	r.w.wrote(revisionOf(stored))
	r.correlator.UpdateState(stored)
}

// repeat raises the count of an event that was written before; nil where it has
// expired meanwhile.
func (r *recorder) repeat(manager string, e *corev1.Event) *corev1.Event {
	old, err := r.w.store.Get(eventsResource, e.Namespace, e.Name)
	if err != nil {
		return nil
	}
	c := old.(*corev1.Event).DeepCopy()
	c.Count, c.LastTimestamp, c.Message = e.Count, e.LastTimestamp, e.Message
	o, err := r.w.store.Update(manager, c)
	if err != nil {
		return nil
	}
	return o.(*corev1.Event)
}

func refNode(n *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
}

func refPod(p *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}
}

func refContainer(p *corev1.Pod, init bool, container string) corev1.ObjectReference {
	ref := refPod(p)
	list := "containers"
	if init {
		list = "initContainers"
	}
	ref.FieldPath = fmt.Sprintf("spec.%s{%s}", list, container)
	return ref
}

func refApps(kind string, o metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(),
	}
}
