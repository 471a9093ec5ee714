package api

import (
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shapeOf tells which fields of an object are set. Two objects of one kind and shape
// that are created have the same fields, so what their creator owns is worked out
// once: a practice cluster records thousands of events of a few shapes. An object
// with a list or map has no such shape, since its members are fields as well.
func shapeOf(o object) (string, bool) {
	var b strings.Builder
	ok := shape(&b, reflect.ValueOf(o).Elem(), true)
	return b.String(), ok
}

func shape(b *strings.Builder, v reflect.Value, top bool) bool {
	for _, m := range membersOf(v.Type()) {
		f := v.Field(m.index)
		if top && m.inline {
			continue // kind and version
		}
		switch f.Kind() {
		case reflect.Slice, reflect.Map:
			if f.Len() > 0 {
				return false
			}
			continue
		case reflect.Interface:
			return false // nobody knows what is in it
		case reflect.Pointer:
			if !f.IsNil() && f.Elem().Kind() == reflect.Struct {
				f = f.Elem()
				b.WriteByte('*')
			}
		}
		b.WriteByte('.')
		if !f.IsZero() {
			b.WriteByte('x')
		}
		if t := f.Type(); f.Kind() == reflect.Struct && !t.Implements(marshaler) && !reflect.PointerTo(t).Implements(marshaler) && !shape(b, f, false) {
			return false
		}
	}
	return true
}

// created are the fields of a creation, by kind and shape.
var created = struct {
	sync.Mutex
	fields map[string]*metav1.FieldsV1
}{fields: map[string]*metav1.FieldsV1{}}

func createdFields(shape string) *metav1.FieldsV1 {
	created.Lock()
	defer created.Unlock()
	return created.fields[shape]
}

func rememberCreated(shape string, f *metav1.FieldsV1) {
	created.Lock()
	defer created.Unlock()
	if len(created.fields) >= 1024 {
		clear(created.fields)
	}
	created.fields[shape] = f
}
