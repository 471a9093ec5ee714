package owners

import (
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Marks of Helm, which adopts an object only where all three are right.
// Sources: helm pkg/action/validate.go (appManagedByLabel, helmReleaseNameAnnotation),
// pkg/kube/client.go (ManagedFieldsManager: the program's name, "helm").
const (
	managedBy     = "app.kubernetes.io/managed-by"
	helmChart     = "helm.sh/chart"
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

func helm(x *object) []report.Owner {
	o := report.Owner{Tool: "Helm", Code: report.ManagedByHelm, Reverts: report.RevertsLater,
		Does: "leaves a change by hand until the next helm upgrade or rollback, and its history still calls the present release deployed"}
	release, in := x.annotations[helmRelease], x.annotations[helmNamespace]
	w := x.wrote("helm")
	labelled := x.labels[managedBy] == "Helm"
	if release != "" {
		o.Evidence = append(o.Evidence, x.annotation(helmRelease))
	}
	if in != "" {
		o.Evidence = append(o.Evidence, x.annotation(helmNamespace))
	} else {
		in = x.namespace // a release may hold objects of other namespaces, seldom of workloads
	}
	if labelled {
		o.Evidence = append(o.Evidence, x.label(managedBy))
	}
	switch {
	case release != "" && labelled:
		o.Certainty = report.Certain
	case release != "", w != nil:
		o.Certainty = report.Likely
	case labelled:
		// Charts set the label themselves, and Argo CD and others render charts without Helm.
		o.Certainty, o.Does = report.Hint, "may own it: the chart sets this label, whoever rendered it"
	default:
		return nil
	}
	x.seen(&o, w)
	if named(release) {
		o.Object = report.Textf("release %s/%s", in, release)
	}
	name, at := word(release, "release"), " -n "+word(in, "namespace")
	o.Instead = []report.Command{do("helm rollback "+name+at+" <revision>", "to the last good revision of the release"), do("helm history "+name+at, "lists the revisions")}
	if !named(release) {
		o.Instead = append(o.Instead, do("helm list"+at, "names the release"))
	}
	o.Beware = sentences("helm rollback also puts the update strategy back where the chart sets one: a freeze ends with it, and the rollback rolls")
	if in == "kube-system" && strings.HasPrefix(release, "rke2-") {
		// Source: docs.rke2.io/helm: packaged charts are HelmCharts of the server, changed by a HelmChartConfig.
		o.Beware = append(o.Beware, report.Textf("RKE2 installs this chart itself and upgrades it when a server starts: kubectl get helmchart,helmchartconfig -n kube-system %s", word(release, "release")))
	}
	return []report.Owner{o}
}
