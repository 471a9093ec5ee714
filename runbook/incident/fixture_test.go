package incident

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

var epoch = time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)

var agent = report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"}

// world is a cluster of three nodes with a DaemonSet, "agent", whose revision 2
// spreads; revision 1 is known to be good.
type world struct {
	now     time.Time
	ds      *appsv1.DaemonSet
	revs    []*appsv1.ControllerRevision
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	fresh   map[cluster.Resource]cluster.Freshness
	verdict report.Verdict
	calm    bool // nothing spreads
	waiting []report.Text
}

func newWorld() *world {
	w := &world{now: epoch, verdict: report.Verdict{Attribution: report.RolloutBreaksNodes, Workload: report.Text(agent.String()), Confidence: report.High}}
	w.ds = &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent", UID: "ds", Generation: 2},
		Spec:       appsv1.DaemonSetSpec{Template: template("agent:v2"), UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDaemonSet{}}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 2},
	}
	yes := true
	for n := int64(1); n <= 2; n++ {
		data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template(fmt.Sprintf("agent:v%d", n))}})
		if err != nil {
			panic(err)
		}
		w.revs = append(w.revs, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("agent-%d", n), UID: types.UID(fmt.Sprint(n)),
				Labels:          map[string]string{cluster.RevisionHash: fmt.Sprintf("h%d", n)},
				OwnerReferences: []metav1.OwnerReference{{UID: "ds", Controller: &yes}}},
			Revision: n, Data: runtime.RawExtension{Raw: data}})
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("node-%d", i)
		w.nodes = append(w.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		w.pod(name, 2, "first")
	}
	return w
}

const password = "hunter2-is-the-password"

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: image,
		Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: password + image}}}}}}
}

// pod puts a Pod of that revision on the node, in the place of any other.
func (w *world) pod(node string, revision int, uid string) {
	w.pods = slices.DeleteFunc(w.pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
	yes := true
	w.pods = append(w.pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent-" + node, UID: types.UID(node + uid),
			Labels:          map[string]string{cluster.RevisionHash: fmt.Sprintf("h%d", revision)},
			OwnerReferences: []metav1.OwnerReference{{UID: "ds", Controller: &yes}}},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	})
}

func (w *world) setReady(node string, s corev1.ConditionStatus) {
	for _, n := range w.nodes {
		if n.Name == node {
			n.Status.Conditions[0].Status = s
		}
	}
}

func (w *world) snapshot() *cluster.Snapshot {
	o := cluster.Objects{DaemonSets: []*appsv1.DaemonSet{w.ds.DeepCopy()}, ControllerRevisions: w.revs}
	for _, n := range w.nodes {
		o.Nodes = append(o.Nodes, n.DeepCopy())
	}
	for _, p := range w.pods {
		o.Pods = append(o.Pods, p.DeepCopy())
	}
	return cluster.New(o, cluster.Meta{AsOf: w.now, PodScope: cluster.PodScope{All: true}, Freshness: w.fresh, Source: cluster.Source{Version: "v1.37.2"}})
}

// diagnose says what the test wants said; what the probes say is tested with them.
func (w *world) diagnose(s *cluster.Snapshot, _ probes.Options) *probes.Diagnosis {
	one := int64(1)
	r := &report.Report{AsOf: report.Time{Time: s.AsOf}, Verdict: w.verdict, Waiting: w.waiting, Workloads: []report.Workload{{
		Kind: agent.Kind, Namespace: agent.Namespace, Name: agent.Name, Verdict: w.verdict,
		Rollout:        report.Rollout{Spreading: !w.calm, KnownGoodRevision: &one},
		Recommendation: report.Recommendation{Action: report.ActionRollBack, ToRevision: &one},
	}}}
	return &probes.Diagnosis{Report: r}
}

// fakeAPI is an API server over a world.
type fakeAPI struct {
	w      *world
	fail   map[string]error // by call
	before func(ctx context.Context, call string)
	calls  []string
}

func (f *fakeAPI) enter(ctx context.Context, call string) error {
	f.calls = append(f.calls, call)
	if f.before != nil {
		f.before(ctx, call)
	}
	return errors.Join(ctx.Err(), f.fail[call])
}

func (f *fakeAPI) Get(ctx context.Context, ref action.Ref) (action.Object, error) {
	if err := f.enter(ctx, "get"); err != nil {
		return action.Object{}, err
	}
	switch ref.Resource {
	case "daemonsets":
		return encode(f.w.ds, string(f.w.ds.UID), f.w.ds.Generation), nil
	case "pods":
		for _, p := range f.w.pods {
			if p.Name == ref.Name {
				return encode(p, string(p.UID), 0), nil
			}
		}
	case "controllerrevisions":
		for _, r := range f.w.revs {
			if r.Name == ref.Name {
				return encode(r, string(r.UID), 0), nil
			}
		}
	}
	return action.Object{}, action.ErrNotFound
}

func encode(o any, uid string, generation int64) action.Object {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return action.Object{UID: uid, Generation: generation, Raw: b}
}

