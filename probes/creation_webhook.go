package probes

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// webhook is one webhook of a configuration, validating or mutating.
type webhook struct {
	kind, resource string // of the configuration: "MutatingWebhookConfiguration"
	config         string
	index          int
	name           string
	policy         *admissionv1.FailurePolicyType
	client         *admissionv1.WebhookClientConfig
	seconds        *int32
}

// webhook finds a webhook by its name, nil where none was read.
func (c *Diagnosis) webhook(name string) *webhook {
	for _, w := range c.s.ValidatingWebhooks {
		for i := range w.Webhooks {
			if h := &w.Webhooks[i]; h.Name == name {
				return &webhook{"ValidatingWebhookConfiguration", "validatingwebhookconfiguration", w.Name, i, name, h.FailurePolicy, &h.ClientConfig, h.TimeoutSeconds}
			}
		}
	}
	for _, w := range c.s.MutatingWebhooks {
		for i := range w.Webhooks {
			if h := &w.Webhooks[i]; h.Name == name {
				return &webhook{"MutatingWebhookConfiguration", "mutatingwebhookconfiguration", w.Name, i, name, h.FailurePolicy, &h.ClientConfig, h.TimeoutSeconds}
			}
		}
	}
	return nil
}

func (h *webhook) ignores() bool { return h.policy != nil && *h.policy == admissionv1.Ignore }

func (h *webhook) evidence() report.Evidence {
	parts := []string{"failurePolicy Fail"}
	if h.policy != nil {
		parts[0] = "failurePolicy " + string(*h.policy)
	}
	if s := h.client.Service; s != nil {
		parts = append(parts, fmt.Sprintf("Service %s/%s", s.Namespace, s.Name))
	} else if h.client.URL != nil {
		parts = append(parts, redact.Text(*h.client.URL))
	}
	if h.seconds != nil {
		parts = append(parts, fmt.Sprintf("timeout %d s", *h.seconds))
	}
	return report.Evidence{Source: report.Textf("%s %s, webhooks[%d] %s", h.kind, h.config, h.index, h.name), Value: report.Clean(strings.Join(parts, ", "))}
}

// letThrough is the command that lets requests pass while the webhook is away.
func (h *webhook) letThrough() string {
	return fmt.Sprintf(`kubectl patch %s %s --type=json -p='[{"op":"replace","path":"/webhooks/%d/failurePolicy","value":"Ignore"}]'`, h.resource, report.Word(h.config), h.index)
}

// serving is who answers for a Service.
type serving struct {
	namespace, name string
	service         *corev1.Service // nil where it was not read or does not exist
	ready, all      int             // endpoints, -1 where they were not read
	pods            []*corev1.Pod
	workload        string // that the Pods belong to, or that would make them; "" where unknown
}

// serving looks up a Service "namespace/name" with its endpoints, Pods and workload.
func (c *Diagnosis) serving(key string) *serving {
	if s, done := c.servings[key]; done {
		return s
	}
	ns, name, ok := strings.Cut(key, "/")
	if !ok {
		return nil
	}
	s := &serving{namespace: ns, name: name, ready: -1, all: -1}
	if c.servings == nil {
		c.servings = map[string]*serving{}
	}
	c.servings[key] = s
	if i := slices.IndexFunc(c.s.Services, func(s *corev1.Service) bool { return s.Namespace == ns && s.Name == name }); i >= 0 {
		s.service = c.s.Services[i]
	}
	named := map[string]bool{}
	if c.s.Read(cluster.EndpointSlices) {
		s.ready, s.all = 0, 0
		for _, e := range c.s.EndpointSlices {
			if e.Namespace != ns || e.Labels[discoveryv1.LabelServiceName] != name {
				continue
			}
			for _, ep := range e.Endpoints {
				s.all++
				if ep.Conditions.Ready == nil || *ep.Conditions.Ready {
					s.ready++
				}
				if ep.TargetRef != nil && ep.TargetRef.Kind == "Pod" {
					named[ep.TargetRef.Name] = true
				}
			}
		}
	}
	var selector labels.Selector
	if s.service != nil && len(s.service.Spec.Selector) > 0 {
		selector = labels.SelectorFromSet(s.service.Spec.Selector)
	}
	for _, p := range c.s.Pods {
		if p.Namespace == ns && !cluster.PodTerminal(p) && (named[p.Name] || selector != nil && selector.Matches(labels.Set(p.Labels))) {
			s.pods = append(s.pods, p)
		}
	}
	switch {
	case len(s.pods) > 0:
		s.workload = c.ownerText(s.pods[0])
	case selector != nil:
		s.workload = c.wouldMake(ns, selector)
	}
	return s
}

