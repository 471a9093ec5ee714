package controlplane

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
)

func TestControlPlaneServesUsersByTheirRightsAndAuditsThem(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	programs, err := binaries.Build(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(ctx, t.TempDir(), programs, Options{
		Users:          []User{{Name: "reader"}, {Name: "pods", Rules: []rbacv1.PolicyRule{Reading("", "pods")}}},
		LeaderElection: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	processes := c.processes
	t.Cleanup(func() {
		c.Stop()
		for _, p := range processes {
			select {
			case <-p.done:
			default:
				t.Errorf("%s still runs after Stop", p.name)
			}
		}
	})

	client := func(user string) *kubernetes.Clientset {
		t.Helper()
		k, err := kubernetes.NewForConfig(c.Config(user))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	version, err := client("reader").Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("server calls itself %q", version.GitVersion)
	}
	if _, err := client("reader").CoreV1().Pods("").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rules lists Pods: %v", err)
	}
	if _, err := client("pods").CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("a user with the rule cannot list Pods: %v", err)
	}
	if _, err := client("nobody").CoreV1().Pods("").List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token is not refused: %v", err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "daemonsets"},
	}}
	if r, err := client("pods").AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{}); err != nil || r.Status.Allowed {
		t.Errorf("access review: allowed %v, error %v", r.Status.Allowed, err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}
	if _, err := client(Admin).CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}

	requests, err := c.Requests("pods")
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) != 2 || requests[0].Verb != "list" || requests[0].Resource != "pods" || requests[0].Mutates() ||
		!requests[1].AsksForAccess() || !requests[1].Mutates() {
		t.Errorf("audit log of pods: %v", requests)
	}
	requests, err = c.Requests(Admin)
	if err != nil {
		t.Fatal(err)
	}
	dry := 0
	for _, r := range requests {
		if r.DryRun {
			dry++
			if r.Name != "dry" || !r.Mutates() {
				t.Errorf("dry run: %v", r)
			}
		}
	}
	if dry != 1 {
		t.Errorf("%d dry runs in the audit log, want 1", dry)
	}

	// Both components took their Leases, so both are at work.
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		for {
			lease, err := client(Admin).CoordinationV1().Leases("kube-system").Get(ctx, name, metav1.GetOptions{})
			if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s has no Lease: %v\n%s", name, err, c.Logs())
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}
