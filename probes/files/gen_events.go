package files

import (
	"fmt"
	"slices"
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

func podReference(p *corev1.Pod, container string) corev1.ObjectReference {
	ref := corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: uid("Pod", p.Namespace, p.Name)}
	if container != "" {
		ref.FieldPath = "spec.containers{" + container + "}"
	}
	return ref
}

// failEvents are what the kubelet says of a container that does not run. They
// repeat, so they are there however long ago it began.
func (w *world) failEvents(p *corev1.Pod, s *corev1.ContainerStatus, init bool, f *Failure, t podTimes) {
	ref := podReference(p, s.Name)
	if init {
		ref.FieldPath = "spec.initContainers{" + s.Name + "}"
	}
	repeat := func(kind, reason, message string, count int32) {
		first, last := t.created.Add(8*time.Second), w.c.now.Add(-40*time.Second)
		if last.Before(first) {
			last, count = first, 1
		}
		e := w.event(ref, kind, reason, message, "kubelet", p.Spec.NodeName, first)
		e.LastTimestamp, e.Count = metav1.NewTime(last.Truncate(time.Second)), max(count, 1)
	}
	switch f.Reason {
	case "CrashLoopBackOff":
		repeat(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+s.Name+" in pod "+p.Name+"_"+p.Namespace+"("+string(ref.UID)+")", f.Restarts*3)
	case "ImagePullBackOff", "ErrImagePull":
		repeat(corev1.EventTypeWarning, "Failed", "Error: ErrImagePull", 5)
		repeat(corev1.EventTypeNormal, "BackOff", "Back-off pulling image \""+s.Image+"\"", 12)
	case "CreateContainerConfigError", "CreateContainerError":
		repeat(corev1.EventTypeWarning, "Failed", "Error: "+f.Message, 9)
	}
}

// spamBurst and spamRefill are the legacy recorder's limits for one source and
// object; from mergeFrom different messages of one reason on, it merges them.
// Source: client-go/tools/record/events_cache.go.
const (
	spamBurst  = 25
	spamRefill = 5 * time.Minute
	mergeFrom  = 10
)

// throttle does to the events of one DaemonSet what its controller's recorder
// does: of many replacements the first nine are told, the next ones merged, the
// rest is lost.
func (w *world) throttle(d *Daemon) {
	var list []*entry
	for _, e := range w.order {
		ev, ok := e.object.(*corev1.Event)
		if ok && ev.InvolvedObject.Kind == "DaemonSet" && ev.InvolvedObject.Namespace == d.Namespace && ev.InvolvedObject.Name == d.Name && ev.Source.Component == "daemonset-controller" {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *entry) int {
		return a.object.(*corev1.Event).FirstTimestamp.Compare(b.object.(*corev1.Event).FirstTimestamp.Time)
	})
	tokens, last := float64(spamBurst), time.Time{}
	merged := map[string]*corev1.Event{}
	told := map[string][]time.Time{}
	for _, e := range list {
		ev := e.object.(*corev1.Event)
		at := ev.FirstTimestamp.Time
		if !last.IsZero() {
			tokens = min(tokens+at.Sub(last).Seconds()/spamRefill.Seconds(), spamBurst)
		}
		last = at
		recent := told[ev.Reason][:0]
		for _, t := range told[ev.Reason] {
			if at.Sub(t) < 10*time.Minute {
				recent = append(recent, t)
			}
		}
		recent = append(recent, at)
		told[ev.Reason] = recent
		into := merged[ev.Reason]
		if tokens < 1 {
			e.object = nil
			continue
		}
		tokens--
		switch {
		case len(recent) < mergeFrom:
		case into == nil:
			ev.Message = "(combined from similar events): " + ev.Message
			merged[ev.Reason] = ev
		default:
			into.Message, into.LastTimestamp = "(combined from similar events): "+ev.Message, ev.LastTimestamp
			into.Count++
			e.object = nil
		}
	}
}

// scheduled records that a Pod was bound, in the form of the newer recorder that
// the scheduler uses: eventTime, and no first and last timestamps.
func (w *world) scheduled(p *corev1.Pod, at time.Time) {
	e := w.event(podReference(p, ""), corev1.EventTypeNormal, "Scheduled", "Successfully assigned "+p.Namespace+"/"+p.Name+" to "+p.Spec.NodeName, "", "", at)
	e.Action, e.ReportingController, e.ReportingInstance = "Binding", "default-scheduler", "default-scheduler-control-2"
	e.EventTime = metav1.NewMicroTime(at)
	e.FirstTimestamp, e.LastTimestamp, e.Count = metav1.Time{}, metav1.Time{}, 0
}
