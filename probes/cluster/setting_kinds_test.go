package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKindsThatTakeEffectInPlaceAreFoundByDiscovery(t *testing.T) {
	t.Parallel()
	group := func(name, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	var got []string
	for _, gv := range SettingVersions([]metav1.APIGroup{group("apps", "v1"), group("projectcalico.org", "v3"), group("crd.projectcalico.org", "v1"), group("cilium.io", "v2")}) {
		got = append(got, gv.String())
	}
	if strings.Join(got, " ") != "crd.projectcalico.org/v1 cilium.io/v2" {
		t.Errorf("groups %v", got)
	}
	can := metav1.Verbs{"get", "list"}
	got = nil
	for _, k := range SettingKinds(schema.GroupVersion{Group: "cilium.io", Version: "v2"}, []metav1.APIResource{
		{Name: "ciliumnetworkpolicies", Kind: "CiliumNetworkPolicy", Verbs: can}, {Name: "ciliumnetworkpolicies/status", Kind: "CiliumNetworkPolicy", Verbs: can},
		{Name: "ciliumendpoints", Kind: "CiliumEndpoint", Verbs: can}, {Name: "felixconfigurations", Kind: "FelixConfiguration", Verbs: can},
		{Name: "unlistedpolicies", Kind: "UnlistedPolicy", Verbs: metav1.Verbs{"create"}}, {Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Verbs: can},
	}) {
		got = append(got, string(k.Resource()))
	}
	if strings.Join(got, " ") != "ciliumnetworkpolicies.cilium.io felixconfigurations.cilium.io" {
		t.Errorf("kinds %v", got)
	}
}
