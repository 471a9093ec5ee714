package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/runbook/action"
)

var agent = action.Ref{Group: "apps", Version: "v1", Resource: "daemonsets", Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"}

const agentJSON = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent","uid":"u-1","generation":7,"managedFields":[{"manager":"helm"}]},"unknownField":{"b":1,"a":2}}`

func TestGetReturnsTheObjectVerbatim(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/apps/v1/namespaces/kube-system/daemonsets/agent" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("%s, Accept %q", r.URL.Path, r.Header.Get("Accept"))
		}
		io.WriteString(w, agentJSON)
	}, Options{})
	o, err := c.API().Get(t.Context(), agent)
	if err != nil || string(o.Raw) != agentJSON || o.UID != "u-1" || o.Generation != 7 {
		t.Errorf("%+v %v", o, err)
	}
}

func TestGetOfAClusterScopedCoreObject(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/n1" {
			t.Errorf("path %s", r.URL.Path)
		}
		io.WriteString(w, `{"metadata":{"uid":"n"}}`)
	}, Options{})
	if _, err := c.API().Get(t.Context(), action.Ref{Version: "v1", Resource: "nodes", Kind: "Node", Name: "n1"}); err != nil {
		t.Error(err)
	}
}

func TestPatchIsSentAsItIs(t *testing.T) {
	t.Parallel()
	patch := `[{"op":"test","path":"/metadata/uid","value":"u-1"}]`
	for _, dry := range []bool{true, false} {
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			q := r.URL.Query()
			if r.Method != "PATCH" || r.Header.Get("Content-Type") != string(action.JSONPatch) || string(body) != patch ||
				q.Get("fieldManager") != "rollcall" || (q.Get("dryRun") == "All") != dry {
				t.Errorf("%s %s %q %s", r.Method, r.URL, r.Header.Get("Content-Type"), body)
			}
			io.WriteString(w, agentJSON)
		}, Options{})
		if o, err := c.API().Patch(t.Context(), agent, action.JSONPatch, []byte(patch), dry); err != nil || o.Generation != 7 {
			t.Errorf("%+v %v", o, err)
		}
	}
}

func TestDeleteCarriesTheUID(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			var o metav1.DeleteOptions
			if err := json.NewDecoder(r.Body).Decode(&o); err != nil || r.Method != "DELETE" {
				t.Errorf("%s: %v", r.Method, err)
			}
			if o.Preconditions == nil || o.Preconditions.UID == nil || *o.Preconditions.UID != "u-1" || (len(o.DryRun) == 1) != dry || o.Kind != "DeleteOptions" {
				t.Errorf("%+v", o)
			}
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}, Options{})
		if err := c.API().Delete(t.Context(), agent, "u-1", dry); err != nil {
			t.Error(err)
		}
	}
}

