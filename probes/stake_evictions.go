package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	// ordinaryLeft is how long a Pod without tolerations of its own stays on a node
	// that is not Ready: admission gives it that many seconds.
	// Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
	ordinaryLeft = 300 * time.Second
	// overdueAfter is from when on a Pod that should be gone is not merely being told.
	overdueAfter = 30 * time.Second
	// maxEvictionNodes bounds the findings; the nodes whose Pods go first have one.
	maxEvictionNodes = 20
)

// nodeEvictions are the Pods of one node that taint-based eviction will take.
type nodeEvictions struct {
	node  *nodeState
	first time.Time
	pods  int
	by    map[string]int // by workload
	ev    []report.Evidence
	whole bool // all Pods of the node were read
}

// evictions is what taint-based eviction is going to do.
type evictions struct {
	nodes    []*nodeEvictions // by when it begins
	unread   []string         // tainted nodes whose Pods were not read and are not gone yet
	unreadT  time.Time        // when ordinary Pods of the first of them go
	overdue  int
	late     time.Time // when the first of those should have gone
	timeless int       // Pods under a taint that does not say since when it is there
}

// evictionStake says which Pods will be evicted from failing nodes and when, and why
// others will not be.
func (c *Diagnosis) evictionStake(k *stake) {
	if !slices.ContainsFunc(c.nodeList, func(n *nodeState) bool { return n.failing() && n.removal == "" }) {
		return
	}
	zones, allDown := c.zoneStates()
	if allDown {
		k.say(report.StakeEvictions, report.StepNotice, "no evictions: no node is Ready",
			"no zone has a Ready node: the node controller takes its NoExecute taints back, and nothing is evicted for now")
		return
	}
	e := c.readEvictions()
	down := slices.ContainsFunc(k.findings, func(f report.Finding) bool { return f.Code == report.ControllerManagerDown })
	c.pendingEvictions(k, e, down)
	c.waitingForTaint(k, zones, down)
	if e.overdue > 0 {
		why := "it was restarted and counts anew, or does not act"
		if down {
			why = "it is down"
		}
		k.say(report.StakeEvictions, report.StepNotice, "", "%s should have been evicted from %s on and %s not been told to go: kube-controller-manager does that, and %s", count(e.overdue, "Pod"), stamp(e.late), hasHave(e.overdue), why)
	}
	if e.timeless > 0 {
		k.say(report.StakeEvictions, report.StepNotice, "", "%s on nodes with a NoExecute taint that does not say since when it is there: when %s evicted is not known", count(e.timeless, "Pod"), isAreIt(e.timeless))
	}
	if !slices.ContainsFunc(k.lines, func(l report.Stake) bool { return l.Topic == report.StakeEvictions }) {
		k.say(report.StakeEvictions, report.StepOK, "", "no Pod waits for its eviction from a failing node")
	}
}

func hasHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func beVerb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func isAreIt(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

// podsOfNodeKnown tells whether every Pod of the node was read.
func (c *Diagnosis) podsOfNodeKnown(node string) bool {
	return c.s.Read(cluster.Pods) && (c.s.PodScope.All || c.s.PodScope.Nodes[node])
}

func (c *Diagnosis) readEvictions() evictions {
	var e evictions
	for _, n := range c.nodeList {
		if !n.failing() || n.removal != "" {
			continue
		}
		x := &nodeEvictions{node: n, by: map[string]int{}, whole: c.podsOfNodeKnown(n.name)}
		lefts := map[string]time.Duration{}
		var taint *corev1.Taint
		for _, p := range c.s.PodsOn(n.name) {
			ev, ok := cluster.Evicted(p, n.node)
			switch {
			case !ok:
				continue
			case ev.At.IsZero():
				e.timeless++
				continue
			case c.s.AsOf.Sub(ev.At) > overdueAfter:
				e.overdue++
				if e.late.IsZero() || ev.At.Before(e.late) {
					e.late = ev.At
				}
				continue
			}
			w := c.workloadOf(p)
			x.pods++
			x.by[w]++
			if left, seen := lefts[w]; !seen || ev.Left < left {
				lefts[w] = ev.Left
			}
			if x.first.IsZero() || ev.At.Before(x.first) {
				x.first, taint = ev.At, ev.Taint
			}
		}
		if x.pods > 0 {
			x.evidence(taint, lefts)
			e.nodes = append(e.nodes, x)
		}
		if at := ordinaryEviction(n.node); !x.whole && !at.IsZero() && at.After(c.s.AsOf) {
			e.unread = append(e.unread, n.name)
			if e.unreadT.IsZero() || at.Before(e.unreadT) {
				e.unreadT = at
			}
		}
	}
	slices.SortStableFunc(e.nodes, func(a, b *nodeEvictions) int { return cmp.Or(a.first.Compare(b.first), b.pods-a.pods) })
	return e
}

// ordinaryEviction is when ordinary Pods leave a node that carries the taint for not
// being Ready; zero where it does not, or does not say since when.
func ordinaryEviction(n *corev1.Node) time.Time {
	var at time.Time
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded != nil && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) {
			if due := t.TimeAdded.Add(ordinaryLeft); at.IsZero() || due.Before(at) {
				at = due
			}
		}
	}
	return at
}

