package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

func TestClientsReadAndWriteInBothEncodings(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	for encoding, c := range clientsFor(t, s) {
		t.Run(encoding, func(t *testing.T) {
			ctx, sets := t.Context(), c.AppsV1().DaemonSets("kube-system")
			name := "agent-" + strings.ToLower(encoding)
			made, err := sets.Create(ctx, daemonSet(name), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if stored := get[*appsv1.DaemonSet](t, s, "kube-system", name); !equality.Semantic.DeepEqual(stored, made) {
				t.Errorf("stored and returned differ:\n%v\n%v", stored, made)
			}
			made.Spec.MinReadySeconds = 3
			updated, err := sets.Update(ctx, made, metav1.UpdateOptions{})
			if err != nil || updated.Generation != 2 {
				t.Fatalf("update: generation %d, %v", updated.Generation, err)
			}
			if _, err := sets.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("a stale update: %v", err)
			}
			updated.Status.NumberReady, updated.Spec.MinReadySeconds = 2, 9
			status, err := sets.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
			if err != nil || status.Status.NumberReady != 2 || status.Spec.MinReadySeconds != 3 {
				t.Errorf("status: %+v, %v", status, err)
			}
			patched, err := sets.Patch(ctx, name, types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/minReadySeconds","value":4}]`), metav1.PatchOptions{})
			if err != nil || patched.Spec.MinReadySeconds != 4 {
				t.Errorf("patch: %v", err)
			}
			read, err := sets.Get(ctx, name, metav1.GetOptions{})
			if err != nil || read.ResourceVersion != patched.ResourceVersion {
				t.Errorf("get: %v", err)
			}
			list, err := sets.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			if err != nil || len(list.Items) != 1 || list.ResourceVersion != s.ResourceVersion() {
				t.Errorf("list: %d items at %s, %v", len(list.Items), list.ResourceVersion, err)
			}
			wrong := types.UID("other")
			if err := sets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
				t.Errorf("deleting another UID: %v", err)
			}
			if err := sets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &read.UID}}); err != nil {
				t.Errorf("delete: %v", err)
			}
			_, err = sets.Get(ctx, name, metav1.GetOptions{})
			checkStatus(t, err, metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				Message: `daemonsets.apps "` + name + `" not found`,
				Details: &metav1.StatusDetails{Name: name, Group: "apps", Kind: "daemonsets"}})
		})
	}
}

func checkStatus(t *testing.T, err error, want metav1.Status) {
	t.Helper()
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		t.Errorf("got %v, want a Status", err)
		return
	}
	got := known.Status()
	if got.Code != want.Code || got.Reason != want.Reason || got.Message != want.Message || got.Status != metav1.StatusFailure {
		t.Errorf("status %d %s %q, want %d %s %q", got.Code, got.Reason, got.Message, want.Code, want.Reason, want.Message)
	}
	if want.Details != nil && !equality.Semantic.DeepEqual(got.Details, want.Details) {
		t.Errorf("details %+v, want %+v", got.Details, want.Details)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	c := client(t, s.Config())
	create(t, s, daemonSet("agent"))
	create(t, s, pod("loose"))
	boundPod(t, s, "web")
	before := s.ResourceVersion()
	all := []string{metav1.DryRunAll}
	ctx, sets, pods := t.Context(), c.AppsV1().DaemonSets("kube-system"), c.CoreV1().Pods("default")

	patched, err := sets.Patch(ctx, "agent", types.MergePatchType, []byte(`{"spec":{"updateStrategy":{"type":"OnDelete"}}}`), metav1.PatchOptions{DryRun: all})
	if err != nil || patched.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || patched.Generation != 2 {
		t.Errorf("patch: %+v, %v", patched.Spec.UpdateStrategy, err)
	}
	if _, err := sets.Patch(ctx, "agent", types.MergePatchType, []byte(`{"spec":{"updateStrategy":{"type":"Wrong"}}}`), metav1.PatchOptions{DryRun: all}); !apierrors.IsInvalid(err) {
		t.Errorf("a dry run does not validate: %v", err)
	}
	if made, err := pods.Create(ctx, pod("new"), metav1.CreateOptions{DryRun: all}); err != nil || made.UID == "" {
		t.Errorf("create: %v", err)
	}
	for _, name := range []string{"web", "loose"} {
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{DryRun: all}); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if err := sets.Delete(ctx, "agent", metav1.DeleteOptions{DryRun: all, PropagationPolicy: ptr(metav1.DeletePropagationOrphan)}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}, DeleteOptions: &metav1.DeleteOptions{DryRun: all}}); err != nil {
		t.Errorf("evict: %v", err)
	}
	if _, err := pods.Create(ctx, pod("x"), metav1.CreateOptions{DryRun: []string{"Some"}}); !apierrors.IsInvalid(err) {
		t.Errorf("an unknown dry run: %v", err)
	}
	if after := s.ResourceVersion(); after != before {
		t.Errorf("the version moved from %s to %s", before, after)
	}
}

