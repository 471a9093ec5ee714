package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// chooser is a DaemonSet's choice of nodes, parsed once for all of them.
type chooser struct {
	d      *daemonSet
	rule   *cluster.NodeRule
	reqs   []nodeAsk
	before *cluster.NodeRule    // of the template before, where the change is recent
	had    map[string]time.Time // when a node last had a Pod that is gone; nil until asked
	slips  [][]nearLabel        // by requirement; nil until asked
}

func (c *Diagnosis) chooserOf(d *daemonSet) *chooser {
	x := &chooser{d: d, rule: cluster.RuleOf(&d.ds.Spec.Template), reqs: asksOf(&d.ds.Spec.Template)}
	if d.change.start.IsZero() || c.s.AsOf.Sub(d.change.start) > recentChange {
		return x
	}
	for i := range d.revisions {
		if r := &d.revisions[i]; !r.sameAsCurrent && r.template != nil {
			x.before = cluster.RuleOf(r.template)
			break
		}
	}
	return x
}

// hadPod is when the node last had a Pod that is gone, as it was watched or as the
// kubelets' events still tell; zero where nothing tells.
func (x *chooser) hadPod(c *Diagnosis, node string) time.Time {
	if x.had == nil {
		x.had = map[string]time.Time{}
		for _, r := range c.s.History.PodsOf(x.d.ds.UID) {
			if !r.Gone.IsZero() {
				x.had[r.Node] = maxTime(x.had[r.Node], r.Gone.To)
			}
		}
		for name, list := range c.deaths(x.d) {
			for _, death := range list {
				x.had[name] = maxTime(x.had[name], death.at)
			}
		}
	}
	return x.had[node]
}

// leftOut tells whether the last change of the template, within a day, took the node
// out of the choice.
func (x *chooser) leftOut(n *corev1.Node) bool {
	if x.before == nil || n.CreationTimestamp.After(x.d.change.start) {
		return false
	}
	should, _ := x.before.ShouldRun(n)
	return should
}

// slip finds a label of the node that is a slip away from the only one that it
// lacks, on few nodes where the right one is on many.
func (x *chooser) slip(c *Diagnosis, n *corev1.Node, unmet []int) (nearLabel, bool) {
	if len(unmet) != 1 || x.d.coverage.counters.Desired == 0 || x.reqs[unmet[0]].term > 1 {
		return nearLabel{}, false
	}
	if x.slips == nil {
		x.slips = make([][]nearLabel, len(x.reqs))
		for i := range x.reqs {
			if values, ok := x.reqs[i].wanted(); ok {
				x.slips[i] = slices.DeleteFunc(c.nodeLabels().near(x.reqs[i].expr.Key, values), func(l nearLabel) bool { return !l.slip })
			}
		}
	}
	for _, l := range x.slips[unmet[0]] {
		if v, ok := n.Labels[l.key]; ok && v == l.value && l.nodes <= max(1, x.d.coverage.counters.Desired/10) {
			return l, true
		}
	}
	return nearLabel{}, false
}

// readGaps finds the nodes of which something is to be said, and counts the others by
// the reason that keeps them out.
func (c *Diagnosis) readGaps(d *daemonSet) {
	cov := &d.coverage
	x := c.chooserOf(d)
	groups := map[string]*excludedNodes{}
	placed := cov.counters.Nodes // in the order of nodes, by name
	for _, n := range c.nodeList {
		var p *cluster.Placement
		if len(placed) > 0 && placed[0].Node == n.name {
			p, placed = &placed[0], placed[1:]
		}
		if p != nil && p.ShouldRun {
			cov.selected++
			if len(p.Pods) == 0 && cov.counters.Known {
				c.emptyNode(x, n)
			}
			continue
		}
		g := gap{node: n, severity: report.Info}
		key := ""
		if x.rule.Selects(n.node) {
			cov.selected++
			key = c.taintedNode(x, &g)
		} else {
			key = c.unselectedNode(x, &g)
		}
		e := groups[key]
		if e == nil {
			e = &excludedNodes{why: key, deliberate: g.kind != gapCondition}
			groups[key] = e
		}
		e.nodes, e.deliberate = append(e.nodes, n.name), e.deliberate && g.severity == report.Info
		if p != nil && len(p.Pods) > 0 {
			c.misscheduledNode(d, p, &g)
		}
		if g.kind != gapCondition {
			cov.gaps = append(cov.gaps, g)
		}
	}
	for _, k := range sortedNames(groups) {
		cov.excluded = append(cov.excluded, *groups[k])
	}
	slices.SortStableFunc(cov.excluded, func(a, b excludedNodes) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })
	c.readNone(x)
}

