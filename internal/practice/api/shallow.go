package api

import (
	"reflect"
)

// withKind is a shallow copy of a stored object that carries its kind: encoders and field managers want it, and the stored
// object may not be changed.
func withKind(r *resource, o object) object {
	v := reflect.New(reflect.TypeOf(o).Elem())
	v.Elem().Set(reflect.ValueOf(o).Elem())
	c := v.Interface().(object)
	c.GetObjectKind().SetGroupVersionKind(r.gvk())
	return c
}

// part is a field of an object by name, such as Spec or Status; the zero Value when the kind has none.
func part(o object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// carryOver sets a part of o to that of old. The value is shared, which immutability allows.
func carryOver(o, old object, name string) {
	if p := part(o, name); p.IsValid() {
		p.Set(part(old, name))
	}
}
