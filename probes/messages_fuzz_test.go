package probes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// FuzzImageCode reads what registries and runtimes say of an image that cannot be had.
func FuzzImageCode(f *testing.F) {
	for _, words := range []string{
		`failed to pull and unpack image "registry.example/a:v9": failed to resolve reference "registry.example/a:v9": registry.example/a:v9: not found`,
		`failed to resolve reference: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
		`dial tcp: lookup registry.example on 10.0.0.2:53: no such host`, `unexpected status from GET request: 401 Unauthorized`,
		`failed to do request: Head "https://registry.example/v2/": net/http: TLS handshake timeout`, "manifest unknown", "", "\x00\xff",
	} {
		f.Add("ErrImagePull", words)
	}
	f.Fuzz(func(t *testing.T, reason, words string) {
		code := imageCode(reason, words)
		if !slices.Contains([]report.Code{report.ImageNotFound, report.ImagePullUnauthorized, report.RegistryUnreachable, report.ImagePullFailed}, code) {
			t.Errorf("%q, %q: %q is no code of an image", reason, words, code)
		}
	})
}

// FuzzPodMessages lets every text that a kubelet or the scheduler writes about a Pod be
// anything: the trouble that is read off it has a known code and a summary.
func FuzzPodMessages(f *testing.F) {
	for _, m := range []string{
		`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "ab": plugin type="calico" failed (add): stat /var/lib/calico/nodename: no such file or directory`,
		`MountVolume.SetUp failed for volume "config" : configmap "agent" not found`, `Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data]: timed out waiting for the condition`,
		`references non-existent secret key: token`, `Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 3800, capacity: 4000`,
		"0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.", "0/1 nodes are available: 1 .", "",
	} {
		for _, kind := range []string{"FailedCreatePodSandBox", "FailedMount", "Failed", "FailedScheduling", "Unhealthy", "Killing"} {
			f.Add(kind, m)
		}
	}
	f.Fuzz(func(t *testing.T, kind, message string) {
		now := time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)
		at := metav1.NewTime(now.Add(-time.Hour))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: message}}}}
		var o cluster.Objects
		o.Nodes = []*corev1.Node{node}
		for _, p := range []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
				Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: kind, Message: message}}}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
			{ObjectMeta: metav1.ObjectMeta{Name: "ended"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: kind, Message: message}},
			{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: kind, Message: message}}}},
		} {
			p.Namespace, p.CreationTimestamp = "a", at
			o.Pods = append(o.Pods, &p)
			o.Events = append(o.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: p.Name}, Reason: kind, Message: message, FirstTimestamp: at, LastTimestamp: at})
		}
		c := Diagnose(cluster.New(o, cluster.Meta{AsOf: now, PodScope: cluster.PodScope{All: true}}), Options{})
		for _, p := range o.Pods {
			if trouble := c.podTroubleOf(p); trouble != nil && (!trouble.code.Known() || trouble.summary == "") {
				t.Errorf("%s: code %q, summary %q", p.Name, trouble.code, trouble.summary)
			}
		}
	})
}
