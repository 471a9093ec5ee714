package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// complaint is one thing that a report gets wrong.
type complaint struct{ kind, text string }

// oracle holds one report against the truth.
type oracle struct {
	tr    *trial
	m     *moment
	r     *report.Report
	lossy bool
	found []complaint
}

func (o *oracle) say(kind, format string, args ...any) {
	o.found = append(o.found, complaint{kind, fmt.Sprintf(format, args...)})
}

func (o *oracle) keyX() report.WorkloadKey {
	return report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Text(o.tr.x.Namespace), Name: report.Text(o.tr.x.Name)}
}

func (o *oracle) x() *report.Workload { return o.r.Workload(o.keyX()) }

func (o *oracle) since(t time.Time) time.Duration { return o.m.at.Sub(t) }

// sure tells whether a verdict is one to act on.
func sure(v report.Verdict) bool { return v.Confidence.AtLeast(report.Medium) }

func (o *oracle) check() []complaint {
	o.innocents()
	switch {
	case o.tr.truth == nothing || o.tr.truth == healthyMoves:
		o.calm()
	case o.tr.truth == nodesDie:
		o.deaths()
	case o.tr.truth == deadNodesHold:
		o.blocked()
	case o.tr.truth == podsFail:
		o.failingPods()
	case o.m.swept:
		o.afterRecovery()
	case o.m.back:
		o.afterUndo()
	default:
		o.brokenNodes()
	}
	return o.found
}

// innocents: whoever did no harm is not blamed.
func (o *oracle) innocents() {
	for i := range o.r.Workloads {
		w := &o.r.Workloads[i]
		guilty := o.tr.x != nil && w.Key() == o.keyX() && (o.tr.breaks() || o.tr.truth == podsFail)
		if guilty {
			continue
		}
		switch w.Verdict.Attribution {
		case report.RolloutBreaksNodes, report.RolloutBreaksPods:
			o.say("innocent blamed: "+string(w.Verdict.Attribution), "%s: %s; died %v; incident %s", w.Key(), verdictOf(w), o.m.dead, verdict(o.r.Verdict))
		}
	}
}

// calm: nothing is wrong but what was before.
func (o *oracle) calm() {
	top := o.r.Verdict
	if len(o.tr.before) == 0 && top.Attribution != report.Healthy && top.Attribution != report.WaitingForOperator && !(o.lossy && top.Attribution == report.Undetermined) {
		o.say("calm: not healthy", "%s", verdict(top))
	}
	if len(o.tr.before) == 0 && top.Attribution == report.Healthy {
		for _, f := range allFindings(o.r) {
			if f.Severity == report.Critical {
				o.say("calm: critical finding", "%s %s", f.Code, f.Summary)
			}
		}
	}
}

func allFindings(r *report.Report) []report.Finding {
	out := slices.Clone(r.ClusterFindings)
	for i := range r.Workloads {
		out = append(out, r.Workloads[i].Findings...)
	}
	return out
}

func verdict(v report.Verdict) string {
	return fmt.Sprintf("%s %s (%s, root %s): %s | for %q against %q", v.Attribution, v.Workload, v.Confidence, v.RootCause, v.Summary, v.For, v.Against)
}

// deaths: nodes died that no rollout touched.
func (o *oracle) deaths() {
	top := o.r.Verdict
	switch top.Attribution {
	case report.NodesFailIndependently, report.NodesBlockRollout, report.Undetermined, report.RolloutBreaksNodes, report.RolloutBreaksPods:
		if len(o.m.dead) == 0 && len(o.tr.before) == 0 && len(o.tr.died) == 0 {
			o.say("deaths: alarm before the first", "%s", verdict(top))
		}
		if !o.lossy && top.Attribution == report.Undetermined && len(o.m.dead) >= 3 && len(o.m.dead) > 2*o.reachedFirst() {
			o.say("deaths: undetermined although most were not reached", "%s", verdict(top))
		}
	default:
		if len(o.m.dead) > 0 && o.stillDown(o.m.dead) && !o.lossy {
			o.say("deaths: missed", "%d dead: %s", len(o.m.dead), verdict(top))
		}
	}
}