func TestCanIAsksForTheOneObject(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var review authorizationv1.SelfSubjectAccessReview
		if o, _, err := codecs.UniversalDeserializer().Decode(raw, nil, &review); err != nil {
			t.Errorf("%T %v", o, err)
		}
		a := review.Spec.ResourceAttributes
		if a == nil || *a != (authorizationv1.ResourceAttributes{Namespace: "kube-system", Verb: "patch", Group: "apps", Version: "v1", Resource: "daemonsets", Name: "agent"}) {
			t.Errorf("asked for %+v", a)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false,"reason":"no\u001b[31m role"}}`)
	}, Options{ReadOnly: true}) // a review is a question: it passes the gate
	ok, why, err := c.API().CanI(t.Context(), "patch", agent)
	if ok || why != "no role" || err != nil {
		t.Errorf("%v %q %v", ok, why, err)
	}
}

func TestErrorsAreThoseOfActions(t *testing.T) {
	t.Parallel()
	generic := "the server rejected our request due to an error in our request"
	for _, c := range []struct {
		name   string
		code   int
		reason metav1.StatusReason
		body   string
		want   error
		not    error
	}{
		{"forbidden", 403, metav1.StatusReasonForbidden, "", action.ErrForbidden, nil},
		{"credentials expired", 401, metav1.StatusReasonUnauthorized, "", action.ErrForbidden, nil},
		{"gone", 404, metav1.StatusReasonNotFound, "", action.ErrNotFound, nil},
		{"conflict", 409, metav1.StatusReasonConflict, "", action.ErrConflict, nil},
		{"a test of the patch failed", 422, metav1.StatusReasonInvalid, generic, action.ErrConflict, nil},
		{"overloaded gateway", 503, metav1.StatusReasonServiceUnavailable, "", action.ErrUnreachable, nil},
		{"refused by a webhook", 400, metav1.StatusReasonBadRequest, "admission webhook denied it", nil, action.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, func(w http.ResponseWriter, _ *http.Request) { status(w, c.code, c.reason, c.body) }, Options{})
			_, err := conn.API().Patch(t.Context(), agent, action.JSONPatch, []byte(`[]`), false)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || c.not != nil && errors.Is(err, c.not) {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(fmt.Sprint(err), "DaemonSet/kube-system/agent") {
				t.Errorf("%q does not name the object", err)
			}
		})
	}
}

func TestAnInvalidObjectIsNoConflict(t *testing.T) {
	t.Parallel()
	conn := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(422)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"DaemonSet.apps \"agent\" is invalid: spec.x: Required value","details":{"name":"agent","causes":[{"reason":"FieldValueRequired","field":"spec.x"}]}}`)
	}, Options{})
	_, err := conn.API().Patch(t.Context(), agent, action.JSONPatch, []byte(`[]`), false)
	if errors.Is(err, action.ErrConflict) || err == nil || !strings.Contains(err.Error(), "spec.x: Required value") {
		t.Errorf("got %v", err)
	}
}

func TestADeadServerIsUnreachableAndCancellingIsNot(t *testing.T) {
	t.Parallel()
	c, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.API().Get(t.Context(), agent); !errors.Is(err, action.ErrUnreachable) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.API().Get(ctx, agent); !errors.Is(err, context.Canceled) || errors.Is(err, action.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		want string
		fail bool
	}{{201, "jane", false}, {403, "", false}, {404, "", false}, {500, "", true}} {
		conn := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "POST" || r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if c.code >= 400 {
				status(w, c.code, map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound}[c.code], "")
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"jane"}}}`)
		}, Options{ReadOnly: true})
		if got, err := conn.WhoAmI(t.Context()); got != c.want || (err != nil) != c.fail {
			t.Errorf("%d: %q %v", c.code, got, err)
		}
	}
}

func TestLogsAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/namespaces/kube-system/pods/agent-x/log" || q.Get("container") != "install-cni" ||
			q.Get("previous") != "true" || q.Get("tailLines") != "50" || q.Get("timestamps") != "true" {
			t.Errorf("%s", r.URL)
		}
		for i := range 50 {
			fmt.Fprintf(w, "line %02d \x1b[31mred\x1b[0m\n", i)
		}
	}, Options{ReadOnly: true})
	log, err := c.Logs(t.Context(), action.LogRequest{Namespace: "kube-system", Pod: "agent-x", Container: "install-cni", Previous: true, Lines: 50, Bytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	if !log.Cut || len(log.Lines) != 9 || log.Lines[8] != "line 49 red" {
		t.Errorf("cut %v, %d lines, last %q", log.Cut, len(log.Lines), log.Lines[len(log.Lines)-1])
	}
}

func TestLogsOfAnUnreachableKubeletSayWhy(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		status(w, 500, metav1.StatusReasonInternalError, "Get \"https://10.0.0.7:10250/containerLogs\": dial tcp 10.0.0.7:10250: i/o timeout")
	}, Options{})
	_, err := c.Logs(t.Context(), action.LogRequest{Namespace: "a", Pod: "p", Container: "c"})
	if err == nil || !strings.Contains(err.Error(), "i/o timeout") || !strings.Contains(err.Error(), "Pod/a/p") {
		t.Errorf("got %v", err)
	}
}
