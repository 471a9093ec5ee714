package action

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Recovery proves that a workload's nodes are well again: every node of its pool,
// not only those that DESIRED counts, Ready for two grace periods with one Pod of
// the present template's revision, no not-ready or unreachable taint, a fresh
// Lease where it is read. Nodes that were out of reach or broken from before when
// the proof began are listed while they stay so, and not counted. So are nodes
// that are lost later with their old Pod: the bad revision took them before they
// were reached. A node that is lost with its new Pod counts.
type Recovery struct {
	Workload report.WorkloadKey
	excused  map[string]report.Text // node, why
	astray   map[string]bool        // nodes with a Pod that should have none, from the start
	holding
}

// Recover begins the proof. before names the nodes that were broken before the
// rollout: no change of the workload mends them.
func Recover(k report.WorkloadKey, s *cluster.Snapshot, before []report.Text, grace time.Duration) *Recovery {
	r := &Recovery{Workload: k, excused: map[string]report.Text{}, astray: map[string]bool{}}
	r.need = 2 * grace
	for _, n := range s.Nodes {
		wasBroken := slices.Contains(before, report.Clean(n.Name))
		switch {
		case cluster.NodeReady(n):
		case wasBroken && !reachable(n):
			r.excused[n.Name] = "is out of reach, and was broken before the rollout"
		case wasBroken:
			r.excused[n.Name] = "was broken before the rollout"
		case !reachable(n):
			r.excused[n.Name] = "is out of reach: the API cannot act on it"
		}
	}
	if ds := seenDaemonSet(s, k); ds != nil {
		for _, n := range astray(s, ds) {
			r.astray[n] = true
		}
	}
	return r
}

// Observe looks at the next snapshot.
func (r *Recovery) Observe(s *cluster.Snapshot) Proof { return r.observe(s.AsOf, r.lines(s)) }

// Excused lists the nodes that are not counted now, each with the reason.
func (r *Recovery) Excused(s *cluster.Snapshot) []report.Text {
	var out []report.Text
	for _, n := range s.Nodes {
		if why, ok := r.excused[n.Name]; ok && !cluster.NodeReady(n) {
			out = append(out, report.Textf("%s %s", n.Name, why))
		}
	}
	return out
}

const atMost = 8 // lines about single nodes; more are counted

func (r *Recovery) lines(s *cluster.Snapshot) []report.Line {
	ds := seenDaemonSet(s, r.Workload)
	if ds == nil {
		return []report.Line{badLine("%s is gone", r.Workload)}
	}
	updated := updatedNow(s, ds)
	var bad []report.Line
	pool, well := 0, 0
	for _, n := range s.Nodes {
		if !cluster.InPool(n, &ds.Spec.Template) {
			continue
		}
		if _, ok := r.excused[n.Name]; !ok && !reachable(n) && lostWithOldPod(s, ds, n.Name, updated) {
			r.excused[n.Name] = "is out of reach: it was lost before its Pod was replaced"
		}
		if _, ok := r.excused[n.Name]; ok && !cluster.NodeReady(n) {
			continue
		}
		pool++
		i := len(bad)
		for _, l := range nodeHolds(s, ds, n.Name, updated, "") {
			if l.State != report.StepOK {
				bad = append(bad, l)
			}
		}
		if len(bad) == i {
			well++
		}
	}
	head := okLine("%d of %s in reach Ready, each with one Ready Pod of %s", well, count(pool, "node"), presentRevision(s, ds))
	if well < pool {
		head.State = report.StepAnomaly
	}
	lines := []report.Line{head}
	for i, l := range bad {
		if i == atMost {
			lines = append(lines, report.Line{State: report.StepAnomaly, Text: report.Textf("and %d more", len(bad)-atMost), Indent: 1})
			break
		}
		l.Indent = 1
		lines = append(lines, l)
	}
	for _, n := range astray(s, ds) {
		l := badLine("%s has a Pod and should have none", n)
		if r.astray[n] {
			l.State = report.StepNotice
		}
		lines = append(lines, l)
	}
	for _, t := range r.Excused(s) {
		lines = append(lines, report.Line{State: report.StepNotice, Text: report.Textf("%s: listed, not counted", t)})
	}
	return lines
}

// lostWithOldPod tells whether the node has Pods of the DaemonSet, all of them of
// another revision than the present one.
func lostWithOldPod(s *cluster.Snapshot, ds *appsv1.DaemonSet, node string, updated func(*corev1.Pod) bool) bool {
	old := false
	for _, p := range s.PodsOf(ds.UID) {
		if cluster.TargetNode(p) == node && !cluster.PodTerminal(p) {
			if updated(p) {
				return false
			}
			old = true
		}
	}
	return old
}

// astray are the nodes that have a Pod of the DaemonSet and are not meant for it.
func astray(s *cluster.Snapshot, ds *appsv1.DaemonSet) []string {
	var out []string
	for _, p := range s.PodsOf(ds.UID) {
		name := cluster.TargetNode(p)
		if n := s.Node(name); n != nil && !cluster.PodTerminal(p) && !cluster.InPool(n, &ds.Spec.Template) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func presentRevision(s *cluster.Snapshot, ds *appsv1.DaemonSet) report.Text {
	if r := s.CurrentRevision(ds); r != nil {
		return report.Textf("revision %d", r.Revision)
	}
	return "the present template"
}
