package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// NodeChange is an edit of nodes, as `kubectl label`, `kubectl taint`, `kubectl cordon` and
// `kubectl uncordon` make it.
type NodeChange struct {
	Nodes  []string
	Labels []LabelEdit
	Taints []TaintEdit
	// Cordon sets spec.unschedulable, nil leaves it.
	Cordon *bool
}

// LabelEdit sets or removes a label.
type LabelEdit struct {
	Key, Value string
	Remove     bool
}

// TaintEdit sets or removes a taint; a removal without an effect takes all of the key.
type TaintEdit struct {
	Key, Value string
	Effect     corev1.TaintEffect
	Remove     bool
}

// ParseLabels reads label edits: key=value sets one, key- removes it.
func ParseLabels(args []string) ([]LabelEdit, error) {
	var out []LabelEdit
	for _, a := range args {
		e := LabelEdit{}
		switch k, v, ok := strings.Cut(a, "="); {
		case ok:
			e.Key, e.Value = k, v
		case strings.HasSuffix(a, "-"):
			e.Key, e.Remove = strings.TrimSuffix(a, "-"), true
		default:
			return nil, fmt.Errorf("%q is no label: write key=value to set one, key- to remove it", a)
		}
		if err := qualified(e.Key, a); err != nil {
			return nil, err
		}
		if bad := validation.IsValidLabelValue(e.Value); len(bad) > 0 {
			return nil, fmt.Errorf("the value of %q is none for a label: %s", a, bad[0])
		}
		if slices.ContainsFunc(out, func(o LabelEdit) bool { return o.Key == e.Key }) {
			return nil, fmt.Errorf("label %s is given twice", e.Key)
		}
		out = append(out, e)
	}
	return out, nil
}

// ParseTaints reads taint edits: key=value:Effect or key:Effect adds one, key:Effect-
// removes it, key- removes it with every effect.
// Source: kubectl pkg/cmd/taint/utils.go, parseTaints.
func ParseTaints(args []string) ([]TaintEdit, error) {
	var out []TaintEdit
	for _, a := range args {
		spec, remove := strings.CutSuffix(a, "-")
		e := TaintEdit{Remove: remove}
		pair, effect, hasEffect := strings.Cut(spec, ":")
		e.Key, e.Value, _ = strings.Cut(pair, "=")
		e.Effect = corev1.TaintEffect(effect)
		switch {
		case !remove && !hasEffect, strings.Contains(effect, ":"), strings.Contains(e.Value, "="), remove && !hasEffect && e.Value != "":
			return nil, fmt.Errorf("%q is no taint: write key=value:Effect to add one, key:Effect- or key- to remove it", a)
		case hasEffect && !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect):
			return nil, fmt.Errorf("%q is no taint: its effect is %q; NoSchedule, PreferNoSchedule and NoExecute are known", a, effect)
		}
		if err := qualified(e.Key, a); err != nil {
			return nil, err
		}
		if bad := validation.IsValidLabelValue(e.Value); len(bad) > 0 {
			return nil, fmt.Errorf("%q is no taint: its value %s", a, bad[0])
		}
		if slices.ContainsFunc(out, func(o TaintEdit) bool {
			return o.Key == e.Key && (o.Effect == e.Effect || o.Effect == "" || e.Effect == "")
		}) {
			return nil, fmt.Errorf("taint %s is given twice", e.Key)
		}
		if remove {
			e.Value = ""
		}
		out = append(out, e)
	}
	return out, nil
}

func qualified(key, arg string) error {
	if bad := validation.IsQualifiedName(key); len(bad) > 0 {
		return fmt.Errorf("%q has no valid key: %s", arg, bad[0])
	}
	return nil
}

func (e LabelEdit) String() string {
	if e.Remove {
		return e.Key + "-"
	}
	return e.Key + "=" + e.Value
}

func (e TaintEdit) String() string {
	s := e.Key
	if e.Effect != "" {
		s = taintName(&corev1.Taint{Key: e.Key, Value: e.Value, Effect: e.Effect})
	}
	if e.Remove {
		s += "-"
	}
	return s
}

