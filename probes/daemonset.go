package probes

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// daemonSet is one DaemonSet with its rollout, its Pods' troubles and what the
// rollout did to nodes.
type daemonSet struct {
	ds        *appsv1.DaemonSet
	key       report.WorkloadKey
	podsKnown bool
	current   *appsv1.ControllerRevision // nil where not known
	hash      string
	loop      cluster.UpdateLoop
	slots     map[string]*cluster.Slot
	pool      []*nodeState           // nodes that it is meant for, and those with its Pods
	troubles  map[string]*podTrouble // by Pod name
	blocked   *blocked               // nil unless its Pods cannot be created
	rejected  []rejectedPod          // that failed and are gone
	change    change
	changes   []change    // the current one first; an earlier one only after a rollback
	analyses  []*analysis // of each change, the present one first
	analysis  *analysis   // the one that the verdict rests on
	findings  []report.Finding
	rollout   report.Rollout
	verdict   report.Verdict
	recommend report.Recommendation
	revisions []revision
	ownership
	coverage coverage
}

// change is one moment at which a template became the current one.
type change struct {
	hash     string // revision label of the Pods that it makes
	revision int64  // 0 where unknown
	name     string
	start    time.Time // zero where unknown
	end      time.Time // the next change, zero for the current one
	source   string    // how start is known
	first    bool      // the DaemonSet's first template: there is no older one
	current  bool
}

func (d *daemonSet) updated(p *corev1.Pod) bool { return cluster.Updated(d.ds, d.hash, p) }

func (c *Diagnosis) readDaemonSets() {
	for _, ds := range c.s.DaemonSets {
		d := &daemonSet{ds: ds, key: report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Clean(ds.Namespace), Name: report.Clean(ds.Name)}}
		d.podsKnown = c.s.PodsKnown(ds.UID)
		d.current = c.s.CurrentRevision(ds)
		if d.current != nil {
			d.hash = d.current.Labels[cluster.RevisionHash]
			if d.hash == "" {
				d.hash = trimName(d.current.Name, ds.Name)
			}
		}
		d.loop = c.s.UpdateLoop(ds, &ds.Spec.Template, d.updated)
		d.slots = make(map[string]*cluster.Slot, len(d.loop.Slots))
		for i := range d.loop.Slots {
			d.slots[d.loop.Slots[i].Node] = &d.loop.Slots[i]
		}
		rule := cluster.RuleOf(&ds.Spec.Template)
		for _, n := range c.nodeList {
			if d.slots[n.name] != nil && (d.podsKnown || d.slots[n.name].ShouldRun) || rule.InPool(n.node) {
				d.pool = append(d.pool, n)
			}
		}
		d.troubles = map[string]*podTrouble{}
		if d.podsKnown {
			for _, p := range c.s.PodsOf(ds.UID) {
				if t := c.podTroubleOf(p); t != nil {
					d.troubles[p.Name] = t
				}
			}
		}
		if d.podsKnown {
			c.rejectedAgain(d)
		}
		d.blocked = c.daemonBlocked(d)
		c.readRevisions(d)
		c.readChanges(d)
		c.readRollout(d)
		for _, p := range c.s.PodsOf(ds.UID) {
			if t := d.troubles[p.Name]; t != nil {
				t.code = c.surgeConflict(d, p, t)
			}
		}
		c.daemonSets = append(c.daemonSets, d)
	}
}

func trimName(revision, ds string) string {
	if len(revision) > len(ds)+1 && revision[:len(ds)] == ds {
		return revision[len(ds)+1:]
	}
	return ""
}

