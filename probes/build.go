package probes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// buildReport puts together what was concluded, the worst first.
func (c *Diagnosis) buildReport() {
	r := &report.Report{APIVersion: report.APIVersion, Kind: report.Kind, AsOf: report.Time{Time: c.s.AsOf},
		Source: report.Source{Type: report.Clean(c.s.Source.Type), Context: report.Clean(c.s.Source.Context), Server: report.Clean(c.s.Source.Server), Version: report.Clean(c.s.Source.Version)}}
	c.Report = r
	for _, n := range c.nodeList {
		r.Nodes.Total++
		switch n.ready {
		case corev1.ConditionTrue:
			r.Nodes.Ready++
		case corev1.ConditionFalse:
			r.Nodes.NotReady++
		default:
			r.Nodes.Unknown++
		}
		if n.node.Spec.Unschedulable {
			r.Nodes.Cordoned++
		}
	}
	var all []report.Workload
	for _, d := range c.daemonSets {
		all = append(all, c.daemonSetView(d))
	}
	for _, x := range c.replicated {
		all = append(all, x.view())
	}
	slices.SortStableFunc(all, c.byWeight)
	r.Verdict = c.incidentVerdict(all)
	for i := range all {
		w := &all[i]
		c.hindsight(&w.Verdict)
		tidy(w)
		kept := slices.Contains(c.options.Keep, w.Key())
		if c.options.Namespace != "" && string(w.Namespace) != c.options.Namespace && !kept {
			continue
		}
		if !c.options.All && !kept && quiet(w) {
			r.Quiet++
			continue
		}
		if d := c.daemonSet(w.Key()); d != nil {
			w.Coverage = c.coverageView(d)
		}
		r.Workloads = append(r.Workloads, *w)
	}
	for _, n := range c.nodeList {
		r.ClusterFindings = append(r.ClusterFindings, n.findings...)
	}
	r.ClusterFindings = slices.Concat(r.ClusterFindings, c.stake.findings, c.inPlaceFindings(), c.zoneFindings())
	sortFindings(r.ClusterFindings)
	r.AtStake = c.stake.lines
	for i := range r.ClusterFindings {
		if r.ClusterFindings[i].Evidence == nil {
			r.ClusterFindings[i].Evidence = []report.Evidence{}
		}
	}
	for _, n := range c.s.NotRead {
		if n.Reason == cluster.NotAsked {
			continue
		}
		r.NotRead = append(r.NotRead, report.NotRead{Resource: report.Clean(string(n.Resource)), Namespace: report.Clean(n.Namespace), Reason: report.Clean(n.Reason)})
	}
	slices.SortFunc(r.NotRead, func(a, b report.NotRead) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Reason, b.Reason))
	})
	for _, k := range c.s.Loading() {
		r.Waiting = append(r.Waiting, report.Clean(string(k)))
	}
	c.hindsight(&r.Verdict)
	tidyVerdict(&r.Verdict)
	r.Recommendation = c.incidentRecommendation(&r.Verdict, all)
	if r.Workloads == nil {
		r.Workloads = []report.Workload{}
	}
	if r.ClusterFindings == nil {
		r.ClusterFindings = []report.Finding{}
	}
	if r.NotRead == nil {
		r.NotRead = []report.NotRead{}
	}
}

func (c *Diagnosis) daemonSetView(d *daemonSet) report.Workload {
	w := report.Workload{Kind: d.key.Kind, Namespace: d.key.Namespace, Name: d.key.Name, UID: report.Clean(string(d.ds.UID)), Rollout: d.rollout,
		Verdict: d.verdict, Findings: d.findings, Recommendation: d.recommend, Owners: d.owners, WritersKnown: d.writersKnown}
	if a := d.analysis; a != nil && len(a.nodes) > 0 && (a.judged != notAsked || d.rollout.State != report.Complete) {
		m := a.measures
		w.Measures = &m
		w.Timeline = c.timeline(d)
	}
	return w
}