// leaves tells of a node that fails or goes away: what is missing there is its story.
func (n *nodeState) leaves() bool { return n.failing() || n.removal != "" || n.shutdown }

// emptyNode looks at an eligible node without a Pod.
func (c *Diagnosis) emptyNode(x *chooser, n *nodeState) {
	d := x.d
	since := maxTime(maxTime(n.node.CreationTimestamp.Time, d.ds.CreationTimestamp.Time), maxTime(x.hadPod(c, n.name), d.change.start))
	for _, field := range []string{"f:taints", "f:labels"} {
		since = maxTime(since, nodeWritten(n.node, field))
	}
	if cond := cluster.NodeCondition(n.node, corev1.NodeReady); cond != nil {
		since = maxTime(since, cond.LastTransitionTime.Time)
	}
	switch st := d.ds.Status; {
	case c.s.AsOf.Sub(since) < joinTime, d.rollout.State == report.Progressing, d.rollout.State == report.Slow, d.rollout.State == report.NotObserved:
		return
	case d.ds.Generation <= st.ObservedGeneration && int(st.CurrentNumberScheduled) >= d.coverage.counters.Desired:
		return // the status has seen a Pod that was not read
	}
	g := gap{node: n, kind: gapEmpty, severity: report.Warning, since: since}
	g.why, g.evidence = c.whyEmpty(d)
	g.evidence = append([]report.Evidence{{Source: report.Textf("Pods of %s", d), Value: report.Textf("none on %s, which its selector, affinity and tolerations accept", n.name)}}, g.evidence...)
	if n.leaves() {
		g.severity = report.Info
	}
	d.coverage.gaps = append(d.coverage.gaps, g)
}

// whyEmpty says what is known of why the controller has made no Pod.
func (c *Diagnosis) whyEmpty(d *daemonSet) (string, []report.Evidence) {
	events := c.s.EventsOf("DaemonSet", d.ds.Namespace, d.ds.Name)
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; e.Reason {
		case "FailedCreate":
			return "the controller cannot create it: " + firstWords(e.Message, 160), []report.Evidence{eventEvidence(e)}
		case "FailedDaemonPod":
			return "its Pod failed, and the controller creates it again after a back-off", []report.Evidence{eventEvidence(e)}
		}
	}
	if f := c.leaderOf(controllerManager).down; f != nil {
		return "kube-controller-manager is down: nobody creates it", f.Evidence
	}
	if !c.s.Read(cluster.Events) {
		return "why the controller has made none is not known: events were not read", nil
	}
	return "no event says why the controller has made none", nil
}

// unselectedNode looks at a node whose labels are not what the template asks for.
// That is the author's choice, unless the node had a Pod, the last change left it
// out, or one of its labels is a slip away.
func (c *Diagnosis) unselectedNode(x *chooser, g *gap) string {
	g.kind = gapSelector
	n := g.node
	var unmet []int
	var asked []string
	for i := range x.reqs {
		if !x.reqs[i].met(n.node) {
			unmet = append(unmet, i)
			asked = append(asked, x.reqs[i].asked)
		}
	}
	if name := x.d.ds.Spec.Template.Spec.NodeName; name != "" && name != n.name {
		asked = append(asked, "nodeName "+name)
	}
	if n.leaves() {
		return names(asked, 3)
	}
	if was := x.hadPod(c, n.name); !was.IsZero() && c.s.AsOf.Sub(was) < recentChange {
		g.severity, g.since = report.Warning, was
		g.why = "it had a Pod until " + dated(was)
	} else if x.leftOut(n.node) {
		g.severity, g.since, g.byChange = report.Warning, x.d.change.start, true
		g.why = fmt.Sprintf("the template before selected it and that of %s does not: its Pod was removed at once, whatever maxUnavailable says", revisionName(x.d.change.revision))
	} else if near, ok := x.slip(c, n.node, unmet); ok {
		g.severity = report.Warning
		g.why = "its label " + near.String() + " looks like a typing error"
	}
	return names(asked, 3)
}

