package owners

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// appliers are those who put the object there with a command and come back with the
// next one: kubectl apply, other clients of server-side apply, installers. found are
// the owners that are known already, whose writes are not told twice.
func appliers(x *object, found []report.Owner) []report.Owner {
	var out []report.Owner
	w := x.wrote("kubectl-client-side-apply")
	if _, applied := x.annotations[corev1.LastAppliedConfigAnnotation]; (applied || w != nil) && !slices.ContainsFunc(found, sure) {
		// Argo CD, add-on managers and others run kubectl apply themselves.
		o := report.Owner{Tool: "kubectl apply", Certainty: report.Certain, Reverts: report.RevertsLater,
			Does: "puts its own template back when somebody, or a pipeline, runs it again", Instead: []report.Command{do("", "change the manifest that it applies")}}
		if applied {
			// Its value is the whole manifest: only that it is there is said.
			o.Evidence = append(o.Evidence, report.Evidence{Source: report.Textf("%s.metadata.annotations[%s]", x.kind, corev1.LastAppliedConfigAnnotation), Value: "present"})
		}
		x.seen(&o, w)
		out = append(out, o)
	}
	for i := range x.writers {
		w := &x.writers[i]
		if slices.ContainsFunc(append(found, out...), func(o report.Owner) bool { return o.Manager == report.Clean(w.Manager) }) {
			continue
		}
		if o, ok := applier(x, w); ok {
			x.seen(&o, w)
			out = append(out, o)
		}
	}
	return out
}

// applier tells what a writer of the template is that left no other mark.
// Sources: kubernetes.io/docs/reference/using-api/server-side-apply (conflicts);
// hashicorp/terraform-provider-kubernetes ("Terraform"), pulumi-kubernetes ("pulumi-kubernetes-…").
func applier(x *object, w *cluster.Writer) (report.Owner, bool) {
	name := report.Clean(w.Manager)
	switch {
	case !w.Owns("template"):
		return report.Owner{}, false
	case w.Manager == "kubeadm":
		return report.Owner{Tool: "kubeadm", Certainty: report.Likely, Reverts: report.RevertsLater, Does: "puts its own template back with the next kubeadm upgrade"}, true
	case w.Manager == "Terraform" || w.Manager == "HashiCorp" || strings.HasPrefix(w.Manager, "pulumi-kubernetes"):
		return report.Owner{Tool: name, Certainty: report.Likely, Reverts: report.RevertsLater, Does: "puts its own template back with its next run", Instead: []report.Command{do("", "change it where that reads from")}}, true
	case w.Applies:
		return report.Owner{Tool: "server-side apply", Object: report.Textf("by %s", name), Certainty: report.Certain, Reverts: report.RevertsConflict,
			Does: "fails with a conflict on what is changed here when it is run again, unless it forces", Instead: []report.Command{do("", "change the manifest that it applies")}}, true
	case strings.HasSuffix(w.Manager, "-operator") || w.Manager == "operator" || strings.HasSuffix(w.Manager, "-controller") && w.Manager != "kube-controller-manager":
		return report.Owner{Tool: name, Certainty: report.Hint, Reverts: report.RevertsAtOnce, Does: "wrote the template, and its name is that of an operator: it may put it back"}, true
	}
	return report.Owner{}, false
}
