package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownsAlready tells whether a write only gives other values to fields that its
// manager owns, and nobody else: then who owns what stays as it is, and only the time
// of the manager's entry moves. at is that entry, -1 where nothing changed at all.
// Most writes are such, heartbeats above all, and for them apimachinery's way, which
// compares the objects field by field against the schema, is most of what a practice
// cluster costs. Where there is any doubt the answer is no.
func ownsAlready(r *resource, old, o object, w write) (at int, ok bool) {
	fields := old.GetManagedFields()
	if !reflect.DeepEqual(fields, o.GetManagedFields()) {
		return 0, false // the client meddles with them
	}
	d := differ{}
	if !d.value(reflect.ValueOf(old).Elem(), reflect.ValueOf(o).Elem(), nil) {
		return 0, false
	}
	if len(d.changed) == 0 {
		return -1, true
	}
	at = slices.IndexFunc(fields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == managerName(w.manager) && e.Operation == metav1.ManagedFieldsOperationUpdate &&
			e.Subresource == w.subresource && e.APIVersion == r.gvr.GroupVersion().String()
	})
	if at < 0 {
		return 0, false
	}
	for i := range fields {
		set := fieldSet(fields[i].FieldsV1)
		if set == nil {
			return 0, false
		}
		for _, path := range d.changed {
			if set.has(path) != (i == at) {
				return 0, false
			}
		}
	}
	return at, true
}

// fieldTree is the content of a FieldsV1.
type fieldTree map[string]fieldTree

// has tells whether a leaf or anything under the path is in the set.
func (t fieldTree) has(path []string) bool {
	for _, p := range path {
		next, ok := t[p]
		if !ok {
			return false
		}
		t = next
	}
	return true
}

// fieldSets remembers trees by what they were read from: a few hundred texts are
// those of a whole cluster.
var fieldSets = struct {
	sync.Mutex
	byText map[string]fieldTree
}{byText: map[string]fieldTree{}}

func fieldSet(f *metav1.FieldsV1) fieldTree {
	if f == nil {
		return nil
	}
	text := f.GetRawString()
	fieldSets.Lock()
	defer fieldSets.Unlock()
	if t, ok := fieldSets.byText[text]; ok {
		return t
	}
	var t fieldTree
	if json.Unmarshal([]byte(text), &t) != nil {
		return nil
	}
	if len(fieldSets.byText) >= 4096 {
		clear(fieldSets.byText)
	}
	fieldSets.byText[text] = t
	return t
}

// differ finds the fields whose value differs between two objects of one type, as
// paths of a FieldsV1. It gives up, with false, at whatever may be more than another
// value: a field that is set on one side only, a list or map of other members, a
// list whose members the schema tells apart in another way than by one key.
type differ struct{ changed [][]string }

var marshaler = reflect.TypeFor[json.Marshaler]()

func (d *differ) value(a, b reflect.Value, path []string) bool {
	t := a.Type()
	if t.Kind() != reflect.Pointer && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)) {
		return d.written(a, b, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.members(a, b, path)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		if a.Pointer() == b.Pointer() {
			return true
		}
		if k := t.Elem().Kind(); k != reflect.Struct {
			// A pointer's zero is a value like any other.
			if !a.Elem().Equal(b.Elem()) {
				d.add(path)
			}
			return true
		}
		return d.value(a.Elem(), b.Elem(), path)
	case reflect.Map:
		return d.entries(a, b, path)
	case reflect.Slice:
		return reflect.DeepEqual(a.Interface(), b.Interface()) // else it is the schema's to judge
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		if a.Equal(b) {
			return true
		}
		d.add(path)
		return !a.IsZero() && !b.IsZero() // else it may be a field that comes or goes
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func (d *differ) add(path []string) { d.changed = append(d.changed, slices.Clone(path)) }

// written compares what writes itself: times, quantities.
func (d *differ) written(a, b reflect.Value, path []string) bool {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return true
	}
	x, errX := json.Marshal(a.Interface())
	y, errY := json.Marshal(b.Interface())
	switch {
	case errX != nil || errY != nil:
		return false
	case bytes.Equal(x, y):
		return true
	}
	d.add(path)
	simple := func(j []byte) bool { return len(j) > 0 && j[0] != '{' && j[0] != '[' && j[0] != 'n' } // a scalar, and no null
	return simple(x) && simple(y) && !a.IsZero() && !b.IsZero()
}

// whole compares what is owned as one.
func (d *differ) whole(a, b reflect.Value, path []string) bool {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return true
	}
	x, errX := json.Marshal(a.Interface())
	y, errY := json.Marshal(b.Interface())
	if errX != nil || errY != nil {
		return false
	}
	if !bytes.Equal(x, y) {
		d.add(path)
	}
	return true
}

