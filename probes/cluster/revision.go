package cluster

import (
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Template decodes the Pod template that a ControllerRevision stores.
func Template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, err
	}
	return &data.Spec.Template, nil
}

// SameTemplate compares two templates by meaning, so that a difference in how
// they were serialised (creationTimestamp: null, written until 1.33) is none.
func SameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	x.CreationTimestamp, y.CreationTimestamp = metav1.Time{}, metav1.Time{}
	return equality.Semantic.DeepEqual(x, y)
}

// CurrentRevision is the stored revision that has the DaemonSet's present
// template: the highest numbered one of that meaning. Nil where none was read or
// the controller has not stored it yet.
func (s *Snapshot) CurrentRevision(ds *appsv1.DaemonSet) *appsv1.ControllerRevision {
	for _, r := range s.RevisionsOf(ds.UID) {
		if t, err := Template(r); err == nil && SameTemplate(t, &ds.Spec.Template) {
			return r
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
