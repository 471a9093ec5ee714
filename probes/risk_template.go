package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// noReadinessProbe: without a probe a Pod is Ready as soon as its containers run, a
// crash-looping one each time that it starts.
func (p *planned) noReadinessProbe() *risk {
	var without []string
	for _, ct := range running(&p.template.Spec) {
		if ct.ReadinessProbe != nil {
			return nil
		}
		without = append(without, ct.Name)
	}
	if len(without) == 0 || len(p.template.Spec.ReadinessGates) > 0 {
		return nil
	}
	return warning(report.NoReadinessProbe, "no readiness probe: a Pod is Ready as soon as its containers run, so that nothing brakes a rollout that breaks what they do",
		p.field("spec.template.spec.containers[*].readinessProbe", "absent in %s", names(without, 6)))
}

// noPriorityClass: a Pod of a DaemonSet at priority 0 finds nobody to preempt on a
// full node, and is preempted itself.
func (p *planned) noPriorityClass() *risk {
	s := &p.template.Spec
	if !p.isDaemonSet() || s.PriorityClassName != "" || s.Priority != nil && *s.Priority > 0 {
		return nil
	}
	for _, class := range p.c.s.PriorityClasses {
		if class.GlobalDefault {
			return nil // the admission plugin gives it that one
		}
	}
	ev := p.field("spec.template.spec.priorityClassName", "absent")
	if !p.c.s.Read(cluster.PriorityClasses) {
		ev.Value += "; whether a PriorityClass is the global default was not read"
	}
	return warning(report.NoPriorityClass, "no priority class: on a full node its Pod waits or is preempted like any other", ev)
}

// noResourceRequests: what a container uses beyond its request makes it the first to
// be evicted, and a Pod without any is placed on nodes that have no room for it.
func (p *planned) noResourceRequests() *risk {
	var ev []report.Evidence
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if r := p.template.Spec.Resources; r != nil {
			if q, ok := r.Requests[name]; ok && !q.IsZero() {
				continue // of the Pod as a whole
			}
		}
		if without := withoutRequest(&p.template.Spec, name); len(without) > 0 {
			ev = append(ev, p.field(fmt.Sprintf("spec.template.spec.containers[*].resources.requests.%s", name), "absent in %s", names(without, 6)))
		}
	}
	if len(ev) == 0 {
		return nil
	}
	return warning(report.NoResourceRequests, report.Textf("containers without requests (QoS class %s): room is not reserved for them, and under pressure they are evicted first", qosClass(&p.template.Spec)), ev...)
}

// withoutRequest are the containers that request nothing of a resource. A limit
// stands for the request where there is none.
// Source: pkg/apis/core/v1/defaults.go, SetDefaults_Pod.
func withoutRequest(s *corev1.PodSpec, name corev1.ResourceName) []string {
	var out []string
	for _, ct := range running(s) {
		if q := requested(&ct.Resources, name); q.IsZero() {
			out = append(out, ct.Name)
		}
	}
	return out
}

// requested is what is requested of a resource, by the request or by the limit that
// stands for it.
func requested(r *corev1.ResourceRequirements, name corev1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	return r.Limits[name]
}

