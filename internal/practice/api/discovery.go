package api

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// DefaultVersion is the Kubernetes version whose behaviour this server follows.
const DefaultVersion = "v1.37.2"

// SetVersion changes what /version answers, such as "v1.34.1".
func (s *Server) SetVersion(gitVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = gitVersion
}

// serveMeta answers requests for no resource.
func (s *Server) serveMeta(w http.ResponseWriter, req *http.Request, q *request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		writeError(w, req, errMethod(q))
		return
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var answer any
	switch {
	case slices.Contains([]string{"readyz", "livez", "healthz"}, parts[0]):
		_, _ = w.Write([]byte("ok"))
		return
	case req.URL.Path == "/version" || req.URL.Path == "/version/":
		answer = s.versionInfo()
	case parts[0] == "api" && len(parts) == 1:
		answer = &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}}
	case parts[0] == "apis" && len(parts) == 1:
		answer = groupList()
	case parts[0] == "apis" && len(parts) == 2:
		for _, g := range groupList().Groups {
			if g.Name == parts[1] {
				g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				answer = &g
			}
		}
	case parts[0] == "api" && len(parts) == 2, parts[0] == "apis" && len(parts) == 3:
		for _, list := range discovery() {
			if list.GroupVersion == strings.Join(parts[1:], "/") {
				answer = list
			}
		}
	}
	if answer == nil {
		if serveOpenAPI(w, req) {
			return
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	writeJSON(w, answer)
}

func (s *Server) versionInfo() *version.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := strings.SplitN(strings.TrimPrefix(s.version, "v"), ".", 3)
	for len(numbers) < 2 {
		numbers = append(numbers, "0")
	}
	return &version.Info{Major: numbers[0], Minor: numbers[1], GitVersion: s.version, GitTreeState: "clean", Platform: "linux/amd64"}
}

// discovery lists what is served, one list for each group and version.
func discovery() []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	add := func(gv schema.GroupVersion, r ...metav1.APIResource) {
		i := slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == gv.String() })
		if i < 0 {
			lists = append(lists, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()})
			i = len(lists) - 1
		}
		lists[i].APIResources = append(lists[i].APIResources, r...)
	}
	for _, r := range resources {
		add(r.gvr.GroupVersion(), r.describe()...)
	}
	for _, r := range reviews {
		add(r.gvr.GroupVersion(), metav1.APIResource{Name: r.gvr.Resource, SingularName: strings.ToLower(r.kind), Kind: r.kind, Verbs: metav1.Verbs{"create"}})
	}
	return lists
}

// describe is a resource's entry in discovery, and those of its subresources.
func (r *resource) describe() []metav1.APIResource {
	out := []metav1.APIResource{{Name: r.gvr.Resource, SingularName: r.singular, Namespaced: r.namespaced, Kind: r.kind,
		Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		ShortNames: r.short, Categories: r.categories}}
	for _, sub := range r.otherSubs {
		out = append(out, metav1.APIResource{Name: r.gvr.Resource + "/" + sub.name, Namespaced: r.namespaced, Kind: sub.kind,
			Group: sub.group, Version: sub.version, Verbs: sub.verbs})
	}
	if r.hasStatus {
		out = append(out, metav1.APIResource{Name: r.gvr.Resource + "/status", Namespaced: r.namespaced, Kind: r.kind,
			Verbs: metav1.Verbs{"get", "patch", "update"}})
	}
	return out
}

func groupList() *metav1.APIGroupList {
	out := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, list := range discovery() {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) // written above, from a GroupVersion
		if gv.Group == "" {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		out.Groups = append(out.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return out
}
