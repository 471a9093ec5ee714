package api

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The part of OpenAPI v3 that kubectl create and apply ask for: whether a kind's PATCH takes fieldValidation, so that the
// server may check for unknown fields. Schemas are left out.

type openAPI struct {
	OpenAPI string                    `json:"openapi"`
	Info    map[string]string         `json:"info"`
	Paths   map[string]map[string]any `json:"paths"`
}

// serveOpenAPI says whether the path is one of OpenAPI v3.
func serveOpenAPI(w http.ResponseWriter, req *http.Request) bool {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(req.URL.Path, "/"), "/openapi/v3")
	if !ok {
		return false
	}
	if rest == "" {
		index := map[string]map[string]string{}
		for _, r := range resources {
			at := groupPath(r)
			index[at] = map[string]string{"serverRelativeURL": "/openapi/v3/" + at}
		}
		writeJSON(w, map[string]any{"paths": index})
		return true
	}
	doc := openAPI{OpenAPI: "3.0.0", Info: map[string]string{"title": "Kubernetes", "version": DefaultVersion}, Paths: map[string]map[string]any{}}
	for _, r := range resources {
		if "/"+groupPath(r) == rest {
			doc.Paths[objectPath(r)] = map[string]any{"patch": patchOperation(r)}
		}
	}
	if len(doc.Paths) == 0 {
		return false
	}
	writeJSON(w, doc)
	return true
}

func groupPath(r *resource) string {
	if r.gvr.Group == "" {
		return "api/" + r.gvr.Version
	}
	return "apis/" + r.gvr.Group + "/" + r.gvr.Version
}

func objectPath(r *resource) string {
	parts := []string{"", groupPath(r)}
	if r.namespaced {
		parts = append(parts, "namespaces", "{namespace}")
	}
	return strings.Join(slices.Concat(parts, []string{r.gvr.Resource, "{name}"}), "/")
}

func patchOperation(r *resource) map[string]any {
	parameters := []map[string]any{}
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
	}
	return map[string]any{
		"parameters": parameters,
		"responses":  map[string]any{},
		"x-kubernetes-group-version-kind": metav1.GroupVersionKind{
			Group: r.gvr.Group, Version: r.gvr.Version, Kind: r.kind},
	}
}
