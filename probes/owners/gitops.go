package owners

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Marks of Argo CD. The tracking annotation is the default since 3.0, the label
// app.kubernetes.io/instance was before, and charts of Helm set that label too.
// Sources: argo-cd docs/user-guide/resource_tracking.md, common/common.go (ArgoCDSSAManager).
const (
	argoTracking = "argocd.argoproj.io/tracking-id"
	argoInstance = "argocd.argoproj.io/instance"
	instance     = "app.kubernetes.io/instance"
)

func argoCD(x *object) []report.Owner {
	o := report.Owner{Tool: "Argo CD", Code: report.ManagedByGitOps, Reverts: report.RevertsIfTold,
		Does: "puts its own template back within seconds where selfHeal is on, otherwise with its next sync"}
	app, ours := tracked(x, x.annotations[argoTracking])
	w := x.wrote("argocd-controller", "argocd-application-controller")
	switch {
	case ours:
		o.Certainty, o.Evidence = report.Certain, []report.Evidence{x.annotation(argoTracking)}
	case x.labels[argoInstance] != "":
		app, o.Certainty, o.Evidence = x.labels[argoInstance], report.Likely, []report.Evidence{x.label(argoInstance)}
	case w != nil:
		app, o.Certainty = x.labels[instance], report.Likely
		if app != "" {
			o.Evidence = []report.Evidence{x.label(instance)}
		}
	case x.labels[instance] != "" && !explained(x):
		app, o.Certainty, o.Evidence = x.labels[instance], report.Hint, []report.Evidence{x.label(instance)}
		o.Does = "may own it: it tracked objects by this label before 3.0, but charts of Helm set the label too"
	default:
		return nil
	}
	x.seen(&o, w)
	// With Applications in any namespace the name is <namespace>_<name>; neither can hold a "_".
	namespace, name, split := strings.Cut(app, "_")
	if !split {
		namespace, name = "", app
	}
	if app != "" && named(name) {
		o.Object = report.Textf("Application %s", strings.Trim(namespace+"/"+name, "/"))
	}
	cli, in := word(name, "application"), "argocd"
	if named(namespace) {
		cli, in = namespace+"/"+cli, namespace
	}
	o.Hold = run("argocd app set "+cli+" --sync-policy none",
		fmt.Sprintf(`kubectl patch application.argoproj.io %s -n %s --type=merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`, word(name, "application"), in))
	o.GiveBack = []report.Command{do("argocd app set "+cli+" --sync-policy automated", "with --self-heal and --auto-prune where it had them: argocd app get "+cli+" -o yaml shows it before"),
		do(fmt.Sprintf(`kubectl patch application.argoproj.io %s -n %s --type=merge -p '{"spec":{"syncPolicy":{"automated":{}}}}'`, word(name, "application"), in), "with prune and selfHeal as they were")}
	// Rolling back is refused while automated sync is on: docs/user-guide/auto_sync.md.
	o.Instead = []report.Command{do("", "revert it in Git"), do("argocd app rollback "+cli, "refused while automated sync is on")}
	o.Beware = sentences("an Application that an ApplicationSet or another Application makes gets its sync policy back from there: suspend that one",
		"the Application may be in another cluster, the one that Argo CD runs in")
	return []report.Owner{o}
}

// tracked reads "<application>:<group>/<kind>:<namespace>/<name>". An annotation that
// names another object was copied from it, and Argo CD does not count it.
func tracked(x *object, id string) (app string, ours bool) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 || parts[0] == "" {
		return "", false
	}
	// An object without a namespace in its manifest is tracked with the Application's.
	_, name, _ := strings.Cut(parts[2], "/")
	return parts[0], parts[1] == "apps/"+x.kind && name == x.name && parts[2] == x.namespace+"/"+x.name
}

