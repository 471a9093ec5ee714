package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// unpinned says why none of the nodes will do for a Pod that is tied to none: what each
// node's own labels, taints and cordon say, and for those that are left what the
// scheduler says and their ledgers show.
func (c *Diagnosis) unpinned(p *corev1.Pod, said *sentence, t *podTrouble) {
	if !said.known || len(said.parsed.Reasons) == 0 {
		t.code, t.summary = report.SchedulerSilent, report.Textf("cannot be placed: %s", firstWords(said.text, 200))
		t.fix = fix{report.ActionFixCluster, "its condition PodScheduled has the scheduler's own words; kube-scheduler's log may have more"}
		return
	}
	pl := c.placementOf(p)
	main := foremost(said.parsed.Reasons)
	t.code = main.Code
	if pl != nil {
		t.code = pl.decides(&said.parsed, main)
	}
	t.summary = report.Textf("fits on none of %s: %s", count(said.parsed.Nodes, "node"), standText(said.parsed.Reasons, pl))
	if main.Count == 0 {
		t.summary = report.Textf("cannot be placed on any node: %s", main.Text)
	}
	if t.code == "" {
		t.code = report.SchedulerSilent // a reason that has no name here; its words are in the summary
	}
	if pl == nil {
		t.fix = fix{report.ActionFixCluster, t.summary}
		return
	}
	full := !pl.told // the nodes are listed once, not with each of a workload's Pods
	pl.told = true
	if t.code == ofAilingNodes {
		c.waitsForNodes(pl, t)
	}
	if !full {
		t.fix = fix{report.ActionFixCluster, t.summary}
		return
	}
	t.evidence = append(t.evidence, pl.evidence()...)
	if slices.ContainsFunc(said.parsed.Reasons, func(r refusal.Reason) bool { return r.Code == report.InsufficientResources }) {
		c.unpinnedRoom(p, pl, t)
	}
	switch t.code {
	case report.InsufficientResources:
		why := "add nodes, or make room: lower what the Pod requests, or what the others there do"
		if idle := pl.by[cordoned]; len(idle) > 0 {
			why += fmt.Sprintf("; %s cordoned: if the maintenance is over, kubectl uncordon %s", isAre(len(idle), "node"), shellWords(stateNames(idle[:min(len(idle), nodesNamed)])))
		}
		t.fix = fix{report.ActionFixCluster, report.Clean(why)}
	case report.HostPortConflict:
		c.portTaken(p, stateNames(pl.by[candidate]), t)
	case report.NodesCordoned:
		t.fix = fix{report.ActionFixCluster, report.Textf("when the maintenance is over: kubectl uncordon %s", shellWords(stateNames(pl.by[cordoned][:min(len(pl.by[cordoned]), nodesNamed)])))}
	case report.UntoleratedTaint:
		t.fix = fix{report.ActionFixWorkload, report.Textf("tolerate the taint in the template, or remove it where nobody needs it: %s", pl.taints())}
	case report.NodeAffinityMismatch:
		t.evidence = append(t.evidence, c.affinityLines(p, nil)...)
		t.fix = fix{report.ActionFixWorkload, "mend nodeSelector or affinity in the template, or label the nodes that are meant: kubectl get nodes --show-labels"}
	case report.VolumeTopologyConflict:
		c.volumes(p, stateNames(pl.by[candidate]), main, t)
	case report.PodSpreadConflict:
		c.spread(p, main, t)
	}
}

// ofAilingNodes stands for the code of nodes that would take the Pod if they were well.
const ofAilingNodes report.Code = "of ailing nodes"

// decides picks the reason that, if it were removed, would end it. Nodes of which only
// the room is short decide, unless more of the others are only cordoned or not well.
// Rules that spread Pods hold where a replica is already, so that a node which is kept
// out counts before them; what is by design comes last.
func (pl *placement) decides(s *refusal.Scheduling, main refusal.Reason) report.Code {
	if main.Count == 0 {
		return main.Code
	}
	says := func(code report.Code) bool {
		return slices.ContainsFunc(s.Reasons, func(r refusal.Reason) bool { return r.Code == code })
	}
	cordons, ill := len(pl.by[cordoned]), len(pl.by[ailing])
	if !says(report.NodesCordoned) {
		cordons = 0
	}
	if !says(report.UntoleratedTaint) {
		ill = 0
	}
	late := weightOf(main) <= weightOf(refusal.Reason{Count: 1, Code: report.PodSpreadConflict}) && main.Code != ""
	spread := main.Code == report.PodSpreadConflict
	switch {
	case late && !spread && main.Count >= cordons && main.Count >= ill, spread && cordons+ill == 0:
		return main.Code
	case ill > cordons:
		return ofAilingNodes
	case cordons > 0:
		return report.NodesCordoned
	case len(pl.by[tainted]) > 0 && says(report.UntoleratedTaint):
		return report.UntoleratedTaint
	case len(pl.by[notSelected]) > 0 && says(report.NodeAffinityMismatch):
		return report.NodeAffinityMismatch
	}
	return main.Code
}

// waitsForNodes makes nodes that are not well the reason.
func (c *Diagnosis) waitsForNodes(pl *placement, t *podTrouble) {
	codes := map[report.Code]int{}
	for _, n := range pl.by[ailing] {
		code := n.code
		if !code.IsNode() {
			code = report.NodeNotReady
		}
		codes[code]++
	}
	t.code, _ = top(codes)
	t.ofNode, t.nodes = true, pl.by[ailing]
	t.fix = fix{report.ActionFixNode, "the nodes that would take it are not well"}
}

