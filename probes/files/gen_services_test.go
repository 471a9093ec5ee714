package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// compose loads a case of the given documents on the base small-3, less what remove means.
func compose(t *testing.T, remove, docs string) *cluster.Snapshot {
	t.Helper()
	root := t.TempDir()
	base, err := os.ReadFile("../testdata/bases/small-3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bases/small-3.yaml": string(base), "c/answer.yaml": "about: made up\n",
		"c/objects.yaml": "apiVersion: rollcall/v1\nkind: Case\nbase: small-3\nremove: [" + remove + "]\n---\n" + docs,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return loadCase(t, filepath.Join(root, "c")).Snapshot
}

func TestServiceHasAnEndpointForEachPodThatIsLeft(t *testing.T) {
	t.Parallel()
	s := compose(t, "Pod/shop/gone-*", `
{apiVersion: rollcall/v1, kind: App, name: front, namespace: shop, replicas: 3, pods: [{count: 1, unready: "10:20:00"}, {count: 1}, {count: 1, pending: "0/3 nodes are available: 3 Insufficient cpu."}]}
---
{apiVersion: rollcall/v1, kind: App, name: gone, namespace: shop, replicas: 2}
---
{apiVersion: rollcall/v1, kind: Serving, name: front, namespace: shop, selector: {app: front}}
---
{apiVersion: rollcall/v1, kind: Serving, name: gone, namespace: shop, selector: {app: gone}}
`)
	if len(s.Services) != 2 || len(s.EndpointSlices) != 2 {
		t.Fatalf("%d Services and %d EndpointSlices, want 2 and 2", len(s.Services), len(s.EndpointSlices))
	}
	for _, e := range s.EndpointSlices {
		want, ready := 0, 0
		if e.Labels["kubernetes.io/service-name"] == "front" {
			want = 2 // the Pod that is not placed has no address
		}
		for _, p := range e.Endpoints {
			if *p.Conditions.Ready {
				ready++
			}
		}
		if len(e.Endpoints) != want || ready != want/2 {
			t.Errorf("%s: %d endpoints, %d ready, want %d and %d", e.Name, len(e.Endpoints), ready, want, want/2)
		}
	}
}

func TestDaemonFollowsNodeAffinity(t *testing.T) {
	t.Parallel()
	s := compose(t, "", `
{apiVersion: rollcall/v1, kind: Daemon, name: cache, template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [box-2]}]}]}}}}}}
`)
	for _, d := range s.DaemonSets {
		if d.Name == "cache" && (d.Status.DesiredNumberScheduled != 2 || len(s.PodsOf(d.UID)) != 2) {
			t.Errorf("%d desired and %d Pods, want 2 and 2", d.Status.DesiredNumberScheduled, len(s.PodsOf(d.UID)))
		}
	}
}
