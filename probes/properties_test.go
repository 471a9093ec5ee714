package probes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// everything asks every question of a snapshot that can be asked.
func everything(s *cluster.Snapshot) *report.Report {
	d := probes.Diagnose(s, probes.Options{All: true})
	for i := range d.Report.Workloads {
		for _, p := range probes.Probes {
			p(d, d.Report.Workloads[i].Key())
		}
	}
	for _, p := range probes.Probes {
		p(d, report.WorkloadKey{Kind: "DaemonSet", Namespace: "nowhere", Name: "nothing"})
	}
	return d.Report
}

// TestNoInputMakesAProbePanic tears pieces out of the objects of every case: fields
// are emptied at random, as a newer server, a broken controller or a cut file may.
func TestNoInputMakesAProbePanic(t *testing.T) {
	t.Parallel()
	for _, dir := range caseDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c, err := files.LoadCase(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(2) {
				r := rand.New(rand.NewPCG(seed, 7))
				o := torn(r, &c.Snapshot.Objects)
				m := c.Snapshot.Meta
				if r.IntN(3) == 0 {
					m.AsOf = m.AsOf.Add(time.Duration(r.IntN(2000)-1000) * time.Minute)
				}
				if r.IntN(3) == 0 {
					m.PodScope = cluster.PodScope{}
				}
				everything(cluster.New(o, m))
			}
		})
	}
}

// torn copies objects and empties some of their fields.
func torn(r *rand.Rand, in *cluster.Objects) cluster.Objects {
	out := *in
	v := reflect.ValueOf(&out).Elem()
	for i := range v.NumField() {
		list := v.Field(i)
		fresh := reflect.MakeSlice(list.Type(), 0, list.Len())
		for j := range list.Len() {
			if r.IntN(12) == 0 {
				continue
			}
			x := list.Index(j).MethodByName("DeepCopy").Call(nil)[0]
			if r.IntN(3) == 0 {
				tear(r, x.Elem(), 0)
			}
			fresh = reflect.Append(fresh, x)
		}
		list.Set(fresh)
	}
	return out
}

func tear(r *rand.Rand, v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	if depth > 1 && r.IntN(25) == 0 {
		v.Set(reflect.Zero(v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			tear(r, v.Field(i), depth+1)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			tear(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		for i := range v.Len() {
			tear(r, v.Index(i), depth+1)
		}
	}
}

// TestUnrelatedObjectsNeverChangeAVerdict adds healthy things that have nothing to
// do with the incident.
func TestUnrelatedObjectsNeverChangeAVerdict(t *testing.T) {
	t.Parallel()
	dirs := caseDirs(t)
	cases := make([]*files.Case, len(dirs))
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(dirs)-1).Draw(t, "case")
		if cases[i] == nil {
			c, err := files.LoadCase(context.Background(), dirs[i])
			if err != nil {
				t.Fatal(err)
			}
			cases[i] = c
		}
		c := cases[i]
		before := verdicts(probes.Diagnose(c.Snapshot, probes.Options{All: true}).Report)
		o := c.Snapshot.Objects
		addUnrelated(t, &o, c.Snapshot.AsOf)
		after := verdicts(probes.Diagnose(cluster.New(o, c.Snapshot.Meta), probes.Options{All: true}).Report)
		for k := range after {
			if _, ok := before[k]; !ok {
				delete(after, k)
			}
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Fatalf("%s: an unrelated object changed a verdict:\n%s", c.ID, d)
		}
	})
}

func verdicts(r *report.Report) map[string][]string {
	out := map[string][]string{"": {string(r.Verdict.Attribution), string(r.Verdict.RootCause), string(r.Verdict.Workload)}}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		out[w.Key().String()] = []string{string(w.Verdict.Attribution), string(w.Verdict.RootCause), string(w.Verdict.Confidence), string(w.Rollout.State), string(w.Recommendation.Action)}
	}
	return out
}

func addUnrelated(t *rapid.T, o *cluster.Objects, now time.Time) {
	yes := true
	name := rapid.StringMatching(`x[a-z]{3,8}`).Draw(t, "name")
	old := metav1.NewTime(now.Add(-time.Duration(rapid.IntRange(30, 900).Draw(t, "age")) * time.Hour))
	switch rapid.SampledFrom([]string{"daemonset", "deployment", "event", "metadata"}).Draw(t, "kind") {
	case "daemonset":
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{NodeSelector: map[string]string{"only": name}, Containers: []corev1.Container{{Name: name, Image: "registry.example/" + name}}}}
		o.DaemonSets = append(slices.Clone(o.DaemonSets), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: old},
			Spec: appsv1.DaemonSetSpec{Template: template}, Status: appsv1.DaemonSetStatus{ObservedGeneration: 1}})
	case "deployment":
		one := int32(1)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: old, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}},
			Spec: appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}}
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-1", UID: types.UID(name + "-rs"), CreationTimestamp: old, Annotations: d.Annotations,
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: name, UID: d.UID, Controller: &yes}}}}
		o.Deployments, o.ReplicaSets = append(slices.Clone(o.Deployments), d), append(slices.Clone(o.ReplicaSets), rs)
		for _, n := range o.Nodes {
			if !cluster.NodeReady(n) {
				continue
			}
			o.Pods = append(slices.Clone(o.Pods), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-1-a", UID: types.UID(name + "-pod"), CreationTimestamp: old,
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &yes}}},
				Spec: corev1.PodSpec{NodeName: n.Name}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old}}}})
			break
		}
	case "event":
		o.Events = append(slices.Clone(o.Events), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: old}, FirstTimestamp: old, LastTimestamp: old, Count: 1,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: name, Name: name}, Reason: "BackOff", Message: "Back-off restarting failed container", Source: corev1.EventSource{Component: "kubelet"}})
	case "metadata":
		o.Others = append(slices.Clone(o.Others), &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: fmt.Sprintf("Thing%s", name)}, ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: old}})
	}
}
