package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// nodesAreTheIncident tells whether nodes that hold a rollout are the greater
// trouble: they fell together, or share what the others have not, or Pods other
// than those of rollouts suffer from them.
func (c *Diagnosis) nodesAreTheIncident(d *daemonSet, held []*nodeState) bool {
	if len(c.blamed()) > 0 {
		return false // another rollout broke them
	}
	if d.analysis.count(classExplained) > 0 && slices.ContainsFunc(d.analysis.by[classExplained], func(e *exposure) bool { return e.node.removal == "" }) {
		return true // something restarts or shuts down nodes
	}
	var recent []*nodeState
	for _, n := range c.independent() {
		if e := n.current(); e != nil && !e.onset.To.Before(d.change.start) {
			recent = append(recent, n)
		}
	}
	if len(recent) >= 3 && (d.analysis.judged == commonCause || c.fellTogether(recent)) {
		return true
	}
	if len(recent) >= 2 {
		if shared, _ := sharedTraits(recent, c.fine()); len(shared) > 0 {
			return true
		}
	}
	return c.podsSuffer(held)
}

func (c *Diagnosis) fellTogether(list []*nodeState) bool {
	var at []time.Time
	for _, n := range list {
		if e := n.current(); e != nil && !n.neverReady {
			at = append(at, e.onset.Mid())
		}
	}
	return len(at) >= 3 && simultaneous(at, 30*time.Second) >= 0.7
}

// podsSuffer tells whether replicas are missing because of those nodes.
func (c *Diagnosis) podsSuffer(nodes []*nodeState) bool {
	on := map[string]bool{}
	for _, n := range nodes {
		on[n.name] = true
	}
	for _, r := range c.replicated {
		if r.missing == 0 {
			continue
		}
		for _, p := range append(slices.Clone(r.pods), r.older...) {
			if on[p.Spec.NodeName] && !cluster.PodReady(p) {
				return true
			}
		}
	}
	return false
}

func (c *Diagnosis) fine() []*nodeState {
	var out []*nodeState
	for _, n := range c.nodeList {
		if !n.failing() && n.flaps < 3 {
			out = append(out, n)
		}
	}
	return out
}

// incidentVerdict is that of the worst workload or, where nodes fail that no
// rollout explains, the nodes' own.
func (c *Diagnosis) incidentVerdict(workloads []report.Workload) report.Verdict {
	nodes, hasNodes := c.nodesVerdict()
	if len(workloads) == 0 || rank(workloads[0].Verdict.Attribution) >= rank(report.Healthy) {
		if hasNodes {
			return nodes
		}
		v := report.Verdict{Attribution: report.Healthy, Confidence: report.High, Summary: "no rollout is in trouble and every node is Ready"}
		if gone := c.leaving(); len(gone) > 0 {
			v.RootCause = report.NodeBeingRemoved
			v.Summary = report.Textf("%s being removed on purpose: %s", isAre(len(gone), "node"), names(stateNames(gone), 4))
		}
		for i := range workloads {
			if w := &workloads[i]; w.Verdict.RootCause != "" && v.RootCause == "" {
				v.RootCause, v.Summary, v.Workload = w.Verdict.RootCause, w.Verdict.Summary, report.Clean(w.Key().String())
			}
		}
		c.unseen(&v, workloads)
		return v
	}
	w := &workloads[0]
	if hasNodes && w.Verdict.Attribution == report.NodesFailIndependently {
		// A change that may have broken these very nodes leaves it open.
		for i := range workloads {
			if x := &workloads[i]; x.Verdict.Attribution == report.Undetermined && x.Kind == "DaemonSet" && !c.nodesOutweigh(x) {
				w = x
				break
			}
		}
	}
	if x := c.refusedAgent(workloads); hasNodes && x != nil && w.Verdict.Attribution != report.RolloutBreaksNodes {
		w = x
	}
	if x := c.keptOffAgent(workloads); hasNodes && x != nil && w.Verdict.Attribution != report.RolloutBreaksNodes {
		v := x.Verdict
		v.Workload = report.Clean(x.Key().String())
		return v
	}
	worst := w.Verdict
	worst.Workload = report.Clean(w.Key().String())
	if !hasNodes {
		return worst
	}
	switch worst.Attribution {
	case report.RolloutBreaksNodes, report.RolloutBreaksPods, report.ClusterBlocksPods, report.Undetermined:
		if worst.Attribution == report.RolloutBreaksNodes || !c.nodesOutweigh(w) {
			return worst
		}
	case report.NodesBlockRollout:
		return worst
	}
	return nodes
}

