package probes

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	// creationRetry is how long a controller may wait before it tries again to create
	// a Pod that was refused: its queue backs off up to 1,000 s.
	// Source: client-go util/workqueue, DefaultTypedControllerRateLimiter.
	creationRetry = 20 * time.Minute
	// creationSlack is how much later than a refusal a Pod may have been created and
	// the refusal still be the last word: one batch makes some Pods and is refused others.
	creationSlack = 10 * time.Second
)

// blocked is a refusal that keeps a workload from having its Pods.
type blocked struct {
	workload  string // "DaemonSet kube-system/agent"
	namespace string
	template  *corev1.PodTemplateSpec
	missing   int    // Pods that are not there
	text      string // the message
	refusal   refusal.Creation
	since     time.Time
	last      time.Time
	durable   bool // a condition says it, which goes away when it is over
	evidence  []report.Evidence
	explained *explanation // once it was worked out
}

// explanation is what a refusal means here: the object that refuses, and what to do.
type explanation struct {
	summary   report.Text
	grounds   []report.Text
	missing   []report.Text
	evidence  []report.Evidence
	recommend fix
	watchOut  []report.Text
}

// daemonBlocked finds why Pods of a DaemonSet cannot be created. It has no condition
// for it: only its events and the gap tell. An old refusal whose gap has closed says
// nothing, nor does one after which Pods were created.
func (c *Diagnosis) daemonBlocked(d *daemonSet) *blocked {
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
		return nil
	}
	b := c.refusedLast("DaemonSet", &d.ds.ObjectMeta, c.s.PodsOf(d.ds.UID))
	if b == nil {
		return nil
	}
	b.workload, b.template, b.missing = "DaemonSet "+d.ds.Namespace+"/"+d.ds.Name, &d.ds.Spec.Template, empty
	return b
}

// replicasBlocked finds why replicas cannot be created: the condition ReplicaFailure of
// a ReplicaSet, which its Deployment may not have copied yet, or the events of the
// ReplicaSet or StatefulSet.
func (c *Diagnosis) replicasBlocked(r *replicated) *blocked {
	b := c.replicaSetBlocked(r)
	if b == nil && r.key.Kind == "StatefulSet" && r.missing > 0 && (!r.podsKnown || len(r.pods)+len(r.older) < r.want) {
		b = c.refusedLast("StatefulSet", r.meta, append(slices.Clone(r.pods), r.older...))
	}
	if b == nil && r.failure != nil {
		b = saidBy("Deployment.status.conditions[ReplicaFailure]", r.failure.Reason, r.failure.Message, r.failure.LastTransitionTime.Time)
		b.last, b.namespace = c.s.AsOf, r.meta.Namespace
	}
	if b == nil {
		return nil
	}
	b.workload, b.template = string(r.key.Kind)+" "+r.meta.Namespace+"/"+r.meta.Name, r.template
	if b.missing == 0 {
		b.missing = max(r.missing, 1)
	}
	return b
}

func (c *Diagnosis) replicaSetBlocked(r *replicated) *blocked {
	if r.key.Kind != "Deployment" {
		return nil
	}
	sets := slices.Clone(c.s.ReplicaSetsOf(r.uid))
	// The current one first, as the Deployment's own condition does.
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for _, rs := range sets {
		gap := replicas(rs.Spec.Replicas) - int(rs.Status.Replicas)
		if gap <= 0 {
			continue
		}
		for i := range rs.Status.Conditions {
			if cond := &rs.Status.Conditions[i]; cond.Type == appsv1.ReplicaSetReplicaFailure && cond.Status == corev1.ConditionTrue && cond.Reason == "FailedCreate" {
				b := saidBy(report.Textf("ReplicaSet %s status.conditions[ReplicaFailure]", rs.Name), cond.Reason, cond.Message, cond.LastTransitionTime.Time)
				b.last, b.missing, b.namespace = c.s.AsOf, gap, rs.Namespace
				return b
			}
		}
		if b := c.refusedLast("ReplicaSet", &rs.ObjectMeta, c.s.PodsOf(rs.UID)); b != nil {
			b.missing = gap
			return b
		}
	}
	return nil
}

