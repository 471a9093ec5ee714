package probes

import (
	"fmt"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// nodesBehind bounds the nodes listed behind one counter or reason.
const nodesBehind = 10

// coverageView explains the counters of a DaemonSet by its nodes and Pods.
func (c *Diagnosis) coverageView(d *daemonSet) *report.Coverage {
	cov := &d.coverage
	v := &report.Coverage{Reason: report.Clean(cov.reason), Nodes: len(c.s.Nodes), Settling: report.Clean(cov.settling), Excluded: []report.Excluded{}, Counters: []report.Counter{}, Invariants: []report.Invariant{}}
	if cov.reason != "" {
		return v
	}
	k := &cov.counters
	v.Eligible = k.Desired
	for _, e := range cov.excluded {
		v.Excluded = append(v.Excluded, report.Excluded{Why: report.Clean(e.why), Count: len(e.nodes), Nodes: cleaned(e.nodes[:min(len(e.nodes), nodesBehind)]), Deliberate: e.deliberate})
	}
	st := &d.ds.Status
	known := k.Known && cov.complete
	v.Counters = []report.Counter{
		cov.counter("DESIRED", int(st.DesiredNumberScheduled), k.Desired, cov.complete),
		cov.counter("CURRENT", int(st.CurrentNumberScheduled), k.Current, known),
		cov.counter("READY", int(st.NumberReady), k.Ready, known),
		cov.counter("UP-TO-DATE", int(st.UpdatedNumberScheduled), k.Updated, known && d.hash != ""),
		cov.counter("AVAILABLE", int(st.NumberAvailable), k.Available, known),
		cov.counter("MISSCHEDULED", int(st.NumberMisscheduled), k.Misscheduled, known),
	}
	if k.Known {
		c.behind(d, v.Counters)
	}
	v.Invariants = c.invariants(d)
	return v
}

func (cov *coverage) counter(name report.Text, status, computed int, known bool) report.Counter {
	x := report.Counter{Name: name, Status: status, State: report.CounterUnknown, Behind: []report.CounterNode{}}
	if !known {
		return x
	}
	x.Computed = &computed
	switch {
	case status == computed:
		x.State = report.CounterAgrees
	case cov.settling != "":
		x.State = report.CounterSettling
	default:
		x.State = report.CounterContradicts
	}
	return x
}

// behind lists the nodes behind each counter but the first.
func (c *Diagnosis) behind(d *daemonSet, counters []report.Counter) {
	const current, ready, updated, available, misscheduled = 1, 2, 3, 4, 5
	add := func(i int, node, pod, why string) {
		x := &counters[i]
		if len(x.Behind) == nodesBehind {
			x.More++
			return
		}
		x.Behind = append(x.Behind, report.CounterNode{Node: report.Clean(node), Pod: report.Clean(pod), Why: report.Clean(why)})
	}
	gaps := map[string]*gap{}
	for i := range d.coverage.gaps {
		gaps[d.coverage.gaps[i].node.name] = &d.coverage.gaps[i]
	}
	for i := range d.coverage.counters.Nodes {
		p := &d.coverage.counters.Nodes[i]
		n := c.nodes[p.Node]
		switch {
		case p.Missing || n == nil:
		case !p.ShouldRun:
			why := "the node's own state keeps it out of DESIRED; its Pod stays"
			if g := gaps[p.Node]; g != nil {
				why = listed(unmet(n.node, &d.ds.Spec.Template), 2) + "; " + g.why
			}
			add(misscheduled, p.Node, p.Pods[0].Name, why)
		case len(p.Pods) == 0:
			why := "no Pod yet"
			if g := gaps[p.Node]; g != nil {
				why = g.why
			}
			add(current, p.Node, "", why)
		default:
			first := p.Pods[0]
			if !p.Ready {
				why := phaseOf(first)
				if t := d.troubles[first.Name]; t != nil {
					why = string(t.summary)
				}
				if n.failing() {
					why += "; the node is " + readiness(n)
				}
				add(ready, p.Node, first.Name, why)
			}
			if !p.Updated {
				why := "runs an older revision"
				if len(p.Pods) > 1 {
					why += ", and stands for the node until it is gone"
				}
				add(updated, p.Node, first.Name, why)
			}
			if p.Ready && !p.Available {
				why := "Ready for less than minReadySeconds"
				if cond := cluster.PodCondition(first, "Ready"); cond != nil {
					why = fmt.Sprintf("Ready for %s of minReadySeconds %s", short(c.s.AsOf.Sub(cond.LastTransitionTime.Time)), short(cluster.MinReady(d.ds)))
				}
				add(available, p.Node, first.Name, why)
			}
		}
	}
}
