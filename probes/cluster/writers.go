package cluster

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer is one manager of an object's spec, as managedFields have it.
type Writer struct {
	Manager string
	// Applies tells of server-side apply: the manager then owns exactly what its own
	// manifest sets, and its next apply conflicts with whoever took a field from it.
	Applies bool
	At      time.Time // of its last change, zero where unknown
	fields  map[string]json.RawMessage
}

// Owns tells whether the manager owns the field of the spec or something below it.
func (w *Writer) Owns(field string) bool {
	_, ok := w.fields["f:"+field]
	return ok
}

// Writers are the managers of the object's spec, in the order of managedFields.
// known is false where managedFields were not read or say nothing of the spec.
func Writers(o metav1.Object) (writers []Writer, known bool) {
	for _, e := range o.GetManagedFields() {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if e.Subresource != "" || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil || fields.Spec == nil {
			continue
		}
		w := Writer{Manager: e.Manager, Applies: e.Operation == metav1.ManagedFieldsOperationApply, fields: fields.Spec}
		if e.Time != nil {
			w.At = e.Time.Time
		}
		writers = append(writers, w)
	}
	return writers, len(writers) > 0
}

// TemplateOwner is the managedFields entry that last set a field of the Pod
// template, nil where managedFields do not tell. The time of an entry moves with
// every value that its manager changes, so it is an upper bound.
func TemplateOwner(o metav1.Object) *metav1.ManagedFieldsEntry { return fieldOwner(o, "f:template") }

// StrategyOwner is the same for the update strategy of a DaemonSet or StatefulSet.
func StrategyOwner(o metav1.Object) *metav1.ManagedFieldsEntry {
	return fieldOwner(o, "f:updateStrategy")
}

func fieldOwner(o metav1.Object, field string) *metav1.ManagedFieldsEntry {
	var found *metav1.ManagedFieldsEntry
	entries := o.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if e.Subresource != "" || e.FieldsV1 == nil || e.Time == nil || !ownsField(e.FieldsV1, field) {
			continue
		}
		if found == nil || found.Time.Before(e.Time) {
			found = e
		}
	}
	return found
}

func ownsField(f *metav1.FieldsV1, field string) bool {
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if !strings.Contains(f.GetRawString(), field) || json.Unmarshal(f.GetRawBytes(), &fields) != nil {
		return false
	}
	_, ok := fields.Spec[field]
	return ok
}
