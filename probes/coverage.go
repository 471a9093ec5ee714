package probes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	// settleTime is how long a status may lag behind a change without contradicting
	// it: a sync, a batch of creations, and the moments at which kinds were read.
	settleTime = 30 * time.Second
	// joinTime is how long a node, or a gap, is given before anything is said of it.
	joinTime = 2 * time.Minute
	// recentChange is how long a change explains what it took away: a day later it is
	// how things are.
	recentChange = 24 * time.Hour
	// gapsListed bounds the findings about single nodes, by severity.
	gapsListed = 50
	infosShown = 10
)

// gapKind is how a node and a DaemonSet's Pod are at odds.
type gapKind int

const (
	gapNone         gapKind = iota
	gapEmpty                // eligible, and without a Pod
	gapSelector             // its labels are not what the template asks for
	gapTaint                // a taint that is not tolerated
	gapStartup              // a taint that an agent of the node should have removed
	gapCondition            // a taint of the node's own state: the node's story
	gapMisscheduled         // has a Pod that should not be there
)

// gap is one node of which something is to be said.
type gap struct {
	node     *nodeState
	kind     gapKind
	severity report.Severity
	since    time.Time
	why      string
	evidence []report.Evidence
	agent    *agentTaint
	pod      *corev1.Pod // of a misscheduled node
	// byChange tells that the last change of the template left the node out.
	byChange bool
}

// coverage is what was worked out of one DaemonSet's nodes.
type coverage struct {
	reason   string // why nothing was, "" where it was
	counters cluster.Counters
	complete bool   // all nodes and all of its Pods were read, as far as one can tell
	settling string // why the status may lag
	stale    bool   // its count of misscheduled Pods contradicts the nodes
	selected int    // nodes that its selector accepts
	tainted  int    // of those, nodes kept off by a taint that is not of their state
	gaps     []gap
	excluded []excludedNodes
	none     *noneEligible
}

type excludedNodes struct {
	why        string
	nodes      []string
	deliberate bool
}

func (d *daemonSet) leaving() bool { return d.ds.DeletionTimestamp != nil }

// readCoverage works out which nodes should have the Pod and which have it.
func (c *Diagnosis) readCoverage(d *daemonSet) {
	cov := &d.coverage
	switch {
	case !c.s.Read(cluster.Nodes) || len(c.s.Nodes) == 0:
		cov.reason = "nodes were not read"
		return
	case d.leaving():
		cov.reason = "it is being deleted"
		return
	}
	cov.counters = c.s.Counters(d.ds, d.updated)
	cov.counters.Known = cov.counters.Known && !c.podsUnreadIn(d.ds.Namespace)
	// Files may hold some of the nodes only: then the status has seen more than we have.
	cov.complete = c.s.Source.Type != "files" || int(d.ds.Status.DesiredNumberScheduled) <= len(c.s.Nodes)
	cov.settling = c.settling(d)
	c.readGaps(d)
}

// podsUnreadIn tells that the Pods of that namespace could not be read.
func (c *Diagnosis) podsUnreadIn(namespace string) bool {
	return slices.ContainsFunc(c.s.NotRead, func(n cluster.NotRead) bool {
		return n.Resource == cluster.Pods && n.Namespace == namespace && n.Reason != cluster.NotAsked
	})
}

// settling says why the status may differ from what is seen, "" where it may not.
func (c *Diagnosis) settling(d *daemonSet) string {
	st := d.ds.Status
	if d.ds.Generation > st.ObservedGeneration {
		return fmt.Sprintf("the status is that of generation %d, not of %d", st.ObservedGeneration, d.ds.Generation)
	}
	last, what := c.nodesMoved()
	see := func(t time.Time, text string) {
		if t.After(last) && !t.After(c.s.AsOf.Add(settleTime)) {
			last, what = t, text
		}
	}
	see(d.change.start, "the template changed")
	see(d.ds.CreationTimestamp.Time, "it was created")
	minReady := cluster.MinReady(d.ds)
	if d.podsKnown {
		for _, p := range c.s.PodsOf(d.ds.UID) {
			see(p.CreationTimestamp.Time, "a Pod was created")
			see(cluster.DeleteRequested(p), "a Pod was deleted")
			if cond := cluster.PodCondition(p, corev1.PodReady); cond != nil {
				see(cond.LastTransitionTime.Time, "a Pod became, or stopped being, Ready")
				if at := cond.LastTransitionTime.Add(minReady); cond.Status == corev1.ConditionTrue && !at.After(c.s.AsOf) {
					see(at, "a Pod became available")
				}
			}
		}
		see(c.s.History.LastGone(d.ds.UID), "a Pod of it went")
	}
	if age := c.s.AsOf.Sub(last); !last.IsZero() && age < settleTime {
		return fmt.Sprintf("%s %s ago", what, short(max(age, 0)))
	}
	return ""
}

// nodesMoved is the last change of a node that a DaemonSet's controller reacts to.
func (c *Diagnosis) nodesMoved() (time.Time, string) {
	c.movedOnce.Do(func() {
		see := func(t time.Time, what, name string) {
			if t.After(c.moved.at) && !t.After(c.s.AsOf.Add(settleTime)) {
				c.moved.at, c.moved.what = t, "node "+name+" "+what
			}
		}
		for _, n := range c.s.Nodes {
			see(n.CreationTimestamp.Time, "joined", n.Name)
			if cond := cluster.NodeCondition(n, corev1.NodeReady); cond != nil {
				see(cond.LastTransitionTime.Time, "turned Ready="+string(cond.Status), n.Name)
			}
			for i := range n.Spec.Taints {
				if t := n.Spec.Taints[i].TimeAdded; t != nil {
					see(t.Time, "was tainted", n.Name)
				}
			}
			if t := nodeWritten(n, "f:taints"); c.s.AsOf.Sub(t) < settleTime {
				see(t, "had its taints changed", n.Name)
			}
			if t := nodeWritten(n, "f:labels"); c.s.AsOf.Sub(t) < settleTime {
				see(t, "had its labels changed", n.Name)
			}
		}
		for _, r := range c.s.History.RemovedNodes() {
			see(r.Gone.To, "was deleted", r.Name)
		}
	})
	return c.moved.at, c.moved.what
}

// clusterFacts are worked out once for all DaemonSets, when they are first asked for.
type clusterFacts struct {
	labels     labelSet // of all nodes
	labelsOnce sync.Once
	kinds      map[corev1.Taint]bool // taints, and whether they belong to a kind of nodes
	moved      moved                 // the last change of a node that controllers react to
	movedOnce  sync.Once
}

// moved is a moment, and what happened at it.
type moved struct {
	at   time.Time
	what string
}

// nodeWritten is when the field was last written by whoever owns a part of it, zero
// where managedFields do not tell. A kubelet owns labels too, from its start on.
func nodeWritten(n *corev1.Node, field string) time.Time {
	var last time.Time
	for i := range n.ManagedFields {
		e := &n.ManagedFields[i]
		if e.Subresource == "" && e.Time != nil && e.FieldsV1 != nil && e.Time.After(last) && strings.Contains(e.FieldsV1.GetRawString(), `"`+field+`"`) {
			last = e.Time.Time
		}
	}
	return last
}
