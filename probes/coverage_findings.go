package probes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// noneEligible says why a DaemonSet has no eligible node at all.
type noneEligible struct {
	severity   report.Severity
	root       report.Code
	confidence report.Confidence
	since      time.Time
	why        string
	fix        report.Recommendation
	evidence   []report.Evidence
}

// readNone finds out why no node is eligible. Where nodes that are not Ready would be
// again, that is their story. A selection that nothing resembles, and that has been
// empty for long, waits for nodes that do not exist yet: a driver without its device.
func (c *Diagnosis) readNone(x *chooser) {
	d := x.d
	cov := &d.coverage
	if cov.counters.Desired > 0 || cov.selected > cov.tainted || !cov.complete {
		return
	}
	none := &noneEligible{severity: report.Warning, root: report.NoEligibleNodes, confidence: report.Medium}
	none.evidence = []report.Evidence{{Source: "Nodes", Value: report.Textf("%s, none eligible", count(len(c.s.Nodes), "node"))}}
	cov.none = none
	if cov.selected > 0 {
		c.noneTolerated(x, none)
		return
	}
	slipped, empty := c.emptyRequirements(x, none)
	inverted := c.excludedByOperator(x, none)
	young := c.s.AsOf.Sub(maxTime(d.ds.CreationTimestamp.Time, d.change.start)) < time.Hour
	var lost []string
	var last time.Time
	for i := range cov.gaps {
		if g := &cov.gaps[i]; g.kind == gapSelector && g.severity == report.Warning {
			lost, last = append(lost, g.node.name), maxTime(last, g.since)
		}
	}
	asked := strings.Join(empty, ", ")
	if asked == "" {
		asked = "all that the template asks for"
	}
	none.why = "no node has " + asked
	none.fix = report.Recommendation{Action: report.ActionFixWorkload, Why: "mend the template's nodeSelector or affinity, or label the nodes that are meant"}
	switch {
	case len(slipped) > 0:
		none.confidence = report.High
		none.why += "; " + strings.Join(slipped, ", ")
	case len(lost) > 0:
		none.since = last
		none.why += fmt.Sprintf("; %s had its Pod before: %s", count(len(lost), "node"), names(lost, 4))
	case len(inverted) > 0:
		none.why += "; " + strings.Join(inverted, ", ")
	case c.otherPlatform(x):
		none.severity = report.Info
		none.why += ": there is no node of that platform"
	case young:
		none.confidence, none.since = report.Low, maxTime(d.ds.CreationTimestamp.Time, d.change.start)
		none.why += ", and no label is like it; if such nodes are still to come, this is right"
	default:
		none.severity = report.Info
		none.why += ", and no label is like it: it waits for nodes that do not exist"
	}
}

// noneTolerated is the case that nodes are selected and taints keep it off all of them.
func (c *Diagnosis) noneTolerated(x *chooser, none *noneEligible) {
	cov := &x.d.coverage
	none.root, none.confidence = report.UntoleratedTaint, report.High
	var kinds []string
	warned := false
	for i := range cov.gaps {
		g := &cov.gaps[i]
		if g.kind != gapTaint && g.kind != gapStartup && g.kind != gapMisscheduled {
			continue
		}
		warned = warned || g.severity == report.Warning
		for _, u := range unmet(g.node.node, &x.d.ds.Spec.Template) {
			if u.taint != nil && !slices.Contains(kinds, u.asked) {
				kinds = append(kinds, u.asked)
				if len(none.evidence) < 10 {
					none.evidence = append(none.evidence, u.evidence(g.node.name))
				}
			}
		}
	}
	slices.Sort(kinds)
	none.why = fmt.Sprintf("%s selected, and its tolerations fit none: %s", isAre(cov.selected, "node"), names(kinds, 3))
	if left := c.leavesFew(x); left != "" {
		none.why += "; " + left
	}
	none.fix = report.Recommendation{Action: report.ActionFixWorkload, Why: "add the toleration to the template, or take the taint off the nodes that are meant"}
	chosen := len(x.reqs) > 0
	young := c.s.AsOf.Sub(maxTime(x.d.ds.CreationTimestamp.Time, x.d.change.start)) < time.Hour
	if !chosen && !warned && !young {
		none.severity = report.Info // it selects nothing in particular, and every node is set apart
	}
}