func (f *fakeAPI) Patch(ctx context.Context, _ action.Ref, _ action.PatchType, patch []byte, dryRun bool) (action.Object, error) {
	call := "patch"
	if dryRun {
		call = "dry run"
	}
	if err := f.enter(ctx, call); err != nil {
		return action.Object{}, err
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return action.Object{}, err
	}
	raw, err := p.Apply(encode(f.w.ds, "", 0).Raw)
	if err != nil {
		return action.Object{}, err
	}
	next := &appsv1.DaemonSet{}
	if err := json.Unmarshal(raw, next); err != nil {
		return action.Object{}, err
	}
	next.Generation++
	if !dryRun {
		f.w.ds = next
	}
	return encode(next, string(next.UID), next.Generation), nil
}

func (f *fakeAPI) Delete(ctx context.Context, ref action.Ref, uid string, dryRun bool) error {
	call := "delete"
	if dryRun {
		call = "dry run"
	}
	if err := f.enter(ctx, call); err != nil {
		return err
	}
	for _, p := range f.w.pods {
		if p.Name == ref.Name && string(p.UID) == uid {
			if !dryRun {
				f.w.pods = slices.DeleteFunc(slices.Clone(f.w.pods), func(q *corev1.Pod) bool { return q == p })
			}
			return nil
		}
	}
	return action.ErrConflict
}

func (f *fakeAPI) CanI(ctx context.Context, _ string, _ action.Ref) (bool, string, error) {
	err := f.enter(ctx, "can-i")
	return err == nil, "", err
}

// memory is a journal in memory.
type memory struct {
	entries []session.Entry
	err     error
}

func (m *memory) Append(e session.Entry) error {
	if m.err != nil {
		return m.err
	}
	e.Seq = len(m.entries) + 1
	m.entries = append(m.entries, e)
	return nil
}

func (m *memory) Path() string { return "/state/session.jsonl" }

func (m *memory) kinds() []string {
	var out []string
	for _, e := range m.entries {
		out = append(out, string(e.Kind))
	}
	return out
}

// has tells whether these kinds were written in this order, others between them.
func (m *memory) has(kinds ...session.Kind) bool {
	i := 0
	for _, e := range m.entries {
		if i < len(kinds) && e.Kind == kinds[i] {
			i++
		}
	}
	return i == len(kinds)
}

func (m *memory) text() string {
	var b strings.Builder
	for _, e := range m.entries {
		fmt.Fprintf(&b, "%s %s %s\n", e.Kind, e.Text, e.Data)
	}
	return b.String()
}

type tester struct {
	*testing.T
	w       *world
	api     *fakeAPI
	journal *memory
	loop    *Loop
}

func newTester(t *testing.T) *tester {
	t.Helper()
	w := newWorld()
	x := &tester{T: t, w: w, api: &fakeAPI{w: w}, journal: &memory{}}
	x.loop = x.newLoop(nil)
	return x
}

func (x *tester) newLoop(earlier []session.Entry) *Loop {
	x.Helper()
	l := New(Config{API: x.api, Journal: x.journal, Clock: x, Books: []*runbook.Book{book(x)}, Earlier: earlier})
	l.diagnose = x.w.diagnose
	l.probes = map[string]probes.Probe{
		"nodes": func(*probes.Diagnosis, report.WorkloadKey) report.Result {
			for _, n := range x.w.nodes {
				if !cluster.NodeReady(n) {
					return report.Result{State: report.StepAnomaly, Lines: []report.Line{{State: report.StepAnomaly, Text: report.Clean(n.Name)}}}
				}
			}
			return report.Result{State: report.StepOK}
		},
	}
	return l
}

// Now makes the tester the loop's wall clock.
func (x *tester) Now() time.Time { return x.w.now }

// after lets time pass, the controller catch up, and the loop look.
func (x *tester) after(d time.Duration) *State {
	x.w.now = x.w.now.Add(d)
	x.w.ds.Status.ObservedGeneration = x.w.ds.Generation
	return x.loop.Observe(x.w.snapshot())
}

func (x *tester) handle(i Intent) *State { return x.loop.Handle(x.Context(), i) }

// confirm previews an action and confirms it.
func (x *tester) confirm(r action.Request) *State {
	x.Helper()
	st := x.handle(Act{r})
	if st.Dialog == nil {
		x.Fatalf("no dialog: %+v", st.Said)
	}
	return x.handle(Confirm{Dialog: st.Dialog.ID, Typed: string(st.Dialog.Preview.Word)})
}

func book(t testing.TB) *runbook.Book {
	t.Helper()
	b, err := runbook.Parse("test.yaml", []byte(`
id: test
title: A test
applies: {when: "nodesDown >= 0", priority: 1}
steps:
  - {id: one, title: "One?", probe: nodes, why: why, read: read, trap: trap, commands: [{says: s, run: kubectl get nodes}]}
  - {id: two, title: "Two?", probe: missing, why: why, read: read, trap: trap, commands: [{says: s, run: kubectl get nodes}]}
`), runbook.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func said(st *State) string {
	if st.Said == nil {
		return ""
	}
	return string(st.Said.Text)
}
