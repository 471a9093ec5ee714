package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// judgement is what the measures say of a change and the nodes that fell.
type judgement int

// The judgements, from k nodes and their times alone.
const (
	notAsked     judgement = iota // no node fell since the change, or its start is not known
	caused                        // the change broke the nodes
	likely                        // probably so
	reverse                       // the nodes broke first
	commonCause                   // something else broke reached and unreached nodes alike
	unrelated                     // the nodes that fell have nothing to do with the change
	insufficient                  // the evidence is not enough
)

// measure computes rates, tests and the judgement.
func (a *analysis) measure(c *Diagnosis, d *daemonSet) {
	m := &a.measures
	A, B, O, L := a.count(classAfter), a.count(classBefore), a.count(classOld), a.count(classLate)
	H, C := a.count(classHealthy), a.count(classClean)
	fill := map[class]*[]report.Text{classAfter: &m.After, classBefore: &m.Before, classLate: &m.Late, classOld: &m.Old, classHealthy: &m.Healthy,
		classPending: &m.Pending, classClean: &m.Clean, classUnclear: &m.Unclear, classSuffering: &m.Suffering, classNew: &m.NewNodes,
		classPrevalent: &m.Prevalent, classUndone: &m.Replaced, classExplained: &m.Explained}
	for cl, list := range fill {
		*list = cleaned(nodeNames(a.by[cl]))
	}
	for _, e := range a.by[classAfter] {
		m.Lags = append(m.Lags, report.Lag{Node: report.Clean(e.node.name), Kind: report.Clean(string(e.episode.status)),
			FromSeconds: e.episode.onset.From.Sub(e.deleted.To).Seconds(), ToSeconds: e.episode.onset.To.Sub(e.deleted.From).Seconds()})
	}
	a.nobodyOld = O+C == 0
	m.Coverage, m.Attack, m.Background, m.Reverse = ratio(A, B+O+L), ratio(A, H), ratio(O, C), ratio(B, A)
	if m.Attack != nil && m.Background != nil {
		rd := *m.Attack - *m.Background
		m.Difference = &rd
	}
	p := fisher(A, H, O, C)
	if A+H > 0 && O+C > 0 {
		m.Fisher = &p
	}
	var exposed, fell []time.Time
	for _, e := range a.by[classAfter] {
		exposed, fell = append(exposed, e.deleted.Mid()), append(fell, e.episode.onset.Mid())
	}
	if A >= 2 && span(exposed) > 0 {
		s := span(fell).Seconds() / span(exposed).Seconds()
		m.Spread = &s
	}
	all := slices.Clone(fell)
	for _, e := range append(slices.Clone(a.by[classOld]), a.by[classBefore]...) {
		all = append(all, e.episode.onset.Mid())
	}
	if len(all) > 0 {
		s := simultaneous(all, 15*time.Second)
		m.Simultaneous = &s
	}
	a.capable = capability(d, a.by[classAfter])
	a.mode = a.cascadeMode(d)
	a.judged = a.judge(c, d, p)
	a.score(c, d, p, exposed, fell)
}

// judge applies the thresholds. They are rules of thumb for incidents of a few
// nodes up to thousands; what they rest on travels in the measures.
func (a *analysis) judge(c *Diagnosis, d *daemonSet, p float64) judgement {
	m := &a.measures
	A, B, O, L, H := a.count(classAfter), a.count(classBefore), a.count(classOld), a.count(classLate), a.count(classHealthy)
	coverage, attack, background, reversed := value(m.Coverage, 0), value(m.Attack, 0), value(m.Background, 0), value(m.Reverse, 0)
	rd := attack - background
	switch {
	case A+B+O+L == 0:
		if a.count(classUnclear) > 0 && a.count(classUnclear) > a.count(classPrevalent) {
			return insufficient
		}
		return notAsked
	case B >= A && B > 0:
		return reverse
	case A == 0:
		return unrelated
	case a.simultaneousBlow(c):
		return commonCause
	}
	best := fisher(A, 0, 0, O+a.count(classClean))
	strong := a.capable >= 2
	few := best >= 0.01 || a.nobodyOld
	tight := a.tightLags(d)
	spreads := A < 3 || m.Spread == nil || *m.Spread > 0.5 || a.clusteredExposure()
	switch {
	case (A >= 2 || strong) && coverage >= 0.8 && reversed <= 0.1 && background <= 0.1 && rd >= 0.5 && p < 0.01 && spreads && !few:
		return caused
	case coverage >= 0.6 && rd >= 0.3 && p < 0.05 && reversed <= 0.3:
		return likely
	case a.nobodyOld && (A == 1 && a.count(classPending) > 0 || a.count(classPending) > 2*A):
		return insufficient // few of many that were reached just now, and nobody to compare with
	case few && best >= 0.05 && (A >= 2 || strong) && coverage >= 0.6 && reversed <= 0.3 && attack >= 0.5 && (tight || a.mode == "C") && a.mode != "":
		return likely
	}
	if tight && a.withinStratum(c) {
		if p < 0.01 && coverage >= 0.8 && A >= 2 {
			return caused
		}
		return likely
	}
	switch {
	case O >= 2 && background >= attack-0.1:
		return commonCause
	case coverage < 0.3 && rd < 0.1:
		return unrelated
	case H >= 5 && attack < 0.1:
		return unrelated
	}
	return insufficient
}

