package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// FieldManager names this program in the managedFields of what it changes.
const FieldManager = "rollcall"

// API is a connection as actions need it.
type API struct{ c *Connection }

var _ action.API = API{}

// API returns the connection as actions need it.
func (c *Connection) API() API { return API{c} }

// Get reads an object, as JSON and verbatim.
func (a API) Get(ctx context.Context, ref action.Ref) (action.Object, error) {
	return a.object(ctx, "read", ref, a.c.REST(corev1.SchemeGroupVersion).Get())
}

// Patch changes an object. With dryRun the API server validates the change and
// stores nothing.
func (a API) Patch(ctx context.Context, ref action.Ref, t action.PatchType, patch []byte, dryRun bool) (action.Object, error) {
	r := a.c.REST(corev1.SchemeGroupVersion).Patch(types.PatchType(t)).
		Param("fieldManager", FieldManager).Body(patch)
	verb := "patch"
	if dryRun {
		r.Param("dryRun", metav1.DryRunAll)
		verb = "dry-run the patch of"
	}
	return a.object(ctx, verb, ref, r)
}

// Delete deletes an object while it has that UID.
func (a API) Delete(ctx context.Context, ref action.Ref, uid string, dryRun bool) error {
	o := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions: metav1.NewUIDPreconditions(uid),
	}
	verb := "delete"
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
		verb = "dry-run the deletion of"
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	r := a.c.REST(corev1.SchemeGroupVersion).Delete().Body(body).SetHeader("Content-Type", "application/json")
	return a.translate(verb, ref, address(r, ref).Do(ctx).Error())
}

// CanI asks the API server whether this session may do it.
func (a API) CanI(ctx context.Context, verb string, ref action.Ref) (bool, string, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: ref.Namespace, Verb: verb, Group: ref.Group, Version: ref.Version, Resource: ref.Resource, Name: ref.Name,
		},
	}}
	var out authorizationv1.SelfSubjectAccessReview
	err := a.c.REST(authorizationv1.SchemeGroupVersion).Post().Resource("selfsubjectaccessreviews").
		Body(review).Do(ctx).Into(&out)
	if err != nil {
		return false, "", a.translate("ask for the right to "+verb, ref, err)
	}
	reason := out.Status.Reason
	if reason == "" {
		reason = out.Status.EvaluationError
	}
	return out.Status.Allowed, string(report.Clean(reason)), nil
}

// object sends a request about one object and returns what the API server sent.
func (a API) object(ctx context.Context, verb string, ref action.Ref, r *rest.Request) (action.Object, error) {
	raw, err := rawJSON(ctx, address(r, ref))
	if err != nil {
		return action.Object{}, a.translate(verb, ref, err)
	}
	var o struct {
		Metadata struct {
			UID        string `json:"uid"`
			Generation int64  `json:"generation"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return action.Object{}, fmt.Errorf("cannot %s %s: the API server's answer is no object: %w", verb, describe(ref), err)
	}
	return action.Object{UID: o.Metadata.UID, Generation: o.Metadata.Generation, Raw: raw}, nil
}

// rawJSON sends a request and returns the answer as it came. Result.Raw alone would
// lose what the API server says of an error.
func rawJSON(ctx context.Context, r *rest.Request) ([]byte, error) {
	res := r.SetHeader("Accept", "application/json").Do(ctx)
	if err := res.Error(); err != nil {
		return nil, err
	}
	return res.Raw()
}

// address points a request at an object.
func address(r *rest.Request, ref action.Ref) *rest.Request {
	base := path.Join("/apis", ref.Group, ref.Version)
	if ref.Group == "" {
		base = path.Join("/api", ref.Version)
	}
	parts := []string{base}
	if ref.Namespace != "" {
		parts = append(parts, "namespaces", ref.Namespace)
	}
	return r.AbsPath(append(parts, ref.Resource, ref.Name)...)
}

func describe(ref action.Ref) string {
	if ref.Namespace == "" {
		return ref.Kind + "/" + ref.Name
	}
	return ref.Kind + "/" + ref.Namespace + "/" + ref.Name
}

// translate turns what client-go answers into the errors that actions tell apart.
func (a API) translate(verb string, ref action.Ref, err error) error {
	if err == nil {
		return nil
	}
	kind, why := a.kindOf(err)
	if kind == nil {
		return &failure{fmt.Sprintf("cannot %s %s: %s", verb, describe(ref), report.Clean(why)), err}
	}
	return fmt.Errorf("cannot %s %s: %w: %s", verb, describe(ref), kind, report.Clean(why))
}

// failure is a line that is safe to show, and its cause.
type failure struct {
	line  string
	cause error
}

func (f *failure) Error() string { return f.line }
func (f *failure) Unwrap() error { return f.cause }

// kindOf finds the error of package action that err is, nil where it is none.
func (a API) kindOf(err error) (kind error, why string) {
	switch {
	case errors.Is(err, action.ErrReadOnly):
		return action.ErrReadOnly, a.c.ReadOnlyWhy
	case errors.Is(err, context.Canceled):
		return context.Canceled, "given up before the answer came"
	case apierrors.IsForbidden(err):
		return action.ErrForbidden, message(err)
	case apierrors.IsNotFound(err):
		return action.ErrNotFound, message(err)
	case apierrors.IsConflict(err):
		return action.ErrConflict, message(err)
	case failedTest(err):
		return action.ErrConflict, "the patch does not fit it any more"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch code := int(status.Status().Code); code {
		case http.StatusUnauthorized:
			return action.ErrForbidden, a.c.unauthorized()
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return action.ErrUnreachable, fmt.Sprintf("it answered %d: %s", code, message(err))
		}
		return nil, message(err)
	}
	why, _ = a.c.reason(err)
	return action.ErrUnreachable, why
}

// failedTest tells of a JSON Patch that does not fit the object any more: a `test`
// operation did not hold or a path is gone. The API server answers 422 without
// saying which; an object that fails validation is told from it by its causes.
// Source: apiserver pkg/endpoints/handlers/patch.go, applyJSPatch.
func failedTest(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	d := status.Status().Details
	return d == nil || len(d.Causes) == 0
}
