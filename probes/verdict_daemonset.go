package probes

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// judgeDaemonSet gives a DaemonSet its verdict, findings and recommendation. What
// takes nodes down comes first, then what breaks Pods, then what holds it up.
func (c *Diagnosis) judgeDaemonSet(d *daemonSet) {
	c.rolloutFindings(d)
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
	case len(failing) > 0 && c.breaksPods(d, failing):
	case c.blockedByNodes(d):
	case d.rollout.State == report.NotObserved:
		d.verdict.Attribution, d.verdict.RootCause, d.verdict.Confidence = report.ControllerStalled, report.RolloutNotObserved, report.Medium
		d.verdict.Summary = report.Textf("generation %d is not acted on: the controller has observed %d", d.ds.Generation, d.ds.Status.ObservedGeneration)
		d.verdict.For = []report.Text{"no event shows that the controller is at work on it"}
		d.recommend = report.Recommendation{Action: report.ActionFixCluster, Why: "look at kube-controller-manager: its Lease in kube-system, its log"}
	case d.rollout.State == report.OnDelete:
		d.verdict.Attribution, d.verdict.RootCause = report.WaitingForOperator, report.OnDeletePending
		d.verdict.Summary = report.Textf("OnDelete: %s still on an older revision; nothing moves until Pods are deleted", count(d.rollout.NotYetReached, "node"))
	default:
		c.isHealthy(d)
	}
	blamed := d.blamedRevision()
	d.rollout.KnownGoodRevision = d.knownGood(blamed)
	d.rollout.Revisions = d.revisionViews(d.rollout.KnownGoodRevision)
	c.recommendDaemonSet(d)
	c.notePardon(d)
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
		out = append(out, p)
	}
	return out
}

func (d *daemonSet) object() report.Object {
	return report.Object{Kind: "DaemonSet", Namespace: d.key.Namespace, Name: d.key.Name}
}

func (d *daemonSet) add(code report.Code, sev report.Severity, since time.Time, summary report.Text, ev ...report.Evidence) {
	d.findings = append(d.findings, report.Finding{Code: code, Severity: sev, Object: d.object(), Since: report.At(since), Summary: summary, Evidence: ev})
}

// rolloutFindings says where the rollout stands.
func (c *Diagnosis) rolloutFindings(d *daemonSet) {
	r, st := &d.rollout, d.ds.Status
	counters := report.Evidence{Source: "DaemonSet.status", At: report.At(c.s.AsOf),
		Value: report.Textf("desired=%d current=%d updated=%d ready=%d available=%d misscheduled=%d", st.DesiredNumberScheduled, st.CurrentNumberScheduled,
			st.UpdatedNumberScheduled, st.NumberReady, st.NumberAvailable, st.NumberMisscheduled)}
	last := time.Time{}
	if r.LastProgressAt != nil {
		last = r.LastProgressAt.Time
	}
	switch r.State {
	case report.Progressing:
		d.add(report.RolloutProgressing, report.Info, d.change.start, report.Textf("moves: %s not reached yet%s", count(r.NotYetReached, "node"), remaining(r.Remaining)), counters)
	case report.Slow:
		d.add(report.RolloutSlow, report.Info, d.change.start, report.Textf("moves, and needs %s more at the observed pace: %s not reached yet", orUnknown(r.Remaining), count(r.NotYetReached, "node")), counters)
	case report.Stuck:
		sev := report.Warning
		if len(c.ownTroubles(d)) > 0 {
			sev = report.Critical
		}
		ev := []report.Evidence{counters}
		for i, h := range r.BudgetHolders {
			if i == 10 {
				break
			}
			ev = append(ev, report.Evidence{Source: report.Textf("Node %s, Pod %s", h.Node, h.Pod), Value: h.Why})
		}
		d.add(report.RolloutStuck, sev, last, report.Textf("no Pod advanced since %s (%s)", stamp(last), short(c.s.AsOf.Sub(last))), ev...)
	case report.NotObserved:
		d.add(report.RolloutNotObserved, report.Warning, d.change.start, report.Textf("generation %d, observed %d", d.ds.Generation, st.ObservedGeneration),
			report.Evidence{Source: "DaemonSet.metadata.generation, status.observedGeneration", Value: report.Textf("%d, %d", d.ds.Generation, st.ObservedGeneration)})
	case report.OnDelete:
		d.add(report.OnDeletePending, report.Info, d.change.start, report.Textf("%s on an older revision; %d on the current one", count(r.NotYetReached, "Pod"), d.onCurrent()), counters)
	}
	if held := c.held(d); len(held) >= r.MaxUnavailableResolved && len(held) > 0 && d.ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType && r.MaxSurgeResolved == 0 && r.NotYetReached > 0 {
		var ev []report.Evidence
		for _, n := range held {
			ev = append(ev, report.Evidence{Source: report.Textf("Node %s", n.name), Value: report.Textf("%s since %s", readiness(n), dated(lastShown(n)))})
		}
		d.add(report.BudgetHeldByNodes, report.Warning, time.Time{}, report.Textf("maxUnavailable %d is used up by %s that fail: %s", r.MaxUnavailableResolved, count(len(held), "node"), names(stateNames(held), 4)), ev...)
	}
	c.manyRevisions(d)
	c.podFindings(d)
}