// emptyRequirements are the requirements that no node meets, and those of them of which
// a label is a slip away, told in a few words.
func (c *Diagnosis) emptyRequirements(x *chooser, none *noneEligible) (slipped, empty []string) {
	for i := range x.reqs {
		r := &x.reqs[i]
		if slices.ContainsFunc(c.s.Nodes, r.met) {
			continue
		}
		empty = append(empty, r.asked)
		none.evidence = append(none.evidence, report.Evidence{Source: report.Textf("%s template, %s", x.d, r.asked), Value: "met by no node"})
		values, ok := r.wanted()
		if !ok {
			continue
		}
		near, ok := c.nodeLabels().nearest(r.expr.Key, values)
		if !ok {
			continue
		}
		none.evidence = append(none.evidence, report.Evidence{Source: "Node.metadata.labels", Value: report.Textf("%s on %s is the nearest", near, count(near.nodes, "node"))})
		if near.slip {
			slipped = append(slipped, fmt.Sprintf("%s %s, which looks like what was meant", haveHas(near.nodes), near))
		}
	}
	return slipped, empty
}

// excludedByOperator tells of requirements that no node meets although nodes have the label: the
// operator excludes every value there is.
func (c *Diagnosis) excludedByOperator(x *chooser, none *noneEligible) []string {
	var out []string
	for i := range x.reqs {
		r := &x.reqs[i]
		if _, asks := r.wanted(); asks || r.fields || slices.ContainsFunc(c.s.Nodes, r.met) {
			continue
		}
		values := c.nodeLabels()[r.expr.Key]
		with := 0
		for _, n := range values {
			with += n
		}
		if with == 0 {
			continue
		}
		text := fmt.Sprintf("%s the label %s, and %s excludes them all", haveHas(with), r.expr.Key, r.expr.Operator)
		if len(values) <= 5 {
			text += " (" + strings.Join(sortedNames(values), ", ") + ")"
		}
		out = append(out, text)
		none.evidence = append(none.evidence, report.Evidence{Source: report.Textf("Node.metadata.labels[%s]", r.expr.Key), Value: report.Textf("on %s: %s", count(with, "node"), names(sortedNames(values), 5))})
	}
	return out
}

// leavesFew names the requirement that leaves out most nodes, where it is one that
// excludes what it lists: the opposite may have been meant.
func (c *Diagnosis) leavesFew(x *chooser) string {
	for i := range x.reqs {
		r := &x.reqs[i]
		if _, asks := r.wanted(); asks || r.fields {
			continue
		}
		out := 0
		for _, n := range c.s.Nodes {
			if !r.met(n) {
				out++
			}
		}
		if 2*out > len(c.s.Nodes) {
			return fmt.Sprintf("%s leaves out the other %s", r.asked, count(out, "node"))
		}
	}
	return ""
}

func haveHas(n int) string {
	if n == 1 {
		return "1 node has"
	}
	return count(n, "node") + " have"
}

// otherPlatform tells that all that is missing is an operating system or architecture.
func (c *Diagnosis) otherPlatform(x *chooser) bool {
	n := 0
	for i := range x.reqs {
		r := &x.reqs[i]
		if slices.ContainsFunc(c.s.Nodes, r.met) {
			continue
		}
		switch r.expr.Key {
		case "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
			n++
		default:
			return false
		}
	}
	return n > 0
}

