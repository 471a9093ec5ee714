package probes_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// bigCluster is a cascade without a brake in the middle of n nodes, with ten other
// DaemonSets of the size that clusters have.
func bigCluster(n int) (cluster.Objects, cluster.Meta) {
	now := time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC)
	start := now.Add(-time.Duration(n/20) * time.Second)
	yes, seconds := true, int32(40)
	var o cluster.Objects
	for d := range 11 {
		name := fmt.Sprintf("agent-%02d", d)
		template := func(v int) corev1.PodTemplateSpec {
			return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec: corev1.PodSpec{HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{Name: "agent", Image: fmt.Sprintf("registry.example/%s:v%d", name, v)}},
					Volumes:    []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}}}
		}
		mu := intstr.FromString("10%")
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), Generation: 2},
			Spec: appsv1.DaemonSetSpec{Template: template(2), UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &mu}}}}
		ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: int32(n), CurrentNumberScheduled: int32(n), UpdatedNumberScheduled: int32(n), NumberReady: int32(n), NumberAvailable: int32(n)}
		o.DaemonSets = append(o.DaemonSets, ds)
		for v := 1; v <= 2; v++ {
			raw, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": template(v)}})
			at := now.Add(-100 * time.Hour)
			if v == 2 && d == 0 {
				at = start
			}
			r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("%s-r%d", name, v), UID: types.UID(fmt.Sprintf("%s-r%d", name, v)),
				CreationTimestamp: metav1.NewTime(at.Add(time.Duration(v) * time.Millisecond)), Labels: map[string]string{cluster.RevisionHash: fmt.Sprintf("r%d", v)},
				OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, UID: ds.UID, Controller: &yes}}}, Revision: int64(v)}
			r.Data.Raw = raw
			o.ControllerRevisions = append(o.ControllerRevisions, r)
		}
	}
	o.DaemonSets[0].Status.UpdatedNumberScheduled = int32(n / 2)
	for i := range n {
		name := fmt.Sprintf("node-%05d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-1000 * time.Hour)), Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprint("z", i%3)}},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: name, KernelVersion: "6.12.9", KubeletVersion: "v1.37.2"},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-999 * time.Hour))}}}}
		beat := metav1.NewMicroTime(now.Add(-3 * time.Second))
		o.Leases = append(o.Leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.NodeLeaseNamespace, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &beat, LeaseDurationSeconds: &seconds}})
		hash, created := "r1", now.Add(-90*time.Hour)
		if i < n/2 {
			hash, created = "r2", start.Add(time.Duration(i)*100*time.Millisecond)
			if fell := created.Add(20 * time.Second); fell.Before(now) {
				node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: metav1.NewTime(fell),
					Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"}
			}
		}
		o.Nodes = append(o.Nodes, node)
		o.Pods = append(o.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent-00-" + name, UID: types.UID("p" + name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{cluster.RevisionHash: hash}, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent-00", UID: "agent-00", Controller: &yes}}},
			Spec: corev1.PodSpec{NodeName: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(8 * time.Second))}}}})
	}
	return o, cluster.Meta{AsOf: now, Source: cluster.Source{Type: "cluster", Version: "v1.37.2"}, PodScope: cluster.PodScope{Owners: map[types.UID]bool{"agent-00": true}}, AllLeases: true}
}

// BenchmarkDiagnose grows with the number of nodes, no faster.
func BenchmarkDiagnose(b *testing.B) {
	for _, n := range []int{1250, 2500, 5000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o, m := bigCluster(n)
			s := cluster.New(o, m)
			b.ReportAllocs()
			for b.Loop() {
				if r := probes.Diagnose(s, probes.Options{}).Report; len(r.Workloads) == 0 {
					b.Fatal("nothing was found")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/node")
		})
	}
}
