package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/runbook/action"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestReadOnlyGate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		pass         bool
	}{
		{"GET", "/version", true},
		{"GET", "/readyz", true},
		{"GET", "/api", true},
		{"GET", "/apis/apps/v1", true},
		{"GET", "/openapi/v3/apis/apps/v1", true},
		{"GET", "/metrics", false},
		{"GET", "/", false},
		{"GET", "/api/v1/nodes", true},
		{"GET", "/api/v1/nodes?watch=true", true},
		{"GET", "/api/v1/watch/nodes", true},
		{"HEAD", "/api/v1/nodes/n1", true},
		{"GET", "/api/v1/nodes/n1/status", true},
		{"GET", "/api/v1/nodes/n1/proxy/pods", false},
		{"GET", "/api/v1/nodes/n1/proxy", false},
		{"GET", "/api/v1/proxy/nodes/n1/pods", false},
		{"GET", "/api/v1/namespaces/a/pods/p/log", true},
		{"GET", "/api/v1/namespaces/a/pods/p/log?follow=true", true},
		{"GET", "/api/v1/namespaces/a/pods/p/exec?command=sh", false},
		{"GET", "/api/v1/namespaces/a/pods/p/attach", false},
		{"GET", "/api/v1/namespaces/a/pods/p/portforward", false},
		{"GET", "/api/v1/namespaces/a/pods/p/proxy/x", false},
		{"GET", "/api/v1/namespaces/a/services/s/proxy/", false},
		{"GET", "/api/v1/namespaces/proxy/pods", true},
		{"GET", "/api/v1/namespaces/exec/pods/attach", true},
		{"GET", "/apis/apps/v1/namespaces/a/daemonsets/proxy", true},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", true},
		{"GET", "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/v/console", false},
		{"GET", "/api/v1/namespaces/a/pods/p%2Fexec", false},
		{"GET", "/api/v1/namespaces/a/pods/p/log/../exec", false},
		{"GET", "/api/v1/namespaces/a/pods//exec", false},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", true},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", false},
		{"POST", "/apis/example.com/v1/selfsubjectaccessreviews", false},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews", false},
		{"POST", "/api/v1/namespaces/a/pods?dryRun=All", false},
		{"POST", "/api/v1/namespaces/a/pods/p/eviction", false},
		{"PATCH", "/apis/apps/v1/namespaces/a/daemonsets/d?dryRun=All", false},
		{"PUT", "/apis/apps/v1/namespaces/a/daemonsets/d", false},
		{"DELETE", "/api/v1/namespaces/a/pods/p", false},
		{"OPTIONS", "/api/v1/nodes", false},
		{"CONNECT", "/api/v1/namespaces/a/pods/p/exec", false},
	} {
		for _, base := range []string{"", "/k8s/clusters/c-1"} {
			t.Run(c.method+" "+base+c.path, func(t *testing.T) {
				t.Parallel()
				sent := false
				next := tripper(func(*http.Request) (*http.Response, error) { sent = true; return &http.Response{StatusCode: 200}, nil })
				_, err := gate{readOnly: true, why: "--read-only", base: base, next: next}.RoundTrip(httptest.NewRequest(c.method, "https://h"+base+c.path, nil))
				if sent != c.pass {
					t.Fatalf("sent %v, want %v", sent, c.pass)
				}
				if !c.pass && (!errors.Is(err, action.ErrReadOnly) || !strings.Contains(err.Error(), "--read-only")) {
					t.Errorf("refused with %v", err)
				}
				sent = false
				if _, err := (gate{base: base, next: next}).RoundTrip(httptest.NewRequest(c.method, "https://h"+base+c.path, nil)); err != nil || !sent {
					t.Errorf("a session that may write was refused: %v", err)
				}
			})
		}
	}
}

func TestReadOnlyGateRefusesPathsOutsideTheServer(t *testing.T) {
	t.Parallel()
	g := gate{readOnly: true, base: "/k8s", next: tripper(func(*http.Request) (*http.Response, error) { return nil, nil })}
	if _, err := g.RoundTrip(httptest.NewRequest("GET", "https://h/api/v1/nodes", nil)); !errors.Is(err, action.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}

// Everything that a connection hands out passes the gate: nothing but reads may
// arrive, whatever is tried.
func TestEveryClientOfAConnectionPassesTheGate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" {
			t.Errorf("%s %s arrived", r.Method, r.URL)
		}
		http.Redirect(w, r, "/api/v1/namespaces/a/pods/p/exec", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(srv.Close)
	c, err := New(&rest.Config{Host: srv.URL}, Options{ReadOnly: true, ReadOnlyWhy: "--read-only"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ref := action.Ref{Group: "apps", Version: "v1", Resource: "daemonsets", Kind: "DaemonSet", Namespace: "a", Name: "d"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	_, dryRun := c.API().Patch(ctx, ref, action.JSONPatch, []byte(`[]`), true)
	_, patch := c.API().Patch(ctx, ref, action.JSONPatch, []byte(`[]`), false)
	for name, err := range map[string]error{
		"dry run":  dryRun,
		"patch":    patch,
		"delete":   c.API().Delete(ctx, ref, "u", false),
		"create":   c.REST(corev1.SchemeGroupVersion).Post().Namespace("a").Resource("pods").Body(pod).Do(ctx).Error(),
		"stream":   c.Streaming(corev1.SchemeGroupVersion).Post().AbsPath("/api/v1/namespaces/a/pods/p/exec").Do(ctx).Error(),
		"redirect": c.REST(corev1.SchemeGroupVersion).Get().AbsPath("/api/v1/nodes").Do(ctx).Error(),
	} {
		if !errors.Is(err, action.ErrReadOnly) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
