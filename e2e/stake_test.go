package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stays is how long the Pods of the test stay on a node that cannot be reached, and
// evictionError by how much the time said may miss that of the deletion: both are
// written in whole seconds, and the taint's own time is a moment before the controller
// that evicts hears of it.
const (
	stays         = 20 * time.Second
	evictionError = 3 * time.Second
)

// When nodes are lost, the report says which Pods will be evicted and when, and then
// they are; which Services have no endpoint left, and then they have none; and who owns
// a workload, from what its owners really leave on it.
func TestWhatIsAtStakeComesTrue(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{Grace: 20 * time.Second}, kubelet.Options{Heartbeat: 5 * time.Second}, named(6, nil)...)
	const lost = "node-01"
	if err := c.serve(t.Context(), "web", "", stays); err != nil {
		t.Fatal(err)
	}
	if err := c.serve(t.Context(), "db", lost, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.own(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wait(t, "all Pods are Ready", func(ctx context.Context) (bool, string) {
		pods := c.podsOf(ctx, t, metav1.NamespaceDefault)
		ready := 0
		for _, p := range pods {
			if facts.PodReady(p) {
				ready++
			}
		}
		return len(pods) == ready && ready == 12+1+2*6, fmt.Sprintf("%d of %d", ready, len(pods))
	})
	r, _ := c.triage(t, reader, "--all")
	t.Run("owners", func(t *testing.T) {
		for name, tool := range map[string]report.Text{"by-helm": "Helm", "by-flux": "Flux"} {
			w := r.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: metav1.NamespaceDefault, Name: report.Clean(name)})
			if w == nil || !slices.ContainsFunc(w.Owners, func(o report.Owner) bool { return o.Tool == tool && o.Certainty == report.Certain }) {
				t.Errorf("%s is not certain to be owned by %s: %+v", name, tool, w)
			}
		}
	})

	c.fleet.CutOff(lost)
	c.waitForNodes(t, corev1.ConditionUnknown, 1)
	var said time.Time
	c.wait(t, "the report says when Pods are evicted", func(context.Context) (bool, string) {
		r, _ := c.triage(t, reader)
		s := r.Stake(report.StakeEvictions)
		if !hasCode(r.ClusterFindings, report.EvictionPending) || s == nil || s.At == nil {
			return false, fmt.Sprintf("%v, %+v", codesOf(r.ClusterFindings), s)
		}
		said = s.At.Time
		return true, ""
	})
	t.Run("endpoints", func(t *testing.T) {
		c.wait(t, "the report says that the Service db has no endpoint left", func(context.Context) (bool, string) {
			r, _ := c.triage(t, reader)
			var about []string
			for _, f := range r.ClusterFindings {
				if f.Code == report.ServiceWithoutEndpoints {
					about = append(about, string(f.Object.Name))
				}
			}
			return len(about) == 1 && about[0] == "db", fmt.Sprintf("about %q of %v", about, codesOf(r.ClusterFindings))
		})
	})
	t.Run("evictions", func(t *testing.T) {
		c.wait(t, "the Pods of web on the lost node are deleted", func(ctx context.Context) (bool, string) {
			seen := ""
			for _, p := range c.podsOf(ctx, t, metav1.NamespaceDefault) {
				switch {
				case p.Spec.NodeName != lost:
				case p.Labels["app"] == "web" && p.DeletionTimestamp == nil:
					return false, p.Name + " is there"
				case p.Labels["app"] == "web":
					at := facts.DeleteRequested(p)
					seen = p.Name
					if d := at.Sub(said); d < -evictionError || d > evictionError {
						t.Errorf("%s was evicted at %s, and the report said %s", p.Name, at.Format(time.TimeOnly), said.Format(time.TimeOnly))
					}
				case p.DeletionTimestamp != nil:
					t.Errorf("%s was evicted and tolerates the taint", p.Name)
				}
			}
			if seen == "" {
				t.Error("no Pod of web is on the lost node: nothing was compared")
			}
			return true, ""
		})
	})
}

func (c *cluster) podsOf(ctx context.Context, t *testing.T, namespace string) []*corev1.Pod {
	t.Helper()
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}

// serve makes a Deployment with a Service: 12 Pods that stay so long on a node that is
// lost, or a single one on the given node that stays for ever.
func (c *cluster) serve(ctx context.Context, name, node string, stay time.Duration) error {
	labels, replicas, grace := map[string]string{"app": name}, int32(12), int64(2)
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers:                    []corev1.Container{{Name: name, Image: "registry.example/" + name + ":v1"}},
	}
	if node != "" {
		replicas, spec.NodeSelector, spec.Tolerations = 1, map[string]string{corev1.LabelHostname: node}, everything
	} else {
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds(int64(stay.Seconds()))})
		}
	}
	meta := metav1.ObjectMeta{Name: name}
	if _, err := c.client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80}},
	}}, metav1.CreateOptions{})
	return err
}

// own makes two DaemonSets as Helm and Flux do: the one created with Helm's marks, the
// other applied by the server, as their controllers are named.
func (c *cluster) own(ctx context.Context) error {
	helm := daemonSet{namespace: metav1.NamespaceDefault, name: "by-helm", image: logsOld, maxUnavailable: 1, tolerations: everything}.object()
	helm.Labels["app.kubernetes.io/managed-by"] = "Helm"
	helm.Annotations = map[string]string{"meta.helm.sh/release-name": "logs", "meta.helm.sh/release-namespace": metav1.NamespaceDefault}
	sets := c.client.AppsV1().DaemonSets(metav1.NamespaceDefault)
	if _, err := sets.Create(ctx, helm, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	flux := daemonSet{namespace: metav1.NamespaceDefault, name: "by-flux", image: logsOld, maxUnavailable: 1, tolerations: everything}.object()
	flux.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}
	flux.Labels = map[string]string{"app": "by-flux", "kustomize.toolkit.fluxcd.io/name": "agents", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	data, err := json.Marshal(flux)
	if err != nil {
		return err
	}
	force := true
	_, err = sets.Patch(ctx, flux.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "kustomize-controller", Force: &force})
	return err
}
