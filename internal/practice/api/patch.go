package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// maxPatchOperations is the API server's limit for one JSON Patch.
const maxPatchOperations = 10000

// Patch changes one object by a JSON, merge or strategic merge patch, or by server-side apply. subresource is "" or
// "status". A JSON Patch whose `test` fails gives the API server's 422; a resourceVersion or UID that a patch sets is a
// precondition (409).
func (s *Server) Patch(manager string, gvr schema.GroupVersionResource, ns, name string, kind types.PatchType, data []byte, subresource string) (runtime.Object, error) {
	r, err := resourceFor(gvr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, _, err := s.patch(r, ns, name, patchBody{kind: kind, data: data}, write{manager: manager, subresource: subresource})
	return result(o, err)
}

type patchBody struct {
	kind       types.PatchType
	data       []byte
	force      bool // server-side apply takes fields over from other managers
	validation fieldValidation
}

// patch follows apiserver: pkg/endpoints/handlers/patch.go. It says whether the object was created (server-side apply).
func (s *Server) patch(r *resource, ns, name string, p patchBody, w write) (object, bool, error) {
	s.expireEvents()
	if p.kind == types.ApplyYAMLPatchType {
		return s.apply(r, ns, name, p, w)
	}
	current, err := s.get(r, ns, name)
	if err != nil {
		return nil, false, err
	}
	var patched object
	switch p.kind {
	case types.JSONPatchType, types.MergePatchType:
		patched, err = patchJSON(r, current, p)
	case types.StrategicMergePatchType:
		patched, err = patchStrategic(r, current, p)
	default:
		err = unsupportedPatch(p.kind)
	}
	if err != nil {
		return nil, false, err
	}
	if err := checkPatchedName(ns, name, patched); err != nil {
		return nil, false, err
	}
	o, err := s.update(r, r.toStore(patched), w)
	return o, false, err
}

func patchJSON(r *resource, current object, p patchBody) (object, error) {
	before, err := json.Marshal(withKind(r, current))
	if err != nil {
		return nil, err
	}
	var after []byte
	if p.kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(p.data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if len(operations) > maxPatchOperations {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
				"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(operations)))
		}
		if after, err = operations.Apply(before); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	} else {
		after, err = jsonpatch.MergePatch(before, p.data)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			return nil, apierrors.NewBadRequest(err.Error())
		} else if err != nil {
			return nil, err
		}
	}
	o, err := decodeJSON(r, after, p.validation)
	if err != nil {
		return nil, invalidPatch(string(after), err)
	}
	return o, nil
}

func patchStrategic(r *resource, current object, p patchBody) (object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withKind(r, current))
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(p.data, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := strategicpatch.StrategicMergeMapPatch(before, patch, r.example)
	if err != nil {
		return nil, strategicError(err)
	}
	data, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	o, err := decodeJSON(r, data, p.validation)
	if err != nil {
		return nil, invalidPatch(fmt.Sprintf("%+v", patch), err)
	}
	return o, nil
}

// strategicError is interpretStrategicMergePatchError of the API server.
func strategicError(err error) error {
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists):
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	default:
		return err
	}
}

func invalidPatch(value string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), value, err.Error())})
}

func unsupportedPatch(kind types.PatchType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s, %s, %s, %s (got %s)",
			types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType, kind)}}
}

func checkPatchedName(ns, name string, o object) error {
	if o.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), name))
	}
	if o.GetNamespace() != ns {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// apply is server-side apply. It creates what does not exist.
func (s *Server) apply(r *resource, ns, name string, p patchBody, w write) (object, bool, error) {
	st := r.stored()
	wanted := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(p.data, &wanted.Object); err != nil {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	manager, err := fieldManagerOf(st, w.subresource)
	if err != nil {
		return nil, false, err
	}
	old := s.collections[st.key()].objects[key(ns, name)]
	live := emptyOf(st)
	if old != nil {
		live = withKind(st, old)
	}
	applied, err := manager.Apply(live, wanted, w.manager, p.force)
	if err != nil {
		return nil, false, err
	}
	o := emptyOf(st)
	if u, ok := applied.(*unstructured.Unstructured); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return nil, false, invalidPatch(string(p.data), err)
		}
	} else {
		o = applied.(object)
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	s.stampFields(live, o)
	if o.GetName() == "" {
		o.SetName(name)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(ns)
	}
	if err := checkPatchedName(ns, name, o); err != nil {
		return nil, false, err
	}
	w.fieldsDone = true
	if old == nil {
		if uid := o.GetUID(); uid != "" {
			return nil, false, apierrors.NewConflict(r.key(), name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		created, err := s.create(r, o, w)
		return created, true, err
	}
	updated, err := s.update(r, o, w)
	return updated, false, err
}
