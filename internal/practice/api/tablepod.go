package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podCells is a Pod's row. STATUS is kubectl's summary of phase, reason and container states, not a field of the Pod.
func podCells(p *corev1.Pod, now time.Time) []any {
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
		}
	}
	row := podRow{status: string(p.Status.Phase)}
	if p.Status.Reason != "" {
		row.status = p.Status.Reason
	}
	initializing := row.readInit(p, sidecars)
	if !initializing {
		row.readMain(p)
	}
	switch {
	case p.DeletionTimestamp != nil && p.Status.Reason == "NodeLost":
		row.status = "Unknown"
	case p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		row.status = "Terminating"
	}
	restarts := strconv.Itoa(int(row.restarts))
	if row.restarts > 0 && !row.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", row.restarts, age(row.lastRestart, now))
	}
	return []any{p.Name, fmt.Sprintf("%d/%d", row.ready, len(p.Spec.Containers)+len(sidecars)), row.status, restarts,
		age(p.CreationTimestamp.Time, now), orNone(p.Status.PodIP), orNone(p.Spec.NodeName), orNone(p.Status.NominatedNodeName), "<none>"}
}

type podRow struct {
	status      string
	ready       int
	restarts    int32
	lastRestart time.Time
}

// readInit looks for the first init container that is not through, and says whether there is one.
func (r *podRow) readInit(p *corev1.Pod, sidecars map[string]bool) bool {
	var kept podRow // what still counts once initialization is over: sidecars
	for i, c := range p.Status.InitContainerStatuses {
		r.addRestarts(c)
		if sidecars[c.Name] {
			kept.addRestarts(c)
		}
		if t := c.State.Terminated; t != nil && t.ExitCode == 0 {
			continue
		}
		if sidecars[c.Name] && c.Started != nil && *c.Started {
			if c.Ready {
				r.ready++
			}
			continue
		}
		switch waiting := c.State.Waiting; {
		case c.State.Terminated != nil:
			r.status = "Init:" + ended(c.State.Terminated)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			r.status = "Init:" + waiting.Reason
		default:
			r.status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	r.restarts, r.lastRestart = kept.restarts, kept.lastRestart
	return false
}

func (r *podRow) readMain(p *corev1.Pod) {
	running, failure := false, ""
	for _, c := range slices.Backward(p.Status.ContainerStatuses) {
		r.addRestarts(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			r.status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			r.status = ended(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = r.status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			r.ready++
		}
	}
	if r.status != "Completed" {
		return
	}
	switch {
	case running && isReady(p):
		r.status = "Running"
	case failure != "":
		r.status = failure
	case running:
		r.status = "NotReady"
	}
}

func (r *podRow) addRestarts(c corev1.ContainerStatus) {
	r.restarts += c.RestartCount
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(r.lastRestart) {
		r.lastRestart = t.FinishedAt.Time
	}
}

func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
