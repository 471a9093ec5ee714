package watch

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// configure lets the agent's Pods take their settings from a ConfigMap, beside one
// that nothing refers to, and adds a network policy.
func (w *world) configure() {
	w.t.Helper()
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent-config"}, Data: map[string]string{"mtu": "1450"}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other"}, Data: map[string]string{"password": "sesame"}})
	w.create(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deny"}})
	ds := w.get("kube-system", "agent").DeepCopy()
	ds.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "agent-config"}}}}
	if _, err := w.srv.Update("test", ds); err != nil {
		w.t.Fatal(err)
	}
}

func others(s *cluster.Snapshot) string {
	var out []string
	for _, o := range s.Others {
		out = append(out, o.Kind+" "+o.Namespace+"/"+o.Name)
	}
	return strings.Join(out, ", ")
}

func TestSettingsOfSuspectsAreReadAsMetadataWhileNodesFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.configure()
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := others(snap); got != "ConfigMap kube-system/agent-config, NetworkPolicy shop/deny" {
			t.Errorf("read %s", got)
		}
		if !snap.Read(cluster.ConfigMaps) || len(snap.Loading()) > 0 {
			t.Errorf("ConfigMaps %q, loading %v", notReadWhy(snap, cluster.ConfigMaps), snap.Loading())
		}
		m := snap.Others[0].ManagedFields
		if len(m) != 1 || m[0].Manager != "test" || m[0].Time == nil || !strings.Contains(m[0].FieldsV1.GetRawString(), "f:data") {
			t.Errorf("managedFields: %+v", m)
		}
		if n := w.requests("/configmaps watch") + w.requests("configmaps/other") + w.requests("/secrets"); n > 0 {
			t.Errorf("%d requests for what nobody refers to, or watches", n)
		}
	})
}

func TestSettingsAreReadAnewAtMostEveryMinuteAndOnlyWhileNodesFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.configure()
		r := start(New(Config{Conn: w.conn}))
		r.after(10 * time.Second)
		if n := w.requests("configmaps/agent-config"); n != 1 {
			t.Errorf("%d reads at the start", n)
		}
		r.after(5 * time.Minute)
		if n := w.requests("configmaps/agent-config"); n < 5 || n > 6 {
			t.Errorf("%d reads in five minutes", n)
		}
		if n := w.lists("apis"); n != 1 {
			t.Errorf("the API server was asked %d times which kinds it has", n)
		}
		if err := w.srv.Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n3", nil); err != nil {
			t.Fatal(err)
		}
		r.after(3 * time.Second)
		before := w.requests("configmaps/agent-config")
		if snap := r.after(20 * time.Minute); others(snap) == "" || !snap.Read(cluster.ConfigMaps) {
			t.Error("what was read was forgotten at once")
		}
		if n := w.requests("configmaps/agent-config") - before; n > 0 {
			t.Errorf("read %d times after the last node came back", n)
		}
		if snap := r.after(15 * time.Minute); others(snap) != "" || notReadWhy(snap, cluster.ConfigMaps) != cluster.NotAsked {
			t.Errorf("still kept: %s", others(snap))
		}
		r.end()
	})
}

func TestSettingsThatMayNotBeReadAreSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.configure()
		w.srv.Fault(func(r *http.Request) *api.Fault {
			if strings.Contains(r.URL.Path, "/configmaps/") || strings.HasSuffix(r.URL.Path, "/networkpolicies") {
				return &api.Fault{Status: http.StatusForbidden}
			}
			return nil
		})
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if notReadWhy(snap, cluster.ConfigMaps) != "Forbidden" || notReadWhy(snap, "networkpolicies.networking.k8s.io") != "Forbidden" || snap.Read(cluster.ConfigMaps) {
			t.Errorf("%+v", snap.NotRead)
		}
	})
}

func TestSettingsThatDoNotComeDoNotHoldUpTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.configure()
		w.srv.Fault(func(r *http.Request) *api.Fault {
			if r.URL.Path == "/apis" {
				return &api.Fault{Status: http.StatusInternalServerError}
			}
			return nil
		})
		snap, err := New(Config{Conn: w.conn}).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Nodes) != 3 || snap.Freshness[cluster.ConfigMaps].Broken == "" {
			t.Errorf("freshness %+v", snap.Freshness[cluster.ConfigMaps])
		}
	})
}

func TestAnAgentsNewConfigMapIsReadWhenItIsReferredTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.configure()
		s := New(Config{Conn: w.conn})
		defer s.Close()
		settle(t, s, w.srv.Bookmark())
		ds := w.get("kube-system", "agent").DeepCopy()
		ds.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}}}},
			{Name: "w", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}}}}}
		if _, err := w.srv.Update("test", ds); err != nil {
			t.Fatal(err)
		}
		snap := settle(t, s, w.srv.Bookmark())
		if got := others(snap); !strings.Contains(got, "kube-system/other") || strings.Contains(got, "missing") {
			t.Errorf("read %s", got)
		}
		if n := w.requests("configmaps/agent-config"); n != 1 {
			t.Errorf("the one that was read already was read %d times", n)
		}
	})
}