func remaining(t report.Text) string {
	if t == "" {
		return ""
	}
	return ", about " + string(t) + " more"
}

func orUnknown(t report.Text) report.Text {
	if t == "" {
		return "an unknown time"
	}
	return t
}

func (d *daemonSet) onCurrent() int {
	n := 0
	for i := range d.loop.Slots {
		if d.loop.Slots[i].New != nil {
			n++
		}
	}
	return n
}

// manyRevisions finds Pods of three or more different templates at once.
func (c *Diagnosis) manyRevisions(d *daemonSet) {
	byMeaning := map[int64][]string{}
	for i := range d.revisions {
		r := &d.revisions[i]
		if r.pods == 0 {
			continue
		}
		id := r.object.Revision
		if r.sameAs != 0 {
			id = r.sameAs
		}
		byMeaning[id] = append(byMeaning[id], fmt.Sprintf("revision %d: %d", r.object.Revision, r.pods))
	}
	if len(byMeaning) < 3 {
		return
	}
	var ev []report.Evidence
	for i := range d.revisions {
		if r := &d.revisions[i]; r.pods > 0 {
			ev = append(ev, report.Evidence{Source: report.Textf("Pods with label %s=%s", cluster.RevisionHash, r.hash), Value: report.Textf("revision %d: %s", r.object.Revision, count(r.pods, "Pod"))})
		}
	}
	d.add(report.MultipleRevisionsInFlight, report.Warning, d.change.start, report.Textf("Pods of %d revisions run at once", len(byMeaning)), ev...)
}

// podsListed bounds the findings of one code about single Pods.
const podsListed = 50

func (c *Diagnosis) podFindings(d *daemonSet) {
	listed := map[report.Code]int{}
	for _, p := range c.s.PodsOf(d.ds.UID) {
		t := d.troubles[p.Name]
		if t == nil || t.code == "" || t.code.IsNode() {
			continue
		}
		if listed[t.code]++; listed[t.code] > podsListed {
			continue
		}
		d.findings = append(d.findings, report.Finding{Code: t.code, Severity: report.Warning,
			Object: report.Object{Kind: "Pod", Namespace: d.key.Namespace, Name: report.Clean(p.Name)}, Node: report.Clean(cluster.TargetNode(p)),
			Since: report.At(t.since), Summary: t.summary, Evidence: t.evidence})
	}
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
		v.Summary = report.Textf("%s cannot be placed: %s", count(len(pods), "Pod"), example.summary)
	case root == report.SandboxFailed || root == report.VolumeMountFailed && len(pods) < newPods && len(pods) <= 2:
		v.Attribution, v.Confidence = report.NodesFailIndependently, report.Medium
		v.Summary = report.Text("Ready nodes fail their Pods: ") + report.Clean(where)
	default:
		v.Attribution = report.RolloutBreaksPods
		v.Summary = report.Clean(where)
	}
	v.For = []report.Text{report.Textf("%d of %s of the current revision fail with %s", len(pods), count(newPods, "Pod"), root)}
	if d.rollout.NotYetReached > 0 && oldFailing == 0 {
		v.For = append(v.For, report.Textf("none of the %s on an older revision fails", count(d.rollout.NotYetReached, "node")))
	}
	if oldFailing > 0 {
		v.Against = append(v.Against, report.Textf("%s of older revisions fail as well", count(oldFailing, "Pod")))
		v.Confidence = report.Medium
	}
	if n := newPods - len(failing); n > 0 {
		v.Against = append(v.Against, report.Textf("%s of the current revision are fine", count(n, "Pod")))
		if t, ok := sharedTrait(c.statesOf(on), c.finePeers(d, failing)); ok {
			v.For = append(v.For, report.Textf("all nodes on which it fails share %s; the others do not", t))
			v.Summary += report.Textf("; the failing nodes share %s", t)
		}
	}
	if held := c.held(d); len(held) > 0 {
		v.Against = append(v.Against, report.Textf("%s of the budget are held by nodes that fail for another reason: %s", count(len(held), "unit"), names(stateNames(held), 4)))
		v.Contributing = appendCode(v.Contributing, report.BudgetHeldByNodes, d.findings)
	}
	d.markRoot(root, nil)
	return true
}

