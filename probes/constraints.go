package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// constraint is one thing that a template asks of a node, or that a node keeps Pods
// off with, held against the other side.
type constraint struct {
	ok    bool
	asked string // "nodeSelector pool=gpu", "taint dedicated=db:NoSchedule"
	found string // what is there instead, or that it is tolerated
	taint *corev1.Taint
	near  nearLabel // of the node, or of nodes, that was probably meant; zero without one
}

func (x *constraint) String() string { return x.asked + ": " + x.found }

func (x *constraint) evidence(node string) report.Evidence {
	if x.taint != nil {
		ev := report.Evidence{Source: report.Textf("Node %s spec.taints", node), Value: report.Textf("%s: %s", taintName(x.taint), x.found)}
		if x.taint.TimeAdded != nil {
			ev.At = report.At(x.taint.TimeAdded.Time)
		}
		return ev
	}
	return report.Evidence{Source: report.Textf("DaemonSet %s, Node %s labels", x.asked, node), Value: report.Clean(x.found)}
}

// nodeAsk is a label that a template asks for.
type nodeAsk struct {
	asked   string
	expr    corev1.NodeSelectorRequirement
	fields  bool // on the node's fields, not its labels
	term    int  // of the affinity, 0 for the nodeSelector
	matcher *nodeaffinity.NodeSelector
}

// asksOf is what a template asks of a node's labels: all of the nodeSelector,
// and of the affinity any one term.
func asksOf(t *corev1.PodTemplateSpec) []nodeAsk {
	var out []nodeAsk
	keys := make([]string, 0, len(t.Spec.NodeSelector))
	for k := range t.Spec.NodeSelector {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		v := t.Spec.NodeSelector[k]
		out = append(out, nodeAsk{asked: "nodeSelector " + pair(k, v), expr: corev1.NodeSelectorRequirement{Key: k, Operator: corev1.NodeSelectorOpIn, Values: []string{v}}}.parsed())
	}
	for i, term := range nodeTerms(&t.Spec) {
		name := "nodeAffinity "
		if len(nodeTerms(&t.Spec)) > 1 {
			name = fmt.Sprintf("nodeAffinity term %d ", i+1)
		}
		for _, e := range term.MatchExpressions {
			out = append(out, nodeAsk{asked: name + expression(e), expr: e, term: i + 1}.parsed())
		}
		for _, e := range term.MatchFields {
			out = append(out, nodeAsk{asked: name + expression(e), expr: e, term: i + 1, fields: true}.parsed())
		}
	}
	return out
}

func pair(k, v string) string { return k + "=" + v }

func expression(e corev1.NodeSelectorRequirement) string {
	s := e.Key + " " + string(e.Operator)
	if len(e.Values) > 0 {
		s += " (" + strings.Join(e.Values, ", ") + ")"
	}
	return s
}

// met tells whether the node fulfils one requirement.
func (r *nodeAsk) met(n *corev1.Node) bool { return r.matcher != nil && r.matcher.Match(n) }

// parsed makes the requirement ready to be held against nodes. One that is not valid
// is met by none.
func (r nodeAsk) parsed() nodeAsk {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r.expr}}
	if r.fields {
		term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r.expr}}
	}
	if s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}); err == nil {
		r.matcher = s
	}
	return r
}

// wanted are the values of which one would fulfil the requirement, nil where any
// would; ok is false for one that asks for an absence or compares numbers.
func (r *nodeAsk) wanted() (values []string, ok bool) {
	switch r.expr.Operator {
	case corev1.NodeSelectorOpIn:
		return r.expr.Values, len(r.expr.Values) > 0 && !r.fields
	case corev1.NodeSelectorOpExists:
		return nil, !r.fields
	}
	return nil, false
}

