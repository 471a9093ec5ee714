package probes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// skew is how far the clocks of API server, controllers and kubelets may be apart
// before an order of events is doubted.
const skew = 5 * time.Second

// exposure is what a change did to one node, and when.
type exposure struct {
	node    *nodeState
	reached bool             // the change replaced, or is replacing, this node's Pod
	pod     *corev1.Pod      // the Pod that the change made, nil without one
	podless bool             // no Pod at all
	deleted cluster.Interval // when the old Pod's deletion was asked for
	created time.Time        // of the new Pod
	ready   time.Time        // when the new Pod became Ready, zero where unknown
	// suffering says that the old Pod was unavailable before it was deleted, and how that is known.
	suffering string
	undone    bool // a later change has replaced the Pod since
	class     class
	episode   *episode
	lag       cluster.Interval
}

// oldPods are the deaths of a DaemonSet's Pods that events still tell of.
type podDeath struct {
	name    string
	at      time.Time
	unready bool // events show that it had lost readiness before
}

// deaths reads the kubelets' Killing events of Pods that are gone. The
// DaemonSet's own events name no node and are dropped after a dozen nodes.
func (c *Diagnosis) deaths(d *daemonSet) map[string][]podDeath {
	unready := map[string]time.Time{}
	var kills []*corev1.Event
	for _, e := range c.s.Objects.Events {
		o := e.InvolvedObject
		if o.Kind != "Pod" || o.Namespace != d.ds.Namespace || !strings.HasPrefix(o.Name, d.ds.Name+"-") {
			continue
		}
		switch e.Reason {
		case "Killing":
			kills = append(kills, e)
		case "Unhealthy", "NodeNotReady":
			if strings.HasPrefix(e.Message, "Liveness") || strings.HasPrefix(e.Message, "Startup") {
				continue
			}
			if t := cluster.EventOnset(e); unready[o.Name].IsZero() || t.Before(unready[o.Name]) {
				unready[o.Name] = t
			}
		}
	}
	out := map[string][]podDeath{}
	for _, e := range kills {
		node, name := e.Source.Host, e.InvolvedObject.Name
		if node == "" {
			node = e.ReportingInstance
		}
		if p := c.s.Pod(d.ds.Namespace, name); p != nil && p.DeletionTimestamp == nil {
			continue // a restarted container, not the end of the Pod
		}
		at := cluster.EventOnset(e)
		u := unready[name]
		out[node] = append(out[node], podDeath{name: name, at: at, unready: !u.IsZero() && u.Before(at.Add(-time.Second))})
	}
	return out
}

// exposures tells for each node of the pool what the change did to it.
func (c *Diagnosis) exposures(d *daemonSet, ch change) []*exposure {
	deaths := c.deaths(d)
	records := map[string][]cluster.PodRecord{}
	for _, r := range c.s.History.PodsOf(d.ds.UID) {
		records[r.Node] = append(records[r.Node], r)
	}
	out := make([]*exposure, 0, len(d.pool))
	for _, n := range d.pool {
		e := &exposure{node: n}
		c.expose(d, ch, e, records[n.name], deaths[n.name])
		out = append(out, e)
	}
	return out
}

func (d *daemonSet) madeBy(ch change, hash, generation string) bool {
	if ch.current {
		g := d.ds.Annotations[cluster.TemplateGenerationOnObject]
		return ch.hash != "" && hash == ch.hash || g != "" && generation == g
	}
	return ch.hash != "" && hash == ch.hash
}

