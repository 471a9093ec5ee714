package api

import (
	"net/http"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestReviewsAndRequestsAgree(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, daemonSet("agent"))
	boundPod(t, s, "web")
	s.Deny(
		Denial{User: "reader", Verb: "patch", Group: Everything, Resource: Everything},
		Denial{User: "reader", Verb: "get", Resource: "pods/log"},
		Denial{User: "reader", Verb: "list", Resource: "nodes"},
		Denial{User: "reader", Verb: "list", Resource: "pods", Except: "default"},
		Denial{User: "reader", Verb: "list", Resource: "events", Namespace: "kube-system"},
	)
	reader, operator := client(t, s.ConfigFor("reader")), client(t, s.Config())
	empty := []byte("{}")
	for _, c := range []struct {
		name    string
		ask     authorizationv1.ResourceAttributes
		do      func() error
		allowed bool
	}{
		{"patch a DaemonSet", authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "daemonsets", Namespace: "kube-system"}, func() error {
			_, err := reader.AppsV1().DaemonSets("kube-system").Patch(t.Context(), "agent", types.MergePatchType, empty, metav1.PatchOptions{})
			return err
		}, false},
		{"read a DaemonSet", authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: "kube-system"}, func() error {
			_, err := reader.AppsV1().DaemonSets("kube-system").Get(t.Context(), "agent", metav1.GetOptions{})
			return err
		}, true},
		{"read a Pod", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default"}, func() error {
			_, err := reader.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
			return err
		}, true},
		{"read a log", authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "default"}, func() error {
			_, err := reader.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{}).Stream(t.Context())
			return err
		}, false},
		{"list nodes", authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}, func() error {
			_, err := reader.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		}, false},
		{"watch nodes", authorizationv1.ResourceAttributes{Verb: "watch", Resource: "nodes"}, func() error {
			w, err := reader.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
			if err == nil {
				w.Stop()
			}
			return err
		}, true},
		{"list Pods everywhere", authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, func() error {
			_, err := reader.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			return err
		}, false},
		{"list Pods of one namespace", authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "default"}, func() error {
			_, err := reader.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return err
		}, true},
		{"list events of kube-system", authorizationv1.ResourceAttributes{Verb: "list", Resource: "events", Namespace: "kube-system"}, func() error {
			_, err := reader.CoreV1().Events("kube-system").List(t.Context(), metav1.ListOptions{})
			return err
		}, false},
	} {
		review, err := reader.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &c.ask}}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != c.allowed {
			t.Errorf("%s: the review says %v, want %v (%v)", c.name, review.Status.Allowed, c.allowed, err)
		}
		if err := c.do(); apierrors.IsForbidden(err) == c.allowed {
			t.Errorf("%s: %v, want allowed %v", c.name, err, c.allowed)
		}
	}
	if _, err := operator.AppsV1().DaemonSets("kube-system").Patch(t.Context(), "agent", types.MergePatchType, empty, metav1.PatchOptions{}); err != nil {
		t.Errorf("another user is denied: %v", err)
	}
	s.Allow("reader")
	if _, err := reader.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("still denied: %v", err)
	}
}

func TestARefusalHasTheServersWords(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	s.Deny(Denial{User: "reader", Verb: Everything, Group: Everything, Resource: Everything})
	c := client(t, s.ConfigFor("reader"))
	_, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	checkStatus(t, err, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: `nodes is forbidden: User "reader" cannot list resource "nodes" in API group "" at the cluster scope`,
		Details: &metav1.StatusDetails{Kind: "nodes"}})
	err = c.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{})
	checkStatus(t, err, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: `pods "web" is forbidden: User "reader" cannot delete resource "pods" in API group "" in the namespace "default"`,
		Details: &metav1.StatusDetails{Kind: "pods", Name: "web"}})
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	s.Reject("expired")
	impersonating := s.Config()
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	for _, c := range []struct {
		config *rest.Config
		user   string
	}{{s.Config(), DefaultUser}, {s.ConfigFor("reader"), "reader"}, {impersonating, "jane"}} {
		me, err := client(t, c.config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || me.Status.UserInfo.Username != c.user {
			t.Errorf("%q, %v; want %q", me.Status.UserInfo.Username, err, c.user)
		}
	}
	_, err := client(t, s.ConfigFor("expired")).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	checkStatus(t, err, metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"})
}

func TestTheRulesOfAUser(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	s.Deny(Denial{User: "reader", Verb: "patch", Group: "apps", Resource: "daemonsets"})
	rules := func(user string) []authorizationv1.ResourceRule {
		review, err := client(t, s.ConfigFor(user)).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.ResourceRules
	}
	if all := rules("admin"); len(all) != 1 || all[0].Verbs[0] != "*" {
		t.Errorf("%v", all)
	}
	for _, r := range rules("reader") {
		if r.Resources[0] == "daemonsets" && (slices.Contains(r.Verbs, "patch") || !slices.Contains(r.Verbs, "get")) {
			t.Errorf("%v", r)
		}
	}
}
