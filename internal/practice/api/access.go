package api

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultUser is who a request without a bearer token comes from.
const DefaultUser = "practice-operator"

// Everything, in a Denial, stands for every value.
const Everything = "*"

// Denial takes a right away; whatever no denial names is allowed. Requests and access reviews agree.
type Denial struct {
	User      string
	Verb      string // get, list, watch, create, update, patch, delete, deletecollection
	Group     string // "" is the core group
	Resource  string // "pods", or "pods/log" for a subresource; "*" includes subresources
	Namespace string // "" is everywhere; else only requests within this namespace
	Except    string // requests within this namespace are let through: the right comes from a Role there
}

// Deny adds denials, such as Denial{User: "reader", Verb: "patch", Group: "*", Resource: "*"}.
func (s *Server) Deny(d ...Denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = append(s.denied, d...)
}

// Allow takes back every denial for a user.
func (s *Server) Allow(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.denied[:0:0]
	for _, d := range s.denied {
		if d.User != user {
			kept = append(kept, d)
		}
	}
	s.denied = kept
}

// Reject makes a bearer token invalid: its requests are answered with 401, as an expired credential's are.
func (s *Server) Reject(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected[token] = true
}

// authenticate: a bearer token is the user's name; impersonation is always allowed.
func (s *Server) authenticate(req *http.Request) (string, error) {
	user := DefaultUser
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		s.mu.Lock()
		rejected := s.rejected[token]
		s.mu.Unlock()
		if rejected || token == "" {
			return "", apierrors.NewUnauthorized("Unauthorized")
		}
		user = token
	}
	if as := req.Header.Get("Impersonate-User"); as != "" {
		user = as
	}
	return user, nil
}

// authorize refuses with the API server's words (apiserver: pkg/endpoints/handlers/responsewriters/errors.go).
func (s *Server) authorize(q *request) error {
	if !q.isResource() || s.allowed(q.user, q.verb, q.gvr.Group, q.gvr.Resource, q.subresource, q.namespace) {
		return nil
	}
	resource := q.gvr.Resource
	if q.subresource != "" {
		resource += "/" + q.subresource
	}
	where := "at the cluster scope"
	if q.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", q.namespace)
	}
	message := fmt.Errorf("User %q cannot %s resource %q in API group %q %s", q.user, q.verb, resource, q.gvr.Group, where)
	return apierrors.NewForbidden(schema.GroupResource{Group: q.gvr.Group, Resource: q.gvr.Resource}, q.name, message)
}

func (s *Server) allowed(user, verb, group, resource, subresource, namespace string) bool {
	// Everybody may ask about themselves (the role system:basic-user).
	if strings.HasPrefix(resource, "selfsubject") {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if subresource != "" {
		resource += "/" + subresource
	}
	for _, d := range s.denied {
		if d.covers(user, verb, group, resource, namespace) {
			return false
		}
	}
	return true
}

func (d Denial) covers(user, verb, group, resource, namespace string) bool {
	is := func(pattern, value string) bool { return pattern == Everything || pattern == value }
	return is(d.User, user) && is(d.Verb, verb) && is(d.Group, group) && is(d.Resource, resource) &&
		(d.Namespace == "" || d.Namespace == namespace) && (d.Except == "" || d.Except != namespace)
}