// readChanges finds when the present template became current and, after a
// rollback, when the one before it had.
func (c *Diagnosis) readChanges(d *daemonSet) {
	now := change{hash: d.hash, current: true}
	if d.current != nil {
		now.revision, now.name = d.current.Revision, d.current.Name
	}
	var newestOther *revision
	sameSince := time.Time{}
	for i := range d.revisions {
		r := &d.revisions[i]
		if r.sameAsCurrent {
			if t := r.object.CreationTimestamp.Time; sameSince.IsZero() || t.Before(sameSince) {
				sameSince = t
			}
			continue
		}
		if newestOther == nil || r.object.CreationTimestamp.After(newestOther.object.CreationTimestamp.Time) {
			newestOther = r
		}
	}
	owner := cluster.TemplateOwner(d.ds)
	switch {
	case d.current == nil:
		if owner != nil {
			now.start, now.source = owner.Time.Time, "managedFields of "+owner.Manager
		}
		now.first = len(d.revisions) == 0 && d.ds.Generation <= 1
	case newestOther == nil:
		now.start, now.source, now.first = sameSince, "ControllerRevision.metadata.creationTimestamp", true
	case sameSince.After(newestOther.object.CreationTimestamp.Time):
		now.start, now.source = sameSince, "ControllerRevision.metadata.creationTimestamp"
	default:
		// An older revision is current again: its creation tells nothing of when.
		after := newestOther.object.CreationTimestamp.Time
		if owner != nil && owner.Time.After(after) {
			now.start, now.source = owner.Time.Time, "managedFields of "+owner.Manager
		}
		if t := c.firstPodSince(d, after); !t.IsZero() && (now.start.IsZero() || t.Before(now.start)) {
			now.start, now.source = t, "the first Pod of the revision made since"
		}
		if now.start.IsZero() && d.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			now.source = "managedFields were not read"
		}
		before := change{hash: newestOther.hash, revision: newestOther.object.Revision, name: newestOther.object.Name,
			start: after, end: now.start, source: "ControllerRevision.metadata.creationTimestamp"}
		if now.start.IsZero() {
			before.end = c.s.AsOf
		}
		d.changes = append(d.changes, before)
	}
	d.change = now
	d.changes = append([]change{now}, d.changes...)
}

// firstPodSince is the creation of the first Pod of the current revision after t.
func (c *Diagnosis) firstPodSince(d *daemonSet, t time.Time) time.Time {
	var first time.Time
	for _, r := range c.s.History.PodsOf(d.ds.UID) {
		if r.Hash == d.hash && r.Created.After(t) && (first.IsZero() || r.Created.Before(first)) {
			first = r.Created
		}
	}
	return first
}

// readRollout computes where the update stands by the controller's own rules.
func (c *Diagnosis) readRollout(d *daemonSet) {
	ds, st := d.ds, d.ds.Status
	r := &d.rollout
	r.Strategy = report.Clean(string(ds.Spec.UpdateStrategy.Type))
	if r.Strategy == "" {
		r.Strategy = "RollingUpdate"
	}
	if r.Strategy == "RollingUpdate" {
		r.MaxUnavailable, r.MaxSurge = "1", "0"
	}
	if ru := ds.Spec.UpdateStrategy.RollingUpdate; ru != nil {
		if ru.MaxUnavailable != nil {
			r.MaxUnavailable = report.Clean(ru.MaxUnavailable.String())
		}
		if ru.MaxSurge != nil {
			r.MaxSurge = report.Clean(ru.MaxSurge.String())
		}
	}
	desired := d.loop.Desired
	if !c.s.Read(cluster.Nodes) {
		desired = int(st.DesiredNumberScheduled)
	}
	if r.Strategy == "RollingUpdate" {
		r.MaxUnavailableResolved, r.MaxSurgeResolved = cluster.Budget(ds, desired)
	}
	r.MinReadySeconds = int(ds.Spec.MinReadySeconds)
	r.Desired, r.Updated, r.Ready, r.Available = int(st.DesiredNumberScheduled), int(st.UpdatedNumberScheduled), int(st.NumberReady), int(st.NumberAvailable)
	r.Misscheduled = int(st.NumberMisscheduled)
	r.StartedAt = report.At(d.change.start)
	if e := cluster.TemplateOwner(ds); e != nil {
		m := report.Clean(e.Manager)
		r.ChangedBy = &m
	}
	if d.current != nil {
		n := d.current.Revision
		r.Revision = &n
	}
	for i := range d.revisions {
		if rev := &d.revisions[i]; !rev.sameAsCurrent {
			n := rev.object.Revision
			r.PreviousRevision = &n
			break
		}
	}
	r.Critical = criticality(&ds.Spec.Template)
	d.readState(c)
}

