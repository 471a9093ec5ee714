package probes

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// failedPod says why a Pod has ended for good: its kubelet refused or evicted it,
// something disrupted it, or its container failed. The condition DisruptionTarget says
// who did it; the reason in the status says why.
func (c *Diagnosis) failedPod(p *corev1.Pod) *podTrouble {
	if p.Status.Phase != corev1.PodFailed {
		return nil
	}
	t := &podTrouble{since: p.CreationTimestamp.Time, summary: report.Textf("Failed: %s %s", p.Status.Reason, firstWords(p.Status.Message, 160)),
		evidence: []report.Evidence{{Source: "Pod.status.reason", Value: report.Textf("%s: %s", p.Status.Reason, redact.Text(p.Status.Message))}}}
	c.disrupted(p, t)
	if t.code != "" {
		return t
	}
	t.code, t.ofNode = rejection(p.Status.Reason, p.Status.Message)
	if t.code == report.PodEvicted {
		t.summary = report.Textf("was evicted by the kubelet: %s", firstWords(p.Status.Message, 160))
		if strings.Contains(p.Status.Message, "The node had condition") {
			t.summary = report.Textf("is refused by the kubelet: %s", firstWords(p.Status.Message, 160))
		}
	}
	if t.code != "" {
		return t
	}
	for _, s := range p.Status.ContainerStatuses {
		if r := s.State.Terminated; r != nil && r.Reason == "OOMKilled" {
			t.code, t.summary = report.OutOfMemory, report.Textf("container %s was killed for exceeding its memory limit", s.Name)
			return t
		}
	}
	t.code = report.CrashLoop
	return t
}

// disruption is the condition that says who ends a Pod, nil without one.
func disruption(p *corev1.Pod) (*corev1.PodCondition, *report.Evidence) {
	cond := cluster.PodCondition(p, corev1.DisruptionTarget)
	if cond == nil || cond.Status != corev1.ConditionTrue {
		return nil, nil
	}
	return cond, &report.Evidence{Source: "Pod.status.conditions[DisruptionTarget]", Value: report.Textf("%s: %s", cond.Reason, redact.Text(cond.Message)), At: report.At(cond.LastTransitionTime.Time)}
}

// disrupted reads who ended a Pod off its condition DisruptionTarget.
// Source: k8s.io/api/core/v1, PodReason constants; pkg/controller/tainteviction,
// pkg/controller/podgc, pkg/scheduler/framework/preemption.
func (c *Diagnosis) disrupted(p *corev1.Pod, t *podTrouble) {
	cond, ev := disruption(p)
	if cond == nil {
		return
	}
	t.since = cond.LastTransitionTime.Time
	t.evidence = append(t.evidence, *ev)
	switch cond.Reason {
	case corev1.PodReasonPreemptionByScheduler:
		t.code, t.summary = report.PodPreempted, report.Textf("was preempted: %s", firstWords(cond.Message, 160))
	case "DeletionByTaintManager":
		t.code, t.ofNode, t.summary = report.PodEvicted, true, report.Textf("is evicted by a taint of node %s that it does not tolerate", p.Spec.NodeName)
		if n := c.s.Node(p.Spec.NodeName); n != nil {
			for _, taint := range n.Spec.Taints {
				if taint.Effect == corev1.TaintEffectNoExecute {
					t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Node %s spec.taints", n.Name), Value: report.Textf("%s:%s", taint.Key, taint.Effect), At: timeAdded(taint)})
				}
			}
		}
	case "DeletionByPodGC":
		if c.s.Node(p.Spec.NodeName) == nil && c.s.Read(cluster.Nodes) {
			t.code, t.ofNode, t.summary = report.PodOnMissingNode, true, report.Textf("is collected: its node %s does not exist any more", p.Spec.NodeName)
		}
	}
}

func timeAdded(t corev1.Taint) *report.Time {
	if t.TimeAdded == nil {
		return nil
	}
	return report.At(t.TimeAdded.Time)
}

// rejection is why a kubelet refused a Pod or put it out, by the reason in the Pod's
// status, and whether the node's own state is to blame; "" where the reason is none of
// the kubelet's.
// Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/eviction, pkg/kubelet/cm/admission.
func rejection(reason, message string) (code report.Code, ofNode bool) {
	switch {
	case reason == "Evicted":
		return report.PodEvicted, true
	case reason == "Preempting":
		return report.PodPreempted, false
	case reason == "NodeShutdown", reason == "Terminated", reason == "Shutdown":
		return report.NodeShutdownPod, true
	case strings.HasPrefix(reason, "OutOf"), reason == "TopologyAffinityError":
		return report.InsufficientResources, false
	case reason == "UnexpectedAdmissionError" && (strings.Contains(message, "Allocate failed") || strings.Contains(message, "devices unavailable")):
		return report.InsufficientResources, false
	case reason == "NodePorts":
		return report.HostPortConflict, false
	case reason == "NodeAffinity":
		return report.NodeAffinityMismatch, false
	case reason == "TaintToleration":
		return report.UntoleratedTaint, false
	}
	return "", false
}

// rejectedFor is how long an event that a daemon Pod failed speaks of now: the
// controller retries after at most 15 min.
// Source: cmd/kube-controller-manager/app/apps.go, startDaemonSetController.
const rejectedFor = 16 * time.Minute

