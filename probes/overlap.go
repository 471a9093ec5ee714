package probes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// selecting is a workload with what it selects and what its Pods are labelled.
type selecting struct {
	key      report.WorkloadKey
	selector labels.Selector
	equal    map[string]string // what the selector asks for literally
	pods     labels.Set
	findings *[]report.Finding // nil for one that the report has no entry of
}

func selectingOf(kind string, o metav1.Object, s *metav1.LabelSelector, pods map[string]string, findings *[]report.Finding) *selecting {
	if s == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || parsed.Empty() || o.GetDeletionTimestamp() != nil {
		return nil
	}
	x := &selecting{key: report.WorkloadKey{Kind: report.Clean(kind), Namespace: report.Clean(o.GetNamespace()), Name: report.Clean(o.GetName())}, selector: parsed, equal: map[string]string{}, pods: pods, findings: findings}
	for k, v := range s.MatchLabels {
		x.equal[k] = v
	}
	for _, e := range s.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1 {
			x.equal[e.Key] = e.Values[0]
		}
	}
	return x
}

// readOverlaps finds workloads of one namespace whose selectors match each other's
// Pods. Each keeps its own Pods by their owner references; a Pod without an owner is
// taken by whichever comes first, and budgets, autoscalers and `kubectl logs` mistake
// one's Pods for the other's.
func (c *Diagnosis) readOverlaps() {
	byNamespace := map[string][]*selecting{}
	add := func(namespace string, x *selecting) {
		if x != nil {
			byNamespace[namespace] = append(byNamespace[namespace], x)
		}
	}
	for _, d := range c.daemonSets {
		add(d.ds.Namespace, selectingOf("DaemonSet", d.ds, d.ds.Spec.Selector, d.ds.Spec.Template.Labels, &d.findings))
	}
	of := map[report.WorkloadKey]*replicated{}
	for _, r := range c.replicated {
		of[r.key] = r
	}
	listOf := func(kind string, o metav1.Object) *[]report.Finding {
		if r := of[report.WorkloadKey{Kind: report.Clean(kind), Namespace: report.Clean(o.GetNamespace()), Name: report.Clean(o.GetName())}]; r != nil {
			return &r.findings
		}
		return nil
	}
	for _, d := range c.s.Deployments {
		add(d.Namespace, selectingOf("Deployment", d, d.Spec.Selector, d.Spec.Template.Labels, listOf("Deployment", d)))
	}
	for _, s := range c.s.StatefulSets {
		add(s.Namespace, selectingOf("StatefulSet", s, s.Spec.Selector, s.Spec.Template.Labels, listOf("StatefulSet", s)))
	}
	for _, r := range c.s.ReplicaSets {
		if metav1.GetControllerOfNoCopy(r) == nil {
			add(r.Namespace, selectingOf("ReplicaSet", r, r.Spec.Selector, r.Spec.Template.Labels, nil))
		}
	}
	for _, ns := range sortedNames(byNamespace) {
		overlapsIn(byNamespace[ns])
	}
}

// overlapsIn looks at the workloads of one namespace. Only those that share the rarest
// label that a selector asks for are held against it.
func overlapsIn(list []*selecting) {
	if len(list) < 2 {
		return
	}
	labelled := map[[2]string][]*selecting{}
	for _, x := range list {
		for k, v := range x.pods {
			labelled[[2]string{k, v}] = append(labelled[[2]string{k, v}], x)
		}
	}
	for _, x := range list {
		candidates := list
		for k, v := range x.equal {
			if few := labelled[[2]string{k, v}]; len(few) < len(candidates) {
				candidates = few
			}
		}
		if x.findings == nil {
			continue
		}
		for _, other := range candidates {
			if other == x || !x.selector.Matches(other.pods) {
				continue
			}
			mutual := other.selector.Matches(x.pods)
			f := report.Finding{Code: report.SelectorOverlap, Severity: report.Info, Object: report.Object{Kind: x.key.Kind, Namespace: x.key.Namespace, Name: x.key.Name},
				Summary: report.Textf("its selector matches the Pods of %s/%s too, which has a narrower one", other.key.Kind, other.key.Name),
				Evidence: []report.Evidence{
					{Source: report.Textf("%s.spec.selector", x.key.Kind), Value: report.Clean(x.selector.String())},
					{Source: report.Textf("%s %s template labels", other.key.Kind, other.key.Name), Value: report.Clean(other.pods.String())}}}
			if mutual {
				f.Severity = report.Warning
				f.Summary = report.Textf("its selector and that of %s/%s match each other's Pods: give each a label of its own", other.key.Kind, other.key.Name)
				f.Evidence = append(f.Evidence, report.Evidence{Source: report.Textf("%s %s selector", other.key.Kind, other.key.Name), Value: report.Clean(other.selector.String())})
			}
			*x.findings = append(*x.findings, f)
		}
	}
}
