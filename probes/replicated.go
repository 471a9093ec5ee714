package probes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// revisionAnnotation numbers a Deployment's ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// replicated is a Deployment or StatefulSet: its Pods are not tied to nodes.
type replicated struct {
	key       report.WorkloadKey
	uid       types.UID
	meta      *metav1.ObjectMeta
	template  *corev1.PodTemplateSpec
	podsKnown bool
	pods      []*corev1.Pod // of the current revision
	older     []*corev1.Pod
	want      int
	missing   int // replicas that are not available, by status
	paused    bool
	onDelete  bool
	observed  bool
	deadline  *appsv1.DeploymentCondition // Progressing=False, ProgressDeadlineExceeded
	failure   *appsv1.DeploymentCondition // ReplicaFailure
	blocked   *blocked                    // nil unless its Pods cannot be created
	troubles  map[string]*podTrouble
	started   time.Time
	rollout   report.Rollout
	verdict   report.Verdict
	findings  []report.Finding
	recommend report.Recommendation
	ownership
}

func (c *Diagnosis) readReplicated() {
	for _, d := range c.s.Deployments {
		c.replicated = append(c.replicated, c.readDeployment(d))
	}
	for _, s := range c.s.StatefulSets {
		c.replicated = append(c.replicated, c.readStatefulSet(s))
	}
}

func (c *Diagnosis) readDeployment(d *appsv1.Deployment) *replicated {
	r := &replicated{key: report.WorkloadKey{Kind: "Deployment", Namespace: report.Clean(d.Namespace), Name: report.Clean(d.Name)}, uid: d.UID, meta: &d.ObjectMeta,
		template: &d.Spec.Template, podsKnown: c.s.PodsKnown(d.UID), want: replicas(d.Spec.Replicas), paused: d.Spec.Paused, observed: d.Status.ObservedGeneration >= d.Generation}
	r.missing = max(r.want-int(d.Status.AvailableReplicas), 0)
	current := d.Annotations[revisionAnnotation]
	var numbers []int64
	for _, rs := range c.s.ReplicaSetsOf(d.UID) {
		n, _ := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
		numbers = append(numbers, n)
		isCurrent := rs.Annotations[revisionAnnotation] == current && current != ""
		if isCurrent {
			r.started = rs.CreationTimestamp.Time
		}
		for _, p := range c.s.PodsOf(rs.UID) {
			if isCurrent {
				r.pods = append(r.pods, p)
			} else {
				r.older = append(r.older, p)
				if n, ok := c.nodes[p.Spec.NodeName]; ok && !n.failing() && cluster.PodReady(p) {
					r.good(numbers[len(numbers)-1])
				}
			}
		}
	}
	for i := range d.Status.Conditions {
		cond := &d.Status.Conditions[i]
		switch {
		case cond.Type == appsv1.DeploymentProgressing && cond.Reason == "ProgressDeadlineExceeded":
			r.deadline = cond
		case cond.Type == appsv1.DeploymentReplicaFailure && cond.Status == corev1.ConditionTrue:
			r.failure = cond
		}
	}
	ro := &r.rollout
	ro.Strategy = report.Clean(string(d.Spec.Strategy.Type))
	if ru := d.Spec.Strategy.RollingUpdate; ru != nil {
		ro.MaxUnavailable, ro.MaxUnavailableResolved = resolved(ru.MaxUnavailable, r.want, false)
		ro.MaxSurge, ro.MaxSurgeResolved = resolved(ru.MaxSurge, r.want, true)
		if ro.MaxSurgeResolved == 0 && ro.MaxUnavailableResolved == 0 {
			ro.MaxUnavailableResolved = 1
		}
	}
	ro.MinReadySeconds = int(d.Spec.MinReadySeconds)
	ro.Desired, ro.Updated, ro.Ready, ro.Available = r.want, int(d.Status.UpdatedReplicas), int(d.Status.ReadyReplicas), int(d.Status.AvailableReplicas)
	if n, err := strconv.ParseInt(current, 10, 64); err == nil {
		ro.Revision = &n
		slices.Sort(numbers)
		for _, p := range slices.Backward(numbers) {
			if p < n {
				ro.PreviousRevision = &p
				break
			}
		}
	}
	inProgress := ro.Updated < r.want || int(d.Status.Replicas) > ro.Updated
	for i := range d.Status.Conditions {
		// Until the controller has seen the revision complete once, Pods of it that are
		// not available are the rollout, the first one included; afterwards they are not.
		// Source: pkg/controller/deployment/progress.go, syncRolloutStatus.
		if c := &d.Status.Conditions[i]; c.Type == appsv1.DeploymentProgressing && c.Reason != "NewReplicaSetAvailable" && r.missing > 0 {
			inProgress = true
		}
	}
	c.finishReplicated(r, inProgress)
	return r
}

