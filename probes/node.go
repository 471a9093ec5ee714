package probes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	// falseDelay is how long a kubelet takes at most to say Ready=False: it polls
	// the runtime every 5 s and posts on its next 10 s tick.
	falseDelay = 15 * time.Second
	// renewEvery bounds when a kubelet that renewed its Lease can have died: the
	// next renewal, 10 s later, and as long again for retries.
	renewEvery = 20 * time.Second
	// leaseDuration is spec.leaseDurationSeconds of a kubelet's Lease.
	leaseDuration = 40 * time.Second
)

// episode is one stretch of time in which a node was not Ready.
type episode struct {
	status  corev1.ConditionStatus // False or Unknown, as it first showed
	onset   cluster.Interval       // when the trouble began, not when it showed
	shown   time.Time              // when the condition changed
	end     time.Time              // zero while it lasts
	reason  string
	message string
	unclear string // why the onset is not known, "" where it is
	seen    bool   // the change was watched, or an event tells of it
}

// nodeState is one node's health.
type nodeState struct {
	node     *corev1.Node
	name     string
	ready    corev1.ConditionStatus
	episodes []episode // by onset
	findings []report.Finding
	code     report.Code // the most telling of findings, "" for a healthy node

	neverReady  bool
	starting    bool // it joined so recently that it may still become Ready
	leaseStale  bool
	flaps       int
	removal     string // what says that the node is being taken away, ""
	shutdown    bool
	rebootedAt  time.Time
	restartedAt time.Time // its kubelet
	cordonedAt  time.Time // zero where unknown or not cordoned
	pressure    string
	oomAt       time.Time // its kernel last killed a process for want of memory on the whole node
}

// exhausted tells whether the node ran out of memory, disk or processes, before a time
// and not long before it.
func (n *nodeState) exhausted(before time.Time) bool {
	if n.pressure != "" {
		return true
	}
	d := before.Sub(n.oomAt)
	return !n.oomAt.IsZero() && d > -time.Minute && d < 30*time.Minute
}

// startingFor is how long a node that joined may take to become Ready before that is a
// trouble: the network agent's image has to be pulled first. The node controller itself
// waits a minute for the first status.
// Source: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go, NodeStartupGracePeriod.
const startingFor = 3 * time.Minute

// failing tells whether the node is in trouble now.
func (n *nodeState) failing() bool {
	return !n.starting && (n.ready != corev1.ConditionTrue || n.leaseStale)
}

// reachable tells whether a change made through the API takes effect on the node.
func (n *nodeState) reachable() bool {
	return n.ready != corev1.ConditionUnknown && !n.leaseStale
}

// current is the episode that lasts, or nil.
func (n *nodeState) current() *episode {
	if k := len(n.episodes) - 1; k >= 0 && n.episodes[k].end.IsZero() {
		return &n.episodes[k]
	}
	return nil
}

// trouble is the episode that counts for a rollout that began at start: the one
// that lasts, unless an earlier one since then has already ended and the present
// one is its repetition; the first since start otherwise.
func (n *nodeState) trouble(start time.Time) *episode {
	cur := n.current()
	if cur != nil && !cur.onset.IsZero() && cur.onset.To.Before(start) {
		return cur
	}
	for i := range n.episodes {
		if e := &n.episodes[i]; !e.onset.IsZero() && !e.onset.To.Before(start) {
			return e
		}
	}
	return cur
}

func (c *Diagnosis) nodeStates() {
	c.nodes = make(map[string]*nodeState, len(c.s.Nodes))
	c.grace, _ = c.s.Grace()
	c.leaseNow = leaseReference(c.s)
	c.managerStarted = managerStarted(c.s)
	for _, n := range c.s.Nodes {
		st := &nodeState{node: n, name: n.Name, ready: cluster.NodeReadiness(n)}
		c.readEpisodes(st)
		c.readSigns(st)
		c.nodeFindings(st)
		c.nodes[n.Name] = st
		c.nodeList = append(c.nodeList, st)
	}
}