// taintedNode looks at a node that is selected and has a taint that is not tolerated.
func (c *Diagnosis) taintedNode(x *chooser, g *gap) string {
	n := g.node
	var custom []corev1.Taint
	for _, t := range cluster.UntoleratedTaints(n.node, &x.d.ds.Spec.Template) {
		if !cluster.ConditionTaint(t.Key) {
			custom = append(custom, t)
		}
	}
	switch {
	case len(custom) == 0:
		g.kind = gapCondition
		return "the node's own state, of which the template does not tolerate the taint"
	case n.removal != "" || n.shutdown:
		g.kind = gapCondition
		return "the node is being taken away"
	}
	x.d.coverage.tainted++
	g.kind = gapTaint
	t := &custom[0]
	key := "taint " + taintName(t) + " is not tolerated"
	for i := range custom {
		if a := c.agentOf(x.d, &custom[i], n); a != nil {
			g.agent, t = a, &custom[i]
			key = "taint " + taintName(t) + " is not tolerated"
			break
		}
	}
	g.since = taintedAt(n.node, t)
	if n.failing() {
		if c.waitsForAgent(x.d, n) {
			g.severity = report.Warning
			g.why = "the node never became Ready, for want of a network agent"
		}
		return key
	}
	switch was := x.hadPod(c, n.name); {
	case g.agent != nil && g.agent.overdue(c.s.AsOf):
		g.kind, g.severity = gapStartup, report.Warning
		g.why = g.agent.text()
	case g.agent != nil:
		g.why = g.agent.text()
	case c.s.AsOf.Sub(n.node.CreationTimestamp.Time) < 5*time.Minute:
		g.why = "the node has just joined"
	case !was.IsZero() && c.s.AsOf.Sub(was) < recentChange:
		g.severity = report.Warning
		g.why = "it had a Pod until " + dated(was)
	case t.Effect == corev1.TaintEffectNoExecute && c.droveOut(x.d, n.node, g.since):
		g.severity = report.Warning
		g.why = "the taint was added " + dated(g.since) + " and took its Pod away at once, whatever maxUnavailable says"
	case x.leftOut(n.node):
		g.severity = report.Warning
		g.why = fmt.Sprintf("the template before tolerated it and that of %s does not: a Pod that ends here does not come back", revisionName(x.d.change.revision))
	case c.ofAKind(t), !g.since.IsZero() && c.s.AsOf.Sub(g.since) > 7*recentChange:
		// Nodes that are set apart, or have been for long: by design.
	default:
		g.severity = report.Warning
		g.why = "nothing else sets the node apart: no label goes with the taint"
	}
	return key
}

// droveOut tells whether a NoExecute taint was added, within a day, to a node that had
// been there before it, as the DaemonSet had: then the node had its Pod.
func (c *Diagnosis) droveOut(d *daemonSet, n *corev1.Node, added time.Time) bool {
	return !added.IsZero() && c.s.AsOf.Sub(added) < recentChange &&
		added.Sub(n.CreationTimestamp.Time) > joinTime && added.Sub(d.ds.CreationTimestamp.Time) > joinTime
}

// waitsForAgent tells whether a node that never became Ready has no network agent on
// it, and the DaemonSet is the agent of most nodes.
func (c *Diagnosis) waitsForAgent(d *daemonSet, n *nodeState) bool {
	return n.neverReady && networkAgent(&d.ds.Spec.Template.Spec) && 2*d.coverage.counters.Desired > len(c.s.Nodes) &&
		slices.ContainsFunc(n.findings, func(f report.Finding) bool { return f.Code == report.NoNetworkAgent })
}

// taintedAt is when the taint was added, as the taint itself or the owner of the
// node's taints tells; zero where neither does.
func taintedAt(n *corev1.Node, t *corev1.Taint) time.Time {
	if t.TimeAdded != nil {
		return t.TimeAdded.Time
	}
	return nodeWritten(n, "f:taints")
}

