// Package tuitest holds the incidents that the screen's tests draw: whole States
// as the loop would publish them. It is imported by tests only.
package tuitest

import (
	"fmt"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Now is the cluster's time in these incidents.
var Now = time.Date(2026, 7, 3, 2, 14, 31, 0, time.UTC)

// Calico is the workload that breaks nodes.
var Calico = report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}

// At is the moment h:m:s of the incident's night.
func At(h, m, s int) time.Time { return time.Date(2026, 7, 3, h, m, s, 0, time.UTC) }

func ref[T any](v T) *T { return &v }

func names(format string, from, n int) []report.Text {
	var out []report.Text
	for i := range n {
		out = append(out, report.Textf(format, from+i))
	}
	return out
}

// Loading is the state before the first snapshot.
func Loading() *incident.State {
	return &incident.State{Identity: identity(), Link: incident.Link{Why: "nothing was read yet"}}
}

func identity() incident.Identity {
	return incident.Identity{Context: "prod-eu-1", Server: "https://10.0.0.1:6443", Version: "v1.37.2", User: "alice@example.com"}
}

// Quiet is a cluster with nothing wrong.
func Quiet() *incident.State {
	r := base(12)
	r.Nodes = report.NodeCounts{Total: 12, Ready: 12}
	r.Verdict = report.Verdict{Attribution: report.Healthy, Confidence: report.High, Summary: "Nothing is wrong."}
	r.Quiet = 46
	return &incident.State{Seq: 3, Report: r, Identity: identity(), Link: incident.Link{Live: true, Since: Now}}
}

func base(total int) *report.Report {
	return &report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		GeneratedAt: report.Time{Time: Now}, AsOf: report.Time{Time: Now},
		Source: report.Source{Type: "cluster", Context: "prod-eu-1", Server: "https://10.0.0.1:6443", Version: "v1.37.2"},
		Nodes:  report.NodeCounts{Total: total, Ready: total},
	}
}

// Cascade is a network agent's rollout on 412 nodes that nothing brakes: the new
// Pods become Ready and then break their nodes' network.
func Cascade() *incident.State {
	r := base(412)
	r.Nodes = report.NodeCounts{Total: 412, Ready: 400, NotReady: 9, Unknown: 3}
	r.Workloads = []report.Workload{calico(), nodeLogs(), csi()}
	r.Quiet = 44
	r.Verdict = r.Workloads[0].Verdict
	r.Verdict.Workload = report.Text(Calico.String())
	r.ClusterFindings = []report.Finding{
		{Code: report.ServiceWithoutEndpoints, Severity: report.Critical, Object: report.Object{Kind: "Service", Namespace: "shop", Name: "checkout"}, Summary: "shop/checkout 0/6 endpoints"},
		{Code: report.ClusterDNSDegraded, Severity: report.Critical, Object: report.Object{Kind: "Service", Namespace: "kube-system", Name: "kube-dns"}, Summary: "DNS 4/6"},
		{Code: report.WebhookOnBrokenNodes, Severity: report.Critical, Object: report.Object{Kind: "ValidatingWebhookConfiguration", Name: "policy"}, Summary: "2 webhooks on failing nodes"},
		{Code: report.EvictionPending, Severity: report.Critical, Object: report.Object{Kind: "Node", Name: "node-001"}, Summary: "evictions from 02:16:12"},
		{Code: report.NodeUnreachable, Severity: report.Warning, Object: report.Object{Kind: "Node", Name: "node-077"}, Node: "node-077", Since: report.At(At(2, 0, 0).Add(-20 * time.Hour)),
			Summary:  "Ready=Unknown since yesterday: kubelet stopped posting node status",
			Evidence: []report.Evidence{{Source: "Node.status.conditions[Ready]", Value: "Unknown NodeStatusUnknown", At: report.At(At(2, 0, 0).Add(-20 * time.Hour))}, {Source: "Lease.spec.renewTime", Value: "2026-07-02T05:59:12Z"}}},
	}
	r.AtStake = []report.Stake{
		{Topic: report.StakeControlPlane, State: report.StepOK, Brief: "control plane 3/3", Text: "control plane: 3 of 3 nodes Ready"},
		{Topic: report.StakeAPIPath, State: report.StepOK, Brief: "not on them", Text: "your path to the API server (10.0.0.1) is that of node control-1, which is Ready"},
		{Topic: report.StakeDNS, State: report.StepAnomaly, Brief: "DNS 4/6", Text: "cluster DNS has 4 of 6 endpoints ready; 2 stand on failing nodes (node-003, node-007)"},
		{Topic: report.StakeServices, State: report.StepAnomaly, Brief: "shop/checkout 0/6 endpoints", Text: "1 Service has no ready endpoint left, all lost with failing nodes: shop/checkout 0/6"},
		{Topic: report.StakeWebhooks, State: report.StepAnomaly, Brief: "2 webhooks on failing nodes", Text: "2 webhooks must answer and stand on failing nodes alone"},
		{Topic: report.StakeEvictions, State: report.StepAnomaly, Brief: "evictions from 02:16:12", Text: "14 Pods are evicted from 02:16:12 on, from 5 nodes: shop/web 9, shop/cart 5", At: report.At(At(2, 16, 12))},
	}
	return &incident.State{Seq: 7, Report: r, Identity: identity(), Link: incident.Link{Live: true, Since: Now}}
}

