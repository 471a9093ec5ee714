package probes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

var whatIfNow = time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)

func plainNode(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(whatIfNow.Add(-time.Hour))}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("10")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(whatIfNow.Add(-time.Hour))}}}}
}

func plainDaemonSet(name string, selector map[string]string, cpu string, tolerations ...corev1.Toleration) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name)},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{NodeSelector: selector, Tolerations: tolerations,
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}}}
}

func ownedPod(kind, owner, name, node, cpu string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
}

func readAll(o cluster.Objects) *cluster.Snapshot {
	return cluster.New(o, cluster.Meta{AsOf: whatIfNow, PodScope: cluster.PodScope{All: true}})
}

func mustChange(t *testing.T, nodes []string, labels, taints []string) probes.NodeChange {
	t.Helper()
	l, err := probes.ParseLabels(labels)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := probes.ParseTaints(taints)
	if err != nil {
		t.Fatal(err)
	}
	return probes.NodeChange{Nodes: nodes, Labels: l, Taints: ts}
}

// A Pod has the tolerations of the template that it was made from, and taint eviction
// asks the Pod.
func TestWhatIfAPodOfAnOlderTemplateIsEvicted(t *testing.T) {
	t.Parallel()
	ds := plainDaemonSet("agent", nil, "10m", corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	older, present := ownedPod("DaemonSet", "agent", "agent-1", "n1", "10m"), ownedPod("DaemonSet", "agent", "agent-2", "n2", "10m")
	present.Spec.Tolerations = ds.Spec.Template.Spec.Tolerations
	limited, hour := ownedPod("DaemonSet", "agent", "agent-3", "n3", "10m"), int64(3600)
	limited.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: &hour, Effect: corev1.TaintEffectNoExecute}}
	s := readAll(cluster.Objects{Nodes: []*corev1.Node{plainNode("n1", nil), plainNode("n2", nil), plainNode("n3", nil)},
		DaemonSets: []*appsv1.DaemonSet{ds}, Pods: []*corev1.Pod{older, present, limited}})
	for _, tt := range []struct {
		taint string
		want  []string
	}{
		{"dedicated=db:NoExecute", []string{"n1 Evicted agent-1 0", "n3 Evicted agent-3 3600"}},
		{"dedicated=db:NoSchedule", nil},
	} {
		r, err := probes.WhatIf(s, mustChange(t, []string{"n1", "n2", "n3"}, nil, []string{tt.taint}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range r.DaemonSets {
			for _, p := range d.Pods {
				got = append(got, fmt.Sprint(p.Node, " ", p.Effect, " ", p.Pod, " ", p.After))
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.taint, d)
		}
	}
}

func TestWhatAChangeOfANodeWouldDo(t *testing.T) {
	t.Parallel()
	seconds := int64(60)
	gpu := map[string]string{"pool": "gpu"}
	for _, tt := range []struct {
		name           string
		labels, taints []string
		want           []string // namespace-less DaemonSet, effect, Pod
		evicts         string
	}{
		{"a label that is selected", []string{"pool=gpu"}, nil, []string{"gpu Added "}, ""},
		{"a label that is selected goes", []string{"tier-"}, nil, []string{"tier Removed tier-1"}, ""},
		{"NoSchedule", nil, []string{"dedicated=db:NoSchedule"}, []string{"all Misscheduled all-1", "brief Misscheduled brief-1", "tier Misscheduled tier-1"}, ""},
		{"NoExecute", nil, []string{"dedicated=db:NoExecute"}, []string{"all Removed all-1", "brief EvictedOften brief-1", "tier Removed tier-1"}, "Deployment kube-system/web 1 0;ReplicaSet kube-system/waits 1 60"},
		{"PreferNoSchedule", nil, []string{"dedicated=db:PreferNoSchedule"}, nil, ""},
		{"a taint that keeps one off goes", nil, []string{"old-"}, []string{"all "}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			yes := true
			n := plainNode("n1", map[string]string{"tier": "edge"})
			if slices.Contains(tt.taints, "old-") {
				n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoSchedule}}
			}
			waits := ownedPod("ReplicaSet", "waits", "waits-1", "n1", "0")
			waits.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}
			static := ownedPod("Node", "n1", "etcd-n1", "n1", "0")
			static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			s := readAll(cluster.Objects{Nodes: []*corev1.Node{n},
				DaemonSets: []*appsv1.DaemonSet{plainDaemonSet("all", nil, "10m"), plainDaemonSet("gpu", gpu, "10m"), plainDaemonSet("tier", map[string]string{"tier": "edge"}, "10m"),
					plainDaemonSet("brief", nil, "10m", corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})},
				ReplicaSets: []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "web-1", UID: "web-1", OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &yes}}}}},
				Pods: []*corev1.Pod{ownedPod("DaemonSet", "all", "all-1", "n1", "10m"), ownedPod("DaemonSet", "tier", "tier-1", "n1", "10m"), ownedPod("DaemonSet", "brief", "brief-1", "n1", "10m"),
					ownedPod("ReplicaSet", "web-1", "web-a", "n1", "0"), waits, static}})
			r, err := probes.WhatIf(s, mustChange(t, []string{"n1"}, tt.labels, tt.taints))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range r.DaemonSets {
				for _, p := range d.Pods {
					got = append(got, fmt.Sprint(d.Name, " ", p.Effect, " ", p.Pod))
				}
			}
			if tt.name == "a taint that keeps one off goes" {
				tt.want = []string{"all Regained all-1", "brief Regained brief-1", "tier Regained tier-1"}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("effects: %s", d)
			}
			var evicted []string
			for _, e := range r.Nodes[0].Evictions {
				evicted = append(evicted, fmt.Sprint(e.Owner, " ", e.Count, " ", e.After))
			}
			if strings.Join(evicted, ";") != tt.evicts {
				t.Errorf("evictions %q, want %q", evicted, tt.evicts)
			}
		})
	}
}

