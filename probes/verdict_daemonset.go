package probes

import (
	"fmt"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// judgeDaemonSet gives a DaemonSet its verdict, findings and recommendation. What
// takes nodes down comes first, then what breaks Pods, then what holds it up.
func (c *Diagnosis) judgeDaemonSet(d *daemonSet) {
	c.rolloutFindings(d)
	c.coverageFindings(d)
	if f := c.creationFinding(d.blocked, d.object()); f != nil {
		d.findings = append(d.findings, *f)
	}
	failing := c.ownTroubles(d)
	d.verdict = report.Verdict{Attribution: report.Healthy, Confidence: report.High}
	d.recommend = report.Recommendation{Action: report.ActionNone}
	switch {
	case d.broke():
		c.breaksNodes(d)
	case d.undetermined():
		c.cannotTell(d)
	case !d.podsKnown && d.rollout.State != report.Complete && c.nodesFailedSince(d.change.start):
		c.podsUnread(d)
	case c.creationBlocked(d):
	case c.kubeletRefuses(d):
	case c.clockSkew(d):
	case len(failing) > 0 && c.breaksPods(d, failing):
	case c.failsLater(d):
	case c.cannotBePlaced(d):
	case c.blockedByNodes(d):
	case c.waitsForAnEnd(d):
	case d.rollout.State == report.NotObserved:
		d.verdict, d.recommend = c.stalled(report.Textf("generation %d is not acted on: the controller has observed %d", d.ds.Generation, d.ds.Status.ObservedGeneration))
	case d.rollout.State == report.OnDelete:
		d.verdict.Attribution, d.verdict.RootCause = report.WaitingForOperator, report.OnDeletePending
		d.verdict.Summary = report.Textf("OnDelete: %s still on an older revision; nothing moves until Pods are deleted", count(d.rollout.NotYetReached, "node"))
	case c.coverageGap(d):
	default:
		c.isHealthy(d)
		if d.coverage.stale && d.verdict.RootCause == "" {
			d.verdict.RootCause = report.MisscheduledStatusStale
			d.verdict.Summary += "; its count of misscheduled Pods is stale"
		}
	}
	if a := d.verdict.Attribution; a != report.RolloutBreaksNodes && a != report.RolloutBreaksPods && !(a == report.Undetermined && d.undetermined()) {
		d.rollout.Spreading = false // it moves, and nothing bad with it
	}
	blamed := d.blamedRevision()
	if d.verdict.Attribution == report.RolloutBreaksPods && d.rollout.Revision != nil {
		blamed = *d.rollout.Revision
	}
	d.rollout.KnownGoodRevision = d.knownGood(blamed)
	d.rollout.Revisions = d.revisionViews(d.rollout.KnownGoodRevision)
	c.recommendDaemonSet(d)
	c.historyFindings(d)
	c.notePardon(d)
	d.own()
	c.budgetFindings(d)
	d.findings = append(d.findings, c.requestFindings(d.key, &d.ds.Spec.Template, c.s.PodsOf(d.ds.UID))...)
	sortFindings(d.findings)
}

// ownTroubles are the new revision's Pods that fail for reasons of their own.
func (c *Diagnosis) ownTroubles(d *daemonSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.s.PodsOf(d.ds.UID) {
		t := d.troubles[p.Name]
		if t == nil || t.ofNode || p.DeletionTimestamp != nil || !d.updated(p) {
			continue
		}
		if n := c.nodes[cluster.TargetNode(p)]; n != nil && n.ready == corev1.ConditionUnknown {
			continue // its status is as old as the silence
		}
		if !c.ofRollout(d, p, t) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// partOfRollout tells whether the rollout made the Pod: not one that came later, to a
// node that joined since or in place of one that was lost.
func (c *Diagnosis) partOfRollout(d *daemonSet, p *corev1.Pod) bool {
	start := d.change.start
	if start.IsZero() {
		return true
	}
	if n := c.nodes[cluster.TargetNode(p)]; n != nil && n.node.CreationTimestamp.After(start.Add(time.Hour)) {
		return false
	}
	return p.CreationTimestamp.Sub(start) <= 24*time.Hour
}

// ofRollout tells whether a Pod's failure can be the rollout's doing: the rollout made
// the Pod, and it failed from the start. What ran well for an hour fails for another reason.
func (c *Diagnosis) ofRollout(d *daemonSet, p *corev1.Pod, t *podTrouble) bool {
	if d.rollout.State != report.Complete {
		return true
	}
	return c.partOfRollout(d, p) && failingSince(p, t).Sub(p.CreationTimestamp.Time) < time.Hour
}

// failingSince estimates when a Pod began to fail: containers are restarted after 10 s,
// 20 s, 40 s … up to 5 min, so that the number of restarts tells for how long.
func failingSince(p *corev1.Pod, t *podTrouble) time.Time {
	since := t.since
	if since.IsZero() {
		return p.CreationTimestamp.Time
	}
	var most int32
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		most = max(most, s.RestartCount)
	}
	for i := range most {
		since = since.Add(-min(10*time.Second<<min(i, 8), 5*time.Minute))
	}
	if since.Before(p.CreationTimestamp.Time) {
		return p.CreationTimestamp.Time
	}
	return since
}

// failsLater gives the verdict for Pods that fail although no rollout made them so:
// where only some nodes have it, the nodes differ; where all have it, something
// changed that no revision contains.
func (c *Diagnosis) failsLater(d *daemonSet) bool {
	byCode := map[report.Code][]*corev1.Pod{}
	total := 0
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if p.DeletionTimestamp != nil {
			continue
		}
		total++
		t := d.troubles[p.Name]
		n := c.nodes[cluster.TargetNode(p)]
		if t != nil && !t.ofNode && t.code.IsPod() && (n == nil || n.ready != corev1.ConditionUnknown) {
			byCode[t.code] = append(byCode[t.code], p)
		}
	}
	if len(byCode) == 0 {
		return false
	}
	root := mostOf(byCode)
	pods := byCode[root]
	on := nodesOf(pods)
	v := &d.verdict
	v.RootCause, v.Confidence = root, report.Medium
	v.Summary = report.Textf("%s on %s: %s; the rollout was over before that", count(len(pods), "Pod"), names(on, 3), d.troubles[pods[0].Name].summary)
	if 2*len(pods) > total {
		v.Attribution, v.Confidence = report.Undetermined, report.Low
		v.Missing = []report.Text{"what changed without a new revision: ConfigMaps, Secrets, policies, what the Pods depend on"}
	} else {
		v.Attribution = report.NodesFailIndependently
		v.For = []report.Text{report.Textf("%s of the same revision are fine on other nodes", count(total-len(pods), "Pod"))}
		if _, text := sharedTraits(c.statesOf(on), c.finePeers(d, pods)); text != "" {
			v.For = append(v.For, report.Textf("the nodes on which it fails share %s; the others do not", text))
			v.Summary += report.Textf("; the failing nodes share %s", text)
			// What the nodes are is more specific than how the Pod fails there.
		}
		c.splitReach(&d.recommend, c.statesOf(on))
	}
	d.markRoot(root, nil)
	return true
}

func (d *daemonSet) object() report.Object {
	return report.Object{Kind: "DaemonSet", Namespace: d.key.Namespace, Name: d.key.Name}
}

func (d *daemonSet) add(code report.Code, sev report.Severity, since time.Time, summary report.Text, ev ...report.Evidence) {
	d.findings = append(d.findings, report.Finding{Code: code, Severity: sev, Object: d.object(), Since: report.At(since), Summary: summary, Evidence: ev})
}

// breaksPods gives the verdict for new Pods that fail on nodes that are fine.
func (c *Diagnosis) breaksPods(d *daemonSet, failing []*corev1.Pod) bool {
	byCode := map[report.Code][]*corev1.Pod{}
	for _, p := range failing {
		byCode[d.troubles[p.Name].code] = append(byCode[d.troubles[p.Name].code], p)
	}
	root := mostOf(byCode)
	pods := byCode[root]
	on := nodesOf(pods)
	v := &d.verdict
	v.RootCause, v.Confidence = root, report.High
	for code := range byCode {
		if code != root {
			v.Contributing = append(v.Contributing, code)
		}
	}
	slices.Sort(v.Contributing)
	if d.rollout.State == report.Stuck {
		v.Contributing = append(v.Contributing, report.RolloutStuck)
	}
	example := d.troubles[pods[0].Name]
	newPods, oldFailing := d.onCurrent(), 0
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if t := d.troubles[p.Name]; t != nil && !t.ofNode && !d.updated(p) && p.DeletionTimestamp == nil {
			oldFailing++
		}
	}
	where := fmt.Sprintf("%s of revision %s on %s: %s", count(len(pods), "Pod"), number(d.rollout.Revision), names(on, 3), example.summary)
	switch {
	case schedulingOrCreation(root):
		v.Attribution = report.ClusterBlocksPods
		v.Summary, d.recommend = unplacedText(len(pods), example), example.remedy()
	case root == report.SandboxFailed || root == report.VolumeMountFailed && len(pods) < newPods && len(pods) <= 2:
		v.Attribution, v.Confidence = report.NodesFailIndependently, report.Medium
		v.Summary = report.Text("Ready nodes fail their Pods: ") + report.Clean(where)
	default:
		v.Attribution = report.RolloutBreaksPods
		v.Summary = report.Clean(where)
	}
	v.For = []report.Text{report.Textf("%d of %s of the current revision %s with %s", len(pods), count(newPods, "Pod"), failVerb(len(pods)), root)}
	if d.rollout.NotYetReached > 0 && oldFailing == 0 {
		v.For = append(v.For, report.Textf("no Pod of an older revision fails: %s", count(d.rollout.NotYetReached, "node")))
	}
	if oldFailing > 0 {
		v.Against = append(v.Against, report.Textf("%s of older revisions %s as well", count(oldFailing, "Pod"), failVerb(oldFailing)))
		v.Confidence = report.Medium
	}
	if n := newPods - len(failing); n > 0 {
		v.Against = append(v.Against, report.Textf("%s of the current revision are fine", count(n, "Pod")))
		if _, text := sharedTraits(c.statesOf(on), c.finePeers(d, failing)); text != "" {
			v.For = append(v.For, report.Textf("all nodes on which it fails share %s; the others do not", text))
			v.Summary += report.Textf("; the failing nodes share %s", text)
		}
	}
	v.For = append(v.For, example.grounds()...)
	if schedulingOrCreation(root) {
		d.rollBackEndsIt(root)
	}
	for i, line := range d.relevantDiff(root) {
		if i == 4 || d.rollout.State == report.Complete {
			break
		}
		v.For = append(v.For, report.Textf("changed with revision %s: %s", number(d.rollout.Revision), line))
	}
	c.avalanche(d, pods)
	if held := c.held(d); len(held) > 0 {
		v.Against = append(v.Against, report.Textf("%s of the budget held by nodes that fail for another reason: %s", isAre(len(held), "unit"), names(stateNames(held), 4)))
		v.Contributing = appendCode(v.Contributing, report.BudgetHeldByNodes, d.findings)
	}
	d.markRoot(root, nil)
	return true
}