func calico() report.Workload {
	w := report.Workload{
		Kind: Calico.Kind, Namespace: Calico.Namespace, Name: Calico.Name,
		Rollout: report.Rollout{
			State: report.Progressing, Strategy: "RollingUpdate", MaxUnavailable: "12", MaxUnavailableResolved: 12, MaxSurge: "0",
			Revision: ref[int64](7), PreviousRevision: ref[int64](6), KnownGoodRevision: ref[int64](6), ChangedBy: ref[report.Text]("argocd"),
			Desired: 412, Updated: 24, Ready: 409, Available: 409, StartedAt: report.At(At(2, 9, 58)), LastProgressAt: report.At(At(2, 14, 20)),
			Spreading: true, Brake: "no brake: kubelets alive, Pods stay Ready", NotYetReached: 388, Mode: "B",
			MayStillFall: 9, FallUntil: report.At(At(2, 15, 50)),
			Revisions: []report.Revision{
				{Number: 7, Name: "calico-node-7c9f", CreatedAt: report.At(At(2, 9, 58)), Current: true, Pods: 24, Healthy: 13, Images: []report.Text{"calico/node:v3.26.0"}},
				{Number: 6, Name: "calico-node-5b8d", CreatedAt: report.At(At(2, 9, 58).Add(-30 * 24 * time.Hour)), KnownGood: true, Pods: 388, Healthy: 387, Images: []report.Text{"calico/node:v3.25.1"},
					Diff: []report.Text{"- configMap: calico-config-v2", "+ configMap: calico-config"}},
				{Number: 5, Name: "calico-node-44aa", CreatedAt: report.At(At(2, 9, 58).Add(-90 * 24 * time.Hour)), Images: []report.Text{"calico/node:v3.24.5"}},
			},
		},
		Verdict: report.Verdict{
			Attribution: report.RolloutBreaksNodes, RootCause: report.NodeNetworkNotReady, Contributing: []report.Code{report.RolloutSpreading}, Confidence: report.High,
			Summary: "11 of the 15 nodes that received revision 7 and had time to fall lost Ready 6 to 52 s later; none of the 388 nodes on revision 6 did.",
			For:     []report.Text{"11 of 15 exposed nodes fell, 0 of 388 unexposed did (Fisher p < 0.0001)", "the order in which nodes fell is the order in which they were updated", "Ready=False says: container runtime network not ready, cni plugin not initialized"},
			Against: []report.Text{"4 nodes run revision 7 and are fine"},
			Missing: []report.Text{"logs of the new Pods were not read"},
		},
		Findings: []report.Finding{
			{Code: report.NodeNetworkNotReady, Severity: report.Critical, Object: report.Object{Kind: "Node", Name: "node-001"}, Node: "node-001", Since: report.At(At(2, 10, 36)),
				Summary:  "Ready=False: network plugin not ready",
				Evidence: []report.Evidence{{Source: "Node.status.conditions[Ready]", Value: "False KubeletNotReady: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized", At: report.At(At(2, 10, 36))}}},
			{Code: report.RolloutSpreading, Severity: report.Critical, Object: report.Object{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}, Since: report.At(At(2, 9, 58)),
				Summary:  "the controller goes on: Pods on failing nodes stay Ready and use up no budget",
				Evidence: []report.Evidence{{Source: "DaemonSet.status.numberAvailable", Value: "409 of 412", At: report.At(Now)}}},
			{Code: report.CrashLoop, Severity: report.Warning, Object: report.Object{Kind: "Pod", Namespace: "kube-system", Name: "calico-node-x7k2p"}, Node: "node-002", Summary: "container bird waits: CrashLoopBackOff"},
			{Code: report.ManagedByGitOps, Severity: report.Info, Object: report.Object{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}, Summary: argoCD().WatchOut(),
				Evidence: argoCD().Evidence},
		},
		Recommendation: report.Recommendation{
			Action: report.ActionRollBack, ToRevision: ref[int64](6), Pod: "calico-node-b4kqz", Why: "revision 6 is Ready on 387 Ready nodes",
			First: []report.RecommendedAction{report.ActionChangeManager, report.ActionOnDelete}, WatchOut: []report.Text{argoCD().WatchOut()}, Reachable: names("node-%03d", 1, 9), Unreachable: []report.Text{"node-010", "node-011"},
		},
		Timeline: timeline(11), Owners: []report.Owner{*argoCD()}, WritersKnown: true,
	}
	w.Measures = &report.Measures{
		After: names("node-%03d", 1, 11), Healthy: names("node-%03d", 12, 4), Pending: names("node-%03d", 16, 9), Clean: names("node-%03d", 25, 387), Prevalent: []report.Text{"node-077"},
		Points: 10, Falsify: "a node that falls while it still runs revision 6",
	}
	return w
}

