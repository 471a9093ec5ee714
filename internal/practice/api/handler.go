package api

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Handler speaks the Kubernetes REST protocol.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	defer func() {
		// A mistake in this package: say it to the client, which is a test or the practice session.
		p := recover()
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		} else if p != nil {
			writeError(w, req, apierrors.NewInternalError(fmt.Errorf("practice API server: panic: %v\n%s", p, debug.Stack())))
		}
	}()
	// The cluster's time, which clients compare other clocks with.
	w.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
	if s.applyFault(w, req) {
		return
	}
	user, err := s.authenticate(req)
	if err != nil {
		writeError(w, req, err)
		return
	}
	q := parseRequest(req)
	q.user = user
	if err := s.authorize(q); err != nil {
		writeError(w, req, err)
		return
	}
	if !q.isResource() {
		s.serveMeta(w, req, q)
		return
	}
	if err := s.serveResource(w, req, q); err != nil {
		writeError(w, req, err)
	}
}

// serveResource answers, or returns the error to answer with.
func (s *Server) serveResource(w http.ResponseWriter, req *http.Request, q *request) error {
	if review := reviewFor(q); review != nil {
		return s.serveReview(w, req, q, review)
	}
	r := q.resource
	if r == nil || (!r.namespaced && q.namespace != "") {
		return errNoSuchPath(q)
	}
	switch q.subresource {
	case "":
	case "status":
		if !r.hasStatus {
			return errNoSuchPath(q)
		}
		if !slices.Contains([]string{"get", "update", "patch"}, q.verb) {
			return errMethod(q)
		}
	default:
		return s.servePodSubresource(w, req, q)
	}
	switch q.verb {
	case "get":
		return s.serveGet(w, req, q)
	case "list":
		return s.serveList(w, req, q)
	case "watch":
		return s.serveWatch(w, req, q)
	case "create":
		if q.name != "" {
			return errMethod(q)
		}
		return s.serveCreate(w, req, q)
	case "update":
		if q.name == "" {
			return errMethod(q)
		}
		return s.serveUpdate(w, req, q)
	case "patch":
		if q.name == "" {
			return errMethod(q)
		}
		return s.servePatch(w, req, q)
	case "delete":
		return s.serveDelete(w, req, q)
	case "deletecollection":
		return s.serveDeleteCollection(w, req, q)
	default:
		return errMethod(q)
	}
}

// errNoSuchPath is the answer to a path that is not served, such as an unknown kind.
func errNoSuchPath(q *request) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Group: q.gvr.Group, Kind: q.gvr.Resource, Name: q.name}}}
}

// errMethod is the answer to a method that the path does not take.
func errMethod(q *request) error {
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, q.verb, schema.GroupResource{}, "", "", 0, false)
}
