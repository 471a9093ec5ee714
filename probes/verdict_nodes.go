package probes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// breaksNodes gives the verdict that the change broke the nodes.
func (c *Diagnosis) breaksNodes(d *daemonSet) {
	a, v := d.analysis, &d.verdict
	A, H := a.by[classAfter], a.by[classHealthy]
	if !a.change.current {
		d.rollout.Spreading = false // what moves now is the way back
	}
	v.Attribution, v.Confidence = report.RolloutBreaksNodes, a.confidence()
	v.RootCause = c.rootOfBreak(d)
	had, rev := len(A)+len(H), a.change.revision
	v.Summary = report.Textf("%d of %s that received %s lost Ready %s; %s", len(A), count(had, "node"), revisionName(rev), a.lagText(), a.controlText(rev))
	v.For = append(v.For, report.Textf("%d of %s that received %s and had time to fall, fell %s", len(A), count(had, "node"), revisionName(rev), a.lagText()))
	if n := a.count(classClean); n > 0 {
		v.For = append(v.For, report.Textf("%d of %s that did not receive it fell", a.count(classOld), count(n+a.count(classOld), "node")))
	}
	if a.stratum != "" {
		v.For = append(v.For, report.Textf("it breaks nodes with %s only: all that fell have it, those that did not fall have not", a.stratum))
		v.Summary = report.Text(strings.TrimSuffix(string(v.Summary), ".")) + report.Textf("; only nodes with %s", a.stratum)
	}
	if a.mode != "" {
		v.For = append(v.For, report.Textf("the pattern is %s", modeText(a.mode)))
	}
	if a.inGap > 0 {
		v.For = append(v.For, report.Textf("%s fell between the old Pod's end and the new one's start: stopping the agent is what hurts", count(a.inGap, "node")))
	}
	if n := a.count(classPrevalent); n > 0 {
		v.For = append(v.For, report.Textf("%s down from before it began: not counted", wasWere(n, "node")))
	}
	if a.atAge > 0 {
		v.For = append(v.For, report.Textf("they fell at the same age of their new Pod, %s: what it got at its start may have run out", short(a.atAge)))
	}
	if len(d.rollout.Critical) > 0 {
		v.For = append(v.For, report.Textf("its Pod can hurt a node: %s", joinTexts(d.rollout.Critical, 5)))
	}
	v.Against = a.against(d)
	v.Missing = c.missing(d)
	d.rollout.Mode = report.Clean(strings.TrimSuffix(a.mode, "halted"))
	v.Contributing = c.chain(d)
	a.measures.Falsify = report.Textf("a node that loses Ready without having received %s, or several that received it and stay Ready for %s", revisionName(rev), short(a.horizon))
	if d.rollout.Spreading {
		d.add(report.RolloutSpreading, report.Critical, a.change.start, report.Textf("nothing brakes it: %s not reached yet", count(d.rollout.NotYetReached, "node")),
			report.Evidence{Source: "DaemonSet.spec.updateStrategy", Value: report.Textf("RollingUpdate, maxUnavailable %s (%d), %d in use for good", d.rollout.MaxUnavailable, d.rollout.MaxUnavailableResolved, d.stuckUnits(c))})
	}
	d.rollout.MayStillFall = a.count(classPending)
	for _, e := range a.by[classPending] {
		until := latest(e.created, e.deleted.To).Add(a.horizon)
		if d.rollout.FallUntil == nil || until.After(d.rollout.FallUntil.Time) {
			d.rollout.FallUntil = report.At(until)
		}
	}
	on := map[string]bool{}
	for _, e := range A {
		on[e.node.name] = true
	}
	c.coverageOfBroken(d, A)
	d.markRoot(v.RootCause, on)
	c.markNodes(v.RootCause, on)
}

