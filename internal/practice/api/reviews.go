package api

import (
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// review is a kind that is answered and never stored.
type review struct {
	gvr  schema.GroupVersionResource
	kind string
}

var reviews = []*review{
	{authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"), "SelfSubjectAccessReview"},
	{authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews"), "SelfSubjectRulesReview"},
	{authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"), "SelfSubjectReview"},
}

func reviewFor(q *request) *review {
	for _, r := range reviews {
		if r.gvr == q.gvr && q.name == "" && q.namespace == "" {
			return r
		}
	}
	return nil
}

func (s *Server) serveReview(w http.ResponseWriter, req *http.Request, q *request, r *review) error {
	if q.verb != "create" {
		return errMethod(q)
	}
	a, err := negotiate(req, false)
	if err != nil {
		return err
	}
	gvk := r.gvr.GroupVersion().WithKind(r.kind)
	o, err := decodeBody(req, gvk, fieldValidation{})
	if err != nil {
		return err
	}
	switch o := o.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		err = s.reviewAccess(q.user, o)
	case *authorizationv1.SelfSubjectRulesReview:
		err = s.reviewRules(q.user, o)
	case *authenticationv1.SelfSubjectReview:
		o.Status.UserInfo = authenticationv1.UserInfo{Username: q.user, Groups: []string{"system:authenticated"}}
	}
	if err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	writeObject(w, http.StatusCreated, a, o)
	return nil
}

func (s *Server) reviewAccess(user string, review *authorizationv1.SelfSubjectAccessReview) error {
	switch {
	case review.Spec.ResourceAttributes != nil:
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = s.allowed(user, a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace)
	case review.Spec.NonResourceAttributes != nil:
		review.Status.Allowed = true
	default:
		return apierrors.NewBadRequest("exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	if review.Status.Allowed {
		review.Status.Reason = "practice cluster: no denial names it"
	}
	return nil
}

// reviewRules lists what is allowed. Denials cannot be written as rules, so with any for the user every right is listed.
func (s *Server) reviewRules(user string, review *authorizationv1.SelfSubjectRulesReview) error {
	review.Status.NonResourceRules = []authorizationv1.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}
	s.mu.Lock()
	limited := slices.ContainsFunc(s.denied, func(d Denial) bool { return d.User == user || d.User == Everything })
	s.mu.Unlock()
	if !limited {
		review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
		return nil
	}
	for _, list := range discovery() {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if verbs := s.allowedVerbs(user, gv.Group, r, review.Spec.Namespace); len(verbs) > 0 {
				review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
					Verbs: verbs, APIGroups: []string{gv.Group}, Resources: []string{r.Name}})
			}
		}
	}
	return nil
}

func (s *Server) allowedVerbs(user, group string, r metav1.APIResource, namespace string) []string {
	var out []string
	for _, verb := range r.Verbs {
		if s.allowed(user, verb, group, r.Name, "", namespace) {
			out = append(out, verb)
		}
	}
	return out
}