func (x *nodeEvictions) evidence(taint *corev1.Taint, lefts map[string]time.Duration) {
	x.ev = append(x.ev, report.Evidence{Source: report.Textf("Node %s, spec.taints", x.node.name), Value: report.Textf("%s:%s", taint.Key, taint.Effect), At: report.At(taint.TimeAdded.Time)})
	for i, w := range byCount(x.by) {
		if i == 10 {
			break
		}
		value := fmt.Sprintf("%s, tolerated for %ds", count(x.by[w], "Pod"), int(lefts[w].Seconds()))
		if lefts[w] == 0 {
			value = count(x.by[w], "Pod") + ", not tolerated"
		}
		x.ev = append(x.ev, report.Evidence{Source: report.Textf("Pod.spec.tolerations (%s)", w), Value: report.Clean(value)})
	}
}

// byCount are the keys, those with the most first.
func byCount(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) })
	return keys
}

// counted writes "shop/web 6, shop/cart 2 and 3 more".
func counted(m map[string]int, most int) string {
	var parts []string
	for _, k := range byCount(m) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return names(parts, most)
}

// workloadOf names what a Pod belongs to: of a Deployment's Pod the Deployment.
func (c *Diagnosis) workloadOf(p *corev1.Pod) string {
	o := metav1.GetControllerOfNoCopy(p)
	if o == nil {
		return p.Namespace + "/" + p.Name
	}
	name := o.Name
	if o.Kind == "ReplicaSet" {
		if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
			name = strings.TrimSuffix(name, "-"+hash)
		}
	}
	return p.Namespace + "/" + name
}

// pendingEvictions emits what will be evicted, and says of which nodes it is not known.
func (c *Diagnosis) pendingEvictions(k *stake, e evictions, down bool) {
	unless := ""
	if down {
		unless = "; not before kube-controller-manager is back, which does it"
	}
	if len(e.nodes) > 0 {
		pods, by := 0, map[string]int{}
		for i, x := range e.nodes {
			pods += x.pods
			for w, n := range x.by {
				by[w] += n
			}
			if i >= maxEvictionNodes {
				continue
			}
			least := ""
			if !x.whole {
				least = "at least "
			}
			others := ""
			if more := len(e.nodes) - maxEvictionNodes; i == 0 && more > 0 {
				others = fmt.Sprintf("; of %d more nodes as well", more)
			}
			k.add(report.Finding{Code: report.EvictionPending, Severity: report.EvictionPending.Severity(false), Object: report.Object{Kind: "Node", Name: report.Clean(x.node.name)}, Node: report.Clean(x.node.name),
				Since: report.At(lastShown(x.node)), Summary: report.Textf("%s%s of %s %s evicted from %s on: %s%s%s", least, count(x.pods, "Pod"), x.node.name, beVerb(x.pods), stamp(x.first), counted(x.by, 4), others, unless), Evidence: x.ev})
		}
		first := e.nodes[0].first
		k.lines = append(k.lines, report.Stake{Topic: report.StakeEvictions, State: report.StepAnomaly, At: report.At(first), Brief: report.Textf("evictions from %s", stamp(first)),
			Text: report.Textf("%s evicted from %s on, from %s: %s%s", isAre(pods, "Pod"), stamp(first), count(len(e.nodes), "node"), counted(by, 4), unless)})
	}
	if n := len(e.unread); n > 0 {
		l := report.Stake{Topic: report.StakeEvictions, State: report.StepNotice, At: report.At(e.unreadT),
			Text: report.Textf("Pods of those nodes were not read; ordinary Pods go 300 s after the taint, from %s on: %s%s", stamp(e.unreadT), names(e.unread, 4), unless)}
		if len(e.nodes) == 0 {
			l.Brief = report.Textf("ordinary Pods are evicted from %s", stamp(e.unreadT))
		}
		k.lines = append(k.lines, l)
	}
}

// waitingForTaint says of failing nodes without the NoExecute taint when it comes at
// the earliest: the node controller taints node by node, and not at all where most of
// a small zone is down.
func (c *Diagnosis) waitingForTaint(k *stake, zones map[string]*zoneState, down bool) {
	var soon, never []string
	var first time.Time
	for _, z := range zones {
		for i, n := range z.waiting {
			at := c.earliestTaint(z, i)
			if at.IsZero() {
				never = append(never, n.name)
				continue
			}
			soon = append(soon, n.name)
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	slices.Sort(soon)
	slices.Sort(never)
	if len(never) > 0 {
		k.say(report.StakeEvictions, report.StepNotice, "", "%s no NoExecute taint and %s none while 55 %% or more of a zone of at most %d nodes are down: nothing is evicted there meanwhile (by the default flags): %s",
			count(len(never), "node")+" "+hasHave(len(never)), getGets(len(never)), largeZone, names(never, 4))
	}
	if len(soon) == 0 {
		return
	}
	if down {
		k.say(report.StakeEvictions, report.StepNotice, "", "%s no NoExecute taint, and get none before kube-controller-manager is back: %s", count(len(soon), "node")+" "+hasHave(len(soon)), names(soon, 4))
		return
	}
	due := first.Add(ordinaryLeft)
	l := report.Stake{Topic: report.StakeEvictions, State: report.StepNotice, At: report.At(due),
		Text: report.Textf("%s no NoExecute taint yet: it comes node by node, %s apart or more (by the default flags), and ordinary Pods go 300 s later, from %s on at the earliest: %s", count(len(soon), "node")+" "+hasHave(len(soon)), short(taintEvery), stamp(due), names(soon, 4))}
	if !slices.ContainsFunc(k.lines, func(l report.Stake) bool { return l.Topic == report.StakeEvictions && l.Brief != "" }) {
		l.Brief = report.Textf("evictions not before %s", stamp(due))
	}
	k.lines = append(k.lines, l)
}

func getGets(n int) string {
	if n == 1 {
		return "gets"
	}
	return "get"
}
