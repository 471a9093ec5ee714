package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Eviction is what the NoExecute taints of a node mean for one of its Pods.
type Eviction struct {
	// At is when the Pod is deleted; zero where a taint does not say since when it is
	// there. The controller counts from when it sees the taint, so a restart of
	// kube-controller-manager makes it later.
	At time.Time
	// Taint is the one that does it, Left how long the Pod tolerates it.
	Taint *corev1.Taint
	Left  time.Duration
}

// Evicted tells when taint-based eviction takes the Pod off its node; ok is false
// where it stays: no NoExecute taint, all of them tolerated without an end, a Pod that
// is ending anyway, or a static one, which its kubelet runs whatever the API says.
// Source: pkg/controller/tainteviction/taint_eviction.go, processPodOnNode and getMinTolerationTime.
func Evicted(p *corev1.Pod, n *corev1.Node) (ev Eviction, ok bool) {
	if p.DeletionTimestamp != nil || PodTerminal(p) || p.Spec.NodeName != n.Name || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return ev, false
	}
	tolerations := p.Spec.Tolerations
	if c := metav1.GetControllerOfNoCopy(p); c != nil && c.Kind == "DaemonSet" {
		tolerations = append(slices.Clip(tolerations), automatic...)
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		left, stays := TolerationLeft(tolerations, t)
		if stays {
			continue
		}
		e := Eviction{Taint: t, Left: left}
		if t.TimeAdded != nil {
			since := t.TimeAdded.Time
			if p.CreationTimestamp.After(since) {
				since = p.CreationTimestamp.Time // it came to a node that had the taint
			}
			e.At = since.Add(left)
		}
		if !ok || !e.At.IsZero() && (ev.At.IsZero() || e.At.Before(ev.At)) {
			ev, ok = e, true
		}
	}
	return ev, ok
}

// TolerationLeft is how long a Pod with those tolerations stays on a node with a
// NoExecute taint: the seconds of the first toleration that matches, 0 without one.
// stays tells that it tolerates the taint without an end.
// Source: component-helpers scheduling/corev1/helpers.go, GetMatchingTolerations.
func TolerationLeft(tolerations []corev1.Toleration, taint *corev1.Taint) (left time.Duration, stays bool) {
	for i := range tolerations {
		if !tolerated(tolerations[i:i+1], taint) {
			continue
		}
		seconds := tolerations[i].TolerationSeconds
		if seconds == nil {
			return 0, true
		}
		return time.Duration(min(max(*seconds, 0), maxSeconds)) * time.Second, false
	}
	return 0, false
}

// maxSeconds keeps a toleration of absurd length from overflowing a duration.
const maxSeconds = int64(100 * 365 * 24 * time.Hour / time.Second)
