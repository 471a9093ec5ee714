package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Host is what a program, or an incident, can do to a node.
type Host struct{ k *kubelet }

// Host returns a node's handle, nil where there is no such node.
func (w *World) Host(name string) *Host {
	w.catchUp()
	if k := w.kubelets[name]; k != nil {
		return &Host{k}
	}
	return nil
}

// BreakCNI takes the node's CNI configuration away. The kubelet notices within
// 15 seconds and says Ready=False; its heartbeat, and Pods that run, go on.
func (h *Host) BreakCNI() { h.k.cni = false }

// WriteCNI makes it good again.
func (h *Host) WriteCNI() { h.k.cni = true }

// CutOff breaks the host's own network: containers go on, but the kubelet reaches
// nobody.
func (h *Host) CutOff() { h.k.online = false }

// Reconnect gives the host its network back. What the kubelet missed it takes up
// now.
func (h *Host) Reconnect() {
	if h.k.online {
		return
	}
	h.k.online = true
	if h.k.alive {
		h.k.after(between(h.k.rng, time.Second, 5*time.Second), h.k.reconnect)
	}
}

// Die takes the machine down, as a pulled plug does.
func (h *Host) Die() { h.k.die() }

func (k *kubelet) die() {
	k.alive = false
	k.boot++
}

// Reboot starts the machine again, with a new boot id. All containers start anew.
func (h *Host) Reboot() {
	k := h.k
	k.die()
	k.w.after(between(k.rng, 40*time.Second, 70*time.Second), func() {
		k.alive = true
		k.netReady = k.cni
		k.bootID = fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", k.rng.Uint32(), k.rng.Uint32N(1<<16), k.rng.Uint32N(1<<12), k.rng.Uint32N(1<<12), k.rng.Uint64N(1<<48))
		if n := k.w.nodes.get(k.name); n != nil {
			k.event(refNode(n), corev1.EventTypeNormal, "Starting", "Starting kubelet.")
		}
		for _, run := range k.runsInOrder() {
			run.lost()
		}
		k.reconnect()
		for _, run := range k.runsInOrder() {
			run.restart()
		}
	})
}

// SetClock puts the node's clock ahead by d, or back.
func (h *Host) SetClock(d time.Duration) { h.k.skew = d }

// Event has the node's kubelet say something about a Pod.
func (h *Host) Event(p *corev1.Pod, kind, reason, message string) {
	h.k.event(refPod(p), kind, reason, "%s", message)
}

// FailProbe has the readiness probes of a Pod on this node fail from now on.
func (h *Host) FailProbe(namespace, pod, words string) {
	if run := h.k.runs[key(namespace, pod)]; run != nil {
		for _, c := range run.main {
			if c.ready {
				c.ready, c.program.ProbeError = false, words
				c.event(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: %s", words)
			}
		}
		run.changed()
	}
}

// lost notes what a machine that went down did to a Pod's containers.
func (r *podRun) lost() {
	r.posting = false
	now := metav1.NewTime(r.k.now())
	for _, c := range append(append([]*containerRun(nil), r.init...), r.main...) {
		c.life++
		if c.phase == running {
			c.phase, c.ready = terminated, false
			c.ended = &corev1.ContainerStateTerminated{
				ExitCode: 255, Reason: "Unknown", StartedAt: c.startedAt, FinishedAt: now, ContainerID: c.id(),
			}
		}
	}
	r.ended = r.ending
}

// restart begins a Pod again in a new sandbox, init containers included.
func (r *podRun) restart() {
	if r.ending || r.gone {
		return
	}
	for _, c := range append(append([]*containerRun(nil), r.init...), r.main...) {
		c.phase, c.reason, c.message = created, "ContainerCreating", ""
	}
	r.k.event(refPod(r.pod), corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	r.begin()
}
