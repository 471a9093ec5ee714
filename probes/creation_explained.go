package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// explain says what refuses a workload's Pods, with the object that does where it was
// read, and what to do about it.
func (c *Diagnosis) explain(b *blocked) explanation {
	if b.explained == nil {
		x := c.explanationOf(b)
		b.explained = &x
	}
	return *b.explained
}

func (c *Diagnosis) explanationOf(b *blocked) explanation {
	switch b.refusal.Code {
	case report.QuotaExceeded:
		return c.explainQuota(b)
	case report.PodSecurityViolation:
		return c.explainPodSecurity(b)
	case report.ServiceAccountMissing:
		return explainServiceAccount(b)
	case report.PriorityClassMissing:
		return c.explainPriorityClass(b)
	case report.AdmissionWebhookUnavailable:
		return c.explainWebhook(b)
	case report.AdmissionDenied:
		return c.explainDenied(b)
	}
	x := explanation{summary: report.Clean(firstWords(b.text, 200)), recommend: fix{report.ActionFixCluster, report.Textf("what the API server answered: %s", firstWords(b.text, 200))}}
	switch {
	case b.refusal.Unauthorized != "":
		x.summary = report.Textf("%s may not create Pods in namespace %s", b.refusal.Unauthorized, b.namespace)
		x.recommend.why = report.Textf("give the controller its role back: kubectl auth can-i create pods -n %s --as %s; kubectl get clusterrolebinding | grep system:controller", report.Word(b.namespace), report.Word(b.refusal.Unauthorized))
	case b.refusal.Invalid:
		x.summary = report.Textf("the Pod that the template makes is not valid: %s", firstWords(b.refusal.Why, 200))
		x.recommend = fix{report.ActionFixWorkload, report.Textf("mend the template: %s", firstWords(b.refusal.Why, 160))}
	}
	return x
}

// notReadText says that a kind which would tell more was not read.
func notReadText(what cluster.Resource, command string, args ...string) report.Text {
	words := make([]any, len(args))
	for i, a := range args {
		words[i] = report.Word(a)
	}
	return report.Textf("%s were not read: %s", what, fmt.Sprintf(command, words...))
}

func (c *Diagnosis) explainQuota(b *blocked) explanation {
	f, ns := &b.refusal, b.namespace
	if len(f.Scopes) > 0 {
		return c.explainScopes(b)
	}
	x := explanation{}
	q := c.quota(ns, f.Quota)
	switch {
	case f.MustSpecify != "":
		x.summary = report.Textf("quota %s of namespace %s wants every Pod to specify %s", f.Quota, ns, firstWords(f.MustSpecify, 120))
		x.recommend = fix{report.ActionFixWorkload, report.Textf("set in the template of %s what the quota counts: %s; or give the namespace a LimitRange with defaults: kubectl -n %s get limitrange", b.workload, firstWords(f.MustSpecify, 120), report.Word(ns))}
	case f.Quota == "":
		x.summary = report.Textf("no quota of namespace %s covers %s, of which none may be used without one", ns, amountNames(f.Requested))
		x.recommend = fix{report.ActionFixCluster, report.Textf("give the namespace a quota for %s: kubectl -n %s get resourcequota", amountNames(f.Requested), report.Word(ns))}
	case f.Why != "":
		x.summary = report.Textf("the usage of quota %s of namespace %s is not known yet", f.Quota, ns)
		x.recommend = fix{report.ActionFixCluster, report.Textf("the quota controller has not counted it: kubectl -n %s describe resourcequota %s, then kube-controller-manager", report.Word(ns), report.Word(f.Quota))}
	default:
		var parts []string
		for _, a := range f.Requested {
			parts = append(parts, fmt.Sprintf("%s: %s of %s used, %s more asked for", a.Resource, quantityOf(f.Used, a.Resource), quantityOf(f.Limited, a.Resource), a.Quantity))
		}
		x.summary = report.Textf("quota %s of namespace %s is used up: %s", f.Quota, ns, strings.Join(parts, "; "))
		x.recommend = fix{report.ActionFixCluster, report.Textf("raise the quota or free some of it: kubectl -n %s describe resourcequota %s; kubectl -n %s edit resourcequota %s", report.Word(ns), report.Word(f.Quota), report.Word(ns), report.Word(f.Quota))}
		x.evidence = append(x.evidence, c.quotaUsers(ns, f.Requested)...)
	}
	switch {
	case q != nil:
		x.evidence = append([]report.Evidence{quotaEvidence(q, f.Requested)}, x.evidence...)
		if s := scopeText(q); s != "" {
			x.grounds = append(x.grounds, report.Textf("quota %s counts Pods with %s only; the template asks for priority class %q", q.Name, s, b.priorityClass()))
		}
		if hasRoom(q, f.Requested) {
			x.grounds = append(x.grounds, report.Textf("quota %s has room now: the next attempt may succeed", q.Name))
		}
	case !c.s.Read(cluster.ResourceQuotas):
		x.missing = append(x.missing, notReadText(cluster.ResourceQuotas, "kubectl -n %s get resourcequota", ns))
	case f.Quota != "":
		x.grounds = append(x.grounds, report.Textf("quota %s does not exist any more: the next attempt may succeed", f.Quota))
	}
	return x
}

