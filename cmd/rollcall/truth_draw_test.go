package main

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// strike notes whom X hits, and when.
func (tr *trial) strike(do func(*sim.Host)) func(*sim.Host) {
	return func(h *sim.Host) {
		name := h.Name()
		if tr.kernel != "" && tr.kernelOf(name) != tr.kernel {
			return
		}
		if _, again := tr.struck[name]; !again {
			tr.struck[name] = tr.clock.Now()
		}
		do(h)
	}
}

func (tr *trial) kernelOf(name string) string {
	for _, n := range tr.nodes {
		if n.Name == name {
			return n.Status.NodeInfo.KernelVersion
		}
	}
	return ""
}

func (tr *trial) cutOff(h *sim.Host) {
	tr.offline[h.Name()] = tr.clock.Now()
	h.CutOff()
}

func (tr *trial) die(h *sim.Host) {
	tr.offline[h.Name()] = tr.clock.Now()
	h.Die()
}

// layOut plans what is to come.
func (tr *trial) layOut(programs map[string]sim.Program) {
	if tr.truth == nothing {
		return
	}
	tr.x, tr.xStart = tr.sets[0], truthEpoch.Add(30*time.Second)
	tr.goodX = tr.hashOf(tr.x, 2)
	bad := programs[image(tr.x.Name, 3)]
	install := programs[image(tr.x.Name+"-install", 3)]
	how := tr.truth
	switch tr.truth {
	case twoRollouts:
		how = pick(tr, breaksFalse, breaksUnknown, initBreaks)
		tr.y = tr.sets[1+tr.rng.IntN(len(tr.sets)-1)]
		tr.yStart = tr.xStart.Add(tr.span(-4*time.Minute, 4*time.Minute)).Truncate(5 * time.Second)
	case undone:
		how = pick(tr, breaksFalse, breaksFalse, breaksUnknown, initBreaks)
	case recovered:
		how = pick(tr, breaksFalse, breaksFalse, initBreaks)
	case nodesDie:
		how = ""
		tr.kill()
	case deadNodesHold:
		n := intstr.FromInt32(int32(1 + tr.rng.IntN(len(tr.before))))
		tr.plan = append(tr.plan, planned{tr.xStart.Add(-5 * time.Second), func(tr *trial) error {
			return tr.edit("helm", tr.x, func(o *appsv1.DaemonSet) {
				o.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &n
				o.Spec.UpdateStrategy.RollingUpdate.MaxSurge = nil
			})
		}})
	case podsFail:
		tr.breakPods(programs)
		bad, install = programs[image(tr.x.Name, 3)], programs[image(tr.x.Name+"-install", 3)]
	}
	if how != "" {
		tr.how = string(how)
	}
	switch how {
	case breaksFalse:
		low := tr.span(0, 20*time.Second)
		bad = bad.With(sim.Effect{At: sim.BecameReady, After: sim.Between(low, low+tr.span(0, 15*time.Second)), Do: tr.strike((*sim.Host).BreakCNI)})
	case breaksUnknown:
		low := tr.span(0, 30*time.Second)
		do := tr.cutOff
		if tr.one(0.3) {
			do, tr.how = tr.die, tr.how+" by death"
		}
		bad = bad.With(sim.Effect{At: sim.BecameReady, After: sim.Between(low, low+tr.span(0, 20*time.Second)), Do: tr.strike(do)})
	case initBreaks:
		install = sim.Fails(sim.Between(2*time.Second, 4*time.Second), 1).With(
			sim.Effect{At: sim.Started, After: sim.Exactly(500 * time.Millisecond), Do: tr.strike((*sim.Host).BreakCNI)})
	}
	if (how == breaksFalse || how == breaksUnknown) && tr.truth != undone && tr.truth != recovered && tr.one(0.15) {
		tr.kernel = tr.nodes[tr.rng.IntN(len(tr.nodes))].Status.NodeInfo.KernelVersion
	}
	programs[image(tr.x.Name, 3)], programs[image(tr.x.Name+"-install", 3)] = bad, install
	tr.plan = append(tr.plan, tr.rollout(tr.x, tr.xStart))
	if tr.y != nil {
		tr.plan = append(tr.plan, tr.rollout(tr.y, tr.yStart))
	}
	tr.inOrder()
}

func (tr *trial) inOrder() {
	slices.SortStableFunc(tr.plan, func(a, b planned) int { return a.at.Compare(b.at) })
}

func (tr *trial) rollout(ds *appsv1.DaemonSet, at time.Time) planned {
	manager := pick(tr, "helm", "argocd-controller", "kubectl-client-side-apply")
	return planned{at, func(tr *trial) error {
		return tr.edit(manager, ds, func(o *appsv1.DaemonSet) {
			setVersion(o, 3)
			o.Spec.Template.Spec.Containers[0].Env[0].Value = "debug"
		})
	}}
}

// removal gives X's present version the habit to take the CNI configuration along.
func (tr *trial) removal(programs map[string]sim.Program) {
	x := tr.sets[0]
	grace := int64(30)
	x.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	zero, n := intstr.FromInt32(0), intstr.FromInt32(int32(len(tr.before)+1+tr.rng.IntN(3)))
	x.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &n, MaxSurge: &zero}
	p := programs[image(x.Name, 2)].With(sim.Effect{At: sim.ToldToEnd, Do: tr.strike((*sim.Host).BreakCNI)})
	p.StopsIn = sim.Between(19*time.Second, 25*time.Second)
	programs[image(x.Name, 2)] = p
}

