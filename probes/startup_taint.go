package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// agentTaint is a taint that keeps Pods off a node until its agent is ready there,
// and that this agent removes itself.
type agentTaint struct {
	taint corev1.Taint
	owner *daemonSet
	pod   *corev1.Pod // of the agent on that node, nil without one
	ready time.Time   // since when the Pod is Ready, zero while it is not
	// counted tells that its Pods were not read, and its status counts all of them Ready.
	counted, unread bool
}

// overdue tells that the agent is Ready for so long that its taint should be gone.
func (a *agentTaint) overdue(now time.Time) bool {
	return a.counted || !a.ready.IsZero() && now.Sub(a.ready) >= joinTime
}

func (a *agentTaint) text() string {
	switch {
	case a.counted:
		return fmt.Sprintf("%s should have removed it: its status counts every one of its Pods Ready", a.owner)
	case a.unread:
		return fmt.Sprintf("%s should remove it; whether its Pod here is Ready was not read", a.owner)
	case a.pod == nil:
		return fmt.Sprintf("%s should remove it, and has no Pod here", a.owner)
	case a.ready.IsZero():
		return fmt.Sprintf("%s should remove it, and its Pod %s is not Ready", a.owner, a.pod.Name)
	}
	return fmt.Sprintf("%s should have removed it: its Pod %s is Ready here since %s", a.owner, a.pod.Name, dated(a.ready))
}

func (a *agentTaint) evidence() []report.Evidence {
	out := []report.Evidence{{Source: "Node.spec.taints", Value: report.Clean(taintName(&a.taint))}}
	if a.taint.TimeAdded != nil {
		out[0].At = report.At(a.taint.TimeAdded.Time)
	}
	if st := a.owner.ds.Status; a.counted {
		out = append(out, report.Evidence{Source: report.Textf("%s status", a.owner), Value: report.Textf("ready=%d of desired=%d", st.NumberReady, st.DesiredNumberScheduled)})
	}
	if a.pod != nil {
		out = append(out, report.Evidence{Source: report.Textf("Pod %s/%s", a.pod.Namespace, a.pod.Name), Value: report.Clean(phaseOf(a.pod)), At: report.At(a.ready)})
	}
	return out
}

// startupWords mark taints that wait for something to become ready.
var startupWords = []string{"not-ready", "notready", "not-initialized", "uninitialized", "unready", "not-started", "startup", "initializing", "agent-not"}

// wordsOfNobody stand in the names of many agents and of many taints.
var wordsOfNobody = []string{"node", "nodes", "agent", "agents", "daemon", "daemonset", "driver", "plugin", "controller", "system", "kube", "kubernetes", "k8s", "io", "com", "org", "net", "dev", "csi", "cni", "aws", "azure",
	"gke", "google", "not", "ready", "notready", "uninitialized", "startup", "taint", "the", "ds", "x-k8s", "cluster", "amazonaws", "cloud", "cloudprovider", "example"}

// agentOf finds the DaemonSet, other than d, after which a startup taint is named:
// the key's words are in its name, labels or images. It must tolerate its own taint.
// Nil where the taint waits for nothing, or no DaemonSet or several fit.
func (c *Diagnosis) agentOf(d *daemonSet, t *corev1.Taint, n *nodeState) *agentTaint {
	key := strings.ToLower(t.Key)
	if strings.HasPrefix(key, "node.kubernetes.io/") || !slices.ContainsFunc(startupWords, func(w string) bool { return strings.Contains(key, w) }) {
		return nil
	}
	best, most, tie := (*daemonSet)(nil), 0, false
	for _, x := range c.daemonSets {
		if x == d || slices.ContainsFunc(cluster.UntoleratedTaints(n.node, &x.ds.Spec.Template), func(u corev1.Taint) bool { return u.Key == t.Key && u.Effect == t.Effect }) {
			continue
		}
		switch s := namedAfter(key, x); {
		case s > most:
			best, most, tie = x, s, false
		case s == most && s > 0:
			tie = true
		}
	}
	if best == nil || tie {
		return nil
	}
	a := &agentTaint{taint: *t, owner: best}
	if !best.podsKnown {
		st := best.ds.Status
		should, _ := cluster.ShouldRun(n.node, &best.ds.Spec.Template)
		a.unread = true
		a.counted = should && n.ready == corev1.ConditionTrue && st.DesiredNumberScheduled > 0 && st.NumberReady >= st.DesiredNumberScheduled && c.settling(best) == ""
		return a
	}
	for _, p := range c.s.PodsOn(n.name) {
		if !metav1.IsControlledBy(p, best.ds) || p.DeletionTimestamp != nil {
			continue
		}
		a.pod = p
		if cond := cluster.PodCondition(p, corev1.PodReady); cond != nil && cond.Status == corev1.ConditionTrue {
			a.ready = maxTime(cond.LastTransitionTime.Time, taintAddedTo(t))
			break
		}
	}
	return a
}