// leaseReference is the moment against which Leases are judged: Leases may have
// been read somewhat before the rest, and then all of them look old.
func leaseReference(s *cluster.Snapshot) time.Time {
	if f := s.Freshness[cluster.Leases]; f.Broken != "" && !f.Since.IsZero() && f.Since.Before(s.AsOf) {
		return f.Since // nobody has looked since; they did not grow old
	}
	var newest time.Time
	for _, n := range s.Nodes {
		newest = maxTime(newest, cluster.LeaseRenewed(s.NodeLease(n.Name)))
	}
	// With few Leases read, all of them of suspicious nodes, old ones are the finding.
	if !s.AllLeases || newest.IsZero() || newest.After(s.AsOf) {
		return s.AsOf
	}
	if s.AsOf.Sub(newest) > renewEvery {
		return newest.Add(renewEvery / 2)
	}
	return s.AsOf
}

func (c *Diagnosis) readEpisodes(st *nodeState) {
	var eps []episode
	add := func(e episode) {
		for i := range eps {
			if sameTrouble(&eps[i], &e) {
				merge(&eps[i], &e)
				return
			}
		}
		eps = append(eps, e)
	}
	ts := c.s.History.Node(st.name).Transitions
	for i, t := range ts {
		if t.To == corev1.ConditionTrue {
			continue
		}
		e := episode{status: t.To, shown: t.At, reason: t.Reason, message: t.Message, seen: !t.First}
		e.onset = c.onsetOf(t.To, t.At, t.LeaseRenewed)
		if i+1 < len(ts) {
			e.end = ts[i+1].At
		}
		if i > 0 && ts[i-1].To == corev1.ConditionFalse && t.To == corev1.ConditionUnknown {
			// The kubelet had said False before it fell silent: one trouble.
			eps[len(eps)-1].end = e.end
			continue
		}
		add(e)
	}
	if cond := cluster.NodeCondition(st.node, corev1.NodeReady); cond != nil && cond.Status != corev1.ConditionTrue {
		renewed := cluster.LeaseRenewed(c.s.NodeLease(st.name))
		e := episode{status: cond.Status, shown: cond.LastTransitionTime.Time, reason: cond.Reason, message: cond.Message}
		if cond.Status == corev1.ConditionFalse {
			e.shown = e.shown.Add(-c.skewOf(st.node)) // by the kubelet's clock
		}
		e.onset = c.onsetOf(cond.Status, e.shown, renewed)
		if cond.Status == corev1.ConditionUnknown && c.podsStayReady(st.name, e.shown) {
			e.unclear = "Pods on it are still Ready, so the node had not been Ready before it turned Unknown, or the controller manager restarted meanwhile"
		}
		add(e)
	}
	c.episodesFromEvents(st, add)
	slices.SortFunc(eps, func(a, b episode) int { return a.shown.Compare(b.shown) })
	if st.ready == corev1.ConditionTrue {
		if cond := cluster.NodeCondition(st.node, corev1.NodeReady); cond != nil {
			for i := range eps {
				if eps[i].end.IsZero() {
					eps[i].end = cond.LastTransitionTime.Time
				}
			}
		}
	} else {
		for i := range eps[:max(0, len(eps)-1)] {
			if eps[i].end.IsZero() {
				eps[i].end = eps[i+1].shown
			}
		}
	}
	st.episodes = eps
}

// skewOf is how far a node's clock is ahead of the API server's: by its Lease or, where
// that was not read, by the kubelet's last write of the node's status, which carries
// the time of both. 0 where neither tells.
func (c *Diagnosis) skewOf(n *corev1.Node) time.Duration {
	if l := c.s.NodeLease(n.Name); l != nil {
		return cluster.LeaseSkew(l)
	}
	cond := cluster.NodeCondition(n, corev1.NodeReady)
	if cond == nil || cond.LastHeartbeatTime.IsZero() {
		return 0
	}
	for _, f := range n.ManagedFields {
		if f.Manager == "kubelet" && f.Subresource == "status" && f.Time != nil {
			if d := cond.LastHeartbeatTime.Sub(f.Time.Time); d.Abs() > skew && d.Abs() < time.Hour {
				return d
			}
		}
	}
	return 0
}

