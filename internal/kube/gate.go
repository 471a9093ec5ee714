package kube

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// gate is the one place where read-only is enforced. It is the outermost
// RoundTripper of every client of the program: nothing that it refuses reaches
// the network, a credential plugin included. It lets through what it knows to be
// a read, and nothing else.
type gate struct {
	readOnly bool
	why      string // who said so
	base     string // path of the server's URL, without a trailing slash
	next     http.RoundTripper
}

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.readOnly && !g.reads(r) {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper closes the body on errors too
		}
		return nil, fmt.Errorf("%s %s was not sent: %w (%s)", r.Method, r.URL.Path, action.ErrReadOnly, g.why)
	}
	return g.next.RoundTrip(r)
}

func (g gate) WrappedRoundTripper() http.RoundTripper { return g.next }

var (
	// plainReads are the paths outside any resource that a client reads.
	plainReads = []string{"version", "healthz", "livez", "readyz", "openapi"}
	// readSubresources can be GET without anything happening. exec, attach,
	// portforward and proxy can be GET as well, and act; so do subresources of
	// extensions (consoles of virtual machines), hence a list of what may pass.
	readSubresources = []string{"status", "scale", "log", "resize", "ephemeralcontainers", "approval"}
	// reviews are created to ask about oneself; they are stored nowhere.
	reviews = map[string][]string{
		"authorization.k8s.io":  {"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
		"authentication.k8s.io": {"selfsubjectreviews"},
	}
)

// reads tells whether a request only reads.
func (g gate) reads(r *http.Request) bool {
	parts, ok := segments(r.URL, g.base)
	if !ok {
		return false
	}
	group, rest, resource := apiPath(parts)
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if r.Header.Get("Upgrade") != "" {
			return false
		}
		if !resource {
			return len(parts) > 0 && (slices.Contains(plainReads, parts[0]) || parts[0] == "api" || parts[0] == "apis")
		}
		return readsResource(rest)
	case http.MethodPost:
		return resource && len(rest) == 1 && slices.Contains(reviews[group], rest[0])
	}
	return false
}

// readsResource tells whether the path below a group's version is that of a list,
// an object or a harmless subresource. A Pod may well be called proxy: what counts
// is the place.
func readsResource(rest []string) bool {
	if len(rest) > 0 && rest[0] == "watch" { // the old form of a watch
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0] == "proxy" { // the old form of a proxied request
		return false
	}
	if len(rest) >= 3 && rest[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, rest[2]) {
		rest = rest[2:]
	}
	switch len(rest) {
	case 0, 1, 2: // discovery, a list, an object
		return true
	case 3:
		return slices.Contains(readSubresources, rest[2])
	}
	return false
}

// apiPath splits /api/v1/... and /apis/GROUP/VERSION/...; resource is false for
// any other path and for the groups' own discovery.
func apiPath(parts []string) (group string, rest []string, resource bool) {
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		return "", parts[2:], true
	case len(parts) >= 3 && parts[0] == "apis":
		return parts[1], parts[3:], true
	}
	return "", nil, false
}

// segments are the decoded parts of a URL's path below base. Not ok is a path that
// a server might understand otherwise than it is read here.
func segments(u *url.URL, base string) ([]string, bool) {
	path := u.EscapedPath()
	if base != "" {
		after, ok := strings.CutPrefix(path, base)
		if !ok {
			return nil, false
		}
		path = after
	}
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil, true
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil || s == "" || s == "." || s == ".." || strings.Contains(s, "/") {
			return nil, false
		}
		parts[i] = s
	}
	return parts, true
}