func (c *Diagnosis) expose(d *daemonSet, ch change, e *exposure, records []cluster.PodRecord, deaths []podDeath) {
	since := ch.start.Add(-skew)
	within := func(t time.Time) bool { return t.After(since) && (ch.end.IsZero() || t.Before(ch.end.Add(skew))) }
	var made *cluster.PodRecord
	alive, kept := false, false
	for i := range records {
		r := &records[i]
		if r.Gone.IsZero() {
			alive = true
			kept = kept || r.DeleteRequested.IsZero() && r.Created.Before(since) && !d.madeBy(ch, r.Hash, r.Generation)
		}
		if d.madeBy(ch, r.Hash, r.Generation) {
			if within(r.Created) && (made == nil || r.Created.Before(made.Created)) {
				made = r
			}
			if !r.Gone.IsZero() || !r.DeleteRequested.IsZero() {
				e.undone = e.undone || !ch.end.IsZero()
			}
			continue
		}
		if !ch.end.IsZero() && r.Created.After(ch.end.Add(-skew)) {
			e.undone = true // made by a later change
			continue
		}
		if t := r.DeleteRequested; !t.IsZero() && within(t) && (e.deleted.IsZero() || t.Before(e.deleted.From)) {
			e.deleted = cluster.Exact(t, "Pod.metadata.deletionTimestamp less its grace period")
			if u := c.unreadyBefore(r); !u.IsZero() && u.Before(t.Add(-time.Second)) {
				e.suffering = "its old Pod had lost Ready " + stamp(u)
			}
		}
	}
	e.podless = !alive
	if made != nil {
		e.reached, e.created, e.ready = true, made.Created, made.Ready
		e.pod = c.s.Pod(made.Namespace, made.Name)
		if e.pod != nil && e.pod.UID != made.UID {
			e.pod = nil
		}
	}
	if !e.deleted.IsZero() {
		e.reached = true
	}
	for _, death := range deaths {
		if made != nil && death.name == made.Name || kept || !within(death.at) {
			continue // of the change's own Pod: the one from before it is still there, say, after a surge that was called off
		}
		if death.unready && e.suffering == "" {
			e.suffering = "events show that its old Pod had lost readiness before it was deleted"
		}
		if e.deleted.IsZero() {
			e.reached = true
			e.deleted = cluster.Interval{From: death.at.Add(-2 * time.Second), To: death.at, Source: "event Killing of the old Pod"}
		}
	}
	switch {
	case !e.deleted.IsZero() || ch.start.IsZero():
	case made != nil && d.rollout.MaxSurgeResolved > 0:
		e.deleted = cluster.Exact(made.Created, "the surge Pod's creation")
	case made != nil:
		from := made.Created.Add(-c.graceOf(d) - skew)
		if from.Before(ch.start) {
			from = ch.start
		}
		if from.After(made.Created) {
			from = made.Created
		}
		e.deleted = cluster.Interval{From: from, To: made.Created, Source: "the new Pod's creation, less the old one's grace period"}
	case e.podless && d.podsKnown && e.node.failing() && e.node.node.CreationTimestamp.Time.Before(ch.start):
		// Its Pod is gone and none came back: the change took it, at a time that nobody kept.
		e.reached = true
		e.deleted = cluster.Interval{From: ch.start, To: c.s.AsOf, Source: "no Pod is left, and when it went is not known"}
	}
	if ch.first && made != nil {
		e.deleted = cluster.Exact(made.Created, "the first Pod's creation")
	}
}

// unreadyBefore is when a Pod that is being deleted, or is gone, stopped being Ready:
// as it was seen, or as its condition still says. Zero where it was Ready to the end.
func (c *Diagnosis) unreadyBefore(r *cluster.PodRecord) time.Time {
	if !r.Unready.IsZero() {
		return r.Unready
	}
	p := c.s.Pod(r.Namespace, r.Name)
	if p == nil || p.UID != r.UID {
		return time.Time{}
	}
	if cond := cluster.PodCondition(p, corev1.PodReady); cond != nil && cond.Status != corev1.ConditionTrue {
		return cond.LastTransitionTime.Time
	}
	return time.Time{}
}

func (c *Diagnosis) graceOf(d *daemonSet) time.Duration {
	if g := d.ds.Spec.Template.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(*g) * time.Second
	}
	return 30 * time.Second
}
