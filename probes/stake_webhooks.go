package probes

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// admissionHook is one webhook of either kind of configuration: what it asks to see, and who answers.
type admissionHook struct {
	kind, config, name string
	client             admissionv1.WebhookClientConfig
	policy             *admissionv1.FailurePolicyType
	rules              []admissionv1.RuleWithOperations
	namespaces         *metav1.LabelSelector
	objects            *metav1.LabelSelector
	conditions         int
}

func (c *Diagnosis) admissionHooks() []admissionHook {
	var out []admissionHook
	for _, w := range c.s.ValidatingWebhooks {
		for i := range w.Webhooks {
			x := &w.Webhooks[i]
			out = append(out, admissionHook{"ValidatingWebhookConfiguration", w.Name, x.Name, x.ClientConfig, x.FailurePolicy, x.Rules, x.NamespaceSelector, x.ObjectSelector, len(x.MatchConditions)})
		}
	}
	for _, w := range c.s.MutatingWebhooks {
		for i := range w.Webhooks {
			x := &w.Webhooks[i]
			out = append(out, admissionHook{"MutatingWebhookConfiguration", w.Name, x.Name, x.ClientConfig, x.FailurePolicy, x.Rules, x.NamespaceSelector, x.ObjectSelector, len(x.MatchConditions)})
		}
	}
	return out
}

// need is something that a cluster does, or a person does to mend it, and that a
// webhook which does not answer refuses.
type need struct {
	group, resource string // "pods", "nodes/status"
	operation       admissionv1.OperationType
	namespaced      bool
	text            string
}

// needs are what mending nodes and rollouts takes.
var needs = []need{
	{"", "pods", admissionv1.Create, true, "creating Pods"},
	{"", "pods", admissionv1.Delete, true, "deleting Pods"},
	{"", "pods", admissionv1.Update, true, "changing Pods"},
	{"", "pods/binding", admissionv1.Create, true, "placing Pods"},
	{"", "pods/eviction", admissionv1.Create, true, "evicting Pods"},
	{"", "pods/status", admissionv1.Update, true, "the status of Pods"},
	{"apps", "daemonsets", admissionv1.Update, true, "changing DaemonSets (freeze, rollback)"},
	{"apps", "controllerrevisions", admissionv1.Create, true, "storing revisions"},
	{"apps", "deployments", admissionv1.Update, true, "changing Deployments"},
	{"apps", "replicasets", admissionv1.Update, true, "scaling ReplicaSets"},
	{"", "nodes", admissionv1.Update, false, "changing Nodes (cordon, taints)"},
	{"", "nodes/status", admissionv1.Update, false, "the status of Nodes"},
	{"", "nodes", admissionv1.Create, false, "nodes that register"},
	{"coordination.k8s.io", "leases", admissionv1.Update, true, "heartbeats (Leases)"},
}

// matchesRule tells whether a webhook's rule asks for what the need does. The API
// server looks at an object in other versions as well, so the version does not decide.
// Source: apiserver pkg/admission/plugin/webhook/predicates/rules/rules.go, Matches.
func (n *need) matchesRule(r *admissionv1.RuleWithOperations) bool {
	if r.Scope != nil && (*r.Scope == admissionv1.NamespacedScope && !n.namespaced || *r.Scope == admissionv1.ClusterScope && n.namespaced) {
		return false
	}
	has := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }
	if !has(r.APIGroups, n.group) || !slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool { return o == admissionv1.OperationAll || o == n.operation }) {
		return false
	}
	resource, sub, _ := strings.Cut(n.resource, "/")
	return slices.ContainsFunc(r.Resources, func(want string) bool {
		res, s, hasSub := strings.Cut(want, "/")
		return (res == "*" || res == resource) && (s == sub || hasSub && s == "*")
	})
}

// blocks lists what the webhook refuses while it does not answer.
func (w *admissionHook) blocks() []string {
	var out []string
	for i := range needs {
		if slices.ContainsFunc(w.rules, func(r admissionv1.RuleWithOperations) bool { return needs[i].matchesRule(&r) }) {
			out = append(out, needs[i].text)
		}
	}
	return out
}

