package refusal

import (
	"net/url"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Creation is why the API server did not let a controller create a Pod.
type Creation struct {
	// Code is what refused it; "" where that was not admission: a right that the
	// controller lacks, an object that is not valid, a server that did not answer.
	Code report.Code
	// Cause is the refusal itself, without what every such message begins with.
	Cause string

	// Of QuotaExceeded: the quota's name, "" where none covers the Pod at all; what was
	// asked for beyond it; what the quota wants to be specified; the scopes without a quota.
	Quota                    string
	Requested, Used, Limited []Amount
	MustSpecify              string
	Scopes                   []Scope

	// Of a webhook, whether it denied the Pod or could not be reached: its name, where
	// it was called, the Service "namespace/name" behind that where it is one, and the
	// reason given.
	Webhook string
	URL     string
	Service string
	Why     string

	// Of AdmissionDenied: the policy and its binding, "" where the message names none.
	Policy, Binding string

	// Of PodSecurityViolation: the enforced level and its version, and what violates it.
	Level, Version string
	Violations     []string

	ServiceAccount string // of ServiceAccountMissing: "namespace/name"
	PriorityClass  string // of PriorityClassMissing
	Unauthorized   string // the user that may not create Pods, where that is the reason
	Terminating    bool   // the namespace is being deleted
	Invalid        bool   // the Pod itself is not valid
}

// Amount is a quantity of a resource, as a quota writes it: "requests.cpu=500m".
type Amount struct{ Resource, Quantity string }

// Scope is a part of what a quota may be limited to: PriorityClass In [a b].
type Scope struct {
	Name, Operator string
	Values         []string
}

// ParseCreation takes apart the message of a FailedCreate event or of the condition
// ReplicaFailure. It reports false for a text that it does not know. A message that
// was cut short is read as far as it goes.
func ParseCreation(message string) (Creation, bool) {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	m, forbidden := unwrapped(message)
	c := Creation{Cause: m}
	for _, read := range []func(*Creation, string) bool{denied, unreachable, policy, quota, podSecurity, missing, notAdmission} {
		if read(&c, m) {
			return c, true
		}
	}
	if forbidden {
		// LimitRanger, RuntimeClass, security context constraints: admission plugins
		// that all say "forbidden" and nothing in common besides.
		c.Code, c.Why = report.AdmissionDenied, m
		return c, true
	}
	return Creation{}, false
}

// unwrapped strips what stands before the refusal, and tells whether the API server
// called it forbidden.
func unwrapped(m string) (string, bool) {
	m = strings.TrimSpace(m)
	m = strings.TrimPrefix(m, "(combined from similar events): ")
	if strings.HasPrefix(m, "create Pod ") { // StatefulSets
		if _, rest, ok := strings.Cut(m, " failed error: "); ok {
			m = rest
		}
	}
	m = strings.TrimPrefix(m, "Error creating: ")
	m = strings.TrimPrefix(m, "Internal error occurred: ")
	if strings.HasPrefix(m, "pods ") {
		if _, cause, ok := strings.Cut(m, " is forbidden: "); ok {
			return cause, true
		}
	}
	return m, false
}

// unreachable reads a webhook that could not be called or gave no valid answer.
// Source: apiserver pkg/util/webhook/error.go, ErrCallingWebhook.
func unreachable(c *Creation, m string) bool {
	name, rest, ok := quoted(m, "failed calling webhook ")
	if !ok {
		name, rest, ok = quoted(m, "failed calling admission webhook ") // until 1.13
	}
	if !ok {
		return false
	}
	c.Code, c.Webhook = report.AdmissionWebhookUnavailable, name
	rest = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(rest, ":"), ";"), " ")
	rest = strings.TrimPrefix(rest, "failed to call webhook: ")
	c.Why = rest
	if address, why, ok := quoted(rest, "Post "); ok {
		c.URL, c.Why = address, strings.TrimPrefix(strings.TrimPrefix(why, ":"), " ")
		c.Service = service(address)
	}
	return true
}

// service is the Service behind https://name.namespace.svc:443/path, "" for another host.
func service(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	parts := strings.Split(u.Hostname(), ".")
	if len(parts) < 3 || parts[2] != "svc" || parts[0] == "" || parts[1] == "" {
		return ""
	}
	return parts[1] + "/" + parts[0]
}

// denied reads a webhook's own no.
// Source: apiserver pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr.
func denied(c *Creation, m string) bool {
	if !strings.HasPrefix(m, `admission webhook "`) {
		return false
	}
	name, rest, ok := quoted(m, "admission webhook ")
	if !ok || !strings.HasPrefix(rest, " denied the request") {
		return false
	}
	why := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(rest, " denied the request"), ": "))
	c.Code, c.Webhook, c.Why = report.AdmissionDenied, name, why
	podSecurity(c, why) // Pod Security can be enforced by a webhook as well
	return true
}