// coverageFindings says which nodes lack the Pod, or have one that should not be there.
func (c *Diagnosis) coverageFindings(d *daemonSet) {
	cov := &d.coverage
	if none := cov.none; none != nil {
		d.add(report.NoEligibleNodes, none.severity, none.since, report.Textf("no node is eligible: %s", none.why), none.evidence...)
	}
	warned, infos := 0, 0
	for i := range cov.gaps {
		g := &cov.gaps[i]
		if g.severity == report.Info {
			if infos++; infos > infosShown || cov.none != nil {
				continue
			}
		} else if warned++; warned > gapsListed {
			continue
		}
		c.gapFindings(d, g)
	}
	c.staleCount(d)
}

func (c *Diagnosis) gapFindings(d *daemonSet, g *gap) {
	f := report.Finding{Code: report.NodeNotCovered, Severity: g.severity, Object: d.object(), Node: report.Clean(g.node.name), Since: report.At(g.since)}
	against := unmet(g.node.node, &d.ds.Spec.Template)
	for i := range against {
		f.Evidence = append(f.Evidence, against[i].evidence(g.node.name))
	}
	f.Evidence = append(f.Evidence, g.evidence...)
	if g.agent != nil {
		f.Evidence = append(f.Evidence, g.agent.evidence()[1:]...)
	}
	if g.node.node.Spec.Unschedulable && g.pod == nil {
		f.Evidence = append(f.Evidence, report.Evidence{Source: "Node.spec.unschedulable", Value: "true: a cordon is not the reason, every daemon Pod tolerates it"})
	}
	reason := listed(against, 3)
	switch {
	case g.pod != nil:
		f.Code = report.NodeMisscheduled
		f.Summary = report.Textf("Pod %s is where it should not be, %s: %s", g.pod.Name, reason, g.why)
	case g.kind == gapEmpty:
		f.Summary = report.Textf("eligible, and without a Pod since %s: %s", dated(g.since), g.why)
	case g.why == "":
		f.Summary = report.Textf("has no Pod: %s", reason)
	default:
		f.Summary = report.Textf("has no Pod: %s; %s", reason, g.why)
	}
	d.findings = append(d.findings, f)
	if g.severity == report.Warning && (g.kind == gapTaint || g.kind == gapStartup) {
		f.Code = report.UntoleratedTaint
		f.Summary = report.Textf("the template does not tolerate what is on the node: %s", reason)
		if g.agent != nil {
			f.Summary += report.Textf("; %s", g.agent.text())
		}
		d.findings = append(d.findings, f)
	}
}

// minorVersion is the API server's minor version, 0 where unknown.
func (c *Diagnosis) minorVersion() int {
	parts := strings.SplitN(strings.TrimPrefix(c.s.Source.Version, "v"), ".", 3)
	if len(parts) < 2 || parts[0] != "1" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	if err != nil {
		return 0
	}
	return n
}

// staleCount finds that MISSCHEDULED in status contradicts the nodes as they are.
// Before 1.35 the controller does not look again when a taint goes.
// Source: pkg/controller/daemon/daemon_controller.go, syncNodeUpdate; kubernetes#132459.
func (c *Diagnosis) staleCount(d *daemonSet) {
	cov := &d.coverage
	status := int(d.ds.Status.NumberMisscheduled)
	if !cov.counters.Known || !cov.complete || cov.settling != "" || status == cov.counters.Misscheduled {
		return
	}
	why := "whether this server looks again by itself is not known, for its version is not: from 1.35 on it does"
	switch v := c.minorVersion(); {
	case v >= 35:
		why = "the controller should have looked again: it may be behind"
	case v > 0:
		why = fmt.Sprintf("a server of 1.%d does not look again before one of its Pods changes", v)
	}
	d.add(report.MisscheduledStatusStale, report.Info, time.Time{}, report.Textf("status says %d misscheduled, and the nodes as they are make it %d; %s", status, cov.counters.Misscheduled, why),
		report.Evidence{Source: "DaemonSet.status.numberMisscheduled", Value: report.Textf("%d", status)},
		report.Evidence{Source: "Nodes and Pods", Value: report.Textf("%d misscheduled", cov.counters.Misscheduled)})
	cov.stale = status > cov.counters.Misscheduled
}

