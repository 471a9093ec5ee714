package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// attribute judges every change, tells rival changes apart, and gives each
// workload its verdict.
func (c *Diagnosis) attribute() {
	for _, d := range c.daemonSets {
		d.analyses = nil
		for _, ch := range d.changes {
			d.analyses = append(d.analyses, c.analyse(d, ch))
		}
		for _, a := range d.analyses {
			c.exposedHub(d, a)
		}
	}
	c.tellApart()
	for _, d := range c.daemonSets {
		d.analysis = d.telling()
	}
	for _, d := range c.daemonSets {
		c.judgeDaemonSet(d)
	}
	for _, r := range c.replicated {
		c.judgeReplicated(r)
	}
}

// telling is the analysis that the verdict rests on: that of the present template
// or, after a rollback, of the one before it as long as nodes that it broke are
// still broken.
func (d *daemonSet) telling() *analysis {
	for _, a := range d.analyses {
		if a.blames() && (a.lasts() || a.change.current && d.rollout.State != report.Complete) {
			return a
		}
	}
	return d.analyses[0]
}

// lasts tells whether a node that fell after the change is still failing.
func (a *analysis) lasts() bool {
	for _, e := range append(slices.Clone(a.by[classAfter]), a.by[classUnclear]...) {
		if e.node.failing() {
			return true
		}
	}
	return false
}

// broke tells that the verdict blames the DaemonSet's change for broken nodes.
func (d *daemonSet) broke() bool {
	a := d.analysis
	return a.blames() && (a.lasts() || a.change.current && d.rollout.State != report.Complete)
}

func (a *analysis) blames() bool {
	return (a.judged == caused || a.judged == likely) && a.hub == "" && a.pardoned == ""
}

// blamedRevision is the revision that the verdict blames, 0 for none.
func (d *daemonSet) blamedRevision() int64 {
	if d.analysis != nil && d.broke() {
		return d.analysis.change.revision
	}
	return 0
}

// hubWords mark DaemonSets that carry other nodes' traffic, hubLabels nodes that do.
var (
	hubWords  = []string{"kube-vip", "keepalived", "haproxy", "metallb", "route-reflector", "tunnel", "gateway", "bird-rr", "konnectivity"}
	hubLabels = []string{"route-reflector", "rr-group", "egress-gateway", "egress-node", "gateway"}
)

// exposedHub finds that a node on which others depend was reached shortly before
// nodes fell that were not: who broke them cannot be told by who was reached.
func (c *Diagnosis) exposedHub(d *daemonSet, a *analysis) {
	if a.change.start.IsZero() || len(a.nodes) == 0 {
		return
	}
	var first cluster.Interval
	victims := 0
	for _, n := range c.nodeList {
		e := a.byNode[n.name]
		if e != nil && e.class != classOld && e.reached {
			continue
		}
		ep := n.trouble(a.change.start.Add(-skew))
		if ep == nil || ep.onset.IsZero() || ep.unclear != "" || n.neverReady || ep.onset.To.Before(a.change.start) {
			continue
		}
		victims++
		if first.IsZero() || ep.onset.From.Before(first.From) {
			first = ep.onset
		}
	}
	if victims < 2 || victims <= a.count(classAfter) {
		return
	}
	for _, e := range a.nodes {
		if !e.reached || e.deleted.IsZero() || e.deleted.From.After(first.To) || first.From.Sub(e.deleted.To) > a.window {
			continue
		}
		if why := hubOf(d, e.node); why != "" {
			a.hub = fmt.Sprintf("%s (%s) received the change of %s %s, before nodes that had not received it fell", e.node.name, why, d, stamp(e.deleted.To))
			a.judged = insufficient
			return
		}
	}
}

