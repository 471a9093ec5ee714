package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody is the API server's limit for a request's body, in bytes.
const maxBody = 3 * 1024 * 1024

// accepted is the form of answer that a client wants.
type accepted struct {
	serializer runtime.SerializerInfo
	// as is "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList".
	as string
	// include is what a Table's rows carry of their objects.
	include string
}

// asJSON is the form when nothing was asked for.
var asJSON = accepted{serializer: scheme.Codecs.SupportedMediaTypes()[0]}

// negotiate picks the first clause of Accept that can be served. Transformations are for resources only.
func negotiate(req *http.Request, transforms bool) (accepted, error) {
	header := req.Header.Get("Accept")
	if header == "" {
		return asJSON, nil
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		as := clause.Params["as"]
		if as != "" && (!transforms || !canTransform(as, clause.Params["g"], clause.Params["v"], clause.SubType)) {
			continue
		}
		for _, info := range scheme.Codecs.SupportedMediaTypes() {
			if info.StreamSerializer == nil && info.MediaType != runtime.ContentTypeYAML {
				continue
			}
			if (clause.Type == info.MediaTypeType || clause.Type == "*") && (clause.SubType == info.MediaTypeSubType || clause.SubType == "*") {
				return accepted{serializer: info, as: as, include: req.URL.Query().Get("includeObject")}, nil
			}
		}
	}
	return accepted{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(mediaTypes(), ", ")}}
}

func canTransform(as, group, version, subtype string) bool {
	if group != metav1.GroupName || version != "v1" {
		return false
	}
	switch as {
	case "Table":
		return subtype == "json"
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	default:
		return false
	}
}

func mediaTypes() []string {
	var out []string
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		out = append(out, info.MediaType)
	}
	return out
}

// readBody reads a body, within the API server's limit.
func readBody(req *http.Request) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(data) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return data, nil
}

// inputSerializer finds the decoder for a Content-Type.
func inputSerializer(req *http.Request) (runtime.SerializerInfo, error) {
	contentType := req.Header.Get("Content-Type")
	if contentType == "" {
		return asJSON.serializer, nil
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil {
		if info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType); ok {
			return info, nil
		}
	}
	return runtime.SerializerInfo{}, unsupportedMediaType(mediaTypes())
}

func unsupportedMediaType(supported []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(supported, ", ")}}
}

// decodeBody reads the body as an object of the kind, which a body without a kind is taken for.
func decodeBody(req *http.Request, gvk schema.GroupVersionKind, v fieldValidation) (runtime.Object, error) {
	info, err := inputSerializer(req)
	if err != nil {
		return nil, err
	}
	data, err := readBody(req)
	if err != nil {
		return nil, err
	}
	decoder := info.Serializer
	if (v.strict || v.warn != nil) && info.StrictSerializer != nil {
		decoder = info.StrictSerializer
	}
	o, got, err := decoder.Decode(data, &gvk, nil)
	if err = v.judge(err); err != nil {
		if got == nil || got.Kind == "" {
			got = &gvk
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, gvk.Kind, err))
	}
	if got.GroupVersion() != gvk.GroupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			got.GroupVersion(), gvk.GroupVersion()))
	}
	if got.Kind != gvk.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: no kind registered", got.Kind, got.Version, gvk.Kind))
	}
	return o, nil
}

// writeObject answers with an object that carries its kind.
func writeObject(w http.ResponseWriter, code int, a accepted, o runtime.Object) {
	var body bytes.Buffer
	if err := a.serializer.Serializer.Encode(o, &body); err != nil {
		// A kind without protobuf: the one case is a mistake here, so say it rather than send half an object.
		http.Error(w, fmt.Sprintf("practice API server: cannot encode %T: %v", o, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", a.serializer.MediaType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

// writeError answers with a Status, as every failure of the API server does.
func writeError(w http.ResponseWriter, req *http.Request, err error) {
	a, negotiation := negotiate(req, false)
	if negotiation != nil {
		a = asJSON
	}
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	writeObject(w, int(status.Code), a, status)
}

func statusOf(err error) *metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return &status
}

// writeJSON answers with what has no other form: discovery and the version.
func writeJSON(w http.ResponseWriter, answer any) {
	data, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_, _ = w.Write(data) // the client may be gone
}
