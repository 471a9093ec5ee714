package probes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// coverageChange is what a new template does to the set of nodes.
type coverageChange struct {
	gained   []string            // should run a Pod then, and should not now
	unwanted []string            // selector or affinity does not accept them any more
	tainted  map[string][]string // a taint that is not tolerated any more -> nodes
	removed  int                 // of these, nodes that lose their Pod at the first sync
}

func (v *coverageChange) lost() int {
	n := len(v.unwanted)
	for _, nodes := range v.tainted {
		n += len(nodes)
	}
	return n
}

// coverage compares the nodes of the live template with those of the planned one. A
// node counts as lost where it should run a Pod now, or has one that may stay, and the
// controller would not make one any more. Nothing of it waits for the budget: Pods that
// may not stay are all deleted in the next sync.
// Source: pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode, NodeShouldRunDaemonPod.
func (p *planned) coverage() *coverageChange {
	v := &coverageChange{tainted: map[string][]string{}}
	if !p.isDaemonSet() || p.before == nil || !p.changes() {
		return v
	}
	old, now := cluster.RuleOf(p.before), cluster.RuleOf(p.template)
	for _, n := range p.c.s.Nodes {
		should, stay := old.ShouldRun(n)
		shouldThen, stayThen := now.ShouldRun(n)
		has := p.d != nil && p.d.slots[n.Name] != nil && p.d.slots[n.Name].Pod() != nil
		if shouldThen {
			if !should && !has {
				v.gained = append(v.gained, n.Name)
			}
			continue
		}
		removed := has && stay && !stayThen
		if !should && !removed {
			continue
		}
		if removed {
			v.removed++
		}
		if !now.Selects(n) {
			v.unwanted = append(v.unwanted, n.Name)
			continue
		}
		for _, t := range cluster.UntoleratedTaints(n, p.template) {
			if !slices.ContainsFunc(cluster.UntoleratedTaints(n, p.before), func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
				key := fmt.Sprintf("%s:%s", t.Key, t.Effect)
				v.tainted[key] = append(v.tainted[key], n.Name)
				break
			}
		}
	}
	return v
}

// coverageRisks are what the planned template does to the set of nodes.
func (p *planned) coverageRisks() []risk {
	if !p.isDaemonSet() || !p.c.s.Read(cluster.Nodes) || len(p.c.s.Nodes) == 0 {
		return nil
	}
	if len(p.nodes) == 0 {
		return []risk{*p.noNodes()}
	}
	var out []risk
	v := p.coverage()
	at := "at the first sync, whatever the budget"
	if n := len(v.unwanted); n > 0 {
		out = append(out, *breaks(report.NodeNotCovered, report.Textf("%s would lose the Pod %s: the new selector or affinity does not accept them", count(n, "node"), at),
			slices.Concat(p.selectorEvidence(), []report.Evidence{{Source: "Node.metadata.labels", Value: report.Textf("not accepted: %s", names(v.unwanted, 12))}})...))
	}
	for _, key := range slices.Sorted(maps.Keys(v.tainted)) {
		nodes := v.tainted[key]
		how := "would lose the Pod when its turn comes, and get no new one"
		if strings.HasSuffix(key, ":"+string(corev1.TaintEffectNoExecute)) {
			how = "would lose the Pod " + at
		}
		out = append(out, *breaks(report.UntoleratedTaint, report.Textf("%s %s: the new template does not tolerate %s any more", count(len(nodes), "node"), how, key),
			p.field("spec.template.spec.tolerations", "%s is tolerated now, and would not be", key),
			report.Evidence{Source: "Node.spec.taints", Value: report.Textf("%s on %s", key, names(nodes, 12))}))
	}
	if p.before != nil && len(p.critical) > 0 && toleratesNotReady(p.before) && !toleratesNotReady(p.template) {
		out = append(out, *warning(report.UntoleratedTaint, "the new template does not tolerate not-ready:NoSchedule and unreachable:NoSchedule any more: a node that breaks would get no new Pod, and a rollback would not reach it",
			p.field("spec.template.spec.tolerations", "both are tolerated now, and would not be")))
	}
	return out
}

