package cluster

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SettingKind is a kind of which the metadata is read, because a change of its
// objects takes effect without a rollout.
type SettingKind struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Resource is its name in a snapshot's NotRead; the group tells kinds of one name apart.
func (k SettingKind) Resource() Resource { return Resource(k.GVR.GroupResource().String()) }

// settingGroups are the API groups in which policies and settings of network agents
// are kept. Of Calico's two, which show the same objects, the first that exists is read.
var settingGroups = []string{
	"networking.k8s.io", "policy.networking.k8s.io", "admissionregistration.k8s.io",
	"crd.projectcalico.org", "projectcalico.org", "cilium.io", "crd.antrea.io",
}

// SettingVersions picks, of the groups that an API server has, those to look into, at
// the version that it prefers.
func SettingVersions(groups []metav1.APIGroup) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, name := range settingGroups {
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == name })
		if i < 0 || name == "projectcalico.org" && slices.ContainsFunc(out, func(gv schema.GroupVersion) bool { return gv.Group == "crd.projectcalico.org" }) {
			continue
		}
		out = append(out, schema.GroupVersion{Group: name, Version: groups[i].PreferredVersion.Version})
	}
	return out
}

// SettingKinds picks, of what discovery lists of a group, the kinds that take effect
// in place. Webhook configurations are not among them: they are read whole.
func SettingKinds(gv schema.GroupVersion, resources []metav1.APIResource) []SettingKind {
	var out []SettingKind
	for i := range resources {
		r := &resources[i]
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !TakesEffectInPlace(r.Kind) || strings.HasSuffix(r.Kind, "WebhookConfiguration") {
			continue
		}
		out = append(out, SettingKind{gv.WithResource(r.Name), r.Kind, r.Namespaced})
	}
	return out
}