// nodesOutweigh tells whether the nodes that fail are more than what the workload suffers.
func (c *Diagnosis) nodesOutweigh(w *report.Workload) bool {
	n := 0
	refused := c.blockedWorkload(fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name))
	for _, st := range c.independent() {
		if refused != nil && c.lacks(refused, st.name) {
			continue // it lacks the very Pod that cannot be created
		}
		if e := st.current(); e == nil || c.s.AsOf.Sub(e.shown) < 24*time.Hour {
			n++
		}
	}
	if w.Verdict.Attribution == report.Undetermined {
		for _, d := range c.daemonSets {
			if d.key == w.Key() && d.undetermined() {
				return 2*d.analysis.count(classAfter)+2*d.analysis.count(classUnclear) < n && d.analysis.hub == ""
			}
		}
		return n > 0
	}
	pods := 0
	for _, f := range w.Findings {
		if f.Code == w.Verdict.RootCause {
			pods++
		}
	}
	if refused != nil {
		pods = max(pods, refused.missing)
	}
	return n > pods
}

func isAre(n int, word string) string {
	if n == 1 {
		return count(n, word) + " is"
	}
	return count(n, word) + " are"
}

func (c *Diagnosis) leaving() []*nodeState {
	var out []*nodeState
	for _, n := range c.nodeList {
		if n.removal != "" {
			out = append(out, n)
		}
	}
	return out
}

