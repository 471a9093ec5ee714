package api

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

var (
	podsGVR       = corev1.SchemeGroupVersion.WithResource("pods")
	eventsGVR     = corev1.SchemeGroupVersion.WithResource("events")
	daemonSetsGVR = appsv1.SchemeGroupVersion.WithResource("daemonsets")
)

// virtual is a clock that tests move.
type virtual struct{ offset atomic.Int64 }

func (v *virtual) now() time.Time          { return epoch.Add(time.Duration(v.offset.Load())) }
func (v *virtual) advance(d time.Duration) { v.offset.Add(int64(d)) }

func newServer(t testing.TB) (*Server, *virtual) {
	t.Helper()
	clock := &virtual{}
	s := New(clock.now, 1)
	t.Cleanup(s.Close)
	return s, clock
}

// clientsFor are the two encodings that clients speak.
func clientsFor(t *testing.T, s *Server) map[string]kubernetes.Interface {
	t.Helper()
	out := map[string]kubernetes.Interface{}
	for name, contentType := range map[string]string{"JSON": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"} {
		config := s.Config()
		config.ContentType = contentType
		if name == "protobuf" {
			config.AcceptContentTypes = contentType + ",application/json"
		}
		out[name] = client(t, config)
	}
	return out
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func daemonSet(name string) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "example.com/agent:1"}}},
			},
		},
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1"}}},
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

func event(name, reason string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Reason: reason, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web-" + name, UID: "u-1"},
		Message:        "it went wrong", Source: corev1.EventSource{Component: "kubelet", Host: "n1"}}
}

func create[T runtime.Object](t testing.TB, s *Server, o T) T {
	t.Helper()
	stored, err := s.Create("tester", o)
	if err != nil {
		t.Fatalf("creating %T: %v", o, err)
	}
	return stored.(T)
}

func get[T runtime.Object](t testing.TB, s *Server, ns, name string) T {
	t.Helper()
	o, err := GetOf[T](s, ns, name)
	if err != nil {
		t.Fatalf("getting %s/%s: %v", ns, name, err)
	}
	return o
}

func boundPod(t testing.TB, s *Server, name string) *corev1.Pod {
	t.Helper()
	create(t, s, pod(name))
	if err := s.Bind("kube-scheduler", "default", name, "n1"); err != nil {
		t.Fatal(err)
	}
	return get[*corev1.Pod](t, s, "default", name)
}

func ptr[T any](v T) *T { return &v }

func names[T metav1.Object](objects []T) string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	return fmt.Sprint(out)
}
