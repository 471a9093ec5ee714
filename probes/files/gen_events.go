package files

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// eventTTL is --event-ttl of the API server.
const eventTTL = time.Hour

// Occurrences are events, compactly.
type Occurrences struct {
	Events []Occurrence `json:"events"`
}

// Occurrence is one event.
type Occurrence struct {
	About   string `json:"about"` // Kind/namespace/name, or Kind/name
	Type    string `json:"type"`  // default Warning
	Reason  string `json:"reason"`
	Message string `json:"message"`
	From    string `json:"from"` // the component, default kubelet
	Host    string `json:"host"` // the node, for the kubelet's
	At      string `json:"at"`
	Last    string `json:"last"` // default At
	Count   int32  `json:"count"`
	Field   string `json:"field"` // fieldPath, as spec.containers{agent}
}

func (w *world) occur(list Occurrences) error {
	for _, o := range list.Events {
		at, err := w.c.when(o.At)
		if err != nil {
			return fmt.Errorf("Occurrences: %s on %s: %w", o.Reason, o.About, err)
		}
		last := at
		if o.Last != "" {
			if last, err = w.c.when(o.Last); err != nil {
				return fmt.Errorf("Occurrences: %s on %s: %w", o.Reason, o.About, err)
			}
		}
		parts := strings.Split(o.About, "/")
		ref := corev1.ObjectReference{Kind: parts[0], Name: parts[len(parts)-1], FieldPath: o.Field}
		if len(parts) == 3 {
			ref.Namespace = parts[1]
		}
		for _, e := range w.order {
			if e.kind == ref.Kind && e.object != nil && e.object.GetName() == ref.Name && e.object.GetNamespace() == ref.Namespace {
				ref.UID = e.object.GetUID()
			}
		}
		e := w.event(ref, or(o.Type, corev1.EventTypeWarning), o.Reason, o.Message, or(o.From, "kubelet"), o.Host, at)
		e.LastTimestamp = metav1.NewTime(last)
		e.Count = max(o.Count, 1)
	}
	return nil
}

// event records one event in the form of the legacy recorder, which kubelets and
// the controllers use.
func (w *world) event(ref corev1.ObjectReference, kind, reason, message, source, host string, at time.Time) *corev1.Event {
	ns := or(ref.Namespace, metav1.NamespaceDefault)
	t := metav1.NewTime(at.Truncate(time.Second))
	if source != "kubelet" {
		host = ""
	}
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, CreationTimestamp: t,
			Name: ref.Name + "." + suffix(16, ref.Kind, ref.Name, reason, message, at.String()),
		},
		InvolvedObject: ref, Type: kind, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: source, Host: host}, ReportingController: source, ReportingInstance: host,
		FirstTimestamp: t, LastTimestamp: t, Count: 1,
	}
	w.add("Event", cluster.Events, e)
	return e
}
