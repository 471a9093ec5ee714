package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// ownerOf is the UID of the object that controls a Pod, "" without one.
func ownerOf(p *corev1.Pod) string {
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		return string(o.UID)
	}
	return ""
}

// requirement is one line of what a Pod asks of a node's labels.
type requirement struct {
	where string // the field
	corev1.NodeSelectorRequirement
}

// requirements are the lines of nodeSelector and required node affinity.
func requirements(s *corev1.PodSpec) []requirement {
	var out []requirement
	keys := make([]string, 0, len(s.NodeSelector))
	for k := range s.NodeSelector {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, requirement{"nodeSelector", corev1.NodeSelectorRequirement{Key: k, Operator: corev1.NodeSelectorOpIn, Values: []string{s.NodeSelector[k]}}})
	}
	for i, term := range nodeTerms(s) {
		for _, e := range term.MatchExpressions {
			out = append(out, requirement{fmt.Sprintf("nodeAffinity.nodeSelectorTerms[%d]", i), e})
		}
	}
	return out
}

func nodeTerms(s *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func (r requirement) String() string {
	switch r.Operator {
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return fmt.Sprintf("%s %s", r.Key, r.Operator)
	}
	return fmt.Sprintf("%s %s [%s]", r.Key, r.Operator, firstWords(strings.Join(r.Values, " "), 120))
}

// alone is the line as a filter of its own.
func (r requirement) alone() cluster.NodeFilter {
	spec := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{r.NodeSelectorRequirement}}}}}}}
	return cluster.NewNodeFilter(&spec)
}

// linesShown bounds the lines of an affinity that are taken apart.
const linesShown = 12

// affinityLines takes nodeSelector and affinity apart, line by line: how many nodes each
// accepts by itself or, where a node is given, whether it accepts that one; and which
// line looks as if it meant the contrary.
func (c *Diagnosis) affinityLines(p *corev1.Pod, only *corev1.Node) []report.Evidence {
	lines := requirements(&p.Spec)
	var out []report.Evidence
	total := 0
	if only == nil {
		total = c.selected(&p.Spec)
	}
	for i, line := range lines {
		if i == linesShown || only == nil && c.nodesLooked > nodeLooks {
			out = append(out, report.Evidence{Source: "Pod.spec.affinity", Value: report.Textf("%d lines more", len(lines)-i)})
			break
		}
		source := report.Textf("Pod.spec %s: %s", line.where, line)
		if only != nil {
			if !line.alone().Selects(only) {
				value, has := only.Labels[line.Key]
				text := fmt.Sprintf("node %s has no label %s", only.Name, line.Key)
				if has {
					text = fmt.Sprintf("node %s has %s=%s", only.Name, line.Key, value)
				}
				out = append(out, report.Evidence{Source: source, Value: report.Clean(text)})
			}
			continue
		}
		matching, values, alone := 0, map[string]bool{}, line.alone()
		c.nodesLooked += len(c.nodeList)
		for _, n := range c.nodeList {
			if v, ok := n.node.Labels[line.Key]; ok {
				values[v] = true
			}
			if alone.Selects(n.node) {
				matching++
			}
		}
		text := fmt.Sprintf("accepts %d of %s", matching, count(len(c.nodeList), "node"))
		switch {
		case len(values) == 0:
			text += "; no node has that label"
		case matching == 0:
			text += "; nodes have " + names(sortedSet(values), 5)
		}
		out = append(out, report.Evidence{Source: source, Value: report.Clean(text)})
		if total <= 1 {
			if e := c.inverted(p, line, values, total); e != nil {
				out = append(out, *e)
			}
		}
	}
	return out
}

// selected counts the nodes that nodeSelector and affinity accept.
func (c *Diagnosis) selected(s *corev1.PodSpec) int {
	filter, n := cluster.NewNodeFilter(s), 0
	c.nodesLooked += len(c.nodeList)
	for _, st := range c.nodeList {
		if filter.Selects(st.node) {
			n++
		}
	}
	return n
}

// contrary is the operator that says the opposite.
var contrary = map[corev1.NodeSelectorOperator]corev1.NodeSelectorOperator{
	corev1.NodeSelectorOpIn: corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpNotIn: corev1.NodeSelectorOpIn,
	corev1.NodeSelectorOpExists: corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpDoesNotExist: corev1.NodeSelectorOpExists,
}

// inverted tells of a line that leaves one node or none and, turned round, would leave
// several: In where NotIn was meant, or the reverse. A value that no node has is a
// spelling error and no such case.
func (c *Diagnosis) inverted(p *corev1.Pod, line requirement, values map[string]bool, total int) *report.Evidence {
	other, ok := contrary[line.Operator]
	if !ok || line.where == "nodeSelector" || len(line.Values) > 0 && !slices.ContainsFunc(line.Values, func(v string) bool { return values[v] }) {
		return nil
	}
	spec := p.Spec.DeepCopy()
	for i := range nodeTerms(spec) {
		for j := range nodeTerms(spec)[i].MatchExpressions {
			e := &nodeTerms(spec)[i].MatchExpressions[j]
			if line.where == fmt.Sprintf("nodeAffinity.nodeSelectorTerms[%d]", i) && e.Key == line.Key && e.Operator == line.Operator && slices.Equal(e.Values, line.Values) {
				e.Operator = other
			}
		}
	}
	n := c.selected(spec)
	if n < 2 || n <= total {
		return nil
	}
	return &report.Evidence{Source: report.Textf("Pod.spec %s: %s", line.where, line), Value: report.Textf("leaves %s; with %s it would leave %d: is it the wrong way round?", count(total, "node"), other, n)}
}

