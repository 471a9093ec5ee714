package probes

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// recommendDaemonSet proposes what loses least: stop the spread, put the template
// back to a revision that is healthy now, then one Pod at a time.
func (c *Diagnosis) recommendDaemonSet(d *daemonSet) {
	r := &d.recommend
	switch d.verdict.Attribution {
	case report.RolloutBreaksNodes, report.RolloutBreaksPods:
		c.recommendRollBack(d)
	case report.Undetermined:
		r.Action, r.Why = report.ActionInvestigate, "the evidence is not enough for a change that replaces Pods"
		if d.rollout.Spreading && d.undetermined() {
			r.First = []report.RecommendedAction{report.ActionOnDelete}
			r.Why = "freeze it while you look: that replaces nothing and can be taken back"
		}
	case report.NodesBlockRollout, report.NodesFailIndependently:
		if r.Action == report.ActionNone {
			r.Action, r.Why = report.ActionFixNode, "the nodes are to blame: repair or remove them; a rollback would not help them"
			c.splitReach(r, c.held(d))
		}
		if len(r.Unreachable) > 0 {
			r.WatchOut = append(r.WatchOut, report.Textf("deleting the Pods there does not help: the deletion waits for a kubelet that does not answer, and a Pod deleted by force comes back Pending on the same node (%s)", joinTexts(r.Unreachable, 3)))
		}
	case report.ClusterBlocksPods:
		if r.Action == report.ActionNone {
			r.Action, r.Why = report.ActionFixCluster, d.verdict.Summary
		}
	case report.WaitingForOperator:
		r.Action, r.Why = report.ActionNone, "by design: it goes on when you delete Pods"
	case report.Healthy:
		if d.rollout.State == report.Progressing || d.rollout.State == report.Slow {
			r.Action, r.Why = report.ActionWait, "it moves at the pace that its settings allow"
		}
	}
}

func (c *Diagnosis) splitReach(r *report.Recommendation, list []*nodeState) {
	for _, n := range list {
		if n.reachable() {
			r.Reachable = append(r.Reachable, report.Clean(n.name))
		} else {
			r.Unreachable = append(r.Unreachable, report.Clean(n.name))
		}
	}
}

func (c *Diagnosis) recommendRollBack(d *daemonSet) {
	r := &d.recommend
	var fell []*nodeState
	if d.verdict.Attribution == report.RolloutBreaksNodes {
		// Beside those that count as evidence, those that fail with them.
		for _, cl := range []class{classAfter, classLate, classBefore, classUnclear} {
			for _, e := range d.analysis.by[cl] {
				if e.node.failing() {
					fell = append(fell, e.node)
				}
			}
		}
		slices.SortFunc(fell, func(a, b *nodeState) int { return strings.Compare(a.name, b.name) })
	} else {
		fell = c.statesOf(nodesOf(c.ownTroubles(d)))
	}
	c.splitReach(r, fell)
	frozen := d.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	if !frozen {
		r.First = []report.RecommendedAction{report.ActionOnDelete}
	}
	if d.analysis.mode == "C" && d.verdict.Attribution == report.RolloutBreaksNodes {
		r.Action = report.ActionFixWorkload
		r.Why = "nodes without a Pod carry a taint that the template does not tolerate: a rollback creates no Pod there. Add the toleration, under OnDelete, so that no healthy Pod is replaced"
		return
	}
	if !d.analysis.change.current && d.verdict.Attribution == report.RolloutBreaksNodes {
		if !frozen && (d.rollout.State == report.Progressing || d.rollout.State == report.Slow) {
			r.Action, r.First = report.ActionWait, nil
			r.Why = report.Textf("the rollback to revision %s is on its way, node by node: leave it to do its work", number(d.rollout.Revision))
			return
		}
		// The template is back; what is left are Pods of the bad revision.
		r.Action, r.First = report.ActionDeletePod, nil
		r.Why = report.Textf("the template is on revision %s again; Pods of revision %d remain", number(d.rollout.Revision), d.analysis.change.revision)
		for _, n := range r.Reachable {
			if e := d.analysis.byNode[string(n)]; e != nil && e.pod != nil && e.pod.DeletionTimestamp == nil {
				r.Pod = report.Clean(e.pod.Name)
				break
			}
		}
		if r.Pod == "" && len(r.Reachable) > 0 {
			r.Action, r.Why = report.ActionWait, "every reachable node has had its Pod replaced; they need some seconds to become Ready"
		} else if r.Pod == "" {
			r.Action, r.Why = report.ActionFixNode, "the nodes that are left cannot be reached through the API"
		}
		return
	}
	target := d.rollout.KnownGoodRevision
	if target == nil {
		target = d.fallback()
		if target != nil {
			r.WatchOut = append(r.WatchOut, report.Textf("no Ready node runs revision %d now: that it is healthy cannot be shown", *target))
		}
	}
	if target == nil {
		r.Action, r.Why = report.ActionFixWorkload, "there is no earlier revision to go back to: mend the template"
		return
	}
	r.Action, r.ToRevision = report.ActionRollBack, target
	r.Why = report.Textf("revision %d is Ready on %s now", *target, count(d.revision(*target).healthy, "node"))
	if d.rollout.KnownGoodRevision == nil {
		r.Why = report.Textf("revision %d is the newest one of which nothing bad is seen", *target)
	}
	c.watchOut(d, *target)
}

// watchOut says what the rollback would do besides.
func (c *Diagnosis) watchOut(d *daemonSet, target int64) {
	rev := d.revision(target)
	if rev == nil || rev.template == nil {
		return
	}
	var removed, never []string
	for i := range d.loop.Slots {
		s := &d.loop.Slots[i]
		n := c.nodes[s.Node]
		if n == nil {
			continue
		}
		should, stay := cluster.ShouldRun(n.node, rev.template)
		_, staysNow := cluster.ShouldRun(n.node, &d.ds.Spec.Template)
		switch {
		case !stay && staysNow && s.Pod() != nil:
			removed = append(removed, s.Node)
		case !should && s.ShouldRun:
			never = append(never, s.Node)
		}
	}
	if len(removed) > 0 {
		d.recommend.WatchOut = append(d.recommend.WatchOut, report.Textf("revision %d does not run on %s: their Pods are removed at once, whatever the budget: %s", target, count(len(removed), "node"), names(removed, 4)))
	}
	if len(never) > 0 {
		where := ""
		if slices.ContainsFunc(never, func(n string) bool { return controlPlane(c.nodes[n].node) }) {
			where = " (control plane among them)"
		}
		d.recommend.WatchOut = append(d.recommend.WatchOut, report.Textf("revision %d lacks a toleration or label for %s%s: a Pod replaced there does not come back: %s", target, count(len(never), "node"), where, names(never, 4)))
	}
	if n := len(d.recommend.Unreachable); n > 0 && n >= d.rollout.MaxUnavailableResolved && d.rollout.MaxUnavailableResolved > 0 && d.rollout.MaxSurgeResolved == 0 {
		d.recommend.WatchOut = append(d.recommend.WatchOut, report.Textf("%s out of reach, as many as maxUnavailable %d allows: under RollingUpdate the rollback would stall", isAre(n, "node"), d.rollout.MaxUnavailableResolved))
	}
	if d.analysis.inGap > 0 && d.verdict.Attribution == report.RolloutBreaksNodes {
		d.recommend.WatchOut = append(d.recommend.WatchOut, "the nodes fell while no Pod was there: a rollback stops the agent once more, so try it on one node first")
	}
}