func hubOf(d *daemonSet, n *nodeState) string {
	words := strings.ToLower(d.ds.Name)
	for _, ct := range d.ds.Spec.Template.Spec.Containers {
		words += " " + strings.ToLower(ct.Image) + " " + strings.ToLower(ct.Name)
	}
	for _, w := range hubWords {
		if strings.Contains(words, w) {
			return "it carries other nodes' traffic: " + w
		}
	}
	for _, w := range hubLabels {
		for l := range n.node.Labels {
			if strings.Contains(l, w) {
				return "a label says " + w
			}
		}
	}
	if controlPlane(n.node) && d.controlPlaneOnly() && powerOverNetwork(d.rollout.Critical) {
		return "it runs on control-plane nodes alone, on their network, and may carry the way to the API"
	}
	return ""
}

// controlPlaneOnly tells whether the DaemonSet is meant for control-plane nodes alone.
func (d *daemonSet) controlPlaneOnly() bool {
	for _, n := range d.pool {
		if !controlPlane(n.node) {
			return false
		}
	}
	return len(d.pool) > 0
}

// powerOverNetwork tells whether a Pod can change its node's network.
func powerOverNetwork(critical []report.Text) bool {
	power := func(t report.Text) bool {
		return t == "privileged" || t == "capability NET_ADMIN" || t == "capability SYS_ADMIN" || t == "capability ALL"
	}
	return slices.Contains(critical, "hostNetwork") && slices.ContainsFunc(critical, power)
}

// tellApart compares changes that reached the same nodes in the same minutes. Nodes
// that got only one of them decide; where there are none, power over what failed
// does; where neither tells them apart, they are named together.
func (c *Diagnosis) tellApart() {
	type suspect struct {
		d *daemonSet
		a *analysis
	}
	var all []suspect
	for _, d := range c.daemonSets {
		for _, a := range d.analyses {
			if a.judged == caused || a.judged == likely || a.judged == insufficient && a.count(classAfter) > 0 {
				all = append(all, suspect{d, a})
			}
		}
	}
	for i, x := range all {
		for _, y := range all[i+1:] {
			if x.d != y.d {
				compare(x.d, x.a, y.d, y.a)
			}
		}
	}
}

func compare(x *daemonSet, a *analysis, y *daemonSet, b *analysis) {
	if a.pardoned != "" || b.pardoned != "" || !overlap(a, b) {
		return
	}
	switch win := firstNonZero(byLoneNodes(a, b), byExplained(a, b), byMechanism(a, b), byLag(x, a, y, b)); {
	case win > 0:
		b.pardoned = fmt.Sprintf("the change of %s explains the same nodes better", x)
	case win < 0:
		a.pardoned = fmt.Sprintf("the change of %s explains the same nodes better", y)
	default:
		a.joint, b.joint = y.String(), x.String()
	}
}

func firstNonZero(v ...int) int {
	for _, x := range v {
		if x != 0 {
			return x
		}
	}
	return 0
}

// overlap tells whether the two changes claim a node in common.
func overlap(a, b *analysis) bool {
	for _, e := range a.by[classAfter] {
		if o := b.byNode[e.node.name]; o != nil && o.class == classAfter {
			return true
		}
	}
	return false
}

// byLoneNodes looks at nodes that only one of the changes had reached by the time
// that they fell or should have fallen.
func byLoneNodes(a, b *analysis) int {
	rate := func(x, y *analysis) (fell, fine int) {
		for _, e := range x.nodes {
			o := y.byNode[e.node.name]
			lone := o == nil || !o.reached || o.class == classBefore
			if !lone {
				continue
			}
			switch e.class {
			case classAfter:
				fell++
			case classHealthy:
				fine++
			}
		}
		return fell, fine
	}
	aFell, aFine := rate(a, b)
	bFell, bFine := rate(b, a)
	switch {
	case aFell >= 1 && bFell == 0:
		return 1
	case bFell >= 1 && aFell == 0:
		return -1
	case aFell+aFine > 0 && bFell+bFine > 0 && aFell > 0 && bFell == 0 && bFine > 0:
		return 1
	case aFell+aFine > 0 && bFell+bFine > 0 && bFell > 0 && aFell == 0 && aFine > 0:
		return -1
	case aFell > 0 && bFell > 0:
		return compareCounts(aFell, bFell, 3)
	case aFine >= 2 && bFine == 0:
		return -1
	case bFine >= 2 && aFine == 0:
		return 1
	}
	return 0
}

