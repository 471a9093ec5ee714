package probes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// budgetsOver are the PodDisruptionBudgets that select Pods of a template.
func (c *Diagnosis) budgetsOver(namespace string, t *corev1.PodTemplateSpec) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range c.s.PodDisruptionBudgets {
		if b.Namespace != namespace || b.Spec.Selector == nil {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && sel.Matches(labels.Set(t.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

// unsuited says why a budget cannot be worked out for daemon Pods: a percentage and
// any maxUnavailable need the number of Pods that should be, which a DaemonSet has no
// scale subresource to tell. "" where an integer minAvailable is asked for.
// Source: pkg/controller/disruption/disruption.go, getExpectedPodCount.
func unsuited(b *policyv1.PodDisruptionBudget) (field, value string) {
	switch m := b.Spec.MinAvailable; {
	case b.Spec.MaxUnavailable != nil:
		return "spec.maxUnavailable", b.Spec.MaxUnavailable.String()
	case m != nil && m.Type == intstr.String && strings.HasSuffix(m.StrVal, "%"):
		return "spec.minAvailable", m.StrVal
	}
	return "", ""
}

// syncFailed is the condition by which the disruption controller says that it cannot
// work a budget out; nil where it does not. Every eviction is refused then.
// Source: pkg/controller/disruption/disruption.go, failSafe.
func syncFailed(b *policyv1.PodDisruptionBudget) *metav1.Condition {
	for i := range b.Status.Conditions {
		if c := &b.Status.Conditions[i]; c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
			return c
		}
	}
	return nil
}

// budgetFinding says of one budget over daemon Pods what it does instead of what is
// hoped for. It never slows a rollout: the controller deletes, and only evictions ask
// a budget.
func budgetFinding(b *policyv1.PodDisruptionBudget) report.Finding {
	f := report.Finding{Code: report.PDBDoesNotCoverDaemonSet, Severity: report.Warning,
		Object: report.Object{Kind: "PodDisruptionBudget", Namespace: report.Clean(b.Namespace), Name: report.Clean(b.Name)}}
	field, value := unsuited(b)
	if field != "" {
		f.Evidence = append(f.Evidence, report.Evidence{Source: report.Textf("PodDisruptionBudget.%s", field), Value: report.Clean(value)})
	}
	failed := syncFailed(b)
	switch {
	case failed != nil:
		f.Since = report.At(failed.LastTransitionTime.Time)
		f.Evidence = append(f.Evidence, report.Evidence{Source: "PodDisruptionBudget.status.conditions[DisruptionAllowed]",
			Value: report.Textf("False, %s: %s", failed.Reason, firstWords(failed.Message, 200)), At: report.At(failed.LastTransitionTime.Time)})
		f.Summary = "the budget cannot be worked out for Pods of a DaemonSet: every eviction of them is refused, which blocks drains, and no rollout is slowed by it"
		if field != "" {
			f.Summary = report.Textf("%s %s cannot be worked out for Pods of a DaemonSet: every eviction of them is refused, which blocks drains, and no rollout is slowed by it", strings.TrimPrefix(field, "spec."), value)
		}
	case field != "":
		f.Summary = report.Textf("%s %s cannot be worked out for Pods of a DaemonSet, only an integer minAvailable can: evictions of them will be refused, and no rollout is slowed by it", strings.TrimPrefix(field, "spec."), value)
	default:
		f.Severity = report.Info
		value := "absent"
		if b.Spec.MinAvailable != nil {
			value = b.Spec.MinAvailable.String()
		}
		f.Summary = "the budget holds for evictions alone: the DaemonSet's controller deletes, and does not ask it"
		f.Evidence = append(f.Evidence, report.Evidence{Source: "PodDisruptionBudget.spec.minAvailable", Value: report.Clean(value)})
	}
	return f
}

// budgetFindings are those of a DaemonSet outside a preflight: the budgets that their
// controller reports as failed.
func (c *Diagnosis) budgetFindings(d *daemonSet) {
	if len(c.s.PodDisruptionBudgets) == 0 || !c.s.Read(cluster.PodDisruptionBudgets) {
		return
	}
	for _, b := range c.budgetsOver(d.ds.Namespace, &d.ds.Spec.Template) {
		if syncFailed(b) != nil {
			d.findings = append(d.findings, budgetFinding(b))
		}
	}
}

// requestFindings explains evictions of Pods that request nothing of what ran short.
func (c *Diagnosis) requestFindings(key report.WorkloadKey, t *corev1.PodTemplateSpec, pods []*corev1.Pod) []report.Finding {
	i := slices.IndexFunc(pods, evictedBeyondRequest)
	if i < 0 {
		return nil
	}
	r := (&planned{c: c, key: key, template: t}).noResourceRequests()
	if r == nil {
		return nil
	}
	pod := pods[i]
	return []report.Finding{{Code: r.code, Severity: report.Info, Object: report.Object(key),
		Summary:  "it requests nothing of what ran short: whatever it uses is beyond its request, and it is evicted first",
		Evidence: append(r.evidence, report.Evidence{Source: report.Textf("Pod %s status.message", pod.Name), Value: report.Clean(firstWords(pod.Status.Message, 240))})}}
}

// evictedBeyondRequest tells of a Pod that the kubelet evicted for using more than a
// request of 0.
// Source: pkg/kubelet/eviction/helpers.go, evictionMessage.
func evictedBeyondRequest(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" && strings.Contains(p.Status.Message, "request is 0,")
}
