package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podEvent writes a kubelet's event about a Pod, or about a container of it.
func (f *Fleet) podEvent(ctx context.Context, pod *corev1.Pod, container, kind, reason, message string) error {
	ref := corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	if container != "" {
		ref.FieldPath = fmt.Sprintf("spec.containers{%s}", container)
	}
	return f.event(ctx, pod.Spec.NodeName, ref, kind, reason, message)
}

// event writes one in the form of the recorder that kubelets use. Events about
// nodes, which have no namespace, live in default.
func (f *Fleet) event(ctx context.Context, host string, about corev1.ObjectReference, kind, reason, message string) error {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := metav1.Now()
	_, err := f.client.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", about.Name, time.Now().UnixNano())},
		InvolvedObject: about,
		Type:           kind, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: host}, ReportingController: "kubelet", ReportingInstance: host,
	}, metav1.CreateOptions{})
	return err
}
