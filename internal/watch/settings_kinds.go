package watch

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// settingKind is a kind of which the metadata is read.
type settingKind struct {
	gvr  schema.GroupVersionResource
	kind string
}

// settingGroups are the API groups in which policies and settings of network agents
// are kept. Of Calico's two, which show the same objects, the first that exists is read.
var settingGroups = []string{
	"networking.k8s.io", "policy.networking.k8s.io", "admissionregistration.k8s.io",
	"crd.projectcalico.org", "projectcalico.org", "cilium.io", "crd.antrea.io",
}

// discover finds out which of them the API server has.
func (g *settings) discover(ctx context.Context) ([]settingKind, error) {
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	var groups metav1.APIGroupList
	if err := g.discovery(ctx, "/apis", &groups); err != nil {
		return nil, err
	}
	out := []settingKind{}
	for _, gv := range settingVersions(groups.Groups) {
		var list metav1.APIResourceList
		if err := g.discovery(ctx, "/apis/"+gv.String(), &list); err != nil {
			if refusal(err) != "" {
				continue // an aggregated API server that is not there
			}
			return nil, err
		}
		out = append(out, settingKindsOf(gv, list.APIResources)...)
	}
	return out, nil
}

// discovery reads a document of the API server about itself.
func (g *settings) discovery(ctx context.Context, path string, into any) error {
	body, err := g.src.conn.Raw(ctx, path, url.Values{}, "application/json")
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}

// settingVersions picks the groups to look at, at the version that the API server prefers.
func settingVersions(groups []metav1.APIGroup) []schema.GroupVersion {
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

// settingKindsOf picks the kinds that take effect in place. Webhook configurations
// are read whole while nodes fail, and of others a list must be allowed.
func settingKindsOf(gv schema.GroupVersion, resources []metav1.APIResource) []settingKind {
	var out []settingKind
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !cluster.TakesEffectInPlace(r.Kind) || strings.HasSuffix(r.Kind, "WebhookConfiguration") {
			continue
		}
		out = append(out, settingKind{gv.WithResource(r.Name), r.Kind})
	}
	return out
}