// spread says which rule keeps Pods apart or together, and where those are that it
// counts.
func (c *Diagnosis) spread(p *corev1.Pod, said refusal.Reason, t *podTrouble) {
	for i, rule := range p.Spec.TopologySpreadConstraints {
		if rule.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		t.evidence = append(t.evidence, report.Evidence{
			Source: report.Textf("Pod.spec.topologySpreadConstraints[%d]: maxSkew %d over %s", i, rule.MaxSkew, rule.TopologyKey),
			Value:  c.domains(p, rule.TopologyKey, rule.LabelSelector)})
	}
	if a := p.Spec.Affinity; a != nil {
		if a.PodAntiAffinity != nil {
			for i, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Pod.spec.affinity.podAntiAffinity[%d]: none beside these in one %s", i, term.TopologyKey), Value: c.domains(p, term.TopologyKey, term.LabelSelector)})
			}
		}
		if a.PodAffinity != nil {
			for i, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Pod.spec.affinity.podAffinity[%d]: only beside these in one %s", i, term.TopologyKey), Value: c.domains(p, term.TopologyKey, term.LabelSelector)})
			}
		}
	}
	if strings.Contains(said.Text, "existing pods anti-affinity") {
		t.evidence = append(t.evidence, report.Evidence{Source: report.Clean(said.Text), Value: "the rule stands in Pods that run there already, not in this one"})
	}
	t.fix = fix{report.ActionFixWorkload, "add nodes in the domain that may take the next Pod, lower the number of replicas, or relax the rule (whenUnsatisfiable: ScheduleAnyway, preferred instead of required)"}
}

// podLooks bounds how many Pods are gone through for the rules and quotas of others,
// over a whole diagnosis.
const podLooks = 400_000

// lookAtPods tells whether all Pods may be gone through once more.
func (c *Diagnosis) lookAtPods() bool {
	spent := c.podsLooked
	c.podsLooked += len(c.s.Pods)
	return spent < podLooks
}

// domains counts the Pods of the namespace that a selector means, by domain. A domain
// without one is listed with 0.
func (c *Diagnosis) domains(p *corev1.Pod, key string, selector *metav1.LabelSelector) report.Text {
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || key == "" {
		return "the rule cannot be read"
	}
	if !c.lookAtPods() {
		return "not counted: too many Pods for as many workloads without a node"
	}
	counts := map[string]int{}
	filter := cluster.NewNodeFilter(&p.Spec)
	for _, n := range c.nodeList {
		if v, ok := n.node.Labels[key]; ok && filter.Selects(n.node) {
			counts[v] += 0
		}
	}
	for _, q := range c.s.Pods {
		if q.Namespace != p.Namespace || q.Spec.NodeName == "" || cluster.PodTerminal(q) || q.DeletionTimestamp != nil || !match.Matches(labels.Set(q.Labels)) {
			continue
		}
		if n := c.nodes[q.Spec.NodeName]; n != nil {
			if v, ok := n.node.Labels[key]; ok {
				counts[v]++
			}
		}
	}
	if len(counts) == 0 {
		return report.Textf("no node that the Pod may go to has the label %s", key)
	}
	var out []string
	for v := range counts {
		out = append(out, v)
	}
	slices.Sort(out)
	for i, v := range out {
		out[i] = fmt.Sprintf("%s %d", v, counts[v])
	}
	text := names(out, 12)
	if !c.s.PodScope.All {
		text += ", by the Pods that were read"
	}
	return report.Clean(text)
}

// volumes names the claims of a Pod that cannot follow it, and the limits of the nodes
// where those are reached.
func (c *Diagnosis) volumes(p *corev1.Pod, nodes []string, said refusal.Reason, t *podTrouble) {
	var claims []string
	for _, v := range p.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = p.Name + "-" + v.Name
		default:
			continue
		}
		claims = append(claims, name)
		t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("Pod.spec.volumes[%s]", v.Name), Value: report.Textf("PersistentVolumeClaim %s/%s", p.Namespace, name)})
	}
	if strings.Contains(said.Text, "max volume count") {
		for _, n := range c.s.CSINodes {
			if !slices.Contains(nodes, n.Name) || len(t.evidence) > 2*nodesNamed {
				continue
			}
			for _, d := range n.Spec.Drivers {
				if d.Allocatable != nil && d.Allocatable.Count != nil {
					t.evidence = append(t.evidence, report.Evidence{Source: report.Textf("CSINode %s, driver %s", n.Name, d.Name), Value: report.Textf("takes %s", count(int(*d.Allocatable.Count), "volume"))})
				}
			}
		}
	}
	why := "its volumes decide where it may go"
	switch {
	case said.Claim != "":
		why = fmt.Sprintf("look at its claim: kubectl -n %s get pvc %s", report.Word(p.Namespace), report.Word(said.Claim))
	case len(claims) > 0:
		why = fmt.Sprintf("its volumes decide where it may go; look at where they are: kubectl -n %s get pvc %s, and the node affinity of their volumes: kubectl get pv", report.Word(p.Namespace), shellWords(claims[:min(len(claims), 4)]))
	}
	t.fix = fix{report.ActionFixCluster, report.Clean(why)}
}
