package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// pace is how finely the truth is noted.
const pace = 5 * time.Second

// record is what was seen from the inside, as time went by.
type record struct {
	pool    map[string]bool      // the nodes that had X's Pod before
	reached map[string]time.Time // by X's rollout
	calm    map[string]bool      // of those, whether they were Ready when they were reached
	fell    map[string]time.Time // when it first showed
	down    map[string]bool      // not Ready now
	firstX  time.Time            // X's first new Pod
	frozen  time.Time            // when somebody first acted
	back    time.Time            // X's template was put back
	swept   time.Time            // the bad Pods were replaced
}

// moment is one look at the cluster.
type moment struct {
	at                  time.Time
	snap                *cluster.Snapshot
	fallen              []string // by X, and it shows
	dead                []string // of themselves since the start, and it shows
	controls            []string // not reached, Ready
	reached             map[string]bool
	good                int               // Ready Pods of X's former version on Ready nodes
	bad                 map[string]string // node -> Pod of the bad version that is there
	goodRev             int64
	frozen, back, swept bool
}

func readyNode(n *corev1.Node) bool { return cluster.NodeReadiness(n) == corev1.ConditionTrue }

// note records the truth of now.
func (tr *trial) note() {
	r := tr.record
	r.down = map[string]bool{}
	now := tr.clock.Now()
	for _, n := range api.ListOf[*corev1.Node](tr.store, "", nil) {
		if readyNode(n) {
			continue
		}
		r.down[n.Name] = true
		if !tr.before[n.Name] && r.fell[n.Name].IsZero() {
			r.fell[n.Name] = now
		}
	}
	if tr.x == nil || now.Before(tr.xStart) {
		return
	}
	had, has := map[string]bool{}, map[string]bool{}
	for _, p := range tr.podsOf(tr.x) {
		node := cluster.TargetNode(p)
		switch {
		case p.Spec.Containers[0].Image == image(tr.x.Name, 3):
			has[node] = true
			if r.firstX.IsZero() {
				r.firstX = p.CreationTimestamp.Time
			}
		case p.DeletionTimestamp == nil:
			had[node] = true
		}
	}
	for n := range r.pool {
		if r.reached[n].IsZero() && (has[n] || !had[n]) {
			r.reached[n], r.calm[n] = now, !r.down[n]
		}
	}
}

func (tr *trial) step(t *testing.T, to time.Time) {
	t.Helper()
	for len(tr.plan) > 0 && !tr.plan[0].at.After(to) {
		p := tr.plan[0]
		tr.plan = tr.plan[1:]
		tr.world.Step(p.at)
		if err := p.do(tr); err != nil {
			t.Fatal(err)
		}
	}
	tr.world.Step(to)
	tr.note()
}

func (tr *trial) look(t *testing.T) *moment {
	t.Helper()
	snap, err := tr.source.Settle(t.Context(), tr.store.Bookmark())
	if err != nil {
		t.Fatal(err)
	}
	r := tr.record
	m := &moment{at: tr.clock.Now(), snap: snap, reached: map[string]bool{}, bad: map[string]string{},
		frozen: !r.frozen.IsZero(), back: !r.back.IsZero(), swept: !r.swept.IsZero()}
	for _, n := range slices.Sorted(maps.Keys(r.fell)) {
		if _, ok := tr.struck[n]; ok {
			m.fallen = append(m.fallen, n)
		} else if _, ok := tr.died[n]; ok {
			m.dead = append(m.dead, n)
		}
	}
	if tr.x == nil {
		return m
	}
	for n := range r.pool {
		if !r.reached[n].IsZero() {
			m.reached[n] = true
		} else if !r.down[n] && (tr.kernel == "" || tr.kernelOf(n) == tr.kernel) {
			m.controls = append(m.controls, n)
		}
	}
	for _, p := range tr.podsOf(tr.x) {
		switch {
		case p.Spec.Containers[0].Image == image(tr.x.Name, 3):
			m.bad[cluster.TargetNode(p)] = p.Name
		case cluster.PodReady(p) && !r.down[p.Spec.NodeName] && p.DeletionTimestamp == nil:
			m.good++
		}
	}
	for _, cr := range snap.ControllerRevisions {
		if cr.Namespace == tr.x.Namespace && cr.Labels["controller-revision-hash"] == tr.goodX {
			m.goodRev = cr.Revision
		}
	}
	return m
}

