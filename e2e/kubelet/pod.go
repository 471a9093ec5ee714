package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// life is what the fleet remembers of a Pod: when it saw what. The queue looks at
// a Pod from one worker at a time.
type life struct {
	began    time.Time // the Pod was seen
	ready    time.Time // its containers run
	affected bool      // its image has had its effect
	waiting  bool      // for the node's network, and said so
	stopping time.Time // its deletion was seen
}

func (f *Fleet) life(pod *corev1.Pod) *life {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.seen[pod.UID]
	if l == nil {
		l = &life{began: time.Now()}
		f.seen[pod.UID] = l
	}
	return l
}

// syncPod takes the Pod one step further where it is time, and tells when to look
// again.
func (f *Fleet) syncPod(ctx context.Context, name types.NamespacedName) (again time.Duration, err error) {
	pod, err := f.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil || !f.reachable(pod.Spec.NodeName) {
		return 0, err
	}
	l := f.life(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return f.end(ctx, pod, l)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return 0, nil
	case pod.Status.StartTime == nil:
		return f.options.Starting, f.postPod(ctx, pod, creating(pod))
	case l.ready.IsZero():
		return f.run(ctx, pod, l)
	case !isReady(pod):
		// The node was cut off and called Unknown meanwhile: the kubelet insists.
		return 0, f.postPod(ctx, pod, running(pod, l.ready))
	}
	return f.haveEffect(pod, l), nil
}

// run makes the containers run once they have had their time to start.
func (f *Fleet) run(ctx context.Context, pod *corev1.Pod, l *life) (again time.Duration, err error) {
	if left := time.Until(l.began.Add(f.options.Starting)); left > 0 {
		return left, nil
	}
	if !pod.Spec.HostNetwork && f.withoutNetwork(pod.Spec.NodeName) {
		if !l.waiting {
			l.waiting = true
			err = f.podEvent(ctx, pod, "", corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: "+noNetworkMessage)
		}
		return time.Second, err
	}
	now := time.Now()
	if err := f.postPod(ctx, pod, running(pod, now)); err != nil {
		return 0, err
	}
	l.ready = now
	for _, c := range pod.Spec.Containers {
		for _, e := range []struct{ reason, message string }{
			{"Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image)},
			{"Created", "Container created"},
			{"Started", "Container started"},
		} {
			if err := f.podEvent(ctx, pod, c.Name, corev1.EventTypeNormal, e.reason, e.message); err != nil {
				return 0, err
			}
		}
	}
	return f.haveEffect(pod, l), nil
}

// haveEffect lets the Pod's images do to the node what the script says, when it is time.
func (f *Fleet) haveEffect(pod *corev1.Pod, l *life) (again time.Duration) {
	if l.affected {
		return 0
	}
	for _, c := range pod.Spec.Containers {
		image := f.options.Images[c.Image]
		if image.Effect == Harmless {
			continue
		}
		if left := time.Until(l.ready.Add(image.After)); left > 0 {
			return left
		}
		f.affect(pod.Spec.NodeName, image.Effect)
	}
	l.affected = true
	return 0
}

// end stops the containers of a deleted Pod and then removes it, as a kubelet
// does: with a second deletion, without grace, of that very Pod.
func (f *Fleet) end(ctx context.Context, pod *corev1.Pod, l *life) (again time.Duration, err error) {
	if l.stopping.IsZero() {
		for _, c := range pod.Spec.Containers {
			if err := f.podEvent(ctx, pod, c.Name, corev1.EventTypeNormal, "Killing", "Stopping container "+c.Name); err != nil {
				return 0, err
			}
		}
		l.stopping = time.Now()
	}
	takes := f.options.Stopping
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		takes = min(takes, time.Duration(*g)*time.Second)
	}
	if left := time.Until(l.stopping.Add(takes)); left > 0 {
		return left, nil
	}
	return 0, f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
}

func (f *Fleet) withoutNetwork(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	return n != nil && n.noNetwork
}

func (f *Fleet) postPod(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	pod = pod.DeepCopy()
	for i, c := range status.Conditions {
		for _, old := range pod.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				status.Conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	status.Conditions = append(status.Conditions, others(pod.Status.Conditions, status.Conditions)...)
	status.QOSClass = pod.Status.QOSClass
	pod.Status = status
	_, err := f.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// others are the conditions that are somebody else's, such as the scheduler's.
func others(all, own []corev1.PodCondition) (rest []corev1.PodCondition) {
	mine := map[corev1.PodConditionType]bool{}
	for _, c := range own {
		mine[c.Type] = true
	}
	for _, c := range all {
		if !mine[c.Type] {
			rest = append(rest, c)
		}
	}
	return rest
}

func creating(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	s := corev1.PodStatus{
		Phase: corev1.PodPending, StartTime: &now,
		HostIP: address(pod.Spec.NodeName), HostIPs: []corev1.HostIP{{IP: address(pod.Spec.NodeName)}},
		Conditions: conditions(now, false),
	}
	for _, c := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		})
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	return s
}

func running(pod *corev1.Pod, since time.Time) corev1.PodStatus {
	at := metav1.NewTime(since)
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: pod.Status.StartTime, HostIP: pod.Status.HostIP, HostIPs: pod.Status.HostIPs,
		PodIP: address(string(pod.UID)), Conditions: conditions(at, true),
	}
	if pod.Spec.HostNetwork {
		s.PodIP = pod.Status.HostIP
	}
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	for _, c := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: id(pod, c.Name), Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: id(pod, c.Name)}},
		})
	}
	started := true
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: id(pod, c.Name), Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	return s
}

func id(pod *corev1.Pod, container string) string {
	return "containerd://" + string(pod.UID) + "-" + container
}

// conditions are the ones that a kubelet writes.
func conditions(at metav1.Time, up bool) []corev1.PodCondition {
	kinds := []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady}
	out := make([]corev1.PodCondition, len(kinds))
	for i, kind := range kinds {
		out[i] = corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at}
		if !up {
			out[i].Status = corev1.ConditionFalse
			if kind == corev1.ContainersReady || kind == corev1.PodReady {
				out[i].Reason, out[i].Message = "ContainersNotReady", "containers are being created"
			}
		}
	}
	return out
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