// readState tells where the rollout is: from its Pods where they were read, from
// the status counters otherwise.
func (d *daemonSet) readState(c *Diagnosis) {
	ds, st, r := d.ds, d.ds.Status, &d.rollout
	inProgress := st.UpdatedNumberScheduled < st.DesiredNumberScheduled
	var stuck []string
	if d.podsKnown {
		inProgress = false
		empty := false
		for i := range d.loop.Slots {
			slot := &d.loop.Slots[i]
			old := slot.State == cluster.SlotOldAvailable || slot.State == cluster.SlotOldUnavailable || slot.State == cluster.SlotBoth
			if old {
				r.NotYetReached++
			}
			switch {
			case slot.ShouldRun && slot.State == cluster.SlotNewUnavailable:
				inProgress = inProgress || !wasAvailable(slot.New) && (c.partOfRollout(d, slot.New) || r.NotYetReached > 0)
			case slot.ShouldRun && slot.State == cluster.SlotEmpty:
				empty = empty || !d.lostLater(c, slot.Node)
			case slot.ShouldRun && slot.State == cluster.SlotTerminating:
				inProgress = inProgress || slices.ContainsFunc(slot.Terminating, func(p *corev1.Pod) bool { return !d.updated(p) })
			case slot.ShouldRun && slot.State != cluster.SlotNewAvailable:
				inProgress = true
			case old && slot.MayStay:
				// Outside DESIRED, but the update loop waits for its turn all the same.
				inProgress = inProgress || st.UpdatedNumberScheduled < st.DesiredNumberScheduled
			}
			if slot.Holds() {
				r.BudgetHolders = append(r.BudgetHolders, d.holder(c, slot))
				if d.holdsForGood(c, slot) {
					stuck = append(stuck, slot.Node)
				}
			}
		}
		inProgress = inProgress || empty && (r.NotYetReached > 0 || c.s.AsOf.Sub(d.change.start) < 30*time.Minute || d.onCurrent() == 0)
	} else if inProgress {
		r.NotYetReached = int(st.DesiredNumberScheduled - st.UpdatedNumberScheduled)
	}
	last, step := d.progress(c)
	r.LastProgressAt = report.At(last)
	allowed := d.stepAllowance()
	if step > allowed {
		allowed = step
	}
	switch {
	case ds.Generation > st.ObservedGeneration && !c.controllerAtWork(d):
		r.State = report.NotObserved
	case ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && r.NotYetReached > 0:
		r.State = report.OnDelete
	case ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && !d.waitsForPods(c):
		r.State = report.Complete // what is left cannot be reached by anybody
	case !inProgress:
		r.State = report.Complete
	case !last.IsZero() && c.s.AsOf.Sub(last) > allowed && (!d.podsKnown || len(stuck) > 0 || r.NotYetReached > 0 || d.loop.Used > 0):
		r.State = report.Stuck
	default:
		r.State = report.Progressing
		d.pace(c, step)
	}
	d.brake(c, stuck)
}

// lostLater tells whether a node without a Pod had one of the current revision that
// has ended since: a Pod that failed or was evicted does not reopen a rollout.
func (d *daemonSet) lostLater(c *Diagnosis, node string) bool {
	for _, p := range c.s.PodsOn(node) {
		if o := metav1.GetControllerOfNoCopy(p); o != nil && o.UID == d.ds.UID && cluster.PodTerminal(p) && d.updated(p) {
			return true
		}
	}
	return false
}

