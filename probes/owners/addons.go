package owners

import (
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Marks of the add-on manager (kube-up, GKE, older AKS) and of AKS.
// Sources: kubernetes cluster/addons/addon-manager/README.md and kube-addons.sh (a look
// every 60 s); learn.microsoft.com/azure/aks/faq ("AKS managed components").
const (
	addonMode    = "addonmanager.kubernetes.io/mode"
	gkeComponent = "components.gke.io/component-name"
	aksManaged   = "kubernetes.azure.com/managedby"
)

func addonManagers(x *object) []report.Owner {
	aks := x.labels[aksManaged] == "aks"
	mode := x.labels[addonMode]
	o := report.Owner{Tool: "add-on manager", Code: report.ManagedByOperator, Certainty: report.Certain, Reverts: report.RevertsPeriodically,
		Does: "puts its own template back within a minute or so"}
	switch mode {
	case "Reconcile":
		o.Evidence = []report.Evidence{x.label(addonMode)}
		o.Instead = []report.Command{do("", "change its manifest in /etc/kubernetes/addons on the control-plane nodes")}
	case "EnsureExists":
		o.Evidence, o.Code, o.Reverts = []report.Evidence{x.label(addonMode)}, "", report.RevertsNot
		o.Does = "only makes this object anew where it is missing (EnsureExists)"
	default:
		if !aks {
			return nil
		}
	}
	switch {
	case aks:
		o.Tool, o.Evidence = "AKS add-on manager", append(o.Evidence, x.label(aksManaged))
		if o.Reverts != report.RevertsNot {
			o.Does = "puts its own template back within minutes"
			o.Instead = []report.Command{do("az aks addon list -g <resource-group> -n <cluster>", "what can be set; the rest is for the provider's support")}
		}
	case x.annotations[gkeComponent] != "":
		o.Tool, o.Object, o.Evidence = "GKE add-on manager", report.Textf("(%s)", x.annotations[gkeComponent]), append(o.Evidence, x.annotation(gkeComponent))
		if o.Reverts != report.RevertsNot {
			o.Instead = []report.Command{do("gcloud container clusters describe <cluster>", "its addonsConfig is what can be set; the rest is for the provider's support")}
		}
	}
	x.seen(&o, x.wrote("kube-addon-manager", "addon-manager", "kubectl-client-side-apply"))
	return []report.Owner{o}
}

// eksAddons are the names of EKS add-ons by their workloads.
// Source: docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html.
var eksAddons = map[string]string{
	"aws-node": "vpc-cni", "kube-proxy": "kube-proxy", "coredns": "coredns", "ebs-csi-node": "aws-ebs-csi-driver", "ebs-csi-controller": "aws-ebs-csi-driver",
	"efs-csi-node": "aws-efs-csi-driver", "efs-csi-controller": "aws-efs-csi-driver", "eks-pod-identity-agent": "eks-pod-identity-agent",
	"eks-node-monitoring-agent": "eks-node-monitoring-agent", "snapshot-controller": "snapshot-controller", "metrics-server": "metrics-server",
}

// amazonEKS finds an add-on that EKS manages, by its writes: the labels on it are the
// same where somebody installed it by hand.
// Source: docs.aws.amazon.com/eks/latest/userguide/kubernetes-field-management.html.
func amazonEKS(x *object) []report.Owner {
	w := x.wrote("eks")
	if w == nil {
		return nil
	}
	addon := word(eksAddons[x.name], "add-on")
	o := report.Owner{Tool: "EKS add-on", Object: report.Text(strings.Trim(addon, "<>")), Code: report.ManagedByOperator, Certainty: report.Likely, Reverts: report.RevertsLater,
		Does: "may put its own values back, at the latest when the add-on is updated",
		Instead: []report.Command{do("aws eks update-addon --cluster-name <cluster> --addon-name "+addon+" --addon-version <version> --resolve-conflicts PRESERVE", "back to the version before"),
			do("aws eks describe-addon --cluster-name <cluster> --addon-name "+addon, "shows the version and its configuration")}}
	if w.Applies && w.Owns("template") {
		o.Certainty = report.Certain
	}
	if eksAddons[x.name] == "" {
		o.Object = ""
	}
	x.seen(&o, w)
	return []report.Owner{o}
}

// Marks of wrangler, by which k3s, RKE2, Rancher and Fleet apply sets of objects.
// Sources: rancher/wrangler pkg/apply/desiredset.go (LabelGVK and the others), k3s
// pkg/deploy/controller.go (Addon), docs.k3s.io "Packaged Components" (.skip files).
const (
	objectSet          = "objectset.rio.cattle.io/id"
	objectSetKind      = "objectset.rio.cattle.io/owner-gvk"
	objectSetName      = "objectset.rio.cattle.io/owner-name"
	objectSetNamespace = "objectset.rio.cattle.io/owner-namespace"
)

func rancher(x *object) []report.Owner {
	version, kind, ok := strings.Cut(x.annotations[objectSetKind], ", Kind=")
	name, in := x.annotations[objectSetName], x.annotations[objectSetNamespace]
	switch {
	case ok && kind == "Addon" && strings.HasPrefix(version, "k3s.cattle.io/"):
		o := report.Owner{Tool: "k3s or RKE2 server", Object: report.Textf("(Addon %s)", name), Code: report.ManagedByOperator, Certainty: report.Certain, Reverts: report.RevertsLater,
			Does:     "puts its own template back when its manifest changes and when a server starts",
			Evidence: []report.Evidence{x.annotation(objectSetKind), x.annotation(objectSetName)},
			Instead:  []report.Command{do("touch /var/lib/rancher/k3s/server/manifests/"+word(name, "addon")+".yaml.skip", "on every server (rke2 in place of k3s with RKE2): it then leaves the object alone")}}
		x.seen(&o, x.wrote("deploy@"+x.name, "k3s", "rke2"))
		return []report.Owner{o}
	case ok && kindName.MatchString(kind):
		if kind == "" {
			return nil
		}
		group, _, _ := strings.Cut(version, "/")
		resource := strings.ToLower(kind)
		if named(group) {
			resource += "." + group
		}
		o := report.Owner{Tool: "operator", Object: report.Textf("of %s %s", kind, strings.Trim(in+"/"+name, "/")), Code: report.ManagedByOperator, Certainty: report.Likely, Reverts: report.RevertsAtOnce,
			Does:     "puts its own template back when it next looks at that object",
			Evidence: []report.Evidence{x.annotation(objectSetKind), x.annotation(objectSetName)},
			Instead:  run("kubectl edit " + resource + " " + word(name, "name") + " -n " + word(in, "namespace"))}
		return []report.Owner{o}
	case x.annotations[objectSet] != "" && x.annotations[objectSetKind] == "" && x.annotations[helmRelease] != "":
		// Source: rancher/fleet internal/cmd/agent/deployer/applied (GetSetID): a set without an owner, deployed by Helm.
		return []report.Owner{{Tool: "Rancher Fleet", Object: report.Textf("(set %s)", x.annotations[objectSet]), Code: report.ManagedByGitOps, Certainty: report.Likely, Reverts: report.RevertsIfTold,
			Does:     "puts its own template back where correctDrift is enabled, otherwise with its next deployment",
			Evidence: []report.Evidence{x.annotation(objectSet), x.annotation(helmRelease)},
			Hold:     run(`kubectl patch gitrepo.fleet.cattle.io <gitrepo> -n <workspace> --type=merge -p '{"spec":{"paused":true}}'`),
			GiveBack: run(`kubectl patch gitrepo.fleet.cattle.io <gitrepo> -n <workspace> --type=merge -p '{"spec":{"paused":false}}'`),
			Instead:  []report.Command{do("", "revert it in Git")},
			Beware:   sentences("the GitRepo is in the cluster of the Fleet manager")}}
	}
	return nil
}