// taintAddedTo is when a taint that was added later began to wait.
func taintAddedTo(t *corev1.Taint) time.Time {
	if t.TimeAdded != nil {
		return t.TimeAdded.Time
	}
	return time.Time{}
}

// namedAfter counts the words of a taint's key that name the DaemonSet: in its own
// name twice what they count in a label or an image.
func namedAfter(key string, d *daemonSet) int {
	score := 0
	if name := strings.ToLower(d.ds.Name); strings.Contains(name, "-") && slices.ContainsFunc(strings.FieldsFunc(key, func(r rune) bool { return r == '/' || r == '.' || r == '_' }), func(part string) bool { return part == name }) {
		score += 4 // its whole name, however common the words
	}
	meta := append([]string{}, words(strings.ToLower(d.ds.Name))...)
	var more []string
	for _, ct := range d.ds.Spec.Template.Spec.Containers {
		image := strings.ToLower(ct.Image)
		if i := strings.IndexAny(image, "@"); i >= 0 {
			image = image[:i]
		}
		if i := strings.LastIndexByte(image, '/'); i >= 0 {
			image = image[i+1:]
		}
		more = append(more, words(image)...)
		more = append(more, words(strings.ToLower(ct.Name))...)
	}
	for _, k := range sortedNames(d.ds.Spec.Template.Labels) {
		more = append(more, words(strings.ToLower(d.ds.Spec.Template.Labels[k]))...)
	}
	for _, w := range slices.Compact(words(key)) {
		short := len(w) < 3
		if short || slices.Contains(wordsOfNobody, w) {
			continue
		}
		same := func(v string) bool {
			return v == w || len(w) >= 4 && len(v) >= 4 && (strings.Contains(v, w) || strings.Contains(w, v)) && !slices.Contains(wordsOfNobody, v)
		}
		switch {
		case slices.ContainsFunc(meta, same):
			score += 2
		case slices.ContainsFunc(more, same):
			score++
		}
	}
	return score
}

// leftTaint finds that what keeps a Pod of another workload unplaced is a start-up taint
// that an agent should have removed: the only taint not tolerated, on nodes that the Pod
// could go to. Nil where it is not, or where nodes without it are open to the Pod.
func (c *Diagnosis) leftTaint(p *corev1.Pod) (left *agentTaint, nodes []string) {
	filter := cluster.NewNodeFilter(&p.Spec)
	for _, n := range c.nodeList {
		if n.leaves() || n.node.Spec.Unschedulable || !filter.Selects(n.node) {
			continue
		}
		in := filter.Untolerated(n.node)
		if len(in) == 0 {
			return nil, nil
		}
		if len(in) > 1 {
			continue
		}
		if a := c.agentOf(nil, &in[0], n); a != nil && a.overdue(c.s.AsOf) {
			nodes = append(nodes, n.name)
			if left == nil {
				left = a
			}
		}
	}
	return left, nodes
}

// blockedByLeftTaint gives the verdict for Pods that such a taint keeps unplaced.
func (c *Diagnosis) blockedByLeftTaint(r *replicated, pods []*corev1.Pod) {
	a, nodes := c.leftTaint(pods[0])
	if a == nil {
		return
	}
	v := &r.verdict
	v.Attribution = report.CoverageGap
	v.Summary = report.Textf("%s cannot be placed: taint %s is still on %s; %s", count(len(pods), "Pod"), taintName(&a.taint), names(nodes, 4), a.text())
	v.For = append(v.For, report.Textf("%s: %s", taintName(&a.taint), a.text()))
	r.recommend = report.Recommendation{Action: report.ActionFixNode, Why: report.Textf("find out why %s left its taint: its log on %s; deleting that one Pod, or taking the taint off by hand, lets the others in", a.owner, nodes[0])}
	c.splitReach(&r.recommend, c.statesOf(nodes))
	for i := range r.findings {
		if f := &r.findings[i]; f.Code == report.UntoleratedTaint {
			f.Evidence = append(f.Evidence, a.evidence()...)
		}
	}
}
