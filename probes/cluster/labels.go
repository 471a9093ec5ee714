package cluster

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelWrite is a moment at which somebody wrote labels of a Node.
type LabelWrite struct {
	At      time.Time
	Manager string   // "" where nothing tells, as after a label was removed
	Keys    []string // those that changed where that was watched, else all that the manager set; sorted
}

// LabelChange is a change of a Node's labels that was watched.
type LabelChange struct {
	Seen time.Time // AsOf of the snapshot that showed it first
	Keys []string  // added, changed or removed, sorted
}

const (
	// registering is how long after its creation a Node's labels are still being put
	// on it by whatever made it.
	registering = 5 * time.Minute
	// sameWrite is how far the API server's stamp and the snapshot that showed the
	// write may lie apart.
	sameWrite = 15 * time.Second
)

// SetsNodeLabels tells of managers that label nodes as part of running them: the
// kubelet, the node controllers and cloud controllers.
func SetsNodeLabels(manager string) bool {
	return manager == "kubelet" || manager == "kube-controller-manager" || strings.Contains(manager, "cloud-controller-manager") || manager == "cloud-node-manager"
}

// LabelWrites are the writes of a Node's labels within a window, those aside by
// which a node comes to be and is run. They are read from managedFields, whose time
// moves when a manager adds or changes what it owns: only an entry that owns nothing
// but labels tells of labels. A removal leaves no trace there, and is known only
// where it was watched.
func (s *Snapshot) LabelWrites(n *corev1.Node, from, to time.Time) []LabelWrite {
	var out []LabelWrite
	within := func(t time.Time) bool {
		return !t.Before(from) && !t.After(to) && t.Sub(n.CreationTimestamp.Time) > registering
	}
	for i := range n.ManagedFields {
		e := &n.ManagedFields[i]
		if e.Time == nil || e.FieldsV1 == nil || e.Subresource != "" || !within(e.Time.Time) || SetsNodeLabels(e.Manager) {
			continue
		}
		if keys, only := labelKeys(e.FieldsV1); only {
			out = append(out, LabelWrite{e.Time.Time, e.Manager, keys})
		}
	}
	for _, c := range s.History.Node(n.Name).LabelChanges {
		if !within(c.Seen) {
			continue
		}
		keys, byOthers := notRunning(n, c.Keys)
		if !byOthers {
			continue
		}
		if i := slices.IndexFunc(out, func(w LabelWrite) bool {
			return c.Seen.Sub(w.At).Abs() <= sameWrite && slices.ContainsFunc(keys, func(k string) bool { return slices.Contains(w.Keys, k) })
		}); i >= 0 {
			out[i].Keys = keys
			continue
		}
		out = append(out, LabelWrite{At: c.Seen, Keys: keys})
	}
	slices.SortStableFunc(out, func(a, b LabelWrite) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Manager, b.Manager))
	})
	return out
}

// labelKeys are the labels that an entry of managedFields owns, and whether it owns
// nothing else.
func labelKeys(f *metav1.FieldsV1) (keys []string, only bool) {
	var owned map[string]map[string]map[string]any
	if json.Unmarshal([]byte(f.GetRawString()), &owned) != nil || len(owned) != 1 || len(owned["f:metadata"]) != 1 {
		return nil, false
	}
	labels, ok := owned["f:metadata"]["f:labels"]
	for k := range labels {
		if name, field := strings.CutPrefix(k, "f:"); field {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys, ok && len(keys) > 0
}

// notRunning are the labels of which no manager that runs the node is the owner.
func notRunning(n *corev1.Node, keys []string) ([]string, bool) {
	out := slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		return slices.ContainsFunc(n.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return SetsNodeLabels(e.Manager) && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+k+`":`)
		})
	})
	return out, len(out) > 0
}

// seeLabels returns the record after a look at n's labels, and whether it differs.
// At the first look at a Node object there is nothing to compare with.
func seeLabels(r NodeRecord, n *corev1.Node, s *Snapshot, first bool) (NodeRecord, bool) {
	if same(r.labels, n.Labels) {
		return r, false
	}
	var keys []string
	for k, v := range n.Labels {
		if old, ok := r.labels[k]; !ok || old != v {
			keys = append(keys, k)
		}
	}
	for k := range r.labels {
		if _, ok := n.Labels[k]; !ok {
			keys = append(keys, k)
		}
	}
	r.labels = n.Labels
	if len(keys) > 0 && !first {
		slices.Sort(keys)
		r.LabelChanges = append(slices.Clone(r.LabelChanges), LabelChange{s.AsOf, keys})
	}
	return r, true
}

// same tells whether two maps are one and the same, or equal: most nodes' objects
// are those of the snapshot before.
func same(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || maps.Equal(a, b)
}
