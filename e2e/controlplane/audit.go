package controlplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"
)

const auditLog = "audit.log"

// auditPolicy writes one line for every request when it has been answered, and
// for every watch when it has begun; but not of the routine of the control plane's own
// components, which in a large cluster is more than one file takes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [` + Admin + `]
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: "", resources: [events, nodes/status, pods/status, pods/binding]}
- level: Metadata
`

// Request is one request as the API server's own audit log has it.
type Request struct {
	User        string
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	URI         string
	Code        int // of the answer
	DryRun      bool
	At          time.Time // when it arrived
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s (%d)", r.User, r.Verb, r.URI, r.Code)
}

// Mutates tells whether the request would change something that is stored, or,
// as a dry run, asks to.
func (r Request) Mutates() bool {
	switch r.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	}
	return true
}

// AsksForAccess tells whether the request asks what its own user may do: a create
// that stores nothing.
func (r Request) AsksForAccess() bool {
	return r.Verb == "create" && (r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io") &&
		(r.Resource == "selfsubjectaccessreviews" || r.Resource == "selfsubjectrulesreviews" || r.Resource == "selfsubjectreviews")
}

// Requests are those that the user has sent so far, the oldest first. The API
// server writes each before it ends its answer.
func (c *ControlPlane) Requests(user string) ([]Request, error) {
	f, err := os.Open(c.file(auditLog))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var requests []Request
	seen := map[string]bool{} // a watch is written when it begins and when it ends
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			AuditID    string
			RequestURI string
			Verb       string
			User       struct{ Username string }
			ObjectRef  struct{ APIGroup, Resource, Subresource, Namespace, Name string }

			ResponseStatus struct{ Code int }

			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w: %s", err, lines.Text())
		}
		if e.User.Username != user || seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		u, err := url.Parse(e.RequestURI)
		if err != nil {
			return nil, err
		}
		requests = append(requests, Request{
			User: user, Verb: e.Verb, URI: e.RequestURI, Code: e.ResponseStatus.Code,
			Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
			DryRun: u.Query().Has("dryRun"), At: e.RequestReceivedTimestamp,
		})
	}
	return requests, lines.Err()
}
