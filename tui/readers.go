package tui

import (
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// progress shows the action that was confirmed last, as it goes on, and the proof
// that the nodes are well again.
func (m *Model) progress() dialog.Dialog {
	return &dialog.Reader{Title: "What was confirmed", Lines: func(w int, s *style.Styles) []string {
		if m.st.Progress == nil && m.st.Recovery == nil {
			return []string{s.Mark(report.StepLooking) + " sent; no answer yet"}
		}
		lines := proof(m.st.Progress, w, s)
		if m.st.Recovery != nil {
			if len(lines) > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, proof(m.st.Recovery, w, s)...)
		}
		for i, l := range m.st.Left {
			if i == 0 {
				lines = append(lines, "")
			}
			lines = append(lines, draw.Hang(s.Notice.Render("! still changed by hand: "), string(l), w, nil)...)
		}
		return lines
	}}
}

// proof is an action or a recovery: how far it is, then its statements.
func proof(p *incident.Progress, w int, s *style.Styles) []string {
	if p == nil {
		return nil
	}
	look := phaseState(p.Phase)
	phase := wording.Phase(p.Phase)
	if p.Phase == incident.Holding && !p.Until.IsZero() {
		phase += ", until " + wording.Clock(p.Until)
	}
	lines := draw.Hang("", string(p.Title), w, s.Strong.Render)
	lines = append(lines, draw.Fit(s.Mark(look)+" "+s.Of(look).Render(phase), w))
	if p.Failed != "" {
		lines = append(lines, draw.Hang(s.Mark(report.StepAnomaly)+" ", string(p.Failed), w, s.Bad.Render)...)
	}
	for _, l := range p.Lines {
		lines = append(lines, statement(l, w, s)...)
	}
	return lines
}

// phaseState is how a phase is marked.
func phaseState(p incident.Phase) report.StepState {
	switch p {
	case incident.Verified:
		return report.StepOK
	case incident.Failed:
		return report.StepAnomaly
	}
	return report.StepLooking
}

// statement is a line with its mark.
func statement(l report.Line, w int, s *style.Styles) []string {
	prefix := draw.Pad("", 2*min(l.Indent, 4))
	if l.State == report.StepNotYet || l.State == "" {
		prefix += "  "
	} else {
		prefix += s.Mark(l.State) + " "
	}
	return draw.Hang(prefix, string(l.Text), w, nil)
}

// evidence shows what speaks for and against: on triage and where the step has no
// findings of its own, the verdict; in a step, its findings.
func (m *Model) evidence() dialog.Dialog {
	return &dialog.Reader{Title: "Evidence", Most: 120, Lines: func(w int, s *style.Styles) []string {
		now := m.st.Report.AsOf.Time
		var lines []string
		if m.asks(podProbe) || m.asks(consoleProbe) {
			lines = append(lines, heard(m.st.Evidence, w, s)...)
		}
		if step := m.checklist.Step(); step != nil && (len(step.Result.Findings) > 0 || len(lines) > 0) {
			head := draw.Hang("", string(step.Title), w, s.Strong.Render)
			return append(append(append(head, ""), lines...), findings(step.Result.Findings, now, w, s)...)
		}
		x := m.workload()
		if x == nil {
			return nil
		}
		v := x.Verdict
		lines = append(lines, draw.Fit(s.Strong.Render(string(x.Name))+"  "+s.Of(wording.State(v.Attribution)).Render(wording.Attribution(v.Attribution))+
			s.Dim.Render("  "+string(v.Confidence)+" confidence"), w))
		lines = append(lines, draw.Hang("", string(v.Summary), w, nil)...)
		lines = append(lines, "")
		for _, part := range []struct {
			label string
			texts []report.Text
			look  report.StepState
		}{{"for", v.For, report.StepOK}, {"against", v.Against, report.StepNotice}, {"missing", v.Missing, report.StepUnknown}} {
			for i, t := range part.texts {
				label := part.label
				if i > 0 {
					label = ""
				}
				lines = append(lines, draw.Hang(s.Of(part.look).Render(draw.Pad(label, 9)), string(t), w, nil)...)
			}
		}
		if x.Measures != nil && x.Measures.Falsify != "" {
			lines = append(lines, draw.Hang(s.Dim.Render(draw.Pad("wrong if", 9)), string(x.Measures.Falsify), w, nil)...)
		}
		if len(x.Findings) > 0 {
			lines = append(lines, "")
			lines = append(lines, findings(x.Findings, now, w, s)...)
		}
		return lines
	}}
}