// explained tells whether the label app.kubernetes.io/instance is what a chart or
// another owner would set as well.
func explained(x *object) bool {
	if x.labels[managedBy] != "" || x.labels[helmChart] != "" || x.annotations[helmRelease] != "" {
		return true
	}
	for _, r := range x.refs {
		if r.Controller != nil && *r.Controller {
			return true
		}
	}
	return x.labels[fluxName] != "" || x.labels[fluxHelmName] != "" || x.wrote("helm", "helm-controller", "kustomize-controller") != nil
}

// Marks of Flux. Sources: fluxcd.io/flux/components/kustomize/kustomizations (labels,
// "Controlling the apply behavior of resources"), …/helm/helmreleases (drift detection),
// pkg/ssa of fluxcd/pkg (field manager is the controller's name).
const (
	fluxName          = "kustomize.toolkit.fluxcd.io/name"
	fluxNamespace     = "kustomize.toolkit.fluxcd.io/namespace"
	fluxReconcile     = "kustomize.toolkit.fluxcd.io/reconcile"
	fluxApply         = "kustomize.toolkit.fluxcd.io/ssa"
	fluxHelmName      = "helm.toolkit.fluxcd.io/name"
	fluxHelmNamespace = "helm.toolkit.fluxcd.io/namespace"
	fluxDrift         = "helm.toolkit.fluxcd.io/driftDetection"
)

func fluxKustomize(x *object) []report.Owner {
	o := report.Owner{Tool: "Flux", Code: report.ManagedByGitOps, Reverts: report.RevertsPeriodically, Does: "will revert this within its interval"}
	if !flux(x, &o, "Kustomization", fluxName, fluxNamespace, "kustomize-controller") {
		return nil
	}
	name, in := word(x.labels[fluxName], "kustomization"), word(x.labels[fluxNamespace], "flux-namespace")
	o.Instead = []report.Command{do("", "revert it in Git"), do("flux reconcile kustomization "+name+" -n "+in+" --with-source", "takes over what is in Git now")}
	switch {
	case strings.EqualFold(x.mark(fluxReconcile), "disabled"):
		o.Reverts, o.Does = report.RevertsNot, "was told to leave this object alone ("+fluxReconcile+"=disabled)"
		o.GiveBack = run("kubectl annotate " + x.self() + " " + fluxReconcile + "-")
		return []report.Owner{o}
	case strings.EqualFold(x.mark(fluxApply), "ignore"), strings.EqualFold(x.mark(fluxApply), "ifnotpresent"):
		o.Reverts, o.Does = report.RevertsNot, report.Textf("was told not to apply over this object (%s=%s)", fluxApply, x.mark(fluxApply))
		return []report.Owner{o}
	}
	o.Hold = run("flux suspend kustomization "+name+" -n "+in,
		fmt.Sprintf(`kubectl patch kustomization.kustomize.toolkit.fluxcd.io %s -n %s --type=merge -p '{"spec":{"suspend":true}}'`, name, in),
		"kubectl annotate "+x.self()+" "+fluxReconcile+"=disabled")
	o.GiveBack = run("flux resume kustomization "+name+" -n "+in,
		fmt.Sprintf(`kubectl patch kustomization.kustomize.toolkit.fluxcd.io %s -n %s --type=merge -p '{"spec":{"suspend":false}}'`, name, in),
		"kubectl annotate "+x.self()+" "+fluxReconcile+"-")
	o.Beware = sentences("a Kustomization that another one applies is resumed by it where suspend stands in Git")
	return []report.Owner{o}
}

