package probes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// nodeFindings says what is wrong with a node, the most telling first.
func (c *Diagnosis) nodeFindings(st *nodeState) {
	n := st.node
	add := func(code report.Code, since time.Time, summary report.Text, ev ...report.Evidence) {
		st.findings = append(st.findings, report.Finding{
			Code: code, Severity: code.Severity(false), Object: report.Object{Kind: "Node", Name: report.Clean(n.Name)},
			Node: report.Clean(n.Name), Since: report.At(since), Summary: summary, Evidence: ev,
		})
	}
	ready := cluster.NodeCondition(n, corev1.NodeReady)
	var readyEvidence []report.Evidence
	if ready != nil {
		readyEvidence = []report.Evidence{{
			Source: "Node.status.conditions[Ready]",
			Value:  report.Textf("%s %s: %s", ready.Status, ready.Reason, redact.Text(ready.Message)),
			At:     report.At(ready.LastTransitionTime.Time),
		}}
	} else {
		readyEvidence = []report.Evidence{{Source: "Node.status.conditions[Ready]", Value: "absent"}}
	}
	readyEvidence = append(readyEvidence, c.leaseEvidence(n.Name)...)
	if e := st.current(); e != nil && st.pressure == "" && st.exhausted(e.shown) {
		readyEvidence = append(readyEvidence, report.Evidence{Source: "Event SystemOOM of the kubelet", Value: "the node as a whole was out of memory, and its kernel killed a process", At: report.At(st.oomAt)})
	}
	since := func() time.Time {
		if e := st.current(); e != nil {
			return e.shown
		}
		if ready != nil {
			return ready.LastTransitionTime.Time
		}
		return n.CreationTimestamp.Time
	}

	switch {
	case st.starting:
	case st.neverReady:
		add(report.NodeNeverReady, n.CreationTimestamp.Time, report.Textf("joined %s and never became Ready", stamp(n.CreationTimestamp.Time)), readyEvidence...)
	case st.ready == corev1.ConditionTrue && st.leaseStale:
		add(report.NodeLeaseStale, since(), "Ready=True, but its Lease is not renewed: it is failing now", readyEvidence...)
	case st.ready == corev1.ConditionTrue:
	case st.removal != "":
		add(report.NodeBeingRemoved, since(), report.Textf("is being removed (%s)", st.removal),
			append(readyEvidence, report.Evidence{Source: "Node", Value: report.Clean(st.removal)})...)
	case st.shutdown:
		add(report.NodeShuttingDown, since(), "is shutting down", readyEvidence...)
	case st.ready == corev1.ConditionUnknown:
		add(report.NodeUnreachable, since(), "Ready=Unknown: its kubelet does not reach the API server, or is dead", readyEvidence...)
	default:
		code, summary := readyFalse(ready.Message)
		if strings.Contains(string(summary), "runtime") {
			summary += report.Textf(" (%s)", n.Status.NodeInfo.ContainerRuntimeVersion)
		}
		add(code, since(), summary, readyEvidence...)
	}
	if st.removal != "" && st.ready == corev1.ConditionTrue {
		add(report.NodeBeingRemoved, time.Time{}, report.Textf("is being removed (%s)", st.removal), report.Evidence{Source: "Node", Value: report.Clean(st.removal)})
	}
	if !st.rebootedAt.IsZero() && c.s.AsOf.Sub(st.rebootedAt) < 2*time.Hour {
		add(report.NodeRebooted, st.rebootedAt, report.Textf("was rebooted %s", stamp(st.rebootedAt)),
			report.Evidence{Source: "Event Rebooted, Node.status.nodeInfo.bootID", Value: report.Clean(n.Status.NodeInfo.BootID), At: report.At(st.rebootedAt)})
	}
	if !st.restartedAt.IsZero() && st.rebootedAt.IsZero() && c.s.AsOf.Sub(st.restartedAt) < time.Hour {
		add(report.KubeletRestarted, st.restartedAt, report.Textf("its kubelet was restarted %s: that takes seconds and harms nothing", stamp(st.restartedAt)),
			report.Evidence{Source: "Event Starting of kubelet", Value: "Starting kubelet.", At: report.At(st.restartedAt)})
	}
	c.noNetworkAgent(st, add)
	if st.flaps >= 3 {
		add(report.NodeFlapping, lastShown(st), report.Textf("lost Ready %d times", st.flaps),
			report.Evidence{Source: "Events NodeNotReady, node transitions", Value: report.Textf("%d", st.flaps)})
	}
	for _, cond := range n.Status.Conditions {
		if cond.Status != corev1.ConditionTrue {
			continue
		}
		ev := report.Evidence{Source: report.Textf("Node.status.conditions[%s]", cond.Type), Value: report.Textf("True %s: %s", cond.Reason, redact.Text(cond.Message)), At: report.At(cond.LastTransitionTime.Time)}
		switch cond.Type {
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			add(report.NodePressure, cond.LastTransitionTime.Time, report.Textf("reports %s", cond.Type), ev)
		case corev1.NodeNetworkUnavailable:
			add(report.NodeNetworkUnavailable, cond.LastTransitionTime.Time, report.Textf("NetworkUnavailable=True (%s)", cond.Reason), ev)
		}
	}
	if n.Spec.Unschedulable {
		add(report.NodeCordoned, st.cordonedAt, "is cordoned", report.Evidence{Source: "Node.spec.unschedulable", Value: "true", At: report.At(st.cordonedAt)})
	}
	if renewed := cluster.LeaseRenewed(c.s.NodeLease(n.Name)); !renewed.IsZero() && st.ready == corev1.ConditionTrue && !st.leaseStale {
		if age := c.leaseNow.Sub(renewed); age > renewEvery+5*time.Second {
			add(report.NodeLeaseLate, renewed, report.Textf("has not renewed its Lease for %s", short(age)), c.leaseEvidence(n.Name)...)
		}
	}
	if len(st.findings) > 0 {
		st.code = st.findings[0].Code
	}
}

