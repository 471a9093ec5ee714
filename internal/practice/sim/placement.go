package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	appsv1 "k8s.io/api/apps/v1"
)

// placement answers for one DaemonSet on which nodes its Pods belong.
// Source: pkg/controller/daemon/daemon_controller.go, nodeShouldRunDaemonPod.
type placement struct {
	nodeName    string
	tolerations []corev1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
}

func placementOf(ds *appsv1.DaemonSet) placement {
	spec := &ds.Spec.Template.Spec
	return placement{
		nodeName:    spec.NodeName,
		tolerations: daemonTolerations(spec),
		affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
	}
}

// on tells whether a Pod should be created on the node, and whether one that runs
// there may stay. Taints that forbid scheduling keep a Pod from being created;
// only NoExecute ones take a running Pod away.
func (p placement) on(n *corev1.Node) (shouldRun, mayStay bool) {
	if p.nodeName != "" && p.nodeName != n.Name {
		return false, false
	}
	if fits, _ := p.affinity.Match(n); !fits {
		return false, false
	}
	if _, bad := untolerated(n.Spec.Taints, p.tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); bad {
		_, evicting := untolerated(n.Spec.Taints, p.tolerations, corev1.TaintEffectNoExecute)
		return false, !evicting
	}
	return true, true
}

// untolerated finds the first taint of one of the effects that is not tolerated.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, effects ...corev1.TaintEffect) (corev1.Taint, bool) {
	return schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, func(t *corev1.Taint) bool {
		for _, e := range effects {
			if t.Effect == e {
				return true
			}
		}
		return false
	}, false)
}

// daemonTolerations are the template's tolerations and those that every daemon Pod
// gets. What is missing from them matters as much: not-ready:NoSchedule and
// unreachable:NoSchedule.
// Source: pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations.
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	out := append([]corev1.Toleration(nil), spec.Tolerations...)
	automatic := []struct {
		key    string
		effect corev1.TaintEffect
	}{
		{corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute},
		{corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute},
		{corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule},
		{corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule},
	}
	for _, a := range automatic {
		out = setToleration(out, corev1.Toleration{Key: a.key, Operator: corev1.TolerationOpExists, Effect: a.effect})
	}
	if spec.HostNetwork {
		out = setToleration(out, corev1.Toleration{
			Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	return out
}

// setToleration adds t, or overwrites the first toleration that differs from it in
// its seconds only: that is how an infinite one replaces "for 300 seconds".
func setToleration(list []corev1.Toleration, t corev1.Toleration) []corev1.Toleration {
	for i := range list {
		if list[i].MatchToleration(&t) {
			list[i] = t
			return list
		}
	}
	return append(list, t)
}

// pinTo replaces the required node affinity by one that names the node.
func pinTo(affinity *corev1.Affinity, node string) *corev1.Affinity {
	out := affinity.DeepCopy()
	if out == nil {
		out = &corev1.Affinity{}
	}
	if out.NodeAffinity == nil {
		out.NodeAffinity = &corev1.NodeAffinity{}
	}
	out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}},
	}
	return out
}

// pinnedTo is the node that a Pod is bound to or, while it is not bound, the one
// that its DaemonSet controller pinned it to; "" for any other Pod.
func pinnedTo(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}