func schedulingOrCreation(code report.Code) bool {
	switch code {
	case report.InsufficientResources, report.UntoleratedTaint, report.NodeAffinityMismatch, report.HostPortConflict, report.VolumeTopologyConflict,
		report.PodSpreadConflict, report.NodesCordoned, report.SchedulerSilent:
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

// creationBlocked finds that Pods cannot even be created. A DaemonSet has no
// condition for it: only its events and the gap tell.
func (c *Diagnosis) creationBlocked(d *daemonSet) bool {
	empty := 0
	for i := range d.loop.Slots {
		if d.loop.Slots[i].State == cluster.SlotEmpty && d.loop.Slots[i].ShouldRun {
			empty++
		}
	}
	if !d.podsKnown {
		empty = int(d.ds.Status.DesiredNumberScheduled - d.ds.Status.CurrentNumberScheduled)
	}
	if empty <= 0 {
		return false
	}
	events := c.s.EventsOf("DaemonSet", d.ds.Namespace, d.ds.Name)
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		code := creationCode(e.Message)
		if e.Reason != "FailedCreate" || code == "" {
			continue
		}
		d.add(code, report.Critical, cluster.EventOnset(e), report.Textf("%s cannot be created: %s", count(empty, "Pod"), firstWords(e.Message, 240)), eventEvidence(e))
		d.verdict = report.Verdict{Attribution: report.ClusterBlocksPods, RootCause: code, Confidence: report.High,
			Summary: report.Textf("%s cannot be created: %s", count(empty, "Pod"), firstWords(e.Message, 200)),
			For:     []report.Text{report.Textf("%s without a Pod, and the controller says why", count(empty, "node"))}}
		d.recommend = report.Recommendation{Action: report.ActionFixCluster, Why: d.verdict.Summary}
		return true
	}
	return false
}

// creationCode reads the API server's refusal off a controller's FailedCreate event.
func creationCode(m string) report.Code {
	switch {
	case strings.Contains(m, "exceeded quota"), strings.Contains(m, "failed quota"), strings.Contains(m, "insufficient quota"):
		return report.QuotaExceeded
	case strings.Contains(m, "violates PodSecurity"):
		return report.PodSecurityViolation
	case strings.Contains(m, "no PriorityClass with name"):
		return report.PriorityClassMissing
	case strings.Contains(m, "error looking up service account"), strings.Contains(m, "serviceaccount") && strings.Contains(m, "not found"):
		return report.ServiceAccountMissing
	case strings.Contains(m, "failed calling webhook"), strings.Contains(m, "failed to call webhook"):
		return report.AdmissionWebhookUnavailable
	case strings.Contains(m, "denied the request"), strings.Contains(m, "denied request"), strings.Contains(m, "is forbidden"):
		return report.AdmissionDenied
	}
	return ""
}