// ofAKind tells whether the taint belongs to a kind of nodes: a label that groups
// nodes is on all that have the taint and on no other, or its own key says so.
func (c *Diagnosis) ofAKind(t *corev1.Taint) bool {
	id := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
	known, ok := c.kinds[id]
	if ok {
		return known
	}
	if c.kinds == nil {
		c.kinds = map[corev1.Taint]bool{}
	}
	var with, without []*corev1.Node
	for _, n := range c.s.Nodes {
		if slices.ContainsFunc(n.Spec.Taints, func(u corev1.Taint) bool { return u.Key == t.Key && u.Value == t.Value && u.Effect == t.Effect }) {
			with = append(with, n)
		} else {
			without = append(without, n)
		}
	}
	known = strings.HasPrefix(t.Key, "node-role.kubernetes.io/")
	if !known && len(with) > 0 {
		for k, v := range with[0].Labels {
			all := func(n *corev1.Node) bool { w, ok := n.Labels[k]; return ok && w == v }
			if !c.groups(k) || !allOf(with, all) {
				continue
			}
			if k == t.Key || len(without) > 0 && !slices.ContainsFunc(without, all) {
				known = true
				break
			}
		}
	}
	c.kinds[id] = known
	return known
}

// groups tells whether a label's key groups nodes instead of naming each of them.
func (c *Diagnosis) groups(key string) bool {
	values, nodes := c.nodeLabels()[key], 0
	for _, n := range values {
		nodes += n
	}
	return key != corev1.LabelHostname && (len(values) < nodes || nodes == 1)
}

func allOf[T any](list []T, f func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !f(v) })
}

// misscheduledNode says of a Pod that should not be on its node why it still is.
func (c *Diagnosis) misscheduledNode(d *daemonSet, p *cluster.Placement, g *gap) {
	kind := g.kind
	g.pod = p.Pods[0]
	if kind == gapStartup {
		g.why += "; a Pod that is here already stays, and does not come back once it ends"
		g.evidence = append(g.evidence, podEvidence(g.pod, g.node.name))
		return
	}
	since := g.since
	if since.IsZero() {
		since = maxTime(nodeWritten(g.node.node, "f:taints"), nodeWritten(g.node.node, "f:labels"))
		if c.s.AsOf.Sub(since) > recentChange {
			since = time.Time{}
		}
	}
	g.kind, g.severity, g.since = gapMisscheduled, report.Warning, since
	dying := allOf(p.Pods, func(q *corev1.Pod) bool { return q.DeletionTimestamp != nil })
	switch {
	case kind == gapCondition:
		g.severity = report.Info
		g.why = "its Pod stays, no counter but MISSCHEDULED has it until the node is well, and it uses up maxUnavailable if it is not available"
	case dying:
		g.severity = report.Info
		g.why = "it is being removed, since " + dated(cluster.DeleteRequested(g.pod))
	case p.MayStay:
		g.why = "NoSchedule never removes a Pod, so it stays; once it ends, at its turn in a rollout too, none comes back"
	case !since.IsZero() && c.s.AsOf.Sub(since) < settleTime:
		g.severity = report.Info
		g.why = "the DaemonSet controller removes it at once, whatever maxUnavailable says"
	default:
		g.why = "the DaemonSet controller removes it at once, whatever maxUnavailable says; that it is still there says that the controller has not acted"
	}
	g.evidence = append(g.evidence, podEvidence(g.pod, g.node.name))
}

func podEvidence(p *corev1.Pod, node string) report.Evidence {
	return report.Evidence{Source: report.Textf("Pod %s/%s", p.Namespace, p.Name), Value: report.Textf("on %s, %s", node, phaseOf(p))}
}

// phaseOf is a Pod's state in a word or two. A phase says nothing of a Pod on a node
// that does not answer.
func phaseOf(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "Terminating"
	case cluster.PodReady(p):
		return "Ready"
	case p.Spec.NodeName == "":
		return "Pending, not bound"
	case p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		return string(p.Status.Phase)
	}
	return "not Ready"
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
