package probes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// controlPlaneStake says how many control-plane nodes and etcd members fail, and how
// many a spreading rollout reaches next. A managed control plane has no such nodes.
func (c *Diagnosis) controlPlaneStake(k *stake) {
	var planes, down, next []string
	for _, n := range c.nodeList {
		if !controlPlane(n.node) {
			continue
		}
		planes = append(planes, n.name)
		switch {
		case n.failing() && n.removal == "":
			down = append(down, n.name)
		case k.next[n.name]:
			next = append(next, n.name)
		}
	}
	e := c.readEtcd(planes)
	for _, n := range e.members {
		st := c.nodes[n]
		if st == nil || slices.Contains(planes, n) {
			continue
		}
		switch { // etcd on nodes of its own
		case st.failing() && st.removal == "":
			down = append(down, n)
		case k.next[n]:
			next = append(next, n)
		}
	}
	slices.Sort(down)
	slices.Sort(next)
	all := len(planes)
	if len(down) == 0 && len(next) == 0 {
		if !k.anything() {
			return
		}
		if all == 0 {
			k.say(report.StakeControlPlane, report.StepNone, "", "control plane: no node has its label, so it does not run on these nodes (a managed one does not) or is not labelled")
			return
		}
		k.say(report.StakeControlPlane, report.StepOK, report.Textf("control plane %d/%d", all, all), "control plane: %d of %s Ready", all, count(all, "node"))
		return
	}
	var parts []string
	var ev []report.Evidence
	for _, n := range down {
		ev = append(ev, report.Evidence{Source: report.Textf("Node %s", n), Value: report.Clean(c.standing(c.nodes[n])), At: report.At(lastShown(c.nodes[n]))})
	}
	if len(down) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s %s: %s", len(down), count(max(all, len(down)), "control-plane node"), failVerb(len(down)), names(c.withAge(down), 3)))
		parts = append(parts, e.quorum(c, down, all)...)
	}
	if len(next) > 0 {
		text := "a rollout that breaks nodes has not reached " + names(next, 3) + " yet"
		if !slices.ContainsFunc(k.rollouts, (*daemonSet).broke) {
			text = "a rollout that may be what breaks nodes has not reached " + names(next, 3) + " yet"
		}
		if n := len(common(next, e.members)); n > 0 {
			text += fmt.Sprintf(": %d of %s", n, count(len(e.members), "etcd member"))
		}
		parts = append(parts, text)
		for _, n := range next {
			ev = append(ev, report.Evidence{Source: report.Textf("Node %s", n), Value: "runs an older revision and is next in line"})
		}
	}
	ev = append(ev, e.evidence...)
	f := report.Finding{Code: report.ControlPlaneAtRisk, Severity: report.ControlPlaneAtRisk.Severity(false), Object: report.Object{Kind: "Node", Name: report.Clean(append(down, next...)[0])},
		Summary: report.Clean(strings.Join(parts, "; ")), Evidence: ev}
	k.add(f)
	brief := report.Textf("control plane %d/%d", all-len(common(down, planes)), all)
	if len(down) == 0 {
		brief = report.Textf("control plane next: %d of %d nodes", len(next), all)
	}
	k.lines = append(k.lines, report.Stake{Topic: report.StakeControlPlane, State: report.StepAnomaly, Text: f.Summary, Brief: brief})
}

// withAge names nodes and says of those that fell long ago for how long.
func (c *Diagnosis) withAge(list []string) []string {
	out := make([]string, 0, len(list))
	for _, n := range list {
		if st := c.nodes[n]; c.downForLong(st) {
			n += " (down for " + short(c.s.AsOf.Sub(st.current().shown)) + ")"
		}
		out = append(out, n)
	}
	return out
}

// common are the names that both lists have, in the order of the first.
func common(a, b []string) []string {
	var out []string
	for _, n := range a {
		if slices.Contains(b, n) {
			out = append(out, n)
		}
	}
	return out
}

// etcd is where its members run, as far as that was read.
type etcd struct {
	members  []string // nodes, sorted; empty where it is not known or not on nodes
	whole    bool     // every member is among them
	absent   bool     // all of kube-system was read, and there is no etcd Pod
	evidence []report.Evidence
}

