package notes

import (
	"fmt"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// evidence is what logs and consoles said: of each source the last reading, or the
// last one that told something, in the order in which they were first read.
func evidence(entries []session.Entry) []signs.Evidence {
	at := map[signs.Source]int{}
	var out []signs.Evidence
	for _, e := range entries {
		var v signs.Evidence
		if e.Kind != session.EvidenceRead || e.Decode(&v) != nil {
			continue
		}
		v = safeEvidence(v)
		i, known := at[v.From]
		switch {
		case !known:
			at[v.From] = len(out)
			out = append(out, v)
		case len(v.Found) > 0 || len(out[i].Found) == 0:
			out[i] = v
		}
	}
	return out
}

func safeEvidence(v signs.Evidence) signs.Evidence {
	c := func(t report.Text) report.Text { return clean(string(t)) }
	v.From.Node, v.From.Namespace, v.From.Pod, v.From.Container = c(v.From.Node), c(v.From.Namespace), c(v.From.Pod), c(v.From.Container)
	v.Failed = c(v.Failed)
	if v.Unknown != nil {
		v.Unknown = cleanAll(v.Unknown)
	}
	found := make([]signs.Found, 0, len(v.Found))
	for _, f := range v.Found {
		f.Name, f.About, f.Line, f.Means, f.Do = signs.Name(clean(string(f.Name))), c(f.About), c(f.Line), c(f.Means), c(f.Do)
		found = append(found, f)
	}
	v.Found = found
	return v
}

// heard writes what one source said: the signs and the lines that tell them.
func (m *markdown) heard(e signs.Evidence) {
	where := ""
	if e.From.Pod != "" && e.From.Node != "" {
		where = " on " + string(e.From.Node)
	}
	lines := fmt.Sprintf("%d lines", e.Lines)
	if e.Lines == 1 {
		lines = "1 line"
	}
	what := report.Text(lines + ", no known sign")
	switch {
	case e.Failed != "":
		what = e.Failed
	case len(e.Found) > 0:
		what = report.Text(lines)
	}
	at := ""
	if !e.At.IsZero() {
		at = " at " + e.At.UTC().Format(layout)
	}
	m.line("- %s%s: %s", esc(report.Textf("%s%s", e.From, where)), at, esc(what))
	for _, f := range e.Found {
		m.line("  - %s: %s %s", esc(f.Headline()), esc(f.Means), esc(f.Do))
		m.line("    - %s", code(string(f.Line)))
	}
	for _, t := range e.Unknown {
		m.line("  - not known to this program: %s", code(string(t)))
	}
}