func (b *blocked) priorityClass() string {
	if b.template == nil {
		return ""
	}
	return b.template.Spec.PriorityClassName
}

func (c *Diagnosis) quota(namespace, name string) *corev1.ResourceQuota {
	for _, q := range c.s.ResourceQuotas {
		if q.Namespace == namespace && q.Name == name {
			return q
		}
	}
	return nil
}

// explainScopes is about a class of Pods that the API server admits only where a quota
// of the namespace covers it, as managed clusters do with the critical classes.
func (c *Diagnosis) explainScopes(b *blocked) explanation {
	class, ns := b.priorityClass(), b.namespace
	scope := b.refusal.Scopes[0]
	what := scope.Name + " " + scope.Operator
	if len(scope.Values) > 0 {
		what += " [" + strings.Join(scope.Values, " ") + "]"
	}
	x := explanation{summary: report.Textf("no quota of namespace %s admits Pods with %s", ns, what)}
	if scope.Name == "PriorityClass" && class != "" {
		x.summary = report.Textf("no quota of namespace %s admits the priority class %s", ns, class)
		x.evidence = append(x.evidence, report.Evidence{Source: "spec.template.spec.priorityClassName", Value: report.Clean(class)})
	}
	if class == "" {
		class = "the class"
	}
	x.recommend = fix{report.ActionFixCluster, report.Textf("give namespace %s a ResourceQuota with scopeSelector.matchExpressions [{scopeName: PriorityClass, operator: In, values: [%s]}] and a limit of pods (kubectl -n %s apply -f …), run the workload in kube-system, or take a class that needs none", ns, class, report.Word(ns))}
	if !c.s.Read(cluster.ResourceQuotas) {
		x.missing = append(x.missing, notReadText(cluster.ResourceQuotas, "kubectl get resourcequota -A"))
		return x
	}
	there, elsewhere := 0, []string{}
	for _, q := range c.s.ResourceQuotas {
		s := scopeText(q)
		switch {
		case q.Namespace == ns:
			there++
			if s == "" {
				s = "no scope"
			}
			x.evidence = append(x.evidence, report.Evidence{Source: report.Textf("ResourceQuota %s/%s", q.Namespace, q.Name), Value: report.Textf("has %s", s)})
		case strings.Contains(s, class):
			elsewhere = append(elsewhere, q.Namespace+"/"+q.Name)
		}
	}
	if there == 0 {
		x.grounds = append(x.grounds, report.Textf("namespace %s has no ResourceQuota at all", ns))
	}
	if len(elsewhere) > 0 {
		x.grounds = append(x.grounds, report.Textf("the quota that admits %s is %s", class, names(elsewhere, 3)))
	}
	return x
}

