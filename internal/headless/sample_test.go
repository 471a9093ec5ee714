package headless

import (
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func moment(s string) *report.Time {
	t, err := time.Parse(time.RFC3339, "2026-07-03T"+s+"Z")
	if err != nil {
		panic(err)
	}
	return report.At(t)
}

func number(n int64) *int64      { return &n }
func ratio(f float64) *float64   { return &f }
func text(s string) *report.Text { t := report.Text(s); return &t }
func nodes(n ...string) (out []report.Text) {
	for _, s := range n {
		out = append(out, report.Text(s))
	}
	return out
}

// sample is an incident with something in every part of a report.
func sample() *report.Report {
	pod := func(name, node string) report.Finding {
		return report.Finding{
			Code: report.InitContainerFailed, Severity: report.Critical, Node: report.Text(node), Since: moment("10:20:19"),
			Object: report.Object{Kind: "Pod", Namespace: "kube-system", Name: report.Text(name)}, Summary: "init container install-cni exits 1",
			Evidence: []report.Evidence{{Source: "Pod.status.initContainerStatuses[install-cni]", Value: "terminated exitCode=1", At: moment("10:25:10")}},
		}
	}
	r := &report.Report{
		GeneratedAt: *moment("10:26:00"), AsOf: *moment("10:25:58"),
		Source: report.Source{Type: "cluster", Context: "prod-eu-1", Server: "https://10.0.0.1:6443", Version: "v1.37.2"},
		Nodes:  report.NodeCounts{Total: 12, Ready: 9, NotReady: 3, Cordoned: 1},
		Quiet:  4,
		Verdict: report.Verdict{
			Attribution: report.RolloutBreaksNodes, Workload: "DaemonSet/kube-system/calico-node", RootCause: report.InitContainerFailed, Confidence: report.High,
			Contributing: []report.Code{report.NodeNetworkNotReady, report.RolloutStuck},
			Summary:      "3 of 3 nodes that received revision 7 lost Ready 6 to 14 s later; none of the 9 nodes on revision 6 did.",
		},
		Workloads: []report.Workload{{
			Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node",
			Rollout: report.Rollout{
				State: report.Stuck, Strategy: "RollingUpdate", MaxUnavailable: "25%", MaxUnavailableResolved: 3, MaxSurge: "0",
				Revision: number(7), PreviousRevision: number(6), KnownGoodRevision: number(6), ChangedBy: text("helm"),
				Desired: 12, Updated: 3, Ready: 9, Available: 9, StartedAt: moment("10:20:00"), LastProgressAt: moment("10:20:07"),
				Brake: "3 of 3 unavailable Pods allowed", NotYetReached: 9, Mode: "A", MayStillFall: 1, FallUntil: moment("10:27:00"),
				BudgetHolders: []report.BudgetHolder{{Node: "node-1", Pod: "calico-node-def34", Why: "its new Pod is not Ready"}},
			},
			Verdict: report.Verdict{
				Attribution: report.RolloutBreaksNodes, RootCause: report.InitContainerFailed, Confidence: report.High,
				Contributing: []report.Code{report.NodeNetworkNotReady, report.RolloutStuck}, Summary: "3 of 3 nodes that received revision 7 lost Ready.",
				For:     nodes("3 of 3 nodes on revision 7 that had time to fall, fell, the first of them 6 s and the last of them 14 s after their Pod was replaced", "0 of 9 nodes on revision 6 fell"),
				Against: nodes("node-77 is down since yesterday and is not on revision 7"),
				Missing: nodes("events of the last hour have expired"),
			},
			Findings: []report.Finding{
				pod("calico-node-def34", "node-1"), pod("calico-node-def35", "node-2"), pod("calico-node-def36", "node-3"),
				{Code: report.RolloutStuck, Severity: report.Critical, Object: report.Object{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}, Since: moment("10:20:07"), Summary: "no Pod advanced since 10:20:07"},
			},
			Recommendation: report.Recommendation{
				Action: report.ActionRollBack, ToRevision: number(6), Why: "revision 6 is Ready on 9 nodes now", First: []report.RecommendedAction{report.ActionOnDelete},
				Reachable: nodes("node-1", "node-2"), Unreachable: nodes("node-3"), WatchOut: nodes("Helm release kube-system/calico leaves a change by hand until the next helm upgrade or rollback; what lasts: helm rollback calico -n kube-system <revision>"),
			},
			WritersKnown: true,
			Owners: []report.Owner{{
				Tool: "Helm", Object: "release kube-system/calico", Code: report.ManagedByHelm, Certainty: report.Certain, Reverts: report.RevertsLater, Manager: "helm",
				Does:     "leaves a change by hand until the next helm upgrade or rollback",
				Instead:  []report.Command{{Run: "helm rollback calico -n kube-system <revision>"}, {Run: "helm history calico -n kube-system", Says: "lists the revisions"}},
				Beware:   nodes("helm rollback also puts the update strategy back"),
				Evidence: []report.Evidence{{Source: "DaemonSet.metadata.annotations[meta.helm.sh/release-name]", Value: "calico"}},
			}},
			Measures: &report.Measures{
				After: nodes("node-1", "node-2", "node-3"), Clean: nodes("node-4", "node-5", "node-6", "node-7", "node-8", "node-9", "node-10", "node-11", "node-12"), Prevalent: nodes("node-77"),
				Coverage: ratio(1), Attack: ratio(1), Background: ratio(0), Reverse: ratio(0), Difference: ratio(1), Fisher: ratio(0.004545), Points: 9,
				Falsify: "a node that loses Ready without having received revision 7",
			},
		}, {
			Kind: "DaemonSet", Namespace: "logging", Name: "node-logs",
			Rollout: report.Rollout{State: report.Stuck, Strategy: "RollingUpdate", MaxUnavailable: "1", MaxUnavailableResolved: 1, Revision: number(3), Desired: 12, Updated: 4, Ready: 9, Available: 9},
			Verdict: report.Verdict{Attribution: report.NodesBlockRollout, RootCause: report.NodeNotReady, Confidence: report.Medium, Summary: "it waits for 3 nodes that another rollout broke."},
			Findings: []report.Finding{{Code: report.BudgetHeldByNodes, Severity: report.Warning, Object: report.Object{Kind: "DaemonSet", Namespace: "logging", Name: "node-logs"},
				Summary: "maxUnavailable 1 is used up", Evidence: []report.Evidence{{Source: "Node node-1", Value: "Ready=False"}}}},
			Recommendation: report.Recommendation{Action: report.ActionWait, Why: "it goes on once calico-node is rolled back"},
		}},
		ClusterFindings: []report.Finding{{Code: report.NodeNetworkNotReady, Severity: report.Warning, Object: report.Object{Kind: "Node", Name: "node-1"}, Node: "node-1", Since: moment("10:20:14"),
			Summary: "Ready=False: network plugin not ready", Evidence: []report.Evidence{{Source: "Node.status.conditions[Ready]", Value: "False KubeletNotReady", At: moment("10:20:14")}}}},
		AtStake: []report.Stake{
			{Topic: report.StakeControlPlane, State: report.StepOK, Text: "control plane: 3 of 3 nodes Ready", Brief: "control plane 3/3"},
			{Topic: report.StakeAPIPath, State: report.StepAnomaly, Text: "your path to the API server (10.0.0.1) is that of node node-1, which fails (Ready=False)", Brief: "over node-1"},
			{Topic: report.StakeServices, State: report.StepUnknown, Text: "whether Services lost their endpoints is not known: services (forbidden)"},
			{Topic: report.StakeEvictions, State: report.StepNotice, Text: "1 node has no NoExecute taint yet", At: moment("10:31:00")},
		},
		NotRead: []report.NotRead{{Resource: "services", Reason: "Forbidden"}, {Resource: "events", Namespace: "shop", Reason: "Forbidden"}, {Resource: "leases", Reason: "Failed"}},
	}
	r.Recommendation = r.Workloads[0].Recommendation
	return r
}

// quiet is a cluster of which there is nothing to say.
func quiet() *report.Report {
	return &report.Report{
		GeneratedAt: *moment("10:26:00"), AsOf: *moment("10:25:58"), Source: report.Source{Type: "files"},
		Nodes: report.NodeCounts{Total: 3, Ready: 3}, Quiet: 6,
		Verdict: report.Verdict{Attribution: report.Healthy, Confidence: report.High, Summary: "6 workloads are complete and 3 nodes are Ready."},
	}
}
