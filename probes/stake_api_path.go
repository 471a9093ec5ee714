package probes

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// apiHost is the host of an address such as "10.0.0.1", "10.0.0.1:6443",
// "[2001:db8::1]:6443", "https://api.example.com:6443" or "api.example.com".
func apiHost(s string) string {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "://") {
		if u, err := url.Parse(s); err == nil {
			return u.Hostname()
		}
	}
	if h, _, err := net.SplitHostPort(s); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}

// sameHost compares addresses by value and names without case.
func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX == nil && errY == nil {
		return x.Unmap().WithZone("") == y.Unmap().WithZone("")
	}
	return a != "" && strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}

// nodeAt is the node that has the address or name, or nil.
func (c *Diagnosis) nodeAt(host string) *nodeState {
	if host == "" {
		return nil
	}
	for _, n := range c.nodeList {
		if sameHost(n.name, host) || slices.ContainsFunc(n.node.Status.Addresses, func(a corev1.NodeAddress) bool { return sameHost(a.Address, host) }) {
			return n
		}
	}
	return nil
}

// apiPathStake says whether the address at which this program itself reaches the API
// server runs over nodes of the incident. Nothing is resolved or traced: an address
// that is no node's may be a load balancer's.
func (c *Diagnosis) apiPathStake(k *stake, x *endpointIndex) {
	if !k.anything() {
		return
	}
	host := apiHost(c.s.APIHost)
	say := func(state report.StepState, brief report.Text, format string, args ...any) {
		k.say(report.StakeAPIPath, state, brief, "your path to the API server"+format, args...)
	}
	risk := func(n *nodeState, why string, ev ...report.Evidence) {
		ev = append([]report.Evidence{{Source: "address of the API server that this program uses", Value: report.Clean(host)}}, ev...)
		f := report.Finding{Code: report.APIPathAtRisk, Severity: report.APIPathAtRisk.Severity(false), Object: report.Object{Kind: "Node", Name: report.Clean(n.name)}, Node: report.Clean(n.name),
			Summary: report.Textf("your path to the API server (%s) %s", host, why), Evidence: ev}
		k.add(f)
		k.lines = append(k.lines, report.Stake{Topic: report.StakeAPIPath, State: report.StepAnomaly, Text: f.Summary, Brief: report.Textf("over %s", n.name)})
	}
	nodeEvidence := func(n *nodeState) report.Evidence {
		value := c.standing(n)
		if k.next[n.name] {
			value += ", runs an older revision and is next in line"
		}
		return report.Evidence{Source: report.Textf("Node %s, status.addresses", n.name), Value: report.Clean(value)}
	}
	if host == "" {
		state := report.StepUnknown
		if c.s.Source.Type == "files" {
			state = report.StepNone // files were read elsewhere, and not over that path
		}
		say(state, "", ": the address was not recorded, so whether it runs over failing nodes is not known")
		return
	}
	if a, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && a.IsLoopback() {
		say(report.StepUnknown, "not known", " begins at this very machine (%s): where it goes on from there is not known", host)
		return
	}
	if n := c.nodeAt(host); n != nil {
		switch {
		case n.failing():
			risk(n, fmt.Sprintf("is that of node %s, which fails (%s)", n.name, c.standing(n)), nodeEvidence(n))
		case k.next[n.name]:
			risk(n, fmt.Sprintf("is that of node %s, which the rollout reaches next", n.name), nodeEvidence(n))
		default:
			say(report.StepOK, "not on them", " (%s) is that of node %s, which is %s", host, n.name, readiness(n))
		}
		return
	}
	if a := c.announcerOf(host); a != nil {
		c.announced(k, a, host, risk, say)
		return
	}
	if list, what := c.behindAddress(x, host); len(list) > 0 {
		var bad []string
		for _, n := range list {
			if k.on[n.name] || k.next[n.name] {
				bad = append(bad, n.name)
			}
		}
		switch {
		case len(bad) == len(list):
			risk(c.nodes[bad[0]], fmt.Sprintf("is that of %s, all of whose endpoints stand on nodes of the incident: %s", what, names(bad, 3)), report.Evidence{Source: report.Clean(what), Value: report.Clean(names(bad, 5))})
		case len(bad) > 0:
			say(report.StepNotice, report.Textf("%d of %d ways on them", len(bad), len(list)), " (%s) is that of %s: %d of its %d endpoints stand on nodes of the incident: %s", host, what, len(bad), len(list), names(bad, 3))
		default:
			say(report.StepOK, "not on them", " (%s) is that of %s: none of its endpoints stands on nodes of the incident", host, what)
		}
		return
	}
	var bad []string
	for _, n := range c.nodeList {
		if controlPlane(n.node) && (k.on[n.name] || k.next[n.name]) {
			bad = append(bad, n.name)
		}
	}
	if len(bad) == 0 {
		say(report.StepOK, "not on them", " (%s) is not on failing nodes: no node of the incident has that address or is of the control plane", host)
		return
	}
	say(report.StepUnknown, "not known", " (%s) is no node's address: whether it runs over the %s of the incident (%s) is not known", host, count(len(bad), "control-plane node"), names(bad, 3))
}

