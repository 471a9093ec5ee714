package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Logs is what a container wrote in this life or, with o.Previous, in the one
// before it; since when and with which timestamps o says. It fails as a kubelet
// that is asked for it does: when the node cannot be reached, and while there is
// nothing yet.
func (w *World) Logs(namespace, pod string, o *corev1.PodLogOptions) (string, error) {
	p := w.pods.get(key(namespace, pod))
	if p == nil {
		return "", fmt.Errorf("pods %q not found", pod)
	}
	k := w.kubelets[p.Spec.NodeName]
	if k == nil {
		return "", fmt.Errorf("pod %s does not have a host assigned", pod)
	}
	run := k.runs[key(namespace, pod)]
	if !k.reaches() || run == nil {
		return "", fmt.Errorf("Get \"https://%s:10250/containerLogs/%s/%s/%s\": dial tcp %s:10250: i/o timeout",
			p.Status.HostIP, namespace, pod, o.Container, p.Status.HostIP)
	}
	for _, c := range append(append([]*containerRun(nil), run.init...), run.main...) {
		if c.spec.Name == o.Container {
			return c.read(o)
		}
	}
	return "", fmt.Errorf("container %s is not valid for pod %s", o.Container, pod)
}

func (c *containerRun) read(o *corev1.PodLogOptions) (string, error) {
	lines := c.log
	switch {
	case o.Previous && c.starts < 2:
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", c.spec.Name, c.pod.pod.Name)
	case o.Previous:
		lines = c.oldLog
	case c.starts == 0:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", c.spec.Name, c.pod.pod.Name, c.reason)
	}
	now := c.pod.k.now()
	since := time.Time{}
	switch {
	case o.SinceTime != nil:
		since = o.SinceTime.Time
	case o.SinceSeconds != nil:
		since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b loggedLine) int { return a.at.Compare(b.at) })
	var out strings.Builder
	for _, l := range lines {
		if l.at.After(now) || l.at.Before(since) {
			continue
		}
		if o.Timestamps {
			out.WriteString(l.at.UTC().Format(time.RFC3339Nano) + " ")
		}
		out.WriteString(strings.ReplaceAll(l.text, "$TIME", l.at.UTC().Format("2006-01-02 15:04:05.000")) + "\n")
	}
	return out.String(), nil
}
