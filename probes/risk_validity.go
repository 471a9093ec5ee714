package probes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// refused are reasons for which the API server would not take the object, as far as
// they can be told without asking it.
// Source: pkg/apis/apps/validation/validation.go.
func (p *planned) refused() []risk {
	var out []risk
	refuse := func(why report.Text, ev ...report.Evidence) {
		out = append(out, *breaks(report.AdmissionDenied, "the API server would refuse it: "+why, ev...))
	}
	sel, err := metav1.LabelSelectorAsSelector(p.selector)
	switch {
	case p.selector == nil || len(p.selector.MatchLabels)+len(p.selector.MatchExpressions) == 0:
		refuse("spec.selector is required and may not be empty", p.field("spec.selector", "absent or empty"))
	case err != nil:
		refuse("spec.selector cannot be understood", p.field("spec.selector", "%s", err))
	case !sel.Matches(labels.Set(p.template.Labels)):
		refuse("spec.selector does not match the labels of its own template", p.field("spec.selector", "%s", sel), p.field("spec.template.metadata.labels", "%s", labels.Set(p.template.Labels)))
	}
	if was := p.selectorBefore(); was != nil && p.selector != nil && !equality.Semantic.DeepEqual(was, p.selector) {
		refuse("spec.selector cannot be changed: make a workload of another name, or delete this one first",
			p.field("spec.selector", "%s; live %s", metav1.FormatLabelSelector(p.selector), metav1.FormatLabelSelector(was)))
	}
	if len(p.template.Spec.Containers) == 0 {
		refuse("the template has no containers", p.field("spec.template.spec.containers", "absent"))
	}
	if policy := p.template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		refuse("restartPolicy must be Always", p.field("spec.template.spec.restartPolicy", "%s", policy))
	}
	if p.isDaemonSet() && p.rolling && p.unavailable > 0 && p.surge > 0 {
		refuse("maxUnavailable and maxSurge may not both be set: one of them must be 0",
			p.field("spec.updateStrategy.rollingUpdate", "maxUnavailable %s, maxSurge %s", p.maxUnavailable, p.maxSurge))
	}
	return out
}

// selectorBefore is the live workload's selector, nil where there is none to compare.
func (p *planned) selectorBefore() *metav1.LabelSelector {
	if p.uid == "" {
		return nil
	}
	if p.d != nil {
		return p.d.ds.Spec.Selector
	}
	for _, d := range p.c.s.Deployments {
		if d.UID == p.uid {
			return d.Spec.Selector
		}
	}
	for _, s := range p.c.s.StatefulSets {
		if s.UID == p.uid {
			return s.Spec.Selector
		}
	}
	return nil
}

// selectorOverlap finds workloads of the namespace whose selector takes these Pods, or
// whose Pods this selector takes.
func (p *planned) selectorOverlap() *risk {
	mine, err := metav1.LabelSelectorAsSelector(p.selector)
	if err != nil || p.selector == nil {
		return nil
	}
	var who []string
	var ev []report.Evidence
	look := func(kind string, meta *metav1.ObjectMeta, uid types.UID, selector *metav1.LabelSelector, t *corev1.PodTemplateSpec) {
		if meta.Namespace != p.meta.Namespace || kind == string(p.key.Kind) && meta.Name == p.meta.Name || p.uid != "" && uid == p.uid {
			return
		}
		theirs, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || selector == nil {
			return
		}
		if theirs.Matches(labels.Set(p.template.Labels)) || mine.Matches(labels.Set(t.Labels)) {
			who = append(who, kind+"/"+meta.Name)
			ev = append(ev, report.Evidence{Source: report.Textf("%s %s spec.selector", kind, meta.Name), Value: report.Textf("%s", theirs)})
		}
	}
	for _, o := range p.c.s.DaemonSets {
		look("DaemonSet", &o.ObjectMeta, o.UID, o.Spec.Selector, &o.Spec.Template)
	}
	for _, o := range p.c.s.Deployments {
		look("Deployment", &o.ObjectMeta, o.UID, o.Spec.Selector, &o.Spec.Template)
	}
	for _, o := range p.c.s.StatefulSets {
		look("StatefulSet", &o.ObjectMeta, o.UID, o.Spec.Selector, &o.Spec.Template)
	}
	if len(who) == 0 {
		return nil
	}
	slices.Sort(who)
	return warning(report.SelectorOverlap, report.Textf("its selector and that of %s take the same Pods: budgets, counts and `kubectl logs -l` mix them up", strings.Join(who, ", ")),
		append([]report.Evidence{p.field("spec.selector", "%s", mine)}, ev...)...)
}