func themIt(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func revisionName(n int64) string {
	if n == 0 {
		return "the change"
	}
	return fmt.Sprintf("revision %d", n)
}

// lagText writes the lags, False and Unknown apart.
func (a *analysis) lagText() string {
	lo, hi, n := map[corev1.ConditionStatus]float64{}, map[corev1.ConditionStatus]float64{}, map[corev1.ConditionStatus]int{}
	vague := false
	for _, e := range a.by[classAfter] {
		k := e.episode.status
		vague = vague || e.deleted.Width() > time.Minute
		// Ready=False shows within seconds, so that what was seen is the better time;
		// Unknown shows a grace period late, so that its onset is.
		from := e.episode.onset.Mid().Sub(e.deleted.Mid()).Seconds()
		if k == corev1.ConditionFalse {
			from = e.episode.shown.Sub(e.deleted.Mid()).Seconds()
		}
		from = max(from, 0)
		if n[k] == 0 || from < lo[k] {
			lo[k] = from
		}
		if n[k] == 0 || from > hi[k] {
			hi[k] = from
		}
		n[k]++
	}
	var parts []string
	for _, k := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		if n[k] == 0 {
			continue
		}
		l, h := math.Round(lo[k]), math.Round(hi[k])
		t := fmt.Sprintf("%.0f to %.0f s later", l, h)
		switch {
		case vague:
			t = fmt.Sprintf("within %s", short(seconds(h)))
		case h > 600 && short(seconds(l)) == short(seconds(h)):
			t = short(seconds(h)) + " later"
		case h > 600:
			t = fmt.Sprintf("%s to %s later", short(seconds(l)), short(seconds(h)))
		case l == h:
			t = fmt.Sprintf("%.0f s later", l)
		}
		if len(n) > 1 {
			t = fmt.Sprintf("%d %s %s", n[k], k, t)
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (a *analysis) controlText(rev int64) string {
	old, clean := a.count(classOld), a.count(classClean)
	switch {
	case old+clean == 0:
		return "no node without it is left to compare with."
	case old == 0:
		if clean == 1 {
			return "the one node without it did not."
		}
		return fmt.Sprintf("none of the %s without it did.", count(clean, "node"))
	}
	return fmt.Sprintf("%d of the %s without it did.", old, count(old+clean, "node"))
}

func joinTexts(t []report.Text, most int) string {
	s := make([]string, 0, len(t))
	for _, x := range t {
		s = append(s, string(x))
	}
	return names(s, most)
}

// against lists what contradicts the verdict, node by node.
func (a *analysis) against(d *daemonSet) []report.Text {
	var out []report.Text
	say := func(cl class, format string) {
		if n := a.count(cl); n > 0 {
			out = append(out, report.Textf(format, count(n, "node"), names(nodeNames(a.by[cl]), 4)))
		}
	}
	if a.stratum == "" {
		say(classHealthy, "%s received it, had time to fall and did not: %s")
	}
	say(classOld, "%s fell without having received it: %s")
	say(classBefore, "%s fell before their Pod was replaced: %s")
	say(classLate, "%s fell long after they received it: %s")
	say(classSuffering, "%s had a Pod that was unavailable before it was replaced: %s")
	say(classUnclear, "%s fell at a time that is not known: %s")
	if a.nobodyOld {
		out = append(out, "every node has received it: there is none left to compare with")
	}
	if a.joint != "" {
		out = append(out, report.Textf("%s rolled over the same nodes in the same minutes; the two cannot be told apart", a.joint))
	}
	return out
}

// rootOfBreak is the most specific reason: the new Pod's own failure on the nodes
// that fell, a missing toleration that leaves them without a Pod, or what the
// nodes themselves say.
func (c *Diagnosis) rootOfBreak(d *daemonSet) report.Code {
	A := d.analysis.by[classAfter]
	own, node := map[report.Code]int{}, map[report.Code]int{}
	for _, e := range A {
		if code := c.codeOfEpisode(e); code != "" {
			node[code]++
		}
		if e.pod == nil || e.episode.status == corev1.ConditionUnknown && e.node.ready == corev1.ConditionUnknown && !failedBefore(d, e) {
			continue
		}
		if t := d.troubles[e.pod.Name]; t != nil && !t.ofNode && t.code.IsPod() && t.code != report.StuckTerminating && t.code != report.SandboxFailed {
			own[t.code]++
		}
	}
	if code, n := top(own); 2*n >= len(A) && n > 0 {
		return code
	}
	if d.analysis.mode == "C" {
		return report.UntoleratedTaint
	}
	if node[report.NodeUnreachable] > 0 {
		// What has just stopped renewing is the same trouble, not declared yet.
		node[report.NodeUnreachable] += node[report.NodeLeaseStale]
		delete(node, report.NodeLeaseStale)
	}
	code, n := top(node)
	if n == 0 {
		return report.NodeNotReady // all have recovered, and what they said is not known any more
	}
	return code
}

// failedBefore tells whether the new Pod failed before its node fell silent.
func failedBefore(d *daemonSet, e *exposure) bool {
	t := d.troubles[e.pod.Name]
	return t != nil && !t.since.IsZero() && t.since.Before(e.episode.shown)
}

// codeOfEpisode is what the node said while it was down, "" where nobody kept it.
func (c *Diagnosis) codeOfEpisode(e *exposure) report.Code {
	if e.node.failing() {
		if e.node.code == report.NodeNeverReady {
			return report.NodeNotReady
		}
		return e.node.code
	}
	if !e.node.rebootedAt.IsZero() {
		return report.NodeRebooted
	}
	if e.episode.status == corev1.ConditionUnknown {
		return report.NodeUnreachable
	}
	if e.episode.message == "" {
		return ""
	}
	code, _ := readyFalse(e.episode.message)
	return code
}

func top(m map[report.Code]int) (report.Code, int) {
	var best report.Code
	for code, n := range m {
		if n > m[best] || n == m[best] && code < best {
			best = code
		}
	}
	return best, m[best]
}

// chain lists the other codes between the root cause and what is seen.
func (c *Diagnosis) chain(d *daemonSet) []report.Code {
	seen := map[report.Code]bool{d.verdict.RootCause: true}
	var out []report.Code
	add := func(code report.Code) {
		if code != "" && !seen[code] {
			seen[code] = true
			out = append(out, code)
		}
	}
	counts := map[report.Code]int{}
	for _, e := range d.analysis.by[classAfter] {
		counts[c.codeOfEpisode(e)]++
	}
	for code := range counts {
		add(code)
	}
	slices.Sort(out)
	if d.analysis.mode == "C" {
		add(report.NodeNotCovered)
	}
	for _, code := range []report.Code{report.RolloutStuck, report.BudgetHeldByNodes} {
		for _, f := range d.findings {
			if f.Code == code {
				add(code)
			}
		}
	}
	if d.rollout.Spreading {
		add(report.RolloutSpreading)
	}
	return out
}

// coverageOfBroken says which of the nodes that fell have no Pod, and will get none.
func (c *Diagnosis) coverageOfBroken(d *daemonSet, fell []*exposure) {
	for _, e := range fell {
		if !e.podless && !d.bare(e) {
			continue
		}
		taints := cluster.UntoleratedTaints(e.node.node, &d.ds.Spec.Template)
		if len(taints) == 0 {
			continue
		}
		var keys []string
		for _, t := range taints {
			keys = append(keys, t.Key+":"+string(t.Effect))
		}
		ev := report.Evidence{Source: "Node.spec.taints", Value: report.Clean(strings.Join(keys, ", "))}
		if taints[0].TimeAdded != nil {
			ev.At = report.At(taints[0].TimeAdded.Time)
		}
		for _, f := range []report.Finding{
			{Code: report.NodeNotCovered, Summary: report.Textf("had a Pod and has none now; none will be created while %s is there", keys[0])},
			{Code: report.UntoleratedTaint, Summary: report.Textf("the template does not tolerate %s", strings.Join(keys, ", "))},
		} {
			f.Severity, f.Object, f.Node, f.Evidence = report.Warning, d.object(), report.Clean(e.node.name), []report.Evidence{ev}
			f.Since = ev.At
			d.findings = append(d.findings, f)
		}
	}
}

// markNodes raises the nodes' own findings where they are the root cause.
func (c *Diagnosis) markNodes(root report.Code, on map[string]bool) {
	for _, n := range c.nodeList {
		if !on[n.name] {
			continue
		}
		for i := range n.findings {
			if n.findings[i].Code == root {
				n.findings[i].Severity = root.Severity(true)
			}
		}
	}
}

func (d *daemonSet) stuckUnits(c *Diagnosis) int {
	n := 0
	for i := range d.loop.Slots {
		if s := &d.loop.Slots[i]; s.Holds() && d.holdsForGood(c, s) {
			n++
		}
	}
	return n
}

// missing lists what the evidence lacks.
func (c *Diagnosis) missing(d *daemonSet) []report.Text {
	var out []report.Text
	for _, r := range []cluster.Resource{cluster.Events, cluster.Leases, cluster.ControllerRevisions, cluster.Pods, cluster.Nodes} {
		if !c.s.Read(r) {
			out = append(out, report.Textf("%s were not read", r))
		}
	}
	if d.rollout.ChangedBy == nil {
		out = append(out, "who changed the template: managedFields were not read")
	}
	if d.change.start.IsZero() {
		out = append(out, "when the template changed")
	}
	return out
}

// cannotTell is the honest answer: nodes fell after the change, and the evidence
// does not say whether it was the change.
func (c *Diagnosis) cannotTell(d *daemonSet) {
	a, v := d.analysis, &d.verdict
	v.Attribution, v.Confidence = report.Undetermined, report.Low
	if n := a.count(classAfter); n > 0 {
		v.For = append(v.For, report.Textf("%s fell after %s reached %s", count(n, "node"), revisionName(a.change.revision), themIt(n)))
	}
	v.Against, v.Missing = a.against(d), c.missing(d)
	switch {
	case a.hub != "":
		v.Summary = report.Textf("nodes fell that %s had not reached; %s", revisionName(a.change.revision), a.hub)
		v.For = append(v.For, report.Clean(a.hub))
		v.Missing = append(v.Missing, "whether the other nodes depend on that one")
	default:
		n := a.count(classAfter) + a.count(classUnclear)
		v.Summary = report.Textf("%s fell since %s began, and what is known is not enough to tell whether it was the reason", count(n, "node"), revisionName(a.change.revision))
		v.Missing = append(v.Missing, "more nodes with known times, or a node without the change to compare with")
	}
	if a.count(classAfter) > 0 {
		v.RootCause = c.rootOfBreak(d)
	} else if len(a.by[classUnclear]) > 0 {
		v.RootCause = a.by[classUnclear][0].node.code
	} else if len(a.by[classOld]) > 0 {
		v.RootCause = a.by[classOld][0].node.code
	}
}

// nodesFailedSince tells whether any node lost Ready since t.
func (c *Diagnosis) nodesFailedSince(t time.Time) bool {
	for _, n := range c.nodeList {
		if e := n.current(); e != nil && n.removal == "" && e.onset.To.After(t) {
			return true
		}
	}
	return false
}

func (c *Diagnosis) podsUnread(d *daemonSet) {
	d.verdict.Attribution, d.verdict.Confidence = report.Undetermined, report.Low
	d.verdict.Summary = "it is rolling out while nodes fall, and its Pods were not read"
	d.verdict.Missing = append(c.missing(d), "its Pods: which node received the change, and when")
}

// blockedByNodes finds that the rollout waits for nodes that failed before their
// Pod's turn came, or that something else breaks the nodes it meets.
func (c *Diagnosis) blockedByNodes(d *daemonSet) bool {
	held := c.held(d)
	if len(held) == 0 || d.rollout.State == report.OnDelete || d.rollout.MaxSurgeResolved == 0 && d.stuckUnits(c) < d.rollout.MaxUnavailableResolved {
		return false
	}
	v := &d.verdict
	v.Attribution, v.Confidence = report.NodesBlockRollout, report.High
	if c.nodesAreTheIncident(d, held) {
		v.Attribution = report.NodesFailIndependently
	}
	codes := map[report.Code]int{}
	for _, n := range held {
		codes[n.code]++
	}
	v.RootCause, _ = top(codes)
	v.Contributing = appendCode(appendCode(nil, report.BudgetHeldByNodes, d.findings), report.RolloutStuck, d.findings)
	v.Summary = report.Textf("the rollout waits for %s that %s: %s", count(len(held), "node"), failVerb(len(held)), names(stateNames(held), 4))
	v.For = []report.Text{report.Textf("maxUnavailable is %d, and Pods on %s use it up: %s", d.rollout.MaxUnavailableResolved, count(len(held), "node"), names(stateNames(held), 4))}
	if n := d.analysis.count(classPrevalent) + d.analysis.count(classBefore) + d.analysis.count(classOld); n > 0 {
		them := "them"
		if n == 1 {
			them = "it"
		}
		v.For = append(v.For, report.Textf("%s failed before the rollout reached %s", count(n, "node"), them))
	}
	if d.analysis.pardoned != "" {
		v.For = append(v.For, report.Clean(d.analysis.pardoned))
	}
	v.Missing = c.missing(d)
	on := map[string]bool{}
	for _, n := range held {
		on[n.name] = true
	}
	c.markNodes(v.RootCause, on)
	return true
}

func failVerb(n int) string {
	if n == 1 {
		return "fails"
	}
	return "fail"
}

// isHealthy gives the verdict of a rollout that moves or is complete.
func (c *Diagnosis) isHealthy(d *daemonSet) {
	v, r := &d.verdict, &d.rollout
	switch r.State {
	case report.Complete:
		v.Summary = "complete"
	case report.Slow:
		v.Summary = report.Textf("moves; %s at the observed pace", orUnknown(r.Remaining))
		v.RootCause = report.RolloutSlow
	case report.Stuck:
		// Nothing explains why it does not move.
		v.Attribution, v.Confidence, v.RootCause = report.Undetermined, report.Low, report.RolloutStuck
		v.Summary = report.Textf("no Pod advanced since %s, and nothing that was read says why", stamp(r.LastProgressAt.Time))
		v.Missing = c.missing(d)
		return
	default:
		v.Summary = report.Textf("moves: %s not reached yet%s", count(r.NotYetReached, "node"), remaining(r.Remaining))
	}
	if !d.podsKnown && r.State == report.Complete {
		v.Confidence = report.Medium
	}
}

// notePardon says on a cleared rollout why it was cleared.
func (c *Diagnosis) notePardon(d *daemonSet) {
	if a := d.analysis; a.pardoned != "" && !slices.Contains(d.verdict.For, report.Clean(a.pardoned)) {
		d.verdict.For = append(d.verdict.For, report.Clean(a.pardoned))
	}
	if n := d.analysis.count(classExplained); n > 0 {
		var why []string
		for _, e := range d.analysis.by[classExplained] {
			why = append(why, e.node.name+" "+c.explained(e))
		}
		d.verdict.For = append(d.verdict.For, report.Textf("not counted against it: %s", names(why, 4)))
	}
}