// constraints holds a node against a template, line by line: nodeName, nodeSelector,
// the affinity's terms and the taints, whether they are met or not. PreferNoSchedule
// keeps no daemon Pod off, and a cordon is tolerated automatically.
func constraints(n *corev1.Node, t *corev1.PodTemplateSpec) []constraint {
	var out []constraint
	if name := t.Spec.NodeName; name != "" {
		out = append(out, constraint{ok: name == n.Name, asked: "nodeName " + name, found: "the node is " + n.Name})
	}
	var affinity []constraint
	terms := map[int]bool{}
	for _, r := range asksOf(t) {
		x := against(n, &r)
		if r.term == 0 {
			out = append(out, x)
			continue
		}
		if _, seen := terms[r.term]; !seen {
			terms[r.term] = true
		}
		terms[r.term] = terms[r.term] && x.ok
		affinity = append(affinity, x)
	}
	one := false
	for _, ok := range terms {
		one = one || ok
	}
	for _, x := range affinity {
		if one && !x.ok {
			x.ok, x.found = true, x.found+"; another term matches"
		}
		out = append(out, x)
	}
	if len(nodeTerms(&t.Spec)) > 0 && len(affinity) == 0 {
		out = append(out, constraint{asked: "nodeAffinity", found: "has terms without a requirement, which match no node"})
	}
	out = append(out, taintConstraints(n, t)...)
	return out
}

// unmet are the constraints that keep the template's Pods off the node.
func unmet(n *corev1.Node, t *corev1.PodTemplateSpec) []constraint {
	return slices.DeleteFunc(constraints(n, t), func(x constraint) bool { return x.ok })
}

// against holds one requirement against the node's labels.
func against(n *corev1.Node, r *nodeAsk) constraint {
	x := constraint{asked: r.asked, ok: r.met(n)}
	v, has := n.Labels[r.expr.Key]
	switch {
	case r.fields:
		x.found = "the node is " + n.Name
	case has:
		x.found = "the node has " + pair(r.expr.Key, v)
	default:
		x.found = "the node has no label " + r.expr.Key
	}
	if values, ok := r.wanted(); ok && !x.ok {
		own := labelSet{}
		for k, v := range n.Labels {
			own[k] = map[string]int{v: 1}
		}
		if near, ok := own.nearest(r.expr.Key, values); ok && near.slip {
			x.near = near
			x.found += ", but has " + near.String()
		}
	}
	return x
}

func taintConstraints(n *corev1.Node, t *corev1.PodTemplateSpec) []constraint {
	var out []constraint
	untolerated := cluster.UntoleratedTaints(n, t)
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		x := constraint{ok: true, asked: "taint " + taintName(taint), found: "tolerated", taint: taint}
		switch {
		case taint.Effect == corev1.TaintEffectPreferNoSchedule:
			x.found = "keeps no daemon Pod off"
		case slices.ContainsFunc(untolerated, func(u corev1.Taint) bool { return u.MatchTaint(taint) && u.Value == taint.Value }):
			x.ok, x.found = false, "not tolerated"+nearToleration(taint, t.Spec.Tolerations)
		case taint.Key == corev1.TaintNodeUnschedulable:
			x.found = "a cordon: every daemon Pod tolerates it"
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b constraint) int { return cmp.Compare(a.asked, b.asked) })
	return out
}

// nearToleration names the toleration that was probably meant for the taint.
func nearToleration(taint *corev1.Taint, list []corev1.Toleration) string {
	for _, l := range list {
		sameEffect := l.Effect == "" || l.Effect == taint.Effect
		switch {
		case l.Key == taint.Key && sameEffect:
			return fmt.Sprintf(" (the template tolerates %s, with value %q)", l.Key, l.Value)
		case l.Key == taint.Key:
			return fmt.Sprintf(" (the template tolerates %s with effect %s only)", l.Key, l.Effect)
		case resembleKeys(l.Key, taint.Key) || renamed[l.Key] == taint.Key:
			return fmt.Sprintf(" (the template tolerates %s)", l.Key)
		}
	}
	return ""
}

// taintName writes a taint as kubectl takes it.
func taintName(t *corev1.Taint) string {
	s := t.Key
	if t.Value != "" {
		s += "=" + t.Value
	}
	return s + ":" + string(t.Effect)
}

// listed joins constraints into one sentence.
func listed(list []constraint, most int) string {
	var parts []string
	for i := range list {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, list[i].String())
	}
	return strings.Join(parts, "; ")
}
