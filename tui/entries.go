package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/checklist"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// everything is what the palette finds: workloads, steps, actions, commands, nodes.
func (m *Model) everything() []dialog.Entry {
	var es []dialog.Entry
	r := m.st.Report
	for i := range r.Workloads {
		w := &r.Workloads[i]
		es = append(es, dialog.Entry{Kind: "workload", Label: string(w.Name), Mark: m.s.Mark(wording.State(w.Verdict.Attribution)),
			Detail: strings.ToLower(string(w.Kind)) + " in " + string(w.Namespace) + ", " + wording.Attribution(w.Verdict.Attribution), Value: incident.OpenWorkload{Workload: w.Key()}})
	}
	if g := m.st.Guide; g != nil {
		for i := range g.Steps {
			s := &g.Steps[i]
			es = append(es, dialog.Entry{Kind: "step", Label: string(s.Title), Mark: m.s.Mark(checklist.State(s)), Detail: fmt.Sprintf("step %d", s.Number), Value: incident.GoToStep{Step: s.ID}})
		}
	}
	if w := m.workload(); w != nil {
		for _, e := range m.actionsFor(w) {
			e.Kind, e.Mark = "action", " "
			es = append(es, e)
		}
	}
	es = append(es, m.podsToRead()...)
	for _, b := range m.working() {
		if b.Label == "" || b.Command == keymap.Find || b.Command == keymap.Help {
			continue
		}
		es = append(es, dialog.Entry{Kind: "key " + b.Shown(), Label: b.Label, Mark: " ", Detail: b.Help, Value: b.Command})
	}
	return append(append(es, m.nodes()...), m.consoles()...)
}