// wouldMake names the workload whose Pods a Service's selector would mean.
func (c *Diagnosis) wouldMake(namespace string, selector labels.Selector) string {
	for _, r := range c.replicated {
		if r.meta.Namespace == namespace && selector.Matches(labels.Set(r.template.Labels)) {
			return fmt.Sprintf("%s %s/%s", r.key.Kind, namespace, r.meta.Name)
		}
	}
	for _, d := range c.daemonSets {
		if d.ds.Namespace == namespace && selector.Matches(labels.Set(d.ds.Spec.Template.Labels)) {
			return fmt.Sprintf("DaemonSet %s/%s", namespace, d.ds.Name)
		}
	}
	return ""
}

// troubleOf is what is wrong with a Pod of any workload, as found already.
func (c *Diagnosis) troubleOf(p *corev1.Pod) *podTrouble {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil {
		return nil
	}
	for _, d := range c.daemonSets {
		if d.ds.UID == o.UID {
			return d.troubles[p.Name]
		}
	}
	for _, r := range c.replicated {
		if r.meta.Namespace == p.Namespace {
			if t := r.troubles[p.Name]; t != nil {
				return t
			}
		}
	}
	return nil
}

// blockedWorkload is the refusal that keeps a workload from having its Pods, by the
// name that ownerText gives.
func (c *Diagnosis) blockedWorkload(workload string) *blocked {
	for _, d := range c.daemonSets {
		if d.blocked != nil && d.blocked.workload == workload {
			return d.blocked
		}
	}
	for _, r := range c.replicated {
		if r.blocked != nil && r.blocked.workload == workload {
			return r.blocked
		}
	}
	return nil
}

