package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podRun is a Pod on its node: sandbox, init containers one after another, then
// the containers, until it is told to end. Its status is the kubelet's own; others
// may write over it at the API server, and it comes back.
type podRun struct {
	k    *kubelet
	name string      // namespace/name
	pod  *corev1.Pod // as admitted
	rng  *rand.Rand

	status     corev1.PodStatus
	stored     *corev1.Pod // as it stood after the newest post
	init, main []*containerRun
	sandbox    bool
	posting    bool
	ending     bool // told to end
	ended      bool // nothing runs any more
	gone       bool
}

func (k *kubelet) admit(p *corev1.Pod) {
	run := &podRun{k: k, name: keyOf(p), pod: p, rng: k.w.random("pod/" + string(p.UID))}
	k.runs[run.name] = run
	run.begin()
}

// begin starts a Pod from nothing: at first, and again after a reboot.
func (r *podRun) begin() {
	r.sandbox = false
	if r.init == nil && r.main == nil {
		started := metav1.NewTime(r.k.now())
		r.status = corev1.PodStatus{Phase: corev1.PodPending, StartTime: &started, HostIP: r.hostIP()}
		r.status.HostIPs = []corev1.HostIP{{IP: r.status.HostIP}}
		for i := range r.pod.Spec.InitContainers {
			r.init = append(r.init, newContainerRun(r, &r.pod.Spec.InitContainers[i], true))
		}
		for i := range r.pod.Spec.Containers {
			r.main = append(r.main, newContainerRun(r, &r.pod.Spec.Containers[i], false))
		}
	}
	r.changed()
	r.after(between(r.rng, 100*time.Millisecond, 400*time.Millisecond), r.makeSandbox)
}

func (r *podRun) hostIP() string {
	if n := r.k.w.nodes.get(r.k.name); n != nil {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address
			}
		}
	}
	return ""
}

// after queues something that this Pod's run does, unless it is being ended.
func (r *podRun) after(d time.Duration, run func()) {
	r.k.after(d, func() {
		if !r.gone && !r.ending {
			run()
		}
	})
}

