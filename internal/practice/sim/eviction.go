package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// taintEviction deletes Pods that do not tolerate a NoExecute taint of their node,
// at once or after the seconds that they tolerate it.
// Source: pkg/controller/tainteviction/taint_eviction.go.
type taintEviction struct {
	w         *World
	recorder  *recorder
	nodes     *workqueue
	scheduled map[string]*eviction // by Pod
}

type eviction struct {
	since time.Time
	uid   types.UID
}

func newTaintEviction(w *World) *taintEviction {
	c := &taintEviction{w: w, recorder: w.newRecorder("taint-eviction-controller", ""), scheduled: map[string]*eviction{}}
	c.nodes = w.newQueue(20*time.Millisecond, func(name string) {
		for _, p := range w.pods.by(w.podsByNode, name) {
			c.judge(p)
		}
	})
	w.nodes.watch(func(old, new *corev1.Node) {
		if new == nil {
			return
		}
		var was []corev1.Taint
		if old != nil {
			was = noExecute(old.Spec.Taints)
		}
		if !equality.Semantic.DeepEqual(was, noExecute(new.Spec.Taints)) {
			c.nodes.add(new.Name)
		}
	})
	w.pods.watch(func(old, new *corev1.Pod) {
		switch {
		case new == nil:
			delete(c.scheduled, keyOf(old))
		case new.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == ""):
			c.nodes.add(new.Spec.NodeName)
		}
	})
	return c
}

func noExecute(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func (c *taintEviction) judge(p *corev1.Pod) {
	n := c.w.nodes.get(p.Spec.NodeName)
	if n == nil {
		return
	}
	wait, forever, tolerated := tolerance(noExecute(n.Spec.Taints), p.Spec.Tolerations)
	switch {
	case !tolerated:
		c.cancel(p)
		c.schedule(p, c.w.now(), 0)
	case forever:
		c.cancel(p)
	default:
		if c.scheduled[keyOf(p)] == nil {
			c.schedule(p, c.w.now(), wait)
		}
	}
}

// tolerance is how long a Pod may stay under the taints: the shortest of the
// tolerations that apply. The first toleration that matches a taint counts.
func tolerance(taints []corev1.Taint, tolerations []corev1.Toleration) (d time.Duration, forever, tolerated bool) {
	forever = true
	for i := range taints {
		found := false
		for j := range tolerations {
			if !schedulinghelper.TolerationsTolerateTaint(klog.Background(), tolerations[j:j+1], &taints[i], false) {
				continue
			}
			found = true
			if s := tolerations[j].TolerationSeconds; s != nil {
				limit := time.Duration(max(*s, 0)) * time.Second
				if forever || limit < d {
					d, forever = limit, false
				}
			}
			break
		}
		if !found {
			return 0, false, false
		}
	}
	return d, forever, true
}

func (c *taintEviction) cancel(p *corev1.Pod) {
	if c.scheduled[keyOf(p)] == nil {
		return
	}
	delete(c.scheduled, keyOf(p))
	c.tell(p, "Cancelling deletion of Pod")
}

func (c *taintEviction) schedule(p *corev1.Pod, since time.Time, wait time.Duration) {
	k, e := keyOf(p), &eviction{since: since, uid: p.UID}
	c.scheduled[k] = e
	c.w.after(wait, func() {
		if c.scheduled[k] != e {
			return
		}
		delete(c.scheduled, k)
		p := c.w.pods.get(k)
		if p == nil || p.UID != e.uid {
			return
		}
		c.tell(p, "Marking for deletion Pod")
		_, _ = c.w.pods.updateStatus(controllerManager, k, func(p *corev1.Pod) bool {
			return setPodCondition(&p.Status, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
				Message: "Taint manager: deleting due to NoExecute taint",
			}, c.w.now())
		})
		_ = c.w.pods.remove(p, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.uid}})
	})
}

func (c *taintEviction) tell(p *corev1.Pod, what string) {
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
	c.recorder.event(ref, corev1.EventTypeNormal, "TaintManagerEviction", "%s %s/%s", what, p.Namespace, p.Name)
}
