package tuitest

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Asking is the checklist while the preview of a freeze is being made.
func Asking() *incident.State {
	s := Checklist(2)
	s.Dialog = &incident.Dialog{ID: 1, Loading: true, Preview: action.Preview{Plan: action.Plan{
		Request: action.Request{Kind: action.Freeze, Workload: Calico}, Title: "Freeze DaemonSet calico-node", Grade: action.Key}}}
	return s
}

// Freeze is the checklist with the confirmation of a freeze, which takes one key.
func Freeze() *incident.State {
	s := Checklist(2)
	s.Dialog = &incident.Dialog{ID: 1, Preview: action.Preview{
		Plan: action.Plan{
			Request: action.Request{Kind: action.Freeze, Workload: Calico}, Title: "Freeze DaemonSet calico-node", Grade: action.Key,
			Kubectl: `kubectl patch ds/calico-node -n kube-system --type=json -p '[{"op":"replace","path":"/spec/updateStrategy","value":{"type":"OnDelete"}}]'`,
			Reverse: `kubectl patch ds/calico-node -n kube-system --type=json -p '[{"op":"replace","path":"/spec/updateStrategy","value":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":12,"maxSurge":0}}}]'`,
		},
		DryRun: action.DryRunAccepted, Permission: ref(true),
		Diff: []report.Text{"  spec.updateStrategy:", "- type: RollingUpdate", "- rollingUpdate: {maxSurge: 0, maxUnavailable: 12}", "+ type: OnDelete"},
		Prediction: action.Prediction{
			Summary: []report.Text{"NOW 0 Pods: nothing is replaced or removed", "THEN 388 nodes keep revision 6 until you delete their Pod"},
		},
		WatchOut: []report.Text{argoCD().WatchOut(), "Pods that are gone already, or go later, still come back from the present template: freeze, then roll back"},
		GiveBack: []report.Text{"Argo CD Application network: mend what it applies; where it was suspended, then give it back: argocd app set network --sync-policy automated"},
	}}
	return s
}

// RollBack is the checklist with the confirmation of a roll back, which is typed.
func RollBack() *incident.State {
	s := Checklist(9)
	s.Dialog = &incident.Dialog{ID: 2, Preview: action.Preview{
		Plan: action.Plan{
			Request: action.Request{Kind: action.RollBack, Workload: Calico, ToRevision: 6}, Title: "Roll back DaemonSet calico-node, revision 7 → 6", Grade: action.Typed, Word: "calico-node",
			Kubectl: "kubectl rollout undo ds/calico-node -n kube-system --to-revision=6", Reverse: "kubectl rollout undo ds/calico-node -n kube-system --to-revision=7",
		},
		DryRun: action.DryRunAccepted, Permission: ref(true),
		Diff: []report.Text{"- configMap: calico-config-v2", "+ configMap: calico-config"},
		Prediction: action.Prediction{
			Then: names("node-%03d  calico-node-b4kqz", 1, 22), OutOfReach: []report.Text{"node-010  calico-node-k4kqz: Ready=Unknown, nothing reaches its kubelet", "node-011  calico-node-l4kqz: Ready=Unknown, nothing reaches its kubelet"}, Untouched: 388,
			Summary: []report.Text{"NOW 0 Pods, frozen: nothing moves until you delete one (next step)", "THEN 22 Pods, 9 at a time: 3 of the budget of 12 are held by dead nodes", "CANNOT 2 nodes: the API does not reach them, see step 7", "LOSES AGENT 0 nodes", "IMAGE v3.25.1 seen on 22 of 22"},
			Unknown: []report.Text{"whether the image is still on the nodes"},
		},
		WatchOut: []report.Text{argoCD().WatchOut(), "typha of the same release changed too"},
		GiveBack: []report.Text{"Argo CD Application network: mend what it applies; where it was suspended, then give it back: argocd app set network --sync-policy automated"},
	}}
	return s
}

// Blocked is a roll back that may not be applied.
func Blocked() *incident.State {
	s := RollBack()
	s.Dialog.ID = 3
	s.Identity.ReadOnly = true
	s.Dialog.Preview.Permission = ref(false)
	s.Dialog.Preview.PermissionWhy = "bob may not patch daemonsets in kube-system"
	s.Dialog.Preview.DryRun = action.DryRunNotSent
	s.Dialog.Preview.Blocked = "not permitted: bob may not patch daemonsets in kube-system"
	return s
}

// Rolling is the checklist after a roll back was confirmed.
func Rolling() *incident.State {
	s := Checklist(9)
	s.Done = []report.Text{"02:15:02 froze DaemonSet calico-node", "02:15:40 rolled back DaemonSet calico-node, revision 7 → 6"}
	s.Left = []report.Text{"calico-node is OnDelete since 02:15:02"}
	s.Notes = 2
	s.Progress = &incident.Progress{Title: "Roll back DaemonSet calico-node, revision 7 → 6", Phase: incident.Verifying, Lines: []report.Line{
		{State: report.StepOK, Text: "the API server accepted it 02:15:40: generation 8"},
		{State: report.StepLooking, Text: "Pods replaced: 9 of 22 predicted"},
		{State: report.StepNotYet, Indent: 1, Text: "node-001 to node-009 run revision 6 and are Ready"},
		{State: report.StepAnomaly, Text: "out of reach, as predicted: node-010, node-011"},
	}}
	s.Recovery = &incident.Progress{Title: "Recovery of calico-node", Phase: incident.Verifying, Lines: []report.Line{
		{State: report.StepLooking, Text: "9 of 9 reachable nodes Ready, since 3 s; must hold 80 s"},
		{State: report.StepUnknown, Text: "node-010, node-011: not reachable, listed and not counted"},
	}}
	return s
}

// Lost is Cascade after the API server stopped answering.
func Lost() *incident.State {
	s := Cascade()
	s.Link = incident.Link{Live: false, Since: Now, Why: "dial tcp 10.0.0.1:6443: connect: connection refused"}
	return s
}

// NoCluster is a connection that never came about.
func NoCluster() *incident.State {
	return &incident.State{Identity: identity(), Link: incident.Link{Why: "nothing was read yet"}, Said: &incident.Said{Bad: true,
		Text: "cannot reach https://10.0.0.1:6443 of context prod-eu-1: connection refused. Is the API server up, and the VPN? Try: kubectl --context prod-eu-1 get --raw /readyz"}}
}

// Partly is Cascade while Pods and events are still being read.
func Partly() *incident.State {
	s := Cascade()
	s.Report.Waiting = []report.Text{"events", "pods"}
	return s
}
