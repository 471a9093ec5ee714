package watch

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// furnish adds one object of every kind that is read on demand.
func (w *world) furnish() {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "it"}
	url, none, fail := "https://hook.example.com", admissionv1.SideEffectClassNone, admissionv1.Fail
	client := admissionv1.WebhookClientConfig{URL: &url, CABundle: []byte("-----BEGIN CERTIFICATE-----")}
	w.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labelsOf("calm"), Ports: []corev1.ServicePort{{Port: 80}}}})
	w.create(&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}}}}})
	w.create(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Webhooks: []admissionv1.ValidatingWebhook{
		{Name: "a.example.com", ClientConfig: client, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"}}}})
	w.create(&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Webhooks: []admissionv1.MutatingWebhook{
		{Name: "a.example.com", ClientConfig: client, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"}}}})
	w.create(&corev1.ResourceQuota{ObjectMeta: meta})
	w.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Value: 7})
	w.create(&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labelsOf("calm")}}})
}

// count is how many objects of each demanded kind a snapshot holds.
func count(s *cluster.Snapshot) map[cluster.Resource]int {
	return map[cluster.Resource]int{
		cluster.Services: len(s.Services), cluster.EndpointSlices: len(s.EndpointSlices), cluster.ValidatingWebhooks: len(s.ValidatingWebhooks),
		cluster.MutatingWebhooks: len(s.MutatingWebhooks), cluster.ResourceQuotas: len(s.ResourceQuotas), cluster.Namespaces: len(s.Objects.Namespaces),
		cluster.PriorityClasses: len(s.PriorityClasses), cluster.PodDisruptionBudgets: len(s.PodDisruptionBudgets),
	}
}

// lists counts the lists of and watches on a resource.
func (w *world) lists(r cluster.Resource) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if strings.HasSuffix(strings.TrimSuffix(s, " watch"), "/"+string(r)) {
			n++
		}
	}
	return n
}

func notReadWhy(s *cluster.Snapshot, r cluster.Resource) string {
	for _, n := range s.NotRead {
		if n.Resource == r && n.Namespace == "" {
			return n.Reason
		}
	}
	return ""
}

func TestEveryDemandedKindIsReadTrimmedAndNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.furnish()
		ds := w.get("kube-system", "agent").DeepCopy() // one Pod short, and n3 is NotReady: all kinds are asked for
		ds.Status.DesiredNumberScheduled++
		if _, err := w.srv.UpdateStatus("test", ds); err != nil {
			t.Fatal(err)
		}
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for r, n := range count(snap) {
			if n == 0 || !snap.Read(r) {
				t.Errorf("%s: %d objects, read %v", r, n, snap.Read(r))
			}
			if n := w.lists(r); n != 1 && n != 2 { // a list and a watch, or one watch that begins with the list
				t.Errorf("%s: %d requests", r, n)
			}
		}
		if c := snap.ValidatingWebhooks[0].Webhooks[0].ClientConfig; c.CABundle != nil || c.URL == nil {
			t.Errorf("webhook: %+v", c)
		}
		if e := snap.EndpointSlices[0].Endpoints[0]; e.Hints != nil || len(e.Addresses) != 1 {
			t.Errorf("endpoint: %+v", e)
		}
		if notReadWhy(snap, cluster.CSINodes) != cluster.NotAsked || w.requests("csinodes") > 0 {
			t.Error("CSINodes were read, and nobody asks for them")
		}
	})
}

func TestAKindIsReadOnlyWhileItIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.furnish()
		r := start(New(Config{Conn: w.conn}))
		snap := r.after(3 * time.Second)
		if !snap.Read(cluster.Services) || len(snap.Services) != 1 || snap.Freshness[cluster.Services].Loading {
			t.Fatalf("a node is NotReady, and Services are %v", notReadWhy(snap, cluster.Services))
		}
		if notReadWhy(snap, cluster.ResourceQuotas) != cluster.NotAsked || len(snap.ResourceQuotas) > 0 {
			t.Error("quotas were read, and every workload has its Pods")
		}
		if err := w.srv.Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n3", nil); err != nil {
			t.Fatal(err)
		}
		if snap = r.after(29 * time.Minute); !snap.Read(cluster.Services) {
			t.Error("Services were dropped at once")
		}
		if snap = r.after(2 * time.Minute); notReadWhy(snap, cluster.Services) != cluster.NotAsked || len(snap.Services) > 0 {
			t.Error("Services are still read, long after the last node came back")
		}
		w.create(node("n4", corev1.ConditionUnknown))
		if snap = r.after(3 * time.Second); !snap.Read(cluster.Services) || len(snap.Services) != 1 {
			t.Error("Services are not read again")
		}
		r.end()
	})
}

func TestNoSnapshotLooksCompleteBeforeAKindThatItDemandsWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := start(New(Config{Conn: w.conn}))
		r.after(3 * time.Second)
		r.end()
		for i, snap := range r.snaps {
			for _, k := range snap.Demand().Kinds {
				if len(snap.Loading()) == 0 && !snap.Read(k) {
					t.Errorf("snapshot %d of %d loads nothing and has not read %s", i, len(r.snaps), k)
				}
			}
		}
	})
}

func TestAForbiddenKindIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.srv.Fault(func(r *http.Request) *api.Fault {
			switch {
			case strings.HasSuffix(r.URL.Path, "/validatingwebhookconfigurations"):
				return &api.Fault{Status: http.StatusForbidden}
			case strings.HasSuffix(r.URL.Path, "/endpointslices"):
				return &api.Fault{Status: http.StatusNotFound}
			}
			return nil
		})
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if why := notReadWhy(snap, cluster.ValidatingWebhooks); why != "Forbidden" {
			t.Errorf("webhooks: %q", why)
		}
		if why := notReadWhy(snap, cluster.EndpointSlices); why != "Absent" {
			t.Errorf("slices: %q", why)
		}
		if !snap.Read(cluster.Services) || len(snap.Loading()) > 0 {
			t.Errorf("Services %q, loading %v", notReadWhy(snap, cluster.Services), snap.Loading())
		}
	})
}

func TestDemandedKindsSettleWithTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.furnish()
		s := New(Config{Conn: w.conn})
		defer s.Close()
		settle(t, s, w.srv.Bookmark())
		w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		if snap := settle(t, s, w.srv.Bookmark()); len(snap.Services) != 2 {
			t.Errorf("%d Services", len(snap.Services))
		}
	})
}