// clusteredExposure tells that the replacements themselves came together, so that
// failures that come together say nothing against them.
func (a *analysis) clusteredExposure() bool {
	var at []time.Time
	for _, e := range a.by[classAfter] {
		at = append(at, e.deleted.Mid())
	}
	return span(at) <= 2*time.Minute
}

// exposedTogether tells that nodes were reached about as closely together as they
// fell: then falling together says nothing against the change.
func (a *analysis) exposedTogether() bool {
	var at, fell []time.Time
	for _, e := range a.by[classAfter] {
		at, fell = append(at, e.deleted.Mid()), append(fell, e.episode.onset.Mid())
	}
	return span(at) <= 2*span(fell)+falseDelay
}

// simultaneousBlow tells that nodes fell together although they were reached one
// after another: something else struck them.
func (a *analysis) simultaneousBlow(c *Diagnosis) bool {
	m := &a.measures
	fallen := a.count(classAfter) + a.count(classOld) + a.count(classBefore)
	return fallen >= 3 && m.Simultaneous != nil && *m.Simultaneous >= 0.7 && m.Spread != nil && *m.Spread < 0.3 && !a.exposedTogether() ||
		a.count(classOld) >= 2 && fallen >= 3 && m.Simultaneous != nil && *m.Simultaneous >= 0.7 && value(m.Background, 0) > 0.1
}

// tightLags tells that the nodes fell with much the same lag, never before they
// were reached. False and Unknown show after different delays and are not mixed.
func (a *analysis) tightLags(d *daemonSet) bool {
	byKind := map[corev1.ConditionStatus][]time.Duration{}
	for _, e := range a.by[classAfter] {
		lag := e.episode.onset.Mid().Sub(e.deleted.Mid())
		if e.episode.onset.To.Before(e.deleted.From.Add(-skew)) {
			return false
		}
		byKind[e.episode.status] = append(byKind[e.episode.status], lag)
	}
	for _, lags := range byKind {
		if interquartile(lags) > max(30*time.Second, d.medianStep(a.nodes)) {
			return false
		}
	}
	return len(byKind) > 0
}

// capability grades, 0 to 4, how far the DaemonSet's template explains what befell
// the nodes: the Pod's own failure there, and power over what failed.
func capability(d *daemonSet, fell []*exposure) int {
	if len(fell) == 0 {
		return 0
	}
	points := 0
	crit := d.rollout.Critical
	has := func(s string) bool {
		return slices.ContainsFunc(crit, func(t report.Text) bool { return strings.HasPrefix(string(t), s) })
	}
	network, silent, failing, exhausted := 0, 0, 0, 0
	for _, e := range fell {
		if e.node.exhausted(e.episode.shown) {
			exhausted++
		}
		if e.episode.status == corev1.ConditionFalse && e.node.code == report.NodeNetworkNotReady || strings.Contains(e.episode.message, "NetworkPluginNotReady") {
			network++
		}
		if e.episode.status == corev1.ConditionUnknown {
			silent++
		}
		if e.pod != nil {
			if t := d.troubles[e.pod.Name]; t != nil && !t.ofNode && t.code != report.StuckTerminating {
				failing++
			}
		}
	}
	cni := has("hostPath /etc/cni") || has("hostPath /opt/cni")
	switch {
	case 2*network >= len(fell) && cni:
		points += 2
	case 2*silent >= len(fell) && has("hostNetwork") && (has("privileged") || has("capability")):
		points += 2
	case 2*exhausted >= len(fell):
		points += 2 // no privilege is needed to use up what a node has
	case len(crit) > 0 && (has("privileged") || has("capability") || has("hostPath")):
		points++
	}
	if 2*failing >= len(fell) {
		points += 2
	}
	return points
}