func (w *admissionHook) mustAnswer() bool { return w.policy == nil || *w.policy == admissionv1.Fail }

// webhookStake finds webhooks that must answer, stand in the way of mending, and run on
// failing nodes alone.
func (c *Diagnosis) webhookStake(k *stake, x *endpointIndex) {
	if !k.anything() {
		return
	}
	var missing []string
	for _, r := range []cluster.Resource{cluster.ValidatingWebhooks, cluster.MutatingWebhooks} {
		if why := c.unread(r); why != "" {
			missing = append(missing, why)
		}
	}
	if len(missing) == 2 {
		k.say(report.StakeWebhooks, report.StepUnknown, "", "whether webhooks run on failing nodes is not known: %s", strings.Join(missing, ", "))
		return
	}
	asked, broken := 0, 0
	var texts, unknown []string
	for _, w := range c.admissionHooks() {
		blocks := w.blocks()
		if !w.mustAnswer() || len(blocks) == 0 {
			continue
		}
		asked++
		f, why := c.webhookFinding(k, x, &w, blocks)
		switch {
		case f != nil:
			broken++
			k.add(*f)
			texts = append(texts, w.name+" blocks "+strings.Join(blocks[:min(len(blocks), 2)], ", "))
		case why != "":
			unknown = append(unknown, w.name+" ("+why+")")
		}
	}
	if broken > 0 {
		k.lines = append(k.lines, report.Stake{Topic: report.StakeWebhooks, State: report.StepAnomaly, Brief: report.Textf("%s on failing nodes", count(broken, "webhook")),
			Text: report.Textf("%s must answer and %s on failing nodes alone: %s", count(broken, "webhook"), standVerb(broken), names(texts, 4))})
	}
	if len(unknown) > 0 {
		k.say(report.StakeWebhooks, report.StepUnknown, "", "where %s not known: %s", count(len(unknown), "webhook")+" that must answer "+map[bool]string{true: "runs is", false: "run is"}[len(unknown) == 1], names(unknown, 3))
	}
	if len(missing) == 1 {
		k.say(report.StakeWebhooks, report.StepUnknown, "", "of webhooks only a part is known: %s", missing[0])
	}
	if broken+len(unknown)+len(missing) == 0 {
		k.say(report.StakeWebhooks, report.StepOK, "", "no webhook that must answer runs on failing nodes alone (%d looked at)", asked)
	}
}

// webhookFinding judges one webhook; why says what is not known of it.
func (c *Diagnosis) webhookFinding(k *stake, x *endpointIndex, w *admissionHook, blocks []string) (f *report.Finding, why string) {
	where, ev := "", []report.Evidence(nil)
	switch {
	case w.client.Service != nil:
		key := types.NamespacedName{Namespace: w.client.Service.Namespace, Name: w.client.Service.Name}
		b := x.of(key)
		if !b.known {
			if u := c.unreadEndpoints(); u != "" {
				return nil, u
			}
			if x.services[key] == nil {
				return nil, "" // it answers nobody, and no node is the reason
			}
			return nil, "Service " + key.String() + " has no EndpointSlice, and its Pods were not read"
		}
		l := c.lossOf(k, &b)
		on := slices.Clone(l.taken)
		for i := range b.endpoints {
			if e := &b.endpoints[i]; e.usable() && e.node != nil && k.on[e.node.name] {
				on = append(on, e)
			}
		}
		switch {
		case l.usable > l.onBad, len(on) == 0, l.usable == 0 && !l.explained():
			return nil, ""
		case l.usable == 0:
			where = fmt.Sprintf("none of %s of Service %s is ready: %s", count(l.total, "endpoint"), key, c.nodesOfEndpoints(on))
		default:
			where = fmt.Sprintf("all endpoints of Service %s that are ready (%d of %d) stand on failing nodes: %s", key, l.usable, l.total, c.nodesOfEndpoints(on))
		}
		ev = c.endpointEvidence(on)
	case w.client.URL != nil:
		u, err := url.Parse(*w.client.URL)
		if err != nil {
			return nil, ""
		}
		n := c.nodeAt(u.Hostname())
		if n == nil || !k.on[n.name] {
			return nil, "" // elsewhere, as far as addresses tell
		}
		where = fmt.Sprintf("its address is that of node %s (%s)", n.name, c.standing(n))
		ev = []report.Evidence{{Source: report.Textf("%s %s", w.kind, w.config), Value: report.Textf("%s: %s", w.name, u.Host)}}
	default:
		return nil, ""
	}
	ev = append([]report.Evidence{{Source: report.Textf("%s %s, webhooks[%s]", w.kind, w.config, w.name), Value: report.Textf("failurePolicy Fail; blocks %s", strings.Join(blocks, ", "))}}, ev...)
	text := fmt.Sprintf("webhook %s must answer, and %s; it blocks %s", w.name, where, names(blocks, 4))
	if note := c.selectorNote(w); note != "" {
		text += "; " + note
	}
	return &report.Finding{Code: report.WebhookOnBrokenNodes, Severity: report.WebhookOnBrokenNodes.Severity(false), Object: report.Object{Kind: report.Text(w.kind), Name: report.Clean(w.config)},
		Summary: report.Clean(text), Evidence: ev}, ""
}