// waitsForPods tells whether a node that can be reached still waits for a Pod of the
// current revision.
func (d *daemonSet) waitsForPods(c *Diagnosis) bool {
	for i := range d.loop.Slots {
		s := &d.loop.Slots[i]
		n := c.nodes[s.Node]
		if s.ShouldRun && s.State != cluster.SlotNewAvailable && n != nil && n.reachable() && (s.New == nil || !wasAvailable(s.New)) {
			return true
		}
	}
	return false
}

// wasAvailable tells whether a Pod that is not Ready now has been Ready for a
// while: availability lost later does not reopen a rollout.
func wasAvailable(p *corev1.Pod) bool {
	cond := cluster.PodCondition(p, corev1.PodReady)
	if cond == nil {
		return false
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil && t.FinishedAt.Sub(t.StartedAt.Time) < 5*time.Minute && s.State.Waiting != nil && !ranLong(p, s.RestartCount, t) {
			return false // it never ran for long
		}
		if s.State.Waiting != nil && s.RestartCount == 0 {
			return false
		}
	}
	start := p.CreationTimestamp.Time
	if p.Status.StartTime != nil && p.Status.StartTime.After(start) {
		start = p.Status.StartTime.Time
	}
	return len(p.Status.ContainerStatuses) > 0 && cond.LastTransitionTime.Sub(start) > 10*time.Second
}

// ranLong tells whether a Pod whose container crashes now ran well for most of its life,
// an hour at least: its restarts account for the rest. The estimate is rough, for
// back-off and sync take seconds more each time, hence the margin.
func ranLong(p *corev1.Pod, restarts int32, last *corev1.ContainerStateTerminated) bool {
	began := failingSince(p, &podTrouble{since: last.FinishedAt.Time})
	began = began.Add(-time.Duration(restarts) * last.FinishedAt.Sub(last.StartedAt.Time))
	well := began.Sub(p.CreationTimestamp.Time)
	return well >= time.Hour && 2*well > last.FinishedAt.Sub(p.CreationTimestamp.Time)
}

// controllerAtWork tells whether events show that the controller acts on the
// generation that its status does not acknowledge yet.
func (c *Diagnosis) controllerAtWork(d *daemonSet) bool {
	if d.change.start.IsZero() {
		return false
	}
	for _, e := range c.s.EventsOf("DaemonSet", d.ds.Namespace, d.ds.Name) {
		if (e.Reason == "SuccessfulCreate" || e.Reason == "SuccessfulDelete" || e.Reason == "FailedCreate") && cluster.EventLast(e).After(d.change.start) {
			return true
		}
	}
	return false
}

// stepAllowance is how long one Pod may take by its own settings, from deletion
// until available.
func (d *daemonSet) stepAllowance() time.Duration {
	spec := &d.ds.Spec.Template.Spec
	grace := 30 * time.Second
	if spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
	}
	return grace + startAllowance(spec) + cluster.MinReady(d.ds)
}

// progress is when the rollout last advanced, and how long its slowest Pod took
// from creation until available.
func (d *daemonSet) progress(c *Diagnosis) (last time.Time, slowest time.Duration) {
	last = d.change.start
	minReady := cluster.MinReady(d.ds)
	for i := range d.loop.Slots {
		slot := &d.loop.Slots[i]
		for _, p := range slot.Terminating {
			last = maxTime(last, cluster.DeleteRequested(p))
		}
		p := slot.New
		if p == nil || p.CreationTimestamp.Time.Before(d.change.start) {
			continue
		}
		last = maxTime(last, p.CreationTimestamp.Time)
		cond := cluster.PodCondition(p, corev1.PodReady)
		if cond == nil || cond.Status != corev1.ConditionTrue {
			continue
		}
		ready := cond.LastTransitionTime.Add(minReady)
		if !ready.After(c.s.AsOf) {
			last = maxTime(last, ready)
		}
		// A Pod that lost and regained Ready long after its start tells nothing of the pace.
		if took := ready.Sub(p.CreationTimestamp.Time); took > slowest && took < 20*time.Minute {
			slowest = took
		}
	}
	for _, rec := range c.s.History.PodsOf(d.ds.UID) {
		if !rec.DeleteRequested.IsZero() {
			last = maxTime(last, rec.DeleteRequested)
		}
	}
	return last, slowest
}

