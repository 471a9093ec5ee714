package tuitest

import (
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// Console is what somebody pastes from the console of a node.
const Console = "root@node-010:~# ip route\r\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.10\r\nroot@node-010:~# curl -k --max-time 5 https://10.0.0.1:6443/livez\r\n" +
	"curl: (7) Failed to connect to 10.0.0.1 port 6443 after 0 ms: \x1b[31mNo route to host\x1b[0m\r\n"

const log = `2026-07-03T02:10:30.1Z 2026-07-03 02:10:30.104 [INFO][57] felix/daemon.go: Felix starting up
2026-07-03T02:10:36.4Z 2026-07-03 02:10:36.412 [ERROR][61] cni-config-monitor/monitor.go: replaced /host/etc/cni/net.d/10-calico.conflist: plugin "calico-nft": unsupported cniVersion "1.2.0"
2026-07-03T02:10:40.0Z 2026-07-03 02:10:40.012 [ERROR][61] felix/odd.go: something that nobody knows`

// Asked is the checklist at a step that asks for logs or consoles.
func Asked(step int) *incident.State {
	s := Checklist(step)
	ns := Calico.Namespace
	s.Pods = []incident.AskedPod{
		{Namespace: ns, Name: "calico-node-x7k2p", Node: "node-002", Why: "CrashLoop container bird waits: CrashLoopBackOff"},
		{Namespace: ns, Name: "calico-node-b4kqz", Node: "node-001", Why: "well, on a node that is Ready=False"},
	}
	s.Consoles = []report.Text{"node-010", "node-011"}
	const ask = "What do its logs say?"
	s.Guide.Steps[5].State = report.StepUnknown
	s.Guide.Steps[5].Result = report.Result{State: report.StepOK, Lines: []report.Line{
		{State: report.StepOK, Text: "13 Pods of revision 7 Ready"},
		{State: report.StepUnknown, Text: ask + " Not looked at: logs are read only when you ask for them."}}}
	s.Guide.Steps[5].Unanswered = []runbook.UnansweredView{{Ask: ask, Because: "logs are read only when you ask for them.", By: runbook.AnsweredByLogs}}
	s.Guide.Steps[6].State = report.StepUnknown
	s.Guide.Steps[6].Result = report.Result{State: report.StepUnknown, Reason: "2 nodes cannot be reached through the API; run the commands at the consoles of node-010, node-011, and paste what they print"}
	return s
}

// Heard is the same after a log and a console were read.
func Heard(step int) *incident.State {
	s := Asked(step)
	s.Pods[0].Read = true
	from := signs.Source{Node: "node-002", Namespace: Calico.Namespace, Pod: "calico-node-x7k2p", Container: "calico-node"}
	at := report.Time{Time: Now}
	s.Evidence = []signs.Evidence{
		{From: signs.Source{Node: "node-002", Namespace: Calico.Namespace, Pod: "calico-node-x7k2p", Container: "bird"}, At: at, Never: true, Failed: "it has not run yet (PodInitializing), so there is no log"},
		{From: from, At: at, Reading: signs.Read(strings.Split(log, "\n"), signs.Options{AsOf: Now})},
		{From: signs.Source{Node: "node-010"}, At: at, Reading: signs.Read(strings.Split(Console, "\n"), signs.Options{AsOf: Now, Console: true})},
	}
	s.Guide.Steps[5].State, s.Guide.Steps[5].Unanswered = report.StepAnomaly, nil
	s.Guide.Steps[5].Result = report.Result{State: report.StepAnomaly, Lines: append(lines(s.Evidence[1]), report.Line{State: report.StepOK, Text: "13 Pods of revision 7 Ready"})}
	s.Guide.Steps[6].State = report.StepAnomaly
	s.Guide.Steps[6].Result = report.Result{State: report.StepAnomaly, Lines: append(lines(s.Evidence[2]), report.Line{Text: "nothing was pasted yet of node-011"})}
	return s
}

// lines are a source as the loop puts it into a step.
func lines(e signs.Evidence) []report.Line {
	var out []report.Line
	for _, f := range e.Found {
		out = append(out, report.Line{State: f.State, Text: report.Textf("%s: %s", e.From, f.Headline())},
			report.Line{Text: report.Textf("“%s”", f.Line), Indent: 1}, report.Line{Text: report.Textf("%s %s", f.Means, f.Do), Indent: 1})
	}
	return out
}
