package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

var epoch = time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)

var agent = report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"}

// world is a small cluster with one DaemonSet, "agent", that a test bends.
type world struct {
	now    time.Time
	ds     *appsv1.DaemonSet
	nodes  []*corev1.Node
	pods   []*corev1.Pod
	revs   []*appsv1.ControllerRevision
	leases []*coordinationv1.Lease
	scope  cluster.PodScope
	server string
}

// newWorld has n Ready nodes, each with an available Pod of revision 2, the
// present one; revision 1 differs by its image.
func newWorld(n int) *world {
	w := &world{now: epoch, scope: cluster.PodScope{All: true}, server: "v1.37.2"}
	one := intstr.FromInt32(1)
	zero := intstr.FromInt32(0)
	w.ds = &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "ds-uid", Generation: 2,
			Annotations: map[string]string{cluster.TemplateGenerationOnObject: "2"}},
		Spec: appsv1.DaemonSetSpec{
			Template: template("agent:v2"),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one, MaxSurge: &zero}},
		},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 2},
	}
	w.revision(1, template("agent:v1"))
	w.revision(2, template("agent:v2"))
	for i := range n {
		w.node(fmt.Sprintf("node-%02d", i+1))
		w.pod(fmt.Sprintf("node-%02d", i+1), 2)
	}
	return w
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image}}, HostNetwork: true},
	}
}

func (w *world) revision(n int64, t corev1.PodTemplateSpec) {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	m["$patch"] = "replace"
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": m}})
	if err != nil {
		panic(err)
	}
	yes := true
	w.revs = append(w.revs, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("agent-hash%d", n), UID: types.UID(fmt.Sprintf("rev-%d", n)),
			Labels:          map[string]string{cluster.RevisionHash: fmt.Sprintf("hash%d", n)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "ds-uid", Controller: &yes}}},
		Revision: n, Data: runtime.RawExtension{Raw: data},
	})
}

func (w *world) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *world) pod(node string, revision int64) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("agent-%s-r%d", node, revision),
			UID:             types.UID(fmt.Sprintf("pod-%s-%d", node, revision)),
			Labels:          map[string]string{cluster.RevisionHash: fmt.Sprintf("hash%d", revision), cluster.TemplateGenerationLabel: fmt.Sprint(revision)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "ds-uid", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now.Add(-time.Hour))}}},
	}
	w.pods = append(w.pods, p)
	return p
}

// on gives the node's Pod another revision.
func (w *world) on(node string, revision int64) *corev1.Pod {
	w.remove(node)
	return w.pod(node, revision)
}

func (w *world) remove(node string) {
	var rest []*corev1.Pod
	for _, p := range w.pods {
		if p.Spec.NodeName != node {
			rest = append(rest, p)
		}
	}
	w.pods = rest
}

func (w *world) podOn(node string) *corev1.Pod {
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			return p
		}
	}
	return nil
}

