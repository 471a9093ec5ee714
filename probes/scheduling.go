package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// schedulerSilence is how long the scheduler may take to say a word about a Pod.
const schedulerSilence = 2 * time.Minute

// scaleUpPatience is how long after the cluster autoscaler promised a node a Pod that
// waits for it is no trouble.
const scaleUpPatience = 10 * time.Minute

// sentence is what the scheduler last said about a Pod, and where it says so.
type sentence struct {
	text   string
	parsed refusal.Scheduling
	known  bool // parsed holds
	since  time.Time
	source report.Evidence
}

// unscheduled says why a Pod that is bound to no node is not.
func (c *Diagnosis) unscheduled(p *corev1.Pod) *podTrouble {
	said := c.schedulerSays(p)
	if said == nil {
		return c.schedulerSilent(p)
	}
	if c.nodeOnItsWay(p) || c.roomOnItsWay(p, said) {
		return nil
	}
	t := &podTrouble{since: said.since, evidence: []report.Evidence{said.source}}
	if said.known {
		t.parts = said.apart()
	}
	if target := cluster.TargetNode(p); target != "" {
		c.pinned(p, target, said, t)
	} else {
		c.unpinned(p, said, t)
	}
	if d := c.schedulerDown(); d != nil && usesDefaultScheduler(p) {
		t.evidence = append(t.evidence, d.Evidence...)
		t.summary += report.Textf("; %s", d.Summary)
	}
	return t
}

// schedulerSays reads the condition, which does not expire, and the newest event where
// there is no condition; nil where the scheduler has said nothing.
func (c *Diagnosis) schedulerSays(p *corev1.Pod) *sentence {
	s := &sentence{}
	if cond := cluster.PodCondition(p, corev1.PodScheduled); cond != nil && cond.Status != corev1.ConditionTrue && cond.Reason != "" {
		s.text, s.since = cond.Message, cond.LastTransitionTime.Time
		s.source = report.Evidence{Source: "Pod.status.conditions[PodScheduled]", Value: report.Textf("%s: %s", cond.Reason, redact.Text(cond.Message)), At: report.At(s.since)}
		if cond.Reason == corev1.PodReasonSchedulingGated {
			return nil
		}
	} else {
		var newest *corev1.Event
		for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
			if e.Reason == "FailedScheduling" && (e.InvolvedObject.UID == "" || e.InvolvedObject.UID == p.UID) && (newest == nil || !cluster.EventLast(e).Before(cluster.EventLast(newest))) {
				newest = e
			}
		}
		if newest == nil {
			return nil
		}
		s.text, s.since, s.source = newest.Message, cluster.EventOnset(newest), eventEvidence(newest)
	}
	s.parsed, s.known = refusal.ParseScheduling(s.text)
	return s
}

// apart is the sentence, one reason a line.
func (s *sentence) apart() []report.Text {
	var out []report.Text
	for _, r := range s.parsed.Reasons {
		switch {
		case r.Elsewhere:
			out = append(out, report.Textf("%s: not the node that the Pod is for", count(r.Count, "node")))
		case r.Count == 0:
			out = append(out, report.Textf("the Pod itself: %s", r.Text))
		default:
			out = append(out, report.Textf("%s: %s", count(r.Count, "node"), strings.TrimPrefix(r.Text, "node(s) ")))
		}
	}
	if p := s.parsed.Preemption; p.Text != "" {
		text := p.Text
		switch {
		case p.Never:
			text = "the Pod's preemptionPolicy is Never"
		case p.Terminating:
			text = "a Pod that makes way for it is still being deleted"
		case p.NoVictims > 0 && p.NotHelpful == 0:
			text = fmt.Sprintf("on %s no Pod of lower priority could make room", count(p.NoVictims, "node"))
		case p.NoVictims > 0:
			text = fmt.Sprintf("on %s no Pod of lower priority could make room, on %d it would not help", count(p.NoVictims, "node"), p.NotHelpful)
		case p.NotHelpful > 0:
			text = "it would help on no node"
		}
		out = append(out, report.Textf("preemption: %s", text))
	}
	return out
}

