package files

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// world is a cluster being composed: generators fill it, then a case's own
// objects, removals and patches change it.
type world struct {
	c       *composition
	order   []*entry
	byKey   map[identity]*entry
	pools   []NodePool
	daemons []*Daemon
	apps    []*App
	serving []*Serving
	trouble []NodeTrouble
	events  []Occurrences
	plain   []composed
	nodes   []*corev1.Node            // in the order of the pools
	was     map[string][]corev1.Taint // before any trouble
	boots   map[string]time.Time      // when nodes that rebooted were Ready again
	empty   map[cluster.Resource]bool // kinds that plain documents hold, if only as empty lists
}

// entry is one object of a world; object is nil once it was removed.
type entry struct {
	identity
	resource cluster.Resource
	kind     string
	object   metav1.Object
}

func newWorld(c *composition) *world {
	return &world{c: c, byKey: map[identity]*entry{}, was: map[string][]corev1.Taint{}, boots: map[string]time.Time{}}
}

// read sorts the documents by what they generate. A later document of the same
// kind, namespace and name takes the place of an earlier one.
func (w *world) read(docs []composed) error {
	for _, d := range docs {
		var err error
		switch d.kind {
		case "NodePool":
			err = read(w, d, func(p NodePool) { w.pools = replace(w.pools, p, func(q NodePool) bool { return q.Prefix == p.Prefix }) })
		case "Daemon":
			err = read(w, d, func(p Daemon) {
				p.fill()
				w.daemons = replace(w.daemons, &p, func(q *Daemon) bool { return q.Name == p.Name && q.Namespace == p.Namespace })
			})
		case "App":
			err = read(w, d, func(p App) {
				p.fill()
				w.apps = replace(w.apps, &p, func(q *App) bool { return q.Name == p.Name && q.Namespace == p.Namespace })
			})
		case "Serving":
			err = read(w, d, func(p Serving) {
				p.fill()
				w.serving = replace(w.serving, &p, func(q *Serving) bool { return q.Name == p.Name && q.Namespace == p.Namespace })
			})
		case "NodeTrouble":
			err = read(w, d, func(p NodeTrouble) { w.trouble = append(w.trouble, p) })
		case "Occurrences":
			err = read(w, d, func(p Occurrences) { w.events = append(w.events, p) })
		default:
			if strings.Contains(string(d.raw), `"apiVersion":"`+ownGroup) {
				err = fmt.Errorf("%s:%d: %s is no generator: NodePool, Daemon, App, Serving, NodeTrouble and Occurrences are", d.file, d.line, d.kind)
			}
			w.plain = append(w.plain, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func read[T any](w *world, d composed, keep func(T)) error {
	var doc struct {
		typeMeta
		Spec T
	}
	// The fields stand at the top of the document, beside apiVersion and kind.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(d.raw, &fields); err != nil {
		return err
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if err := strict(raw, &doc.Spec); err != nil {
		return fmt.Errorf("%s:%d: %s: %w", d.file, d.line, d.kind, err)
	}
	keep(doc.Spec)
	return nil
}

func replace[T any](list []T, v T, same func(T) bool) []T {
	for i := range list {
		if same(list[i]) {
			list[i] = v
			return list
		}
	}
	return append(list, v)
}

// build makes the objects: nodes, what happens to them, workloads with their
// Pods, events, and at last the case's own objects.
func (w *world) build() error {
	for _, p := range w.pools {
		if err := w.pool(p); err != nil {
			return err
		}
	}
	for _, n := range w.nodes {
		w.was[n.Name] = n.Spec.Taints
	}
	for _, t := range w.trouble {
		if err := w.happen(t); err != nil {
			return fmt.Errorf("NodeTrouble on %v: %w", t.On, err)
		}
	}
	for _, d := range w.daemons {
		if err := w.daemon(d); err != nil {
			return fmt.Errorf("Daemon %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	for _, a := range w.apps {
		if err := w.app(a); err != nil {
			return fmt.Errorf("App %s/%s: %w", a.Namespace, a.Name, err)
		}
	}
	for _, s := range w.serving {
		if err := w.serve(s); err != nil {
			return fmt.Errorf("Serving %s/%s: %w", s.Namespace, s.Name, err)
		}
	}
	for _, e := range w.events {
		if err := w.occur(e); err != nil {
			return err
		}
	}
	return w.own()
}

// own puts the plain objects in, through the decoder that reads any file.
func (w *world) own() error {
	w.empty = map[cluster.Resource]bool{}
	for _, d := range w.plain {
		// Each through a loader of its own: a later document replaces an earlier one of its
		// identity here, whatever their resourceVersions.
		l := newLoader(w.c.l.ctx)
		d.raw = w.c.clocks(d.raw)
		l.document(&stream{}, d.document)
		if len(l.stats.Problems) > 0 {
			return fmt.Errorf("%s", l.stats.Problems[0])
		}
		for _, o := range l.store.list {
			k := keyOf(l, o)
			w.put(d.kind, cluster.Resource(k.kind), k, o)
		}
		maps.Copy(w.empty, l.store.seen)
	}
	return nil
}

func keyOf(l *loader, o metav1.Object) identity {
	for k, i := range l.store.kept {
		if l.store.list[i] == o {
			return k
		}
	}
	return identity{}
}

// add puts a generated object in.
func (w *world) add(kind string, r cluster.Resource, o metav1.Object) {
	if o.GetUID() == "" {
		o.SetUID(uid(kind, o.GetNamespace(), o.GetName()))
	}
	w.put(kind, r, identity{string(r), o.GetNamespace(), o.GetName()}, o)
}

func (w *world) put(kind string, r cluster.Resource, k identity, o metav1.Object) {
	if e := w.byKey[k]; e != nil {
		e.object = o
		return
	}
	e := &entry{identity: k, kind: kind, object: o}
	for _, known := range resources {
		if known == r {
			e.resource = r
		}
	}
	w.byKey[k] = e
	w.order = append(w.order, e)
}

// uid is an identity that is the same in every run.
func uid(parts ...string) types.UID {
	h := sha256.Sum256([]byte(strings.Join(parts, "/")))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80 // version 4, variant 1
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

// suffix is a short name like those that the API server generates.
func suffix(n int, parts ...string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	h := sha256.Sum256([]byte(strings.Join(parts, "/")))
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[int(h[i])%len(letters)]
	}
	return string(out)
}

// on picks the nodes that the patterns name, in the order of the patterns.
func (w *world) on(patterns []string) ([]*corev1.Node, error) {
	if len(patterns) == 0 {
		return w.nodes, nil
	}
	var out []*corev1.Node
	for _, p := range patterns {
		n := len(out)
		for _, node := range w.nodes {
			if ok, _ := path.Match(p, node.Name); ok {
				out = append(out, node)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("no node is named %s", p)
		}
	}
	return out, nil
}

// span is a duration that is written as "40s"; "" is zero.
func span(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

func tolerated(taints []corev1.Taint, tolerations []corev1.Toleration, effects ...corev1.TaintEffect) bool {
	for i := range taints {
		matters := false
		for _, e := range effects {
			matters = matters || taints[i].Effect == e
		}
		if matters && !tolerates(tolerations, &taints[i]) {
			return false
		}
	}
	return true
}

// tolerates follows Toleration.ToleratesTaint, without the numeric operators.
func tolerates(tolerations []corev1.Toleration, t *corev1.Taint) bool {
	for _, l := range tolerations {
		if l.Effect != "" && l.Effect != t.Effect || l.Key != "" && l.Key != t.Key {
			continue
		}
		if l.Operator == corev1.TolerationOpExists || l.Key != "" && l.Value == t.Value {
			return true
		}
	}
	return false
}