// taints lists what keeps the Pod off, the node with it.
func (pl *placement) taints() string {
	by := map[string][]string{}
	for _, o := range []obstacle{tainted, reserved} {
		for _, n := range pl.by[o] {
			by[pl.taint[n.name]] = append(by[pl.taint[n.name]], n.name)
		}
		if len(by) > 0 {
			break // the control plane's own taint is no remedy beside another
		}
	}
	var out []string
	for taint, on := range by {
		out = append(out, fmt.Sprintf("%s on %s", taint, names(on, 4)))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// unpinnedRoom shows the ledgers of the nodes that lack least, and what is not known.
func (c *Diagnosis) unpinnedRoom(p *corev1.Pod, pl *placement, t *podTrouble) {
	short, unknown := c.shortOf(pl, p)
	for i, n := range short {
		if i == ledgersShown {
			t.evidence = append(t.evidence, report.Evidence{Source: "Ledgers", Value: report.Textf("%s more that lack more: %s", count(len(short)-i, "node"), names(stateNames(short[i:]), nodesNamed))})
			break
		}
		_, ev := c.room(n.name, p)
		t.evidence = append(t.evidence, ev...)
	}
	if len(short) > 0 {
		if e := c.preemption(short[0].name, p); e != nil {
			t.evidence = append(t.evidence, *e)
		}
	}
	if unknown > 0 {
		t.evidence = append(t.evidence, report.Evidence{Source: "Ledgers", Value: report.Textf("of %s not all Pods were read: what is free there is the scheduler's word", count(unknown, "node"))})
	}
}

// standText says in a few words what stands against the nodes: of the scheduler's
// reasons those about room, ports, volumes and spread; of the nodes the rest.
func standText(reasons []refusal.Reason, pl *placement) string {
	var out []string
	for _, r := range reasons {
		switch {
		case r.Code == report.InsufficientResources && r.Resource == "pods":
			out = append(out, fmt.Sprintf("%d with as many Pods as they take", r.Count))
		case r.Code == report.InsufficientResources:
			out = append(out, fmt.Sprintf("%d short of %s", r.Count, r.Resource))
		case r.Code == report.HostPortConflict:
			out = append(out, fmt.Sprintf("%d with its port taken", r.Count))
		case pl != nil && (r.Code == report.NodesCordoned || r.Code == report.UntoleratedTaint || r.Code == report.NodeAffinityMismatch):
		default:
			out = append(out, fmt.Sprintf("%d %s", r.Count, strings.TrimPrefix(r.Text, "node(s) ")))
		}
	}
	if pl != nil {
		out = append(out, pl.counted()...)
	}
	return firstWords(strings.Join(out, ", "), 240)
}

// portTaken says who holds the ports that a Pod wants, on each of some nodes.
func (c *Diagnosis) portTaken(p *corev1.Pod, nodes []string, t *podTrouble) {
	want := cluster.HostPorts(&p.Spec)
	var first *cluster.PortHolder
	known, own, others := true, 0, map[string]bool{}
	for i, name := range nodes {
		if i == ledgersWorkedOut {
			break
		}
		l := c.ledger(name)
		known = known && l.Known
		for _, h := range l.Holders(want) {
			if h.Pod == p {
				continue
			}
			if first == nil {
				first = &h
			}
			if c.ownerText(h.Pod) == c.ownerText(p) {
				own++
			} else {
				others[c.ownerText(h.Pod)] = true
			}
			if len(t.evidence) < 2+2*nodesNamed {
				t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Pod %s/%s on %s", h.Pod.Namespace, h.Pod.Name, name), Value: report.Textf("holds port %s (%s)", h, c.ownerText(h.Pod))})
			}
		}
	}
	ports := make([]string, 0, len(want))
	for _, w := range want {
		ports = append(ports, w.String())
	}
	switch {
	case first == nil && known:
		t.evidence = append(t.evidence, report.Evidence{Source: "Pod.spec.containers.ports", Value: report.Textf("wants %s; nobody that was read holds it now: the scheduler's sentence may be older", strings.Join(ports, ", "))})
	case first == nil:
		t.evidence = append(t.evidence, report.Evidence{Source: "Pod.spec.containers.ports", Value: report.Textf("wants %s; who holds it was not read", strings.Join(ports, ", "))})
	default:
		t.summary = report.Textf("port %s of %s is held by %s/%s (%s)", first, first.Pod.Spec.NodeName, first.Pod.Namespace, first.Pod.Name, c.ownerText(first.Pod))
	}
	t.fix = fix{report.ActionFixWorkload, report.Textf("two Pods want port %s of one node: give one of them another hostPort, or keep them apart by affinity", strings.Join(ports, ", "))}
	switch {
	case len(others) > 0:
		t.fix.why = report.Textf("%s and %s want port %s of the same nodes: give one of them another hostPort, or keep them on different nodes", c.ownerText(p), strings.Join(sortedSet(others), ", "), strings.Join(ports, ", "))
	case own > 0 && ownerOf(p) != "" && ownerOf(first.Pod) != ownerOf(p):
		t.code = report.SurgePortConflict // an older ReplicaSet of the same Deployment
		t.fix.why = "its own old Pod holds the port until it is gone: set maxSurge to 0 and maxUnavailable to 1 or more"
	case own > 0:
		t.fix.why = "its own Pods hold the port everywhere: no node takes two of them; fewer replicas, more nodes, or no hostPort"
	}
}