// nodesVerdict is the verdict on nodes that fail for reasons of their own.
func (c *Diagnosis) nodesVerdict() (report.Verdict, bool) {
	list := c.independent()
	var explained []*nodeState
	for _, d := range c.daemonSets {
		for _, e := range d.analysis.by[classExplained] {
			if e.node.removal == "" && !slices.Contains(explained, e.node) && !slices.Contains(list, e.node) {
				explained = append(explained, e.node)
			}
		}
	}
	list = append(list, explained...)
	if len(list) == 0 {
		return report.Verdict{}, false
	}
	slices.SortFunc(list, func(a, b *nodeState) int { return strings.Compare(a.name, b.name) })
	v := report.Verdict{Attribution: report.NodesFailIndependently, Confidence: report.Medium}
	codes := map[report.Code]int{}
	for _, n := range list {
		code := n.code
		if e := n.current(); !n.rebootedAt.IsZero() && (!n.cordonedAt.IsZero() || !n.failing()) || e != nil && c.inReboots(n, e) {
			code = report.NodeRebooted
		}
		if n.flaps >= 3 && !n.failing() {
			code = report.NodeFlapping
		}
		if code == report.NodePressure && c.overRequest(n) {
			code = report.PodEvicted // what it used beyond its request is the trouble, the pressure its sign
			if !slices.Contains(v.Contributing, report.NodePressure) {
				v.Contributing = append(v.Contributing, report.NodePressure)
			}
		}
		codes[code]++
	}
	v.RootCause, _ = top(codes)
	if z, ok := c.zoneOut(list); ok {
		v.Contributing = append(v.Contributing, v.RootCause)
		v.RootCause = report.ZoneOutage
		v.For = append(v.For, report.Textf("most nodes of zone %s fell within seconds, %s", z, c.outsideZone(list, z)))
	}
	for code := range codes {
		if code != v.RootCause && !slices.Contains(v.Contributing, code) {
			v.Contributing = append(v.Contributing, code)
		}
	}
	slices.Sort(v.Contributing)
	v.Summary = report.Textf("%s %s and no rollout explains it: %s", count(len(list), "node"), failVerb(len(list)), names(stateNames(list), 4))
	if _, text := sharedTraits(list, c.fine()); text != "" {
		v.For = append(v.For, report.Textf("they share %s; at most one in ten of the others has it", text))
		v.Summary += report.Textf("; they share %s", text)
		v.Confidence = report.High
	} else if _, text := enrichedTraits(list, c.fine()); text != "" {
		with := c.having(text)
		v.For = append(v.For, report.Textf("they share %s: %d of the %s with it fell, none without", text, len(list), count(with, "node")))
		v.Summary += report.Textf("; they share %s", text)
	}
	if codes[report.NodeFlapping] > 0 && c.grace < leaseDuration {
		v.For = append(v.For, report.Textf("node-monitor-grace-period is %s, shorter than a Lease's %s: one late renewal is enough", short(c.grace), short(leaseDuration)))
	}
	if c.fellTogether(list) {
		v.For = append(v.For, "they fell within seconds of each other")
		v.Confidence = report.High
	}
	c.clearedRollouts(&v)
	for _, f := range c.inPlaceFindings() {
		if first := c.firstFall(); f.Since != nil && f.Since.Before(first) {
			v.For = append(v.For, inPlaceText(&f))
			if !slices.Contains(v.Contributing, f.Code) {
				v.Contributing = append(v.Contributing, f.Code)
			}
			if v.Confidence == report.High {
				v.Confidence = report.Medium // such a change has no nodes without it to compare with
			}
		}
	}
	for _, r := range []cluster.Resource{cluster.Events, cluster.Leases, cluster.DaemonSets, cluster.Pods} {
		if !c.s.Read(r) {
			v.Missing = append(v.Missing, report.Textf("%s were not read", r))
		}
	}
	if !c.s.Read(cluster.DaemonSets) || !c.s.Read(cluster.Pods) && c.anyMoves() {
		// Whether a rollout is the reason is the very thing that could not be looked at.
		v.Attribution, v.Confidence = report.Undetermined, report.Low
		v.Summary = report.Textf("%s, and whether a rollout is the reason could not be read: %s", count(len(list), "node")+" "+failVerb(len(list)), names(stateNames(list), 4))
		v.For = nil
	}
	on := map[string]bool{}
	for _, n := range list {
		on[n.name] = true
	}
	c.markNodes(v.RootCause, on)
	return v, true
}

// having counts the nodes with all of the traits that the text names.
func (c *Diagnosis) having(text string) int {
	n := 0
	for _, st := range c.nodeList {
		own := map[string]bool{}
		for _, t := range traits(st.node) {
			own[t.String()] = true
		}
		all := true
		for _, word := range strings.Split(text, ", ") {
			all = all && own[word]
		}
		if all {
			n++
		}
	}
	return n
}

// anyMoves tells whether a DaemonSet's rollout is in progress.
func (c *Diagnosis) anyMoves() bool {
	return slices.ContainsFunc(c.daemonSets, func(d *daemonSet) bool { return d.rollout.State != report.Complete })
}

// overRequest tells whether a Pod was evicted from the node for using more than it
// had requested.
func (c *Diagnosis) overRequest(n *nodeState) bool {
	for _, p := range c.s.PodsOn(n.name) {
		if p.Status.Reason == "Evicted" && (strings.Contains(p.Status.Message, "request is") || strings.Contains(p.Status.Message, "exceeds its request")) {
			return true
		}
	}
	return false
}