// selectorNote says which Pods of the fix a webhook leaves alone.
func (c *Diagnosis) selectorNote(w *admissionHook) string {
	var parts []string
	var spared []string
	for _, ns := range c.namespacesOfTheFix() {
		if out, known := c.sparesNamespace(w.namespaces, ns); known && out {
			spared = append(spared, ns)
		}
	}
	if len(spared) > 0 {
		parts = append(parts, "its namespaceSelector leaves out "+names(spared, 3))
	}
	if s := w.objects; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		text := "only objects that its objectSelector means (" + metav1.FormatLabelSelector(s) + ")"
		if sel, err := metav1.LabelSelectorAsSelector(s); err == nil {
			for _, d := range c.fixedDaemonSets() {
				if !sel.Matches(labels.Set(d.ds.Spec.Template.Labels)) {
					text += ", not the Pods of " + d.ds.Namespace + "/" + d.ds.Name
				}
			}
		}
		parts = append(parts, text)
	}
	if w.conditions > 0 {
		parts = append(parts, "only where its matchConditions hold")
	}
	return strings.Join(parts, "; ")
}

// fixedDaemonSets are those that a person is about to mend.
func (c *Diagnosis) fixedDaemonSets() []*daemonSet {
	var out []*daemonSet
	for _, d := range c.daemonSets {
		if d.broke() || d.undetermined() {
			out = append(out, d)
		}
	}
	return out
}

func (c *Diagnosis) namespacesOfTheFix() []string {
	out := []string{metav1.NamespaceSystem}
	for _, d := range c.fixedDaemonSets() {
		if !slices.Contains(out, d.ds.Namespace) {
			out = append(out, d.ds.Namespace)
		}
	}
	return out
}

// sparesNamespace tells whether a namespaceSelector leaves a namespace out. Of a
// namespace that was not read only the label with its own name is known: one that
// asks for others cannot be judged.
func (c *Diagnosis) sparesNamespace(s *metav1.LabelSelector, name string) (out, known bool) {
	if s == nil {
		return false, true
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false, false
	}
	set := labels.Set{corev1.LabelMetadataName: name}
	for _, n := range c.s.Namespaces {
		if n.Name == name {
			for k, v := range n.Labels {
				set[k] = v
			}
			return !sel.Matches(set), true
		}
	}
	requirements, _ := sel.Requirements()
	for i := range requirements {
		r := &requirements[i]
		if r.Key() == corev1.LabelMetadataName && !r.Matches(set) {
			return true, true
		}
		if r.Key() != corev1.LabelMetadataName {
			known = true
		}
	}
	return false, !known
}
