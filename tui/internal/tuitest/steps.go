package tuitest

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
)

func steps(r *report.Report) []runbook.StepView {
	line := func(st report.StepState, s report.Text) report.Line { return report.Line{State: st, Text: s} }
	list := []runbook.StepView{
		{ID: "which-rollout", Title: "Which rollout is moving?", State: report.StepOK, Visited: true,
			Why:      "The cause is invisible from the node: it is a change to an object somewhere else. So every rollout of every namespace is looked at before any node is.",
			Read:     "The rollout that started just before the first node fell is the first suspect. One that started long before, or on other nodes, is not.",
			Trap:     "kubectl rollout status takes one object and blocks on it; it never shows you the other forty.",
			Commands: []report.Text{"kubectl get daemonsets,deployments,statefulsets -A"},
			Result:   report.Result{State: report.StepOK, Lines: []report.Line{line(report.StepOK, "calico-node 6→7 started 02:09:58, 38 s before the first node fell"), line(report.StepNotice, "node-logs 30→31 started 01:02:11 and waits for 2 nodes")}}},
		{ID: "spreading", Title: "Is it still spreading, and what is at stake?", State: report.StepAnomaly, Visited: true, Actions: []string{"SwitchToOnDelete"},
			Why: "While it spreads every minute costs nodes: stop it first, understand it after.", Commands: []report.Text{"kubectl get nodes --watch"},
			Result: report.Result{State: report.StepAnomaly, Lines: []report.Line{line(report.StepAnomaly, "no brake: kubelets alive, Pods stay Ready; 388 nodes not reached"), line(report.StepAnomaly, "shop/checkout has 0 of 6 endpoints")}}},
		{ID: "strategy", Title: "What does its strategy allow?", State: report.StepNotice, Visited: true,
			Result: report.Result{State: report.StepNotice, Lines: []report.Line{line(report.StepNotice, "maxUnavailable 12 of 412, minReadySeconds 0: a Pod counts as soon as it is Ready")}}},
		{ID: "timeline", Title: "Does the timeline fit?", State: report.StepAnomaly, Visited: true,
			Why:      "A node that fails after its Pod was replaced, while the others stay up, was very likely broken by it. A node that failed before was not: then the rollout only met a node that was broken already.",
			Read:     "Look for d, n and then ░ in that order, in lane after lane, at about the same distance. Fresh lanes without ░ prove nothing yet.",
			Trap:     "Restarting the kubelet looks like a fix, because the node is Ready again for a moment. It falls again as soon as the agent has run.",
			Commands: []report.Text{"kubectl get pods -n kube-system -l k8s-app=calico-node -o wide --watch", "kubectl get nodes -o wide", "kubectl get events -n default --field-selector involvedObject.kind=Node"},
			Says:     []report.Text{"the Pods of the rollout, with their nodes, as they change", "which nodes are Ready", "what kubelets and controllers said of nodes"},
			Changed:  "was ! until 02:13:40: 3 more nodes have fallen since",
			Result: report.Result{State: report.StepAnomaly, Timeline: r.Workloads[0].Timeline, Findings: r.Workloads[0].Findings[:2], Lines: []report.Line{
				line(report.StepAnomaly, "11 of 15 nodes that had time to fall, fell; 9 are too fresh (until 02:15:50)"),
				{State: report.StepNotYet, Text: "9 False after 6–14 s      2 Unknown after 41–52 s", Indent: 1},
				line(report.StepOK, "0 of 388 on revision 6 fell"),
				line(report.StepNotice, "node-077 is down since yesterday: not counted"),
				line(report.StepUnknown, "zone b has no node on revision 6 left to compare with"),
			}}},
		{ID: "nodes-say", Title: "What do the nodes say?", State: report.StepLooking,
			Why: "Ready=False means that the kubelet is alive and says so itself; Ready=Unknown that nobody hears it. They need different hands.", Commands: []report.Text{"kubectl describe node node-001"},
			Result: report.Result{State: report.StepLooking}},
		{ID: "new-pod", Probe: "new-pod", Title: "What is wrong with the new Pod?", State: report.StepUnknown,
			Why: "The new Pod knows best what it could not do.", Commands: []report.Text{"kubectl logs -n kube-system calico-node-x7k2p --previous"},
			Result: report.Result{State: report.StepUnknown, Reason: "its Pods were not read"}},
		{ID: "console", Probe: "node-console", Title: "What does the node itself say?", Commands: []report.Text{"crictl ps -a", "journalctl -u kubelet --since '2026-07-03 02:10:30'"}},
		{ID: "changed", Title: "What changed?"},
		{ID: "mend", Title: "Stop it and mend it, in the order that loses least", Actions: []string{"SwitchToOnDelete", "RollBack", "DeletePod"}},
		{ID: "prove", Title: "Prove that it recovered"},
		{ID: "prevent", Title: "Keep it from happening again"},
	}
	for i := range list {
		list[i].Number = i + 1
		if list[i].State == "" {
			list[i].State = report.StepNotYet
		}
		if list[i].Visited {
			list[i].SeenAt = report.At(At(2, 14, 29))
		}
		if i+1 < len(list) {
			list[i].Next = list[i+1].ID
		}
	}
	return list
}