// pace estimates the remaining time from the Pods replaced so far, and tells a
// slow rollout from one that merely moves.
func (d *daemonSet) pace(c *Diagnosis, step time.Duration) {
	r := &d.rollout
	var ends []time.Time
	for i := range d.loop.Slots {
		if p := d.loop.Slots[i].New; p != nil && !p.CreationTimestamp.Time.Before(d.change.start) && cluster.PodReady(p) {
			ends = append(ends, p.CreationTimestamp.Time)
		}
	}
	total := r.NotYetReached + len(ends)
	elapsed := c.s.AsOf.Sub(d.change.start)
	if len(ends) < 2 || d.change.start.IsZero() || elapsed <= 0 {
		return
	}
	// The recent pace where there is one: a rollout that slows down is judged by what it does now.
	slices.SortFunc(ends, time.Time.Compare)
	k := len(ends)
	recent := ends[max(0, k-21):]
	per := recent[len(recent)-1].Sub(recent[0]) / time.Duration(len(recent)-1)
	if overall := elapsed / time.Duration(k); per < overall/2 || per > 2*overall {
		per = overall // many at once, or a pause: the pace from the start is the better guess
	}
	remaining := per * time.Duration(r.NotYetReached)
	r.Remaining = report.Clean(short(remaining))
	if per*time.Duration(total) > 30*time.Minute {
		r.State = report.Slow
	}
}

// holder says which Pod or node uses up a unit of the budget, and why.
func (d *daemonSet) holder(c *Diagnosis, slot *cluster.Slot) report.BudgetHolder {
	h := report.BudgetHolder{Node: report.Clean(slot.Node)}
	if p := slot.Pod(); p != nil {
		h.Pod = report.Clean(p.Name)
	}
	node := c.nodes[slot.Node]
	switch {
	case slot.Missing:
		h.Why = "the node does not exist any more"
	case slot.State == cluster.SlotEmpty:
		h.Why = "has no Pod"
	case slot.State == cluster.SlotTerminating:
		h.Why = "only a Pod that is being deleted"
	case slot.State == cluster.SlotBoth:
		h.Why = "an old and a new Pod"
	case slot.State == cluster.SlotMany:
		h.Why = "more than one Pod of a kind"
	case slot.State == cluster.SlotOldUnavailable:
		h.Why = "its old Pod is not available"
	default:
		h.Why = "its new Pod is not available"
		if t := d.troubles[string(h.Pod)]; t != nil {
			h.Why = report.Textf("its new Pod: %s", t.summary)
		} else if cluster.PodReady(slot.New) {
			h.Why = "its new Pod is Ready for less than minReadySeconds"
		}
	}
	if node != nil && node.failing() {
		h.Why += report.Textf("; the node is %s", readiness(node))
	}
	return h
}

// readiness writes a node's Ready condition the way that tells what can be done.
func readiness(n *nodeState) string {
	switch {
	case n.leaseStale:
		return "Ready, with a stale Lease"
	case n.ready == corev1.ConditionTrue:
		return "Ready"
	}
	return "Ready=" + string(n.ready)
}

// holdsForGood tells whether a unit of the budget will not come back by itself.
func (d *daemonSet) holdsForGood(c *Diagnosis, slot *cluster.Slot) bool {
	node := c.nodes[slot.Node]
	if slot.Missing || node != nil && !node.reachable() {
		return true
	}
	if slot.State == cluster.SlotBoth && cluster.PodAvailable(slot.New, cluster.MinReady(d.ds), c.s.AsOf) {
		return false
	}
	if p := slot.New; p != nil && (slot.State == cluster.SlotNewUnavailable || slot.State == cluster.SlotBoth) {
		return c.s.AsOf.Sub(p.CreationTimestamp.Time) > d.stepAllowance() || broken(d.troubles[p.Name])
	}
	if slot.State == cluster.SlotTerminating {
		return c.s.AsOf.Sub(slot.Terminating[0].DeletionTimestamp.Time) > time.Minute
	}
	if slot.State == cluster.SlotEmpty {
		return !d.change.start.IsZero() && c.s.AsOf.Sub(d.change.start) > d.stepAllowance()
	}
	return false
}