// readEtcd finds etcd's members: by the role label that distributions with an etcd
// of their own set, or by the static Pods that kubeadm makes.
// Source: cmd/kubeadm/app/util/staticpod/utils.go, ComponentPod.
func (c *Diagnosis) readEtcd(planes []string) etcd {
	var e etcd
	for _, n := range c.nodeList {
		if _, ok := n.node.Labels["node-role.kubernetes.io/etcd"]; ok {
			e.members = append(e.members, n.name)
		}
	}
	if len(e.members) > 0 {
		e.whole = true
		e.evidence = []report.Evidence{{Source: "Node label node-role.kubernetes.io/etcd", Value: report.Clean(names(e.members, 5))}}
		return e
	}
	if !c.s.Read(cluster.Pods) {
		return e
	}
	seen := map[string]bool{}
	if c.s.PodScope.All {
		e.whole = true
		for _, p := range c.s.Pods {
			if p.Namespace == cluster.ControlPlaneNamespace && p.Labels["component"] == "etcd" && p.Spec.NodeName != "" && !cluster.PodTerminal(p) {
				seen[p.Spec.NodeName] = true
			}
		}
	} else {
		e.whole = len(planes) > 0
		for _, n := range planes {
			e.whole = e.whole && c.s.PodScope.Nodes[n]
			for _, p := range c.s.PodsOn(n) {
				if p.Namespace == cluster.ControlPlaneNamespace && p.Labels["component"] == "etcd" && p.Spec.NodeName == n && !cluster.PodTerminal(p) {
					seen[n] = true
				}
			}
		}
	}
	e.members = sortedSet(seen)
	if len(e.members) > 0 {
		e.evidence = []report.Evidence{{Source: "Pods of kube-system with the label component=etcd", Value: report.Clean("on " + names(e.members, 5))}}
	}
	e.absent = e.whole && len(e.members) == 0
	return e
}

// quorum says what the failing nodes mean for etcd. A kubelet that says False is
// alive, and so are static Pods on the host's network: only silent nodes may have
// lost theirs.
func (e *etcd) quorum(c *Diagnosis, down []string, planes int) []string {
	if e.absent {
		return []string{"no etcd Pod is among those of kube-system: where etcd runs is not known"}
	}
	if len(e.members) == 0 || !e.whole {
		var parts []string
		silent := c.silent(down)
		switch quorum := planes/2 + 1; {
		case planes == 1:
		case planes-silent < quorum:
			parts = append(parts, "if etcd runs on them and they are down, it has lost its quorum")
		case planes-len(down) < quorum:
			parts = append(parts, "should they be lost for good, an etcd on them has no quorum")
		}
		if len(parts) > 0 {
			parts = append(parts, "where etcd runs was not read")
		}
		return parts
	}
	failing := common(e.members, down)
	n, quorum := len(e.members), len(e.members)/2+1
	silent := c.silent(failing)
	switch {
	case len(failing) == 0:
		return []string{fmt.Sprintf("none of %s is on them", count(n, "etcd member"))}
	case n-silent < quorum:
		return []string{fmt.Sprintf("%d of %s %s on nodes that do not answer: if they are down, etcd has lost its quorum", silent, count(n, "etcd member"), runVerb(silent))}
	case n-len(failing) < quorum && silent == 0:
		return []string{fmt.Sprintf("%d of %s %s on them, and their kubelets are alive: should those nodes be lost for good, etcd has no quorum", len(failing), count(n, "etcd member"), runVerb(len(failing)))}
	case n-len(failing) < quorum:
		return []string{fmt.Sprintf("%d of %s %s on them: should those nodes be lost for good, etcd has no quorum", len(failing), count(n, "etcd member"), runVerb(len(failing)))}
	case n-len(failing) == quorum:
		return []string{fmt.Sprintf("%d of %s %s on them: etcd keeps its quorum and can lose no further member", len(failing), count(n, "etcd member"), runVerb(len(failing)))}
	}
	return []string{fmt.Sprintf("%d of %s %s on them: etcd keeps its quorum", len(failing), count(n, "etcd member"), runVerb(len(failing)))}
}

func runVerb(n int) string {
	if n == 1 {
		return "runs"
	}
	return "run"
}

// silent counts the nodes among these whose kubelet does not answer.
func (c *Diagnosis) silent(list []string) int {
	n := 0
	for _, name := range list {
		if st := c.nodes[name]; st != nil && !st.reachable() {
			n++
		}
	}
	return n
}