// qosClass is the class that the Pods would get.
// Source: pkg/apis/core/v1/helper/qos/qos.go, ComputePodQOS.
func qosClass(s *corev1.PodSpec) corev1.PodQOSClass {
	compute := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	some, guaranteed := false, true
	look := func(request, limit resource.Quantity) {
		some = some || !request.IsZero() || !limit.IsZero()
		guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
	}
	if r := s.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		for _, name := range compute {
			look(requested(r, name), r.Limits[name])
		}
	} else {
		for _, ct := range allContainers(s) {
			for _, name := range compute {
				look(requested(&ct.Resources, name), ct.Resources.Limits[name])
			}
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// toleratesEverything: a toleration without a key also keeps the Pod on nodes that
// somebody wanted to empty.
func (p *planned) toleratesEverything() *risk {
	for i, t := range p.template.Spec.Tolerations {
		if t.Key != "" || t.Operator != corev1.TolerationOpExists {
			continue
		}
		what := "every taint"
		if t.Effect != "" {
			what = "every " + string(t.Effect) + " taint"
		}
		text := report.Textf("tolerates %s: it also runs on nodes that are tainted because they must not run anything", what)
		if len(p.critical) > 0 && p.isDaemonSet() {
			text = report.Textf("tolerates %s, as network and storage agents do: it also reaches control-plane nodes, and nodes that are tainted to be left alone", what)
		}
		return warning(report.ToleratesEverything, text, p.field(fmt.Sprintf("spec.template.spec.tolerations[%d]", i), "operator Exists without a key, effect %s", orAny(string(t.Effect))))
	}
	return nil
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

// privileged: what may do anything to the node can also break it in any way.
func (p *planned) privileged() *risk {
	var ev []report.Evidence
	var who []string
	for _, ct := range allContainers(&p.template.Spec) {
		if sc := ct.SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
			who = append(who, ct.Name)
			ev = append(ev, p.field(fmt.Sprintf("spec.template.spec.containers[%s].securityContext.privileged", ct.Name), "true"))
		}
	}
	if len(who) == 0 {
		return nil
	}
	return warning(report.PrivilegedContainer, report.Textf("privileged: %s may do anything to the node", names(who, 6)), ev...)
}

// shortGrace is the termination grace period, in seconds, below which a Pod is taken
// to have no time to hand over; Kubernetes' default is 30.
const shortGrace = 10

// shortGracePeriod: a process that is killed cannot finish what it writes, nor undo
// what it did to the node.
func (p *planned) shortGracePeriod() *risk {
	g := p.template.Spec.TerminationGracePeriodSeconds
	if g == nil {
		return nil
	}
	ev := p.field("spec.template.spec.terminationGracePeriodSeconds", "%d", *g)
	for _, ct := range running(&p.template.Spec) {
		if l := ct.Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil && l.PreStop.Sleep.Seconds >= *g {
			return warning(report.ShortGracePeriod, report.Textf("container %s sleeps %d s before it stops, and is killed after %d s", ct.Name, l.PreStop.Sleep.Seconds, *g), ev)
		}
	}
	switch {
	case *g <= 0:
		return warning(report.ShortGracePeriod, "grace period 0: containers are killed at once, without a chance to hand over", ev)
	case *g < shortGrace:
		return warning(report.ShortGracePeriod, report.Textf("grace period %d s: containers that take longer to stop are killed in the middle of it", *g), ev)
	}
	return nil
}

// noRevisionHistory: what is not kept cannot be gone back to.
func (p *planned) noRevisionHistory() *risk {
	if p.history == nil || *p.history > 1 {
		return nil
	}
	ev := p.field("spec.revisionHistoryLimit", "%d", *p.history)
	if *p.history == 1 {
		return warning(report.NoRevisionHistory, "one old revision is kept: after two bad changes in a row the good one is gone", ev)
	}
	return warning(report.NoRevisionHistory, "no old revision is kept: there is nothing to roll back to", ev)
}

// floating are tags that are moved by convention.
var floating = []string{"latest", "main", "master", "stable", "edge", "nightly", "dev", "develop", "devel", "head", "canary", "snapshot"}

// mutableImageTag: one tag, different programs on different nodes, and no way back.
func (p *planned) mutableImageTag() *risk {
	var ev []report.Evidence
	var who []string
	for _, ct := range allContainers(&p.template.Spec) {
		if ct.Image == "" || strings.Contains(ct.Image, "@") {
			continue // a digest wins over any tag
		}
		tag := imageTag(ct.Image)
		if tag != "" && !slices.Contains(floating, strings.ToLower(tag)) {
			continue
		}
		who = append(who, ct.Name)
		if tag == "" {
			tag = "no tag, which is latest"
		}
		ev = append(ev, p.field(fmt.Sprintf("spec.template.spec.containers[%s].image", ct.Name), "%s (%s)", ct.Image, tag))
	}
	if len(who) == 0 {
		return nil
	}
	return warning(report.MutableImageTag, report.Textf("the image of %s can change under its name: nodes run different programs in one revision, and a rollback brings nothing back", names(who, 6)), ev...)
}

// imageTag is the tag of an image reference without a digest, "" without one. A colon
// before the last slash is a registry's port.
func imageTag(image string) string {
	last := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}
