// Package owners tells who owns an object by the marks that they leave on it: labels,
// annotations, owner references, names in managedFields. It says of each how certain
// that is, what it does to a change by hand, and with which commands it is held and
// given back. Only marks on the object itself count: that a neighbour is managed, or
// that its namespace is, says nothing of it.
package owners

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Of are the owners of an object of that kind ("DaemonSet"; objects of typed clients
// do not name theirs), who matters most for a change by hand first: the surer, then
// who reverts it sooner. known is false where managedFields were not read, so that
// owners without a label, annotation or owner reference are not seen.
func Of(o metav1.Object, kind string) (owners []report.Owner, known bool) {
	x := &object{kind: kind, namespace: o.GetNamespace(), name: o.GetName(), labels: o.GetLabels(), annotations: o.GetAnnotations(), refs: o.GetOwnerReferences()}
	x.writers, known = cluster.Writers(o)
	for _, find := range []func(*object) []report.Owner{argoCD, fluxKustomize, fluxHelm, configSync, kapp, operators, olm, addonManagers, amazonEKS, rancher, helm} {
		owners = append(owners, find(x)...)
	}
	if slices.ContainsFunc(owners, sure) {
		// What a label may also mean is no question once somebody is known.
		owners = slices.DeleteFunc(owners, func(o report.Owner) bool { return o.Certainty == report.Hint })
	}
	owners = append(owners, appliers(x, owners)...)
	slices.SortStableFunc(owners, func(a, b report.Owner) int {
		return cmp.Or(cmp.Compare(slices.Index(certainties, a.Certainty), slices.Index(certainties, b.Certainty)),
			cmp.Compare(slices.Index(urgencies, a.Reverts), slices.Index(urgencies, b.Reverts)))
	})
	return owners, known
}

var (
	certainties = []report.Certainty{report.Certain, report.Likely, report.Hint}
	urgencies   = []report.Reverts{report.RevertsAtOnce, report.RevertsPeriodically, report.RevertsIfTold, report.RevertsConflict, report.RevertsLater, report.RevertsNot}
)

func sure(o report.Owner) bool { return o.Certainty != report.Hint }

// Sure are the owners that are more than a hint.
func Sure(owners []report.Owner) []report.Owner {
	return slices.DeleteFunc(slices.Clone(owners), func(o report.Owner) bool { return !sure(o) })
}

// InTheWay is the first of the owners, in their order, that puts a change by hand back
// of its own accord, or may. Nil where none does.
func InTheWay(owners []report.Owner) *report.Owner {
	for i := range owners {
		if o := &owners[i]; sure(*o) && o.Reconciles() {
			return o
		}
	}
	return nil
}

// Wrote is the owner that goes by that name in managedFields, nil where none does.
func Wrote(owners []report.Owner, manager string) *report.Owner {
	for i := range owners {
		if m := owners[i].Manager; m != "" && m == report.Clean(manager) {
			return &owners[i]
		}
	}
	return nil
}

// Own tells of the name that this program itself goes by in managedFields.
func Own(manager string) bool { return manager == "rollcall" }

// ByHand tells of a manager's name that stands for a person at a terminal.
func ByHand(manager string) bool {
	return manager == "kubectl" || strings.HasPrefix(manager, "kubectl-") || Own(manager) || manager == "k9s" || manager == "oc"
}

// object is what of an object tells who owns it.
type object struct {
	kind, namespace, name string
	labels, annotations   map[string]string
	refs                  []metav1.OwnerReference
	writers               []cluster.Writer
}

// wrote is the writer of one of those names: one that owns the template if there is
// any, otherwise one that owns anything of the spec. Nil without one.
func (x *object) wrote(names ...string) *cluster.Writer {
	var found *cluster.Writer
	for i := range x.writers {
		w := &x.writers[i]
		if slices.Contains(names, w.Manager) && (found == nil || !found.Owns("template") && w.Owns("template")) {
			found = w
		}
	}
	return found
}

// mark is a label or an annotation of that key; a few tools take either.
func (x *object) mark(key string) string { return cmp.Or(x.annotations[key], x.labels[key]) }

func (x *object) label(key string) report.Evidence {
	return report.Evidence{Source: report.Textf("%s.metadata.labels[%s]", x.kind, key), Value: report.Clean(x.labels[key])}
}

func (x *object) annotation(key string) report.Evidence {
	return report.Evidence{Source: report.Textf("%s.metadata.annotations[%s]", x.kind, key), Value: report.Clean(x.annotations[key])}
}

// writer is the evidence of a manager in managedFields.
func (x *object) writer(w *cluster.Writer) report.Evidence {
	what := "spec"
	if w.Owns("template") {
		what = "spec.template"
	}
	how := "Update"
	if w.Applies {
		how = "Apply"
	}
	return report.Evidence{Source: report.Textf("%s.metadata.managedFields", x.kind), Value: report.Textf("%s (%s) owns fields of %s", w.Manager, how, what), At: report.At(w.At)}
}

// seen adds a manager's write to an owner.
func (x *object) seen(o *report.Owner, w *cluster.Writer) {
	if w == nil {
		return
	}
	o.Manager = report.Clean(w.Manager)
	o.Evidence = append(o.Evidence, x.writer(w))
	strategy := "updateStrategy"
	if x.kind == "Deployment" {
		strategy = "strategy"
	}
	// What a manager applies from the server's side it owns, and nothing else.
	o.LeavesStrategy = w.Applies && w.Owns("template") && !w.Owns(strategy)
}

// self is the object as kubectl takes it: "daemonset calico-node -n kube-system".
func (x *object) self() string {
	return strings.ToLower(x.kind) + " " + word(x.name, "name") + " -n " + word(x.namespace, "namespace")
}

// word is a name for a command. What is no name of a Kubernetes object becomes a
// placeholder: a command is made to be pasted, and anybody may write an annotation.
func word(name, placeholder string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "<" + placeholder + ">"
	}
	return name
}

// named tells whether all of them are names of Kubernetes objects.
func named(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return len(validation.IsDNS1123Subdomain(n)) > 0 })
}

// run are commands of which nothing need be said.
func run(commands ...string) []report.Command {
	out := make([]report.Command, 0, len(commands))
	for _, c := range commands {
		out = append(out, report.Command{Run: report.Clean(c)})
	}
	return out
}

// do is a command with what to know of it; without a command, what to do.
func do(command, says string) report.Command {
	return report.Command{Run: report.Clean(command), Says: report.Clean(says)}
}

func sentences(list ...string) []report.Text {
	out := make([]report.Text, 0, len(list))
	for _, s := range list {
		out = append(out, report.Clean(s))
	}
	return out
}
