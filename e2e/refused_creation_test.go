package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// limited is a priority class of which no Pod is admitted without a quota that covers it.
const limited = "limited"

// limitedClass says so to the API server.
const limitedClass = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [` + limited + `]}
`

// refusedByServer are Pods that may not be.
func refusedByServer() []refused {
	return []refused{
		{name: "quota", kind: "DaemonSet", before: quota(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}, ""),
			says: "exceeded quota: bounds", code: report.QuotaExceeded},
		{name: "quota-cpu", kind: "StatefulSet", before: quota(corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("500m")}, ""),
			spec: requests(corev1.ResourceCPU, "1"), says: "exceeded quota: bounds, requested: requests.cpu=1", code: report.QuotaExceeded},
		{name: "quota-scoped", kind: "Deployment", before: quota(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}, "scoped"),
			spec: func(s *corev1.PodSpec) { s.PriorityClassName = "scoped" }, says: "exceeded quota: bounds", code: report.QuotaExceeded},
		{name: "quota-none-covers", kind: "DaemonSet", spec: func(s *corev1.PodSpec) { s.PriorityClassName = limited },
			says: "insufficient quota to match these scopes", code: report.QuotaExceeded},
		{name: "quota-wants-limits", kind: "Deployment", before: quota(corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("4")}, ""),
			says: "must specify limits.cpu", code: report.QuotaExceeded},
		{name: "limit-range", kind: "DaemonSet", before: limitRange, spec: func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, says: "maximum cpu usage per Container is 1", code: report.AdmissionDenied},
		{name: "pod-security", kind: "DaemonSet", before: restricted, says: `violates PodSecurity "restricted:latest"`, code: report.PodSecurityViolation},
		{name: "webhook-denies", kind: "Deployment", before: webhook(func(w webhooks) string { return w.denying }),
			says: `admission webhook "guard.example.com" denied the request: image is not signed`, code: report.AdmissionDenied},
		{name: "webhook-down", kind: "DaemonSet", before: webhook(func(w webhooks) string { return w.closed }),
			says: "connection refused", code: report.AdmissionWebhookUnavailable},
		{name: "webhook-hangs", kind: "DaemonSet", before: webhook(func(w webhooks) string { return w.hanging }),
			says: "context deadline exceeded", code: report.AdmissionWebhookUnavailable},
		{name: "webhook-unknown", kind: "Deployment", before: webhook(func(w webhooks) string { return w.stranger }),
			says: "certificate signed by unknown authority", code: report.AdmissionWebhookUnavailable},
		{name: "webhook-broken", kind: "DaemonSet", before: webhook(func(w webhooks) string { return w.broken }),
			says: "failed calling webhook", code: report.AdmissionWebhookUnavailable},
		{name: "webhook-no-service", kind: "DaemonSet", before: webhook(func(webhooks) string { return "" }),
			says: `service "guard" not found`, code: report.AdmissionWebhookUnavailable},
		{name: "policy", kind: "DaemonSet", before: policy, says: "ValidatingAdmissionPolicy 'policy' with binding 'policy' denied request", code: report.AdmissionDenied},
		{name: "service-account", kind: "DaemonSet", spec: func(s *corev1.PodSpec) { s.ServiceAccountName = "no-such-account" },
			says: `serviceaccount "no-such-account" not found`, code: report.ServiceAccountMissing},
		{name: "priority-class", kind: "Deployment", spec: func(s *corev1.PodSpec) { s.PriorityClassName = "no-such-class" },
			says: "no PriorityClass with name no-such-class was found", code: report.PriorityClassMissing},
		{name: "runtime-class", kind: "DaemonSet", spec: func(s *corev1.PodSpec) { name := "no-such-runtime"; s.RuntimeClassName = &name },
			says: `RuntimeClass "no-such-runtime" not found`, code: report.AdmissionDenied},
	}
}

// quota bounds the namespace, or only what has the priority class in it.
func quota(hard corev1.ResourceList, class string) func(context.Context, *refusals, refused) error {
	return func(ctx context.Context, r *refusals, c refused) error {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
		if class != "" {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}},
			}}
		}
		_, err := r.client.CoreV1().ResourceQuotas(c.name).Create(ctx, q, metav1.CreateOptions{})
		return err
	}
}

func limitRange(ctx context.Context, r *refusals, c refused) error {
	_, err := r.client.CoreV1().LimitRanges(c.name).Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "sizes"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}},
	}}, metav1.CreateOptions{})
	return err
}

// restricted enforces Pod Security in the namespace.
func restricted(ctx context.Context, r *refusals, c refused) error {
	_, err := r.client.CoreV1().Namespaces().Patch(ctx, c.name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	return err
}

// inNamespace selects one namespace.
func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

func policy(ctx context.Context, r *refusals, c refused) error {
	fail, meta := registrationv1.Fail, metav1.ObjectMeta{Name: c.name}
	if _, err := r.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &registrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta,
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{
				{RuleWithOperations: createsPods},
			}},
			Validations: []registrationv1.Validation{{Expression: "object.spec.containers.all(c, has(c.readinessProbe))", Message: "a readiness probe is required, in every container"}},
		}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := r.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &registrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: c.name, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
			MatchResources: &registrationv1.MatchResources{NamespaceSelector: inNamespace(c.name)},
		}}, metav1.CreateOptions{})
	return err
}

var createsPods = registrationv1.RuleWithOperations{
	Operations: []registrationv1.OperationType{registrationv1.Create},
	Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}

// webhook asks the server at that address before a Pod is made in the namespace; ""
// is a Service that does not exist.
func webhook(where func(webhooks) string) func(context.Context, *refusals, refused) error {
	return func(ctx context.Context, r *refusals, c refused) error {
		fail, none, patience := registrationv1.Fail, registrationv1.SideEffectClassNone, int32(1)
		client := registrationv1.WebhookClientConfig{CABundle: r.Authority.PEM}
		if address := where(r.webhooks); address != "" {
			client.URL = &address
		} else {
			client.Service = &registrationv1.ServiceReference{Namespace: c.name, Name: "guard"}
		}
		_, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &registrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: c.name},
			Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "guard.example.com", ClientConfig: client, FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &patience,
				AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: inNamespace(c.name), Rules: []registrationv1.RuleWithOperations{createsPods},
			}},
		}, metav1.CreateOptions{})
		return err
	}
}

// webhooks are the addresses at which webhooks can be called.
type webhooks struct {
	denying, hanging, broken string
	closed                   string // nobody listens
	stranger                 string // its certificate is of another authority
}

// serveWebhooks serves them on loopback until the test ends.
func serveWebhooks(t *testing.T, authority *controlplane.Authority) webhooks {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/denying", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "image is not signed", Code: http.StatusForbidden}}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	mux.HandleFunc("/hanging", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is seen after that of the request
		<-r.Context().Done()
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the policy engine has no memory left", http.StatusInternalServerError)
	})
	serve := func(a *controlplane.Authority) string {
		t.Helper()
		cert, key, err := a.Issue("guard", time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(mux)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that the API server breaks off
		s.StartTLS()
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		return s.URL
	}
	other, err := controlplane.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	known := serve(authority)
	return webhooks{
		denying: known + "/denying", hanging: known + "/hanging", broken: known + "/broken",
		closed: "https://" + closedAddress(t) + "/guard", stranger: serve(other) + "/denying",
	}
}