// good notes a revision whose Pods are Ready now.
func (r *replicated) good(n int64) {
	if n > 0 && (r.rollout.KnownGoodRevision == nil || *r.rollout.KnownGoodRevision < n) {
		r.rollout.KnownGoodRevision = &n
	}
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func resolved(v *intstr.IntOrString, total int, up bool) (report.Text, int) {
	if v == nil {
		return "", 0
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, total, up)
	return report.Clean(v.String()), n
}

func (c *Diagnosis) finishReplicated(r *replicated, inProgress bool) {
	ro := &r.rollout
	if e := cluster.TemplateOwner(r.meta); e != nil {
		m := report.Clean(e.Manager)
		ro.ChangedBy = &m
	}
	ro.StartedAt = report.At(r.started)
	last := r.started
	r.troubles = map[string]*podTrouble{}
	for _, p := range append(slices.Clone(r.pods), r.older...) {
		if t := c.podTroubleOf(p); t != nil {
			r.troubles[p.Name] = t
		}
	}
	waiting := 0
	for _, p := range r.pods {
		last = maxTime(last, p.CreationTimestamp.Time)
		if cond := cluster.PodCondition(p, corev1.PodReady); cond != nil && cond.Status == corev1.ConditionTrue {
			last = maxTime(last, cond.LastTransitionTime.Time)
		} else if !wasAvailable(p) {
			waiting++
		}
	}
	r.blocked = c.replicasBlocked(r)
	ro.LastProgressAt = report.At(last)
	ro.NotYetReached = max(r.want-ro.Updated, 0)
	inProgress = inProgress || waiting > 0 && len(r.older) > 0 || r.deadline != nil
	switch {
	case !r.observed:
		ro.State = report.NotObserved
	case r.paused && (inProgress || r.templateAhead(c)):
		ro.State = report.Paused
	case r.onDelete && inProgress:
		ro.State = report.OnDelete
	case !inProgress:
		ro.State = report.Complete
	case r.deadline != nil || !last.IsZero() && c.s.AsOf.Sub(last) > startAllowance(&r.template.Spec)+30*time.Second+time.Duration(ro.MinReadySeconds)*time.Second:
		ro.State = report.Stuck
	default:
		ro.State = report.Progressing
	}
}

// templateAhead tells of a paused Deployment whose template no ReplicaSet has.
func (r *replicated) templateAhead(c *Diagnosis) bool {
	sets := c.s.ReplicaSetsOf(r.uid)
	for _, rs := range sets {
		t := rs.Spec.Template.DeepCopy()
		delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		if cluster.SameTemplate(t, r.template) {
			return false
		}
	}
	return len(sets) > 0
}

func (r *replicated) add(code report.Code, sev report.Severity, since time.Time, summary report.Text, ev ...report.Evidence) {
	r.findings = append(r.findings, report.Finding{Code: code, Severity: sev, Object: report.Object{Kind: r.key.Kind, Namespace: r.key.Namespace, Name: r.key.Name},
		Since: report.At(since), Summary: summary, Evidence: ev})
}

// judgeReplicated gives a Deployment or StatefulSet its verdict.
func (c *Diagnosis) judgeReplicated(r *replicated) {
	r.verdict = report.Verdict{Attribution: report.Healthy, Confidence: report.High, Summary: "complete"}
	r.recommend = report.Recommendation{Action: report.ActionNone}
	c.replicatedFindings(r)
	byCode, byNode, onNodes := map[report.Code][]*corev1.Pod{}, map[report.Code]int{}, map[string]bool{}
	var waits *podTrouble // a Pod that no node takes because those that would are not well
	for _, p := range append(slices.Clone(r.pods), r.older...) {
		t := r.troubles[p.Name]
		if t == nil {
			continue
		}
		if n := c.nodes[p.Spec.NodeName]; n != nil && n.failing() {
			byNode[n.code]++
			onNodes[n.name] = true
			continue
		}
		for _, n := range t.nodes {
			waits = t
			byNode[n.code]++
			onNodes[n.name] = true
		}
		if t.ofNode || p.DeletionTimestamp != nil {
			continue
		}
		byCode[t.code] = append(byCode[t.code], p)
	}
	v := &r.verdict
	switch {
	case r.rollout.State == report.Paused:
		v.Attribution, v.RootCause = report.WaitingForOperator, report.RolloutPaused
		v.Summary = "paused: it goes on when it is resumed"
		r.recommend.Why = "by design: resume it when you are ready"
	case r.rollout.State == report.OnDelete:
		v.Attribution, v.RootCause, v.Summary = report.WaitingForOperator, report.OnDeletePending, "OnDelete: Pods are replaced when they are deleted"
	case r.rollout.State == report.NotObserved:
		r.verdict, r.recommend = c.stalled("its generation is not acted on")
	case r.missing == 0 && r.rollout.State == report.Complete && !r.loopsReady():
	case c.replicasBlockedVerdict(r):
	case len(byCode) > 0:
		c.replicatedPodsFail(r, byCode)
	case c.waitsForTheDead(r):
	case len(byNode) > 0:
		v.Attribution, v.Confidence = report.NodesFailIndependently, report.High
		v.RootCause, _ = top(byNode)
		v.Summary = report.Textf("%s unavailable, on nodes that fail: %s", ofReplicas(r.missing, r.want), names(sortedSet(onNodes), 4))
		if waits != nil {
			v.Summary = report.Textf("%s unavailable; a Pod waits for nodes that fail: it %s", ofReplicas(r.missing, r.want), waits.summary)
		}
		r.recommend = report.Recommendation{Action: report.ActionFixNode, Why: "its Pods suffer from their nodes"}
		c.splitReach(&r.recommend, c.statesOf(sortedSet(onNodes)))
	case c.replicaWaitsForAnEnd(r):
	case r.rollout.State == report.Stuck:
		v.Attribution, v.Confidence, v.RootCause = report.Undetermined, report.Low, report.RolloutStuck
		v.Summary = "it does not advance, and nothing that was read says why"
		if !r.podsKnown {
			v.Missing = append(v.Missing, "its Pods were not read")
		}
		r.recommend = report.Recommendation{Action: report.ActionInvestigate, Why: "its Pods and their events may tell"}
	case r.rollout.State == report.Progressing:
		v.Summary = "moves"
		r.recommend = report.Recommendation{Action: report.ActionWait, Why: "it moves"}
	}
	r.findings = append(r.findings, c.requestFindings(r.key, r.template, slices.Concat(r.pods, r.older))...)
	r.finish()
}

func (r *replicated) finish() {
	r.own()
	for i := range r.findings {
		if f := &r.findings[i]; f.Code == r.verdict.RootCause && r.verdict.Attribution != report.Healthy {
			f.Severity = max2(f.Severity, f.Code.Severity(true))
		}
	}
	sortFindings(r.findings)
}

func max2(a, b report.Severity) report.Severity {
	if a.Rank() >= b.Rank() {
		return a
	}
	return b
}

func (c *Diagnosis) replicatedFindings(r *replicated) {
	ro := &r.rollout
	counters := report.Evidence{Source: report.Textf("%s.status", r.key.Kind), At: report.At(c.s.AsOf),
		Value: report.Textf("replicas=%d updated=%d ready=%d available=%d", ro.Desired, ro.Updated, ro.Ready, ro.Available)}
	switch ro.State {
	case report.Progressing:
		r.add(report.RolloutProgressing, report.Info, r.started, report.Textf("moves: %d of %d replicas updated", ro.Updated, ro.Desired), counters)
	case report.Stuck:
		sev := report.Warning
		r.add(report.RolloutStuck, sev, r.started, "no Pod advanced for longer than one may take", counters)
	case report.Paused:
		r.add(report.RolloutPaused, report.Info, r.started, "is paused", report.Evidence{Source: "Deployment.spec.paused", Value: "true"})
	case report.OnDelete:
		r.add(report.OnDeletePending, report.Info, r.started, "waits for Pods to be deleted", counters)
	case report.NotObserved:
		r.add(report.RolloutNotObserved, report.Warning, r.started, "its generation is not observed", counters)
	}
	if r.deadline != nil {
		r.add(report.ProgressDeadlineExceeded, report.Critical, r.deadline.LastTransitionTime.Time, report.Clean(r.deadline.Message),
			report.Evidence{Source: "Deployment.status.conditions[Progressing]", Value: report.Textf("%s %s: %s", r.deadline.Status, r.deadline.Reason, r.deadline.Message), At: report.At(r.deadline.LastTransitionTime.Time)})
	}
	if f := c.creationFinding(r.blocked, report.Object{Kind: r.key.Kind, Namespace: r.key.Namespace, Name: r.key.Name}); f != nil {
		r.findings = append(r.findings, *f)
	}
	listed := map[report.Code]int{}
	for _, p := range append(slices.Clone(r.pods), r.older...) {
		t := r.troubles[p.Name]
		if t == nil || t.code == "" || t.code.IsNode() || t.code == report.StuckTerminating && t.ofNode && r.missing == 0 {
			continue // a remnant on a node that fails: the node's story
		}
		if listed[t.code]++; listed[t.code] > podsListed {
			continue
		}
		r.findings = append(r.findings, report.Finding{Code: t.code, Severity: report.Warning, Object: report.Object{Kind: "Pod", Namespace: r.key.Namespace, Name: report.Clean(p.Name)},
			Node: report.Clean(p.Spec.NodeName), Since: report.At(t.since), Summary: t.summary, Evidence: t.evidence})
	}
}

func (c *Diagnosis) replicatedPodsFail(r *replicated, byCode map[report.Code][]*corev1.Pod) {
	v := &r.verdict
	root := mostOf(byCode)
	pods := byCode[root]
	t := r.troubles[pods[0].Name]
	v.RootCause, v.Confidence = root, report.High
	v.Summary = report.Textf("%s: %s", count(len(pods), "Pod"), t.summary)
	v.For = []report.Text{report.Textf("%s %s with %s on nodes that are fine", count(len(pods), "Pod"), failVerb(len(pods)), root)}
	switch {
	case schedulingOrCreation(root):
		v.Attribution = report.ClusterBlocksPods
		v.Summary, v.For, r.recommend = unplacedText(len(pods), t), append([]report.Text{report.Textf("%s without a node, by %s", count(len(pods), "Pod"), root)}, t.grounds()...), t.remedy()
		if root == report.UntoleratedTaint {
			c.blockedByLeftTaint(r, pods)
		}
	case root == report.SandboxFailed, root == report.VolumeMountFailed, root == report.NodeShutdownPod:
		v.Attribution, v.Confidence = report.NodesFailIndependently, report.Medium
		v.Summary = report.Textf("Ready nodes fail its Pods: %s", t.summary)
		r.recommend = report.Recommendation{Action: report.ActionFixNode, Why: "the nodes fail the Pods"}
		c.splitReach(&r.recommend, c.statesOf(nodesOf(pods)))
	case r.rollout.State == report.Complete && r.failsLater(pods):
		v.Attribution, v.Confidence = report.Undetermined, report.Low
		v.Summary += "; the rollout was over before that"
		v.Missing = append(v.Missing, "what changed without a new revision: ConfigMaps, Secrets, what the Pods depend on")
		r.recommend = report.Recommendation{Action: report.ActionInvestigate, Why: "its Pods fail, and no rollout made them so"}
	default:
		v.Attribution = report.RolloutBreaksPods
		r.recommend = report.Recommendation{Action: report.ActionFixWorkload, Why: v.Summary}
		if target := r.rollout.KnownGoodRevision; target != nil {
			r.recommend = report.Recommendation{Action: report.ActionRollBack, ToRevision: target, Why: report.Textf("revision %d is Ready now", *target)}
		} else if r.rollout.PreviousRevision != nil && r.rollout.State != report.Complete {
			r.recommend = report.Recommendation{Action: report.ActionRollBack, ToRevision: r.rollout.PreviousRevision, Why: "the revision before it"}
		}
		old := 0
		for _, p := range r.older {
			if t := r.troubles[p.Name]; t != nil && t.code == root {
				old++
			}
		}
		if old > 0 {
			v.Against = append(v.Against, report.Textf("%s of older revisions %s as well", count(old, "Pod"), failVerb(old)))
			v.Confidence = report.Medium
		}
	}
	if r.rollout.State == report.Stuck {
		v.Contributing = append(v.Contributing, report.RolloutStuck)
	}
	if r.deadline != nil {
		v.Contributing = append(v.Contributing, report.ProgressDeadlineExceeded)
	}
}

// failsLater tells whether the Pods ran well for an hour before they failed.
func (r *replicated) failsLater(pods []*corev1.Pod) bool {
	for _, p := range pods {
		if failingSince(p, r.troubles[p.Name]).Sub(p.CreationTimestamp.Time) < time.Hour {
			return false
		}
	}
	return true
}

func sortedSet(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