// argoCD owns the DaemonSet of the cascade.
func argoCD() *report.Owner {
	return &report.Owner{
		Tool: "Argo CD", Object: "Application network", Code: report.ManagedByGitOps, Certainty: report.Certain, Reverts: report.RevertsIfTold, Manager: "argocd-controller",
		Does:     "puts its own template back within seconds where selfHeal is on, otherwise with its next sync",
		Hold:     []report.Command{{Run: "argocd app set network --sync-policy none"}},
		GiveBack: []report.Command{{Run: "argocd app set network --sync-policy automated", Says: "with --self-heal and --auto-prune where it had them"}},
		Instead:  []report.Command{{Says: "revert it in Git"}},
		Evidence: []report.Evidence{{Source: "DaemonSet.metadata.annotations[argocd.argoproj.io/tracking-id]", Value: "network:apps/DaemonSet:kube-system/calico-node"}},
	}
}

func nodeLogs() report.Workload {
	return report.Workload{
		Kind: "DaemonSet", Namespace: "logging", Name: "node-logs",
		Rollout: report.Rollout{State: report.Stuck, Strategy: "RollingUpdate", MaxUnavailable: "1", MaxUnavailableResolved: 1, Desired: 412, Updated: 410, Ready: 409, Available: 409,
			Revision: ref[int64](31), PreviousRevision: ref[int64](30), StartedAt: report.At(At(1, 2, 11)), Brake: "1 of 1 unavailable Pods allowed"},
		Verdict:        report.Verdict{Attribution: report.NodesBlockRollout, RootCause: report.NodeUnreachable, Confidence: report.High, Summary: "The last 2 Pods wait: the budget of 1 is held by node-077, which is down since yesterday."},
		Recommendation: report.Recommendation{Action: report.ActionFixNode, Why: "mend or remove node-077, then it goes on by itself"},
	}
}

func csi() report.Workload {
	return report.Workload{
		Kind: "DaemonSet", Namespace: "storage", Name: "csi-node",
		Rollout: report.Rollout{State: report.OnDelete, Strategy: "OnDelete", Desired: 412, Updated: 17, Ready: 410, Available: 410, Revision: ref[int64](3), PreviousRevision: ref[int64](2)},
		Verdict: report.Verdict{Attribution: report.WaitingForOperator, RootCause: report.OnDeletePending, Confidence: report.High, Summary: "395 Pods wait for a person to delete them, by design."},
	}
}

