package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// historyFindings says what is odd about the stored revisions, and what changed
// beside the template.
func (c *Diagnosis) historyFindings(d *daemonSet) {
	c.duplicates(d)
	c.reverted(d)
	trouble := d.verdict.Attribution == report.RolloutBreaksNodes || d.verdict.Attribution == report.RolloutBreaksPods
	if !trouble {
		return
	}
	if d.rollout.PreviousRevision == nil && len(d.revisions) > 0 && d.ds.Generation > 1 {
		d.add(report.NoRollbackHistory, report.Warning, time.Time{}, "no earlier revision is stored: there is nothing to roll back to",
			report.Evidence{Source: "ControllerRevisions", Value: report.Textf("%d stored, none of another meaning than the current one", len(d.revisions))})
	}
	c.companions(d)
}

// duplicates finds a stored revision of the same meaning as the current one: "the
// previous revision" by number is then no way back. An upgrade of the control plane
// from 1.33 to 1.34 leaves one, because it stopped writing creationTimestamp: null.
func (c *Diagnosis) duplicates(d *daemonSet) {
	var same []string
	for i := range d.revisions {
		if r := &d.revisions[i]; r.sameAsCurrent {
			same = append(same, fmt.Sprint(r.object.Revision))
		}
	}
	if len(same) < 2 {
		return
	}
	d.add(report.DuplicateRevisions, report.Warning, time.Time{}, report.Textf("revisions %s have the same template: nothing was changed between them", strings.Join(same, " and ")),
		report.Evidence{Source: "ControllerRevision.data", Value: report.Textf("revisions %s compare as equal", strings.Join(same, ", "))})
}

// reverted finds that an undo was undone: Pods of another revision were made after
// the current template first appeared, and yet it is the current one again.
func (c *Diagnosis) reverted(d *daemonSet) {
	if d.current == nil || d.change.start.IsZero() {
		return
	}
	first := d.current.CreationTimestamp.Time
	for i := range d.revisions {
		r := &d.revisions[i]
		if r.sameAsCurrent || r.object.CreationTimestamp.After(first) {
			continue
		}
		for _, rec := range c.s.History.PodsOf(d.ds.UID) {
			if rec.Hash != r.hash || !rec.Created.After(first.Add(skew)) || r.object.Revision < d.current.Revision-1 {
				continue
			}
			by := ""
			if d.rollout.ChangedBy != nil {
				by = " by " + string(*d.rollout.ChangedBy)
			}
			d.add(report.RevisionReverted, report.Warning, d.change.start,
				report.Textf("an undo to revision %d did not last: the template of revision %d was put back%s", r.object.Revision, d.current.Revision, by),
				report.Evidence{Source: report.Textf("Pod %s", rec.Name), Value: report.Textf("made from revision %d at %s, after the current template first appeared at %s", r.object.Revision, stamp(rec.Created), stamp(first)), At: report.At(rec.Created)})
			return
		}
	}
	if n, at, ok := d.numbersMoved(); ok {
		e := cluster.TemplateOwner(d.ds)
		d.add(report.RevisionReverted, report.Warning, at,
			report.Textf("an undo to revision %d did not last: the template of revision %d was put back by %s", n-1, n, e.Manager),
			report.Evidence{Source: "ControllerRevision.revision", Value: report.Textf("%d and %d, of which the last was stored as %d at %s: both were raised since", n-1, n, n-2, stamp(first))},
			report.Evidence{Source: "DaemonSet.metadata.managedFields", Value: report.Textf("%s wrote the template", e.Manager), At: report.At(at)})
	}
}

// numbersMoved tells of an undo that was put back before it had made a Pod. The
// controller raises the number of a revision that becomes current again: k and k+1
// become k+2 with the undo and k+3 when it is put back, and nothing is left of k and
// k+1. n is the present number, at the time at which the template was written last.
// Source: pkg/controller/daemon/update.go, constructHistory.
func (d *daemonSet) numbersMoved() (n int64, at time.Time, ok bool) {
	e := cluster.TemplateOwner(d.ds)
	if len(d.revisions) < 3 || d.revisions[0].object != d.current || e == nil {
		return 0, time.Time{}, false
	}
	other, third := &d.revisions[1], &d.revisions[2]
	n = d.current.Revision
	return n, e.Time.Time, !other.sameAsCurrent && other.object.Revision == n-1 && third.object.Revision == n-4 &&
		other.object.CreationTimestamp.Time.Before(d.current.CreationTimestamp.Time) && third.object.CreationTimestamp.Time.Before(other.object.CreationTimestamp.Time) &&
		e.Time.After(d.current.CreationTimestamp.Add(skew))
}

// companions finds workloads of the same release or owner that changed in the same
// minutes: an agent rolled back without its operator or hub can be worse.
func (c *Diagnosis) companions(d *daemonSet) {
	if d.change.start.IsZero() {
		return
	}
	release := releaseOf(&d.ds.ObjectMeta)
	if release == "" {
		return
	}
	near := func(t *report.Time) bool {
		return t != nil && t.Sub(d.change.start).Abs() < 10*time.Minute
	}
	see := func(k report.WorkloadKey, m *metav1.ObjectMeta, started *report.Time) {
		if k == d.key || releaseOf(m) != release || !near(started) {
			return
		}
		d.add(report.CompanionSkew, report.Warning, started.Time, report.Textf("%s %s/%s of %s changed in the same minutes", k.Kind, k.Namespace, k.Name, release),
			report.Evidence{Source: report.Textf("%s %s/%s", k.Kind, k.Namespace, k.Name), Value: report.Textf("changed %s", stamp(started.Time)), At: started})
		d.verdict.Contributing = appendCode(d.verdict.Contributing, report.CompanionSkew, d.findings)
	}
	for _, o := range c.daemonSets {
		see(o.key, &o.ds.ObjectMeta, o.rollout.StartedAt)
	}
	for _, r := range c.replicated {
		see(r.key, r.meta, r.rollout.StartedAt)
	}
}

