package probes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// class is the part that a node plays in the question whether a change broke it.
type class string

// The classes. Only after, before, old and late are nodes of the incident; after,
// healthy, old and clean make the two by two table.
const (
	classAfter     class = "after"     // fell after its Pod was replaced
	classBefore    class = "before"    // fell first, replaced afterwards
	classLate      class = "late"      // fell long after its Pod was replaced
	classOld       class = "old"       // fell, and was not reached
	classHealthy   class = "healthy"   // reached, had time to fall, did not
	classPending   class = "pending"   // reached too recently to tell
	classClean     class = "clean"     // not reached, Ready
	classUnclear   class = "unclear"   // times are not known
	classSuffering class = "suffering" // replaced because its old Pod was unavailable already
	classNew       class = "newNodes"  // joined since the change, or never Ready
	classPrevalent class = "prevalent" // broken from before the change
	classUndone    class = "replaced"  // replaced again by a later change
	classExplained class = "explained" // its trouble has another reason of its own: planned reboot, removal
)

// analysis is the question of one change of one DaemonSet, worked out.
type analysis struct {
	change    change
	nodes     []*exposure
	by        map[class][]*exposure
	byNode    map[string]*exposure
	window    time.Duration
	horizon   time.Duration
	measures  report.Measures
	judged    judgement
	points    int
	stratum   string // the trait within which the effect is seen, "" for all
	capable   int
	mode      string
	hub       string
	joint     string        // another DaemonSet that cannot be told apart
	pardoned  string        // why another rollout explains it better
	atAge     time.Duration // the age at which its Pods fail, 0 where that is not the pattern
	inGap     int           // nodes that fell before the new Pod was there
	nobodyOld bool          // no node is left on an older revision to compare with
}

// analyse classifies every node of the pool for one change.
func (c *Diagnosis) analyse(d *daemonSet, ch change) *analysis {
	a := &analysis{change: ch, by: map[class][]*exposure{}, byNode: map[string]*exposure{}, horizon: c.grace + time.Minute}
	if ch.start.IsZero() || !d.podsKnown || d.rollout.State == report.Complete && c.s.AsOf.Sub(ch.start) > 24*time.Hour {
		a.judged = notAsked // there is nothing to ask, or nobody would suspect it any more
		return a
	}
	a.nodes = c.exposures(d, ch)
	a.window = max(300*time.Second, 3*d.medianStep(a.nodes)) + cluster.MinReady(d.ds)
	for _, e := range a.nodes {
		a.byNode[e.node.name] = e
		e.class = c.classify(a, e)
	}
	a.concentrate(c.s.AsOf)
	a.ripen(c.s.AsOf)
	for _, e := range a.nodes {
		a.by[e.class] = append(a.by[e.class], e)
	}
	a.measure(c, d)
	return a
}

// medianStep is the median distance between two replacements.
func (d *daemonSet) medianStep(nodes []*exposure) time.Duration {
	var at []time.Time
	for _, e := range nodes {
		if e.reached && !e.deleted.IsZero() {
			at = append(at, e.deleted.To)
		}
	}
	if len(at) < 2 {
		return 0
	}
	slices.SortFunc(at, time.Time.Compare)
	var gaps []time.Duration
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i].Sub(at[i-1]))
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func (c *Diagnosis) classify(a *analysis, e *exposure) class {
	n, start := e.node, a.change.start
	e.episode = n.trouble(start.Add(-skew))
	ep := e.episode
	trouble := ep != nil && ep.unclear == "" && !ep.onset.IsZero()
	switch {
	case n.neverReady, n.node.CreationTimestamp.After(start.Add(-skew)):
		return classNew
	case trouble && ep.onset.To.Before(start.Add(-skew)):
		// It fell before the change. What has recovered since is a node like any other.
		if !ep.end.IsZero() && ep.end.Before(start) {
			trouble = false
			break
		}
		return classPrevalent
	case trouble && !a.change.end.IsZero() && ep.onset.From.After(a.change.end.Add(a.window)):
		trouble = false // after the change was undone
	}
	if ep != nil && ep.unclear != "" && n.failing() {
		if ep.shown.Before(start) {
			return classPrevalent
		}
		return classUnclear
	}
	if trouble && c.explained(e) != "" {
		return classExplained
	}
	if !e.reached {
		if e.undone {
			return classUndone // what it had before is not known any more
		}
		if trouble {
			return classOld
		}
		return classClean
	}
	if !trouble {
		if e.undone && e.pod == nil {
			return classUndone
		}
		if e.deleted.IsZero() || c.s.AsOf.Sub(latest(e.created, e.deleted.To)) < a.horizon {
			return classPending
		}
		return classHealthy
	}
	if e.deleted.IsZero() {
		return classUnclear
	}
	c.widen(a, e)
	e.lag = cluster.Interval{From: ep.onset.From, To: ep.onset.To}
	switch {
	case e.suffering != "":
		return classSuffering
	case ep.onset.To.Before(e.deleted.From.Add(-skew)):
		return classBefore
	case ep.onset.From.After(e.deleted.To.Add(a.window)):
		return classLate
	}
	return classAfter
}

