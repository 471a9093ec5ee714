package capture

import (
	"encoding/json"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
)

// policies stands for all that discovery would have found.
const policies cluster.Resource = "networkpolicies.networking.k8s.io"

// settings are the kinds of policies and settings that the API server has, of which
// the metadata tells who changed what in place.
func (c *capture) settings() ([]kind, error) {
	var groups metav1.APIGroupList
	if err := c.discovery("/apis", &groups); err != nil {
		return nil, c.undiscovered(err)
	}
	var out []kind
	for _, gv := range cluster.SettingVersions(groups.Groups) {
		var list metav1.APIResourceList
		if err := c.discovery("/apis/"+gv.String(), &list); err != nil {
			if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
				continue // an aggregated API server that is not there
			}
			if err := c.undiscovered(err); err != nil {
				return nil, err
			}
			continue
		}
		for _, k := range cluster.SettingKinds(gv, list.APIResources) {
			out = append(out, kind{resource: k.Resource(), plural: k.GVR.Resource, group: gv.Group, version: gv.Version, kind: k.Kind,
				namespaced: k.Namespaced, cached: true, metadata: true})
		}
	}
	return out, nil
}

// discovery reads a document of the API server about itself.
func (c *capture) discovery(path string, into any) error {
	body, err := c.from.Raw(c.ctx, path, url.Values{}, asJSON)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}

// undiscovered takes note of an answer that was none; the capture goes on without.
func (c *capture) undiscovered(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case !answered(err) || apierrors.IsUnauthorized(err):
		return &ReadError{policies, err}
	}
	reason, detail := classify(err)
	c.doc.NotRead = append(c.doc.NotRead, files.CapturedFailure{Resource: policies, Reason: reason, Detail: detail})
	return nil
}