func (r *replicated) view() report.Workload {
	return report.Workload{Kind: r.key.Kind, Namespace: r.key.Namespace, Name: r.key.Name, UID: report.Clean(string(r.uid)), Rollout: r.rollout,
		Verdict: r.verdict, Findings: r.findings, Recommendation: r.recommend, Owners: r.owners, WritersKnown: r.writersKnown}
}

// byWeight orders workloads: by attribution, then by how many nodes or Pods they
// take, then those with a rollout in progress, then by name.
func (c *Diagnosis) byWeight(a, b report.Workload) int {
	moving := func(w *report.Workload) int {
		if w.Rollout.State != report.Complete {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(weight(&a), weight(&b)), cmp.Compare(c.taken(&b), c.taken(&a)), cmp.Compare(moving(&a), moving(&b)),
		cmp.Compare(rank(a.Verdict.Attribution), rank(b.Verdict.Attribution)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// weight groups attributions: broken nodes, other critical ones, warnings, nothing.
func weight(w *report.Workload) int {
	switch w.Verdict.Attribution {
	case report.RolloutBreaksNodes:
		return 0
	case report.RolloutBreaksPods, report.ClusterBlocksPods, report.NodesFailIndependently, report.NodesBlockRollout:
		return 1
	case report.ControllerStalled, report.Undetermined:
		return 2
	case report.CoverageGap:
		return 3
	case report.WaitingForOperator:
		return 4
	}
	return 5
}

// taken is how many nodes or Pods a workload takes.
func (c *Diagnosis) taken(w *report.Workload) int {
	if w.Verdict.Attribution == report.RolloutBreaksNodes && w.Measures != nil {
		return len(w.Measures.After)
	}
	n := len(w.Recommendation.Reachable) + len(w.Recommendation.Unreachable)
	for _, f := range w.Findings {
		if f.Code == w.Verdict.RootCause {
			n++
		}
	}
	if w.Verdict.Attribution == report.ClusterBlocksPods {
		if b := c.blockedWorkload(string(w.Kind) + " " + string(w.Namespace) + "/" + string(w.Name)); b != nil {
			n = max(n, b.missing)
		}
	}
	return n
}

// quiet tells whether there is nothing to say of a workload.
func quiet(w *report.Workload) bool {
	if w.Verdict.Attribution != report.Healthy {
		return false
	}
	for _, f := range w.Findings {
		if f.Severity != report.Info {
			return false
		}
	}
	return true
}

// tidy turns absent lists into empty ones, so that the JSON has lists where lists belong.
func tidy(w *report.Workload) {
	tidyVerdict(&w.Verdict)
	if w.Findings == nil {
		w.Findings = []report.Finding{}
	}
	for i := range w.Findings {
		if w.Findings[i].Evidence == nil {
			w.Findings[i].Evidence = []report.Evidence{}
		}
	}
	r := &w.Recommendation
	if r.First == nil {
		r.First = []report.RecommendedAction{}
	}
	if r.Reachable == nil {
		r.Reachable = []report.Text{}
	}
	if r.Unreachable == nil {
		r.Unreachable = []report.Text{}
	}
}

// incidentRecommendation is that of the workload that the verdict names or, where it
// names none, what to do about the nodes.
func (c *Diagnosis) incidentRecommendation(v *report.Verdict, all []report.Workload) report.Recommendation {
	w := report.Workload{Recommendation: report.Recommendation{Action: report.ActionNone}}
	for i := range all {
		if string(v.Workload) == all[i].Key().String() {
			w.Recommendation = all[i].Recommendation
		}
	}
	if v.Workload == "" && v.Attribution == report.NodesFailIndependently {
		r := &w.Recommendation
		r.Action, r.Why = report.ActionFixNode, "the nodes are to blame: repair or replace them; a rollback would not help them"
		c.splitReach(r, c.independent())
	}
	tidy(&w)
	return w.Recommendation
}

func tidyVerdict(v *report.Verdict) {
	if v.Contributing == nil {
		v.Contributing = []report.Code{}
	}
	if v.For == nil {
		v.For = []report.Text{}
	}
	if v.Against == nil {
		v.Against = []report.Text{}
	}
	if v.Missing == nil {
		v.Missing = []report.Text{}
	}
}

// timeline draws what the change did, one lane a node, by first trouble.
func (c *Diagnosis) timeline(d *daemonSet) *report.Timeline {
	const lanes = 200
	a := d.analysis
	list := slices.Clone(a.nodes)
	order := []class{classAfter, classBefore, classOld, classLate, classSuffering, classUnclear, classExplained, classPending, classHealthy, classNew, classPrevalent, classUndone, classClean}
	slices.SortStableFunc(list, func(x, y *exposure) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.class), slices.Index(order, y.class)), x.deleted.To.Compare(y.deleted.To), cmp.Compare(x.node.name, y.node.name))
	})
	t := &report.Timeline{From: report.Time{Time: a.change.start}, To: report.Time{Time: c.s.AsOf}}
	t.Lines = append(t.Lines, report.Mark{Kind: report.MarkRolloutStart, At: t.From, Text: report.Textf("%s became current", revisionName(a.change.revision)), Source: report.Clean(a.change.source)})
	if !a.change.end.IsZero() {
		t.Lines = append(t.Lines, report.Mark{Kind: report.MarkRolloutStart, At: report.Time{Time: a.change.end}, Text: "the template was changed again", Source: report.Clean(d.change.source)})
	}
	for _, e := range list {
		if len(t.Lanes) == lanes {
			break
		}
		if e.class == classClean {
			continue
		}
		t.Lanes = append(t.Lanes, c.lane(e))
	}
	return t
}