// onsetOf is when a trouble that showed at a time began: a kubelet that fell
// silent did so soon after its last heartbeat, one that says False noticed within
// seconds.
func (c *Diagnosis) onsetOf(status corev1.ConditionStatus, shown, renewed time.Time) cluster.Interval {
	if status == corev1.ConditionFalse {
		return cluster.Interval{From: shown.Add(-falseDelay), To: shown, Source: "Ready=False"}
	}
	if !renewed.IsZero() && renewed.Before(shown) && shown.Sub(renewed) < c.grace+5*time.Minute {
		to := renewed.Add(renewEvery)
		if to.After(shown) {
			to = shown
		}
		return cluster.Interval{From: renewed, To: to, Source: "Lease.spec.renewTime"}
	}
	return cluster.Interval{From: shown.Add(-c.silentFor(shown)), To: shown.Add(-c.grace), Source: "Ready=Unknown less the grace period"}
}

// podsStayReady tells whether Pods of an Unknown node are Ready although the node
// controller marks them when it finds a Ready node silent.
func (c *Diagnosis) podsStayReady(node string, shown time.Time) bool {
	ready := false
	for _, p := range c.s.PodsOn(node) {
		cond := cluster.PodCondition(p, corev1.PodReady)
		switch {
		case cond == nil || p.Spec.NodeName == "":
		case cond.Status == corev1.ConditionTrue:
			ready = true
		case cond.LastTransitionTime.Sub(shown).Abs() <= 10*time.Second:
			return false
		}
	}
	return ready
}

func (c *Diagnosis) episodesFromEvents(st *nodeState, add func(episode)) {
	events := c.s.EventsOf("Node", "", st.name)
	readyAgain := func(after time.Time) time.Time {
		for _, e := range events {
			if e.Reason == "NodeReady" {
				for _, t := range []time.Time{cluster.EventOnset(e), cluster.EventLast(e)} {
					if t.After(after) {
						return t
					}
				}
			}
		}
		return time.Time{}
	}
	for _, e := range events {
		if e.Reason != "NodeNotReady" {
			continue
		}
		times := []time.Time{cluster.EventOnset(e)}
		if last := cluster.EventLast(e); e.Count > 1 && last.Sub(times[0]) > falseDelay {
			times = append(times, last)
		}
		if e.Count > 1 {
			st.flaps = max(st.flaps, int(e.Count))
		}
		for _, t := range times {
			ep := episode{shown: t, end: readyAgain(t), reason: e.Reason, seen: true}
			if cluster.EventSource(e) == "kubelet" {
				ep.status = corev1.ConditionFalse
				ep.onset = cluster.Interval{From: t.Add(-falseDelay), To: t, Source: "event NodeNotReady of the kubelet"}
			} else {
				ep.status = corev1.ConditionUnknown
				ep.onset = cluster.Interval{From: t.Add(-c.silentFor(t)), To: t.Add(-c.grace), Source: "event NodeNotReady of the node controller, less the grace period"}
			}
			if ep.end.IsZero() && st.ready == corev1.ConditionTrue {
				ep.end = cluster.NodeCondition(st.node, corev1.NodeReady).LastTransitionTime.Time
			}
			add(ep)
		}
	}
}

// sameTrouble tells whether two observations are of one trouble: they showed at
// about the same time, or the second is the silence that followed a Ready=False.
func sameTrouble(a, b *episode) bool {
	if a.shown.Sub(b.shown).Abs() <= falseDelay {
		return true
	}
	first, second := a, b
	if second.shown.Before(first.shown) {
		first, second = second, first
	}
	return first.status == corev1.ConditionFalse && second.status == corev1.ConditionUnknown &&
		(first.end.IsZero() || first.end.After(second.shown) || first.end.Equal(second.shown))
}

// merge keeps what is known better: the earlier beginning, the narrower onset.
func merge(into, e *episode) {
	into.seen = into.seen || e.seen
	if e.unclear != "" {
		into.unclear = e.unclear
	}
	if into.seen {
		into.unclear = "" // it was Ready until then
	}
	if e.shown.Before(into.shown.Add(-falseDelay)) {
		into.status, into.onset, into.shown, into.unclear = e.status, e.onset, e.shown, e.unclear
	} else if into.status == e.status && !e.onset.IsZero() && e.onset.Width() < into.onset.Width() {
		into.onset = e.onset
	}
	if into.message == "" {
		into.reason, into.message = e.reason, e.message
	}
	if into.end.IsZero() || e.end.IsZero() {
		into.end = time.Time{}
	} else if e.end.After(into.end) {
		into.end = e.end
	}
}

// removalTaints are set by what takes nodes away on purpose.
var removalTaints = []string{
	"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
	"aws-node-termination-handler/", "cloud.google.com/impending-node-termination",
	"node.kubernetes.io/spot-termination", "kubernetes.azure.com/scalesetpriority-eviction",
}