func TestPagesOfAListShowOneMoment(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		create(t, s, pod(name))
	}
	pods, ctx := client(t, s.Config()).CoreV1().Pods(""), t.Context()
	first, err := pods.List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.Continue == "" || *first.RemainingItemCount != 2 {
		t.Fatalf("first page: %d items, continue %q, %v", len(first.Items), first.Continue, err)
	}
	create(t, s, pod("bb"))
	if err := s.Delete(podsGVR, "default", "c", nil); err != nil {
		t.Fatal(err)
	}
	second, err := pods.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if err != nil || len(second.Items) != 2 || second.Items[0].Name != "c" || second.Items[1].Name != "d" ||
		second.ResourceVersion != first.ResourceVersion || second.Continue != "" {
		t.Errorf("second page: %v at %s, %v", names(pointers(second.Items)), second.ResourceVersion, err)
	}
	exact, err := pods.List(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil || names(pointers(exact.Items)) != "[a b c d]" {
		t.Errorf("exactly the old version: %v, %v", names(pointers(exact.Items)), err)
	}
	if cached, err := pods.List(ctx, metav1.ListOptions{ResourceVersion: "0", Limit: 1}); err != nil || len(cached.Items) != 4 {
		t.Errorf("resourceVersion 0 ignores the limit: %d items, %v", len(cached.Items), err)
	}

	s.Compact()
	_, err = pods.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Fatalf("after compaction: %v", err)
	}
	status := err.(apierrors.APIStatus).Status()
	rest, err := pods.List(ctx, metav1.ListOptions{Continue: status.Continue})
	if err != nil || names(pointers(rest.Items)) != "[bb d]" {
		t.Errorf("going on with the token of the error: %v, %v", names(pointers(rest.Items)), err)
	}
	if _, err := pods.List(ctx, metav1.ListOptions{Continue: "nonsense"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a token that is none: %v", err)
	}
	// client-go would wait and try again.
	answer := raw(t, s, "GET", "/api/v1/pods?resourceVersion=99999", "", nil)
	if body := text(t, answer); answer.StatusCode != http.StatusGatewayTimeout || answer.Header.Get("Retry-After") != "1" || !strings.Contains(body, string(metav1.CauseTypeResourceVersionTooLarge)) {
		t.Errorf("a version to come: %d %s", answer.StatusCode, body)
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

func TestSelectorsOfLists(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, pod("loose"))
	boundPod(t, s, "bound")
	create(t, s, event("a", "BackOff"))
	create(t, s, event("b", "Failed"))
	cordoned := node("n1")
	cordoned.Spec.Unschedulable = true
	create(t, s, cordoned)
	create(t, s, node("n2"))
	c := client(t, s.Config())
	count := func(list func(metav1.ListOptions) (int, error), selector string) (int, error) {
		return list(metav1.ListOptions{FieldSelector: selector})
	}
	pods := func(o metav1.ListOptions) (int, error) {
		l, err := c.CoreV1().Pods("").List(t.Context(), o)
		return len(l.Items), err
	}
	nodes := func(o metav1.ListOptions) (int, error) {
		l, err := c.CoreV1().Nodes().List(t.Context(), o)
		return len(l.Items), err
	}
	events := func(o metav1.ListOptions) (int, error) {
		l, err := c.CoreV1().Events("").List(t.Context(), o)
		return len(l.Items), err
	}
	newEvents := func(o metav1.ListOptions) (int, error) {
		l, err := c.EventsV1().Events("").List(t.Context(), o)
		return len(l.Items), err
	}
	for _, q := range []struct {
		list     func(metav1.ListOptions) (int, error)
		selector string
		want     int // -1: refused
	}{
		{pods, "spec.nodeName=n1", 1},
		{pods, "spec.nodeName=", 1},
		{pods, "status.phase!=Running", 2},
		{pods, "metadata.namespace=kube-system", 0},
		{pods, "spec.priority=1", -1},
		{nodes, "spec.unschedulable=true", 1},
		{nodes, "metadata.name=n2", 1},
		{nodes, "metadata.namespace=x", -1},
		{events, "involvedObject.kind=Pod,reason=BackOff", 1},
		{events, "involvedObject.uid=u-1,type=Warning", 2},
		{events, "source=kubelet", 2},
		{events, "regarding.kind=Pod", -1},
		{newEvents, "regarding.name=web-b", 1},
		{newEvents, "type=Normal", 0},
	} {
		got, err := count(q.list, q.selector)
		if q.want < 0 {
			if !apierrors.IsBadRequest(err) {
				t.Errorf("%s: %d, %v; want it refused", q.selector, got, err)
			}
		} else if err != nil || got != q.want {
			t.Errorf("%s: %d, %v; want %d", q.selector, got, err, q.want)
		}
	}
}

func TestEventsHaveTwoViews(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, event("a", "BackOff"))
	c := client(t, s.Config())
	seen, err := c.EventsV1().Events("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || seen.Note != "it went wrong" || seen.Regarding.Name != "web-a" || seen.DeprecatedSource.Host != "n1" {
		t.Fatalf("%+v, %v", seen, err)
	}
	seen.Note, seen.Name, seen.ResourceVersion, seen.UID = "new", "b", "", ""
	if _, err := c.EventsV1().Events("default").Create(t.Context(), seen, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if old := get[*corev1.Event](t, s, "default", "b"); old.Message != "new" || old.InvolvedObject.UID != "u-1" {
		t.Errorf("%+v", old)
	}
}

func TestMetadataAlone(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, daemonSet("agent"))
	c, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.Resource(daemonSetsGVR).Namespace("kube-system").Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil || one.Name != "agent" || len(one.ManagedFields) == 0 {
		t.Errorf("%+v, %v", one, err)
	}
	list, err := c.Resource(daemonSetsGVR).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Generation != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTheDateIsTheClustersTime(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	clock.advance(time.Hour)
	answer := raw(t, s, http.MethodGet, "/version", "", nil)
	if want := "Sun, 01 Mar 2026 09:00:00 GMT"; answer.Header.Get("Date") != want {
		t.Errorf("Date %q, want %q", answer.Header.Get("Date"), want)
	}
	if body := text(t, answer); !strings.Contains(body, `"gitVersion":"v1.37.2"`) {
		t.Error(body)
	}
}

// raw sends one request over the in-process connection.
func raw(t *testing.T, s *Server, method, path, body string, header map[string]string) *http.Response {
	t.Helper()
	transport := &http.Transport{DialContext: s.dial}
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), method, host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, daemonSet("agent"))
	for _, c := range []struct {
		name, method, path, body, contentType, accept string
		code                                          int
		message                                       string
	}{
		{"an unknown kind", "GET", "/apis/apps/v1/namespaces/a/cronjobs", "", "", "", 404, "the server could not find the requested resource"},
		{"an unknown version", "GET", "/apis/apps/v1beta1/daemonsets", "", "", "", 404, "the server could not find the requested resource"},
		{"nodes in a namespace", "GET", "/api/v1/namespaces/a/nodes", "", "", "", 404, "the server could not find the requested resource"},
		{"an unknown subresource", "GET", "/apis/apps/v1/namespaces/kube-system/daemonsets/agent/scale", "", "", "", 404, "the server could not find the requested resource"},
		{"no JSON", "POST", "/api/v1/nodes", "{", "application/json", "", 400, "cannot be handled as a Node"},
		{"another kind in the body", "POST", "/api/v1/nodes", `{"kind":"Pod","apiVersion":"v1"}`, "application/json", "", 400, "cannot be handled as a Node"},
		{"another version in the body", "POST", "/apis/apps/v1/namespaces/a/daemonsets", `{"kind":"Pod","apiVersion":"v1"}`, "application/json", "", 400, "does not match the expected API version (apps/v1)"},
		{"an unknown encoding", "POST", "/api/v1/nodes", "x", "text/csv", "", 415, "unknown format"},
		{"an answer nobody can give", "GET", "/api/v1/nodes", "", "", "text/csv", 406, "only the following media types are accepted"},
		{"another name in the body", "PUT", "/api/v1/nodes/n1", `{"metadata":{"name":"n2"}}`, "application/json", "", 400, "does not match the name on the URL"},
		{"another namespace in the body", "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p","namespace":"other"}}`, "application/json", "", 400, "does not match the namespace sent on the request"},
		{"unknown fields, strictly", "POST", "/api/v1/nodes?fieldValidation=Strict", `{"metadata":{"name":"n"},"spek":{}}`, "application/json", "", 400, `unknown field \"spek\"`},
		{"a name that is none", "POST", "/api/v1/nodes", `{"metadata":{"name":"No Name"}}`, "application/json", "", 422, "metadata.name: Invalid value"},
		{"POST to an object", "POST", "/api/v1/nodes/n1", "{}", "application/json", "", 405, "the server does not allow this method on the requested resource"},
		{"DELETE of a status", "DELETE", "/apis/apps/v1/namespaces/kube-system/daemonsets/agent/status", "", "", "", 405, "the server does not allow this method on the requested resource"},
		{"apply without a manager", "PATCH", "/api/v1/nodes/n1", "kind: Node", "application/apply-patch+yaml", "", 422, "is required for apply patch"},
		{"initial events of a list", "GET", "/api/v1/nodes?sendInitialEvents=true", "", "", "", 422, "sendInitialEvents is forbidden for list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := raw(t, s, c.method, c.path, c.body, map[string]string{"Content-Type": c.contentType, "Accept": c.accept})
			body := text(t, answer)
			if answer.StatusCode != c.code || !strings.Contains(body, c.message) || !strings.Contains(body, `"kind":"Status"`) {
				t.Errorf("got %d %s, want %d %q", answer.StatusCode, body, c.code, c.message)
			}
		})
	}
}

