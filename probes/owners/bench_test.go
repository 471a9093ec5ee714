package owners_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/owners"
)

func BenchmarkOf(b *testing.B) {
	fields := `{"f:metadata":{"f:labels":{}},"f:spec":{"f:selector":{},"f:template":{"f:spec":{` + strings.Repeat(`"f:containers":{"k:{\"name\":\"x\"}":{"f:image":{},"f:env":{}}},`, 60) + `"f:x":{}}},"f:updateStrategy":{}}}`
	o := &appsv1.DaemonSet{ObjectMeta: meta{Name: "agent", Namespace: "net", Labels: words{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "net"}, Annotations: words{"meta.helm.sh/release-name": "net"},
		ManagedFields: []metav1.ManagedFieldsEntry{wrote("helm", "Update", fields), wrote("kubectl-edit", "Update", fields), wrote("kube-controller-manager", "Update", `{"f:status":{}}`)}}}
	for b.Loop() {
		owners.Of(o, "DaemonSet")
	}
}