// broken tells of a trouble that time alone does not mend.
func broken(t *podTrouble) bool {
	return t != nil && !t.ofNode && t.code != report.ReadinessFailing
}

// brake says what stops the update loop from going on, if anything does.
func (d *daemonSet) brake(c *Diagnosis, stuck []string) {
	r := &d.rollout
	switch {
	case r.State == report.Complete || r.State == report.NotObserved:
	case d.ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		r.Brake = "OnDelete: the controller replaces nothing by itself"
	case !d.podsKnown:
		r.Brake = ""
	case r.MaxSurgeResolved > 0:
		waiting := 0
		for i := range d.loop.Slots {
			if s := &d.loop.Slots[i]; s.State == cluster.SlotBoth && d.holdsForGood(c, s) {
				waiting++
			}
		}
		if waiting >= r.MaxSurgeResolved {
			r.Brake = report.Textf("%d of %d surge Pods allowed are not available", waiting, r.MaxSurgeResolved)
		}
	case len(stuck) >= r.MaxUnavailableResolved:
		r.Brake = report.Textf("%d of %d unavailable Pods allowed", len(stuck), r.MaxUnavailableResolved)
		if len(stuck) > r.MaxUnavailableResolved {
			r.Brake = report.Textf("%d Pods unavailable for good, %d allowed", len(stuck), r.MaxUnavailableResolved)
		}
	}
	if r.Brake != "" {
		r.Remaining = "" // it will not go on by itself
	}
	r.Spreading = r.Brake == "" && d.podsKnown && r.NotYetReached > 0 && (r.State == report.Progressing || r.State == report.Slow || r.State == report.Stuck)
}

// criticality lists what in a template lets a broken Pod hurt its node.
func criticality(t *corev1.PodTemplateSpec) []report.Text {
	var out []report.Text
	s := &t.Spec
	if s.HostNetwork {
		out = append(out, "hostNetwork")
	}
	if s.HostPID {
		out = append(out, "hostPID")
	}
	for _, ct := range append(append([]corev1.Container{}, s.InitContainers...), s.Containers...) {
		if ct.SecurityContext == nil {
			continue
		}
		if p := ct.SecurityContext.Privileged; p != nil && *p {
			out = append(out, "privileged")
		}
		if caps := ct.SecurityContext.Capabilities; caps != nil {
			for _, a := range caps.Add {
				switch a {
				case "NET_ADMIN", "SYS_ADMIN", "SYS_MODULE", "ALL":
					out = append(out, report.Textf("capability %s", a))
				}
			}
		}
	}
	for _, v := range s.Volumes {
		if v.HostPath != nil && criticalPath(v.HostPath.Path) {
			out = append(out, report.Textf("hostPath %s", v.HostPath.Path))
		}
	}
	if s.PriorityClassName == "system-node-critical" {
		out = append(out, "system-node-critical")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func criticalPath(p string) bool {
	for _, prefix := range []string{"/etc/cni", "/opt/cni", "/lib/modules", "/run/containerd", "/var/run/containerd", "/var/run/docker", "/run/crio",
		"/var/run/crio", "/var/lib/kubelet", "/etc/kubernetes", "/run/cilium", "/var/run/cilium", "/sys/fs/bpf", "/proc/sys", "/run/xtables.lock"} {
		if p == prefix || len(p) > len(prefix) && p[:len(prefix)+1] == prefix+"/" {
			return true
		}
	}
	return p == "/" || p == "/etc" || p == "/run" || p == "/var/run"
}

func (d *daemonSet) String() string { return fmt.Sprintf("DaemonSet %s/%s", d.ds.Namespace, d.ds.Name) }
