package refusal

import (
	"fmt"
	"strings"
	"testing"
)

func described(c Creation) string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	list := func(a []Amount) string {
		var parts []string
		for _, x := range a {
			parts = append(parts, x.Resource+":"+x.Quantity)
		}
		return strings.Join(parts, ",")
	}
	add("code", string(c.Code))
	add("quota", c.Quota)
	add("requested", list(c.Requested))
	add("used", list(c.Used))
	add("limited", list(c.Limited))
	add("specify", c.MustSpecify)
	for _, s := range c.Scopes {
		add("scope", fmt.Sprintf("%s %s %v", s.Name, s.Operator, s.Values))
	}
	add("webhook", c.Webhook)
	add("service", c.Service)
	if c.Service == "" {
		add("url", c.URL)
	}
	add("policy", c.Policy)
	add("binding", c.Binding)
	add("level", c.Level)
	add("version", c.Version)
	add("violations", strings.Join(c.Violations, "|"))
	add("account", c.ServiceAccount)
	add("class", c.PriorityClass)
	add("user", c.Unauthorized)
	if c.Terminating {
		add("terminating", "true")
	}
	if c.Invalid {
		add("invalid", "true")
	}
	add("why", c.Why)
	return strings.Join(out, " ")
}

// refusals are messages of FailedCreate events and ReplicaFailure conditions.
var refusals = []struct{ name, message, want string }{
	{"a quota is used up", `Error creating: pods "agent-x7k2p" is forbidden: exceeded quota: compute, requested: limits.cpu=500m,pods=1, used: limits.cpu=4,pods=10, limited: limits.cpu=4,pods=10`,
		"code=QuotaExceeded quota=compute requested=limits.cpu:500m,pods:1 used=limits.cpu:4,pods:10 limited=limits.cpu:4,pods:10"},
	{"the same in a condition", `pods "web-6d4cf56db6-" is forbidden: exceeded quota: compute, requested: memory=2Gi, used: memory=7Gi, limited: memory=8Gi`,
		"code=QuotaExceeded quota=compute requested=memory:2Gi used=memory:7Gi limited=memory:8Gi"},
	{"a quota wants something specified", `Error creating: pods "agent-abcde" is forbidden: failed quota: compute: must specify limits.cpu for: agent; limits.memory for: agent,init`,
		"code=QuotaExceeded quota=compute specify=limits.cpu for: agent; limits.memory for: agent,init"},
	{"no quota covers the priority class", `Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]`,
		"code=QuotaExceeded scope=PriorityClass In [system-node-critical system-cluster-critical]"},
	{"the same, forbidden", `Error creating: pods "odiglet-" is forbidden: insufficient quota to match these scopes: [{PriorityClass Exists []}]`,
		"code=QuotaExceeded scope=PriorityClass Exists []"},
	{"no quota covers a limited resource", `Error creating: pods "a-" is forbidden: insufficient quota to consume: requests.example.com/gpu`,
		"code=QuotaExceeded requested=requests.example.com/gpu:"},
	{"a quota that is not counted yet", `Error creating: pods "a-" is forbidden: status unknown for quota: compute, resources: pods`,
		"code=QuotaExceeded quota=compute why=its usage is not known yet"},
	{"Pod Security", `Error creating: pods "agent-" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), hostPath volumes (volumes "run", "modules"), privileged (container "agent" must not set securityContext.privileged=true)`,
		`code=PodSecurityViolation level=baseline version=latest violations=host namespaces (hostNetwork=true)|hostPath volumes (volumes "run", "modules")|privileged (container "agent" must not set securityContext.privileged=true)`},
	{"Pod Security of a version", `pods "a-" is forbidden: violates PodSecurity "restricted:v1.31": allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)`,
		`code=PodSecurityViolation level=restricted version=v1.31 violations=allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)`},
	{"a webhook says no", `Error creating: admission webhook "validate.policy.example.com" denied the request: image registry.example.com/agent:9 is not signed`,
		"code=AdmissionDenied webhook=validate.policy.example.com why=image registry.example.com/agent:9 is not signed"},
	{"a webhook says no without a reason", `Error creating: admission webhook "validate.example.com" denied the request without explanation`,
		"code=AdmissionDenied webhook=validate.example.com why=without explanation"},
	{"Pod Security by a webhook", `Error creating: admission webhook "pod-security-webhook.kubernetes.io" denied the request: pods "a-" is forbidden: violates PodSecurity "baseline:latest": hostPort (container "a" uses hostPort 9100)`,
		`code=PodSecurityViolation webhook=pod-security-webhook.kubernetes.io level=baseline version=latest violations=hostPort (container "a" uses hostPort 9100) why=pods "a-" is forbidden: violates PodSecurity "baseline:latest": hostPort (container "a" uses hostPort 9100)`},
	{"a webhook that says no because it cannot call another", `Error creating: admission webhook "a.example.com" denied the request: failed calling webhook "b.example.com": timeout`,
		`code=AdmissionDenied webhook=a.example.com why=failed calling webhook "b.example.com": timeout`},
	{"a webhook without endpoints", `Error creating: Internal error occurred: failed calling webhook "pod-hook.topolvm.example.com": failed to call webhook: Post "https://topolvm-controller.storage.svc:443/pod/mutate?timeout=10s": no endpoints available for service "topolvm-controller"`,
		`code=AdmissionWebhookUnavailable webhook=pod-hook.topolvm.example.com service=storage/topolvm-controller why=no endpoints available for service "topolvm-controller"`},
	{"a webhook that does not answer, before 1.22", `Error creating: Internal error occurred: failed calling webhook "inject.example.com": Post "https://inject.mesh.svc:443/inject?timeout=10s": dial tcp 10.96.3.4:443: connect: connection refused`,
		"code=AdmissionWebhookUnavailable webhook=inject.example.com service=mesh/inject why=dial tcp 10.96.3.4:443: connect: connection refused"},
	{"a webhook by URL", `Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://policy.example.com:8443/validate?timeout=5s": x509: certificate has expired or is not yet valid`,
		"code=AdmissionWebhookUnavailable webhook=v.example.com url=https://policy.example.com:8443/validate?timeout=5s why=x509: certificate has expired or is not yet valid"},
	{"a webhook that answers nonsense", `Error creating: Internal error occurred: failed calling webhook "v.example.com": received invalid webhook response: expected response.uid="x", got ""`,
		`code=AdmissionWebhookUnavailable webhook=v.example.com why=received invalid webhook response: expected response.uid="x", got ""`},
	{"a webhook, no details", `Error creating: Internal error occurred: failed calling webhook "v.example.com"; no further details available`,
		"code=AdmissionWebhookUnavailable webhook=v.example.com why=no further details available"},
	{"an admission policy", `Error creating: pods "agent-" is forbidden: ValidatingAdmissionPolicy 'no-host-network.example.com' with binding 'everywhere' denied request: hostNetwork is not allowed here`,
		"code=AdmissionDenied policy=no-host-network.example.com binding=everywhere why=hostNetwork is not allowed here"},
	{"a mutating admission policy", `Error creating: pods "agent-" is forbidden: policy 'labels.example.com' with binding 'b' denied request: no such key: team`,
		"code=AdmissionDenied policy=labels.example.com binding=b why=no such key: team"},
	{"the service account does not exist", `Error creating: pods "agent-" is forbidden: error looking up service account monitoring/agent: serviceaccount "agent" not found`,
		`code=ServiceAccountMissing account=monitoring/agent why=serviceaccount "agent" not found`},
	{"the priority class does not exist", `Error creating: pods "agent-" is forbidden: no PriorityClass with name agents-first was found`,
		"code=PriorityClassMissing class=agents-first"},
	{"a limit range", `Error creating: pods "agent-" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi`,
		"code=AdmissionDenied why=maximum memory usage per Container is 1Gi, but limit is 4Gi"},
	{"security context constraints", `Error creating: pods "agent-" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount]`,
		`code=AdmissionDenied why=unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount]`},
	{"the controller lacks the right: no admission", `Error creating: pods is forbidden: User "system:serviceaccount:kube-system:daemon-set-controller" cannot create resource "pods" in API group "" in the namespace "agents"`,
		"user=system:serviceaccount:kube-system:daemon-set-controller"},
	{"the namespace goes away: no admission to speak of", `pods "web-" is forbidden: unable to create new content in namespace web because it is being terminated`,
		"terminating=true"},
	{"the Pod is not valid: no admission", `Error creating: Pod "agent-abcde" is invalid: spec.containers[0].volumeMounts[2].name: Not found: "run"`,
		`invalid=true why=spec.containers[0].volumeMounts[2].name: Not found: "run"`},
	{"a StatefulSet's event", `create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`,
		"code=QuotaExceeded quota=q requested=pods:1 used=pods:3 limited=pods:3"},
	{"one of many", `(combined from similar events): Error creating: pods "agent-zz9zz" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`,
		"code=QuotaExceeded quota=q requested=pods:1 used=pods:3 limited=pods:3"},
	{"cut short", `Error creating: pods "a-" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes (volumes "a", "b`,
		`code=PodSecurityViolation level=restricted version=latest violations=hostPath volumes (volumes "a", "b`},
}