// clearedRollouts says why the rollouts of these minutes are not the reason.
func (c *Diagnosis) clearedRollouts(v *report.Verdict) {
	for _, d := range c.daemonSets {
		a := d.analysis
		if d.rollout.State == report.Complete && c.firstFall().Sub(a.change.start) > cluster.SuspectBefore {
			continue // nobody would suspect it
		}
		var why []string
		for _, x := range []struct {
			cl   class
			text string
		}{{classPrevalent, "fell before it began"}, {classBefore, "fell before their Pod was replaced"}, {classOld, "fell without having received it"},
			{classExplained, "have a reason of their own"}, {classSuffering, "had an unavailable Pod before it was replaced"}, {classNew, "joined since, or never were Ready"}} {
			if n := a.count(x.cl); n > 0 {
				why = append(why, count(n, "node")+" "+x.text)
			}
		}
		if len(why) > 0 {
			v.For = append(v.For, report.Textf("%s is cleared: %s", d, strings.Join(why, ", ")))
		}
	}
	if len(v.For) == 0 && !slices.ContainsFunc(c.daemonSets, func(d *daemonSet) bool { return d.analysis.count(classAfter) > 0 }) {
		v.For = append(v.For, "no rollout reached these nodes before they failed")
	}
}

// zoneOut finds a zone of which most nodes fell within seconds, with few outside it.
func (c *Diagnosis) zoneOut(list []*nodeState) (string, bool) {
	total, fell, at := map[string]int{}, map[string]int{}, map[string][]time.Time{}
	for _, n := range c.nodeList {
		total[zone(n.node)]++
	}
	for _, n := range list {
		if e := n.current(); e != nil && c.s.AsOf.Sub(e.shown) < 24*time.Hour {
			z := zone(n.node)
			fell[z]++
			at[z] = append(at[z], e.onset.Mid())
		}
	}
	if len(total) < 2 {
		return "", false
	}
	for z, n := range fell {
		outside := 0
		for o, k := range fell {
			if o != z {
				outside += k
			}
		}
		if z != "" && n >= 2 && 2*n > total[z] && 10*outside <= n+9 && outside*2 <= n && simultaneous(at[z], 30*time.Second) >= 0.7 {
			return z, true
		}
	}
	return "", false
}

// outsideZone says how many of the nodes that failed are in other zones.
func (c *Diagnosis) outsideZone(list []*nodeState, z string) string {
	n := 0
	for _, st := range list {
		if e := st.current(); zone(st.node) != z && e != nil && c.s.AsOf.Sub(e.shown) < 24*time.Hour {
			n++
		}
	}
	if n == 0 {
		return "none outside it"
	}
	return fmt.Sprintf("%d outside it", n)
}

// rank orders attributions as a report lists them, the worst first.
func rank(a report.Attribution) int {
	order := []report.Attribution{report.RolloutBreaksNodes, report.RolloutBreaksPods, report.ClusterBlocksPods, report.NodesFailIndependently,
		report.NodesBlockRollout, report.ControllerStalled, report.Undetermined, report.CoverageGap, report.WaitingForOperator, report.Healthy}
	return slices.Index(order, a)
}

// zoneFindings says that a zone is out.
func (c *Diagnosis) zoneFindings() []report.Finding {
	list := c.independent()
	z, ok := c.zoneOut(list)
	if !ok {
		return nil
	}
	f := report.Finding{Code: report.ZoneOutage, Severity: report.ZoneOutage.Severity(true), Object: report.Object{Kind: "Zone", Name: report.Clean(z)}}
	var first time.Time
	n := 0
	for _, st := range list {
		e := st.current()
		if zone(st.node) != z || e == nil {
			continue
		}
		n++
		if first.IsZero() || e.onset.From.Before(first) {
			first = e.onset.From
		}
		f.Evidence = append(f.Evidence, report.Evidence{Source: report.Textf("Node %s", st.name), Value: report.Clean(readiness(st)), At: report.At(e.shown)})
	}
	f.Since = report.At(first)
	f.Summary = report.Textf("%s of zone %s fell within seconds, %s", count(n, "node"), z, c.outsideZone(list, z))
	return []report.Finding{f}
}