// quota reads the four ways in which a quota refuses.
// Source: apiserver pkg/admission/plugin/resourcequota/controller.go, CheckRequest.
func quota(c *Creation, m string) bool {
	switch {
	case strings.Contains(m, "exceeded quota: "):
		_, rest, _ := strings.Cut(m, "exceeded quota: ")
		name, rest, _ := strings.Cut(rest, ", requested: ")
		requested, rest, _ := strings.Cut(rest, ", used: ")
		used, limited, _ := strings.Cut(rest, ", limited: ")
		c.Quota, c.Requested, c.Used, c.Limited = name, amounts(requested), amounts(used), amounts(limited)
	case strings.Contains(m, "failed quota: "):
		_, rest, _ := strings.Cut(m, "failed quota: ")
		name, why, _ := strings.Cut(rest, ": ")
		c.Quota, c.MustSpecify = name, strings.TrimPrefix(why, "must specify ")
	case strings.Contains(m, "status unknown for quota: "):
		_, rest, _ := strings.Cut(m, "status unknown for quota: ")
		c.Quota, _, _ = strings.Cut(rest, ", ")
		c.Why = "its usage is not known yet"
	case strings.Contains(m, "insufficient quota to match these scopes: "):
		_, rest, _ := strings.Cut(m, "insufficient quota to match these scopes: ")
		c.Scopes = scopes(rest)
	case strings.Contains(m, "insufficient quota to consume: "):
		_, rest, _ := strings.Cut(m, "insufficient quota to consume: ")
		for _, r := range strings.Split(rest, ",") {
			if r = strings.TrimSpace(r); r != "" {
				c.Requested = append(c.Requested, Amount{Resource: r})
			}
		}
	default:
		return false
	}
	c.Code = report.QuotaExceeded
	return true
}

// amounts reads "cpu=1,memory=2Gi".
func amounts(s string) []Amount {
	var out []Amount
	for _, part := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if ok && name != "" {
			out = append(out, Amount{Resource: name, Quantity: value})
		}
	}
	return out
}

// scopes reads "[{PriorityClass In [a b]} {BestEffort Exists []}]".
func scopes(s string) []Scope {
	var out []Scope
	for _, part := range strings.Split(s, "{")[1:] {
		part, _, _ = strings.Cut(part, "}")
		words, values, _ := strings.Cut(part, "[")
		values, _, _ = strings.Cut(values, "]")
		name, operator, _ := strings.Cut(strings.TrimSpace(words), " ")
		if name != "" {
			out = append(out, Scope{Name: name, Operator: strings.TrimSpace(operator), Values: strings.Fields(values)})
		}
	}
	return out
}

// podSecurity reads `violates PodSecurity "restricted:latest": a (details), b (details)`.
// Source: pod-security-admission admission/admission.go, EvaluatePod.
func podSecurity(c *Creation, m string) bool {
	policy, rest, ok := quoted(m, "violates PodSecurity ")
	if !ok {
		return false
	}
	c.Code = report.PodSecurityViolation
	c.Level, c.Version, _ = strings.Cut(policy, ":")
	c.Violations = outsideBrackets(strings.TrimPrefix(strings.TrimPrefix(rest, ":"), " "))
	return true
}

// outsideBrackets splits at the commas that are in no brackets and no quotes.
func outsideBrackets(s string) []string {
	var out []string
	depth, start, inQuotes := 0, 0, false
	for i := range len(s) {
		switch s[i] {
		case '"':
			inQuotes = !inQuotes
		case '(', '[', '{':
			if !inQuotes {
				depth++
			}
		case ')', ']', '}':
			if !inQuotes && depth > 0 {
				depth--
			}
		case ',':
			if depth == 0 && !inQuotes {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	out = append(out, strings.TrimSpace(s[start:]))
	kept := out[:0]
	for _, v := range out {
		if v != "" {
			kept = append(kept, v)
		}
	}
	return kept
}

// policy reads the no of an admission policy written in CEL.
// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go and policy/generic/policy_dispatcher.go.
func policy(c *Creation, m string) bool {
	before, why, ok := strings.Cut(m, " denied request: ")
	kind, names, named := strings.Cut(before, " ")
	if !ok || !named || kind != "ValidatingAdmissionPolicy" && kind != "MutatingAdmissionPolicy" && kind != "policy" {
		return false
	}
	name, binding, _ := strings.Cut(names, " with binding ")
	c.Code, c.Policy, c.Binding, c.Why = report.AdmissionDenied, strings.Trim(name, `'"`), strings.Trim(binding, `'"`), why
	return c.Policy != ""
}

// missing reads what the Pod refers to and does not exist.
// Source: plugin/pkg/admission/serviceaccount/admission.go, priority/admission.go.
func missing(c *Creation, m string) bool {
	if _, rest, ok := strings.Cut(m, "error looking up service account "); ok {
		c.ServiceAccount, c.Why, _ = strings.Cut(rest, ": ")
		c.Code = report.ServiceAccountMissing
		return c.ServiceAccount != ""
	}
	if _, rest, ok := strings.Cut(m, "no PriorityClass with name "); ok {
		c.PriorityClass, _, _ = strings.Cut(rest, " was found")
		c.Code = report.PriorityClassMissing
		return c.PriorityClass != ""
	}
	return false
}

// notAdmission reads refusals that no admission plugin gave.
func notAdmission(c *Creation, m string) bool {
	switch {
	case strings.HasPrefix(m, `User "`) && strings.Contains(m, " cannot create resource "):
		c.Unauthorized, _, _ = quoted(m, "User ")
	case strings.Contains(m, "because it is being terminated"):
		c.Terminating = true
	case strings.HasPrefix(m, `Pod "`) && strings.Contains(m, `" is invalid: `):
		c.Invalid = true
		_, c.Why, _ = strings.Cut(m, `" is invalid: `)
	default:
		return false
	}
	return true
}

// quoted reads `before"name"rest`: the name between the quotes that follow the prefix.
// Quotes that are escaped within are taken as they stand.
func quoted(m, before string) (name, rest string, ok bool) {
	_, m, ok = strings.Cut(m, before+`"`)
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(m, `"`)
	return name, rest, name != ""
}