// String writes the change as kubectl takes it.
func (ch *NodeChange) String() string {
	var words []string
	switch {
	case ch.Cordon != nil && *ch.Cordon:
		words = []string{"cordon"}
	case ch.Cordon != nil:
		words = []string{"uncordon"}
	case len(ch.Taints) > 0:
		words = []string{"taint"}
	default:
		words = []string{"label"}
	}
	words = append(words, names(ch.Nodes, 5))
	for _, e := range ch.Labels {
		words = append(words, e.String())
	}
	for _, e := range ch.Taints {
		words = append(words, e.String())
	}
	return strings.Join(words, " ")
}

// Apply returns the node as the change leaves it, what changes in it, and what is to be
// known besides. The node given stays as it is. Under a cordon stands the taint that
// the node controller adds for it.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass.
func (ch *NodeChange) Apply(n *corev1.Node) (out *corev1.Node, changes, notes []string) {
	out = n.DeepCopy()
	for _, e := range ch.Labels {
		was, had := n.Labels[e.Key]
		switch {
		case e.Remove && !had:
			notes = append(notes, fmt.Sprintf("%s has no label %s", n.Name, e.Key))
		case e.Remove:
			delete(out.Labels, e.Key)
			changes = append(changes, fmt.Sprintf("label %s goes (it is %q)", e.Key, was))
		case had && was == e.Value:
			notes = append(notes, fmt.Sprintf("%s has %s=%s already", n.Name, e.Key, e.Value))
		default:
			if out.Labels == nil {
				out.Labels = map[string]string{}
			}
			out.Labels[e.Key] = e.Value
			text := fmt.Sprintf("label %s=%s comes", e.Key, e.Value)
			if had {
				text += fmt.Sprintf(" in place of %q", was)
				notes = append(notes, fmt.Sprintf("kubectl label asks for --overwrite: %s has %s=%s", n.Name, e.Key, was))
			}
			changes = append(changes, text)
		}
	}
	for _, e := range ch.Taints {
		c, more := applyTaint(out, e)
		changes, notes = append(changes, c...), append(notes, more...)
	}
	if ch.Cordon != nil && *ch.Cordon == n.Spec.Unschedulable {
		notes = append(notes, fmt.Sprintf("%s is %s already", n.Name, schedulability(*ch.Cordon)))
	} else if ch.Cordon != nil {
		out.Spec.Unschedulable = *ch.Cordon
		e := TaintEdit{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, Remove: !*ch.Cordon}
		applyTaint(out, e)
		changes = append(changes, "becomes "+schedulability(*ch.Cordon))
	}
	return out, changes, notes
}

func schedulability(yes bool) string {
	if yes {
		return "unschedulable"
	}
	return "schedulable"
}

// applyTaint edits the node's taints. kubectl takes a taint with the key and effect of
// another as a change of its value.
func applyTaint(n *corev1.Node, e TaintEdit) (changes, notes []string) {
	meant := func(t corev1.Taint) bool { return t.Key == e.Key && (e.Effect == "" || t.Effect == e.Effect) }
	if e.Remove {
		for _, t := range n.Spec.Taints {
			if meant(t) {
				changes = append(changes, "taint "+taintName(&t)+" goes")
			}
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, meant)
		if len(changes) == 0 {
			notes = append(notes, fmt.Sprintf("%s has no taint %s", n.Name, strings.TrimSuffix(e.String(), "-")))
		}
		if len(changes) > 0 && cluster.ConditionTaint(e.Key) {
			notes = append(notes, fmt.Sprintf("the node controller sets %s by the node's state, and puts it back while that lasts", e.Key))
		}
		return changes, notes
	}
	taint := corev1.Taint{Key: e.Key, Value: e.Value, Effect: e.Effect}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if !meant(*t) {
			continue
		}
		if t.Value == e.Value {
			return nil, []string{fmt.Sprintf("%s has taint %s already", n.Name, taintName(t))}
		}
		was := taintName(t)
		*t = taint
		return []string{"taint " + taintName(&taint) + " comes in place of " + was}, []string{fmt.Sprintf("kubectl taint asks for --overwrite: %s has %s", n.Name, was)}
	}
	n.Spec.Taints = append(n.Spec.Taints, taint)
	return []string{"taint " + taintName(&taint) + " comes"}, nil
}
