package probes

import (
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// unseen takes back what a verdict of nothing wrong cannot vouch for: without the nodes or
// the DaemonSets it is none (files that somebody chose may leave DaemonSets out), without another kind of workload it is less sure, and a
// namespace without a workload is more likely a name misspelt.
func (c *Diagnosis) unseen(v *report.Verdict, workloads []report.Workload) {
	var kinds []string
	for _, r := range []cluster.Resource{cluster.DaemonSets, cluster.Deployments, cluster.StatefulSets} {
		if !c.s.Read(r) {
			kinds = append(kinds, string(r))
		}
	}
	rollouts := "no rollout is in trouble"
	if len(kinds) > 0 {
		rollouts = "of rollouts not all is known: " + strings.Join(kinds, ", ") + " were not read"
		v.Confidence = report.Medium
		v.Missing = append(v.Missing, report.Textf("%s were not read", strings.Join(kinds, ", ")))
	}
	nodes := "every node is Ready"
	if !c.s.Read(cluster.Nodes) {
		nodes = "whether every node is Ready is not known: nodes were not read"
		v.Missing = append(v.Missing, "nodes were not read")
	}
	if len(v.Missing) > 0 && v.Workload == "" && v.RootCause == "" {
		v.Summary = report.Textf("%s; %s", nodes, rollouts)
	}
	if !c.s.Read(cluster.DaemonSets) {
		v.Confidence = report.Low
	}
	if !c.s.Read(cluster.Nodes) || len(kinds) == 3 || c.refusedToShow(cluster.DaemonSets) {
		v.Attribution, v.Confidence = report.Undetermined, report.Low
	}
	if ns := c.options.Namespace; ns != "" && len(kinds) == 0 && !slices.ContainsFunc(workloads, func(w report.Workload) bool { return string(w.Namespace) == string(report.Clean(ns)) }) {
		v.Confidence = report.Low
		v.Missing = append(v.Missing, report.Textf("namespace %s has no workload that could be in trouble: is that its name?", ns))
	}
}

// refusedToShow tells whether the resource was asked for and not given, other than left
// out of files by whoever chose them.
func (c *Diagnosis) refusedToShow(r cluster.Resource) bool {
	return slices.ContainsFunc(c.s.NotRead, func(n cluster.NotRead) bool {
		return n.Resource == r && n.Namespace == "" && n.Reason != "Absent" && n.Reason != cluster.NotAsked
	})
}