// selectorEvidence is what the template says of where its Pods run, before and after.
func (p *planned) selectorEvidence() []report.Evidence {
	where := func(t *corev1.PodTemplateSpec) string {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(t.Spec.NodeSelector)) {
			parts = append(parts, k+"="+t.Spec.NodeSelector[k])
		}
		if a := t.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for _, e := range slices.Concat(term.MatchExpressions, term.MatchFields) {
					parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
				}
			}
		}
		if t.Spec.NodeName != "" {
			parts = append(parts, "nodeName "+t.Spec.NodeName)
		}
		if len(parts) == 0 {
			return "every node"
		}
		return strings.Join(parts, ", ")
	}
	now := where(p.template)
	if p.before != nil {
		if was := where(p.before); was != now {
			now = fmt.Sprintf("%s; now %s", now, was)
		}
	}
	return []report.Evidence{p.field("spec.template.spec.nodeSelector and affinity", "%s", now)}
}

// noNodes says that no node at all would run a Pod.
func (p *planned) noNodes() *risk {
	chosen := 0
	taints := map[string]int{}
	now := cluster.RuleOf(p.template)
	for _, n := range p.c.s.Nodes {
		if !now.Selects(n) {
			continue
		}
		chosen++
		for _, t := range cluster.UntoleratedTaints(n, p.template) {
			taints[fmt.Sprintf("%s:%s", t.Key, t.Effect)]++
		}
	}
	what := "no node would run a Pod"
	if p.before != nil {
		if v := p.coverage(); v.removed > 0 {
			what = fmt.Sprintf("no node would run a Pod: %s at the first sync, whatever the budget", wouldLose(v.removed))
		}
	}
	if chosen > 0 {
		var list []string
		for _, k := range slices.Sorted(maps.Keys(taints)) {
			list = append(list, fmt.Sprintf("%s on %s", k, count(taints[k], "node")))
		}
		return breaks(report.NoEligibleNodes, report.Textf("%s: every node that its selector accepts has a taint that it does not tolerate", what),
			report.Evidence{Source: "Node.spec.taints", Value: report.Textf("%s", strings.Join(list, ", "))})
	}
	ev := p.selectorEvidence()
	for _, k := range slices.Sorted(maps.Keys(p.template.Spec.NodeSelector)) {
		ev = append(ev, report.Evidence{Source: report.Textf("Node.metadata.labels[%s]", k), Value: report.Clean(p.labelValues(k))})
		if near, ok := p.c.nodeLabels().nearest(k, []string{p.template.Spec.NodeSelector[k]}); ok {
			ev = append(ev, report.Evidence{Source: "Node.metadata.labels", Value: report.Textf("%s on %s is the nearest", near, count(near.nodes, "node"))})
		}
	}
	return breaks(report.NoEligibleNodes, report.Textf("%s: its selector or affinity accepts none of %s", what, count(len(p.c.s.Nodes), "node")), ev...)
}

func wouldLose(n int) string {
	if n == 1 {
		return "the one that has one would lose it"
	}
	return fmt.Sprintf("the %d that have one would lose it", n)
}

// labelValues says which values of a label the nodes have.
func (p *planned) labelValues(key string) string {
	values := map[string]int{}
	for _, n := range p.c.s.Nodes {
		if v, ok := n.Labels[key]; ok {
			values[v]++
		}
	}
	if len(values) == 0 {
		return "no node has this label"
	}
	var list []string
	for _, v := range slices.Sorted(maps.Keys(values)) {
		list = append(list, fmt.Sprintf("%q on %s", v, count(values[v], "node")))
	}
	return names(list, 6)
}

// firstSync looks at what the controller would do in the first moment: Pods that are
// not available now are all replaced at once, on top of the budget; and nodes that
// fail use the budget up, so that nothing else moves.
// Source: pkg/controller/daemon/update.go, rollingUpdate.
func (p *planned) firstSync() []risk {
	if !p.isDaemonSet() || !p.rolling || p.d == nil || !p.d.podsKnown || !p.changes() || p.surge > 0 {
		return nil
	}
	loop := p.c.s.UpdateLoop(p.ds, p.template, p.updated())
	var atOnce, young, held []string
	for i := range loop.Slots {
		s := &loop.Slots[i]
		n := p.c.nodes[s.Node]
		failing := s.Missing || n != nil && (n.ready != corev1.ConditionTrue || n.failing())
		switch {
		case s.Holds() && failing:
			held = append(held, s.Node)
		case s.State == cluster.SlotOldUnavailable:
			atOnce = append(atOnce, s.Node)
			if cluster.PodReady(s.Old) {
				young = append(young, s.Node)
			}
		}
	}
	var out []risk
	if n := len(atOnce); n > max(loop.MaxUnavailable, 1) {
		r := breaks(report.BudgetTooWide, report.Textf("%s would be replaced in the first sync, beyond maxUnavailable %s: they do not count as available now", count(n, "Pod"), p.maxUnavailable),
			report.Evidence{Source: "Pod.status.conditions[Ready]", Value: report.Textf("not available on %s", names(atOnce, 12))})
		if len(young) > 0 {
			r.summary = report.Textf("%s would be replaced in the first sync, beyond maxUnavailable %s: %d of them are Ready for less than the new minReadySeconds %d, and so do not count as available", count(n, "Pod"), p.maxUnavailable, len(young), int(p.minReady.Seconds()))
			r.evidence = append(r.evidence, p.field("spec.minReadySeconds", "%d; Ready for less on %s", int(p.minReady.Seconds()), names(young, 12)))
		}
		out = append(out, *r)
	}
	if len(held) >= loop.MaxUnavailable && len(held) > 0 && loop.MaxUnavailable > 0 {
		out = append(out, *breaks(report.ClusterNodesNotReady, report.Textf("the update would not start: %s that fail use up maxUnavailable %s (%d), so that no healthy node is reached", count(len(held), "node"), p.maxUnavailable, loop.MaxUnavailable),
			report.Evidence{Source: "Node.status.conditions[Ready]", Value: report.Textf("not True on %s, which have or should have a Pod", names(held, 12))}))
	}
	return out
}