// avalanche names the mechanism by which far more Pods are unavailable than the
// budget allows: old Pods that turned unready are replaced at once and without it.
func (c *Diagnosis) avalanche(d *daemonSet, failing []*corev1.Pod) {
	if len(failing) <= 2*d.rollout.MaxUnavailableResolved || d.analysis.count(classSuffering)+len(c.suffered(d)) < 2 {
		return
	}
	var made []time.Time
	for _, p := range failing {
		made = append(made, p.CreationTimestamp.Time)
	}
	if simultaneous(made, 30*time.Second) < 0.6 {
		return
	}
	d.rollout.Mode = "D"
	d.verdict.For = append(d.verdict.For, report.Textf("the pattern is %s", modeText("D")))
	d.recommend.WatchOut = append(d.recommend.WatchOut, "a rollback under RollingUpdate replaces every unready Pod at once too: make sure that the image of the target can be pulled")
	d.verdict.Summary += report.Textf("; an avalanche: %d Pods were replaced within seconds, far beyond maxUnavailable %d, because the old ones had turned unready", len(failing), d.rollout.MaxUnavailableResolved)
}

// suffered are the nodes whose old Pod was unavailable before it was replaced.
func (c *Diagnosis) suffered(d *daemonSet) []string {
	var out []string
	for _, e := range d.analysis.nodes {
		if e.suffering != "" && e.class != classSuffering {
			out = append(out, e.node.name)
		}
	}
	return out
}

