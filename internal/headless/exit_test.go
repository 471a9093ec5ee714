package headless

import (
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	with := func(a report.Attribution, s ...report.Severity) *report.Report {
		r := &report.Report{Verdict: report.Verdict{Attribution: a}}
		w := report.Workload{Verdict: report.Verdict{Attribution: a}}
		for _, s := range s {
			w.Findings = append(w.Findings, report.Finding{Severity: s})
		}
		r.Workloads = append(r.Workloads, w)
		return r
	}
	cluster := with(report.Healthy)
	cluster.ClusterFindings = []report.Finding{{Severity: report.Warning}}
	unread := func(names ...report.Text) *report.Report {
		r := &report.Report{Verdict: report.Verdict{Attribution: report.Undetermined}, ClusterFindings: []report.Finding{{Severity: report.Critical}}}
		for _, n := range names {
			r.NotRead = append(r.NotRead, report.NotRead{Resource: n, Reason: "Forbidden"})
		}
		return r
	}
	narrow := unread("nodes", "deployments", "statefulsets")
	narrow.NotRead = append(narrow.NotRead, report.NotRead{Resource: "daemonsets", Namespace: "shop", Reason: "Forbidden"})
	onlyShop := unread("nodes", "daemonsets", "deployments", "statefulsets")
	onlyShop.Quiet = 1 // of the one namespace that may be read
	for name, tt := range map[string]struct {
		r                       *report.Report
		info, warning, critical int
	}{
		"nothing":                            {with(report.Healthy), 0, 0, 0},
		"info":                               {with(report.Healthy, report.Info), 1, 0, 0},
		"a person must act, by design":       {with(report.WaitingForOperator, report.Info), 1, 0, 0},
		"warning":                            {with(report.NodesBlockRollout, report.Info, report.Warning), 1, 1, 0},
		"critical":                           {with(report.RolloutBreaksNodes, report.Critical), 1, 1, 1},
		"a finding of the cluster":           {cluster, 1, 1, 0},
		"undetermined":                       {with(report.Undetermined), 1, 1, 1},
		"neither nodes nor workloads":        {unread("nodes", "daemonsets", "deployments", "statefulsets"), 2, 2, 2},
		"workloads of one namespace alone":   {onlyShop, 1, 1, 1},
		"nodes, but no workloads":            {unread("daemonsets", "deployments", "statefulsets"), 1, 1, 1},
		"workloads, but no nodes":            {unread("nodes"), 1, 1, 1},
		"workloads of one namespace missing": {narrow, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for threshold, want := range map[report.Severity]int{report.Info: tt.info, report.Warning: tt.warning, report.Critical: tt.critical} {
				if got := ExitCode(tt.r, threshold); got != want {
					t.Errorf("--fail-on %s: %d, want %d", threshold, got, want)
				}
			}
		})
	}
}
