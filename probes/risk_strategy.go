package probes

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// settle is how long after the grace period a break has shown everywhere: the node is
// marked, its Pods are too, and the update loop has seen it.
const settle = time.Minute

// soak is the minReadySeconds that lets a break show before the next node is reached:
// a node that falls silent is marked only a grace period later.
func (c *Diagnosis) soak() time.Duration { return c.grace + settle }

// guard names what would stop a rollout that breaks its nodes; "" without one.
func (p *planned) guard() report.Text {
	switch {
	case !p.rolling:
		return "OnDelete"
	case p.canary() != nil:
		return report.Textf("the canary DaemonSet %s", p.canary().Name)
	case p.hasProbe() && p.minReady >= p.c.soak():
		return report.Textf("a readiness probe and minReadySeconds %d", int(p.minReady.Seconds()))
	}
	return ""
}

func (p *planned) hasProbe() bool {
	return slices.ContainsFunc(running(&p.template.Spec), func(c corev1.Container) bool { return c.ReadinessProbe != nil })
}

// canary is a second DaemonSet that runs the same program on other, fewer nodes and
// runs the planned images already; nil without one.
func (p *planned) canary() *appsv1.DaemonSet {
	if p.ds == nil || len(p.nodes) < 2 {
		return nil
	}
	for _, o := range p.c.s.DaemonSets {
		if o.Namespace != p.ds.Namespace || o.Name == p.ds.Name || !sameImages(&o.Spec.Template.Spec, &p.template.Spec, p.changes()) {
			continue
		}
		own, shared := 0, 0
		theirs, ours := cluster.RuleOf(&o.Spec.Template), cluster.RuleOf(p.template)
		for _, n := range p.c.s.Nodes {
			if should, _ := theirs.ShouldRun(n); !should {
				continue
			}
			own++
			if should, _ := ours.ShouldRun(n); should {
				shared++
			}
		}
		if own > 0 && own < len(p.nodes) && shared == 0 {
			return o
		}
	}
	return nil
}

// sameImages tells whether two Pods run the same programs: the same repositories, and
// the very same images where exact asks for it.
func sameImages(a, b *corev1.PodSpec, exact bool) bool {
	images := func(s *corev1.PodSpec) []string {
		var out []string
		for _, c := range allContainers(s) {
			image := c.Image
			if !exact {
				image, _, _ = strings.Cut(image, "@")
				if tag := imageTag(image); tag != "" {
					image = strings.TrimSuffix(image, ":"+tag)
				}
			}
			out = append(out, image)
		}
		slices.Sort(out)
		return out
	}
	x := images(a)
	return len(x) > 0 && slices.Equal(x, images(b))
}

// autoUpdates: a DaemonSet that can take its nodes down and replaces its Pods by
// itself, faster than a break shows.
func (p *planned) autoUpdates() *risk {
	if !p.isDaemonSet() || len(p.critical) == 0 || p.guard() != "" {
		return nil
	}
	ev := []report.Evidence{
		p.field("spec.updateStrategy", "RollingUpdate, maxUnavailable %s, maxSurge %s", p.maxUnavailable, p.maxSurge),
		p.field("spec.template", "%s", joinTexts(p.critical, 6)),
		p.field("spec.minReadySeconds", "%d; %d would let a break show before the next node", int(p.minReady.Seconds()), int(p.c.soak().Seconds())),
	}
	if !p.hasProbe() {
		ev = append(ev, p.field("spec.template.spec.containers[*].readinessProbe", "absent"))
	}
	if !toleratesNotReady(p.template) {
		ev = append(ev, p.field("spec.template.spec.tolerations", "not-ready:NoSchedule and unreachable:NoSchedule are not tolerated: a node that breaks gets no new Pod, and a rollback does not reach it"))
	}
	return warning(report.CriticalDaemonSetAutoUpdates, "its Pods can take their node down, and RollingUpdate goes on by itself: OnDelete with a canary pool first, or a second DaemonSet for it", ev...)
}

