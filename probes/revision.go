package probes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// revision is a stored revision with the Pods that run it.
type revision struct {
	object        *appsv1.ControllerRevision
	hash          string
	template      *corev1.PodTemplateSpec
	sameAsCurrent bool
	sameAs        int64 // the newer revision of the same meaning, 0 without one
	pods, healthy int
	dying         int // being deleted, not yet gone
	failing       int // Pods that show a failure of their own, those being deleted among them
}

// readRevisions counts, for each stored revision, the Pods that run it and those
// of them that are Ready now on Ready nodes.
func (c *Diagnosis) readRevisions(d *daemonSet) {
	for _, o := range c.s.RevisionsOf(d.ds.UID) {
		r := revision{object: o, hash: o.Labels[cluster.RevisionHash]}
		if r.hash == "" {
			r.hash = trimName(o.Name, d.ds.Name)
		}
		if t, err := cluster.Template(o); err == nil {
			r.template = t
			r.sameAsCurrent = cluster.SameTemplate(t, &d.ds.Spec.Template)
			for i := range d.revisions {
				if newer := &d.revisions[i]; newer.template != nil && cluster.SameTemplate(newer.template, t) {
					r.sameAs = newer.object.Revision
					break
				}
			}
		}
		for _, p := range c.s.PodsOf(d.ds.UID) {
			if p.Labels[cluster.RevisionHash] != r.hash {
				continue
			}
			if failsItself(p) {
				r.failing++
			}
			if p.DeletionTimestamp != nil {
				r.dying++
				continue
			}
			r.pods++
			if n := c.nodes[p.Spec.NodeName]; n != nil && !n.failing() && cluster.PodReady(p) {
				r.healthy++
			}
		}
		d.revisions = append(d.revisions, r)
	}
}

// knownGood is the highest revision whose Pods are Ready now on Ready nodes; one
// that the verdict blames is passed over, whatever its Pods say. Revisions of the
// same meaning count as one.
func (d *daemonSet) knownGood(blamed int64) *int64 {
	for i := range d.revisions {
		r := &d.revisions[i]
		if blamed != 0 && (r.object.Revision == blamed || d.sameMeaning(r, blamed)) {
			continue
		}
		if r.healthy > 0 {
			n := r.object.Revision
			return &n
		}
	}
	return nil
}

// failsItself tells whether a Pod's containers show a failure that is not the
// node's: they cannot be started, or end and are started again.
func failsItself(p *corev1.Pod) bool {
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" && w.Reason != "" {
			return true
		}
	}
	return false
}

// fallback is the revision to go back to where none is known to be good: the highest
// one of another meaning that has no Pods that fail. Nil where there is none.
func (d *daemonSet) fallback() *int64 {
	for i := range d.revisions {
		if r := &d.revisions[i]; !r.sameAsCurrent && r.failing == 0 {
			n := r.object.Revision
			return &n
		}
	}
	return nil
}

func (d *daemonSet) sameMeaning(r *revision, number int64) bool {
	for i := range d.revisions {
		if o := &d.revisions[i]; o.object.Revision == number {
			return o.template != nil && r.template != nil && cluster.SameTemplate(o.template, r.template)
		}
	}
	return false
}

func (d *daemonSet) revision(number int64) *revision {
	for i := range d.revisions {
		if d.revisions[i].object.Revision == number {
			return &d.revisions[i]
		}
	}
	return nil
}

// revisionViews are the revisions as the report shows them.
func (d *daemonSet) revisionViews(knownGood *int64) []report.Revision {
	var out []report.Revision
	for i := range d.revisions {
		r := &d.revisions[i]
		v := report.Revision{Number: r.object.Revision, Name: report.Clean(r.object.Name), CreatedAt: report.At(r.object.CreationTimestamp.Time),
			Current: r.object == d.current, KnownGood: knownGood != nil && *knownGood == r.object.Revision, Pods: r.pods, Healthy: r.healthy, SameAs: r.sameAs}
		if r.template != nil {
			for _, ct := range append(slices.Clone(r.template.Spec.InitContainers), r.template.Spec.Containers...) {
				v.Images = append(v.Images, report.Clean(ct.Image))
			}
			if !r.sameAsCurrent {
				v.Diff = templateDiff(&d.ds.Spec.Template, r.template)
			}
		}
		out = append(out, v)
	}
	return out
}

// templateDiff lists the fields in which two templates differ, "- " as in the
// first and "+ " as in the second, by path. Values of environment variables that
// look secret are hidden.
func templateDiff(from, to *corev1.PodTemplateSpec) []report.Text {
	a, b := flatten(from), flatten(to)
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	sorted := make([]string, 0, len(keys))
	for k := range keys {
		if a[k] != b[k] {
			sorted = append(sorted, k)
		}
	}
	sort.Strings(sorted)
	var out []report.Text
	for _, k := range sorted {
		if v, ok := a[k]; ok {
			out = append(out, report.Textf("- %s: %s", k, hideSecret(k, v)))
		}
		if v, ok := b[k]; ok {
			out = append(out, report.Textf("+ %s: %s", k, hideSecret(k, v)))
		}
	}
	return out
}

// hideSecret hides a value that looks secret by the name that leads to it or by its own
// form. The value of an environment variable, a header or an argument whose name
// promises a secret is hidden as a whole.
func hideSecret(path, value string) string {
	if secretName.MatchString(path) && !harmless(path) {
		return redact.Hidden
	}
	if name, _, found := strings.Cut(strings.TrimLeft(value, "-"), "="); found && secretName.MatchString(name) {
		return redact.Hidden
	}
	return redact.Text(value)
}

var secretName = regexp.MustCompile(`(?i)(passw|secret|token|credential|api[-_]?key|private[-_]?key|auth|bearer|dsn)`)

// harmless tells of a path that names a Secret or a token's mount and holds none.
func harmless(path string) bool {
	for _, end := range []string{".name", ".secretName", ".mountPath", ".key", ".path", ".optional", ".image", ".defaultMode", ".expirationSeconds", ".audience"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return !strings.Contains(path, ".env[") && !strings.Contains(path, "annotations") && !strings.Contains(path, "httpHeaders")
}

// flatten writes a template as path -> value; list items go by their name where
// they have one, so that an insertion does not move everything after it.
func flatten(t *corev1.PodTemplateSpec) map[string]string {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	out := map[string]string{}
	flattenInto(out, "", v)
	return out
}

func flattenInto(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == "creationTimestamp" {
				continue
			}
			flattenInto(out, strings.TrimPrefix(path+"."+k, "."), x)
		}
	case []any:
		for i, x := range v {
			key := fmt.Sprint(i)
			if i > 0 {
				// "--token", "abc": the flag's value is an element of its own.
				if flag, ok := v[i-1].(string); ok && strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && secretName.MatchString(flag) {
					if _, ok := x.(string); ok {
						x = redact.Hidden
					}
				}
			}
			if m, ok := x.(map[string]any); ok {
				for _, name := range []string{"name", "mountPath", "key", "containerPort"} {
					if s, ok := m[name]; ok {
						key = fmt.Sprint(s)
						break
					}
				}
			}
			flattenInto(out, path+"["+key+"]", x)
		}
	default:
		out[path] = fmt.Sprint(v)
	}
}
