package action

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Proof is how far the proof of something is.
type Proof struct {
	Lines []report.Line
	Holds bool      // it is so in the last snapshot
	Since time.Time // cluster time since which it has been so without a gap; zero while it is not
	Until time.Time // cluster time at which it is proved if it stays so
	Done  bool      // it was so for long enough; later snapshots do not take that back
	// Broke counts how often it was so and then was not.
	Broke int
}

// holding turns statements about single snapshots into a proof over time. Cluster
// time only: a laptop that slept proves nothing.
type holding struct {
	need  time.Duration
	proof Proof
}

func (h *holding) observe(at time.Time, lines []report.Line) Proof {
	p := &h.proof
	p.Lines, p.Holds = lines, true
	for _, l := range lines {
		if l.State == report.StepAnomaly || l.State == report.StepUnknown || l.State == report.StepLooking {
			p.Holds = false
		}
	}
	switch {
	case !p.Holds:
		if !p.Since.IsZero() {
			p.Broke++
		}
		p.Since, p.Until = time.Time{}, time.Time{}
	case p.Since.IsZero():
		p.Since, p.Until = at, at.Add(h.need)
	}
	if p.Holds && !at.Before(p.Until) {
		p.Done = true
	}
	return *p
}

// Verification watches whether an applied action holds.
type Verification struct {
	Plan Plan
	def  definition
	holding
}

// Verify begins to watch. nodeGrace is node-monitor-grace-period: see Snapshot.Grace.
func Verify(p Plan, nodeGrace time.Duration) *Verification {
	v := &Verification{Plan: p, def: definitions[p.Kind]}
	if v.def != nil {
		v.need = time.Duration(v.def.hold()) * nodeGrace
	}
	return v
}

// Observe looks at the next snapshot. It is a pure fold: the same snapshots give
// the same proof.
func (v *Verification) Observe(s *cluster.Snapshot) Proof {
	if v.def == nil {
		return v.proof
	}
	return v.observe(s.AsOf, v.def.holds(v.Plan, s))
}

// Replaces tells whether a later plan makes this proof moot: it moves the same
// lever of the same object.
func (v *Verification) Replaces(p Plan) bool {
	return v.Plan.Object == p.Object && Lever(v.Plan.Kind) == Lever(p.Kind)
}

func sameDaemonSet(p Plan, s *cluster.Snapshot) (*appsv1.DaemonSet, []report.Line) {
	ds := seenDaemonSet(s, p.Workload)
	switch {
	case ds == nil:
		return nil, []report.Line{badLine("%s is gone", p.Workload)}
	case ds.UID != types.UID(p.UID):
		return nil, []report.Line{badLine("%s was deleted and made anew", p.Workload)}
	case ds.Generation <= p.Generation:
		return nil, []report.Line{{State: report.StepLooking, Text: "the change is not in the picture yet"}}
	}
	return ds, nil
}

func observedLine(ds *appsv1.DaemonSet) report.Line {
	if ds.Status.ObservedGeneration < ds.Generation {
		return badLine("the controller has seen generation %d, not yet %d", ds.Status.ObservedGeneration, ds.Generation)
	}
	return okLine("the controller has seen generation %d", ds.Generation)
}

// nodeHolds tells whether a node and its one Pod are as they should be. gone is
// the UID of a Pod that must not be there any more, "" for none.
func nodeHolds(s *cluster.Snapshot, ds *appsv1.DaemonSet, node string, updated func(*corev1.Pod) bool, gone string) []report.Line {
	n := s.Node(node)
	if n == nil {
		return []report.Line{badLine("node %s is gone", node)}
	}
	if !s.PodsKnown(ds.UID) {
		return []report.Line{{State: report.StepUnknown, Text: "the Pods of this workload were not read"}}
	}
	var live, leaving []*corev1.Pod
	for _, p := range s.PodsOf(ds.UID) {
		switch {
		case cluster.TargetNode(p) != node || cluster.PodTerminal(p):
		case p.DeletionTimestamp != nil || string(p.UID) == gone:
			leaving = append(leaving, p)
		default:
			live = append(live, p)
		}
	}
	var lines []report.Line
	if len(leaving) > 0 {
		lines = append(lines, badLine("%s: %s is still there, on its way out", node, leaving[0].Name))
	}
	switch {
	case len(live) == 0:
		lines = append(lines, badLine("%s has no Pod of this workload", node))
	case len(live) > 1:
		lines = append(lines, badLine("%s has %d Pods of this workload", node, len(live)))
	case !updated(live[0]):
		lines = append(lines, badLine("%s: %s is of another revision", node, live[0].Name))
	case !cluster.PodReady(live[0]):
		lines = append(lines, badLine("%s: %s is of the right revision and not Ready yet", node, live[0].Name))
	default:
		lines = append(lines, okLine("%s: %s is of the right revision and Ready", node, live[0].Name))
	}
	return append(lines, healthLines(s, n)...)
}

// healthLines says whether the node itself is well: its condition, the taints that
// follow it, its heartbeat where that is being read. They are separate sources,
// and each lags behind the other.
func healthLines(s *cluster.Snapshot, n *corev1.Node) []report.Line {
	var lines []report.Line
	if r := cluster.NodeReadiness(n); r == corev1.ConditionTrue {
		lines = append(lines, okLine("%s is Ready", n.Name))
	} else {
		lines = append(lines, badLine("%s is not Ready: Ready=%s", n.Name, r))
	}
	for _, t := range n.Spec.Taints {
		if t.Key == cluster.TaintNotReady || t.Key == cluster.TaintUnreachable {
			lines = append(lines, badLine("%s still has the taint %s", n.Name, t.ToString()))
		}
	}
	if age, known := leaseAge(s, n.Name); known && age > grace(s) {
		lines = append(lines, badLine("%s has not renewed its Lease for %s", n.Name, age.Round(time.Second)))
	}
	return lines
}

// leaseAge is how old the node's heartbeat is. A Lease is read again and again
// only while its node is of interest; an old copy of another says nothing.
func leaseAge(s *cluster.Snapshot, node string) (time.Duration, bool) {
	l := s.NodeLease(node)
	if l == nil || l.Spec.RenewTime == nil {
		return 0, false
	}
	age := s.AsOf.Sub(l.Spec.RenewTime.Time)
	if age > grace(s) && !s.AllLeases {
		wanted := false
		for _, n := range s.Demand().Leases {
			wanted = wanted || n == node
		}
		return age, wanted
	}
	return age, true
}

func grace(s *cluster.Snapshot) time.Duration {
	g, _ := s.Grace()
	return g
}

func okLine(format string, args ...any) report.Line {
	return report.Line{State: report.StepOK, Text: report.Textf(format, args...)}
}

func badLine(format string, args ...any) report.Line {
	return report.Line{State: report.StepAnomaly, Text: report.Textf(format, args...)}
}