// breakPods draws how X's new Pods fail.
func (tr *trial) breakPods(programs map[string]sim.Program) {
	name := image(tr.x.Name, 3)
	ways := []string{"ImageNotFound", "CrashLoop", "OutOfMemory"}
	if tr.x.Spec.Template.Spec.Containers[0].ReadinessProbe != nil {
		ways = append(ways, "ReadinessFailing")
	}
	if len(tr.x.Spec.Template.Spec.InitContainers) > 0 {
		ways = append(ways, "InitContainerFailed")
	}
	tr.rootX = pick(tr, ways...)
	switch tr.rootX {
	case "ImageNotFound":
		programs[name] = sim.ImageMissing(name)
	case "CrashLoop":
		programs[name] = sim.Fails(sim.Between(0, tr.span(time.Second, 20*time.Second)), 1)
	case "OutOfMemory":
		programs[name] = sim.OOM(sim.Between(time.Second, tr.span(2*time.Second, 20*time.Second)))
	case "ReadinessFailing":
		programs[name] = sim.NeverReady("connection refused")
	case "InitContainerFailed":
		programs[image(tr.x.Name+"-install", 3)] = sim.Fails(sim.Between(time.Second, 3*time.Second), 1)
	}
}

// kill plans the deaths of nodes that have nothing to do with X.
func (tr *trial) kill() {
	var victims []string
	for _, n := range tr.nodes {
		if !tr.before[n.Name] {
			victims = append(victims, n.Name)
		}
	}
	tr.rng.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	at := tr.xStart.Add(tr.span(-5*time.Minute, 10*time.Minute))
	zone := ""
	how := pick(tr, "one by one", "one by one", "together", "zone")
	n := 1 + tr.rng.IntN(6)
	if how == "zone" {
		zone, n = tr.nodes[tr.rng.IntN(len(tr.nodes))].Labels[corev1.LabelTopologyZone], len(victims)
	}
	kind := pick(tr, "dies", "is cut off", "loses CNI")
	switch f := tr.extra.Float64(); {
	case f < 0.15:
		kind = "reboots"
	case f < 0.25:
		kind = "loses CNI for a minute"
	}
	tr.how = how + ", " + kind
	for _, v := range victims {
		if n == 0 {
			break
		}
		if zone != "" && tr.node(v).Labels[corev1.LabelTopologyZone] != zone {
			continue
		}
		n--
		when := at
		if how == "one by one" {
			when = tr.xStart.Add(tr.span(-5*time.Minute, 12*time.Minute))
		} else {
			when = when.Add(tr.span(0, 4*time.Second))
		}
		tr.plan = append(tr.plan, planned{when, func(tr *trial) error {
			tr.died[v] = tr.clock.Now()
			switch h := tr.world.Host(v); kind {
			case "dies":
				tr.die(h)
			case "is cut off":
				tr.cutOff(h)
			case "reboots":
				h.Reboot()
			case "loses CNI for a minute":
				h.BreakCNI()
				tr.plan = append(tr.plan, planned{tr.clock.Now().Add(time.Minute), func(*trial) error { h.WriteCNI(); return nil }})
				tr.inOrder()
			default:
				h.BreakCNI()
			}
			return nil
		}})
	}
}

func (tr *trial) node(name string) *corev1.Node {
	for _, n := range tr.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// hashOf is the revision hash of a DaemonSet's version.
func (tr *trial) hashOf(ds *appsv1.DaemonSet, version int) string {
	for _, p := range tr.podsOf(ds) {
		if p.Spec.Containers[0].Image == image(ds.Name, version) {
			return p.Labels[appsv1.ControllerRevisionHashLabelKey]
		}
	}
	return ""
}

func (tr *trial) podsOf(ds *appsv1.DaemonSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range api.ListOf[*corev1.Pod](tr.store, ds.Namespace, nil) {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Name == ds.Name {
			out = append(out, p)
		}
	}
	return out
}

// putBack freezes X and puts its template back.
func (tr *trial) putBack() error {
	return tr.edit("rollcall", tr.x, func(o *appsv1.DaemonSet) {
		setVersion(o, 2)
		o.Spec.Template.Spec.Containers[0].Env[0].Value = "info"
	})
}

func (tr *trial) freeze() error {
	return tr.edit("rollcall", tr.x, func(o *appsv1.DaemonSet) {
		o.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	})
}

// replaceBad deletes the Pods of the bad version.
func (tr *trial) replaceBad() error {
	for _, p := range tr.podsOf(tr.x) {
		if p.Spec.Containers[0].Image == image(tr.x.Name, 3) && p.DeletionTimestamp == nil {
			if err := tr.store.Delete(corev1.SchemeGroupVersion.WithResource("pods"), p.Namespace, p.Name, nil); err != nil {
				return fmt.Errorf("deleting %s: %w", p.Name, err)
			}
		}
	}
	return nil
}