// schedulerSilent is about a Pod of which the scheduler has said nothing yet.
func (c *Diagnosis) schedulerSilent(p *corev1.Pod) *podTrouble {
	if c.s.AsOf.Sub(p.CreationTimestamp.Time) < schedulerSilence {
		return nil
	}
	t := &podTrouble{code: report.SchedulerSilent, since: p.CreationTimestamp.Time, summary: "Pending, and the scheduler has not said why",
		evidence: []report.Evidence{{Source: "Pod.status.conditions[PodScheduled]", Value: "absent"}},
		fix:      fix{report.ActionFixCluster, "look at kube-scheduler: its Lease in kube-system, its Pods (kubectl -n kube-system get pods -l component=kube-scheduler), its log"}}
	switch {
	case len(p.Spec.SchedulingGates) > 0:
		var gates []string
		for _, g := range p.Spec.SchedulingGates {
			gates = append(gates, g.Name)
		}
		t.summary = report.Textf("Pending behind its scheduling gates %s: the scheduler does not look at it until whoever set them takes them away", names(gates, 4))
		t.evidence = []report.Evidence{{Source: "Pod.spec.schedulingGates", Value: report.Clean(strings.Join(gates, ", "))}}
		t.fix.why = report.Textf("find out who sets the scheduling gates %s and why it does not take them away", names(gates, 4))
	case !usesDefaultScheduler(p):
		t.summary = report.Textf("Pending, and the scheduler %q, which it asks for, has said nothing", p.Spec.SchedulerName)
		t.evidence = append(t.evidence, report.Evidence{Source: "Pod.spec.schedulerName", Value: report.Clean(p.Spec.SchedulerName)})
		t.fix.why = report.Textf("look whether a scheduler named %q runs; kube-scheduler leaves such Pods alone", p.Spec.SchedulerName)
	default:
		if d := c.schedulerDown(); d != nil {
			t.code, t.summary = report.SchedulerDown, report.Textf("Pending: %s", d.Summary)
			t.evidence = append(t.evidence, d.Evidence...)
		}
	}
	return t
}

func usesDefaultScheduler(p *corev1.Pod) bool {
	return p.Spec.SchedulerName == "" || p.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// nodeOnItsWay tells whether the cluster autoscaler has just promised a node for the
// Pod: then it waits, and nothing is wrong.
func (c *Diagnosis) nodeOnItsWay(p *corev1.Pod) bool {
	promised := false
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if e.InvolvedObject.UID != "" && e.InvolvedObject.UID != p.UID {
			continue
		}
		switch e.Reason {
		case "TriggeredScaleUp":
			promised = c.s.AsOf.Sub(cluster.EventLast(e)) < scaleUpPatience
		case "NotTriggerScaleUp", "FailedScaleUp":
			promised = false
		}
	}
	return promised
}

// pinned says why a daemon Pod cannot be placed on its one node: of the sentence only
// what is not about the others counts.
func (c *Diagnosis) pinned(p *corev1.Pod, node string, said *sentence, t *podTrouble) {
	var own []refusal.Reason
	for _, r := range said.parsed.Reasons {
		if !r.Elsewhere {
			own = append(own, r)
		}
	}
	n := c.nodes[node]
	switch {
	case n == nil && c.s.Read(cluster.Nodes):
		t.code, t.ofNode = report.PodOnMissingNode, true
		t.summary = report.Textf("is meant for node %s, which does not exist", node)
		t.evidence = append(t.evidence, report.Evidence{Source: "Pod.spec.affinity.nodeAffinity, metadata.name", Value: report.Clean(node)})
		return
	case len(own) == 0 && len(said.parsed.Reasons) > 0:
		own = said.parsed.Reasons // its own affinity excludes its own node
	case !said.known || len(own) == 0:
		t.code, t.summary = report.SchedulerSilent, report.Textf("cannot be placed on %s: %s", node, firstWords(said.text, 200))
		return
	}
	main := foremost(own)
	t.code = main.Code
	if t.code == "" {
		t.code = report.SchedulerSilent // a reason that has no name here; its words are in the summary
	}
	t.summary = report.Textf("cannot be placed on %s: %s", node, reasonText(own))
	var st *corev1.Node
	if n != nil {
		st = n.node
	}
	switch t.code {
	case report.InsufficientResources:
		c.pinnedRoom(p, node, t)
	case report.HostPortConflict:
		c.portTaken(p, []string{node}, t)
	case report.UntoleratedTaint, report.NodesCordoned:
		c.pinnedTaint(p, n, main, t)
	case report.NodeAffinityMismatch:
		t.evidence = append(t.evidence, c.affinityLines(p, st)...)
		t.fix = fix{report.ActionFixWorkload, report.Textf("its nodeSelector or affinity and the labels of node %s contradict each other: kubectl get node %s --show-labels", node, report.Word(node))}
	case report.VolumeTopologyConflict:
		c.volumes(p, []string{node}, main, t)
	case report.PodSpreadConflict:
		c.spread(p, main, t)
	}
}