func TestARefusalIsTakenApart(t *testing.T) {
	t.Parallel()
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, ok := ParseCreation(tt.message)
			if got := described(c); !ok || got != tt.want {
				t.Errorf("%v\ngot  %s\nwant %s", ok, got, tt.want)
			}
		})
	}
}

func TestOtherTextsAreNoRefusal(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", "Error creating: ", "Error creating: etcdserver: request timed out", "Created pod: agent-abcde",
		`Error creating: Post "https://10.0.0.1:6443/api/v1/namespaces/a/pods": dial tcp 10.0.0.1:6443: connect: connection refused`,
		"Error creating: Timeout: request did not complete within requested timeout - context deadline exceeded"} {
		if c, ok := ParseCreation(m); ok {
			t.Errorf("%q was read as %s", m, described(c))
		}
	}
}

func FuzzParseCreation(f *testing.F) {
	for _, r := range refusals {
		f.Add(r.message)
	}
	f.Add(`failed calling webhook "": Post "": `)
	f.Add(`pods is forbidden: exceeded quota: , requested: =,=, used: , limited: {{{`)
	f.Add("violates PodSecurity \"a\": ((((\"),,,\x00")
	f.Fuzz(func(t *testing.T, message string) {
		c, ok := ParseCreation(message)
		if !ok {
			if c.Code != "" || c.Cause != "" {
				t.Errorf("what is not read says something: %+v", c)
			}
			return
		}
		if c.Code != "" && !c.Code.Known() || c.Code == "" && c.Unauthorized == "" && !c.Terminating && !c.Invalid {
			t.Errorf("neither a code nor another reason: %+v", c)
		}
		for _, part := range []string{c.Cause, c.Quota, c.Webhook, c.URL, c.Policy, c.Level, c.ServiceAccount, c.PriorityClass, c.MustSpecify} {
			if !strings.Contains(message, part) {
				t.Errorf("%q is not from %q", part, message)
			}
		}
	})
}