func (c *Diagnosis) readSigns(st *nodeState) {
	n := st.node
	if n.DeletionTimestamp != nil {
		st.removal = "metadata.deletionTimestamp"
	}
	for _, t := range n.Spec.Taints {
		if slices.ContainsFunc(removalTaints, func(p string) bool { return strings.HasPrefix(t.Key, p) }) {
			st.removal = "taint " + t.Key
		}
		switch t.Key {
		case "node.cloudprovider.kubernetes.io/shutdown":
			st.shutdown = true
		case corev1.TaintNodeUnschedulable:
			if t.TimeAdded != nil {
				st.cordonedAt = t.TimeAdded.Time
			}
		}
	}
	for _, cond := range n.Status.Conditions {
		switch cond.Type {
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if cond.Status == corev1.ConditionTrue {
				st.pressure = string(cond.Type)
			}
		}
	}
	if cond := cluster.NodeCondition(n, corev1.NodeReady); cond != nil && strings.Contains(cond.Message, "node is shutting down") {
		st.shutdown = true
	}
	readySeen := n.Status.NodeInfo.BootID != "" && st.ready == corev1.ConditionTrue
	for _, e := range c.s.EventsOf("Node", "", st.name) {
		switch e.Reason {
		case "Rebooted":
			st.rebootedAt = maxTime(st.rebootedAt, cluster.EventLast(e))
		case "Starting":
			if cluster.EventSource(e) == "kubelet" {
				st.restartedAt = maxTime(st.restartedAt, cluster.EventLast(e))
			}
		case "NodeNotSchedulable":
			if st.cordonedAt.IsZero() {
				st.cordonedAt = cluster.EventOnset(e)
			}
		case "NodeReady":
			readySeen = true
		case "SystemOOM":
			st.oomAt = maxTime(st.oomAt, cluster.EventLast(e))
		case "Shutdown":
			if c.s.AsOf.Sub(cluster.EventLast(e)) < 10*time.Minute {
				st.shutdown = true
			}
		}
	}
	h := c.s.History.Node(st.name)
	short := 0
	for i, t := range h.Transitions {
		if t.To == corev1.ConditionTrue {
			readySeen = true
			if i > 0 && h.Transitions[i-1].BootID != "" && t.BootID != "" && h.Transitions[i-1].BootID != t.BootID {
				st.rebootedAt = maxTime(st.rebootedAt, t.At)
			}
		} else if !t.First && c.s.AsOf.Sub(t.At) < time.Hour {
			short++
		}
	}
	st.flaps = max(st.flaps, short)
	st.neverReady = !readySeen && neverReady(n, c.grace)
	st.starting = st.neverReady && c.s.AsOf.Sub(n.CreationTimestamp.Time) < startingFor
	if renewed := cluster.LeaseRenewed(c.s.NodeLease(st.name)); !renewed.IsZero() && st.ready == corev1.ConditionTrue {
		if age := c.leaseNow.Sub(renewed); age > leaseDuration {
			st.leaseStale = true
			st.episodes = append(st.episodes, episode{
				status: corev1.ConditionUnknown, shown: renewed, reason: "LeaseStale",
				onset: cluster.Interval{From: renewed, To: renewed.Add(renewEvery), Source: "Lease.spec.renewTime"},
			})
		}
	}
}

// neverReady tells whether a node joined and its Ready condition has not changed
// since: what it waits for, it never had.
func neverReady(n *corev1.Node, grace time.Duration) bool {
	c := cluster.NodeCondition(n, corev1.NodeReady)
	switch {
	case c == nil || c.Reason == "NodeStatusNeverUpdated":
		return true
	case c.Status == corev1.ConditionTrue:
		return false
	case c.Status == corev1.ConditionFalse:
		return c.LastTransitionTime.Sub(n.CreationTimestamp.Time) <= 2*time.Minute
	}
	return c.LastTransitionTime.Sub(n.CreationTimestamp.Time) <= 2*time.Minute+grace
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sortFindings(f []report.Finding) {
	slices.SortStableFunc(f, func(a, b report.Finding) int {
		if r := b.Severity.Rank() - a.Severity.Rank(); r != 0 {
			return r
		}
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.Summary, b.Summary))
	})
}