// toleratesNotReady tells whether a Pod would be created on a node that is not Ready.
func toleratesNotReady(t *corev1.PodTemplateSpec) bool {
	for _, key := range []string{cluster.TaintNotReady, cluster.TaintUnreachable} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}}}
		if len(cluster.UntoleratedTaints(n, t)) > 0 {
			return false
		}
	}
	return true
}

// budgetTooWide: how much of the pool, and of the control plane, may be lost at once.
// A node-critical DaemonSet should not take more than a tenth, any other not more than
// a quarter; one node at a time is never too wide.
func (p *planned) budgetTooWide() *risk {
	switch {
	case p.recreate && p.replicas > 1:
		return warning(report.BudgetTooWide, report.Textf("Recreate: all %d Pods end before the first new one starts", p.replicas), p.field("spec.strategy.type", "Recreate"))
	case p.key.Kind == "Deployment" && p.rolling && p.replicas > 1 && p.unavailable >= p.replicas:
		return warning(report.BudgetTooWide, report.Textf("all %d Pods may be unavailable at the same time", p.replicas), p.field("spec.strategy.rollingUpdate.maxUnavailable", "%s", p.maxUnavailable))
	case !p.isDaemonSet() || !p.rolling:
		return nil
	}
	desired, at, field, written := p.desired(), p.unavailable, "maxUnavailable", p.maxUnavailable
	if p.surge > at {
		at, field, written = p.surge, "maxSurge", p.maxSurge
	}
	if at < 2 || desired < 2 {
		return nil
	}
	at = min(at, desired)
	ev := []report.Evidence{p.field("spec.updateStrategy.rollingUpdate."+field, "%s of %s = %d (rounded up)", written, count(desired, "node"), at)}
	critical := len(p.critical) > 0
	if planes := p.planes(); critical && len(planes) > 2 && at >= (len(planes)+1)/2 {
		ev = append(ev, report.Evidence{Source: "Node.metadata.labels", Value: report.Textf("%d of its nodes are of the control plane (%s): nodes are reached in any order, so that their majority may be among the first", len(planes), names(planes, 5))})
		return p.wide(at, desired, critical, ev)
	}
	if at*4 > desired || critical && at*10 > desired {
		return p.wide(at, desired, critical, ev)
	}
	return nil
}

func (p *planned) wide(at, desired int, critical bool, ev []report.Evidence) *risk {
	r := warning(report.BudgetTooWide, report.Textf("%d of %d nodes are reached before the first result is in: a small absolute number loses fewer", at, desired), ev...)
	if at == desired {
		r.summary = report.Textf("all %d nodes are reached at once: nothing is left to compare with or to go on with", desired)
		if critical && p.surge == 0 {
			r.severity = report.Critical
		}
	}
	return r
}

// planes are the control-plane nodes among those of a DaemonSet.
func (p *planned) planes() []string {
	var out []string
	for _, n := range p.nodes {
		if controlPlane(n) {
			out = append(out, n.Name)
		}
	}
	return out
}

// noMinReadySeconds: the next node follows as soon as a Pod is Ready, however soon it
// breaks its node. For Pods that cannot hurt their node, a probe is brake enough.
func (p *planned) noMinReadySeconds() *risk {
	soak := int(p.c.soak().Seconds())
	ev := []report.Evidence{p.field("spec.minReadySeconds", "%d", int(p.minReady.Seconds()))}
	switch {
	case !p.rolling || p.recreate:
		return nil
	case p.isDaemonSet() && len(p.critical) > 0 && p.minReady < p.c.soak():
		ev = append(ev, report.Evidence{Source: "node-monitor-grace-period", Value: report.Textf("%s: a node that falls silent is marked only then", short(p.c.grace))})
		return warning(report.NoMinReadySeconds, report.Textf("minReadySeconds %d: a break shows up to %d s after its cause, and the next nodes are reached before it does; then wait as long between two changes", int(p.minReady.Seconds()), soak), ev...)
	case p.minReady == 0 && !p.hasProbe():
		return warning(report.NoMinReadySeconds, "minReadySeconds 0 and no readiness probe: a container that crashes after its start counts as a success", ev...)
	}
	return nil
}