// widen moves the earliest time of an inferred exposure back to the change's start
// where the node was silent until the new Pod came: its kubelet could not report
// that the old one had ended, so that the new Pod's creation says nothing of when
// the deletion was asked for.
func (c *Diagnosis) widen(a *analysis, e *exposure) {
	ep := e.episode
	if e.created.IsZero() || e.deleted.Width() == 0 || ep.status != corev1.ConditionUnknown && e.node.rebootedAt.IsZero() {
		return
	}
	if !ep.onset.To.Before(e.deleted.From.Add(-skew)) || ep.end.IsZero() {
		return
	}
	if e.created.After(ep.end.Add(-falseDelay)) && a.change.start.Before(e.deleted.From) {
		e.deleted.From = a.change.start
		e.deleted.Source += ", at any time since the change: the node was silent in between"
	}
}

// explained names a reason of the node's own for its trouble, which a rollout does
// not give: it was drained for a reboot or an upgrade, or is being taken away. A
// reboot that nobody announced is no such reason: an agent can panic a kernel.
func (c *Diagnosis) explained(e *exposure) string {
	n, ep := e.node, e.episode
	switch {
	case n.removal != "":
		return "is being removed (" + n.removal + ")"
	case n.shutdown:
		return "is shutting down"
	case !n.rebootedAt.IsZero() && !n.cordonedAt.IsZero() && n.cordonedAt.Before(ep.shown):
		return "was cordoned and rebooted"
	case c.inReboots(n, ep):
		return "was cordoned, in a series of reboots"
	}
	return ""
}

// inReboots tells of a node that was cordoned before it went down while other nodes
// are being cordoned and rebooted one after another: it is next in that series.
func (c *Diagnosis) inReboots(n *nodeState, ep *episode) bool {
	if n.cordonedAt.IsZero() || !n.cordonedAt.Before(ep.shown) || !n.failing() {
		return false
	}
	for _, o := range c.nodeList {
		if o != n && !o.rebootedAt.IsZero() && !o.cordonedAt.IsZero() && o.cordonedAt.Before(o.rebootedAt) && n.cordonedAt.Sub(o.rebootedAt).Abs() < 2*time.Hour {
			return true
		}
	}
	return false
}

// concentrate moves late nodes to the others where their ages at failure are so
// alike that the age explains the failure: a token or certificate that the new Pod
// brought has run out. There is no fixed window.
func (a *analysis) concentrate(now time.Time) {
	var late []*exposure
	for _, e := range a.nodes {
		if e.class == classLate {
			late = append(late, e)
		}
	}
	if len(late) < 3 {
		return
	}
	var ages, at []time.Duration
	for _, e := range late {
		ages = append(ages, e.episode.onset.Mid().Sub(e.deleted.Mid()))
		at = append(at, e.deleted.Mid().Sub(a.change.start))
	}
	slices.Sort(ages)
	slices.Sort(at)
	spreadOfAges, spreadOfExposure := ages[len(ages)-1]-ages[0], at[len(at)-1]-at[0]
	if spreadOfAges > max(time.Minute, ages[len(ages)/2]/10) || spreadOfExposure < 2*spreadOfAges {
		return
	}
	for _, e := range late {
		e.class = classAfter
	}
	// What has not reached that age cannot have failed of it yet.
	a.atAge = ages[len(ages)/2]
	a.horizon = ages[len(ages)-1] + time.Minute
	for _, e := range a.nodes {
		if e.class == classHealthy && now.Sub(latest(e.created, e.deleted.To)) < a.horizon {
			e.class = classPending
		}
	}
}

// ripen sets the time after which a node that did not fall counts as healthy by how
// long the others took until it showed: a node silent for a grace period longer is
// still to come.
func (a *analysis) ripen(now time.Time) {
	var took []time.Duration
	for _, e := range a.nodes {
		if e.class == classAfter {
			took = append(took, e.episode.shown.Sub(latest(e.created, e.deleted.From)))
		}
	}
	if len(took) < 2 {
		return
	}
	slices.Sort(took)
	late := took[(len(took)*95+99)/100-1] + 15*time.Second
	if late <= a.horizon || late > time.Hour {
		return
	}
	a.horizon = late
	for _, e := range a.nodes {
		if e.class == classHealthy && now.Sub(latest(e.created, e.deleted.To)) < a.horizon {
			e.class = classPending
		}
	}
}

func latest(a, b time.Time) time.Time { return maxTime(a, b) }

func (a *analysis) count(cl class) int { return len(a.by[cl]) }

func nodeNames(list []*exposure) []string {
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, e.node.name)
	}
	return out
}