// rejectedAgain finds nodes on which daemon Pods fail as soon as they are made: the
// controller deletes a failed Pod and makes another, ever more rarely, so that most of
// the time there is no Pod to look at, and only events tell why.
func (c *Diagnosis) rejectedAgain(d *daemonSet) {
	seen := map[string]bool{}
	events := c.s.EventsOf("DaemonSet", d.ds.Namespace, d.ds.Name)
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if e.Reason != "FailedDaemonPod" || c.s.AsOf.Sub(cluster.EventLast(e)) > rejectedFor {
			continue
		}
		namespace, name, node := failedDaemonPod(e.Message)
		slot := d.slots[node]
		if node == "" || seen[node] || slot == nil || slot.State != cluster.SlotEmpty {
			continue
		}
		seen[node] = true
		t := &podTrouble{since: cluster.EventOnset(e), evidence: []report.Evidence{eventEvidence(e)}, summary: report.Textf("fails on %s as soon as it is made, and is made again ever more rarely", node)}
		for _, pe := range c.s.EventsOf("Pod", namespace, name) {
			code, ofNode := rejection(pe.Reason, pe.Message)
			if code == "" {
				continue
			}
			t.code, t.ofNode = code, ofNode
			t.summary = report.Textf("is refused by the kubelet of %s each time it is made: %s", node, firstWords(pe.Message, 160))
			t.evidence = append(t.evidence, eventEvidence(pe))
		}
		if t.code == "" {
			continue // what it failed of is not known
		}
		d.rejected = append(d.rejected, rejectedPod{node: node, pod: name, trouble: t})
	}
}

// rejectedPod is a daemon Pod that failed on a node that has none now.
type rejectedPod struct {
	node, pod string
	trouble   *podTrouble
}

// failedDaemonPod reads the Pod and its node off the controller's event.
// Source: pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode.
func failedDaemonPod(message string) (namespace, name, node string) {
	rest, ok := strings.CutPrefix(message, "Found failed daemon pod ")
	if !ok {
		return "", "", ""
	}
	full, rest, ok := strings.Cut(rest, " on node ")
	if !ok {
		return "", "", ""
	}
	node, _, _ = strings.Cut(rest, ",")
	namespace, name, _ = strings.Cut(full, "/")
	return namespace, name, strings.TrimSpace(node)
}

// kubeletRefuses gives the verdict for daemon Pods that their nodes' kubelets refuse,
// although the scheduler or nobody else objects: no room by the kubelet's own count, a
// port or device that is taken, or a node under pressure.
func (c *Diagnosis) kubeletRefuses(d *daemonSet) bool {
	byCode := map[report.Code][]string{}
	example := map[report.Code]*podTrouble{}
	see := func(t *podTrouble, node string) {
		code := t.code
		if n := c.nodes[node]; code == report.PodEvicted && n != nil && n.pressure != "" && strings.Contains(string(t.summary), "refused by the kubelet") {
			code = report.NodePressure
		}
		if n := c.nodes[node]; n == nil || n.failing() || code != report.NodePressure && !schedulingOrCreation(code) {
			return
		}
		byCode[code] = append(byCode[code], node)
		if example[code] == nil {
			example[code] = t
		}
	}
	for _, r := range d.rejected {
		see(r.trouble, r.node)
	}
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if t := d.troubles[p.Name]; t != nil && p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil {
			see(t, p.Spec.NodeName)
		}
	}
	codes := map[report.Code]int{}
	for code, nodes := range byCode {
		codes[code] = len(nodes)
	}
	root, n := top(codes)
	if n == 0 {
		return false
	}
	nodes := byCode[root]
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	v := &d.verdict
	*v = report.Verdict{Attribution: report.ClusterBlocksPods, RootCause: root, Confidence: report.High,
		Summary: report.Textf("%s without a working Pod: it %s", names(nodes, 3), example[root].summary),
		For:     []report.Text{report.Textf("the kubelet refuses its Pod on %s, and gives the reason", count(len(nodes), "node"))}}
	d.recommend = report.Recommendation{Action: report.ActionFixCluster, Why: v.Summary}
	if root == report.NodePressure {
		v.Attribution, v.Contributing = report.NodesFailIndependently, []report.Code{report.PodEvicted}
		d.recommend = report.Recommendation{Action: report.ActionFixNode, Why: report.Textf("relieve %s on %s: the controller makes the Pod again by itself, after 15 min at most", c.nodes[nodes[0]].pressure, names(nodes, 3))}
		on := map[string]bool{}
		for _, name := range nodes {
			on[name] = true
		}
		c.markNodes(root, on)
	}
	c.splitReach(&d.recommend, c.statesOf(nodes))
	d.markRoot(root, nil)
	return true
}

// rejectedFindings lists the Pods of which only events tell.
func (d *daemonSet) rejectedFindings() {
	for i, r := range d.rejected {
		if i == podsListed {
			break
		}
		d.findings = append(d.findings, report.Finding{Code: r.trouble.code, Severity: report.Warning,
			Object: report.Object{Kind: "Pod", Namespace: d.key.Namespace, Name: report.Clean(r.pod)}, Node: report.Clean(r.node),
			Since: report.At(r.trouble.since), Summary: r.trouble.summary, Evidence: r.trouble.evidence})
	}
}