// longUpdate is from when on an update is called long.
const longUpdate = 30 * time.Minute

// pacePlan is how long an update takes.
type pacePlan struct {
	per, total time.Duration
	batch      int // Pods at once
	rounds     int
	observed   int // Pods that per was measured on, 0 where it is what the settings allow
}

// pace estimates how long the update takes at what Pods of the workload took so far,
// or at what their settings allow. Not ok where nothing moves by itself.
func (p *planned) pace() (pacePlan, bool) {
	n, batch := p.desired(), max(p.unavailable, p.surge)
	switch {
	case !p.rolling:
		return pacePlan{}, false
	case p.recreate:
		n, batch = p.replicas, p.replicas
	case p.key.Kind == "Deployment":
		n, batch = p.replicas, p.unavailable+p.surge
	case p.key.Kind == "StatefulSet":
		n, batch = p.replicas, 1
	}
	if n == 0 {
		return pacePlan{}, false
	}
	x := pacePlan{batch: min(max(batch, 1), n)}
	x.rounds = (n + x.batch - 1) / x.batch
	x.per, x.observed = p.observedStart()
	if x.observed == 0 {
		x.per = startAllowance(&p.template.Spec)
		if p.surge == 0 {
			x.per += gracePeriod(&p.template.Spec)
		}
	}
	x.per += p.minReady
	x.total = x.per * time.Duration(x.rounds)
	return x, true
}

func gracePeriod(s *corev1.PodSpec) time.Duration {
	if s.TerminationGracePeriodSeconds != nil {
		return time.Duration(*s.TerminationGracePeriodSeconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// observedStart is what the workload's Pods took from creation until Ready: the
// median of those that never lost it, and how many those are.
func (p *planned) observedStart() (time.Duration, int) {
	var took []time.Duration
	for _, pod := range p.pods() {
		ready := cluster.PodCondition(pod, corev1.PodReady)
		if ready == nil || ready.Status != corev1.ConditionTrue || slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 }) {
			continue
		}
		// What became Ready much later than it was made regained it.
		if d := ready.LastTransitionTime.Sub(pod.CreationTimestamp.Time); d > 0 && d < 20*time.Minute {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], len(took)
}

// pods are those of the live workload, as far as they were read.
func (p *planned) pods() []*corev1.Pod {
	switch {
	case p.r != nil:
		return slices.Concat(p.r.pods, p.r.older)
	case p.uid != "":
		return p.c.s.PodsOf(p.uid)
	}
	return nil
}

// updateTakesLong: for longer than half an hour nobody watches closely.
func (p *planned) updateTakesLong() *risk {
	x, ok := p.pace()
	if !ok || x.total <= longUpdate {
		return nil
	}
	source := report.Textf("what its settings allow: probes, grace period, minReadySeconds %d", int(p.minReady.Seconds()))
	if x.observed > 0 {
		source = report.Textf("median of %s from creation until Ready, and minReadySeconds %d; stopping the old Pod comes on top", count(x.observed, "Pod"), int(p.minReady.Seconds()))
	}
	return warning(report.UpdateTakesLong, report.Textf("about %s: %s of %s each, %d at once", short(x.total), count(x.rounds, "round"), short(x.per), x.batch),
		report.Evidence{Source: "time per Pod", Value: report.Textf("%s: %s", short(x.per), source)},
		p.field("spec.updateStrategy", "maxUnavailable %s, maxSurge %s", orDash(p.maxUnavailable), orDash(p.maxSurge)))
}
