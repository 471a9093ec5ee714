package probes

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// rolloutFindings says where the rollout stands.
func (c *Diagnosis) rolloutFindings(d *daemonSet) {
	r, st := &d.rollout, d.ds.Status
	counters := report.Evidence{Source: "DaemonSet.status", At: report.At(c.s.AsOf),
		Value: report.Textf("desired=%d current=%d updated=%d ready=%d available=%d misscheduled=%d", st.DesiredNumberScheduled, st.CurrentNumberScheduled,
			st.UpdatedNumberScheduled, st.NumberReady, st.NumberAvailable, st.NumberMisscheduled)}
	last := time.Time{}
	if r.LastProgressAt != nil {
		last = r.LastProgressAt.Time
	}
	switch r.State {
	case report.Progressing:
		text := report.Textf("moves: %s not reached yet%s", count(r.NotYetReached, "node"), remaining(r.Remaining))
		if r.Brake != "" {
			text = report.Textf("has come to its brake: %s; %s not reached yet", r.Brake, count(r.NotYetReached, "node"))
		}
		d.add(report.RolloutProgressing, report.Info, d.change.start, text, counters)
	case report.Slow:
		d.add(report.RolloutSlow, report.Info, d.change.start, report.Textf("moves, and needs %s more at the observed pace: %s not reached yet", orUnknown(r.Remaining), count(r.NotYetReached, "node")), counters)
	case report.Stuck:
		sev := report.Warning
		if len(c.ownTroubles(d)) > 0 {
			sev = report.Critical
		}
		ev := []report.Evidence{counters}
		for i, h := range r.BudgetHolders {
			if i == 10 {
				break
			}
			ev = append(ev, report.Evidence{Source: budgetHolder(&h), Value: h.Why})
		}
		d.add(report.RolloutStuck, sev, last, report.Textf("no Pod advanced since %s (%s)", stamp(last), short(c.s.AsOf.Sub(last))), ev...)
	case report.NotObserved:
		d.add(report.RolloutNotObserved, report.Warning, d.change.start, report.Textf("generation %d, observed %d", d.ds.Generation, st.ObservedGeneration),
			report.Evidence{Source: "DaemonSet.metadata.generation, status.observedGeneration", Value: report.Textf("%d, %d", d.ds.Generation, st.ObservedGeneration)})
	case report.OnDelete:
		d.add(report.OnDeletePending, report.Info, d.change.start, report.Textf("%s on an older revision; %d on the current one", count(r.NotYetReached, "Pod"), d.onCurrent()), counters)
	}
	if held := c.held(d); len(held) >= r.MaxUnavailableResolved && len(held) > 0 && d.ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType && r.MaxSurgeResolved == 0 && r.NotYetReached > 0 {
		var ev []report.Evidence
		for _, n := range held {
			ev = append(ev, report.Evidence{Source: report.Textf("Node %s", n.name), Value: report.Textf("%s since %s", readiness(n), dated(lastShown(n)))})
		}
		d.add(report.BudgetHeldByNodes, report.Warning, time.Time{}, report.Textf("maxUnavailable %d is used up by Pods on %s that %s: %s", r.MaxUnavailableResolved, count(len(held), "node"), failVerb(len(held)), names(stateNames(held), 4)), ev...)
	}
	c.manyRevisions(d)
	c.podFindings(d)
}

func remaining(t report.Text) string {
	if t == "" {
		return ""
	}
	return ", about " + string(t) + " more"
}

func orUnknown(t report.Text) report.Text {
	if t == "" {
		return "an unknown time"
	}
	return t
}

func (d *daemonSet) onCurrent() int {
	n := 0
	for i := range d.loop.Slots {
		if d.loop.Slots[i].New != nil {
			n++
		}
	}
	return n
}

// manyRevisions finds Pods of three or more different templates at once.
func (c *Diagnosis) manyRevisions(d *daemonSet) {
	byMeaning := map[int64][]string{}
	for i := range d.revisions {
		r := &d.revisions[i]
		if r.pods+r.dying == 0 {
			continue
		}
		id := r.object.Revision
		if r.sameAs != 0 {
			id = r.sameAs
		}
		byMeaning[id] = append(byMeaning[id], fmt.Sprintf("revision %d: %d", r.object.Revision, r.pods+r.dying))
	}
	if len(byMeaning) < 3 {
		return
	}
	var ev []report.Evidence
	for i := range d.revisions {
		if r := &d.revisions[i]; r.pods+r.dying > 0 {
			ev = append(ev, report.Evidence{Source: report.Textf("Pods with label %s=%s", cluster.RevisionHash, r.hash), Value: report.Textf("revision %d: %s", r.object.Revision, count(r.pods+r.dying, "Pod"))})
		}
	}
	d.add(report.MultipleRevisionsInFlight, report.Warning, d.change.start, report.Textf("Pods of %d revisions run at once", len(byMeaning)), ev...)
}

// podsListed bounds the findings of one code about single Pods.
const podsListed = 50

func (c *Diagnosis) podFindings(d *daemonSet) {
	d.rejectedFindings()
	listed := map[report.Code]int{}
	for _, p := range c.s.PodsOf(d.ds.UID) {
		t := d.troubles[p.Name]
		if t == nil || t.code == "" || t.code.IsNode() || t.code == report.StuckTerminating && t.ofNode && d.rollout.State == report.Complete {
			continue
		}
		if listed[t.code]++; listed[t.code] > podsListed {
			continue
		}
		d.findings = append(d.findings, report.Finding{Code: t.code, Severity: report.Warning,
			Object: report.Object{Kind: "Pod", Namespace: d.key.Namespace, Name: report.Clean(p.Name)}, Node: report.Clean(cluster.TargetNode(p)),
			Since: report.At(t.since), Summary: t.summary, Evidence: t.evidence})
	}
}

// budgetHolder names what holds a unit of the budget: a Pod on its node, or a node without one.
func budgetHolder(h *report.BudgetHolder) report.Text {
	if h.Pod == "" {
		return report.Textf("Node %s", h.Node)
	}
	return report.Textf("Node %s, Pod %s", h.Node, h.Pod)
}
