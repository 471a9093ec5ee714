package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// checkNames refuses names that no API server would have accepted, since names
// become part of the commands that are shown for copying.
func checkNames(r Request) error {
	if r.Workload.Kind != "DaemonSet" {
		return fmt.Errorf("%s works on DaemonSets so far, not on %s", r.Kind, r.Workload)
	}
	names := []string{string(r.Workload.Namespace), string(r.Workload.Name)}
	if r.Kind == DeletePod {
		names = append(names, r.Pod)
	}
	for _, n := range names {
		if e := validation.IsDNS1123Subdomain(n); len(e) > 0 {
			return fmt.Errorf("%q is no name of a Kubernetes object: %s", n, e[0])
		}
	}
	return nil
}

func daemonSetRef(k report.WorkloadKey) Ref {
	return Ref{Group: "apps", Version: "v1", Resource: "daemonsets", Kind: "DaemonSet", Namespace: string(k.Namespace), Name: string(k.Name)}
}

func podRef(namespace, name string) Ref {
	return Ref{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: namespace, Name: name}
}

// daemonSet is a DaemonSet as the API server sent it just now.
type daemonSet struct {
	*appsv1.DaemonSet
	strategy json.RawMessage // spec.updateStrategy verbatim
}

func readDaemonSet(ctx context.Context, api API, s *cluster.Snapshot, k report.WorkloadKey) (daemonSet, error) {
	d := daemonSet{DaemonSet: &appsv1.DaemonSet{}}
	o, err := api.Get(ctx, daemonSetRef(k))
	if err != nil {
		return d, fmt.Errorf("read %s: %w", k, err)
	}
	var raw struct {
		Spec struct {
			UpdateStrategy json.RawMessage `json:"updateStrategy"`
		} `json:"spec"`
	}
	if err := errors.Join(json.Unmarshal(o.Raw, d.DaemonSet), json.Unmarshal(o.Raw, &raw)); err != nil {
		return d, fmt.Errorf("read %s: the answer is no DaemonSet: %w", k, err)
	}
	d.strategy = raw.Spec.UpdateStrategy
	if d.DeletionTimestamp != nil {
		return d, fmt.Errorf("%s is being deleted since %s: nothing can be changed on it any more", k, d.DeletionTimestamp.UTC().Format("15:04:05"))
	}
	if seen := seenDaemonSet(s, k); seen != nil && seen.UID != d.UID {
		return d, fmt.Errorf("%s was deleted and made anew since this picture was taken: wait for the new picture", k)
	}
	return d, nil
}

// seenDaemonSet is the DaemonSet as the snapshot has it, or nil.
func seenDaemonSet(s *cluster.Snapshot, k report.WorkloadKey) *appsv1.DaemonSet {
	i := slices.IndexFunc(s.DaemonSets, func(d *appsv1.DaemonSet) bool {
		return d.Namespace == string(k.Namespace) && d.Name == string(k.Name)
	})
	if i < 0 {
		return nil
	}
	return s.DaemonSets[i]
}

// observed returns an error until the controller has acted on the object as it
// is: before that, the newest stored revision is not the template's, and "the one
// before" would be one too far back.
func (d daemonSet) observed() error {
	if d.Status.ObservedGeneration < d.Generation {
		return fmt.Errorf("the DaemonSet controller has seen generation %d of %s/%s but not yet %d, so its revisions are not up to date: wait until it has, or look whether kube-controller-manager runs",
			d.Status.ObservedGeneration, d.Namespace, d.Name, d.Generation)
	}
	return nil
}

// revision is a stored revision with its template.
type revision struct {
	number   int64
	name     string
	hash     string
	raw      json.RawMessage // spec.template verbatim, without the $patch directive
	template corev1.PodTemplateSpec
	drifted  bool // stored in a form that servers from 1.34 on do not write
}

// parseRevision reads {"spec":{"template":{…,"$patch":"replace"}}}.
// Source: pkg/controller/daemon/update.go, getPatch.
func parseRevision(r *appsv1.ControllerRevision) (revision, error) {
	out := revision{number: r.Revision, name: r.Name, hash: r.Labels[cluster.RevisionHash]}
	var data struct {
		Spec struct {
			Template map[string]json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil || data.Spec.Template == nil {
		return out, fmt.Errorf("revision %d (%s) holds no template that can be read", r.Revision, r.Name)
	}
	out.drifted = strings.Contains(string(data.Spec.Template["metadata"]), `"creationTimestamp":null`)
	delete(data.Spec.Template, "$patch")
	var err error
	if out.raw, err = json.Marshal(data.Spec.Template); err == nil {
		err = json.Unmarshal(out.raw, &out.template)
	}
	if err != nil {
		return out, fmt.Errorf("revision %d (%s) holds no template that can be read: %w", r.Revision, r.Name, err)
	}
	return out, nil
}

// readRevision reads the revision of that number as it is now: the snapshot says
// which object it is, the API server what is in it.
func readRevision(ctx context.Context, api API, s *cluster.Snapshot, ds *appsv1.DaemonSet, number int64) (revision, error) {
	stored := s.RevisionsOf(ds.UID)
	i := slices.IndexFunc(stored, func(r *appsv1.ControllerRevision) bool { return r.Revision == number })
	if i < 0 {
		return revision{}, fmt.Errorf("%s/%s has no revision %d; stored: %s", ds.Namespace, ds.Name, number, numbers(stored))
	}
	seen := stored[i]
	o, err := api.Get(ctx, Ref{Group: "apps", Version: "v1", Resource: "controllerrevisions", Kind: "ControllerRevision", Namespace: seen.Namespace, Name: seen.Name})
	switch {
	case errors.Is(err, ErrForbidden):
		return parseRevision(seen) // listing them was allowed, and their data never change
	case errors.Is(err, ErrNotFound):
		return revision{}, fmt.Errorf("revision %d (%s) has been removed meanwhile; stored: %s", number, seen.Name, numbers(slices.Delete(slices.Clone(stored), i, i+1)))
	case err != nil:
		return revision{}, fmt.Errorf("read revision %d: %w", number, err)
	}
	fresh := &appsv1.ControllerRevision{}
	if err := json.Unmarshal(o.Raw, fresh); err != nil {
		return revision{}, fmt.Errorf("read revision %d: %w", number, err)
	}
	if fresh.Revision != number {
		return revision{}, fmt.Errorf("%s was revision %d and is %d now: look at the revisions again", seen.Name, number, fresh.Revision)
	}
	return parseRevision(fresh)
}

func numbers(stored []*appsv1.ControllerRevision) string {
	var out []string
	for _, r := range stored {
		out = append(out, fmt.Sprint(r.Revision))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// operation is one operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch makes a JSON Patch that applies only to the object as it was read: same
// UID, same generation. A resourceVersion would move with every status write and
// conflict always while a rollout is running.
func patch(ds *appsv1.DaemonSet, ops ...operation) json.RawMessage {
	return mustJSON(append([]operation{
		{"test", "/metadata/uid", ds.UID},
		{"test", "/metadata/generation", ds.Generation},
	}, ops...))
}

// mustJSON writes values of this package's own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
