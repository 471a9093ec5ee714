package probes_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestWhatWasNotReadIsNotCalledHealthy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unread     []cluster.Resource
		reason     string
		namespace  string
		want       report.Attribution
		confidence report.Confidence
		missing    string
	}{
		"all of it":              {nil, "", "", report.Healthy, report.High, ""},
		"nodes alone":            {[]cluster.Resource{cluster.DaemonSets, cluster.Deployments, cluster.StatefulSets}, "Absent", "", report.Undetermined, report.Low, "daemonsets, deployments, statefulsets were not read"},
		"no DaemonSets in files": {[]cluster.Resource{cluster.DaemonSets}, "Absent", "", report.Healthy, report.Low, "daemonsets were not read"},
		"DaemonSets forbidden":   {[]cluster.Resource{cluster.DaemonSets}, "Forbidden", "", report.Undetermined, report.Low, "daemonsets were not read"},
		"no nodes":               {[]cluster.Resource{cluster.Nodes}, "Forbidden", "", report.Undetermined, report.Low, "nodes were not read"},
		"no StatefulSets":        {[]cluster.Resource{cluster.StatefulSets}, "Forbidden", "", report.Healthy, report.Medium, "statefulsets were not read"},
		"a misspelt namespace":   {nil, "", "kube-sytem", report.Healthy, report.Low, "namespace kube-sytem has no workload"},
	} {
		meta := cluster.Meta{AsOf: asOf, Source: cluster.Source{Type: "cluster"}, PodScope: cluster.PodScope{All: true}}
		for _, r := range tt.unread {
			meta.NotRead = append(meta.NotRead, cluster.NotRead{Resource: r, Reason: tt.reason})
		}
		o := cluster.Objects{Nodes: []*corev1.Node{machine("w1"), machine("w2")}}
		v := probes.Diagnose(cluster.New(o, meta), probes.Options{Namespace: tt.namespace}).Report.Verdict
		var missing []string
		for _, m := range v.Missing {
			missing = append(missing, string(m))
		}
		if got := strings.Join(missing, "; "); v.Attribution != tt.want || v.Confidence != tt.confidence || !strings.Contains(got, tt.missing) || tt.missing == "" && got != "" {
			t.Errorf("%s: %s %s, missing %q; wanted %s %s, %q (%s)", name, v.Attribution, v.Confidence, got, tt.want, tt.confidence, tt.missing, v.Summary)
		}
	}
}