func TestWhatComesIsHeldAgainstTheLedger(t *testing.T) {
	t.Parallel()
	o := cluster.Objects{Nodes: []*corev1.Node{plainNode("n1", nil)}, DaemonSets: []*appsv1.DaemonSet{plainDaemonSet("gpu", map[string]string{"pool": "gpu"}, "300m")},
		Pods: []*corev1.Pod{ownedPod("ReplicaSet", "web", "web-1", "n1", "800m")}}
	change := mustChange(t, []string{"n1"}, []string{"pool=gpu"}, nil)
	r, err := probes.WhatIf(readAll(o), change)
	if err != nil || r.Nodes[0].Fits != report.DoesNotHold || !strings.Contains(string(r.Nodes[0].Why), "free is 200m") {
		t.Errorf("%v: fits %q, %q; want no room", err, r.Nodes[0].Fits, r.Nodes[0].Why)
	}
	o.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("100m")
	if r, err = probes.WhatIf(readAll(o), change); err != nil || r.Nodes[0].Fits != report.Holds {
		t.Errorf("%v: fits %q, %q; want room", err, r.Nodes[0].Fits, r.Nodes[0].Why)
	}
	unread := cluster.New(o, cluster.Meta{AsOf: whatIfNow})
	if r, err = probes.WhatIf(unread, change); err != nil || r.Nodes[0].Fits != report.NotKnown || r.Nodes[0].PodsRead {
		t.Errorf("%v: fits %q of a node whose Pods were not read; want that it is not known", err, r.Nodes[0].Fits)
	}
}

func TestEditsAreReadAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"x", "=y", "a b=c", "k=v w", "k=" + strings.Repeat("v", 64), "/=x"} {
		if _, err := probes.ParseLabels([]string{bad}); err == nil {
			t.Errorf("label %q is taken", bad)
		}
	}
	for _, bad := range []string{"x", "k=v", "k=v:Never", "k=v:NoSchedule:NoExecute", ":NoSchedule", "k=a=b:NoSchedule", "k:", "-", "k=v-"} {
		if _, err := probes.ParseTaints([]string{bad}); err == nil {
			t.Errorf("taint %q is taken", bad)
		}
	}
	if _, err := probes.ParseLabels([]string{"a=b", "a-"}); err == nil {
		t.Error("a label is set and removed at once")
	}
	if _, err := probes.ParseTaints([]string{"a:NoSchedule", "a-"}); err == nil {
		t.Error("a taint is set and removed at once")
	}
	got, err := probes.ParseTaints([]string{"a=b:NoExecute", "c:NoSchedule", "d:NoSchedule-", "e-", "f=g:NoExecute-"})
	want := []probes.TaintEdit{{Key: "a", Value: "b", Effect: "NoExecute"}, {Key: "c", Effect: "NoSchedule"}, {Key: "d", Effect: "NoSchedule", Remove: true}, {Key: "e", Remove: true}, {Key: "f", Effect: "NoExecute", Remove: true}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v: %s", err, d)
	}
}