// makeSandbox waits for the node's network, which host-network Pods do not need.
func (r *podRun) makeSandbox() {
	if !r.pod.Spec.HostNetwork && !r.k.netReady {
		r.k.event(refPod(r.pod), corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: %s", networkNotReady)
		r.after(2*time.Second, r.makeSandbox)
		return
	}
	if !r.pod.Spec.HostNetwork && !r.k.cni {
		r.k.event(refPod(r.pod), corev1.EventTypeWarning, "FailedCreatePodSandBox",
			"Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: cni plugin not initialized", hexID(string(r.pod.UID), 0))
		r.after(5*time.Second, r.makeSandbox)
		return
	}
	r.after(between(r.rng, 200*time.Millisecond, 600*time.Millisecond), func() {
		r.sandbox = true
		r.status.PodIP = r.status.HostIP
		if !r.pod.Spec.HostNetwork {
			r.status.PodIP = fmt.Sprintf("10.244.%d.%d", r.rng.IntN(250)+1, r.rng.IntN(250)+2)
		}
		r.status.PodIPs = []corev1.PodIP{{IP: r.status.PodIP}}
		r.changed()
		r.next()
	})
}

// next starts what is to run now.
func (r *podRun) next() {
	for _, c := range r.init {
		if !c.succeeded() {
			if c.phase == created {
				c.pull()
			}
			return
		}
	}
	for _, c := range r.main {
		if c.phase == created {
			c.pull()
		}
	}
}

// changed has the status posted a moment later.
func (r *podRun) changed() {
	r.compute()
	if r.posting {
		return
	}
	r.posting = true
	r.k.after(between(r.rng, 20*time.Millisecond, 80*time.Millisecond), func() {
		r.posting = false
		r.post()
	})
}

// post writes the kubelet's status of the Pod, and leaves alone the conditions that
// are not the kubelet's.
func (r *podRun) post() {
	if r.gone || !r.k.reaches() {
		return
	}
	r.stored, _ = r.k.w.pods.updateStatus("kubelet", r.name, func(p *corev1.Pod) bool {
		if p.UID != r.pod.UID {
			return false
		}
		want := *r.status.DeepCopy()
		want.QOSClass = p.Status.QOSClass
		for _, c := range p.Status.Conditions {
			if podCondition(&want, c.Type) == nil {
				want.Conditions = append(want.Conditions, c)
			}
		}
		if sameStatus(&want, &p.Status) {
			return false
		}
		p.Status = want
		return true
	})
}

// reassert puts back what others wrote over the kubelet's status, with the
// transition times that it had: an outage that the node controller marked leaves
// no trace on the Pod.
func (r *podRun) reassert() {
	if !r.posting && r.k.w.pods.get(r.name) != r.stored {
		r.post()
	}
}

// compute derives the Pod's status from its containers.
func (r *podRun) compute() {
	s, now := &r.status, r.k.now()
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	initialized, waiting, unready := true, false, []string(nil)
	var unfinished []string
	for _, c := range r.init {
		s.InitContainerStatuses = append(s.InitContainerStatuses, c.status())
		if !c.succeeded() {
			initialized = false
			unfinished = append(unfinished, c.spec.Name)
		}
	}
	for _, c := range r.main {
		s.ContainerStatuses = append(s.ContainerStatuses, c.status())
		waiting = waiting || c.starts == 0
		if !c.ready {
			unready = append(unready, c.spec.Name)
		}
	}
	s.Phase = corev1.PodRunning
	if !initialized || waiting {
		s.Phase = corev1.PodPending
	}
	set := func(t corev1.PodConditionType, ok bool, reason, message string) {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
		if !ok {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		}
		setPodCondition(s, c, now)
	}
	notReady := fmt.Sprintf("containers with unready status: %s", unready)
	set(corev1.PodReadyToStartContainers, r.sandbox, "", "")
	set(corev1.PodInitialized, initialized, "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %s", unfinished))
	set(corev1.PodReady, len(unready) == 0 && initialized, "ContainersNotReady", notReady)
	set(corev1.ContainersReady, len(unready) == 0 && initialized, "ContainersNotReady", notReady)
}

// terminate ends the containers within the grace period, then the sandbox, then
// the Pod.
func (r *podRun) terminate(grace time.Duration) {
	if r.ending {
		return
	}
	r.ending = true
	longest := time.Duration(0)
	for _, c := range append(append([]*containerRun(nil), r.main...), r.init...) {
		if c.phase != running {
			c.life++ // what it was about to do will not happen
			continue
		}
		r.k.event(refContainer(r.pod, c.init, c.spec.Name), corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
		longest = max(longest, c.tellToEnd(grace))
	}
	r.k.after(longest, func() {
		if r.gone {
			return
		}
		r.compute()
		r.post()
		r.ended = true
		r.k.after(between(r.rng, 200*time.Millisecond, 600*time.Millisecond), r.finish)
	})
}

// finish takes the sandbox down and reports the Pod as gone. Without a CNI
// configuration the sandbox of a Pod with a network of its own cannot go.
func (r *podRun) finish() {
	if r.gone || !r.k.reaches() {
		return
	}
	p := r.k.w.pods.get(r.name)
	if p == nil || p.UID != r.pod.UID {
		r.vanish()
		return
	}
	if !r.k.cni && r.sandbox && !r.pod.Spec.HostNetwork {
		r.k.event(refPod(r.pod), corev1.EventTypeWarning, "FailedKillPod",
			"error killing pod: failed to \"KillPodSandbox\" for %q with KillPodSandboxError: \"rpc error: code = Unknown desc = failed to destroy network for sandbox \\\"%s\\\": cni plugin not initialized\"",
			r.pod.UID, hexID(string(r.pod.UID), 0))
		r.k.after(10*time.Second, r.finish)
		return
	}
	r.gone = true
	delete(r.k.runs, r.name)
	r.k.forget(p)
}

// vanish ends a Pod whose object is gone: there is nobody left to report to.
func (r *podRun) vanish() {
	for _, c := range r.main {
		if c.phase == running {
			c.tellToEnd(0)
		}
	}
	r.gone = true
	delete(r.k.runs, r.name)
}