// updated tells of a Pod whether it has the planned template already: after a change
// back to an earlier template those of that revision have.
func (p *planned) updated() func(*corev1.Pod) bool {
	if !p.changes() {
		return p.d.updated
	}
	hashes := map[string]bool{}
	for i := range p.d.revisions {
		if r := &p.d.revisions[i]; r.template != nil && r.hash != "" && cluster.SameTemplate(r.template, p.template) {
			hashes[r.hash] = true
		}
	}
	return func(pod *corev1.Pod) bool { return hashes[pod.Labels[cluster.RevisionHash]] }
}

// clusterFindings are about the nodes, whatever the workload.
func (p *planned) clusterFindings() []report.Finding {
	var out []report.Finding
	object := report.Object{Kind: "Cluster", Name: report.Clean(p.c.s.Source.Context)}
	if object.Name == "" {
		object.Name = "cluster"
	}
	ours := map[string]bool{}
	for _, n := range p.nodes {
		ours[n.Name] = true
	}
	if p.d != nil {
		for _, n := range p.d.pool {
			ours[n.name] = true
		}
	}
	look := func(code report.Code, what string, is func(*nodeState) bool, evidence func([]string) report.Evidence) {
		var list, own []string
		for _, n := range p.c.nodeList {
			if is(n) {
				list = append(list, n.name)
				if ours[n.name] {
					own = append(own, n.name)
				}
			}
		}
		if len(list) == 0 {
			return
		}
		s := report.Textf("%d of %s %s", len(list), count(len(p.c.nodeList), "node"), what)
		if p.isDaemonSet() && len(list) > 0 {
			s += report.Textf("; %d of them %s for this workload", len(own), isAreMeant(len(own)))
		}
		out = append(out, report.Finding{Code: code, Severity: report.Warning, Object: object, Summary: s, Evidence: []report.Evidence{evidence(list)}})
	}
	look(report.ClusterNodesNotReady, "not Ready", func(n *nodeState) bool { return n.ready != corev1.ConditionTrue }, func(list []string) report.Evidence {
		return report.Evidence{Source: "Node.status.conditions[Ready]", Value: report.Textf("not True on %s%s", names(list, 12), p.zones(list))}
	})
	look(report.ClusterNodesCordoned, "cordoned: somebody works on them, and only daemon Pods are placed there", func(n *nodeState) bool { return n.node.Spec.Unschedulable }, func(list []string) report.Evidence {
		return report.Evidence{Source: "Node.spec.unschedulable", Value: report.Textf("true on %s", names(list, 12))}
	})
	return out
}

func isAreMeant(n int) string {
	if n == 1 {
		return "is meant"
	}
	return "are meant"
}

// zones says how many nodes of a list are in each zone; "" where zones do not tell.
func (p *planned) zones(list []string) string {
	in := map[string]int{}
	for _, name := range list {
		if n := p.c.nodes[name]; n != nil {
			if z := n.node.Labels[corev1.LabelTopologyZone]; z != "" {
				in[z]++
			}
		}
	}
	if len(in) == 0 {
		return ""
	}
	var parts []string
	for _, z := range slices.Sorted(maps.Keys(in)) {
		parts = append(parts, fmt.Sprintf("%d in %s", in[z], z))
	}
	return "; by zone " + names(parts, 6)
}