func schedulingOrCreation(code report.Code) bool {
	switch code {
	case report.InsufficientResources, report.UntoleratedTaint, report.NodeAffinityMismatch, report.HostPortConflict, report.VolumeTopologyConflict,
		report.PodSpreadConflict, report.NodesCordoned, report.SchedulerSilent, report.SchedulerDown, report.SurgePortConflict, report.SurgeNoRoom:
		return true
	}
	return false
}

// appendCode adds a code of the chain if it was found.
func appendCode(to []report.Code, code report.Code, findings []report.Finding) []report.Code {
	if slices.Contains(to, code) {
		return to
	}
	for _, f := range findings {
		if f.Code == code {
			return append(to, code)
		}
	}
	return to
}

// markRoot raises the findings that are the root cause, on the given nodes or on all.
func (d *daemonSet) markRoot(root report.Code, on map[string]bool) {
	for i := range d.findings {
		f := &d.findings[i]
		if f.Code == root && (on == nil || on[string(f.Node)]) {
			f.Severity = root.Severity(true)
		}
	}
}

func mostOf(byCode map[report.Code][]*corev1.Pod) report.Code {
	codes := make([]report.Code, 0, len(byCode))
	for code := range byCode {
		codes = append(codes, code)
	}
	sort.Slice(codes, func(i, j int) bool {
		a, b := codes[i], codes[j]
		if len(byCode[a]) != len(byCode[b]) {
			return len(byCode[a]) > len(byCode[b])
		}
		return a < b
	})
	return codes[0]
}

func nodesOf(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		if n := cluster.TargetNode(p); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (c *Diagnosis) statesOf(names []string) []*nodeState {
	var out []*nodeState
	for _, n := range names {
		if st := c.nodes[n]; st != nil {
			out = append(out, st)
		}
	}
	return out
}

// finePeers are the nodes on which the current revision's Pod does its work.
func (c *Diagnosis) finePeers(d *daemonSet, failing []*corev1.Pod) []*nodeState {
	bad := nodesOf(failing)
	var out []*nodeState
	for i := range d.loop.Slots {
		if s := &d.loop.Slots[i]; s.State == cluster.SlotNewAvailable && !slices.Contains(bad, s.Node) && c.nodes[s.Node] != nil {
			out = append(out, c.nodes[s.Node])
		}
	}
	return out
}

func stateNames(list []*nodeState) []string {
	out := make([]string, 0, len(list))
	for _, n := range list {
		out = append(out, n.name)
	}
	return out
}

func number(n *int64) string {
	if n == nil {
		return "(unknown)"
	}
	return fmt.Sprint(*n)
}