// findings lists findings with where each value was read.
func findings(fs []report.Finding, now time.Time, w int, s *style.Styles) []string {
	var lines []string
	for _, f := range fs {
		head := string(f.Code)
		if f.Node != "" {
			head += " " + string(f.Node)
		}
		if f.Since != nil {
			head += s.Dim.Render(" since " + wording.Moment(f.Since.Time, now))
		}
		st := style.SeverityState(f.Severity)
		lines = append(lines, draw.Fit(s.Mark(st)+" "+s.Strong.Render(head), w))
		lines = append(lines, draw.Hang("  ", string(f.Summary), w, nil)...)
		for _, e := range f.Evidence {
			at := ""
			if e.At != nil {
				at = " at " + wording.Moment(e.At.Time, now)
			}
			lines = append(lines, draw.Hang("    ", string(e.Source)+" = "+string(e.Value)+at, w, s.Dim.Render)...)
		}
	}
	return lines
}

// facts shows what is known of a node: its part in the verdicts, its findings, and
// what happened on its lane, with the cursor of the timeline where it comes from there.
func (m *Model) facts(node report.Text, lane *report.Lane, common []report.Mark, at time.Time) dialog.Dialog {
	return &dialog.Reader{Title: "Node " + string(node), Most: 120, On: map[keymap.Command]any{keymap.Paste: toPaste{node}}, Lines: func(w int, s *style.Styles) []string {
		r := m.st.Report
		var lines []string
		var fs []report.Finding
		marks := slices.Clone(common)
		if lane != nil {
			marks = append(marks, lane.Marks...)
		}
		for _, f := range r.ClusterFindings {
			if f.Node == node {
				fs = append(fs, f)
			}
		}
		for i := range r.Workloads {
			x := &r.Workloads[i]
			for _, c := range classes(x.Measures) {
				if slices.Contains(c.nodes, node) {
					st := report.StepOK
					if c.severity != "" {
						st = style.SeverityState(c.severity)
					}
					lines = append(lines, draw.Hang(s.Mark(st)+" ", string(x.Name)+": "+c.means, w, nil)...)
				}
			}
			for _, f := range x.Findings {
				if f.Node == node {
					fs = append(fs, f)
				}
			}
			if lane == nil && x.Timeline != nil {
				for _, l := range x.Timeline.Lanes {
					if l.Node == node {
						marks = append(marks, l.Marks...)
					}
				}
			}
		}
		for _, g := range [][]string{history(marks, lane != nil, at, r.AsOf.Time, w, s), heard(m.heardAbout(node), w, s), findings(fs, r.AsOf.Time, w, s)} {
			if len(g) > 0 && len(lines) > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, g...)
		}
		if len(lines) == 0 {
			return []string{s.Dim.Render("nothing was noticed on this node")}
		}
		return lines
	}}
}

// history lists marks in order of time with their sources; where cut is set, a line
// shows where the cursor stands among them.
func history(marks []report.Mark, cut bool, at, now time.Time, w int, s *style.Styles) []string {
	slices.SortStableFunc(marks, func(a, b report.Mark) int { return a.At.Compare(b.At.Time) })
	var lines []string
	cursor := func() {
		lines = append(lines, draw.Fit(s.Key.Render("┃ "+wording.Moment(at, now)+" the cursor"), w))
		cut = false
	}
	for _, k := range marks {
		if cut && k.At.After(at) {
			cursor()
		}
		when := wording.Moment(k.At.Time, now)
		if k.Until != nil {
			when += " to " + wording.Clock(k.Until.Time)
		}
		text := string(k.Text)
		if text == "" {
			text = string(k.Kind)
		}
		lines = append(lines, draw.Hang("  "+s.Strong.Render(when)+"  ", text, w, nil)...)
		if k.Source != "" {
			lines = append(lines, draw.Hang("      ", "read from "+string(k.Source), w, s.Dim.Render)...)
		}
	}
	if cut && len(marks) > 0 {
		cursor()
	}
	return lines
}