func scopeText(q *corev1.ResourceQuota) string {
	var out []string
	for _, s := range q.Spec.Scopes {
		out = append(out, string(s))
	}
	if q.Spec.ScopeSelector != nil {
		for _, e := range q.Spec.ScopeSelector.MatchExpressions {
			text := string(e.ScopeName) + " " + string(e.Operator)
			if len(e.Values) > 0 {
				text += " [" + strings.Join(e.Values, " ") + "]"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func quotaEvidence(q *corev1.ResourceQuota, asked []refusal.Amount) report.Evidence {
	var parts []string
	for _, r := range sortedResources(q.Status.Hard) {
		if len(asked) > 0 && !slices.ContainsFunc(asked, func(a refusal.Amount) bool { return a.Resource == string(r) }) {
			continue
		}
		used, hard := q.Status.Used[r], q.Status.Hard[r]
		parts = append(parts, fmt.Sprintf("%s: %s of %s used", r, used.String(), hard.String()))
	}
	if s := scopeText(q); s != "" {
		parts = append(parts, "for "+s)
	}
	return report.Evidence{Source: report.Textf("ResourceQuota %s/%s status", q.Namespace, q.Name), Value: report.Clean(firstWords(strings.Join(parts, "; "), 300))}
}

// hasRoom tells whether the quota would admit what was refused, as it stands now.
func hasRoom(q *corev1.ResourceQuota, asked []refusal.Amount) bool {
	for _, a := range asked {
		hard, limited := q.Status.Hard[corev1.ResourceName(a.Resource)]
		more, err := resource.ParseQuantity(a.Quantity)
		if err != nil {
			return false
		}
		used := q.Status.Used[corev1.ResourceName(a.Resource)].DeepCopy()
		if used.Add(more); limited && used.Cmp(hard) > 0 {
			return false
		}
	}
	return len(asked) > 0
}

// quotaUsers lists the Pods that have most of what the quota of their namespace limits.
func (c *Diagnosis) quotaUsers(namespace string, asked []refusal.Amount) []report.Evidence {
	if !c.s.PodScope.All || len(asked) == 0 {
		return nil
	}
	name := corev1.ResourceName(strings.TrimPrefix(asked[0].Resource, "requests."))
	if name == "count/pods" {
		name = corev1.ResourcePods
	}
	if !c.lookAtPods() {
		return nil
	}
	total, pods := map[string]*resource.Quantity{}, map[string]int{}
	for _, p := range c.s.Pods {
		if p.Namespace != namespace || cluster.PodTerminal(p) {
			continue
		}
		q, ok := cluster.PodRequests(&p.Spec)[name]
		if !ok {
			continue
		}
		owner := c.ownerText(p)
		if total[owner] == nil {
			total[owner] = &resource.Quantity{}
		}
		total[owner].Add(q)
		pods[owner]++
	}
	owners := make([]string, 0, len(total))
	for o := range total {
		owners = append(owners, o)
	}
	slices.SortFunc(owners, func(a, b string) int {
		if n := total[b].Cmp(*total[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	var out []report.Evidence
	for i, o := range owners {
		if i == claimsShown {
			break
		}
		out = append(out, report.Evidence{Source: report.Clean(o), Value: report.Textf("has %s %s in %s", amount(name, *total[o]), name, count(pods[o], "Pod"))})
	}
	return out
}

func amountNames(list []refusal.Amount) string {
	var out []string
	for _, a := range list {
		out = append(out, a.Resource)
	}
	return strings.Join(out, ", ")
}

func quantityOf(list []refusal.Amount, name string) string {
	for _, a := range list {
		if a.Resource == name {
			return a.Quantity
		}
	}
	return "?"
}

// labels of Pod Security on a namespace.
// Source: pod-security-admission api/constants.go.
const (
	enforceLabel        = "pod-security.kubernetes.io/enforce"
	enforceVersionLabel = "pod-security.kubernetes.io/enforce-version"
)

func (c *Diagnosis) explainPodSecurity(b *blocked) explanation {
	f, ns := &b.refusal, b.namespace
	x := explanation{summary: report.Textf("Pod Security %q of namespace %s forbids %s", f.Level, ns, firstWords(strings.Join(f.Violations, "; "), 200)),
		recommend: fix{report.ActionFixCluster, report.Textf("if %s must have these rights: kubectl label --overwrite namespace %s %s=privileged; otherwise take out of its template what violates the level: %s", b.workload, report.Word(ns), enforceLabel, firstWords(strings.Join(f.Violations, "; "), 160))}}
	for _, v := range f.Violations {
		x.grounds = append(x.grounds, report.Textf("violates %s:%s: %s", f.Level, f.Version, firstWords(v, 160)))
	}
	i := slices.IndexFunc(c.s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == ns })
	switch {
	case i >= 0:
		labels := c.s.Namespaces[i].Labels
		if level, ok := labels[enforceLabel]; ok {
			text := level
			if v := labels[enforceVersionLabel]; v != "" {
				text += ", version " + v
			}
			x.evidence = append(x.evidence, report.Evidence{Source: report.Textf("Namespace %s label %s", ns, enforceLabel), Value: report.Clean(text)})
			if level == "privileged" {
				x.grounds = append(x.grounds, report.Textf("namespace %s allows it now: the next attempt may succeed", ns))
			}
		} else {
			x.evidence = append(x.evidence, report.Evidence{Source: report.Textf("Namespace %s labels", ns), Value: report.Textf("no %s: the level is the API server's own default", enforceLabel)})
		}
	case !c.s.Read(cluster.Namespaces):
		x.missing = append(x.missing, notReadText(cluster.Namespaces, "kubectl get namespace %s --show-labels", ns))
	}
	return x
}

func explainServiceAccount(b *blocked) explanation {
	ns, name, ok := strings.Cut(b.refusal.ServiceAccount, "/")
	if !ok {
		ns, name = b.namespace, b.refusal.ServiceAccount
	}
	x := explanation{summary: report.Textf("service account %s/%s does not exist", ns, name),
		recommend: fix{report.ActionFixCluster, report.Textf("create it, with the roles that it needs: kubectl -n %s create serviceaccount %s; or name one that exists: kubectl -n %s get serviceaccounts", report.Word(ns), report.Word(name), report.Word(ns))}}
	if b.template != nil && b.template.Spec.ServiceAccountName != "" {
		x.evidence = append(x.evidence, report.Evidence{Source: "spec.template.spec.serviceAccountName", Value: report.Clean(b.template.Spec.ServiceAccountName)})
	}
	return x
}

func (c *Diagnosis) explainPriorityClass(b *blocked) explanation {
	name := b.refusal.PriorityClass
	x := explanation{summary: report.Textf("priority class %s does not exist", name),
		recommend: fix{report.ActionFixCluster, report.Textf("create it, or name one that exists in the template of %s: kubectl get priorityclasses", b.workload)}}
	x.evidence = append(x.evidence, report.Evidence{Source: "spec.template.spec.priorityClassName", Value: report.Clean(name)})
	if !c.s.Read(cluster.PriorityClasses) {
		x.missing = append(x.missing, notReadText(cluster.PriorityClasses, "kubectl get priorityclasses"))
		return x
	}
	var there []string
	for _, p := range c.s.PriorityClasses {
		if p.Name == name {
			x.grounds = append(x.grounds, report.Textf("priority class %s exists now: the next attempt may succeed", name))
		}
		there = append(there, p.Name)
	}
	x.evidence = append(x.evidence, report.Evidence{Source: "PriorityClasses", Value: report.Clean(names(there, 6))})
	return x
}

func (c *Diagnosis) explainDenied(b *blocked) explanation {
	f := &b.refusal
	switch {
	case f.Policy != "":
		x := explanation{summary: report.Textf("admission policy %s denies them: %s", f.Policy, firstWords(f.Why, 200)),
			recommend: fix{report.ActionFixWorkload, report.Textf("give the template of %s what the policy asks for, or exempt it in the policy or its binding: kubectl get validatingadmissionpolicy %s -o yaml", b.workload, report.Word(f.Policy))}}
		if f.Binding != "" {
			x.grounds = append(x.grounds, report.Textf("by the binding %s", f.Binding))
		}
		return x
	case f.Webhook != "":
		x := explanation{summary: report.Textf("admission webhook %s denies them: %s", f.Webhook, firstWords(f.Why, 200)),
			recommend: fix{report.ActionFixWorkload, report.Textf("give the template of %s what the webhook asks for, or exempt it there", b.workload)}}
		if h := c.webhook(f.Webhook); h != nil {
			x.evidence = append(x.evidence, h.evidence())
			x.recommend.why += report.Textf(": kubectl get %s %s -o yaml", h.resource, report.Word(h.config))
		}
		return x
	}
	return explanation{summary: report.Textf("admission refuses them: %s", firstWords(f.Why, 200)),
		recommend: fix{report.ActionFixWorkload, report.Textf("what the API server's admission asks for: %s; limits of the namespace: kubectl -n %s get limitrange,resourcequota", firstWords(f.Why, 160), report.Word(b.namespace))}}
}