// play lets the cluster live and looks at it at the drawn moments.
func (tr *trial) play(t *testing.T) []*moment {
	t.Helper()
	r := &record{pool: map[string]bool{}, reached: map[string]time.Time{}, calm: map[string]bool{}, fell: map[string]time.Time{}}
	tr.record = r
	if tr.x != nil {
		for _, p := range tr.podsOf(tr.x) {
			r.pool[p.Spec.NodeName] = true
		}
	}
	when := map[time.Time]bool{}
	for _, top := range []time.Duration{2 * time.Minute, 6 * time.Minute, 12 * time.Minute, 25 * time.Minute} {
		when[truthEpoch.Add(tr.span(35*time.Second, top).Truncate(pace))] = true
	}
	wait := func(after, span time.Duration) time.Duration { return (after + tr.span(0, span)).Truncate(pace) }
	afterFirst, afterThird, afterAll := wait(0, 30*time.Second), wait(0, 90*time.Second), wait(30*time.Second, 4*time.Minute)
	acts := 2 + tr.rng.IntN(3)
	watched := tr.one(0.5) // somebody looks on all the time
	first, third, all, acted := false, false, false, false
	var out []*moment
	end := truthEpoch.Add(32 * time.Minute)
	for now := truthEpoch; now.Before(end); now = now.Add(pace) {
		tr.step(t, now)
		fallen := 0
		for n := range r.fell {
			if _, ok := tr.struck[n]; ok {
				fallen++
			}
		}
		if n := fallen + len(tr.died); n >= 1 && !first {
			first, when[now.Add(afterFirst)] = true, true
		}
		if n := fallen + len(tr.died); n >= 3 && !third {
			third, when[now.Add(afterThird)] = true, true
		}
		if tr.x != nil && len(r.reached) == len(r.pool) && !all {
			all, when[now.Add(afterAll)] = true, true
		}
		if (tr.truth == undone || tr.truth == recovered) && !acted && (fallen >= acts || fallen >= 1 && now.Sub(r.fellFirst()) > 4*time.Minute) {
			acted = true
			tr.intervene(now, when)
		}
		switch {
		case when[now]:
			out = append(out, tr.look(t))
		case watched && now.Unix()%15 == 0:
			tr.look(t)
		}
	}
	return out
}

func (r *record) fellFirst() time.Time {
	var first time.Time
	for _, t := range r.fell {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// intervene plans what the operator does: freeze, template back and, where the
// truth is a recovery, the bad Pods replaced.
func (tr *trial) intervene(now time.Time, when map[time.Time]bool) {
	r := tr.record
	plan := func(after time.Duration, do func() error, at *time.Time) time.Time {
		when := now.Add(after)
		tr.plan = append(tr.plan, planned{when, func(tr *trial) error { *at = when; return do() }})
		return when
	}
	plan(10*time.Second, tr.freeze, &r.frozen)
	back := plan(30*time.Second, tr.putBack, &r.back)
	when[back.Add(tr.span(5*time.Second, 40*time.Second).Truncate(pace))] = true
	when[back.Add(tr.span(2*time.Minute, 5*time.Minute).Truncate(pace))] = true
	if tr.truth == recovered {
		swept := plan(back.Sub(now)+40*time.Second, tr.replaceBad, &r.swept)
		when[swept.Add(tr.span(10*time.Second, 50*time.Second).Truncate(pace))] = true
		when[swept.Add(tr.span(3*time.Minute, 8*time.Minute).Truncate(pace))] = true
	}
}

// goesOn tells whether X's rollout reaches another Ready node within five minutes.
func (tr *trial) goesOn(m *moment) (string, bool) {
	for n, at := range tr.record.reached {
		if at.After(m.at) && !at.After(m.at.Add(5*time.Minute)) && tr.record.calm[n] {
			return n, true
		}
	}
	return "", false
}

// view is one way to see a moment.
type view struct {
	name string
	snap *cluster.Snapshot
	// lossy says that evidence was taken away: an answer may be missing, but not wrong.
	lossy bool
}

// views are the snapshot as it was seen live, and with ever less to see.
func views(m *moment) []view {
	meta := m.snap.Meta
	without := func(name string, change func(*cluster.Objects, *cluster.Meta)) view {
		o, mt := m.snap.Objects, meta
		mt.NotRead = slices.Clone(mt.NotRead)
		change(&o, &mt)
		return view{name, cluster.New(o, mt), name != "no history"}
	}
	gone := func(mt *cluster.Meta, r cluster.Resource) {
		mt.NotRead = append(mt.NotRead, cluster.NotRead{Resource: r, Reason: "Forbidden"})
	}
	return []view{
		{"live", m.snap, false},
		without("no history", func(*cluster.Objects, *cluster.Meta) {}),
		without("no events", func(o *cluster.Objects, mt *cluster.Meta) { o.Events = nil; gone(mt, cluster.Events) }),
		without("no leases", func(o *cluster.Objects, mt *cluster.Meta) { o.Leases = nil; gone(mt, cluster.Leases) }),
		without("no owners", func(o *cluster.Objects, _ *cluster.Meta) { dropOwners(o) }),
		without("bare", func(o *cluster.Objects, mt *cluster.Meta) {
			o.Events, o.Leases = nil, nil
			gone(mt, cluster.Events)
			gone(mt, cluster.Leases)
			dropOwners(o)
		}),
	}
}

// dropOwners takes managedFields away, as kubectl get does.
func dropOwners(o *cluster.Objects) {
	o.Nodes, o.DaemonSets = slices.Clone(o.Nodes), slices.Clone(o.DaemonSets)
	for i := range o.Nodes {
		o.Nodes[i] = o.Nodes[i].DeepCopy()
		o.Nodes[i].ManagedFields = nil
	}
	for i := range o.DaemonSets {
		o.DaemonSets[i] = o.DaemonSets[i].DeepCopy()
		o.DaemonSets[i].ManagedFields = nil
	}
}

func (v view) diagnose() *report.Report {
	return probes.Diagnose(v.snap, probes.Options{All: true}).Report
}
