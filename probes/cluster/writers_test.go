package cluster

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The scan must say what decoding the whole of it says.
func TestTheFieldsOfASpecAreThoseOfItsJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"f:spec\"}":{".":{},"f:image":{}}}}},"f:updateStrategy":{"f:type":{}}}}`,
		`{"f:metadata":{"f:annotations":{".":{},"f:f:spec":{}},"f:labels":{}},"f:spec":{"f:replicas":{}}}`,
		`{ "f:spec" : { "f:template" : { } , "f:selector" : {} } , "f:metadata" : {} }`,
		`{"f:metadata":{"f:annotations":{"f:spec":{"f:template":{}}}}}`,
		`{"f:metadata":{"f:labels":{"f:a\"f:spec\":{":{}}},"f:spec":{"f:a":{"k:\"\\\\":{}},"f:b":{}}}`,
		`{"f:status":{"f:conditions":{}}}`, `{"f:spec":{}}`, `{}`, ``, `{"f:spec`, `{"f:spec":{"f:template`, `nonsense`,
	} {
		var want struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		valid := json.Unmarshal([]byte(raw), &want) == nil
		got := specFields(raw)
		slices.Sort(got)
		if keys := slices.Sorted(maps.Keys(want.Spec)); valid && (!slices.Equal(got, keys) || (got == nil) != (want.Spec == nil)) {
			t.Errorf("%s\n got %q\nwant %q", raw, got, keys)
		}
	}
}

func TestWritersAreTheManagersOfTheSpec(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC))
	entry := func(manager, subresource, fields string, op metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	o := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("kustomize-controller", "", `{"f:spec":{"f:template":{}}}`, "Apply"),
		entry("kubectl-label", "", `{"f:metadata":{"f:labels":{}}}`, "Update"),
		entry("kube-controller-manager", "status", `{"f:spec":{"f:template":{}}}`, "Update"),
		{Manager: "trimmed", Time: &at},
		entry("rollcall", "", `{"f:spec":{"f:updateStrategy":{"f:type":{}}}}`, "Update"),
	}}
	got, known := Writers(o)
	if !known || len(got) != 2 || !got[0].Applies || !got[0].Owns("template") || got[0].Owns("updateStrategy") || got[1].Applies || !got[1].Owns("updateStrategy") || !got[1].At.Equal(at.Time) {
		t.Errorf("%v %+v", known, got)
	}
	if e := StrategyOwner(o); e == nil || e.Manager != "rollcall" {
		t.Errorf("the strategy's: %+v", e)
	}
	if e := TemplateOwner(o); e == nil || e.Manager != "kustomize-controller" {
		t.Errorf("the template's: %+v", e)
	}
	o.ManagedFields = o.ManagedFields[1:4]
	if got, known := Writers(o); known || len(got) != 0 {
		t.Errorf("of nobody who writes the spec: %+v", got)
	}
}
