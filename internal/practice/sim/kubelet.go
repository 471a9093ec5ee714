package sim

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// networkNotReady is what a kubelet says of itself without a valid CNI
// configuration (kubelet, go-cni).
const networkNotReady = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"

// lateEvents is for how long a kubelet that is cut off goes on trying to send an
// event: 12 times, 10 s apart (client-go tools/record).
const lateEvents = 2 * time.Minute

// kubelet plays one node's kubelet, its container runtime and its programs.
type kubelet struct {
	w        *World
	name     string
	rng      *rand.Rand
	recorder *recorder

	alive    bool          // the machine is up
	online   bool          // it reaches the API server
	skew     time.Duration // how far its clock is ahead
	boot     int           // counts boots: what a former boot queued is void
	bootID   string
	cni      bool // the CNI configuration is valid
	netReady bool // as the kubelet last heard from the runtime

	runs       map[string]*podRun
	noticed    map[string]bool
	images     map[string]bool
	imagesNew  bool // since the last status
	lastStatus time.Time
	late       []*corev1.Event
}

func newKubelet(w *World, n *corev1.Node) *kubelet {
	k := &kubelet{
		w: w, name: n.Name, rng: w.random("kubelet/" + n.Name), recorder: w.newRecorder("kubelet", n.Name),
		alive: true, online: true, cni: true, netReady: true, bootID: n.Status.NodeInfo.BootID,
		runs: map[string]*podRun{}, noticed: map[string]bool{}, images: map[string]bool{},
	}
	for _, i := range n.Status.Images {
		for _, name := range i.Names {
			k.images[name] = true
		}
	}
	return k
}

// now is the time by the node's own clock.
func (k *kubelet) now() time.Time { return k.w.now().Add(k.skew) }

func (k *kubelet) reaches() bool { return k.alive && k.online }

// after queues something that this boot of the node does.
func (k *kubelet) after(d time.Duration, run func()) {
	boot := k.boot
	k.w.after(d, func() {
		if k.alive && k.boot == boot {
			run()
		}
	})
}

// beat begins the kubelet's periodic work.
func (k *kubelet) beat() {
	t, rng := k.w.timers, k.rng
	k.lastStatus = time.Time{} // a kubelet posts its status when it starts
	period := func(d time.Duration) time.Duration { return between(rng, d, d+d/25) }
	phase := func(d time.Duration) time.Duration { return between(rng, 0, d) }
	if t.Exact {
		period = func(d time.Duration) time.Duration { return d }
		phase = func(time.Duration) time.Duration { return 0 }
	}
	k.w.every(phase(t.LeaseRenew), func() time.Duration { return period(t.LeaseRenew) }, k.renewLease)
	k.w.every(phase(t.StatusUpdate), constantly(t.StatusUpdate), k.tick)
	k.w.every(phase(t.RuntimePoll), constantly(t.RuntimePoll), k.poll)
	k.renewLease()
}

// poll asks the runtime about the network. A network that is back is reported at
// once; one that is gone waits for the next tick.
func (k *kubelet) poll() {
	was := k.netReady
	k.netReady = k.cni
	if k.alive && k.netReady && !was {
		k.report()
	}
}

// tick computes the node's status and puts Pod statuses right that somebody else
// wrote.
func (k *kubelet) tick() {
	if !k.reaches() {
		return
	}
	k.report()
	for _, name := range slices.Sorted(maps.Keys(k.runs)) {
		k.runs[name].reassert()
	}
}

// report posts the node's status if it changed, or if it has not been posted for
// five minutes.
func (k *kubelet) report() {
	n := k.w.nodes.get(k.name)
	if n == nil || !k.reaches() {
		return
	}
	now := k.w.now()
	want := k.conditions(n)
	changed := k.lastStatus.IsZero() || k.imagesNew || n.Status.NodeInfo.BootID != k.bootID
	for _, c := range want {
		old := nodeCondition(&n.Status, c.Type)
		changed = changed || old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
	}
	if !changed && now.Sub(k.lastStatus) < k.w.timers.StatusReport {
		return
	}
	was := nodeReadiness(n)
	rebooted := n.Status.NodeInfo.BootID != k.bootID
	_, err := k.w.nodes.updateStatus("kubelet", k.name, func(n *corev1.Node) bool {
		for _, c := range k.conditions(n) {
			if old := nodeCondition(&n.Status, c.Type); old != nil {
				*old = c
			} else {
				n.Status.Conditions = append(n.Status.Conditions, c)
			}
		}
		n.Status.NodeInfo.BootID = k.bootID
		n.Status.Images = k.imageList()
		return true
	})
	if err != nil {
		return
	}
	// The next post without a change is put off by up to half the period either way
	// (kubelet_node_status.go, calculateDelay).
	k.lastStatus, k.imagesNew = now, false
	if half := k.w.timers.StatusReport / 2; !k.w.timers.Exact && changed {
		k.lastStatus = now.Add(between(k.rng, -half, half))
	}
	if rebooted {
		k.event(refNode(n), corev1.EventTypeWarning, "Rebooted", "Node %s has been rebooted, boot id: %s", k.name, k.bootID)
	}
	if is := nodeReadiness(k.w.nodes.get(k.name)); is != was {
		reason := "NodeReady"
		if is != corev1.ConditionTrue {
			reason = "NodeNotReady"
		}
		k.event(refNode(n), corev1.EventTypeNormal, reason, "Node %s status is now: %s", k.name, reason)
	}
}

