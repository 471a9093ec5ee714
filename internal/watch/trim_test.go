package watch

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managed(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Subresource: subresource, Time: &now, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestTrimKeepsWhoOwnsWhatWhen(t *testing.T) {
	t.Parallel()
	tr := newTrimmer()
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "secret", "other": "kept"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("helm", "", `{"f:spec":{"f:template":{}}}`),
				managed("kubelet", "", `{"f:metadata":{"f:labels":{}}}`),
				managed("controller", "", `{"f:spec":{"f:taints":{}}}`),
				managed("controller", "status", `{"f:status":{},"f:taints":{}}`),
			},
		}
	}
	for _, c := range []struct {
		name string
		trim func() metav1.ObjectMeta
		kept string // one letter for each entry: F fields kept, - only who and when
	}{
		{"DaemonSet", func() metav1.ObjectMeta {
			o := &appsv1.DaemonSet{ObjectMeta: meta()}
			tr.daemonSet(o)
			tr.daemonSet(o)
			return o.ObjectMeta
		}, "FFF-"},
		{"Deployment", func() metav1.ObjectMeta {
			o := &appsv1.Deployment{ObjectMeta: meta()}
			tr.deployment(o)
			return o.ObjectMeta
		}, "FFF-"},
		{"StatefulSet", func() metav1.ObjectMeta {
			o := &appsv1.StatefulSet{ObjectMeta: meta()}
			tr.statefulSet(o)
			return o.ObjectMeta
		}, "FFF-"},
		{"Node", func() metav1.ObjectMeta { o := &corev1.Node{ObjectMeta: meta()}; tr.node(o); return o.ObjectMeta }, "-FF-"},
		{"Pod", func() metav1.ObjectMeta { o := &corev1.Pod{ObjectMeta: meta()}; tr.pod(o); return o.ObjectMeta }, "----"},
		{"ControllerRevision", func() metav1.ObjectMeta {
			o := &appsv1.ControllerRevision{ObjectMeta: meta()}
			tr.revision(o)
			return o.ObjectMeta
		}, "----"},
	} {
		m := c.trim()
		kept := ""
		for _, e := range m.ManagedFields {
			if e.FieldsV1 != nil {
				kept += "F"
			} else {
				kept += "-"
			}
			if e.Manager == "" || e.Time == nil || e.Operation == "" {
				t.Errorf("%s: lost who or when: %+v", c.name, e)
			}
		}
		if kept != c.kept {
			t.Errorf("%s: kept %s, want %s", c.name, kept, c.kept)
		}
		if m.Annotations[corev1.LastAppliedConfigAnnotation] != leftOut || m.Annotations["other"] != "kept" {
			t.Errorf("%s: annotations %v", c.name, m.Annotations)
		}
	}
}

func TestNodesShareTheNamesOfTheirImages(t *testing.T) {
	t.Parallel()
	tr := newTrimmer()
	image := func(size int64, names ...string) corev1.ContainerImage {
		return corev1.ContainerImage{Names: names, SizeBytes: size}
	}
	a := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{image(1, "x@sha256:1", "x:1"), image(2, "y"), {}}}}
	b := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{image(3, "x@sha256:1", "x:1"), image(2, "y", "y:2")}}}
	tr.node(a)
	tr.node(b)
	ia, ib := a.Status.Images, b.Status.Images
	if &ia[0].Names[0] != &ib[0].Names[0] {
		t.Error("the same names are kept twice")
	}
	if ib[0].SizeBytes != 3 || fmt.Sprint(ib[1].Names) != "[y y:2]" || fmt.Sprint(ia[1].Names) != "[y]" {
		t.Errorf("%+v %+v", ia, ib)
	}
}

func TestSharedTablesAreBounded(t *testing.T) {
	t.Parallel()
	tr := newTrimmer()
	for i := range 3 * maxShared {
		n := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{fmt.Sprint(i)}}}}}
		n.ManagedFields = []metav1.ManagedFieldsEntry{managed("m", "", fmt.Sprintf(`{"f:labels":{"f:%d":{}}}`, i))}
		tr.node(n)
	}
	if len(tr.images) > maxShared || len(tr.fields) > maxShared {
		t.Errorf("%d images, %d fields", len(tr.images), len(tr.fields))
	}
}