// nodes lists every node that the report names, those with trouble first.
func (m *Model) nodes() []dialog.Entry {
	r := m.st.Report
	worst := map[report.Text]report.Severity{}
	note := func(n report.Text, v report.Severity) {
		if n != "" && v.Rank() >= worst[n].Rank() {
			worst[n] = v
		}
	}
	for _, f := range r.ClusterFindings {
		note(f.Node, f.Severity)
	}
	class := map[report.Text]string{}
	for i := range r.Workloads {
		w := &r.Workloads[i]
		for _, f := range w.Findings {
			note(f.Node, f.Severity)
		}
		for _, c := range classes(w.Measures) {
			for _, n := range c.nodes {
				note(n, c.severity)
				if class[n] == "" || c.severity != "" {
					class[n] = c.means
				}
			}
		}
	}
	names := make([]report.Text, 0, len(worst))
	for n := range worst {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b report.Text) int {
		if d := worst[b].Rank() - worst[a].Rank(); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	var es []dialog.Entry
	for _, n := range names {
		mark := m.s.Mark(report.StepNotYet)
		if worst[n] != "" {
			st := report.StepNotice
			if worst[n] == report.Critical {
				st = report.StepAnomaly
			}
			mark = m.s.Mark(st)
		}
		es = append(es, dialog.Entry{Kind: "node", Label: string(n), Mark: mark, Detail: class[n], Value: toNode{n}})
	}
	return es
}

type class struct {
	nodes    []report.Text
	means    string
	severity report.Severity // "" for nothing wrong
}

// classes are the measures of a verdict in plain words.
func classes(x *report.Measures) []class {
	if x == nil {
		return nil
	}
	return []class{
		{x.After, "fell after its Pod was replaced", report.Critical},
		{x.Late, "fell long after its Pod was replaced", report.Warning},
		{x.Before, "fell first, its Pod was replaced afterwards", report.Warning},
		{x.Old, "fell, and still runs the old revision", report.Warning},
		{x.Prevalent, "was broken before the rollout", report.Warning},
		{x.Suffering, "its old Pod was unavailable already", report.Warning},
		{x.Unclear, "its times are not known", report.Warning},
		{x.Pending, "runs the new revision, too fresh to tell", ""},
		{x.Healthy, "runs the new revision and is fine", ""},
		{x.NewNodes, "joined after the rollout began", ""},
		{x.Replaced, "was mended: its Pod was made after the roll back", ""},
		{x.Explained, "is down for a reason of its own: reboot, removal, shutdown", ""},
		{x.Clean, "runs the old revision and is fine", ""},
	}
}

// meaning is the class of a node in plain words, "" without one.
func meaning(x *report.Measures, node report.Text) string {
	for _, c := range classes(x) {
		if slices.Contains(c.nodes, node) {
			return c.means
		}
	}
	return ""
}

// actions is the menu of what can be done to a workload.
func (m *Model) actions(w *report.Workload) dialog.Dialog {
	return dialog.NewMenu("Act on "+string(w.Name)+" (each shows a preview and asks)", m.actionsFor(w))
}

// offer is an entry with the kind of action that a step names.
type offer struct {
	kind action.Kind
	e    dialog.Entry
}

// actionsFor lists the actions, the advised ones first.
func (m *Model) actionsFor(w *report.Workload) []dialog.Entry {
	k := w.Key()
	name := string(w.Name)
	ok, why := wording.Freezable(w)
	freeze := dialog.Entry{Label: wording.Action(action.Freeze, name), Detail: "y confirms", Value: incident.Act{Request: action.Request{Kind: action.Freeze, Workload: k}}}
	switch {
	case w.Rollout.Strategy == "OnDelete":
		freeze.Off = "frozen already"
	case !ok:
		freeze.Off = why
	}
	unfreeze := dialog.Entry{Label: wording.Action(action.Unfreeze, name), Value: incident.Act{Request: action.Request{Kind: action.Unfreeze, Workload: k}}}
	if w.Rollout.Strategy != "OnDelete" {
		unfreeze.Off = "it is not frozen"
	}
	list := append(holds(w), offer{action.Freeze, freeze})
	if to := rollBackTo(w); to != 0 {
		detail := "the proposed one"
		if good := w.Rollout.KnownGoodRevision; good != nil && *good == to {
			detail = "the known-good one"
		}
		list = append(list, offer{action.RollBack, dialog.Entry{Label: fmt.Sprintf("%s to revision %d", wording.Action(action.RollBack, name), to), Detail: detail,
			Value: incident.Act{Request: action.Request{Kind: action.RollBack, Workload: k, ToRevision: to}}}})
	}
	if pod := w.Recommendation.Pod; pod != "" {
		list = append(list, offer{action.DeletePod, dialog.Entry{Label: "delete Pod " + string(pod), Detail: "the proposed one",
			Value: incident.Act{Request: action.Request{Kind: action.DeletePod, Workload: k, Pod: string(pod)}}}})
	}
	other := dialog.Entry{Label: wording.Action(action.RollBack, name) + " to another revision…", Detail: "choose it", Value: toRevisions{k}}
	if len(w.Rollout.Revisions) < 2 {
		other.Off = "no other revision is stored"
	}
	list = append(list, offer{action.DeletePod, dialog.Entry{Label: wording.Action(action.DeletePod, name) + "…", Detail: "choose it", Value: toPods{k}}},
		offer{action.RollBack, other}, offer{action.Unfreeze, unfreeze})

	slices.SortStableFunc(list, func(a, b offer) int { return m.rank(a, w) - m.rank(b, w) })
	var es []dialog.Entry
	for _, x := range list {
		es = append(es, x.e)
	}
	return es
}

// holds offers the commands that keep owners of a workload from putting a change by
// hand back: they work elsewhere, and are copied.
func holds(w *report.Workload) []offer {
	var list []offer
	for i := range w.Owners {
		if o := &w.Owners[i]; o.Certainty != report.Hint && o.Reconciles() && len(o.Hold) > 0 && o.Hold[0].Run != "" {
			list = append(list, offer{action.Kind(report.ActionChangeManager), dialog.Entry{Label: "copy the command that suspends " + string(o.Name()), Detail: string(o.Hold[0].Run), Value: toCopy{string(o.Hold[0].Run)}}})
		}
	}
	return list
}

// rank orders offers: what the report recommends, in its order; what fits the open
// step; the rest; and last what cannot be done now.
func (m *Model) rank(o offer, w *report.Workload) int {
	advised := append(slices.Clip(w.Recommendation.First), w.Recommendation.Action)
	step := m.checklist.Step()
	switch i := slices.Index(advised, report.RecommendedAction(o.kind)); {
	case o.e.Off != "":
		return 1000
	case o.kind == action.Kind(report.ActionChangeManager):
		return 900 // copied, not done here: it is in the way of nothing that is
	case i >= 0:
		return i
	case step != nil && slices.Contains(step.Actions, string(o.kind)):
		return 100
	}
	return 200
}

// rollBackTo is the revision that the report proposes, or the known-good one where
// it is another than the current; 0 without any.
func rollBackTo(w *report.Workload) int64 {
	if to := w.Recommendation.ToRevision; to != nil {
		return *to
	}
	if to := w.Rollout.KnownGoodRevision; to != nil && (w.Rollout.Revision == nil || *to != *w.Rollout.Revision) {
		return *to
	}
	return 0
}

// revisions is the menu of the revisions that one can roll back to.
func (m *Model) revisions(k report.WorkloadKey) dialog.Dialog {
	var es []dialog.Entry
	w := m.st.Report.Workload(k)
	var at []int
	if w != nil {
		for _, v := range w.Rollout.Revisions {
			e := dialog.Entry{Label: fmt.Sprintf("revision %d", v.Number), Value: incident.Act{Request: action.Request{Kind: action.RollBack, Workload: k, ToRevision: v.Number}}}
			var d []string
			if v.KnownGood {
				d = append(d, "known good")
				at = []int{len(es)}
			}
			d = append(d, wording.Count(v.Pods, "Pod")+fmt.Sprintf(", %d healthy", v.Healthy))
			if v.CreatedAt != nil {
				d = append(d, wording.Moment(v.CreatedAt.Time, m.st.Report.AsOf.Time))
			}
			if v.SameAs != 0 {
				d = append(d, fmt.Sprintf("same template as %d", v.SameAs))
			}
			if len(v.Images) > 0 {
				d = append(d, wording.Names(v.Images, 2))
			}
			e.Detail = strings.Join(d, " · ")
			if v.Current {
				e.Off = "the current one"
			}
			es = append(es, e)
		}
	}
	return dialog.NewMenu("Roll back "+string(k.Name)+" to", es, at...)
}

// pods is the menu of the Pods that the report names, the proposed one first.
func (m *Model) pods(k report.WorkloadKey) dialog.Dialog {
	var es, going []dialog.Entry // going: those that there is nothing to do about stand last
	seen := map[report.Text]bool{}
	add := func(name report.Text, detail string) {
		if name == "" || seen[name] {
			return
		}
		seen[name] = true
		es = append(es, dialog.Entry{Label: string(name), Detail: detail, Value: incident.Act{Request: action.Request{Kind: action.DeletePod, Workload: k, Pod: string(name)}}})
	}
	if w := m.st.Report.Workload(k); w != nil {
		add(w.Recommendation.Pod, "proposed: on a node that the API reaches")
		findings := w.Findings
		if s := m.checklist.Step(); s != nil {
			findings = append(slices.Clip(findings), s.Result.Findings...)
		}
		for _, f := range findings {
			if f.Code == report.StuckTerminating && f.Object.Namespace == k.Namespace && !seen[f.Object.Name] {
				seen[f.Object.Name] = true
				going = append(going, dialog.Entry{Label: string(f.Object.Name), Off: strings.TrimPrefix(string(f.Node)+": ", ": ") + "is being deleted already"})
			}
		}
		for _, f := range findings {
			if f.Object.Kind == "Pod" && f.Object.Namespace == k.Namespace {
				add(f.Object.Name, strings.TrimPrefix(string(f.Node)+": "+string(f.Summary), ": "))
			}
		}
		if w.Timeline != nil {
			for _, l := range w.Timeline.Lanes {
				add(l.Pod, string(l.Node)+": "+meaning(w.Measures, l.Node))
			}
		}
		for _, b := range w.Rollout.BudgetHolders {
			add(b.Pod, string(b.Node)+": "+string(b.Why))
		}
	}
	es = append(es, going...)
	es = append(es, dialog.Entry{Label: "another Pod…", Detail: "type its name", Value: toPodName{}})
	return dialog.NewMenu("Delete one Pod of "+string(k.Name), es)
}

// steps is the list of all steps.
func (m *Model) steps() dialog.Dialog {
	var es []dialog.Entry
	for i := range m.st.Guide.Steps {
		s := &m.st.Guide.Steps[i]
		d := string(s.Skipped)
		if d == "" {
			d = string(s.Changed)
		}
		es = append(es, dialog.Entry{Kind: fmt.Sprintf("%2d", s.Number), Label: string(s.Title), Mark: m.s.Mark(checklist.State(s)), Detail: d, Value: incident.GoToStep{Step: s.ID}})
	}
	return dialog.NewMenu(string(m.st.Guide.Title), es, m.st.Guide.Current)
}

// leaving asks whether to quit although an action is running.
func (m *Model) leaving() dialog.Dialog {
	return dialog.NewMenu("An action is running", []dialog.Entry{
		{Label: "stay", Detail: "and see it proved", Value: toNothing{}},
		{Label: "leave", Detail: "the cluster goes on; nobody watches or proves it", Value: toQuit{}},
	})
}