// cascadeMode names the mechanism that fits, "" where none does.
func (a *analysis) cascadeMode(d *daemonSet) string {
	var bare, silent, alive, ready, unready int
	for _, e := range a.by[classAfter] {
		if !e.created.IsZero() && e.episode.onset.To.Before(e.created) && (e.ready.IsZero() || e.episode.onset.To.Before(e.ready)) && !e.podless {
			a.inGap++
			continue
		}
		switch {
		case d.bare(e):
			bare++
		case e.episode.status == corev1.ConditionUnknown:
			silent++
		default:
			alive++
		}
		switch {
		case e.pod == nil:
		case cluster.PodReady(e.pod):
			ready++
		default:
			unready++
		}
	}
	n := a.count(classAfter)
	switch {
	case n == 0:
		return ""
	case 2*bare > n:
		return "C"
	case 2*silent > n:
		return "A"
	case 2*alive >= n && ready > 0:
		return "B"
	case 2*alive >= n && 2*unready >= n:
		return "halted" // new Pods that never become Ready: it stops by itself
	}
	return ""
}

// bare tells of a failing node that has no Pod of the change and, while it carries a
// taint that the template does not tolerate, gets none.
func (d *daemonSet) bare(e *exposure) bool {
	return e.node.failing() && e.created.IsZero() && e.pod == nil && len(cluster.UntoleratedTaints(e.node.node, &d.ds.Spec.Template)) > 0
}

// score adds up the evidence and takes off what weakens it.
func (a *analysis) score(c *Diagnosis, d *daemonSet, p float64, exposed, fell []time.Time) {
	m := &a.measures
	if a.count(classAfter) == 0 {
		return
	}
	item := func(points int, format string, args ...any) {
		if points != 0 {
			a.points += points
			m.Items = append(m.Items, report.Textf("%+d %s", points, fmt.Sprintf(format, args...)))
		}
	}
	if m.Fisher != nil {
		sep := 0
		switch {
		case p < 0.001:
			sep = 3
		case p < 0.01:
			sep = 2
		case p < 0.05:
			sep = 1
		}
		item(sep, "reached and unreached nodes differ (Fisher p = %.2g)", p)
	}
	switch cov := value(m.Coverage, 0); {
	case cov >= 0.9:
		item(2, "%d of %d fallen nodes were reached first", a.count(classAfter), a.count(classAfter)+a.count(classBefore)+a.count(classOld)+a.count(classLate))
	case cov >= 0.6:
		item(1, "%.0f %% of the fallen nodes were reached first", 100*cov)
	}
	if a.tightLags(d) {
		item(2, "they fell with much the same delay, none before its turn")
	}
	if len(fell) >= 2 && (kendall(exposed, fell) > 0.5 || m.Spread != nil && *m.Spread > 0.5 && *m.Spread < 2) {
		item(1, "they fell in the order in which they were reached")
	}
	mechanism := min(a.capable, 3)
	item(mechanism, "mechanism: what the Pod may do to a node, and how it fails there, explain it")
	if a.mode != "" {
		item(1, "the pattern fits %s", modeText(a.mode))
	}
	if n := a.count(classHealthy); n > 0 && value(m.Attack, 0) < 0.8 && a.stratum == "" {
		item(-1, "%s that had time to fall did not", count(n, "reached node"))
	}
	if n := a.count(classUnclear); n > 0 {
		item(-1, "the times of %s are not known", count(n, "node"))
	}
	wide := 0
	for _, e := range a.by[classAfter] {
		if e.deleted.Width() > 2*time.Minute {
			wide++
		}
	}
	if 2*wide > len(fell) {
		item(-1, "when most Pods were deleted is only known within minutes")
	}
	if a.nobodyOld {
		item(-2, "no unreached node is left to compare with")
	}
	m.Points = a.points
}

func modeText(mode string) string {
	switch mode {
	case "A":
		return "a delayed break: Pods become available, their nodes fall silent later"
	case "B":
		return "a break that readiness does not see: Ready=False, kubelets alive, the Pods stay Ready"
	case "C":
		return "removal that breaks the node: it turns not Ready before a new Pod can come, and none comes"
	case "D":
		return "an avalanche: updated nodes make old Pods elsewhere unready, and those are replaced at once"
	}
	return "a rollout that halts on new Pods that never become Ready"
}

// confidence is the degree that the points give, within what the judgement allows.
func (a *analysis) confidence() report.Confidence {
	conf := report.Low
	switch {
	case a.points >= 8:
		conf = report.High
	case a.points >= 5:
		conf = report.Medium
	}
	switch {
	case a.judged == caused && conf == report.Low:
		conf = report.Medium
	case a.judged == likely && conf == report.High, a.nobodyOld && conf == report.High, a.joint != "" && conf == report.High:
		conf = report.Medium
	}
	return conf
}