// reachedFirst counts the dead that X had reached before they died.
func (o *oracle) reachedFirst() int {
	n := 0
	for _, d := range o.m.dead {
		if at := o.tr.record.reached[d]; !at.IsZero() && at.Before(o.tr.died[d].Add(pace)) {
			n++
		}
	}
	return n
}

func (o *oracle) stillDown(list []string) bool {
	for _, n := range o.m.snap.Nodes {
		if slices.Contains(list, n.Name) && !readyNode(n) {
			return true
		}
	}
	return false
}

// blocked: nodes that are dead from before hold the rollout.
func (o *oracle) blocked() {
	top, x := o.r.Verdict, o.x()
	if o.since(o.tr.xStart) < 3*time.Minute || len(o.m.reached) > len(o.tr.before) || len(o.m.controls) == 0 || o.lossy {
		return
	}
	if _, on := o.tr.goesOn(o.m); on {
		return
	}
	if x == nil || x.Verdict.Attribution != report.NodesBlockRollout && x.Verdict.Attribution != report.NodesFailIndependently {
		o.say("blocked: X", "%s", verdictOf(x))
	}
	if top.Attribution != report.NodesBlockRollout && top.Attribution != report.NodesFailIndependently {
		o.say("blocked: top", "%s", verdict(top))
	}
}

func verdictOf(w *report.Workload) string {
	if w == nil {
		return "not in the report"
	}
	return fmt.Sprintf("[%s brake %q spreading %v] %s | measures %s", w.Rollout.State, w.Rollout.Brake, w.Rollout.Spreading, verdict(w.Verdict), measures(w))
}

func measures(w *report.Workload) string {
	m := w.Measures
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("A%d B%d L%d O%d H%d P%d C%d U%d S%d N%d prev%d repl%d expl%d points %d %q", len(m.After), len(m.Before), len(m.Late), len(m.Old), len(m.Healthy), len(m.Pending), len(m.Clean),
		len(m.Unclear), len(m.Suffering), len(m.NewNodes), len(m.Prevalent), len(m.Replaced), len(m.Explained), m.Points, m.Items)
}

// failingPods: X's new Pods fail, and no node does.
func (o *oracle) failingPods() {
	top, x := o.r.Verdict, o.x()
	if x != nil && x.Verdict.Attribution == report.RolloutBreaksNodes {
		o.say("pods fail: nodes blamed", "%s", verdictOf(x))
		return
	}
	if o.tr.record.firstX.IsZero() || o.since(o.tr.record.firstX) < 3*time.Minute || o.lossy && (x == nil || x.Verdict.Attribution == report.Undetermined) {
		return
	}
	switch {
	case x == nil || x.Verdict.Attribution != report.RolloutBreaksPods:
		o.say("pods fail: X", "%s: %s", o.tr.rootX, verdictOf(x))
	case string(x.Verdict.RootCause) != o.tr.rootX:
		o.say("pods fail: root", "want %s: %s", o.tr.rootX, verdictOf(x))
	case len(o.tr.before) == 0 && top.Attribution != report.RolloutBreaksPods:
		o.say("pods fail: top", "%s", verdict(top))
	}
	if x != nil && x.Verdict.Attribution == report.RolloutBreaksPods && !o.lossy {
		o.goodRevision(x)
	}
}

func (o *oracle) goodRevision(x *report.Workload) {
	if k := x.Rollout.KnownGoodRevision; k != nil && *k != o.m.goodRev || k == nil && o.m.good > 0 {
		o.say("known good", "want %d (%d healthy on it), got %s; %s", o.m.goodRev, o.m.good, text(k), verdictOf(x))
	}
	if to := x.Recommendation.ToRevision; to != nil && *to != o.m.goodRev {
		o.say("proposed revision", "want %d, got %d; %s", o.m.goodRev, *to, verdictOf(x))
	}
}