// explainWebhook is about a webhook that could not be called: which, who should have
// answered, why not, and whether what it blocks is what it waits for.
func (c *Diagnosis) explainWebhook(b *blocked) explanation {
	f := &b.refusal
	x := explanation{summary: report.Textf("admission webhook %s does not answer: %s", f.Webhook, firstWords(f.Why, 140))}
	h := c.webhook(f.Webhook)
	target := f.Service
	pass := ""
	switch {
	case h != nil:
		x.evidence = append(x.evidence, h.evidence())
		if s := h.client.Service; s != nil && target == "" {
			target = s.Namespace + "/" + s.Name
		}
		pass = "; to let Pods be created meanwhile: " + h.letThrough()
		if h.ignores() {
			pass = ""
			x.grounds = append(x.grounds, "its failurePolicy is Ignore now: the next attempt may succeed")
		}
	case !c.s.Read(cluster.ValidatingWebhooks) || !c.s.Read(cluster.MutatingWebhooks):
		x.missing = append(x.missing, notReadText("webhook configurations", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"))
	default:
		x.grounds = append(x.grounds, report.Textf("no configuration names the webhook %s any more: the next attempt may succeed", f.Webhook))
	}
	if target == "" {
		x.recommend = fix{report.ActionFixCluster, report.Textf("bring %s back%s", or(redact.Text(f.URL), "the webhook "+f.Webhook), pass)}
		return x
	}
	s := c.serving(target)
	if s == nil {
		return x
	}
	c.whoAnswers(s, &x)
	command := fmt.Sprintf("kubectl -n %s get endpointslices -l %s=%s", report.Word(s.namespace), discoveryv1.LabelServiceName, report.Word(s.name))
	x.recommend = fix{report.ActionFixCluster, report.Textf("bring the webhook's Pods back (%s)%s", or(s.workload, command), pass)}
	if circle := c.circle(b, s); circle != "" {
		x.grounds = append([]report.Text{circle}, x.grounds...)
		x.summary += report.Textf("; a circle: %s", circle)
		x.recommend.why = report.Textf("break the circle: %s", circle)
		if pass != "" {
			x.recommend.why = report.Textf("break the circle: let Pods be created without the webhook, %s; when %s and then the webhook's Pods run, set Fail again", h.letThrough(), b.workload)
			x.watchOut = append(x.watchOut, report.Textf("while it is on Ignore, what the webhook %s checks or adds is missing from every new Pod; for good, exempt namespace %s by its namespaceSelector", f.Webhook, b.namespace))
		}
	}
	return x
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// whoAnswers says what is behind the webhook's Service.
func (c *Diagnosis) whoAnswers(s *serving, x *explanation) {
	source := report.Textf("Service %s/%s", s.namespace, s.name)
	switch {
	case s.service == nil && c.s.Read(cluster.Services):
		x.evidence = append(x.evidence, report.Evidence{Source: source, Value: "does not exist"})
		x.grounds = append(x.grounds, report.Textf("%s does not exist", source))
	case s.service == nil:
		x.missing = append(x.missing, notReadText(cluster.Services, "kubectl -n %s get service %s", s.namespace, s.name))
	}
	switch {
	case s.ready < 0:
		x.missing = append(x.missing, notReadText(cluster.EndpointSlices, "kubectl -n %s get endpointslices -l %s=%s", s.namespace, discoveryv1.LabelServiceName, s.name))
	case s.ready == 0:
		x.evidence = append(x.evidence, report.Evidence{Source: "EndpointSlices of " + source, Value: report.Textf("none of %s is ready", count(s.all, "endpoint"))})
		x.grounds = append(x.grounds, report.Textf("%s has no ready endpoint", source))
	default:
		x.evidence = append(x.evidence, report.Evidence{Source: "EndpointSlices of " + source, Value: report.Textf("%d of %s ready", s.ready, count(s.all, "endpoint"))})
	}
	for i, p := range s.pods {
		if i == claimsShown {
			break
		}
		state := "Ready"
		if !cluster.PodReady(p) {
			state = "not Ready"
		}
		if n := cluster.TargetNode(p); n != "" {
			state += " on " + n
			if st := c.nodes[n]; st != nil && st.failing() {
				state += ", which is " + readiness(st)
			}
		}
		if t := c.troubleOf(p); t != nil {
			state = fmt.Sprintf("%s: %s", t.code, t.summary)
		}
		x.evidence = append(x.evidence, report.Evidence{Source: report.Textf("Pod %s/%s (%s)", p.Namespace, p.Name, c.ownerText(p)), Value: report.Clean(state)})
	}
	if len(s.pods) == 0 && s.workload != "" {
		value := "has no Pod"
		if other := c.blockedWorkload(s.workload); other != nil {
			value = fmt.Sprintf("its Pods cannot be created: %s", firstWords(other.text, 200))
		}
		x.evidence = append(x.evidence, report.Evidence{Source: report.Textf("the webhook's %s", s.workload), Value: report.Clean(value)})
	}
}

// circle says how the webhook waits for what it blocks, "" where it does not.
func (c *Diagnosis) circle(b *blocked, s *serving) report.Text {
	hook := b.refusal.Webhook
	if s.workload != "" && s.workload == b.workload {
		return report.Textf("%s serves the webhook %s, which refuses its Pods while none of them runs", b.workload, hook)
	}
	if other := c.blockedWorkload(s.workload); other != nil && other.refusal.Webhook == hook && !c.anyReady(s) {
		return report.Textf("%s, which serves the webhook %s, cannot have Pods either: the webhook refuses them as well", s.workload, hook)
	}
	if c.anyReady(s) || b.template == nil {
		return ""
	}
	network, storage := networkAgent(&b.template.Spec), storageAgent(&b.template.Spec)
	for _, p := range s.pods {
		t, n := c.troubleOf(p), c.nodes[cluster.TargetNode(p)]
		onSick := n != nil && n.failing() && n.code == report.NodeNetworkNotReady
		waits := t != nil && t.ofNode && slices.ContainsFunc(t.nodes, func(n *nodeState) bool {
			return n.code == report.NodeNetworkNotReady || n.code == report.NodeNeverReady
		})
		switch {
		case network && (onSick || waits || t != nil && t.code == report.SandboxFailed):
			return report.Textf("the webhook's Pod %s/%s waits for the network that %s brings, whose Pods the webhook %s refuses", p.Namespace, p.Name, b.workload, hook)
		case storage && t != nil && (t.code == report.VolumeMountFailed || t.code == report.VolumeTopologyConflict):
			return report.Textf("the webhook's Pod %s/%s waits for a volume that %s serves, whose Pods the webhook %s refuses", p.Namespace, p.Name, b.workload, hook)
		case t != nil && t.code == report.UntoleratedTaint && c.taintOf(b, t):
			return report.Textf("the webhook's Pod %s/%s waits for a taint to go that %s takes away, whose Pods the webhook %s refuses", p.Namespace, p.Name, b.workload, hook)
		case n != nil && c.lacks(b, n.name) && (t == nil || t.ofNode || t.code == report.SandboxFailed || t.code == report.VolumeMountFailed):
			return report.Textf("the webhook's Pod %s/%s does not run on %s, where the Pod of %s is missing that the webhook %s refuses", p.Namespace, p.Name, n.name, b.workload, hook)
		}
	}
	return ""
}

func (c *Diagnosis) anyReady(s *serving) bool {
	return s.ready > 0 || s.ready < 0 && slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool {
		n := c.nodes[p.Spec.NodeName]
		return cluster.PodReady(p) && n != nil && !n.failing()
	})
}

// storageAgent tells whether a Pod registers a volume driver on its node.
func storageAgent(s *corev1.PodSpec) bool {
	return slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/var/lib/kubelet/plugins")
	})
}

