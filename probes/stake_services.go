package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// maxLostServices bounds the findings of Services without endpoints.
const maxLostServices = 20

// lostService is a Service of which nodes of the incident took endpoints.
type lostService struct {
	svc *corev1.Service
	loss
}

func (l *lostService) name() string { return l.svc.Namespace + "/" + l.svc.Name }

// serviceStake finds the Services that lost their last endpoint to failing nodes, and
// those whose last ones stand on nodes that a spreading rollout reaches next. A Service
// that has no endpoints for other reasons (ExternalName, no selector, scaled to zero, a
// selector that means nothing) lost none.
func (c *Diagnosis) serviceStake(k *stake, x *endpointIndex) {
	if !k.anything() {
		return
	}
	if why := c.unreadEndpoints(); why != "" {
		k.say(report.StakeServices, report.StepUnknown, "", "whether Services lost their endpoints is not known: %s", why)
		return
	}
	dns := c.dnsServices()
	var lost, last []lostService
	for _, svc := range c.s.Services {
		if svc.Spec.Type == corev1.ServiceTypeExternalName || len(svc.Spec.Selector) == 0 || slices.Contains(dns, svc) {
			continue
		}
		key := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
		if !x.touches(k, key, svc) {
			continue
		}
		b := x.of(key)
		l := lostService{svc: svc, loss: c.lossOf(k, &b)}
		switch {
		case len(l.taken) == 0:
		case l.usable == 0 && l.explained():
			lost = append(lost, l)
		case l.usable > 0 && l.onNext+l.onBad == l.usable && l.onNext > 0:
			last = append(last, l)
		}
	}
	worst := func(a, b lostService) int {
		return cmp.Or(cmp.Compare(exposedRank(b.svc), exposedRank(a.svc)), cmp.Compare(b.total, a.total), strings.Compare(a.name(), b.name()))
	}
	slices.SortStableFunc(lost, worst)
	slices.SortStableFunc(last, worst)
	c.lostServices(k, lost)
	if len(last) > 0 {
		var parts []string
		for i := range last {
			parts = append(parts, last[i].name()+" "+ofAll(last[i].usable, last[i].total))
		}
		k.say(report.StakeServices, report.StepNotice, "", "%s lost endpoints, and what is left of %s stands on nodes that the rollout reaches next: %s",
			count(len(last), "Service")+" "+hasHave(len(last)), themIt(len(last)), names(parts, 4))
	}
	if len(lost)+len(last) == 0 {
		k.say(report.StakeServices, report.StepOK, "", "no Service lost its last endpoint to failing nodes (%s read)", count(len(c.s.Services), "Service"))
	}
}

// lostServices emits one finding for each Service, the worst first.
func (c *Diagnosis) lostServices(k *stake, lost []lostService) {
	if len(lost) == 0 {
		return
	}
	var briefs []string
	for i := range lost {
		l := &lost[i]
		briefs = append(briefs, l.name()+" "+ofAll(0, l.total))
		if i >= maxLostServices {
			continue
		}
		others := ""
		if more := len(lost) - maxLostServices; i == 0 && more > 0 {
			others = fmt.Sprintf("; so it is with %s more", count(more, "Service"))
		}
		text := fmt.Sprintf("0 of %s ready", count(l.total, "endpoint"))
		if slices.ContainsFunc(l.taken, func(e *endpoint) bool { return e.ready }) {
			text = fmt.Sprintf("%s, none that answers", count(l.total, "endpoint"))
		}
		elsewhere := ""
		if l.others > 0 {
			elsewhere = fmt.Sprintf("; %d on other nodes had failed by %s", l.others, itselfThem(l.others))
		}
		k.add(report.Finding{Code: report.ServiceWithoutEndpoints, Severity: report.ServiceWithoutEndpoints.Severity(false),
			Object: report.Object{Kind: "Service", Namespace: report.Clean(l.svc.Namespace), Name: report.Clean(l.svc.Name)}, Since: report.At(lostSince(l.taken)),
			Summary:  report.Textf("%s: %s: %d %s on failing nodes: %s%s%s", l.name(), text, len(l.taken), standVerb(len(l.taken)), c.nodesOfEndpoints(l.taken), elsewhere, others),
			Evidence: c.endpointEvidence(l.taken)})
	}
	brief := names(briefs, 2) + " endpoints"
	if len(briefs) > 2 {
		brief = fmt.Sprintf("%d Services without endpoints (%s)", len(briefs), briefs[0])
	}
	k.lines = append(k.lines, report.Stake{Topic: report.StakeServices, State: report.StepAnomaly, Brief: report.Clean(brief),
		Text: report.Textf("%s no ready endpoint left, all lost with failing nodes: %s", count(len(lost), "Service")+" "+hasHave(len(lost)), names(briefs, 6))})
}

func itselfThem(n int) string {
	if n == 1 {
		return "itself"
	}
	return "themselves"
}

func standVerb(n int) string {
	if n == 1 {
		return "stands"
	}
	return "stand"
}

// exposedRank puts what is reached from outside first.
func exposedRank(s *corev1.Service) int {
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		return 2
	case corev1.ServiceTypeNodePort:
		return 1
	}
	return 0
}

// unreadEndpoints says why it is not known what stands behind Services; "" where it is.
// Where slices are missing, the Pods tell as well, if all of them were read.
func (c *Diagnosis) unreadEndpoints() string {
	if why := c.unread(cluster.Services); why != "" {
		return why
	}
	if c.s.Read(cluster.Pods) && c.s.PodScope.All {
		return ""
	}
	return c.unread(cluster.EndpointSlices)
}

// touches tells whether an endpoint stands on a node of the incident, so that the
// others need not be looked at closely.
func (x *endpointIndex) touches(k *stake, key types.NamespacedName, svc *corev1.Service) bool {
	list := x.slices[key]
	for _, s := range list {
		for i := range s.Endpoints {
			if n := s.Endpoints[i].NodeName; n != nil && k.on[*n] {
				return true
			}
		}
	}
	if len(list) > 0 {
		return false
	}
	sel := labels.SelectorFromSet(svc.Spec.Selector)
	for _, n := range k.affected {
		for _, p := range x.c.s.PodsOn(n.name) {
			if p.Namespace == svc.Namespace && sel.Matches(labels.Set(p.Labels)) {
				return true
			}
		}
	}
	return false
}
