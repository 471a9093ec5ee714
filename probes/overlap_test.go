package probes_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestSelectorsOverlapWhereTheyMatchEachOthersPods(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	in := func(k string, v ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: k, Operator: metav1.LabelSelectorOpIn, Values: v}}}
	}
	equal := func(l labels) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: l} }
	for _, tt := range []struct {
		name         string
		selA         *metav1.LabelSelector
		podsA        labels
		selB         *metav1.LabelSelector
		podsB        labels
		namespaceB   string
		wantA, wantB string
	}{
		{"the same", equal(labels{"app": "x"}), labels{"app": "x"}, equal(labels{"app": "x"}), labels{"app": "x", "v": "2"}, "a", " warning", " warning"},
		{"an expression", in("app", "x", "y"), labels{"app": "x"}, equal(labels{"app": "x"}), labels{"app": "x"}, "a", " warning", " warning"},
		{"one label of two", equal(labels{"app": "x", "role": "a"}), labels{"app": "x", "role": "a"}, equal(labels{"app": "x", "role": "b"}), labels{"app": "x", "role": "b"}, "a", "", ""},
		{"one is narrower", equal(labels{"app": "x"}), labels{"app": "x"}, equal(labels{"app": "x", "role": "b"}), labels{"app": "x", "role": "b"}, "a", " info", ""},
		{"another namespace", equal(labels{"app": "x"}), labels{"app": "x"}, equal(labels{"app": "x"}), labels{"app": "x"}, "b", "", ""},
		{"none at all", nil, labels{"app": "x"}, equal(labels{"app": "x"}), labels{"app": "x"}, "a", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newCovered(nil)
			one := int32(0)
			ds := plainDaemonSet("one", labels{"no": "node"}, "0")
			ds.Namespace, ds.Spec.Selector, ds.Spec.Template.Labels = "a", tt.selA, tt.podsA
			dep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespaceB, Name: "two", UID: types.UID("two")}, Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: tt.selB}}
			dep.Spec.Template.Labels = tt.podsB
			x.o.DaemonSets, x.o.Deployments = append(x.o.DaemonSets, ds), []*appsv1.Deployment{dep}
			r := probes.Diagnose(readAll(x.o), probes.Options{All: true}).Report
			a := severities(r.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: "a", Name: "one"}), report.SelectorOverlap)
			b := severities(r.Workload(report.WorkloadKey{Kind: "Deployment", Namespace: report.Text(tt.namespaceB), Name: "two"}), report.SelectorOverlap)
			if a != tt.wantA || b != tt.wantB {
				t.Errorf("found %q and %q, want %q and %q", a, b, tt.wantA, tt.wantB)
			}
		})
	}
}
