package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// deletePod deletes one Pod of a DaemonSet, so that its controller makes it anew
// from the present template. Only that Pod: the deletion carries its UID.
type deletePod struct{}

func (deletePod) verb() string  { return "delete" }
func (deletePod) hold() int     { return 2 }
func (deletePod) lever() string { return "pod" }

// leaseRenewal is how often a kubelet renews its Lease: a quarter of its 40 s.
// Source: pkg/kubelet/kubelet.go, nodeLeaseRenewIntervalFraction.
const leaseRenewal = 10 * time.Second

// podMark is what a journal keeps of a Pod that was deleted.
type podMark struct {
	Pod      string `json:"pod"`
	UID      string `json:"uid,omitempty"`
	Node     string `json:"node"`
	Revision int64  `json:"revision,omitempty"`
}

func (deletePod) work(ctx context.Context, api API, s *cluster.Snapshot, r Request) (draft, error) {
	ds, err := readDaemonSet(ctx, api, s, r.Workload)
	if err != nil {
		return draft{}, err
	}
	ref := podRef(string(r.Workload.Namespace), r.Pod)
	pod := &corev1.Pod{}
	o, err := api.Get(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return draft{}, fmt.Errorf("Pod %s/%s does not exist (any more): nothing to delete", ref.Namespace, r.Pod)
	}
	if err == nil {
		err = json.Unmarshal(o.Raw, pod)
	}
	if err != nil {
		return draft{}, fmt.Errorf("read Pod %s/%s: %w", ref.Namespace, r.Pod, err)
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner == nil || owner.UID != ds.UID {
		return draft{}, fmt.Errorf("Pod %s/%s does not belong to %s: only Pods of the workload are deleted here", ref.Namespace, r.Pod, r.Workload)
	}
	node := cluster.TargetNode(pod)
	cur := s.CurrentRevision(ds.DaemonSet)
	from, to := revisionOf(s, ds.DaemonSet, pod), int64(0)
	if cur != nil {
		to = cur.Revision
	}
	p := Plan{
		Request: r, Object: ref, UID: string(pod.UID), Node: node,
		Title:   report.Textf("Delete Pod %s on %s", pod.Name, node),
		Kubectl: report.Textf("kubectl delete pod %s -n %s", pod.Name, pod.Namespace),
		Reverse: report.Textf("nothing: the Pod is made anew from the template that %s has then", ds.Name),
		Grade:   Typed, Word: report.Clean(pod.Name),
		Before: mustJSON(podMark{pod.Name, string(pod.UID), node, from}),
		After: mustJSON(struct {
			Node     string `json:"node"`
			Revision int64  `json:"revision,omitempty"`
		}{node, to}),
	}
	d := draft{Preview: Preview{Plan: p, Diff: []report.Text{
		report.Textf("- %s on %s%s", pod.Name, node, ofRevision(from)),
		report.Textf("+ a new Pod on %s%s", node, ofRevision(to)),
	}}}
	d.predict(s, ds.DaemonSet, pod, node, from, to)
	return d, nil
}

// predict says what becomes of the one Pod, and blocks where deleting it would do
// nothing, or only harm.
func (d *draft) predict(s *cluster.Snapshot, ds *appsv1.DaemonSet, pod *corev1.Pod, node string, from, to int64) {
	n := s.Node(node)
	others := max(0, len(s.PodsOf(ds.UID))-1)
	d.Prediction.Untouched = others
	switch {
	case pod.DeletionTimestamp != nil:
		d.Blocked = report.Textf("Pod %s is being deleted already, since %s", pod.Name, cluster.DeleteRequested(pod).UTC().Format("15:04:05"))
	case n == nil:
		d.Blocked = report.Textf("the Node object %q of Pod %s was not found: no kubelet would carry the deletion out", node, pod.Name)
	case !reachable(n):
		d.Prediction.OutOfReach = []report.Text{report.Clean(node)}
		d.Blocked = report.Textf("node %s is out of reach (Ready=Unknown): the deletion would only be recorded, the Pod would stay Terminating until its kubelet is back; mend the node at its console", node)
	}
	if d.Blocked != "" {
		d.Prediction.Summary = []report.Text{"NOW 0 Pods"}
		return
	}
	d.Prediction.Now = []report.Text{report.Textf("%s  %s", node, pod.Name)}
	d.Prediction.Summary = []report.Text{report.Textf("NOW 1 Pod on %s, made anew%s; %d others are not touched", node, fromRevision(to), others)}
	if run, _ := cluster.ShouldRun(n, &ds.Spec.Template); !run {
		why := report.Textf("%s  gets no Pod back: %s", node, whyNot(n, &ds.Spec.Template))
		d.Prediction.NeverBack = []report.Text{why}
		d.Prediction.Summary = append(d.Prediction.Summary, report.Textf("LOSES AGENT 1 node: %s", why))
		d.WatchOut = append(d.WatchOut, why)
	}
	if age, known := leaseAge(s, node); known && age > 3*leaseRenewal {
		d.WatchOut = append(d.WatchOut, report.Textf("%s has not renewed its Lease for %s: it may be out of reach already, and the Pod then stays Terminating", node, age.Round(time.Second)))
	}
	switch {
	case to == 0:
		d.Prediction.Unknown = append(d.Prediction.Unknown, "which revision the new Pod will have: the present template is not among the stored revisions")
	case from == to:
		d.WatchOut = append(d.WatchOut, report.Textf("this Pod runs the present revision %d already: it comes back the same", to))
	}
}

func (deletePod) holds(p Plan, s *cluster.Snapshot) []report.Line {
	ds := seenDaemonSet(s, p.Workload)
	if ds == nil {
		return []report.Line{badLine("%s is gone", p.Workload)}
	}
	return nodeHolds(s, ds, p.Node, updatedNow(s, ds), p.UID)
}

// revisionOf is the number of the revision that a Pod's label names, 0 where it is
// not stored.
func revisionOf(s *cluster.Snapshot, ds *appsv1.DaemonSet, p *corev1.Pod) int64 {
	for _, r := range s.RevisionsOf(ds.UID) {
		if h := r.Labels[cluster.RevisionHash]; h != "" && h == p.Labels[cluster.RevisionHash] {
			return r.Revision
		}
	}
	return 0
}

func ofRevision(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", revision %d", n)
}

func fromRevision(n int64) string {
	if n == 0 {
		return " from the present template"
	}
	return fmt.Sprintf(" from revision %d", n)
}