// taintOf tells whether a taint that keeps a Pod waiting bears the name of the blocked
// workload: agents take away a taint of their own when they are ready.
func (c *Diagnosis) taintOf(b *blocked, t *podTrouble) bool {
	_, name, _ := strings.Cut(b.workload, "/")
	for _, e := range t.evidence {
		key := string(e.Value)
		if strings.Contains(string(e.Source), "spec.taints") || strings.HasPrefix(key, "has the taint ") {
			for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' }) {
				if len(word) > 3 && word != "node" && word != "agent" && strings.Contains(key, word) {
					return true
				}
			}
		}
	}
	return false
}

// lacks tells whether the node should have a Pod of the blocked DaemonSet and has none.
func (c *Diagnosis) lacks(b *blocked, node string) bool {
	for _, d := range c.daemonSets {
		if d.blocked == b {
			s := d.slots[node]
			return s != nil && s.State == cluster.SlotEmpty && s.ShouldRun
		}
	}
	return false
}

// refusedAgent is the workload whose refused Pods are why most of the failing nodes
// fail: a network agent that cannot be created where they lack it.
func (c *Diagnosis) refusedAgent(workloads []report.Workload) *report.Workload {
	for i := range workloads {
		w := &workloads[i]
		b := c.blockedWorkload(fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name))
		if b == nil || b.template == nil || w.Verdict.Attribution != report.ClusterBlocksPods || !networkAgent(&b.template.Spec) {
			continue
		}
		without, all := 0, c.independent()
		for _, n := range all {
			if c.lacks(b, n.name) && (n.code == report.NodeNetworkNotReady || n.code == report.NodeNeverReady) {
				without++
			}
		}
		if without > 0 && 2*without > len(all) {
			return w
		}
	}
	return nil
}