func TestUnknownFieldsAreWarnedOf(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	answer := raw(t, s, "POST", "/api/v1/nodes", `{"metadata":{"name":"n"},"spek":{}}`, map[string]string{"Content-Type": "application/json"})
	if answer.StatusCode != http.StatusCreated || !strings.Contains(answer.Header.Get("Warning"), "spek") {
		t.Errorf("%d, warning %q", answer.StatusCode, answer.Header.Get("Warning"))
	}
}

func TestAWriterWithoutAManagerIsNamedByItsAgent(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	config := s.Config()
	config.UserAgent = "kubectl/v1.37.2 (linux/amd64)"
	for _, manager := range []string{"", "rollcall"} {
		if _, err := client(t, config).CoreV1().Nodes().Create(t.Context(), node("n"+manager), metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	if m := get[*corev1.Node](t, s, "", "n").ManagedFields[0].Manager; m != "kubectl" {
		t.Errorf("manager %q", m)
	}
	if m := get[*corev1.Node](t, s, "", "nrollcall").ManagedFields[0].Manager; m != "rollcall" {
		t.Errorf("manager %q", m)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	boundPod(t, s, "web")
	two := pod("two")
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "side", Image: "s:1"})
	create(t, s, two)
	s.ServeLogs(func(p *corev1.Pod, opts *corev1.PodLogOptions) (string, error) {
		if opts.Previous {
			return "", errors.New(`Get "https://10.0.0.1:10250/containerLogs": dial tcp 10.0.0.1:10250: i/o timeout`)
		}
		return "1 " + opts.Container + "\n2\n3\n", nil
	})
	logs := func(name string, opts *corev1.PodLogOptions) (string, error) {
		stream, err := client(t, s.Config()).CoreV1().Pods("default").GetLogs(name, opts).Stream(t.Context())
		if err != nil {
			return "", err
		}
		defer stream.Close()
		data, err := io.ReadAll(stream)
		return string(data), err
	}
	if got, err := logs("web", &corev1.PodLogOptions{}); got != "1 web\n2\n3\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := logs("web", &corev1.PodLogOptions{TailLines: ptr[int64](2)}); got != "2\n3\n" {
		t.Errorf("the last two: %q, %v", got, err)
	}
	if _, err := logs("web", &corev1.PodLogOptions{Previous: true}); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("a kubelet out of reach: %v", err)
	}
	if _, err := logs("two", &corev1.PodLogOptions{}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "choose one of: [web side]") {
		t.Errorf("two containers: %v", err)
	}
	if _, err := logs("web", &corev1.PodLogOptions{Container: "x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("another container: %v", err)
	}
}