// notOwned is the metadata that managedFields leaves out.
// Source: apimachinery pkg/util/managedfields/internal/stripmeta.go.
var notOwned = map[string]bool{"name": true, "namespace": true, "creationTimestamp": true, "selfLink": true, "uid": true, "generation": true, "managedFields": true, "resourceVersion": true}

// atomicLists are owned as a whole (listType=atomic), by their names in JSON: of Pods,
// Nodes and EndpointSlices.
var atomicLists = map[string]bool{"containerStatuses": true, "initContainerStatuses": true, "images": true, "endpoints": true}

func (d *differ) members(a, b reflect.Value, path []string) bool {
	for _, m := range membersOf(a.Type()) {
		if m.inline {
			if a.Type().Field(m.index).Type == reflect.TypeFor[metav1.TypeMeta]() {
				continue
			}
			if !d.value(a.Field(m.index), b.Field(m.index), path) {
				return false
			}
			continue
		}
		if len(path) == 1 && path[0] == "f:metadata" && notOwned[m.name] {
			continue
		}
		here := append(path[:len(path):len(path)], "f:"+m.name)
		x, y := a.Field(m.index), b.Field(m.index)
		if atomicLists[m.name] && x.Kind() == reflect.Slice && x.Len() > 0 && y.Len() > 0 {
			if !d.whole(x, y, here) {
				return false
			}
			continue
		}
		if m.mergeKey != "" && x.Kind() == reflect.Slice {
			if !d.keyed(x, y, here, m.mergeKey) {
				return false
			}
			continue
		}
		if !d.value(x, y, here) {
			return false
		}
	}
	return true
}

// entries compares maps of strings or quantities: labels, annotations, resources.
func (d *differ) entries(a, b reflect.Value, path []string) bool {
	if a.Len() != b.Len() || a.IsNil() != b.IsNil() || a.Type().Key().Kind() != reflect.String {
		return false
	}
	for it := a.MapRange(); it.Next(); {
		y := b.MapIndex(it.Key())
		if !y.IsValid() || !d.value(it.Value(), y, append(path[:len(path):len(path)], "f:"+it.Key().String())) {
			return false
		}
	}
	return true
}

// keyed compares lists whose members are told apart by one key, such as conditions.
func (d *differ) keyed(a, b reflect.Value, path []string, key string) bool {
	if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
		return false
	}
	t := a.Type().Elem()
	if t.Kind() != reflect.Struct {
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
	i := slices.IndexFunc(membersOf(t), func(m member) bool { return m.name == key })
	if i < 0 {
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
	at := membersOf(t)[i].index
	for i := range a.Len() {
		x, y := a.Index(i), b.Index(i)
		if !x.Field(at).Equal(y.Field(at)) {
			return false
		}
		id, err := json.Marshal(x.Field(at).Interface())
		if err != nil || !d.value(x, y, append(path[:len(path):len(path)], `k:{"`+key+`":`+string(id)+"}")) {
			return false
		}
	}
	return true
}

// member is a field of a struct as JSON names it.
type member struct {
	index    int
	name     string
	inline   bool
	mergeKey string
}

var memberLists sync.Map // by type

func membersOf(t reflect.Type) []member {
	if known, ok := memberLists.Load(t); ok {
		return known.([]member)
	}
	var out []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		out = append(out, member{index: i, name: name, inline: name == "" && (f.Anonymous || strings.Contains(rest, "inline")), mergeKey: f.Tag.Get("patchMergeKey")})
	}
	memberLists.Store(t, out)
	return out
}
