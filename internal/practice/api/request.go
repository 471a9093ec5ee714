package api

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is what a URL asks for (apiserver: pkg/endpoints/request/requestinfo.go).
type request struct {
	user        string
	verb        string // get, list, watch, create, update, patch, delete, deletecollection
	path        string // of a request for no resource
	gvr         schema.GroupVersionResource
	namespace   string
	name        string
	subresource string
	resource    *resource // nil when it is not served
}

// isResource says whether the URL names a resource, served or not.
func (q *request) isResource() bool { return q.gvr.Resource != "" }

// parseRequest reads the method and the path.
func parseRequest(req *http.Request) *request {
	q := &request{path: req.URL.Path, verb: strings.ToLower(req.Method)}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		q.gvr.Version = parts[1]
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		q.gvr.Group, q.gvr.Version = parts[1], parts[2]
		parts = parts[3:]
	default:
		return q
	}
	// namespaces/NS/RESOURCE is content of a namespace; namespaces/NS and its own subresources are the namespace.
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		q.namespace = parts[1]
		parts = parts[2:]
	}
	q.gvr.Resource = parts[0]
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = strings.Join(parts[2:], "/")
	}
	q.resource, _ = resourceFor(q.gvr)
	q.verb = resourceVerb(req, q.name)
	return q
}

func resourceVerb(req *http.Request, name string) string {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		if isTrue(req.URL.Query(), "watch") {
			return "watch"
		}
		if name == "" {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	default:
		return strings.ToLower(req.Method)
	}
}

// isTrue reads a boolean parameter as the API server does: present without a value means true.
func isTrue(values map[string][]string, name string) bool {
	v, ok := values[name]
	if !ok || len(v) == 0 {
		return false
	}
	switch strings.ToLower(v[0]) {
	case "false", "0":
		return false
	default:
		return true
	}
}
