package api

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// shown is an object in the form that was asked for, carrying its kind.
func (r *resource) shown(o object, a accepted, now time.Time) runtime.Object {
	switch a.as {
	case "Table":
		return r.table([]object{o}, metav1.ListMeta{ResourceVersion: o.GetResourceVersion()}, a.include, now)
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return metadataOf(o)
	default:
		return withKind(r, o)
	}
}

// shownList is a list in the form that was asked for.
func (r *resource) shownList(objects []object, meta metav1.ListMeta, a accepted, now time.Time) runtime.Object {
	switch a.as {
	case "Table":
		return r.table(objects, meta, a.include, now)
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
			ListMeta: meta, Items: make([]metav1.PartialObjectMetadata, len(objects))}
		for i, o := range objects {
			list.Items[i] = *metadataOf(o)
		}
		return list
	default:
		return r.typedList(objects, meta)
	}
}

// typedList is the kind's own list. The items' insides are shared with the store.
func (r *resource) typedList(objects []object, meta metav1.ListMeta) runtime.Object {
	list, err := scheme.Scheme.New(r.gvr.GroupVersion().WithKind(r.kind + "List"))
	if err != nil {
		panic(err) // every kind of client-go has its list
	}
	list.GetObjectKind().SetGroupVersionKind(r.gvr.GroupVersion().WithKind(r.kind + "List"))
	v := reflect.ValueOf(list).Elem()
	v.FieldByName("ListMeta").Set(reflect.ValueOf(meta))
	items := v.FieldByName("Items")
	// Not nil: an empty list is written as [], never as null.
	items.Set(reflect.MakeSlice(items.Type(), len(objects), len(objects)))
	for i, o := range objects {
		items.Index(i).Set(reflect.ValueOf(o).Elem())
	}
	return list
}

func metadataOf(o object) *metav1.PartialObjectMetadata {
	meta := part(o, "ObjectMeta").Interface().(metav1.ObjectMeta)
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: meta}
}