// TestWhatIfIsWhatTheCountersSayAfterwards draws clusters and changes: what is
// foretold is what the controller's own counting makes of the changed nodes.
func TestWhatIfIsWhatTheCountersSayAfterwards(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
		var o cluster.Objects
		effects := []corev1.TaintEffect{"NoSchedule", "NoExecute", "PreferNoSchedule"}
		for i := range 4 {
			n := plainNode(fmt.Sprint("n", i), map[string]string{"pool": pick("a", "b"), "tier": pick("x", "y")})
			for _, k := range []string{"t1", "t2"} {
				if rnd.IntN(3) == 0 {
					n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: k, Effect: effects[rnd.IntN(3)]})
				}
			}
			o.Nodes = append(o.Nodes, n)
		}
		for i := range 4 {
			var sel map[string]string
			if rnd.IntN(2) == 0 {
				sel = map[string]string{pick("pool", "tier"): pick("a", "b", "x", "y")}
			}
			var tol []corev1.Toleration
			if rnd.IntN(2) == 0 {
				tol = []corev1.Toleration{{Key: pick("t1", "t2", ""), Operator: corev1.TolerationOpExists, Effect: effects[rnd.IntN(2)]}}
			}
			ds := plainDaemonSet(fmt.Sprint("d", i), sel, "10m", tol...)
			o.DaemonSets = append(o.DaemonSets, ds)
			for j := range 4 {
				if rnd.IntN(2) == 0 {
					pod := ownedPod("DaemonSet", ds.Name, fmt.Sprintf("%s-%d", ds.Name, j), fmt.Sprint("n", j), "10m")
					pod.Spec.Tolerations = tol
					o.Pods = append(o.Pods, pod)
				}
			}
		}
		var labels, taints []string
		if rnd.IntN(2) == 0 {
			labels = []string{pick("pool=a", "pool=b", "pool-", "tier=x", "tier-", "other=z")}
		} else {
			taints = []string{pick("t1:NoSchedule", "t1:NoExecute", "t2:NoExecute", "t1-", "t2-", "t3:NoSchedule", "t3:NoExecute", "t1:NoSchedule-", "t3:PreferNoSchedule")}
		}
		change := mustChange(t, []string{pick("n0", "n1"), pick("n2", "n3")}, labels, taints)
		r, err := probes.WhatIf(readAll(o), change)
		if err != nil {
			t.Fatal(err)
		}
		changed := o
		changed.Nodes = nil
		for _, n := range o.Nodes {
			if slices.Contains(change.Nodes, n.Name) {
				n, _, _ = change.Apply(n)
			}
			changed.Nodes = append(changed.Nodes, n)
		}
		before, after := readAll(o), readAll(changed)
		seen := 0
		for _, ds := range o.DaemonSets {
			all := func(*corev1.Pod) bool { return true }
			was, then := before.Counters(ds, all), after.Counters(ds, all)
			want := foretold(was, then)
			var got []string
			for _, d := range r.DaemonSets {
				if string(d.Name) != ds.Name {
					continue
				}
				seen++
				if d.DesiredBefore != was.Desired || d.DesiredAfter != then.Desired {
					t.Errorf("seed %d, %s, %s: DESIRED %d then %d; want %d then %d", seed, r.Change, ds.Name, d.DesiredBefore, d.DesiredAfter, was.Desired, then.Desired)
				}
				for _, p := range d.Pods {
					got = append(got, fmt.Sprint(p.Node, " ", p.Effect))
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("seed %d, %s, %s: %s", seed, r.Change, ds.Name, d)
			}
		}
		if seen+r.Unchanged != len(o.DaemonSets) {
			t.Errorf("seed %d: %d changed and %d unchanged of %d", seed, seen, r.Unchanged, len(o.DaemonSets))
		}
	}
}

// foretold is what two countings of one DaemonSet say of a change between them.
func foretold(was, then cluster.Counters) []string {
	at := func(c cluster.Counters, node string) cluster.Placement {
		for _, p := range c.Nodes {
			if p.Node == node {
				return p
			}
		}
		return cluster.Placement{}
	}
	var out []string
	for _, node := range []string{"n0", "n1", "n2", "n3"} {
		a, b := at(was, node), at(then, node)
		switch {
		case !a.ShouldRun && b.ShouldRun && len(b.Pods) == 0:
			out = append(out, node+" Added")
		case !a.ShouldRun && b.ShouldRun:
			out = append(out, node+" Regained")
		case a.ShouldRun && !b.ShouldRun && len(a.Pods) == 0:
			out = append(out, node+" NodeDropped")
		case a.MayStay && !b.MayStay && len(a.Pods) > 0:
			out = append(out, node+" Removed")
		case a.ShouldRun && !b.ShouldRun:
			out = append(out, node+" Misscheduled")
		}
	}
	return out
}
