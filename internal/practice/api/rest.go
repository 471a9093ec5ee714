package api

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) serveGet(w http.ResponseWriter, req *http.Request, q *request) error {
	a, err := negotiate(req, true)
	if err != nil {
		return err
	}
	var o object
	s.locked(func() { o, err = s.get(q.resource, q.namespace, q.name) })
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, a, q.resource.shown(o, a, s.clock()))
	return nil
}

func (s *Server) serveCreate(w http.ResponseWriter, req *http.Request, q *request) error {
	a, wr, validation, err := s.prepareWrite(w, req, q)
	if err != nil {
		return err
	}
	o, err := s.readObject(req, q, validation)
	if err != nil {
		return err
	}
	var stored object
	s.locked(func() { stored, err = s.create(q.resource, o, wr) })
	if err != nil {
		return err
	}
	writeObject(w, http.StatusCreated, a, q.resource.shown(stored, a, s.clock()))
	return nil
}

func (s *Server) serveUpdate(w http.ResponseWriter, req *http.Request, q *request) error {
	a, wr, validation, err := s.prepareWrite(w, req, q)
	if err != nil {
		return err
	}
	o, err := s.readObject(req, q, validation)
	if err != nil {
		return err
	}
	if o.GetName() != q.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), q.name))
	}
	var missing error
	var stored object
	s.locked(func() {
		_, missing = s.get(q.resource, q.namespace, q.name)
		stored, err = s.update(q.resource, o, wr)
	})
	if err != nil {
		return err
	}
	writeObject(w, createdOr(missing != nil), a, q.resource.shown(stored, a, s.clock()))
	return nil
}

func (s *Server) servePatch(w http.ResponseWriter, req *http.Request, q *request) error {
	a, wr, validation, err := s.prepareWrite(w, req, q)
	if err != nil {
		return err
	}
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	p := patchBody{kind: types.PatchType(mediaType), validation: validation, force: isTrue(req.URL.Query(), "force")}
	if p.data, err = readBody(req); err != nil {
		return err
	}
	if p.kind == types.ApplyYAMLPatchType && req.URL.Query().Get("fieldManager") == "" {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	var stored object
	var created bool
	s.locked(func() { stored, created, err = s.patch(q.resource, q.namespace, q.name, p, wr) })
	if err != nil {
		return err
	}
	writeObject(w, createdOr(created), a, q.resource.shown(stored, a, s.clock()))
	return nil
}

func createdOr(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (s *Server) serveDelete(w http.ResponseWriter, req *http.Request, q *request) error {
	a, err := negotiate(req, true)
	if err != nil {
		return err
	}
	opts, err := deleteOptions(req)
	if err != nil {
		return err
	}
	var last object
	var gone bool
	s.locked(func() { last, gone, err = s.delete(q.resource, q.namespace, q.name, opts) })
	if err != nil {
		return err
	}
	if gone && !q.resource.returnsLast {
		writeObject(w, http.StatusOK, asOnly(a), &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
				Name: last.GetName(), Group: q.gvr.Group, Kind: q.gvr.Resource, UID: last.GetUID()}})
		return nil
	}
	writeObject(w, http.StatusOK, a, q.resource.shown(last, a, s.clock()))
	return nil
}

// asOnly is the same encoding without a transformation.
func asOnly(a accepted) accepted { a.as = ""; return a }

func (s *Server) serveDeleteCollection(w http.ResponseWriter, req *http.Request, q *request) error {
	a, err := negotiate(req, true)
	if err != nil {
		return err
	}
	sel, err := readSelection(req, q)
	if err != nil {
		return err
	}
	opts, err := deleteOptions(req)
	if err != nil {
		return err
	}
	var deleted []object
	var version string
	s.locked(func() {
		deleted, err = s.deleteSelected(q.resource, sel, opts)
		version = formatRevision(s.revision)
	})
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, a, q.resource.shownList(deleted, metav1.ListMeta{ResourceVersion: version}, a, s.clock()))
	return nil
}

func (s *Server) deleteSelected(r *resource, sel selection, opts *metav1.DeleteOptions) ([]object, error) {
	s.expireEvents()
	c := s.collections[r.stored().key()]
	var deleted []object
	for _, k := range slices.Clone(c.within(sel.namespace)) {
		o := c.objects[k]
		if o == nil || !sel.matches(o) {
			continue // nil: it went with another
		}
		last, _, err := s.delete(r, o.GetNamespace(), o.GetName(), opts)
		if err != nil {
			return deleted, err
		}
		deleted = append(deleted, last)
	}
	return deleted, nil
}

// readObject reads the body in the stored version, with the URL's namespace.
func (s *Server) readObject(req *http.Request, q *request, v fieldValidation) (object, error) {
	decoded, err := decodeBody(req, q.resource.gvk(), v)
	if err != nil {
		return nil, err
	}
	o := decoded.(object)
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if q.resource.toStored != nil {
		o = q.resource.toStored(o)
	}
	if q.resource.namespaced {
		if o.GetNamespace() != "" && o.GetNamespace() != q.namespace {
			return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		o.SetNamespace(q.namespace)
	}
	return o, nil
}

// prepareWrite reads what is common to creating, updating and patching.
func (s *Server) prepareWrite(w http.ResponseWriter, req *http.Request, q *request) (accepted, write, fieldValidation, error) {
	a, err := negotiate(req, true)
	if err != nil {
		return a, write{}, fieldValidation{}, err
	}
	values := req.URL.Query()
	dryRun, err := readDryRun(values)
	if err != nil {
		return a, write{}, fieldValidation{}, err
	}
	manager := values.Get("fieldManager")
	if errs := metavalidation.ValidateFieldManager(manager, field.NewPath("fieldManager")); len(errs) > 0 {
		return a, write{}, fieldValidation{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: optionsKind(q.verb)}, "", errs)
	}
	if manager == "" {
		manager = managerOfAgent(req.UserAgent())
	}
	var v fieldValidation
	switch values.Get("fieldValidation") {
	case metav1.FieldValidationStrict:
		v.strict = true
	case metav1.FieldValidationIgnore:
	default: // Warn is the API server's default
		v.warn = func(text string) { warn(w, text) }
	}
	return a, write{manager: manager, dryRun: dryRun, subresource: q.subresource}, v, nil
}

func optionsKind(verb string) string { return strings.ToUpper(verb[:1]) + verb[1:] + "Options" }

func readDryRun(values url.Values) (bool, error) {
	all := values["dryRun"]
	if errs := metavalidation.ValidateDryRun(field.NewPath("dryRun"), all); len(errs) > 0 {
		return false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "CreateOptions"}, "", errs)
	}
	return len(all) > 0, nil
}

// managerOfAgent is the field manager of a client that names none: what stands before the first slash of its User-Agent
// (apiserver: pkg/endpoints/handlers/create.go).
func managerOfAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	for len(name) > metavalidation.FieldManagerMaxLength {
		name = name[:len(name)-1]
	}
	return strings.ToValidUTF8(name, "")
}

func ptrTo[T any](v T) *T { return &v }

// warn sends a warning that clients show beside the answer.
func warn(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}