func fluxHelm(x *object) []report.Owner {
	o := report.Owner{Tool: "Flux", Code: report.ManagedByGitOps, Reverts: report.RevertsIfTold,
		Does: "will revert this within its interval where its driftDetection is enabled, otherwise with the next change of chart or values"}
	if !flux(x, &o, "HelmRelease", fluxHelmName, fluxHelmNamespace, "helm-controller") {
		return nil
	}
	if strings.EqualFold(x.mark(fluxDrift), "disabled") {
		o.Reverts, o.Does = report.RevertsLater, "leaves a change by hand until the next change of chart or values ("+fluxDrift+"=disabled)"
	}
	name, in := word(x.labels[fluxHelmName], "helmrelease"), word(x.labels[fluxHelmNamespace], "flux-namespace")
	o.Hold = run("flux suspend helmrelease "+name+" -n "+in,
		fmt.Sprintf(`kubectl patch helmrelease.helm.toolkit.fluxcd.io %s -n %s --type=merge -p '{"spec":{"suspend":true}}'`, name, in))
	o.GiveBack = run("flux resume helmrelease "+name+" -n "+in,
		fmt.Sprintf(`kubectl patch helmrelease.helm.toolkit.fluxcd.io %s -n %s --type=merge -p '{"spec":{"suspend":false}}'`, name, in))
	o.Instead = []report.Command{do("", "revert chart version or values in Git")}
	o.Beware = sentences("after a helm rollback it upgrades again, because the release is no longer the one that it made: suspend it before")
	return []report.Owner{o}
}

// flux fills in what both of its controllers have in common: two labels of an origin.
func flux(x *object, o *report.Owner, kind, nameLabel, namespaceLabel, manager string) bool {
	w := x.wrote(manager)
	name, in := x.labels[nameLabel], x.labels[namespaceLabel]
	switch {
	case named(name, in):
		o.Certainty, o.Evidence = report.Certain, []report.Evidence{x.label(nameLabel), x.label(namespaceLabel)}
		o.Object = report.Textf("%s %s/%s", kind, in, name)
	case named(name):
		o.Certainty, o.Evidence = report.Likely, []report.Evidence{x.label(nameLabel)}
		o.Object = report.Textf("%s %s", kind, name)
	case w != nil:
		o.Certainty, o.Object = report.Likely, report.Text(kind)
	default:
		return false
	}
	x.seen(o, w)
	return true
}

// Marks of Config Sync: both must be there, and the second must name the object.
// Source: kpt-config-sync pkg/syncer/differ/managed.go, ManagedByConfigSync.
const (
	configManaged  = "configmanagement.gke.io/managed"
	configResource = "configsync.gke.io/resource-id"
)

func configSync(x *object) []report.Owner {
	id := "apps_" + strings.ToLower(x.kind) + "_" + x.namespace + "_" + x.name
	if x.annotations[configManaged] != "enabled" || x.annotations[configResource] != id {
		return nil
	}
	o := report.Owner{Tool: "Config Sync", Code: report.ManagedByGitOps, Certainty: report.Certain, Reverts: report.RevertsAtOnce,
		Does: "puts its own template back within seconds", Evidence: []report.Evidence{x.annotation(configManaged), x.annotation(configResource)},
		Instead: []report.Command{do("", "revert it in Git, or stop its management there with the annotation "+configManaged+": disabled")}}
	x.seen(&o, x.wrote("configsync", "configmanagement"))
	return []report.Owner{o}
}

// Marks of kapp, by hand or through kapp-controller.
// Source: carvel.dev/kapp docs, "Applying resources": labels and annotations.
const (
	kappApp      = "kapp.k14s.io/app"
	kappIdentity = "kapp.k14s.io/identity"
)

func kapp(x *object) []report.Owner {
	// "v1;<namespace>/<group>/<Kind>/<name>;<apiVersion>"
	if x.labels[kappApp] == "" || !strings.HasPrefix(x.annotations[kappIdentity], fmt.Sprintf("v1;%s/apps/%s/%s;", x.namespace, x.kind, x.name)) {
		return nil
	}
	o := report.Owner{Tool: "kapp", Code: report.ManagedByGitOps, Certainty: report.Certain, Reverts: report.RevertsIfTold,
		Does:     "puts its own template back with its next deploy; kapp-controller deploys every few minutes",
		Evidence: []report.Evidence{x.label(kappApp), x.annotation(kappIdentity)},
		Hold:     run("kctrl app pause -a <app> -n <namespace>"), GiveBack: run("kctrl app kick -a <app> -n <namespace>"),
		Instead: []report.Command{do("", "change it where its App reads from"), do("kubectl get apps.kappctrl.k14s.io -A", "names the App")}}
	return []report.Owner{o}
}