func (c *Diagnosis) pinnedRoom(p *corev1.Pod, node string, t *podTrouble) {
	words, ev := c.room(node, p)
	t.evidence = append(t.evidence, ev...)
	if words != "" {
		t.summary = report.Textf("does not fit on %s: %s", node, words)
	}
	if e := c.preemption(node, p); e != nil {
		t.evidence = append(t.evidence, *e)
	}
	t.fix = fix{report.ActionFixCluster, report.Textf("make room on %s: move or shrink the largest Pods there (kubectl get pods -A --field-selector spec.nodeName=%s), lower what the Pod requests, or give it a priority class that may preempt others", node, report.Word(node))}
}

// pinnedTaint says which taint of its node a daemon Pod does not tolerate. Since 1.35
// the scheduler does not name it. A taint that tells of the node's condition makes it
// the node's trouble.
func (c *Diagnosis) pinnedTaint(p *corev1.Pod, n *nodeState, said refusal.Reason, t *podTrouble) {
	if n == nil {
		return
	}
	if t.code == report.NodesCordoned {
		t.summary = report.Textf("cannot be placed on %s: it is cordoned", n.name)
		t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Node %s spec.unschedulable", n.name), Value: report.Textf("%v", n.node.Spec.Unschedulable), At: report.At(n.cordonedAt)})
		t.fix = fix{report.ActionFixCluster, report.Textf("when the maintenance is over: kubectl uncordon %s", report.Word(n.name))}
		return
	}
	var keys []string
	custom := false
	for _, taint := range cluster.NewNodeFilter(&p.Spec).Untolerated(n.node) {
		keys = append(keys, oneTaint(taint))
		custom = custom || !cluster.ConditionTaint(taint.Key)
		t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Node %s spec.taints", n.name), Value: report.Clean(oneTaint(taint)), At: timeAdded(taint)})
	}
	if len(keys) == 0 {
		if said.TaintKey != "" {
			t.summary += "; the node does not have that taint any more"
		}
		return
	}
	t.summary = report.Textf("does not tolerate %s of node %s", strings.Join(keys, ", "), n.name)
	if !custom && n.failing() {
		t.ofNode = true
		t.summary += report.Textf(", which is %s", readiness(n))
	}
	t.fix = fix{report.ActionFixWorkload, report.Textf("tolerate %s in the template, or, if nobody needs it, remove it: kubectl taint node %s %s", strings.Join(keys, ", "), report.Word(n.name), report.Word(keys[0]+"-"))}
}

// foremost is the reason that decides: the room on a node before what is by design.
func foremost(list []refusal.Reason) refusal.Reason {
	best := list[0]
	for _, r := range list[1:] {
		if weightOf(r) < weightOf(best) || weightOf(r) == weightOf(best) && r.Count > best.Count {
			best = r
		}
	}
	return best
}

// weightOf orders the reasons of a sentence by how near they are to the end of the
// scheduler's checks: a node that fails a late one has passed those before. What is about
// the Pod itself comes first, room before the rules that spread Pods, which hold where
// a replica is already.
func weightOf(r refusal.Reason) int {
	if r.Count == 0 && r.Code != "" {
		return -1
	}
	order := []report.Code{report.InsufficientResources, report.HostPortConflict, report.VolumeTopologyConflict, report.PodSpreadConflict,
		report.NodesCordoned, report.UntoleratedTaint, report.NodeAffinityMismatch}
	if i := slices.Index(order, r.Code); i >= 0 {
		return i
	}
	return len(order)
}

// reasonText joins reasons in a few words.
func reasonText(list []refusal.Reason) string {
	var out []string
	for _, r := range list {
		text := strings.TrimPrefix(r.Text, "node(s) ")
		if r.Count > 1 {
			text = fmt.Sprintf("%d %s", r.Count, text)
		}
		out = append(out, text)
	}
	return firstWords(strings.Join(out, ", "), 200)
}

// schedulerDown is the finding that kube-scheduler does not renew its Lease, nil
// where it does or where there is none: leader election may be off.
func (c *Diagnosis) schedulerDown() *report.Finding { return c.leaderOf(scheduler).down }
