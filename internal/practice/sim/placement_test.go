package sim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhichTaintsKeepADaemonPodAway(t *testing.T) {
	t.Parallel()
	seconds := int64(300)
	for _, c := range []struct {
		name        string
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		ownNetwork  bool // not the host's
		run, stay   bool
	}{
		{name: "none", run: true, stay: true},
		{name: "cordon", taints: taints("node.kubernetes.io/unschedulable", "NoSchedule"), run: true, stay: true},
		{name: "disk pressure", taints: taints("node.kubernetes.io/disk-pressure", "NoSchedule"), run: true, stay: true},
		{name: "memory pressure", taints: taints("node.kubernetes.io/memory-pressure", "NoSchedule"), run: true, stay: true},
		{name: "pid pressure", taints: taints("node.kubernetes.io/pid-pressure", "NoSchedule"), run: true, stay: true},
		{name: "not ready, not to be evicted", taints: taints("node.kubernetes.io/not-ready", "NoExecute"), run: true, stay: true},
		{name: "unreachable, not to be evicted", taints: taints("node.kubernetes.io/unreachable", "NoExecute"), run: true, stay: true},
		{name: "not ready", taints: taints("node.kubernetes.io/not-ready", "NoSchedule", "node.kubernetes.io/not-ready", "NoExecute"), stay: true},
		{name: "unreachable", taints: taints("node.kubernetes.io/unreachable", "NoSchedule", "node.kubernetes.io/unreachable", "NoExecute"), stay: true},
		{name: "network unavailable, host network", taints: taints("node.kubernetes.io/network-unavailable", "NoSchedule"), run: true, stay: true},
		{name: "network unavailable, own network", ownNetwork: true, taints: taints("node.kubernetes.io/network-unavailable", "NoSchedule"), stay: true},
		{name: "custom NoSchedule", taints: taints("dedicated", "NoSchedule"), stay: true},
		{name: "custom NoExecute", taints: taints("dedicated", "NoExecute")},
		{name: "out of service", taints: taints("node.kubernetes.io/out-of-service", "NoExecute")},
		{name: "custom PreferNoSchedule", taints: taints("dedicated", "PreferNoSchedule"), run: true, stay: true},
		{name: "all tolerated", tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, run: true, stay: true,
			taints: taints("dedicated", "NoExecute", "node.kubernetes.io/not-ready", "NoSchedule", "node.kubernetes.io/out-of-service", "NoExecute")},
		{name: "not ready tolerated with empty effect", tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}},
			taints: taints("node.kubernetes.io/not-ready", "NoSchedule"), run: true, stay: true},
		{name: "seconds of a toleration are no matter of placement", run: true, stay: true, taints: taints("node.kubernetes.io/not-ready", "NoExecute"),
			tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}},
	} {
		ds := testDaemonSet()
		ds.Spec.Template.Spec.HostNetwork = !c.ownNetwork
		ds.Spec.Template.Spec.Tolerations = c.tolerations
		n := testNode(1, 1)
		n.Spec.Taints = c.taints
		if run, stay := placementOf(ds).on(n); run != c.run || stay != c.stay {
			t.Errorf("%s: should run %v, may stay %v; want %v, %v", c.name, run, stay, c.run, c.stay)
		}
	}
}

// taints are pairs of key and effect.
func taints(pairs ...string) []corev1.Taint {
	var out []corev1.Taint
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, corev1.Taint{Key: pairs[i], Effect: corev1.TaintEffect(pairs[i+1])})
	}
	return out
}

// The automatic toleration takes the place of one that differs in its seconds only.
func TestTolerationSecondsOfADaemonPodAreOverwritten(t *testing.T) {
	t.Parallel()
	seconds := int64(300)
	spec := &corev1.PodSpec{Tolerations: []corev1.Toleration{{
		Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
	}}}
	list := daemonTolerations(spec)
	if len(list) != 6 || list[0].TolerationSeconds != nil {
		t.Errorf("tolerations are %+v, want six, the first without seconds", list)
	}
	if spec.Tolerations[0].TolerationSeconds == nil {
		t.Error("the template was changed")
	}
}

func TestSelectorAndPinnedNodeDecideOnTheirOwn(t *testing.T) {
	t.Parallel()
	ds, n := testDaemonSet(), testNode(1, 1)
	ds.Spec.Template.Spec.NodeSelector = map[string]string{"canary": "true"}
	if run, stay := placementOf(ds).on(n); run || stay {
		t.Errorf("a node that the selector leaves out: should run %v, may stay %v", run, stay)
	}
	n.Labels["canary"] = "true"
	if run, stay := placementOf(ds).on(n); !run || !stay {
		t.Errorf("a node that it selects: should run %v, may stay %v", run, stay)
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{Affinity: pinTo(nil, "node-001")}}
	if got := pinnedTo(p); got != "node-001" {
		t.Errorf("pinned to %q", got)
	}
}