// coverageGap gives the verdict that nodes that should have a Pod have none, or the
// reverse. What fails or leaves is the nodes' story, and a selection that its author
// made is none.
func (c *Diagnosis) coverageGap(d *daemonSet) bool {
	cov := &d.coverage
	v := &d.verdict
	by := map[gapKind][]*gap{}
	for i := range cov.gaps {
		if g := &cov.gaps[i]; g.severity == report.Warning {
			by[g.kind] = append(by[g.kind], g)
		}
	}
	// A rollout that is stuck is not explained by a node of which nobody knows why it has no Pod.
	unexplained := len(by[gapEmpty]) > 0 && d.rollout.State == report.Stuck
	gapsOf := func(kinds ...gapKind) (list []*gap) {
		for _, k := range kinds {
			list = append(list, by[k]...)
		}
		return list
	}
	var main []*gap
	switch {
	case cov.none != nil && cov.none.severity == report.Warning && len(by[gapStartup]) == 0:
		v.RootCause, v.Confidence = cov.none.root, cov.none.confidence
		v.Summary = report.Textf("no node is eligible: %s", cov.none.why)
		v.For = []report.Text{report.Textf("DESIRED is 0 of %s", count(len(c.s.Nodes), "node"))}
		d.recommend = cov.none.fix
		if v.RootCause != report.NoEligibleNodes {
			v.Contributing = append(v.Contributing, report.NoEligibleNodes)
			d.add(v.RootCause, report.Critical, cov.none.since, report.Textf("%s", cov.none.why), cov.none.evidence...)
		}
	case len(by[gapStartup]) > 0:
		main = by[gapStartup]
		v.RootCause, v.Confidence = report.UntoleratedTaint, report.High
		v.Summary = report.Textf("taint %s is still on %s and keeps other Pods off; %s", taintName(&main[0].agent.taint), names(stateNames(statesOfGaps(main)), 4), main[0].agent.text())
		d.recommend = report.Recommendation{Action: report.ActionFixNode, Why: report.Textf("find out why %s left its taint: its log on %s; deleting that one Pod, or taking the taint off by hand, lets the others in", main[0].agent.owner, main[0].node.name)}
	case len(by[gapTaint]) > 0:
		main = by[gapTaint]
		v.RootCause, v.Confidence = report.UntoleratedTaint, report.High
		v.Summary = report.Textf("%s: %s", lacks(main), listed(unmet(main[0].node.node, &d.ds.Spec.Template), 2))
		d.recommend = report.Recommendation{Action: report.ActionFixWorkload, Why: "tolerate the taint in the template if the node is meant, or take the taint off the node"}
	case len(gapsOf(gapSelector, gapEmpty)) > 0 && !unexplained:
		main = gapsOf(gapSelector, gapEmpty)
		v.RootCause, v.Confidence = report.NodeNotCovered, report.Medium
		why := main[0].why
		if main[0].kind == gapSelector {
			why = listed(unmet(main[0].node.node, &d.ds.Spec.Template), 2) + "; " + why
		}
		v.Summary = report.Textf("%s: %s", lacks(main), why)
		d.recommend = report.Recommendation{Action: report.ActionFixNode, Why: "label the node as the template asks, or mend the template's selection if the node is meant"}
		if main[0].byChange {
			d.recommend = report.Recommendation{Action: report.ActionFixWorkload, Why: report.Textf("widen the selection of %s again if those nodes are meant: as soon as a node is selected, the controller makes its Pod", revisionName(d.change.revision))}
		}
		if main[0].kind == gapEmpty {
			d.recommend = report.Recommendation{Action: report.ActionInvestigate, Why: "the node is eligible and the controller makes no Pod: its events, and kube-controller-manager's log, tell why"}
			if !c.s.Read(cluster.Events) {
				v.Confidence = report.Low
				v.Missing = append(v.Missing, "events were not read")
			}
		}
	case len(by[gapMisscheduled]) > 0:
		main = by[gapMisscheduled]
		v.RootCause, v.Confidence = report.NodeMisscheduled, report.High
		v.Summary = report.Textf("%s, %s: %s", misplaced(main), listed(unmet(main[0].node.node, &d.ds.Spec.Template), 2), main[0].why)
		d.recommend = report.Recommendation{Action: report.ActionFixWorkload, Why: "tolerate the taint if the Pods should stay; otherwise delete them yourself, for nobody else does"}
	default:
		return false
	}
	v.Attribution = report.CoverageGap
	var bare, misplacedPods []*gap
	for _, g := range gapsOf(gapStartup, gapTaint, gapSelector, gapEmpty, gapMisscheduled) {
		if g.pod != nil {
			misplacedPods = append(misplacedPods, g)
		} else {
			bare = append(bare, g)
		}
	}
	seen := map[report.Code]bool{v.RootCause: true}
	for _, x := range []struct {
		code report.Code
		list []*gap
	}{{report.NodeNotCovered, bare}, {report.UntoleratedTaint, gapsOf(gapStartup, gapTaint)}, {report.NodeMisscheduled, misplacedPods}} {
		if len(x.list) > 0 && !seen[x.code] && (cov.none == nil || len(by[gapStartup]) > 0) {
			v.Contributing = append(v.Contributing, x.code)
			seen[x.code] = true
		}
	}
	for i, g := range main {
		if i == 4 {
			v.For = append(v.For, report.Textf("and %d more", len(main)-i))
			break
		}
		v.For = append(v.For, report.Textf("%s: %s", g.node.name, gapText(d, g)))
	}
	if !d.podsKnown {
		v.Missing = append(v.Missing, "its Pods were not read")
	}
	if d.recommend.Action == report.ActionFixNode {
		c.splitReach(&d.recommend, statesOfGaps(main))
	}
	on := map[string]bool{}
	for _, g := range main {
		on[g.node.name] = true
	}
	d.markRoot(v.RootCause, on)
	return true
}

