package watch

import (
	"context"
	"encoding/json"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// discover finds out which of them the API server has.
func (g *settings) discover(ctx context.Context) ([]cluster.SettingKind, error) {
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	var groups metav1.APIGroupList
	if err := g.discovery(ctx, "/apis", &groups); err != nil {
		return nil, err
	}
	out := []cluster.SettingKind{}
	for _, gv := range cluster.SettingVersions(groups.Groups) {
		var list metav1.APIResourceList
		if err := g.discovery(ctx, "/apis/"+gv.String(), &list); err != nil {
			if refusal(err) != "" {
				continue // an aggregated API server that is not there
			}
			return nil, err
		}
		out = append(out, cluster.SettingKinds(gv, list.APIResources)...)
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