// conditions are the node's conditions as the kubelet sees them; a transition is
// timed by the kubelet's clock against what the API server has.
func (k *kubelet) conditions(n *corev1.Node) []corev1.NodeCondition {
	now := metav1.NewTime(k.now())
	list := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
	if !k.netReady {
		list[3].Status, list[3].Reason, list[3].Message = corev1.ConditionFalse, "KubeletNotReady", networkNotReady
	}
	for i := range list {
		list[i].LastHeartbeatTime, list[i].LastTransitionTime = now, now
		if old := nodeCondition(&n.Status, list[i].Type); old != nil && old.Status == list[i].Status {
			list[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return list
}

// imageList is at most 50 images, as a kubelet reports them.
func (k *kubelet) imageList() []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, name := range slices.Sorted(maps.Keys(k.images)) {
		out = append(out, corev1.ContainerImage{Names: []string{name}, SizeBytes: imageSize(name)})
	}
	slices.SortStableFunc(out, func(a, b corev1.ContainerImage) int { return int(b.SizeBytes - a.SizeBytes) })
	return out[:min(len(out), 50)]
}

func imageSize(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return 20_000_000 + int64(sum[0])*700_000 + int64(sum[1])*2_711
}

func imageID(name string) string {
	return fmt.Sprintf("%s@sha256:%x", repository(name), sha256.Sum256([]byte(name)))
}

func repository(image string) string {
	for i := len(image) - 1; i >= 0 && image[i] != '/'; i-- {
		if image[i] == ':' {
			return image[:i]
		}
	}
	return image
}

// event sends an event, or keeps it while the API server cannot be reached.
func (k *kubelet) event(about corev1.ObjectReference, kind, reason, format string, args ...any) {
	if !k.alive {
		return
	}
	e := k.recorder.make(about, kind, reason, format, args...)
	if k.online {
		k.recorder.send(e)
		return
	}
	k.late = append(k.late, e)
}

// notice has the kubelet look at a Pod of its node, as its watch would.
func (k *kubelet) notice(name string, uid types.UID) {
	if k.noticed[name] {
		return
	}
	k.noticed[name] = true
	k.w.after(between(k.rng, 20*time.Millisecond, 60*time.Millisecond), func() {
		delete(k.noticed, name)
		if k.reaches() {
			k.observe(name)
		}
	})
}

func (k *kubelet) observe(name string) {
	p, run := k.w.pods.get(name), k.runs[name]
	if run != nil && (p == nil || p.UID != run.pod.UID) {
		run.vanish()
		run = nil
	}
	switch {
	case p == nil || p.Spec.NodeName != k.name || podTerminal(p):
	case run == nil && p.DeletionTimestamp != nil:
		k.forget(p)
	case run == nil:
		k.admit(p)
	case p.DeletionTimestamp != nil:
		run.terminate(time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
}

// forget tells the API server that nothing is left of a Pod.
func (k *kubelet) forget(p *corev1.Pod) {
	now := int64(0)
	_ = k.w.pods.remove(p, &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
}

// reconnect catches up with what happened while the API server was out of reach.
func (k *kubelet) reconnect() {
	k.renewLease()
	k.report()
	fresh := k.w.now().Add(-lateEvents)
	for _, e := range k.late {
		if e.LastTimestamp.Time.After(fresh) {
			k.recorder.send(e)
		}
	}
	k.late = nil
	names := setOf(slices.Collect(maps.Keys(k.runs)))
	for _, p := range k.w.pods.by(k.w.podsByNode, k.name) {
		names[keyOf(p)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		k.observe(name)
		if run := k.runs[name]; run != nil {
			run.reassert()
			if run.ended {
				run.finish()
			}
		}
	}
}

// sameStatus compares what a kubelet owns of a Pod's status.
func sameStatus(a, b *corev1.PodStatus) bool {
	return a.Phase == b.Phase && a.PodIP == b.PodIP &&
		equality.Semantic.DeepEqual(a.Conditions, b.Conditions) &&
		equality.Semantic.DeepEqual(a.InitContainerStatuses, b.InitContainerStatuses) &&
		equality.Semantic.DeepEqual(a.ContainerStatuses, b.ContainerStatuses)
}

func (k *kubelet) runsInOrder() []*podRun {
	var out []*podRun
	for _, name := range slices.Sorted(maps.Keys(k.runs)) {
		out = append(out, k.runs[name])
	}
	return out
}