// releaseOf names the release or owner that an object belongs to, "" where nothing
// tells.
func releaseOf(m *metav1.ObjectMeta) string {
	if o := metav1.GetControllerOfNoCopy(m); o != nil {
		return o.Kind + " " + o.Name
	}
	if r := m.Annotations["meta.helm.sh/release-name"]; r != "" {
		return "Helm release " + r
	}
	if r := m.Labels["app.kubernetes.io/instance"]; r != "" {
		return "release " + r
	}
	return ""
}

// changeWords are what the path of a template's line has in it that has to do with a code.
var changeWords = map[report.Code][]string{
	report.OutOfMemory: {"resources"}, report.LivenessKilled: {"livenessProbe"}, report.StartupProbeFailing: {"startupProbe"},
	report.ReadinessFailing: {"readinessProbe"}, report.ImageNotFound: {".image"}, report.ImagePullUnauthorized: {".image", "imagePullSecrets"},
	report.RegistryUnreachable: {".image"}, report.ImagePullFailed: {".image"}, report.ContainerConfigMissing: {"env", "configMap", "secret", "volumes"},
	report.CrashLoop: {".image", "args", "command", "env"}, report.InitContainerFailed: {"initContainers"}, report.VolumeMountFailed: {"volume"},
	report.InsufficientResources: {"resources", "overhead"}, report.SurgeNoRoom: {"resources", "overhead"}, report.HostPortConflict: {"ports", "hostNetwork"},
	report.SurgePortConflict: {"ports", "hostNetwork"}, report.UntoleratedTaint: {"tolerations"}, report.NodeAffinityMismatch: {"nodeSelector", "nodeAffinity"},
	report.PodSpreadConflict: {"topologySpreadConstraints", "podAffinity", "podAntiAffinity"}, report.VolumeTopologyConflict: {"volumes"},
}

// relevantDiff are the lines of a revision's change that have to do with a code.
func (d *daemonSet) relevantDiff(code report.Code) []string {
	var prev *revision
	for i := range d.revisions {
		if !d.revisions[i].sameAsCurrent {
			prev = &d.revisions[i]
			break
		}
	}
	if prev == nil || prev.template == nil {
		return nil
	}
	words := changeWords[code]
	var out, all []string
	for _, line := range templateDiff(prev.template, &d.ds.Spec.Template) {
		all = append(all, string(line))
		path, _, _ := strings.Cut(string(line), ": ")
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(path, w) }) {
			out = append(out, string(line))
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// surgeConflict tells of a surge Pod that cannot be placed because of the
// DaemonSet's own old Pod on its node: both want one host port, or there is no
// room for two.
func (c *Diagnosis) surgeConflict(d *daemonSet, p *corev1.Pod, t *podTrouble) report.Code {
	s := d.slots[cluster.TargetNode(p)]
	if d.rollout.MaxSurgeResolved == 0 || s == nil || s.Old == nil || s.New == nil || s.New.UID != p.UID {
		return t.code
	}
	switch t.code {
	case report.HostPortConflict:
		for _, port := range cluster.HostPorts(&s.Old.Spec) {
			if slices.ContainsFunc(cluster.HostPorts(&p.Spec), port.Conflicts) {
				return report.SurgePortConflict
			}
		}
	case report.InsufficientResources:
		return report.SurgeNoRoom
	}
	return t.code
}

// clockSkew finds Pods that are Ready by a kubelet's clock and never counted
// available by the controller's: they have been Ready for longer than
// minReadySeconds asks, by the API server's clock, or will be in the future.
func (c *Diagnosis) clockSkew(d *daemonSet) bool {
	st := d.ds.Status
	if d.ds.Spec.MinReadySeconds == 0 || st.NumberReady <= st.NumberAvailable || !d.podsKnown {
		return false
	}
	var ev []report.Evidence
	for _, p := range c.s.PodsOf(d.ds.UID) {
		cond := cluster.PodCondition(p, corev1.PodReady)
		if cond == nil || cond.Status != corev1.ConditionTrue || p.DeletionTimestamp != nil {
			continue
		}
		if ahead := cond.LastTransitionTime.Sub(c.s.AsOf); ahead > 2*skew {
			ev = append(ev, report.Evidence{Source: report.Textf("Pod %s status.conditions[Ready] on %s", p.Name, p.Spec.NodeName), Value: report.Textf("Ready since a time that is %s in the future", short(ahead)), At: report.At(cond.LastTransitionTime.Time)})
		}
	}
	if len(ev) == 0 {
		return false
	}
	d.add(report.AvailabilityClockSkew, report.Critical, time.Time{}, report.Textf("%s Ready by the clocks of their nodes and not counted available: those clocks are ahead", isAre(len(ev), "Pod")), ev...)
	d.verdict = report.Verdict{Attribution: report.ControllerStalled, RootCause: report.AvailabilityClockSkew, Confidence: report.High,
		Summary: report.Textf("%s Ready by the clocks of their nodes and not counted available", isAre(len(ev), "Pod")),
		For:     []report.Text{"with minReadySeconds the kubelet's clock is set against the controller's"}}
	d.recommend = report.Recommendation{Action: report.ActionFixNode, Why: "set the clocks of those nodes right"}
	return true
}
