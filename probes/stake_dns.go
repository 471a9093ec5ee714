package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// dnsNames are names of the cluster DNS Service where it lacks the usual label.
var dnsNames = []string{"kube-dns", "coredns", "rke2-coredns-rke2-coredns", "rke2-coredns"}

// dnsServices are the Services of the cluster's DNS: by the label that its own
// manifest sets, by name, and OpenShift's.
func (c *Diagnosis) dnsServices() []*corev1.Service {
	var out []*corev1.Service
	for _, s := range c.s.Services {
		if len(s.Spec.Selector) == 0 {
			continue
		}
		switch {
		case s.Namespace == cluster.ControlPlaneNamespace && (s.Labels["k8s-app"] == "kube-dns" || slices.Contains(dnsNames, s.Name)),
			s.Namespace == "openshift-dns" && s.Name == "dns-default":
			out = append(out, s)
		}
	}
	return out
}

// dnsStake says how many of the cluster DNS's endpoints are left. While no node fails
// it speaks up only where none is: a rollout of its own passes through fewer.
func (c *Diagnosis) dnsStake(k *stake, x *endpointIndex) {
	if why := c.unreadEndpoints(); why != "" {
		if k.anything() {
			k.say(report.StakeDNS, report.StepUnknown, "", "how cluster DNS stands is not known: %s", why)
		}
		return
	}
	found := false
	seen := map[string]bool{} // metrics and upstream Services mean the same Pods
	for _, svc := range c.dnsServices() {
		sel := labels.SelectorFromSet(svc.Spec.Selector).String()
		if seen[svc.Namespace+sel] {
			continue
		}
		seen[svc.Namespace+sel] = true
		b := x.of(types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name})
		if !b.known {
			continue
		}
		found = true
		c.dnsService(k, svc, &b)
	}
	if !found && k.anything() {
		k.say(report.StakeDNS, report.StepNone, "", "no Service of the cluster's DNS is among those that were read")
	}
}

func (c *Diagnosis) dnsService(k *stake, svc *corev1.Service, b *backing) {
	l := c.lossOf(k, b)
	want, owner := c.wantedBehind(svc)
	if want == 0 && owner != "" {
		return // it was scaled to nothing: something else answers
	}
	total := max(l.total, want)
	name := svc.Namespace + "/" + svc.Name
	bad := l.onBad + len(l.taken)
	switch {
	case total == 0:
		return // nothing was ever behind it
	case l.usable == 0:
	case !k.anything():
		return
	case l.onBad == 0 && owner != "" && l.usable >= want, bad == 0 && l.usable >= total:
		// What is left of Pods on failing nodes has been made up for elsewhere.
		k.say(report.StakeDNS, report.StepOK, report.Textf("DNS %s", ofAll(l.usable, total)), "cluster DNS %s: %d of %s ready, none on failing nodes", name, l.usable, count(total, "endpoint"))
		return
	}
	parts := []string{fmt.Sprintf("cluster DNS has %d of %s ready", l.usable, count(total, "endpoint"))}
	if len(l.taken) > 0 {
		parts = append(parts, fmt.Sprintf("%d %s on failing nodes (%s)", len(l.taken), standVerb(len(l.taken)), c.nodesOfEndpoints(l.taken)))
	}
	var ready []*endpoint
	for i := range b.endpoints {
		if e := &b.endpoints[i]; e.usable() && e.node != nil && k.on[e.node.name] {
			ready = append(ready, e)
		}
	}
	if len(ready) > 0 {
		parts = append(parts, fmt.Sprintf("of those that are ready %d %s on failing nodes (%s)", len(ready), standVerb(len(ready)), c.nodesOfEndpoints(ready)))
	}
	ev := append([]report.Evidence{{Source: report.Textf("Service %s", name), Value: report.Textf("%d endpoints, %d ready", len(b.endpoints), l.usable)}}, c.endpointEvidence(append(slices.Clone(l.taken), ready...))...)
	if owner != "" {
		ev = append(ev, report.Evidence{Source: report.Clean(owner), Value: report.Textf("%d wanted", want)})
	}
	since := time.Time{}
	if len(l.taken) > 0 {
		since = lostSince(l.taken)
	}
	f := report.Finding{Code: report.ClusterDNSDegraded, Severity: report.ClusterDNSDegraded.Severity(false), Object: report.Object{Kind: "Service", Namespace: report.Clean(svc.Namespace), Name: report.Clean(svc.Name)},
		Since: report.At(since), Summary: report.Clean(strings.Join(parts, "; ")), Evidence: ev}
	k.add(f)
	brief := report.Textf("DNS %s", ofAll(l.usable, total))
	if len(ready) > 0 {
		brief = report.Textf("DNS %s, %d on failing nodes", ofAll(l.usable, total), len(ready))
	}
	k.lines = append(k.lines, report.Stake{Topic: report.StakeDNS, State: report.StepAnomaly, Text: f.Summary, Brief: brief})
}

// wantedBehind is how many Pods the workload behind a Service should have, and which
// one that is; "" where it was not found.
func (c *Diagnosis) wantedBehind(svc *corev1.Service) (int, string) {
	sel := labels.SelectorFromSet(svc.Spec.Selector)
	for _, d := range c.s.Deployments {
		if d.Namespace == svc.Namespace && sel.Matches(labels.Set(d.Spec.Template.Labels)) {
			return replicas(d.Spec.Replicas), "Deployment " + d.Namespace + "/" + d.Name
		}
	}
	for _, d := range c.s.DaemonSets {
		if d.Namespace == svc.Namespace && sel.Matches(labels.Set(d.Spec.Template.Labels)) {
			return int(d.Status.DesiredNumberScheduled), "DaemonSet " + d.Namespace + "/" + d.Name
		}
	}
	return 0, ""
}
