package owners

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// known is an operator of which more is known than its custom resource.
type known struct {
	name       string
	deployment string // of the operator itself
	namespace  string // "" for that of the object
	ignore     string // annotation by which it leaves one object alone
	pause      string // merge patch on the custom resource that pauses it, %s is its name
}

// operators by the API group and kind of the custom resource that owns.
var knownOperators = map[schema.GroupKind]known{
	// Source: tigera/operator pkg/controller/utils (unsupportedIgnoreAnnotation), docs/dev_guidelines.md.
	{Group: "operator.tigera.io", Kind: "Installation"}: {name: "tigera-operator", deployment: "tigera-operator", namespace: "tigera-operator", ignore: "unsupported.operator.tigera.io/ignore=true"},
	// Source: NVIDIA/gpu-operator deployments/gpu-operator/templates/operator.yaml.
	{Group: "nvidia.com", Kind: "ClusterPolicy"}: {name: "gpu-operator", deployment: "gpu-operator"},
	{Group: "nvidia.com", Kind: "NVIDIADriver"}:  {name: "gpu-operator", deployment: "gpu-operator"},
	// Source: rook.io docs, "Ceph Upgrades": scale the operator to 0.
	{Group: "ceph.rook.io", Kind: "CephCluster"}: {name: "rook-ceph-operator", deployment: "rook-ceph-operator"},
	// Source: prometheus-operator Documentation/api-reference: spec.paused.
	{Group: "monitoring.coreos.com", Kind: "Prometheus"}:   {name: "prometheus-operator", pause: `kubectl patch prometheus.monitoring.coreos.com %s --type=merge -p '{"spec":{"paused":true}}'`},
	{Group: "monitoring.coreos.com", Kind: "Alertmanager"}: {name: "prometheus-operator", pause: `kubectl patch alertmanager.monitoring.coreos.com %s --type=merge -p '{"spec":{"paused":true}}'`},
	// Source: openshift/cluster-network-operator README.
	{Group: "operator.openshift.io", Kind: "Network"}: {name: "cluster-network-operator", deployment: "network-operator", namespace: "openshift-network-operator"},
}

// operators finds who made the object as a part of another one: its controller, by
// owner reference. References without controller=true only say with what it is removed.
func operators(x *object) []report.Owner {
	for _, r := range x.refs {
		if r.Controller != nil && *r.Controller && r.Kind != "ClusterServiceVersion" {
			return []report.Owner{operator(x, r)}
		}
	}
	return nil
}

var kindName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func operator(x *object, r metav1.OwnerReference) report.Owner {
	gv, _ := schema.ParseGroupVersion(r.APIVersion)
	k := knownOperators[schema.GroupKind{Group: gv.Group, Kind: r.Kind}]
	o := report.Owner{Tool: "operator", Object: report.Textf("of %s %s", r.Kind, r.Name), Code: report.ManagedByOperator, Certainty: report.Certain, Reverts: report.RevertsAtOnce,
		Does:     "puts its own template back within seconds to minutes",
		Evidence: []report.Evidence{{Source: report.Textf("%s.metadata.ownerReferences", x.kind), Value: report.Textf("%s %s (%s), controller=true", r.Kind, r.Name, r.APIVersion)}}}
	if k.name != "" {
		o.Tool, o.Object = report.Text(k.name), report.Textf("(%s %s)", r.Kind, r.Name)
	}
	for i := range x.writers {
		if w := &x.writers[i]; w.Owns("template") && !ByHand(w.Manager) && w.Manager != "helm" && w.Manager != "kube-controller-manager" {
			x.seen(&o, w)
			break
		}
	}
	// A reference names an object of the same namespace or of none; kubectl does not
	// mind a namespace that the kind does not have.
	resource := "<kind>"
	if kindName.MatchString(r.Kind) && (gv.Group == "" || named(gv.Group)) {
		resource = strings.TrimSuffix(strings.ToLower(r.Kind)+"."+gv.Group, ".")
	}
	at := " -n " + word(x.namespace, "namespace")
	custom := resource + " " + word(r.Name, "name") + at
	o.Instead = run("kubectl edit " + custom)
	if k.pause != "" {
		pause := fmt.Sprintf(k.pause, word(r.Name, "name")+at)
		o.Hold = append(o.Hold, do(pause, ""))
		o.GiveBack = append(o.GiveBack, do(strings.Replace(pause, "true", "false", 1), ""))
	}
	if k.ignore != "" {
		o.Hold = append(o.Hold, do("kubectl annotate "+x.self()+" "+k.ignore, "it then leaves this one object alone"))
		key, _, _ := strings.Cut(k.ignore, "=")
		o.GiveBack = append(o.GiveBack, do("kubectl annotate "+x.self()+" "+key+"-", ""))
	}
	if k.deployment != "" {
		ns := k.namespace
		if ns == "" {
			ns = word(x.namespace, "namespace")
		}
		o.Hold = append(o.Hold, do("kubectl scale deployment "+k.deployment+" -n "+ns+" --replicas=0", "the last resort"))
		o.GiveBack = append(o.GiveBack, do("kubectl scale deployment "+k.deployment+" -n "+ns+" --replicas=1", "or as many as it had"))
	}
	o.Beware = sentences("scaling the operator to 0 is the last resort: everything else that it looks after stands still as well; where Helm, OLM or GitOps manages the operator, that puts its replicas back")
	if k.deployment == "" {
		o.Beware = append(o.Beware, "which Deployment the operator is, is not written on the object: kubectl get deployments -A")
	}
	if ignoredBy(x, k) {
		key, _, _ := strings.Cut(k.ignore, "=")
		o.Reverts, o.Does, o.Hold, o.Instead = report.RevertsNot, report.Textf("was told to leave this object alone (%s)", k.ignore), nil, nil
		o.GiveBack = run("kubectl annotate " + x.self() + " " + key + "-")
	}
	return o
}

func ignoredBy(x *object, k known) bool {
	key, value, ok := strings.Cut(k.ignore, "=")
	return ok && x.annotations[key] == value
}

// Marks of the Operator Lifecycle Manager on what a ClusterServiceVersion installs.
// Source: operator-lifecycle-manager pkg/lib/ownerutil/util.go, CSVOwnerSelector.
const (
	olmOwner     = "olm.owner"
	olmKind      = "olm.owner.kind"
	olmNamespace = "olm.owner.namespace"
)

func olm(x *object) []report.Owner {
	name, in := x.labels[olmOwner], x.labels[olmNamespace]
	if name == "" || x.labels[olmKind] != "ClusterServiceVersion" {
		return nil
	}
	if in == "" {
		in = x.namespace
	}
	o := report.Owner{Tool: "Operator Lifecycle Manager", Object: report.Textf("(ClusterServiceVersion %s)", name), Code: report.ManagedByOperator,
		Certainty: report.Certain, Reverts: report.RevertsAtOnce, Does: "puts its own template back within seconds to minutes",
		Evidence: []report.Evidence{x.label(olmOwner), x.label(olmKind)},
		Instead:  run("kubectl edit clusterserviceversion.operators.coreos.com " + word(name, "name") + " -n " + word(in, "namespace")),
		Beware:   sentences("the next version of its Subscription replaces the ClusterServiceVersion: pin it with installPlanApproval: Manual")}
	x.seen(&o, x.wrote("olm", "catalog"))
	return []report.Owner{o}
}
