package headless

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// sameCode bounds how many findings of one code a text shows in full; of the
// others it names the objects. A rollout over 400 nodes has 400 of a kind.
const sameCode = 1

// maxEvidence bounds the evidence shown of one finding.
const maxEvidence = 4

// workload writes one workload's verdict and findings; what stands above of the
// incident's own is not said again.
func (w *writer) workload(m *report.Workload, main bool) {
	w.line("")
	v := m.Verdict
	for _, l := range wrap(fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name), w.width, w.width) {
		w.line(w.strong(l))
	}
	if !main {
		head := string(v.Attribution)
		if v.RootCause != "" {
			head += ", root cause " + string(v.RootCause)
		}
		if v.Confidence != "" {
			head += ", " + string(v.Confidence) + " confidence"
		}
		w.hang("  ", 2, head)
		if v.Summary != "" {
			w.hang("  ", 2, string(v.Summary))
		}
		if facts := rolloutFacts(&m.Rollout, w.clock); len(facts) > 1 {
			w.hang("  ", 2, facts[0]+"; "+facts[1])
		}
		for _, t := range v.For {
			w.hang("  ", 2, "+ "+string(t))
		}
		for _, t := range v.Against {
			w.hang("  ", 2, "- "+string(t))
		}
		for _, t := range v.Missing {
			w.hang("  ", 2, "? "+string(t))
		}
		if c := m.Recommendation; c.Action != "" && c.Action != report.ActionNone {
			s := "do: " + string(c.Action)
			if c.ToRevision != nil {
				s += fmt.Sprintf(" to revision %d", *c.ToRevision)
			}
			if c.Why != "" {
				s += ": " + string(c.Why)
			}
			w.hang("  ", 2, s)
		}
	}
	w.coverage(m.Coverage)
	w.findings(m.Findings)
}

// findings writes findings worst first, those of one code together.
func (w *writer) findings(list []report.Finding) {
	for _, g := range grouped(list) {
		for i := range g[:min(len(g), sameCode)] {
			w.finding(&g[i])
		}
		if len(g) > sameCode {
			var others []report.Text
			for i := range g[sameCode:] {
				f := &g[sameCode+i]
				others = append(others, or(f.Node, f.Object.Name))
			}
			w.hang("           ", 11, fmt.Sprintf("and %d more %s: %s", len(others), g[0].Code, listed(others, maxNames)))
		}
	}
}

// grouped puts findings of one code and severity together, the worst first, in
// their own order otherwise.
func grouped(list []report.Finding) [][]report.Finding {
	var out [][]report.Finding
	for _, s := range []report.Severity{report.Critical, report.Warning, report.Info} {
		place := map[report.Code]int{}
		for _, f := range list {
			if f.Severity != s {
				continue
			}
			i, ok := place[f.Code]
			if !ok {
				i = len(out)
				place[f.Code] = i
				out = append(out, nil)
			}
			out[i] = append(out[i], f)
		}
	}
	return out
}

func (w *writer) finding(f *report.Finding) {
	s := string(f.Code) + ": " + objectName(f.Object)
	if f.Node != "" && f.Object.Kind != "Node" {
		s += " on " + string(f.Node)
	}
	if f.Since != nil {
		s += ", since " + w.clock(f.Since)
	}
	w.hang("  "+w.grade(f.Severity)+" ", 11, s)
	if f.Summary != "" {
		w.hang(strings.Repeat(" ", 11), 11, string(f.Summary))
	}
	for i, e := range f.Evidence {
		if i == maxEvidence {
			w.hang(strings.Repeat(" ", 11), 11, "and "+counted(len(f.Evidence)-i, "more piece")+" of evidence")
			break
		}
		s := string(e.Source) + " = " + strings.TrimSpace(string(e.Value))
		if e.At != nil {
			s += " (" + w.clock(e.At) + ")"
		}
		w.hang(strings.Repeat(" ", 13), 13, s)
	}
}

func objectName(o report.Object) string {
	if o.Namespace == "" {
		return string(o.Kind) + " " + string(o.Name)
	}
	return string(o.Kind) + " " + string(o.Namespace) + "/" + string(o.Name)
}

// class is one class of nodes in a comparison.
type class struct {
	label string
	nodes []report.Text
}

// classes are the classes of a comparison that have nodes.
func classes(m *report.Measures) []class {
	var out []class
	for _, c := range []class{
		{"fell after their Pod was replaced", m.After},
		{"new revision, node fine", m.Healthy},
		{"new revision, too fresh to tell", m.Pending},
		{"fell, still on the old revision", m.Old},
		{"old revision, node fine", m.Clean},
		{"fell first, replaced afterwards", m.Before},
		{"fell long after their Pod was replaced", m.Late},
		{"replaced because their Pod was already unavailable", m.Suffering},
		{"joined during the rollout or never Ready", m.NewNodes},
		{"down since before the rollout", m.Prevalent},
		{"rebooting, being removed or shutting down", m.Explained},
		{"replaced after an undo", m.Replaced},
		{"times not known", m.Unclear},
	} {
		if len(c.nodes) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// ratios are the numbers that the verdict rests on, those that are known.
func ratios(m *report.Measures) string {
	var parts []string
	for _, r := range []struct {
		name  string
		value *float64
	}{
		{"coverage", m.Coverage}, {"attack", m.Attack}, {"background", m.Background},
		{"reverse", m.Reverse}, {"difference", m.Difference}, {"Fisher p", m.Fisher},
	} {
		if r.value != nil {
			parts = append(parts, fmt.Sprintf("%s %.3g", r.name, *r.value))
		}
	}
	return strings.Join(parts, ", ")
}

// measures writes the comparison that the verdict rests on.
func (w *writer) measures(m *report.Workload) {
	c := m.Measures
	if c == nil || len(c.After)+len(c.Before)+len(c.Late)+len(c.Old)+len(c.Unclear)+len(c.Suffering) == 0 {
		return // no node fell: there is nothing to compare
	}
	w.line(w.head("COMPARE") + fmt.Sprintf("%-24s%8s%9s", "", "fell", "did not"))
	w.line(strings.Repeat(" ", margin) + fmt.Sprintf("%-24s%8d%9d", "on the new revision", len(c.After), len(c.Healthy)))
	w.line(strings.Repeat(" ", margin) + fmt.Sprintf("%-24s%8d%9d", "on the old revision", len(c.Old), len(c.Clean)))
	w.para("", ratios(c))
	for _, k := range classes(c) {
		w.names(k.label, k.nodes)
	}
	if c.Falsify != "" {
		w.para("", "wrong if: "+string(c.Falsify))
	}
}