func TestBindingThroughTheAPI(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, pod("web"))
	bind := func() error {
		return client(t, s.Config()).CoreV1().Pods("default").Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{})
	}
	if err := bind(); err != nil {
		t.Fatal(err)
	}
	p := get[*corev1.Pod](t, s, "default", "web")
	if p.Spec.NodeName != "n1" || p.Status.Conditions[0].Type != corev1.PodScheduled {
		t.Errorf("%+v", p.Status)
	}
	if err := bind(); !apierrors.IsConflict(err) {
		t.Errorf("a second binding: %v", err)
	}
}

func TestDiscoveryNamesWhatIsServed(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	d := client(t, s.Config()).Discovery()
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			seen[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, want := range []string{"v1/nodes", "v1/nodes/status", "v1/pods/log", "v1/pods/eviction", "apps/v1/daemonsets", "apps/v1/controllerrevisions",
		"events.k8s.io/v1/events", "coordination.k8s.io/v1/leases", "authorization.k8s.io/v1/selfsubjectaccessreviews", "policy/v1/poddisruptionbudgets"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
	s.SetVersion("v1.34.1")
	if v, err := d.ServerVersion(); err != nil || v.Minor != "34" || v.GitVersion != "v1.34.1" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestTablesShowWhatKubectlPrints(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	boundPod(t, s, "web")
	clock.advance(5 * time.Minute)
	header := map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
	body := text(t, raw(t, s, "GET", "/api/v1/namespaces/default/pods", "", header))
	for _, want := range []string{`"kind":"Table"`, `["web","0/1","Pending","0","5m","\u003cnone\u003e","n1"`, `"kind":"PartialObjectMetadata"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}