func (w *world) nodeNamed(name string) *corev1.Node {
	for _, n := range w.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func (w *world) setReady(node string, status corev1.ConditionStatus) {
	n := w.nodeNamed(node)
	n.Status.Conditions[0].Status = status
	n.Spec.Taints = nil
	switch status {
	case corev1.ConditionFalse:
		n.Spec.Taints = []corev1.Taint{{Key: cluster.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
	case corev1.ConditionUnknown:
		n.Spec.Taints = []corev1.Taint{{Key: cluster.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	}
}

func (w *world) lease(node string, renewed time.Time) {
	at := metav1.NewMicroTime(renewed)
	w.leases = append(w.leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.NodeLeaseNamespace, Name: node},
		Spec: coordinationv1.LeaseSpec{RenewTime: &at}})
}

// tolerateAll gives every template the wildcard that most network agents have.
func (w *world) tolerateAll() {
	all := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	w.ds.Spec.Template.Spec.Tolerations = all
	w.revs = nil
	for n, image := range []string{"agent:v1", "agent:v2"} {
		t := template(image)
		t.Spec.Tolerations = all
		w.revision(int64(n+1), t)
	}
}

func (w *world) budget(max int32) {
	m := intstr.FromInt32(max)
	w.ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &m
}

// snapshot is a copy: what the test changes afterwards does not reach it.
func (w *world) snapshot() *cluster.Snapshot {
	o := cluster.Objects{DaemonSets: []*appsv1.DaemonSet{w.ds.DeepCopy()}, Leases: w.leases}
	for _, n := range w.nodes {
		o.Nodes = append(o.Nodes, n.DeepCopy())
	}
	for _, p := range w.pods {
		o.Pods = append(o.Pods, p.DeepCopy())
	}
	for _, r := range w.revs {
		o.ControllerRevisions = append(o.ControllerRevisions, r.DeepCopy())
	}
	return cluster.New(o, cluster.Meta{AsOf: w.now, AllLeases: true, PodScope: w.scope, Source: cluster.Source{Version: w.server}})
}

// fakeAPI answers from a world. A patch is applied with the very library that the
// API server uses, and raises the generation as it does.
type fakeAPI struct {
	w        *world
	readOnly bool
	deny     string // a verb
	fail     map[string]error
	before   func(call string) // runs before a call is answered
	calls    []string
}

func (f *fakeAPI) enter(call string) error {
	f.calls = append(f.calls, call)
	if f.before != nil {
		f.before(call)
	}
	return f.fail[call]
}

func (f *fakeAPI) Get(ctx context.Context, ref Ref) (Object, error) {
	if err := f.enterCtx(ctx, "get "+ref.Resource); err != nil {
		return Object{}, err
	}
	switch ref.Resource {
	case "daemonsets":
		if ref.Name == f.w.ds.Name {
			return object(f.w.ds, string(f.w.ds.UID), f.w.ds.Generation), nil
		}
	case "pods":
		for _, p := range f.w.pods {
			if p.Name == ref.Name {
				return object(p, string(p.UID), 0), nil
			}
		}
	case "controllerrevisions":
		for _, r := range f.w.revs {
			if r.Name == ref.Name {
				return object(r, string(r.UID), 0), nil
			}
		}
	}
	return Object{}, fmt.Errorf("%s %q: %w", ref.Resource, ref.Name, ErrNotFound)
}

func object(o any, uid string, generation int64) Object {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return Object{UID: uid, Generation: generation, Raw: b}
}

func (f *fakeAPI) Patch(ctx context.Context, ref Ref, t PatchType, patch []byte, dryRun bool) (Object, error) {
	call := "patch"
	if dryRun {
		call = "dry-run patch"
	}
	if err := f.enterCtx(ctx, call); err != nil {
		return Object{}, err
	}
	if f.readOnly {
		return Object{}, ErrReadOnly
	}
	if t != JSONPatch || ref.Resource != "daemonsets" {
		return Object{}, fmt.Errorf("unexpected patch %s of %s", t, ref.Resource)
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return Object{}, err
	}
	was := object(f.w.ds, "", 0)
	now, err := p.Apply(was.Raw)
	if err != nil { // as the API server: 422, whatever the reason
		return Object{}, fmt.Errorf("the server rejected our request due to an error in our request: %w", err)
	}
	next := &appsv1.DaemonSet{}
	if err := json.Unmarshal(now, next); err != nil {
		return Object{}, err
	}
	next.Generation++
	if !dryRun {
		f.w.ds = next
	}
	return object(next, string(next.UID), next.Generation), nil
}

func (f *fakeAPI) Delete(ctx context.Context, ref Ref, uid string, dryRun bool) error {
	call := "delete"
	if dryRun {
		call = "dry-run delete"
	}
	if err := f.enterCtx(ctx, call); err != nil {
		return err
	}
	if f.readOnly {
		return ErrReadOnly
	}
	for _, p := range f.w.pods {
		if p.Name == ref.Name {
			if string(p.UID) != uid {
				return fmt.Errorf("pod %s: %w", ref.Name, ErrConflict)
			}
			if !dryRun {
				f.w.remove(p.Spec.NodeName)
			}
			return nil
		}
	}
	return ErrNotFound
}

func (f *fakeAPI) CanI(ctx context.Context, verb string, ref Ref) (bool, string, error) {
	if err := f.enterCtx(ctx, "can-i "+verb+" "+ref.Resource); err != nil {
		return false, "", err
	}
	return verb != f.deny, "", nil
}

func (f *fakeAPI) enterCtx(ctx context.Context, call string) error {
	err := f.enter(call)
	return errors.Join(ctx.Err(), err)
}