// announcer is who announces an address: a DaemonSet, or static Pods.
type announcer struct {
	name  string
	where string     // what in its template holds the address
	d     *daemonSet // nil for static Pods
	nodes []*nodeState
}

// announcerWords mark programs that announce an address for others.
var announcerWords = []string{"kube-vip", "keepalived", "haproxy", "metallb", "vip-speaker"}

// announcerOf finds who announces the address: a program of that kind, of which a
// setting holds it. A name alone is no evidence, and agents of other kinds are told
// where the API server is as well.
func (c *Diagnosis) announcerOf(host string) *announcer {
	for _, d := range c.daemonSets {
		if where := announces(d.ds.Name, &d.ds.Spec.Template.Spec, host); where != "" {
			return &announcer{name: d.String(), where: where, d: d, nodes: d.pool}
		}
	}
	var static *announcer
	for _, n := range c.nodeList {
		if !controlPlane(n.node) {
			continue
		}
		for _, p := range c.s.PodsOn(n.name) {
			if p.Annotations[corev1.MirrorPodAnnotationKey] == "" {
				continue
			}
			if where := announces(p.Name, &p.Spec, host); where != "" {
				if static == nil {
					static = &announcer{name: "static Pods such as " + p.Namespace + "/" + p.Name, where: where}
				}
				static.nodes = append(static.nodes, n)
			}
		}
	}
	return static
}

// announces says which setting of a program that announces addresses holds this one.
func announces(name string, spec *corev1.PodSpec, host string) string {
	for _, ct := range slices.Concat(spec.InitContainers, spec.Containers) {
		words := strings.ToLower(name + " " + ct.Name + " " + ct.Image)
		if !slices.ContainsFunc(announcerWords, func(w string) bool { return strings.Contains(words, w) }) {
			continue
		}
		for _, e := range ct.Env {
			if !strings.HasPrefix(e.Name, "KUBERNETES_") && holdsHost(e.Value, host) {
				return "environment variable " + e.Name + " of container " + ct.Name
			}
		}
		if slices.ContainsFunc(slices.Concat(ct.Command, ct.Args), func(a string) bool { return holdsHost(a, host) }) {
			return "an argument of container " + ct.Name
		}
	}
	return ""
}

// holdsHost tells whether a setting is the address, alone or beside a prefix length,
// a port, or others.
func holdsHost(value, host string) bool {
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' || r == '=' || r == ';' || r == '"' || r == '\'' }) {
		if before, _, ok := strings.Cut(word, "/"); ok && sameHost(before, host) {
			return true
		}
		if sameHost(apiHost(word), host) {
			return true
		}
	}
	return false
}

// announced judges an address by the nodes of who announces it.
func (c *Diagnosis) announced(k *stake, x *announcer, host string, risk func(*nodeState, string, ...report.Evidence), say func(report.StepState, report.Text, string, ...any)) {
	var bad []*nodeState
	for _, n := range x.nodes {
		if k.on[n.name] || k.next[n.name] {
			bad = append(bad, n)
		}
	}
	ev := report.Evidence{Source: report.Textf("%s, template", x.name), Value: report.Textf("%s holds %s", x.where, host)}
	share := fmt.Sprintf("%d of its %s", len(bad), count(len(x.nodes), "node"))
	blame := x.d != nil && (x.d.broke() || x.d.undetermined())
	switch {
	case len(x.nodes) == 0:
		say(report.StepUnknown, "not known", " (%s) is announced by %s, which runs nowhere that is known", host, x.name)
	case blame:
		n := x.nodes[0]
		if len(bad) > 0 {
			n = bad[0]
		}
		risk(n, fmt.Sprintf("is announced by %s, whose change is under suspicion; %s belong to the incident", x.name, share), ev)
	case len(bad) == 0:
		say(report.StepOK, "not on them", " (%s) is announced by %s, none of whose nodes belongs to the incident", host, x.name)
	case len(bad) == len(x.nodes):
		risk(bad[0], fmt.Sprintf("is announced by %s, all of whose nodes belong to the incident: %s", x.name, names(stateNames(bad), 3)), ev)
	default:
		say(report.StepNotice, report.Textf("%d of %d announcers on them", len(bad), len(x.nodes)), " (%s) is announced by %s; %s belong to the incident: %s", host, x.name, share, names(stateNames(bad), 3))
	}
}

// behindAddress finds the Service whose address that is, and the nodes behind it.
func (c *Diagnosis) behindAddress(x *endpointIndex, host string) ([]*nodeState, string) {
	for _, s := range c.s.Services {
		own := append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)
		own = append(append(own, s.Spec.ExternalIPs...), s.Spec.LoadBalancerIP)
		for _, i := range s.Status.LoadBalancer.Ingress {
			own = append(own, i.IP, i.Hostname)
		}
		if s.Namespace == "default" && s.Name == "kubernetes" {
			own = append(own, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
		}
		if !slices.ContainsFunc(own, func(a string) bool { return a != corev1.ClusterIPNone && sameHost(a, host) }) {
			continue
		}
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		var out []*nodeState
		for _, e := range x.of(key).endpoints {
			n := e.node
			if n == nil {
				n = c.nodeAt(e.name) // the API servers' own slice names no nodes
			}
			if n != nil && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out, "Service " + key.String()
	}
	return nil, ""
}
