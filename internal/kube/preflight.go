package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// metadataOnly is the one form in which the existence of an object is asked for: an
// API server that cannot give it answers with an error, and never with the data.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// Exists asks whether an object is there, for its metadata alone. The errors are those
// of package action.
func (a API) Exists(ctx context.Context, ref action.Ref) (bool, error) {
	r := address(a.c.REST(corev1.SchemeGroupVersion).Get(), ref).SetHeader("Accept", metadataOnly)
	err := r.Do(ctx).Error()
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) && names(err, ref.Name):
		return false, nil
	}
	return false, a.translate("read the metadata of", ref, err)
}

// names tells whether an error is about that very object. An API that is not served at
// all answers 404 too.
func names(err error, object string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == object
}

// Trial is the API server's answer to a dry run.
type Trial struct {
	Refused  string   // its words where it does not take the object, "" where it does
	Warnings []string // that it gave besides, sorted
}

// TryApply asks what the API server would say of the object if it were applied: a
// server-side apply with dryRun=All, which stores nothing, and strict validation of
// fields. The error says why the answer tells nothing.
func (a API) TryApply(ctx context.Context, ref action.Ref, object []byte) (Trial, error) {
	r := a.c.REST(corev1.SchemeGroupVersion).Patch(types.ApplyYAMLPatchType).Param("force", "true")
	return a.try(ctx, "dry-run", ref, address(r, ref), object)
}

// TryCreate is TryApply for an object that has no name yet: it asks for its creation.
func (a API) TryCreate(ctx context.Context, ref action.Ref, object []byte) (Trial, error) {
	r := a.c.REST(corev1.SchemeGroupVersion).Post().SetHeader("Content-Type", "application/json")
	ref.Name = ""
	return a.try(ctx, "dry-run the creation of", ref, address(r, ref), object)
}

func (a API) try(ctx context.Context, verb string, ref action.Ref, r *rest.Request, object []byte) (Trial, error) {
	heard := &heard{}
	_, err := rawJSON(ctx, r.Param("dryRun", metav1.DryRunAll).Param("fieldValidation", metav1.FieldValidationStrict).
		Param("fieldManager", FieldManager).WarningHandlerWithContext(heard).Body(object))
	t := Trial{Warnings: heard.sorted()}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return t, nil
	case !errors.As(err, &status) || inconclusive(err, status.Status()):
		return t, a.translate(verb, ref, err)
	}
	t.Refused = message(err)
	return t, nil
}

// inconclusive tells of an answer that says nothing of the object: the session may not
// ask, the API server cannot answer now, or a webhook takes no part in dry runs.
func inconclusive(err error, s metav1.Status) bool {
	m := s.Message
	switch s.Code {
	case http.StatusForbidden:
		// The authorizer's words; an admission plugin has others.
		return strings.Contains(m, " cannot patch resource ") || strings.Contains(m, " cannot create resource ") || strings.Contains(m, " cannot update resource ")
	case http.StatusBadRequest:
		return strings.Contains(m, "does not support dry run")
	case http.StatusInternalServerError:
		return !strings.Contains(m, "webhook")
	}
	return apierrors.IsUnauthorized(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || s.Code > http.StatusInternalServerError
}

// heard gathers the warnings of one request.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, string(report.Clean(text)))
}

func (h *heard) sorted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.list)
	return slices.Compact(h.list)
}

// Applicable is a manifest's object as a server-side apply takes it: without what the
// API server keeps itself.
func Applicable(raw []byte, namespace string) ([]byte, error) {
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("the manifest is no object: %w", err)
	}
	delete(o, "status")
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		o["metadata"] = meta
	}
	for _, k := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"} {
		delete(meta, k)
	}
	meta["namespace"] = namespace
	return json.Marshal(o)
}
