package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Logs is what a container wrote in this life, or in the one before it. It fails
// as a kubelet that is asked for it: when the node cannot be reached, and while
// there is nothing yet.
func (w *World) Logs(namespace, pod, container string, previous bool) (string, error) {
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
			p.Status.HostIP, namespace, pod, container, p.Status.HostIP)
	}
	for _, c := range append(append([]*containerRun(nil), run.init...), run.main...) {
		if c.spec.Name != container {
			continue
		}
		lines := c.log
		switch {
		case previous && c.starts < 2:
			return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
		case previous:
			lines = c.oldLog
		case c.starts == 0:
			return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, c.reason)
		}
		lines = slices.Clone(lines)
		slices.SortStableFunc(lines, func(a, b loggedLine) int { return a.at.Compare(b.at) })
		var out strings.Builder
		for _, l := range lines {
			if !l.at.After(k.now()) {
				fmt.Fprintf(&out, "%s %s\n", l.at.UTC().Format("2006-01-02T15:04:05.000Z07:00"), l.text)
			}
		}
		return out.String(), nil
	}
	return "", fmt.Errorf("container %s is not valid for pod %s", container, pod)
}
