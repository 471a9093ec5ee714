package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

// constructHistory finds the revision of the current template among those stored,
// creates it where there is none, and gives it the highest number.
// Source: pkg/controller/daemon/update.go, constructHistory.
func (c *daemonSetController) constructHistory(ds *appsv1.DaemonSet) (cur *appsv1.ControllerRevision, old []*appsv1.ControllerRevision, err error) {
	data, err := c.revisionOf(ds)
	if err != nil {
		return nil, nil, err
	}
	var same []*appsv1.ControllerRevision
	highest := int64(0)
	for _, r := range c.w.revisions.all() {
		if r.Namespace != ds.Namespace || ownerUID(r) != string(ds.UID) {
			continue
		}
		if bytes.Equal(r.Data.Raw, data) {
			same = append(same, r)
			continue
		}
		old = append(old, r)
		highest = max(highest, r.Revision)
	}
	if len(same) == 0 {
		cur, err = c.snapshot(ds, data, highest+1)
		return cur, old, err
	}
	if cur, err = c.dedup(ds, same); err != nil {
		return nil, nil, err
	}
	if cur.Revision <= highest {
		cur, err = c.w.revisions.update(controllerManager, keyOf(cur), func(r *appsv1.ControllerRevision) bool {
			r.Revision = highest + 1
			return true
		})
	}
	return cur, old, err
}

// revisionOf is the serialised template; it is worked out once for a generation.
func (c *daemonSetController) revisionOf(ds *appsv1.DaemonSet) ([]byte, error) {
	known := c.data[ds.UID]
	if known.generation == ds.Generation {
		return known.data, nil
	}
	data, err := revisionData(&ds.Spec.Template)
	if err == nil {
		c.data[ds.UID] = templateData{ds.Generation, data}
	}
	return data, err
}

type templateData struct {
	generation int64
	data       []byte
}

// revisionData is the strategic merge patch that puts a template back.
func revisionData(t *corev1.PodTemplateSpec) ([]byte, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var template map[string]any
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
}

func (c *daemonSetController) snapshot(ds *appsv1.DaemonSet, data []byte, number int64) (*appsv1.ControllerRevision, error) {
	hash := templateHash(data, ds.Status.CollisionCount)
	l := maps.Clone(ds.Spec.Template.Labels)
	l[hashLabel] = hash
	r, err := c.w.revisions.create(controllerManager, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: ds.Name + "-" + hash, Namespace: ds.Namespace, Labels: l, Annotations: ds.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	})
	if !apierrors.IsAlreadyExists(err) {
		return r, err
	}
	// Another template has this name: try again with another hash.
	_, statusErr := c.w.daemonSets.updateStatus(controllerManager, keyOf(ds), func(ds *appsv1.DaemonSet) bool {
		if ds.Status.CollisionCount == nil {
			ds.Status.CollisionCount = new(int32)
		}
		*ds.Status.CollisionCount++
		return true
	})
	if statusErr != nil {
		return nil, statusErr
	}
	return nil, err
}

// templateHash stands for Kubernetes' hash of a template, which nobody can
// reproduce outside its own types and nobody should: it is read from the label.
func templateHash(data []byte, collisions *int32) string {
	h := fnv.New32a()
	h.Write(data)
	if collisions != nil {
		fmt.Fprint(h, *collisions)
	}
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// dedup keeps the highest of several revisions of one template and relabels Pods
// to it.
func (c *daemonSetController) dedup(ds *appsv1.DaemonSet, same []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	keep := slices.MaxFunc(same, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	if len(same) == 1 {
		return keep, nil
	}
	for _, p := range c.w.pods.by(c.w.podsByOwner, string(ds.UID)) {
		_, err := c.w.pods.update(controllerManager, keyOf(p), func(p *corev1.Pod) bool {
			changed := p.Labels[hashLabel] != keep.Labels[hashLabel]
			p.Labels[hashLabel] = keep.Labels[hashLabel]
			return changed
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	for _, r := range same {
		if r != keep {
			if err := c.w.revisions.remove(r, nil); err != nil {
				return nil, err
			}
		}
	}
	return keep, nil
}

// cleanupHistory deletes the oldest revisions beyond the limit that no Pod uses.
func (s *daemonSync) cleanupHistory(old []*appsv1.ControllerRevision) {
	keep := 10
	if s.ds.Spec.RevisionHistoryLimit != nil {
		keep = int(*s.ds.Spec.RevisionHistoryLimit)
	}
	surplus := len(old) - keep
	if surplus <= 0 {
		return
	}
	used := map[string]bool{}
	for _, on := range s.podsByTarget(true) {
		for _, p := range on {
			used[p.Labels[hashLabel]] = true
		}
	}
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	for _, r := range old {
		if surplus > 0 && !used[r.Labels[hashLabel]] && s.w.revisions.remove(r, nil) == nil {
			surplus--
		}
	}
}
