package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-k8s/rollcall/runbook/action"
)

var login = action.Ref{Version: "v1", Resource: "secrets", Kind: "Secret", Namespace: "kube-system", Name: "login"}

// refuse answers with a Status, as the API server does.
func refuse(w http.ResponseWriter, code int, reason, message, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d,"details":{"name":%q}}`, reason, message, code, name)
}

func TestTheExistenceOfASecretIsAskedForByItsMetadataAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		want   bool
		err    error
	}{
		"there": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"login"}}`)
		}, true, nil},
		"missing": {func(w http.ResponseWriter) { refuse(w, 404, "NotFound", `secrets "login" not found`, "login") }, false, nil},
		"an API not served": {func(w http.ResponseWriter) {
			refuse(w, 404, "NotFound", "the server could not find the requested resource", "")
		}, false, action.ErrNotFound},
		"forbidden": {func(w http.ResponseWriter) { refuse(w, 403, "Forbidden", `secrets "login" is forbidden`, "login") }, false, action.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "GET" || r.URL.Path != "/api/v1/namespaces/kube-system/secrets/login" || r.Header.Get("Accept") != metadataOnly {
					t.Errorf("%s %s, Accept %q", r.Method, r.URL.Path, r.Header.Get("Accept"))
				}
				tt.answer(w)
			}, Options{ReadOnly: true, ReadOnlyWhy: "--read-only"})
			got, err := c.API().Exists(t.Context(), login)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%v %v, want %v %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestADryRunIsSentAsOneAndItsAnswerIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer  func(http.ResponseWriter)
		refused string
		err     string
	}{
		"accepted": {func(w http.ResponseWriter) {
			w.Header().Add("Warning", `299 - "would violate PodSecurity"`)
			w.Header().Add("Warning", `299 - "another thing"`)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, agentJSON)
		}, "", ""},
		"not valid": {func(w http.ResponseWriter) { refuse(w, 422, "Invalid", "spec.selector: field is immutable", "agent") }, "immutable", ""},
		"a stray field": {func(w http.ResponseWriter) {
			refuse(w, 400, "BadRequest", `strict decoding error: unknown field "spec.x"`, "")
		}, "unknown field", ""},
		"an old version": {func(w http.ResponseWriter) {
			refuse(w, 404, "NotFound", "the server could not find the requested resource", "")
		}, "could not find", ""},
		"admission": {func(w http.ResponseWriter) {
			refuse(w, 403, "Forbidden", `pods "agent-x" is forbidden: exceeded quota`, "")
		}, "exceeded quota", ""},
		"a webhook is down": {func(w http.ResponseWriter) {
			refuse(w, 500, "InternalError", `Internal error occurred: failed calling webhook "a"`, "")
		}, "failed calling webhook", ""},
		"no right to it": {func(w http.ResponseWriter) {
			refuse(w, 403, "Forbidden", `daemonsets.apps "agent" is forbidden: User "u" cannot patch resource "daemonsets" in API group "apps"`, "agent")
		}, "", "cannot patch resource"},
		"no dry runs": {func(w http.ResponseWriter) {
			refuse(w, 400, "BadRequest", `admission webhook "a" does not support dry run`, "")
		}, "", "does not support dry run"},
		"a broken server":  {func(w http.ResponseWriter) { refuse(w, 500, "InternalError", "etcd has no leader", "") }, "", "etcd"},
		"out of its depth": {func(w http.ResponseWriter) { refuse(w, 503, "ServiceUnavailable", "later", "") }, "", "later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				if r.Method != "PATCH" || r.Header.Get("Content-Type") != "application/apply-patch+yaml" || q.Get("dryRun") != "All" || q.Get("fieldValidation") != "Strict" || q.Get("force") != "true" || q.Get("fieldManager") != FieldManager {
					t.Errorf("%s %s, %s", r.Method, r.URL, r.Header.Get("Content-Type"))
				}
				tt.answer(w)
			}, Options{})
			got, err := c.API().TryApply(t.Context(), agent, []byte(agentJSON))
			if !strings.Contains(got.Refused, tt.refused) || got.Refused != "" != (tt.refused != "") {
				t.Errorf("refused %q, want %q", got.Refused, tt.refused)
			}
			if err == nil != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if name == "accepted" && (len(got.Warnings) != 2 || got.Warnings[0] != "another thing") {
				t.Errorf("warnings %q", got.Warnings)
			}
		})
	}
}

func TestNoDryRunLeavesAReadOnlySession(t *testing.T) {
	t.Parallel()
	c := connect(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, Options{ReadOnly: true, ReadOnlyWhy: "--read-only"})
	if _, err := c.API().TryApply(t.Context(), agent, []byte(agentJSON)); !errors.Is(err, action.ErrReadOnly) {
		t.Errorf("apply: %v", err)
	}
	if _, err := c.API().TryCreate(t.Context(), action.Ref{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "kube-system"}, []byte(`{}`)); !errors.Is(err, action.ErrReadOnly) {
		t.Errorf("create: %v", err)
	}
}

func TestAPodIsTriedWithoutAName(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/api/v1/namespaces/kube-system/pods" || r.URL.Query().Get("dryRun") != "All" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"Pod","apiVersion":"v1"}`)
	}, Options{})
	if got, err := c.API().TryCreate(t.Context(), action.Ref{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "kube-system", Name: "x"}, []byte(`{}`)); err != nil || got.Refused != "" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestWhatTheServerKeepsIsNotApplied(t *testing.T) {
	t.Parallel()
	raw, err := Applicable([]byte(`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent","uid":"u","resourceVersion":"7","managedFields":[{}],"labels":{"a":"b"}},"spec":{"x":1},"status":{"y":1}}`), "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"labels":{"a":"b"},"name":"agent","namespace":"kube-system"},"spec":{"x":1}}`; string(raw) != want {
		t.Errorf("%s", raw)
	}
	if _, err := Applicable([]byte(`[]`), ""); err == nil {
		t.Error("a list is no object")
	}
}