func timeline(n int) *report.Timeline {
	t := &report.Timeline{From: report.Time{Time: At(2, 9, 30)}, To: report.Time{Time: Now}}
	t.Lines = []report.Mark{{Kind: report.MarkRolloutStart, At: report.Time{Time: At(2, 9, 58)}, Text: "revision 7 of calico-node by argocd", Source: "ControllerRevision calico-node-7c9f"}}
	for i := range n {
		del := At(2, 10, 2).Add(time.Duration(i) * 21 * time.Second)
		created, fell := del.Add(8*time.Second), del.Add(time.Duration(22+i%5)*time.Second)
		kind, text := report.MarkNodeNotReady, report.Text("Ready=False: network plugin not ready")
		if i >= 9 {
			kind, text, fell = report.MarkNodeUnknown, "Ready=Unknown: kubelet stopped posting", fell.Add(25*time.Second)
		}
		l := report.Lane{Node: report.Textf("node-%03d", i+1), Class: "after", Pod: report.Textf("calico-node-%c4kqz", 'b'+i), Marks: []report.Mark{
			{Kind: report.MarkPodDeleted, At: report.Time{Time: del}, Text: "Pod of revision 6 deleted", Source: "new Pod's creationTimestamp less the grace period"},
			{Kind: report.MarkPodCreated, At: report.Time{Time: created}, Text: report.Textf("Pod calico-node-%c4kqz of revision 7 created", 'b'+i), Source: "Pod.metadata.creationTimestamp"},
			{Kind: report.MarkNodeFailing, At: report.Time{Time: fell.Add(-11 * time.Second)}, Text: "trouble begins in here", Source: "Node condition less 15 s"},
			{Kind: kind, At: report.Time{Time: fell}, Text: text, Source: "Node.status.conditions[Ready].lastTransitionTime"},
		}}
		if i == 3 {
			l.Marks[0].Until = report.At(del.Add(6 * time.Second))
		}
		t.Lanes = append(t.Lanes, l)
	}
	t.Lanes = append(t.Lanes,
		report.Lane{Node: "node-077", Class: "prevalent", Marks: []report.Mark{{Kind: report.MarkNodeUnknown, At: report.Time{Time: At(2, 0, 0).Add(-20 * time.Hour)}, Text: "Ready=Unknown since yesterday", Source: "Node.status.conditions[Ready]"}}},
		report.Lane{Node: "node-012", Class: "healthy", Marks: []report.Mark{
			{Kind: report.MarkPodDeleted, At: report.Time{Time: At(2, 10, 44)}, Text: "Pod of revision 6 deleted", Source: "event Killing"},
			{Kind: report.MarkPodCreated, At: report.Time{Time: At(2, 10, 55)}, Text: "Pod of revision 7 created", Source: "Pod.metadata.creationTimestamp"},
		}})
	return t
}

// Checklist is Cascade with the checklist open at step (from 1).
func Checklist(step int) *incident.State {
	s := Cascade()
	s.Guide = &runbook.View{ID: "nodes-failing-during-rollout", Title: "Nodes go NotReady one after another", Target: Calico, Current: step - 1, Steps: steps(s.Report)}
	return s
}

// Practice is the checklist of the practice incident, 12 nodes.
func Practice() *incident.State {
	s := Checklist(4)
	s.Identity = incident.Identity{Context: "practice", Version: "v1.37.0", User: "practice", Practice: true, Incident: "cni-cascade"}
	s.Report.Nodes = report.NodeCounts{Total: 12, Ready: 7, NotReady: 4, Unknown: 1}
	return s
}

// Hostile is Cascade with text in it that would wreck a screen.
func Hostile() *incident.State {
	s := Checklist(4)
	evil := "\x1b[2J\x1b[31mpwned\x07\r\nsecond\tline \u202egnp.exe\u202c e\u0301 👩‍👩‍👧 🇩🇪 名前がとても長いノード"
	long := ""
	for i := range 40 {
		long += fmt.Sprintf("very-long-segment-%d.", i)
	}
	w := &s.Report.Workloads[0]
	w.Name = report.Clean(long)
	w.Verdict.Summary = report.Clean(evil + long)
	w.Rollout.Brake = report.Clean(evil)
	w.Recommendation.Why = report.Clean(evil)
	s.Report.Verdict.Workload = report.Text(w.Key().String())
	s.Guide.Target = w.Key()
	s.Identity.Context = report.Clean(evil + long)
	s.Report.ClusterFindings[0].Summary = report.Clean(evil)
	for i := range w.Timeline.Lanes {
		w.Timeline.Lanes[i].Node = report.Clean(evil + long)
	}
	for i := range s.Guide.Steps {
		st := &s.Guide.Steps[i]
		st.Title, st.Why = report.Clean(evil+long), report.Clean(long)
		st.Result.Lines = append(st.Result.Lines, report.Line{State: report.StepAnomaly, Text: report.Clean(evil), Indent: 9})
		st.Commands = []report.Text{report.Clean("kubectl get pods " + evil + long)}
	}
	return s
}