func saidBy(source report.Text, reason, message string, since time.Time) *blocked {
	b := &blocked{text: message, since: since, durable: true,
		evidence: []report.Evidence{{Source: source, Value: report.Textf("%s: %s", reason, redact.Text(message)), At: report.At(since)}}}
	b.refusal, _ = refusal.ParseCreation(message)
	return b
}

// refusedLast is the newest refusal among a controller's events, unless a Pod was
// created after it; nil without one.
func (c *Diagnosis) refusedLast(kind string, o *metav1.ObjectMeta, pods []*corev1.Pod) *blocked {
	var failed *corev1.Event
	var made time.Time
	for _, e := range c.s.EventsOf(kind, o.Namespace, o.Name) {
		if e.InvolvedObject.UID != "" && o.UID != "" && e.InvolvedObject.UID != o.UID {
			continue // of an earlier object of that name
		}
		switch e.Reason {
		case "SuccessfulCreate":
			made = maxTime(made, cluster.EventLast(e))
		case "FailedCreate":
			if failed == nil || !cluster.EventLast(e).Before(cluster.EventLast(failed)) {
				failed = e
			}
		}
	}
	if failed == nil {
		return nil
	}
	for _, p := range pods {
		made = maxTime(made, p.CreationTimestamp.Time)
	}
	last := cluster.EventLast(failed)
	if made.After(last.Add(creationSlack)) {
		return nil
	}
	b := &blocked{namespace: o.Namespace, text: failed.Message, since: cluster.EventOnset(failed), last: last, evidence: []report.Evidence{eventEvidence(failed)}}
	b.refusal, _ = refusal.ParseCreation(failed.Message)
	if b.refusal.Terminating {
		return nil // the namespace goes away, and its Pods with it
	}
	return b
}

// creationBlocked gives the verdict for a DaemonSet whose Pods cannot be created.
func (c *Diagnosis) creationBlocked(d *daemonSet) bool {
	b := d.blocked
	if b == nil {
		return false
	}
	v, r := c.blockedVerdict(b, d.findings)
	d.verdict, d.recommend = v, r
	d.markRoot(v.RootCause, nil)
	return true
}

// replicasBlockedVerdict does so for a Deployment or StatefulSet.
func (c *Diagnosis) replicasBlockedVerdict(r *replicated) bool {
	b := r.blocked
	if b == nil {
		return false
	}
	r.verdict, r.recommend = c.blockedVerdict(b, r.findings)
	if r.deadline != nil {
		r.verdict.Contributing = append(r.verdict.Contributing, report.ProgressDeadlineExceeded)
	}
	return true
}

func (c *Diagnosis) blockedVerdict(b *blocked, findings []report.Finding) (report.Verdict, report.Recommendation) {
	x := c.explain(b)
	v := report.Verdict{Attribution: report.ClusterBlocksPods, RootCause: b.refusal.Code, Confidence: report.High,
		Summary: report.Textf("%s cannot be created: %s", count(b.missing, "Pod"), x.summary),
		For:     append([]report.Text{report.Textf("%s not there, and the API server says why", isAre(b.missing, "Pod"))}, x.grounds...), Missing: x.missing}
	v.Contributing = appendCode(v.Contributing, report.RolloutStuck, findings)
	if age := c.s.AsOf.Sub(b.last); !b.durable && age > creationRetry {
		v.Confidence = report.Medium
		v.Against = append(v.Against, report.Textf("the controller was last refused %s ago, longer than it waits before it tries again: events may be missing", short(age)))
	}
	if b.refusal.Code == "" {
		v.RootCause, v.Contributing, v.Confidence = "", nil, report.Medium
		for _, code := range appendCode(nil, report.RolloutStuck, findings) {
			v.RootCause = code
		}
	}
	return v, report.Recommendation{Action: x.recommend.action, Why: x.recommend.why, WatchOut: x.watchOut}
}

// creationFinding is the finding about a refusal; nil where the refusal has no code.
func (c *Diagnosis) creationFinding(b *blocked, object report.Object) *report.Finding {
	if b == nil || b.refusal.Code == "" {
		return nil
	}
	x := c.explain(b)
	return &report.Finding{Code: b.refusal.Code, Severity: report.Warning, Object: object, Since: report.At(b.since),
		Summary: report.Textf("%s cannot be created: %s", count(b.missing, "Pod"), x.summary), Evidence: slices.Concat(b.evidence, x.evidence)}
}