func (c *Diagnosis) lane(e *exposure) report.Lane {
	lane := report.Lane{Node: report.Clean(e.node.name), Class: report.Clean(string(e.class)), Marks: []report.Mark{}}
	if e.pod != nil && !e.undone {
		lane.Pod = report.Clean(e.pod.Name)
	}
	add := func(kind report.MarkKind, i cluster.Interval, text report.Text) {
		if i.IsZero() {
			return
		}
		m := report.Mark{Kind: kind, At: report.Time{Time: i.From}, Text: text, Source: report.Clean(i.Source)}
		if i.Width() > 0 {
			m.Until = report.At(i.To)
		}
		lane.Marks = append(lane.Marks, m)
	}
	add(report.MarkPodDeleted, e.deleted, "old Pod deleted")
	if !e.created.IsZero() {
		add(report.MarkPodCreated, cluster.Exact(e.created, "Pod.metadata.creationTimestamp"), "new Pod created")
	}
	if !e.ready.IsZero() {
		add(report.MarkPodReady, cluster.Exact(e.ready, "Pod.status.conditions[Ready]"), "new Pod Ready")
	}
	if ep := e.episode; ep != nil {
		kind := report.MarkNodeNotReady
		if ep.status == corev1.ConditionUnknown {
			kind = report.MarkNodeUnknown
		}
		add(report.MarkNodeFailing, ep.onset, "the trouble began")
		add(kind, cluster.Exact(ep.shown, "Node.status.conditions[Ready]"), report.Textf("Ready=%s %s", ep.status, ep.reason))
		if !ep.end.IsZero() {
			add(report.MarkNodeReady, cluster.Exact(ep.end, "Node.status.conditions[Ready]"), "Ready again")
		}
	}
	for _, taint := range e.node.node.Spec.Taints {
		if taint.TimeAdded != nil && cluster.ConditionTaint(taint.Key) {
			add(report.MarkTainted, cluster.Exact(taint.TimeAdded.Time, "Node.spec.taints"), report.Textf("%s:%s", taint.Key, taint.Effect))
		}
	}
	slices.SortStableFunc(lane.Marks, func(a, b report.Mark) int { return a.At.Compare(b.At.Time) })
	return lane
}
