package probes

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// inPlace is a change that no revision contains.
type inPlace struct {
	object  report.Object
	manager string
	at      time.Time
}

// changedInPlace lists such changes within a window, the latest first. Leader
// election locks and the like are written all the time and say nothing.
func (c *Diagnosis) changedInPlace(from, to time.Time) []inPlace {
	var out []inPlace
	see := func(kind string, m *metav1.ObjectMeta) {
		if !cluster.TakesEffectInPlace(kind) || strings.Contains(m.Annotations["control-plane.alpha.kubernetes.io/leader"], "holderIdentity") {
			return
		}
		for _, f := range m.ManagedFields {
			if f.Time == nil || f.Subresource != "" || f.Time.Time.Before(from) || f.Time.After(to) || f.FieldsV1 == nil {
				continue
			}
			if fields := f.FieldsV1.GetRawString(); !strings.Contains(fields, "f:data") && !strings.Contains(fields, "f:binaryData") && !strings.Contains(fields, "f:spec") && !strings.Contains(fields, "f:webhooks") {
				continue
			}
			out = append(out, inPlace{report.Object{Kind: report.Clean(kind), Namespace: report.Clean(m.Namespace), Name: report.Clean(m.Name)}, f.Manager, f.Time.Time})
		}
	}
	for _, o := range c.s.Others {
		see(o.Kind, &o.ObjectMeta)
	}
	for _, o := range c.s.ValidatingWebhooks {
		see("ValidatingWebhookConfiguration", &o.ObjectMeta)
	}
	for _, o := range c.s.MutatingWebhooks {
		see("MutatingWebhookConfiguration", &o.ObjectMeta)
	}
	slices.SortFunc(out, func(a, b inPlace) int {
		if n := b.at.Compare(a.at); n != 0 {
			return n
		}
		return strings.Compare(string(a.object.Name), string(b.object.Name))
	})
	return out
}

// maxInPlace bounds the findings about objects: where many are written all the
// time, those nearest to the first fall are shown.
const maxInPlace = 10

// inPlaceFindings says what changed without a revision shortly before nodes fell.
func (c *Diagnosis) inPlaceFindings() []report.Finding {
	first := c.firstFall()
	if first.IsZero() {
		return nil
	}
	changes := c.changedInPlace(first.Add(-cluster.SuspectBefore), c.s.AsOf)
	slices.SortStableFunc(changes, func(a, b inPlace) int {
		return cmp.Compare(distance(a.at, first), distance(b.at, first))
	})
	out := c.labelFindings()
	for i, x := range changes {
		if i == maxInPlace {
			break
		}
		out = append(out, report.Finding{Code: report.ConfigChangedInPlace, Severity: report.Warning, Object: x.object, Since: report.At(x.at),
			Summary:  report.Textf("changed %s by %s, %s; no revision contains it", stamp(x.at), x.manager, relative(x.at, first)),
			Evidence: []report.Evidence{{Source: report.Textf("%s.metadata.managedFields", x.object.Kind), Value: report.Clean(x.manager), At: report.At(x.at)}}})
	}
	if more := len(changes) - maxInPlace; more > 0 {
		f := &out[len(out)-1]
		f.Evidence = append(f.Evidence, report.Evidence{Source: "metadata.managedFields", Value: report.Textf("%d more such objects were changed, further from the first fall", more)})
	}
	return out
}

// distance orders changes by how near to the first fall they came. One after it
// cannot have caused it, and stands behind those before.
func distance(t, first time.Time) time.Duration {
	if t.After(first) {
		return cluster.SuspectBefore + t.Sub(first)
	}
	return first.Sub(t)
}

// inPlaceText is a finding of the kind as a reason of a verdict.
func inPlaceText(f *report.Finding) report.Text {
	switch {
	case f.Object.Kind == "Node":
		return f.Summary // it speaks of several
	case f.Object.Namespace == "":
		return report.Textf("%s %s %s", f.Object.Kind, f.Object.Name, f.Summary)
	}
	return report.Textf("%s %s/%s %s", f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Summary)
}

// labelFindings finds nodes of which somebody wrote labels within the hour before
// they fell: what a selector or an agent makes of it takes effect at once. It is
// said for each manager whose writes came before the fall of a larger part of the
// failing nodes than of the others.
func (c *Diagnosis) labelFindings() []report.Finding {
	first, last := c.firstFall(), time.Time{}
	type group struct {
		failing []*nodeState
		writes  []cluster.LabelWrite
		others  int
	}
	groups := map[string]*group{}
	of := func(w cluster.LabelWrite) *group {
		if groups[w.Manager] == nil {
			groups[w.Manager] = &group{}
		}
		return groups[w.Manager]
	}
	failing := 0
	for _, n := range c.nodeList {
		e := n.current()
		if n.node == nil || e == nil || c.s.AsOf.Sub(e.onset.From) >= 12*time.Hour {
			continue
		}
		failing++
		if e.onset.To.After(last) {
			last = e.onset.To
		}
		seen := map[string]bool{}
		for _, w := range slices.Backward(c.s.LabelWrites(n.node, e.onset.From.Add(-cluster.SuspectBefore), e.onset.To)) {
			if g := of(w); !seen[w.Manager] { // its last one before the fall
				seen[w.Manager] = true
				g.failing, g.writes = append(g.failing, n), append(g.writes, w)
			}
		}
	}
	if len(groups) == 0 {
		return nil
	}
	rest := 0
	for _, n := range c.nodeList {
		if n.node == nil || n.current() != nil {
			continue
		}
		rest++
		seen := map[string]bool{}
		for _, w := range c.s.LabelWrites(n.node, first.Add(-cluster.SuspectBefore), last) {
			if g := groups[w.Manager]; g != nil && !seen[w.Manager] {
				seen[w.Manager] = true
				g.others++
			}
		}
	}
	var out []report.Finding
	for _, manager := range slices.Sorted(maps.Keys(groups)) {
		g := groups[manager]
		if len(g.failing)*rest <= g.others*failing && rest > 0 {
			continue // as many of the nodes that stand were written to
		}
		by := manager
		if by == "" {
			by = "somebody"
		}
		f := report.Finding{Code: report.ConfigChangedInPlace, Severity: report.Warning,
			Object: report.Object{Kind: "Node", Name: report.Clean(g.failing[0].name)}, Node: report.Clean(g.failing[0].name)}
		from, keys := g.writes[0].At, map[string]bool{}
		for i, w := range g.writes {
			if w.At.Before(from) {
				from = w.At
			}
			for _, k := range w.Keys {
				keys[k] = true
			}
			if i < 5 {
				f.Evidence = append(f.Evidence, report.Evidence{Source: report.Textf("Node %s metadata.labels", g.failing[i].name),
					Value: report.Textf("written by %s: %s", by, names(w.Keys, 4)), At: report.At(w.At)})
			}
		}
		f.Since = report.At(from)
		f.Summary = report.Textf("labels of %d of the %s were written by %s within the hour before it fell (%s), from %s on; of the %s that stand, %d had theirs written",
			len(g.failing), count(failing, "failing node"), by, names(slices.Sorted(maps.Keys(keys)), 4), stamp(from), count(rest, "node"), g.others)
		out = append(out, f)
	}
	return out
}

func relative(t, first time.Time) string {
	if t.Before(first) {
		return short(first.Sub(t)) + " before the first node fell"
	}
	return short(t.Sub(first)) + " after the first node fell"
}
