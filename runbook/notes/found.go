package notes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// identity tells findings apart: one code on one object of one node.
type identity struct {
	code                 report.Code
	kind, ns, name, node report.Text
}

func identify(f report.Finding) identity {
	return identity{f.Code, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Node}
}

// ofReport are the findings of a report that concern the incident.
func ofReport(r *report.Report, k report.WorkloadKey) []report.Finding {
	if r == nil {
		return nil
	}
	var out []report.Finding
	if w := r.Workload(k); w != nil {
		out = append(out, w.Findings...)
	}
	for _, f := range r.ClusterFindings {
		if f.Severity != report.Info {
			out = append(out, f)
		}
	}
	return out
}

// all are the findings of the incident, each once, as it was seen last.
func all(in Input) []report.Finding {
	seen := map[identity]int{}
	var out []report.Finding
	add := func(f report.Finding) {
		id := identify(f)
		if i, ok := seen[id]; ok {
			out[i] = f
			return
		}
		seen[id] = len(out)
		out = append(out, f)
	}
	for _, e := range events(in.Entries) {
		if e.Result != nil {
			for _, f := range e.Result.Findings {
				add(f)
			}
		}
	}
	for _, r := range []*report.Report{in.Worst, in.Report} {
		for _, f := range ofReport(r, in.Target) {
			add(f)
		}
	}
	return out
}

// findings groups what was found by code, the gravest first.
func findings(in Input) []Finding {
	groups := map[report.Code]*Finding{}
	for _, f := range all(in) {
		g := groups[f.Code]
		if g == nil {
			g = &Finding{Code: f.Code, Severity: f.Severity, Gone: in.Report != nil}
			groups[f.Code] = g
		}
		if f.Severity.Rank() > g.Severity.Rank() {
			g.Severity = f.Severity
		}
		g.Count++
		g.Examples = append(g.Examples, safe(f))
	}
	for _, f := range ofReport(in.Report, in.Target) {
		if g := groups[f.Code]; g != nil {
			g.Gone = false
		}
	}
	var out []Finding
	for _, g := range groups {
		slices.SortStableFunc(g.Examples, func(a, b report.Finding) int {
			return cmp.Or(b.Severity.Rank()-a.Severity.Rank(), since(a).Compare(since(b).Time), strings.Compare(string(a.Node), string(b.Node)),
				strings.Compare(string(a.Object.Name), string(b.Object.Name)))
		})
		g.Examples = g.Examples[:min(len(g.Examples), maxExamples)]
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(b.Severity.Rank()-a.Severity.Rank(), strings.Compare(string(a.Code), string(b.Code)))
	})
	return out
}

func since(f report.Finding) report.Time {
	if f.Since == nil {
		return report.Time{}
	}
	return *f.Since
}

func safe(f report.Finding) report.Finding {
	f.Summary, f.Node = clean(string(f.Summary)), clean(string(f.Node))
	f.Object = report.Object{Kind: clean(string(f.Object.Kind)), Namespace: clean(string(f.Object.Namespace)), Name: clean(string(f.Object.Name))}
	evidence := make([]report.Evidence, 0, len(f.Evidence))
	for _, e := range f.Evidence {
		evidence = append(evidence, report.Evidence{Source: clean(string(e.Source)), Value: clean(string(e.Value)), At: e.At})
	}
	f.Evidence = evidence
	return f
}

// actions are the changes that were confirmed, each with what came of it.
func actions(entries []session.Entry) []Action {
	var out []Action
	byID := map[int]int{}
	for _, e := range entries {
		var a session.Action
		if e.Kind == session.ActionConfirmed || e.Kind == session.ActionApplied || e.Kind == session.ActionFailed || e.Kind == session.ActionVerified {
			if e.Decode(&a) != nil {
				continue
			}
		}
		at := report.At(e.At())
		i, known := byID[a.ID]
		switch {
		case e.Kind == session.ActionConfirmed:
			byID[a.ID] = len(out)
			out = append(out, Action{Title: clean(a.Title), Object: clean(a.Object), Asked: at, Kubectl: clean(a.Kubectl), Reverse: clean(a.Reverse), GiveBack: cleanAll(a.GiveBack),
				Diff: diff(a.Diff), Effect: cleanAll(a.Effect), Outcome: "not known: the session has no answer of the API server"})
		case !known:
		case e.Kind == session.ActionApplied:
			out[i].Done, out[i].Outcome = at, "accepted by the API server; whether its effect holds was not proved"
			out[i].Diff, out[i].Reverse = or(diff(a.Diff), out[i].Diff), cmp.Or(clean(a.Reverse), out[i].Reverse)
		case e.Kind == session.ActionFailed:
			out[i].Done, out[i].Outcome = at, clean("failed: "+cmp.Or(a.Error, e.Text, "no reason given"))
		case e.Kind == session.ActionVerified:
			out[i].Done, out[i].Outcome = at, "accepted, and its effect holds"
			out[i].Effect = or(cleanAll(a.Effect), out[i].Effect)
		}
	}
	return out
}

