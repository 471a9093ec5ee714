package probes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// groundsShown bounds the evidence about one Pod that the verdict repeats.
const groundsShown = 6

// grounds are what a verdict on Pods without a node rests on: the evidence about one of
// them, beside the scheduler's own words.
func (t *podTrouble) grounds() []report.Text {
	var out []report.Text
	if len(t.parts) == 0 {
		return nil // not the scheduler's
	}
	for i, e := range t.evidence {
		if i > 0 && len(out) < groundsShown {
			out = append(out, report.Textf("%s: %s", e.Source, e.Value))
		}
	}
	return out
}

// remedy is what to do about it.
func (t *podTrouble) remedy() report.Recommendation {
	if t.fix.action == "" {
		return report.Recommendation{Action: report.ActionFixCluster, Why: t.summary}
	}
	return report.Recommendation{Action: t.fix.action, Why: t.fix.why}
}

func unplacedText(pods int, t *podTrouble) report.Text {
	return report.Textf("%s cannot be placed: %s", count(pods, "Pod"), strings.TrimPrefix(strings.TrimPrefix(string(t.summary), "cannot be placed on any node: "), "cannot be placed on "))
}

// cannotBePlaced gives the verdict for Pods of a DaemonSet that have no node although
// no rollout is to blame: a node that joined and is full, one that filled up since.
func (c *Diagnosis) cannotBePlaced(d *daemonSet) bool {
	byCode := map[report.Code][]*corev1.Pod{}
	for _, p := range c.s.PodsOf(d.ds.UID) {
		if t := d.troubles[p.Name]; t != nil && !t.ofNode && p.DeletionTimestamp == nil && schedulingOrCreation(t.code) {
			byCode[t.code] = append(byCode[t.code], p)
		}
	}
	if len(byCode) == 0 {
		return false
	}
	root := mostOf(byCode)
	pods := byCode[root]
	example := d.troubles[pods[0].Name]
	v := &d.verdict
	v.Attribution, v.RootCause, v.Confidence = report.ClusterBlocksPods, root, report.High
	v.Summary, d.recommend = unplacedText(len(pods), example), example.remedy()
	v.For = append([]report.Text{report.Textf("%s on %s by %s", count(len(pods), "Pod"), names(nodesOf(pods), 4), root)}, example.grounds()...)
	for code := range byCode {
		if code != root {
			v.Contributing = append(v.Contributing, code)
		}
	}
	slices.Sort(v.Contributing)
	d.markRoot(root, nil)
	return true
}

// rollBackEndsIt says so where the present revision brought what keeps its Pods
// without a node.
func (d *daemonSet) rollBackEndsIt(root report.Code) {
	if d.rollout.State == report.Complete || d.rollout.Revision == nil || d.rollout.PreviousRevision == nil {
		return
	}
	for _, line := range d.relevantDiff(root) {
		path, _, _ := strings.Cut(line, ": ")
		if slices.ContainsFunc(changeWords[root], func(w string) bool { return strings.Contains(path, w) }) {
			d.recommend.Why += report.Textf("; revision %d brought it (%s), so that going back to revision %d ends it as well", *d.rollout.Revision, firstWords(line, 120), *d.rollout.PreviousRevision)
			return
		}
	}
}
