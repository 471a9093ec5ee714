package headless

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// maxChanges bounds the fields of a change that text lists; JSON has them all.
const maxChanges = 12

// preflightOf is the one workload of a preflight, nil where the report is none.
func preflightOf(r *report.Report) *report.Workload {
	if len(r.Workloads) == 1 && r.Workloads[0].Preflight != nil {
		return &r.Workloads[0]
	}
	return nil
}

// preflight writes the report of a preflight: whether it passes, what would break at
// once, what makes it risky, how it would go.
func (w *writer) preflight(r *report.Report, m *report.Workload) {
	f := m.Preflight
	w.line(w.head("PREFLIGHT") + w.strong(passed(f)))
	w.para("", judged(m))
	w.para("", outcome(r, m))
	w.para("NOW", now(m))
	for _, t := range []struct {
		heading  string
		severity report.Severity
	}{{"BREAKS", report.Critical}, {"RISKS", report.Warning}, {"KNOW", report.Info}} {
		w.graded(t.heading, m.Findings, t.severity)
	}
	for i, s := range preflightFacts(f) {
		heading := ""
		if i == 0 {
			heading = "PLAN"
		}
		w.para(heading, s)
	}
	w.marked("CHANGES", f.Changes, maxChanges)
	w.list("DRY RUN", "", f.DryRun)
	for i, s := range f.Canary {
		heading := ""
		if i == 0 {
			heading = "CANARY"
		}
		w.para(heading, fmt.Sprintf("%d. %s", i+1, s))
	}
	w.owners(m)
	w.list("UNKNOWN", "? ", f.NotChecked)
	w.nodes(r)
	if len(r.ClusterFindings) > 0 {
		w.line("")
		w.line(w.strong("CLUSTER"))
		w.findings(r.ClusterFindings)
	}
	w.notRead(r)
	w.source(r)
}

// graded lists the findings of one severity: code and sentence, the evidence below.
// Of many of one code the first is shown, and the nodes or objects of the others.
func (w *writer) graded(heading string, all []report.Finding, severity report.Severity) {
	for _, g := range grouped(all) {
		f := &g[0]
		if f.Severity != severity {
			continue
		}
		text := string(f.Code) + ": " + string(f.Summary)
		if f.Node != "" {
			text += " (" + string(f.Node) + ")"
		}
		w.para(heading, text)
		heading = ""
		under := margin + 2
		for j, e := range f.Evidence {
			if severity == report.Info || j == maxEvidence {
				break
			}
			w.hang(strings.Repeat(" ", under), under, string(e.Source)+" = "+strings.TrimSpace(string(e.Value)))
		}
		if len(g) > 1 {
			var others []report.Text
			for _, o := range g[1:] {
				others = append(others, or(o.Node, o.Object.Name))
			}
			w.hang(strings.Repeat(" ", under), under, fmt.Sprintf("and %d more: %s", len(others), listed(others, maxNames)))
		}
	}
}

// marked lists texts that begin with their own mark.
func (w *writer) marked(heading string, texts []report.Text, most int) {
	for i, t := range texts {
		if i == most {
			w.para(heading, fmt.Sprintf("and %d more", len(texts)-i))
			return
		}
		w.para(heading, string(t))
		heading = ""
	}
}

func passed(f *report.Preflight) string {
	if f.Pass {
		return "pass"
	}
	return "FAIL"
}

// judged says what was looked at.
func judged(m *report.Workload) string {
	s := fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name)
	switch f := m.Preflight; {
	case f.Template == "live":
		return s + " as it is"
	case f.New:
		return s + ", new, from " + string(f.Template)
	default:
		return s + " as " + string(f.Template) + " would make it"
	}
}

// outcome counts what was found.
func outcome(r *report.Report, m *report.Workload) string {
	n := map[report.Severity]int{}
	for _, list := range [][]report.Finding{m.Findings, r.ClusterFindings} {
		for _, f := range list {
			n[f.Severity]++
		}
	}
	return fmt.Sprintf("%d critical, %d warning, %d info; fails from %s on", n[report.Critical], n[report.Warning], n[report.Info], m.Preflight.FailOn)
}

// now is how the workload fares before the change.
func now(m *report.Workload) string {
	s := string(m.Verdict.Attribution)
	if m.Rollout.State != "" && m.Rollout.State != report.Complete && !m.Preflight.New {
		s += ", its rollout is " + string(m.Rollout.State)
	}
	if m.Verdict.RootCause != "" {
		s += ", root cause " + string(m.Verdict.RootCause)
	}
	if m.Verdict.Summary != "" {
		s += ": " + string(m.Verdict.Summary)
	}
	return s
}

// preflightFacts are the sentences on how the rollout would go, in text and Markdown
// alike.
func preflightFacts(f *report.Preflight) []string {
	var out []string
	if f.Duration != "" {
		out = append(out, fmt.Sprintf("takes about %s: %s for each, %d at once (%s)", f.Duration, f.TimePerPod, f.AtOnce, f.TimeSource))
	} else {
		out = append(out, "nothing is replaced by itself")
	}
	where := fmt.Sprintf("%d Pods", f.Nodes)
	if len(f.Gained) > 0 {
		where += fmt.Sprintf(", on %d more nodes than now: %s", len(f.Gained), listed(f.Gained, maxNames))
	}
	if f.Lost > 0 {
		where += fmt.Sprintf(", none on %d nodes any more", f.Lost)
	}
	out = append(out, where)
	cost := "requests nothing"
	if f.Requests != "nothing" {
		cost = fmt.Sprintf("requests %s each, %s in all", f.Requests, f.TotalRequests)
	}
	out = append(out, cost+"; QoS class "+string(f.QoSClass))
	if f.Guard != "" {
		out = append(out, "guarded by "+string(f.Guard))
	}
	return out
}

// markdownPreflight writes the report of a preflight for a ticket.
func markdownPreflight(b *bytes.Buffer, r *report.Report, m *report.Workload) {
	f := m.Preflight
	fmt.Fprintf(b, "# Preflight %s: %s\n\n%s\n\n", passed(f), escape(judged(m)), escape(outcome(r, m)))
	table(b, m.Findings)
	var plan []report.Text
	for _, s := range preflightFacts(f) {
		plan = append(plan, report.Text(s))
	}
	bullets(b, "Plan", plan)
	bullets(b, "Changes", f.Changes)
	bullets(b, "Dry run", f.DryRun)
	bullets(b, "Canary", f.Canary)
	markdownOwners(b, m)
	bullets(b, "Not known", f.NotChecked)
	bullets(b, "Now", []report.Text{report.Text(now(m))})
	if len(r.ClusterFindings) > 0 {
		b.WriteString("\n## Cluster\n")
		table(b, r.ClusterFindings)
	}
}