// compareCounts decides only where one is that many times the other.
func compareCounts(x, y, times int) int {
	switch {
	case x >= times*y:
		return 1
	case y >= times*x:
		return -1
	}
	return 0
}

// byExplained prefers the change that explains clearly more of the nodes.
func byExplained(a, b *analysis) int {
	ca, cb := value(a.measures.Coverage, 0), value(b.measures.Coverage, 0)
	switch {
	case ca-cb >= 0.2:
		return 1
	case cb-ca >= 0.2:
		return -1
	}
	return 0
}

// byMechanism prefers the change whose Pods have power over what failed.
func byMechanism(a, b *analysis) int {
	switch {
	case a.capable >= b.capable+1 && a.capable >= 2:
		return 1
	case b.capable >= a.capable+1 && b.capable >= 2:
		return -1
	}
	return 0
}

// byLag prefers the change after which nodes fell with the more even delay.
func byLag(x *daemonSet, a *analysis, y *daemonSet, b *analysis) int {
	tx, ty := a.tightLags(x), b.tightLags(y)
	switch {
	case tx && !ty:
		return 1
	case ty && !tx:
		return -1
	}
	return 0
}

// blamed lists the DaemonSets whose change broke nodes, those with the most first.
func (c *Diagnosis) blamed() []*daemonSet {
	var out []*daemonSet
	for _, d := range c.daemonSets {
		if d.broke() {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b *daemonSet) int { return b.analysis.count(classAfter) - a.analysis.count(classAfter) })
	return out
}

// independent are the nodes that fail, or flap, and that no rollout explains; those
// that are being taken away on purpose are not among them.
func (c *Diagnosis) independent() []*nodeState {
	claimed := map[string]bool{}
	for _, d := range c.daemonSets {
		if !d.broke() {
			continue
		}
		for _, e := range append(slices.Clone(d.analysis.by[classAfter]), d.analysis.by[classPending]...) {
			claimed[e.node.name] = true
		}
	}
	var out []*nodeState
	for _, n := range c.nodeList {
		if claimed[n.name] || n.removal != "" {
			continue
		}
		if n.failing() || n.flaps >= 3 || n.pressure != "" && c.pressureHurts(n) || c.withoutNetwork(n) {
			out = append(out, n)
		}
	}
	return out
}

// withoutNetwork tells whether a Ready node's network has been declared unavailable for
// longer than an agent's restart takes: nothing but host-network Pods is placed there.
func (c *Diagnosis) withoutNetwork(n *nodeState) bool {
	cond := cluster.NodeCondition(n.node, corev1.NodeNetworkUnavailable)
	return cond != nil && cond.Status == corev1.ConditionTrue && !n.starting && c.s.AsOf.Sub(cond.LastTransitionTime.Time) > 5*time.Minute
}

// pressureHurts tells whether a node's pressure has cost Pods.
func (c *Diagnosis) pressureHurts(n *nodeState) bool {
	for _, p := range c.s.PodsOn(n.name) {
		if p.Status.Reason == "Evicted" {
			return true
		}
	}
	return false
}

// undetermined tells that nodes fell after a change of the DaemonSet and the
// evidence does not say whether it was the change.
func (d *daemonSet) undetermined() bool {
	a := d.analysis
	return a.judged == insufficient && a.pardoned == "" && (a.lasts() || a.hub != "")
}

// held are the failing nodes that use up the budget of a rollout in progress.
func (c *Diagnosis) held(d *daemonSet) []*nodeState {
	var out []*nodeState
	if !d.podsKnown || d.rollout.State == report.Complete {
		return nil
	}
	for i := range d.loop.Slots {
		s := &d.loop.Slots[i]
		if s.State == cluster.SlotNewUnavailable {
			if t := d.troubles[s.New.Name]; t != nil && !t.ofNode {
				continue // the Pod's own failure holds it, whatever the node says
			}
		}
		if n := c.nodes[s.Node]; s.Holds() && n != nil && (n.failing() || n.node.Spec.Unschedulable && s.State == cluster.SlotTerminating) {
			out = append(out, n)
		}
	}
	return out
}
