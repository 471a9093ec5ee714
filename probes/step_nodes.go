package probes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stepNodeConditions answers what the nodes say: condition, Lease, taints and
// running containers are four sources and are shown apart.
func stepNodeConditions(c *Diagnosis, target report.WorkloadKey) report.Result {
	if !c.s.Read(cluster.Nodes) {
		return cannot("nodes were not read")
	}
	var a answer
	failing, unreached := 0, 0
	const most = 12
	for _, n := range c.nodeList {
		if !n.failing() {
			continue
		}
		failing++
		if !n.reachable() {
			unreached++
		}
		if failing > most {
			continue
		}
		state := report.StepAnomaly
		if d := c.daemonSet(target); d != nil && d.analysis.byNode[n.name] != nil && d.analysis.byNode[n.name].class == classPrevalent {
			state = report.StepNotice
		}
		reason := ""
		if ready := cluster.NodeCondition(n.node, corev1.NodeReady); ready != nil {
			reason = ready.Reason + ", since " + since(c.s.AsOf, ready.LastTransitionTime.Time)
		}
		a.say(state, "%s %s %s", n.name, readiness(n), reason)
		a.sub(report.StepNone, "Lease: %s · taints: %s", c.leaseText(n), taintText(n.node))
		for _, f := range n.findings[1:] {
			a.sub(report.StepNotice, "%s: %s", f.Code, f.Summary)
		}
	}
	if failing > most {
		a.say(report.StepAnomaly, "and %d more", failing-most)
	}
	ok := len(c.nodeList) - failing
	a.say(report.StepOK, "%s Ready", count(ok, "node"))
	if failing > 0 {
		a.say(report.StepNotice, "%d of them can be repaired through the API (Ready=False, kubelet alive); %d only at their console (Ready=Unknown)", failing-unreached, unreached)
	}
	return a.result()
}

func since(now, t time.Time) string {
	if now.Sub(t) > 12*time.Hour {
		return dated(t)
	}
	return stamp(t)
}

func (c *Diagnosis) leaseText(n *nodeState) string {
	renewed := cluster.LeaseRenewed(c.s.NodeLease(n.name))
	if renewed.IsZero() {
		return "not read"
	}
	age := c.s.AsOf.Sub(renewed)
	if age <= leaseDuration {
		return "fresh, renewed " + short(age) + " ago"
	}
	return "stale, renewed " + short(age) + " ago"
}

func taintText(n *corev1.Node) string {
	var out []string
	for _, t := range n.Spec.Taints {
		key := strings.TrimPrefix(t.Key, "node.kubernetes.io/")
		s := key + ":" + string(t.Effect)
		if t.TimeAdded != nil {
			s += " since " + stamp(t.TimeAdded.Time)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// stepNodeConsole answers what only the node itself can say: which nodes those are.
func stepNodeConsole(c *Diagnosis, target report.WorkloadKey) report.Result {
	cut := c.ConsoleNodes()
	if len(cut) == 0 {
		var a answer
		a.say(report.StepOK, "every failing node can be reached through the API: nothing needs a console")
		return a.result()
	}
	return cannot(report.Textf("%s cannot be reached through the API; run the commands at the consoles of %s, and paste what they print", count(len(cut), "node"), names(cut, 4)))
}

// ConsoleNodes are the failing nodes of which only their own console can tell, for
// the API does not reach them.
func (c *Diagnosis) ConsoleNodes() []string {
	var cut []string
	for _, n := range c.nodeList {
		if n.failing() && !n.reachable() {
			cut = append(cut, n.name)
		}
	}
	return cut
}