func text(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// brokenNodes: X breaks nodes, and nobody did anything about it.
func (o *oracle) brokenNodes() {
	top, x := o.r.Verdict, o.x()
	v, c := len(o.m.fallen), len(o.m.controls)
	blamed := x != nil && x.Verdict.Attribution == report.RolloutBreaksNodes
	if blamed && len(o.tr.struck) == 0 {
		o.say("breaks: blamed before anything happened", "%s", verdictOf(x))
	}
	undetermined := x != nil && x.Verdict.Attribution == report.Undetermined
	if v >= 2 && (top.Attribution == report.NodesFailIndependently || top.Attribution == report.Healthy) && sure(top) {
		o.say("breaks: missed", "%d fallen, %d controls: %s; X %s", v, c, verdict(top), verdictOf(x))
	} else if v >= 3 && c >= 3 && !(o.lossy && undetermined) && !(blamed && sure(x.Verdict) && top.Workload == report.Text(o.keyX().String())) {
		o.say("breaks: not found", "%d fallen, %d controls: top %s; X %s", v, c, verdict(top), verdictOf(x))
	} else if v >= 3 && c == 0 && !blamed && !undetermined {
		o.say("breaks: not found without controls", "%d fallen: top %s; X %s", v, verdict(top), verdictOf(x))
	}
	if !blamed {
		return
	}
	o.root(x)
	if o.lossy {
		return
	}
	o.goodRevision(x)
	o.reach(x)
	o.spread(x)
	o.advice(x)
}

func (o *oracle) root(x *report.Workload) {
	want := map[string][]report.Code{string(breaksFalse): {report.NodeNetworkNotReady}, string(breaksUnknown): {report.NodeUnreachable, report.NodeLeaseStale},
		string(breaksUnknown) + " by death": {report.NodeUnreachable, report.NodeLeaseStale}, string(initBreaks): {report.InitContainerFailed}, string(removalBreaks): {report.UntoleratedTaint}}[o.tr.how]
	if x.Verdict.RootCause == report.NodeNotReady && !o.stillDown(o.m.fallen) {
		return // what a node said that has recovered, nobody may know any more
	}
	if o.tr.how == string(initBreaks) && o.since(o.tr.record.fellFirst()) < 30*time.Second {
		return // the container is still at it
	}
	if want != nil && !slices.Contains(want, x.Verdict.RootCause) {
		o.say("root cause", "want %s: %s", want, verdictOf(x))
	}
}

// reach: who answers and who does not.
func (o *oracle) reach(x *report.Workload) {
	for _, n := range x.Recommendation.Reachable {
		if at, off := o.tr.offline[string(n)]; off && o.since(at) > 70*time.Second {
			o.say("reachable", "%s has been offline for %s: %s", n, o.since(at), verdictOf(x))
		}
	}
	for _, n := range x.Recommendation.Unreachable {
		if _, off := o.tr.offline[string(n)]; !off {
			o.say("unreachable", "%s answers: %s", n, verdictOf(x))
		}
	}
	listed := append(slices.Clone(x.Recommendation.Reachable), x.Recommendation.Unreachable...)
	for _, n := range o.m.fallen {
		if o.stillDown([]string{n}) && !slices.Contains(listed, report.Text(n)) && o.since(o.tr.record.fell[n]) > 20*time.Second {
			o.say("fallen node not listed", "%s: listed %v; %s", n, listed, verdictOf(x))
		}
	}
}

// spread: what comes next if nobody acts.
func (o *oracle) spread(x *report.Workload) {
	if o.tr.record.frozen.IsZero() || o.m.at.Add(5*time.Minute).Before(o.tr.record.frozen) {
		next, on := o.tr.goesOn(o.m)
		// Nodes that fell silent and do not show it yet will brake it; that is not known before.
		if on != x.Rollout.Spreading && (on || x.Rollout.MayStillFall == 0 && o.showing(x)) {
			o.say(fmt.Sprintf("spreading %v", x.Rollout.Spreading), "goes on: %v %s (reached %d of %d, at %s): %s", on, next, len(o.m.reached), len(o.tr.record.pool),
				o.tr.record.reached[next].Format(time.TimeOnly), verdictOf(x))
		}
	}
	var later []string
	var last time.Time
	for n, at := range o.tr.record.fell {
		known := x.Measures != nil && slices.Contains(x.Measures.After, report.Text(n)) // by its Lease, before the condition shows it
		if _, hit := o.tr.struck[n]; hit && !known && at.After(o.m.at) && o.m.reached[n] && (o.tr.record.swept.IsZero() || at.Before(o.tr.record.swept)) {
			later = append(later, n)
			if at.After(last) {
				last = at
			}
		}
	}
	if len(later) > x.Rollout.MayStillFall {
		slices.Sort(later)
		o.say("may still fall: too few", "%v fall later, said %d: pending %v; %s", later, x.Rollout.MayStillFall, pending(x), verdictOf(x))
	} else if u := x.Rollout.FallUntil; len(later) > 0 && (u == nil || last.After(u.Add(10*time.Second))) {
		o.say("fall until: too early", "last falls %s, said %v", last.Format(time.TimeOnly), u)
	}
}

func pending(x *report.Workload) []report.Text {
	if x.Measures == nil {
		return nil
	}
	return x.Measures.Pending
}

func (o *oracle) advice(x *report.Workload) {
	a := x.Recommendation
	want := report.ActionRollBack
	if o.tr.how == string(removalBreaks) {
		want = report.ActionFixWorkload
	}
	if a.Action != want && sure(x.Verdict) {
		o.say("advice", "want %s, got %s (%s): %s", want, a.Action, a.Why, verdictOf(x))
	}
	if !o.m.frozen && !slices.Contains(a.First, report.ActionOnDelete) {
		o.say("advice: not frozen first", "%s %v", a.Action, a.First)
	}
}

// afterUndo: the template is good again, bad Pods are left.
func (o *oracle) afterUndo() {
	x := o.x()
	down := 0
	for n := range o.m.bad {
		if slices.Contains(o.m.fallen, n) && o.stillDown([]string{n}) {
			down++
		}
	}
	blamed := x != nil && x.Verdict.Attribution == report.RolloutBreaksNodes
	if down >= 2 && len(o.m.controls) >= 3 && !blamed && !(o.lossy && x != nil && x.Verdict.Attribution == report.Undetermined) {
		o.say("undone: not found", "%d bad Pods on fallen nodes: top %s; X %s", down, verdict(o.r.Verdict), verdictOf(x))
		return
	}
	if !blamed || o.lossy {
		return
	}
	o.root(x)
	o.reach(x)
	o.goodRevision(x)
	a := x.Recommendation
	switch {
	case a.Action == report.ActionRollBack:
		o.say("undone: roll back again", "%s: %s", a.Why, verdictOf(x))
	case len(a.Reachable) > 0 && down > 0 && a.Action != report.ActionDeletePod && a.Action != report.ActionWait:
		o.say("undone: advice", "%s %s: %s", a.Action, a.Why, verdictOf(x))
	case a.Action == report.ActionDeletePod:
		ok := false
		for n, p := range o.m.bad {
			ok = ok || report.Text(p) == a.Pod && o.tr.offline[n].IsZero()
		}
		if !ok {
			o.say("undone: wrong Pod", "%s is not a bad Pod on a node that answers", a.Pod)
		}
	}
}

// afterRecovery: all is as it was.
func (o *oracle) afterRecovery() {
	if o.since(o.tr.record.swept) < 2*time.Minute+30*time.Second || len(o.tr.before) > 0 {
		return
	}
	for _, n := range o.m.snap.Nodes {
		if !readyNode(n) {
			return
		}
	}
	top := o.r.Verdict
	if top.Attribution != report.Healthy && top.Attribution != report.WaitingForOperator && !(o.lossy && top.Attribution == report.Undetermined) {
		o.say("recovered: not healthy", "%s; X %s", verdict(top), verdictOf(o.x()))
	}
}

// showing tells whether every node that is said to have fallen is not Ready by now.
func (o *oracle) showing(x *report.Workload) bool {
	for _, n := range x.Measures.After {
		if !o.tr.record.down[string(n)] && o.tr.record.fell[string(n)].After(o.m.at) {
			return false
		}
	}
	return true
}