// noNetworkAgent finds a node that waits for its network and has no Pod that could
// bring it, although other nodes have one. The node's Pods must all have been read.
func (c *Diagnosis) noNetworkAgent(st *nodeState, add func(report.Code, time.Time, report.Text, ...report.Evidence)) {
	if st.ready == corev1.ConditionTrue || st.starting || !c.s.PodScope.All && !c.s.PodScope.Nodes[st.name] || !c.s.Read(cluster.Pods) {
		return
	}
	cond := cluster.NodeCondition(st.node, corev1.NodeReady)
	if cond == nil {
		return
	}
	if code, _ := readyFalse(cond.Message); code != report.NodeNetworkNotReady {
		return
	}
	var agents []string
	for _, ds := range c.s.DaemonSets {
		if !networkAgent(&ds.Spec.Template.Spec) {
			continue
		}
		agents = append(agents, ds.Namespace+"/"+ds.Name)
		for _, p := range c.s.PodsOn(st.name) {
			if networkAgent(&p.Spec) {
				return
			}
		}
	}
	value := "no DaemonSet that mounts a CNI directory was read"
	if len(agents) > 0 {
		value = "none of its Pods mounts a CNI directory; on other nodes " + names(agents, 3)
	}
	add(report.NoNetworkAgent, cond.LastTransitionTime.Time, "has no network agent on it", report.Evidence{Source: "Pods of the node", Value: report.Clean(value)})
}

// networkAgent tells whether a Pod brings CNI configuration or plugins to its node.
func networkAgent(s *corev1.PodSpec) bool {
	for _, v := range s.Volumes {
		if v.HostPath != nil && (strings.HasPrefix(v.HostPath.Path, "/etc/cni") || strings.HasPrefix(v.HostPath.Path, "/opt/cni")) {
			return true
		}
	}
	return false
}

func lastShown(st *nodeState) time.Time {
	if k := len(st.episodes); k > 0 {
		return st.episodes[k-1].shown
	}
	return time.Time{}
}

// readyFalse reads the kubelet's own reason. The message joins several errors;
// the network comes last in the order of what explains the others.
func readyFalse(message string) (report.Code, report.Text) {
	switch {
	case strings.Contains(message, "container runtime is down"), strings.Contains(message, "RuntimeReady=false"):
		return report.NodeRuntimeDown, "Ready=False: the container runtime does not answer"
	case strings.Contains(message, "PLEG is not healthy"):
		return report.NodeNotReady, "Ready=False: PLEG is not healthy, the container runtime hangs"
	case strings.Contains(message, "NetworkPluginNotReady"), strings.Contains(message, "NetworkReady=false"),
		strings.Contains(message, "cni plugin not initialized"), strings.Contains(message, "no network config found"):
		return report.NodeNetworkNotReady, "Ready=False: network plugin not ready"
	}
	return report.NodeNotReady, report.Textf("Ready=False: %s", firstWords(message, 120))
}

func (c *Diagnosis) leaseEvidence(node string) []report.Evidence {
	l := c.s.NodeLease(node)
	renewed := cluster.LeaseRenewed(l)
	if renewed.IsZero() {
		return nil
	}
	value := "renewed " + short(c.s.AsOf.Sub(renewed)) + " ago"
	switch skew := cluster.LeaseSkew(l); {
	case skew > 0:
		value += "; the node's clock is " + short(skew) + " ahead"
	case skew < 0:
		value += "; the node's clock is " + short(-skew) + " behind"
	}
	return []report.Evidence{{
		Source: report.Textf("Lease.spec.renewTime (%s/%s)", cluster.NodeLeaseNamespace, node),
		Value:  report.Clean(value), At: report.At(renewed),
	}}
}