// gapText is the line by which one node speaks for the verdict.
func gapText(d *daemonSet, g *gap) string {
	text := listed(unmet(g.node.node, &d.ds.Spec.Template), 3)
	switch {
	case g.kind == gapEmpty:
		return g.why
	case g.pod != nil:
		return text + "; Pod " + g.pod.Name + " is " + phaseOf(g.pod)
	case g.why != "":
		return text + "; " + g.why
	}
	return text
}

// misplaced says how many Pods are where they should not be, and on which nodes.
func misplaced(list []*gap) string {
	where := names(stateNames(statesOfGaps(list)), 4)
	if len(list) == 1 {
		return "1 Pod is where it should not be, on " + where
	}
	return fmt.Sprintf("%d Pods are where they should not be, on %s", len(list), where)
}

func statesOfGaps(list []*gap) []*nodeState {
	var out []*nodeState
	for _, g := range list {
		out = append(out, g.node)
	}
	return out
}

// lacks says how many nodes have no Pod, and which.
func lacks(list []*gap) string {
	where := names(stateNames(statesOfGaps(list)), 4)
	if len(list) == 1 {
		return "1 node has no Pod, " + where
	}
	return fmt.Sprintf("%d nodes have no Pod, %s", len(list), where)
}

// keptOffAgent is the network agent that a taint keeps off most of the failing nodes,
// which never became Ready for want of it.
func (c *Diagnosis) keptOffAgent(workloads []report.Workload) *report.Workload {
	for i := range workloads {
		w := &workloads[i]
		if w.Kind != "DaemonSet" || w.Verdict.Attribution != report.CoverageGap || w.Verdict.RootCause != report.UntoleratedTaint {
			continue
		}
		d, all, without := c.daemonSet(w.Key()), c.independent(), 0
		for _, n := range all {
			if d != nil && c.waitsForAgent(d, n) {
				without++
			}
		}
		if without > 0 && 2*without > len(all) {
			return w
		}
	}
	return nil
}
