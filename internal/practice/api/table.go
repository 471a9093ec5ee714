package api

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Tables are what `kubectl get` prints (kubernetes: pkg/printers/internalversion/printers.go); columns of priority 1 come
// with -o wide.

func column(name, kind string, priority int32) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{Name: name, Type: kind, Priority: priority}
	if name == "Name" {
		c.Format = "name"
	}
	return c
}

// columns reads "Name Ready wide:Node" into definitions: text columns, in order.
func columns(names ...string) []metav1.TableColumnDefinition {
	out := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		if wide, ok := strings.CutPrefix(name, "wide:"); ok {
			out[i] = column(wide, "string", 1)
		} else {
			out[i] = column(name, "string", 0)
		}
	}
	return out
}

var tableColumns = map[string][]metav1.TableColumnDefinition{
	"Pod":                columns("Name", "Ready", "Status", "Restarts", "Age", "wide:IP", "wide:Node", "wide:Nominated Node", "wide:Readiness Gates"),
	"Node":               columns("Name", "Status", "Roles", "Age", "Version", "wide:Internal-IP", "wide:External-IP", "wide:OS-Image", "wide:Kernel-Version", "wide:Container-Runtime"),
	"DaemonSet":          columns("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age", "wide:Containers", "wide:Images", "wide:Selector"),
	"Deployment":         columns("Name", "Ready", "Up-to-date", "Available", "Age", "wide:Containers", "wide:Images", "wide:Selector"),
	"ReplicaSet":         columns("Name", "Desired", "Current", "Ready", "Age", "wide:Containers", "wide:Images", "wide:Selector"),
	"StatefulSet":        columns("Name", "Ready", "Age", "wide:Containers", "wide:Images"),
	"ControllerRevision": columns("Name", "Controller", "Revision", "Age"),
	"Event":              columns("Last Seen", "Type", "Reason", "Object", "wide:Subobject", "wide:Source", "Message", "wide:First Seen", "wide:Count", "wide:Name"),
	"Namespace":          columns("Name", "Status", "Age"),
	"":                   columns("Name", "Age"),
}

// table shows objects as rows. include is the parameter includeObject.
func (r *resource) table(objects []object, meta metav1.ListMeta, include string, now time.Time) *metav1.Table {
	kind := r.kind
	if _, ok := tableColumns[kind]; !ok {
		kind = ""
	}
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta,
		ColumnDefinitions: tableColumns[kind], Rows: make([]metav1.TableRow, len(objects))}
	for i, o := range objects {
		stored := o
		if r.toStored != nil {
			stored = r.toStored(o)
		}
		t.Rows[i].Cells = cells(stored, now)
		switch metav1.IncludeObjectPolicy(include) {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			t.Rows[i].Object = runtime.RawExtension{Object: withKind(r, o)}
		default:
			t.Rows[i].Object = runtime.RawExtension{Object: metadataOf(o)}
		}
	}
	return t
}

func cells(o object, now time.Time) []any {
	created := age(o.GetCreationTimestamp().Time, now)
	switch o := o.(type) {
	case *corev1.Pod:
		return podCells(o, now)
	case *corev1.Node:
		return nodeCells(o, created)
	case *corev1.Event:
		return eventCells(o, now)
	case *corev1.Namespace:
		return []any{o.Name, string(o.Status.Phase), created}
	case *appsv1.DaemonSet:
		s := o.Status
		return append([]any{o.Name, s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable,
			labels.FormatLabels(o.Spec.Template.Spec.NodeSelector), created}, templateCells(&o.Spec.Template.Spec, o.Spec.Selector)...)
	case *appsv1.Deployment:
		return append([]any{o.Name, fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, *o.Spec.Replicas), o.Status.UpdatedReplicas,
			o.Status.AvailableReplicas, created}, templateCells(&o.Spec.Template.Spec, o.Spec.Selector)...)
	case *appsv1.ReplicaSet:
		return append([]any{o.Name, *o.Spec.Replicas, o.Status.Replicas, o.Status.ReadyReplicas, created},
			templateCells(&o.Spec.Template.Spec, o.Spec.Selector)...)
	case *appsv1.StatefulSet:
		return append([]any{o.Name, fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, *o.Spec.Replicas), created},
			templateCells(&o.Spec.Template.Spec, nil)[:2]...)
	case *appsv1.ControllerRevision:
		return []any{o.Name, controllerCell(o), o.Revision, created}
	default:
		return []any{o.GetName(), created}
	}
}

// age is the time since, as kubectl writes it.
func age(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func templateCells(s *corev1.PodSpec, selector *metav1.LabelSelector) []any {
	var names, images []string
	for _, c := range s.Containers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	return []any{strings.Join(names, ","), strings.Join(images, ","), metav1.FormatLabelSelector(selector)}
}

func controllerCell(o object) string {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return "<none>"
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return strings.ToLower(owner.Kind) + "." + group + "/" + owner.Name
}

func nodeCells(n *corev1.Node, created string) []any {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for _, label := range sortedKeys(n.Labels) {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && n.Labels[label] != "" {
			roles = append(roles, n.Labels[label])
		}
	}
	address := map[corev1.NodeAddressType]string{}
	for _, a := range n.Status.Addresses {
		if address[a.Type] == "" {
			address[a.Type] = a.Address
		}
	}
	info := n.Status.NodeInfo
	return []any{n.Name, status, orNone(strings.Join(roles, ",")), created, info.KubeletVersion,
		orNone(address[corev1.NodeInternalIP]), orNone(address[corev1.NodeExternalIP]), info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion}
}

func eventCells(e *corev1.Event, now time.Time) []any {
	first := e.FirstTimestamp.Time
	if first.IsZero() {
		first = e.EventTime.Time
	}
	last, count := e.LastTimestamp.Time, max(e.Count, 1)
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		about += "/" + e.InvolvedObject.Name
	}
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	if e.Source.Host != "" {
		source += ", " + e.Source.Host
	}
	return []any{age(last, now), e.Type, e.Reason, about, e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message),
		age(first, now), count, e.Name}
}