// diff redacts the lines together: a name may stand in one, its secret in the next.
func diff(lines []string) []report.Text {
	if len(lines) == 0 {
		return nil
	}
	out := make([]report.Text, 0, len(lines))
	for _, l := range strings.Split(session.Redact(strings.Join(lines, "\n")), "\n") {
		out = append(out, report.Clean(l))
	}
	return out
}

func or(a, b []report.Text) []report.Text {
	if len(a) > 0 {
		return a
	}
	return b
}

// left is what is still changed by hand: changes that are meant to be put back and
// were not.
func left(in Input) []Left {
	if in.Left != nil {
		var out []Left
		for _, t := range in.Left {
			out = append(out, Left{Text: clean(string(t))})
		}
		return out
	}
	var open []session.Action
	for _, e := range in.Entries {
		var a session.Action
		if e.Kind != session.ActionApplied || e.Decode(&a) != nil {
			continue
		}
		if a.PutBack {
			open = slices.DeleteFunc(open, func(o session.Action) bool { return o.Object == a.Object })
		}
		if a.Lasting {
			open = append(open, a)
		}
	}
	var out []Left
	for _, a := range open {
		out = append(out, Left{clean(a.Title), clean(a.Reverse)})
	}
	held := session.HeldOwners(in.Entries)
	for _, h := range held {
		out = append(out, Left{clean(h.Owner + " was to be suspended: mend what it applies, then give it back"), clean(h.GiveBack)})
	}
	for _, t := range owed(in.Entries) {
		if !slices.ContainsFunc(held, func(h session.Held) bool { return strings.HasPrefix(t, h.Owner) }) {
			out = append(out, Left{Text: clean(t)})
		}
	}
	return out
}

// owed is what owners must get back for the last rollback of each object.
func owed(entries []session.Entry) []string {
	var order []string
	by := map[string][]string{}
	for _, e := range entries {
		var a session.Action
		if e.Kind != session.ActionApplied || e.Decode(&a) != nil || a.Kind != string(action.RollBack) {
			continue
		}
		if by[a.Object] == nil {
			order = append(order, a.Object)
		}
		by[a.Object] = a.GiveBack
	}
	var out []string
	for _, o := range order {
		out = append(out, by[o]...)
	}
	return out
}

// open lists what nobody knows yet.
func open(in Input, v *report.Verdict) []report.Text {
	var out []report.Text
	add := func(s string) { out = append(out, clean(s)) }
	if in.Lost != "" {
		add("The journal is not complete: " + in.Lost + ".")
	}
	for _, e := range session.Unfinished(in.Entries) {
		var a session.Action
		if e.Decode(&a) == nil {
			add("Did it take effect? " + a.Title + " was confirmed at " + e.At().UTC().Format(layout) + " UTC, and no answer is known.")
		}
	}
	if v != nil {
		for _, m := range v.Missing {
			add("The verdict had to do without: " + string(m))
		}
	}
	if in.Guide != nil {
		for _, s := range in.Guide.Steps {
			switch {
			case s.Skipped != "":
				add(string(s.Title) + " Skipped: " + string(s.Skipped))
			case !s.Visited:
				add(string(s.Title) + " This step was not opened.")
			case s.State == report.StepUnknown && len(s.Unanswered) == 0:
				add(string(s.Title) + " Could not be answered: " + string(s.Result.Reason))
			case s.SeenAt == nil:
				add(string(s.Title) + " No answer had come yet.")
			}
			if s.Visited && s.Skipped == "" {
				for _, u := range s.Unanswered {
					add(string(u.Ask) + " Not looked at: " + string(u.Because))
				}
			}
		}
	}
	if in.Report != nil {
		for _, n := range in.Report.NotRead {
			where := ""
			if n.Namespace != "" {
				where = " of namespace " + string(n.Namespace)
			}
			add("Not read: " + string(n.Resource) + where + " (" + string(n.Reason) + ").")
		}
	}
	return out
}

// commands are those that were copied or carried out, in that order, each once.
func commands(entries []session.Entry) []report.Text {
	var out []report.Text
	add := func(s string) {
		if c := clean(s); c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, e := range entries {
		var a session.Action
		switch e.Kind {
		case session.CommandCopied:
			add(e.Text)
		case session.ActionApplied:
			if e.Decode(&a) == nil {
				add(a.Kubectl)
			}
		}
	}
	return out
}
