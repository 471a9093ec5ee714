package api

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// fieldValidation is what to do with fields that the kind does not have or that come twice.
type fieldValidation struct {
	strict bool
	warn   func(string) // nil: ignore them
}

var (
	lenientJSON = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{})
	strictJSON  = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{Strict: true})
)

// decodeJSON reads one object of a kind.
func decodeJSON(r *resource, data []byte, v fieldValidation) (object, error) {
	gvk := r.gvk()
	decoder := lenientJSON
	if v.strict || v.warn != nil {
		decoder = strictJSON
	}
	o, _, err := decoder.Decode(data, &gvk, nil)
	if err = v.judge(err); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	typed, ok := o.(object)
	if !ok || gvkOf(o) != r.gvk() {
		return nil, fmt.Errorf("the object is a %s, not a %s", gvkOf(o).Kind, r.kind)
	}
	return typed, nil
}

// judge turns the complaints of strict decoding into warnings where that is what was asked for.
func (v fieldValidation) judge(err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || v.strict {
		return err
	}
	if v.warn != nil {
		for _, e := range strict.Errors() {
			v.warn(e.Error())
		}
	}
	return nil
}

func gvkOf(o runtime.Object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil || len(kinds) == 0 {
		return schema.GroupVersionKind{}
	}
	return kinds[0]
}
