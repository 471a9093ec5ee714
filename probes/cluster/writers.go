package cluster

import (
	"slices"
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
	fields  []string
}

// Owns tells whether the manager owns the field of the spec or something below it.
func (w *Writer) Owns(field string) bool { return slices.Contains(w.fields, "f:"+field) }

// Writers are the managers of the object's spec, in the order of managedFields.
// known is false where managedFields were not read or say nothing of the spec.
func Writers(o metav1.Object) (writers []Writer, known bool) {
	for _, e := range o.GetManagedFields() {
		if e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		fields := specFields(e.FieldsV1.GetRawString())
		if fields == nil {
			continue
		}
		w := Writer{Manager: e.Manager, Applies: e.Operation == metav1.ManagedFieldsOperationApply, fields: fields}
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
	raw := f.GetRawString()
	return strings.Contains(raw, field) && slices.Contains(specFields(raw), field)
}

// specFields are the keys below "f:spec" of a FieldsV1, nil without such a key. It reads
// no further than it must, and makes nothing of the rest: managedFields are the
// larger part of many objects, and every workload of a cluster is asked.
func specFields(raw string) []string {
	const spec = "f:spec"
	var fields []string
	depth, inside, next := 0, false, false // next: the value that follows is the spec's
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{':
			depth++
			if next {
				inside, next, fields = true, false, []string{}
			}
		case '}':
			if depth--; inside && depth == 1 {
				return fields
			}
		case '"':
			end := i + 1
			for end < len(raw) && raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(raw) {
				return fields
			}
			switch key := raw[i+1 : end]; {
			case depth == 1:
				next = key == spec
			case inside && depth == 2:
				fields = append(fields, key)
			}
			i = end
		}
	}
	return fields
}
