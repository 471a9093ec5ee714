package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/timeline"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// works tells whether a command has something to work on now, and if not, why.
// The hints, the help and the palette leave out what does not work.
func (m *Model) works(c keymap.Command) (bool, string) {
	w := m.workload()
	switch c {
	case keymap.Guide, keymap.Act:
		if w == nil {
			return false, "no workload is selected"
		}
	case keymap.Freeze:
		return wording.Freezable(m.freezes())
	case keymap.Timeline:
		if w == nil || m.timelineOf(w.Key()) == nil {
			return false, "there is no timeline: nothing was seen to be replaced or to fall"
		}
	case keymap.Evidence:
		if w == nil && m.checklist.Step() == nil {
			return false, "no workload is selected"
		}
	case keymap.Copy:
		if s := m.checklist.Step(); s == nil || len(s.Commands) == 0 {
			return false, "this step has no command"
		}
	case keymap.Next:
		if s := m.checklist.Step(); s == nil || s.Next == "" {
			return false, "this is the last step; b goes back, esc to triage"
		}
	case keymap.Progress:
		if m.st == nil || m.st.Progress == nil {
			return false, "no action was applied yet"
		}
	case keymap.Logs:
		switch {
		case !m.asks(podProbe):
			return false, "this step asks for no logs"
		case len(m.st.Pods) == 0:
			return false, "no Pod is in question whose logs could be read"
		}
	case keymap.Paste:
		switch {
		case !m.asks(consoleProbe):
			return false, "this step asks for no console; a node's page, which / finds, takes what its console printed"
		case len(m.st.Consoles) == 0:
			return false, "no node needs its console; a node's page, which / finds, takes what its console printed"
		}
	case keymap.Retry:
		if m.st == nil || m.page() != keymap.OnConnect && m.st.Link.Live {
			return false, "the connection is alive"
		}
		if m.page() == keymap.OnConnect && !m.trouble() {
			return false, "the first read is on its way"
		}
	case keymap.Filter:
		if m.page() == keymap.OnTriage && len(m.st.Report.Workloads) == 0 {
			return false, "there is nothing to filter"
		}
	case keymap.Back:
		if m.page() == keymap.OnTriage {
			return false, ""
		}
	}
	return true, ""
}

// do carries out a command of the page in sight.
func (m *Model) do(c keymap.Command) tea.Cmd {
	if c == keymap.None {
		return nil
	}
	if ok, why := m.works(c); !ok {
		if why != "" {
			m.say(why, false)
		}
		return nil
	}
	if m.move(c) {
		return nil
	}
	w := m.workload()
	switch c {
	case keymap.Guide:
		m.triage.Filter(false)
		m.o.Send(incident.OpenWorkload{Workload: w.Key()})
	case keymap.Next:
		m.o.Send(incident.NextStep{})
	case keymap.Previous:
		if m.st.Guide.Current == 0 {
			m.o.Send(incident.CloseWorkload{})
		} else {
			m.o.Send(incident.PreviousStep{})
		}
	case keymap.Skip:
		m.push(dialog.NewAsk(dialog.AskSkip, "Skip this step", "The reason stands in the incident notes.", "why, in a few words", false))
	case keymap.Steps:
		m.push(m.steps())
	case keymap.Copy:
		return m.copy()
	case keymap.Texts:
		m.checklist.Hide(!m.checklist.Hidden())
	case keymap.Freeze:
		return m.act(action.Request{Kind: action.Freeze, Workload: m.freezes().Key()})
	case keymap.Act:
		m.push(m.actions(w))
	case keymap.Timeline:
		m.timeline = timeline.New(w.Key(), m.timelineOf(w.Key()))
	case keymap.Facts:
		if lane, lines, at, ok := m.timeline.Facts(); ok {
			m.push(m.facts(lane.Node, &lane, lines, at))
		}
	case keymap.Evidence:
		m.push(m.evidence())
	case keymap.Filter:
		m.triage.Filter(true)
	case keymap.Find:
		m.push(dialog.NewPalette("Find anything", m.everything()))
	case keymap.Note:
		m.push(dialog.NewAsk(dialog.AskNote, "A note, with the time", "It stands in the incident notes at "+m.clockNow()+" UTC.", "what you saw, thought or did", true))
	case keymap.Export:
		where := m.o.NotesPath
		if where == "" {
			where = "the default place"
		}
		m.push(dialog.NewAsk(dialog.AskPath, "Write the incident notes to", "Empty: "+where+".", where, false))
	case keymap.Progress:
		m.push(m.progress())
	case keymap.Logs:
		m.logs()
	case keymap.Paste:
		m.pasteConsole()
	case keymap.Retry:
		m.say("trying again", false)
		m.o.Send(incident.Retry{})
	case keymap.Help:
		m.push(dialog.NewHelp("Keys that work here", m.working()))
	case keymap.Redraw:
		return tea.ClearScreen
	case keymap.Back:
		if m.timeline != nil {
			m.timeline = nil
		} else {
			m.o.Send(incident.CloseWorkload{})
		}
	case keymap.Quit:
		if m.running() {
			m.push(m.leaving())
			return nil
		}
		return tea.Quit
	}
	return nil
}

// working lists the bindings of the page in sight that do something now.
func (m *Model) working() []keymap.Binding {
	var out []keymap.Binding
	for _, b := range keymap.In(m.page()) {
		if ok, _ := m.works(b.Command); ok {
			out = append(out, b)
		}
	}
	return out
}

// act asks for the preview of an action.
func (m *Model) act(r action.Request) tea.Cmd {
	if !m.st.Link.Live {
		m.say("the API server is not reachable: actions wait until it is", true)
		return nil
	}
	m.o.Send(incident.Act{Request: r})
	return nil
}

// entered handles a line that was typed.
func (m *Model) entered(e dialog.Entered) {
	switch e.Question {
	case dialog.AskNote:
		m.o.Send(incident.Note{Text: e.Text})
	case dialog.AskSkip:
		m.o.Send(incident.SkipStep{Why: e.Text})
	case dialog.AskPath:
		m.o.Send(incident.WriteNotes{Path: e.Text})
	case dialog.AskPod:
		if w := m.workload(); w != nil && e.Text != "" {
			m.act(action.Request{Kind: action.DeletePod, Workload: w.Key(), Pod: e.Text})
		}
	}
}

// What a palette or menu may hold besides intents and commands.
type (
	toNode      struct{ name report.Text }
	toRevisions struct{ w report.WorkloadKey }
	toPods      struct{ w report.WorkloadKey }
	toPodName   struct{}
	toCopy      struct{ command string }
	toPaste     struct{ node report.Text }
	toQuit      struct{}
	toNothing   struct{}
)

// chosen handles the value of an entry that was taken.
func (m *Model) chosen(v any) tea.Cmd {
	switch v := v.(type) {
	case keymap.Command:
		return m.do(v)
	case incident.Act:
		return m.act(v.Request)
	case incident.Intent:
		if _, ok := v.(incident.OpenWorkload); ok {
			m.timeline = nil
		}
		m.o.Send(v)
	case toNode:
		m.push(m.facts(v.name, nil, nil, m.st.Report.AsOf.Time))
	case toRevisions:
		m.push(m.revisions(v.w))
	case toPods:
		m.push(m.pods(v.w))
	case toPodName:
		m.push(dialog.NewAsk(dialog.AskPod, "Delete which Pod", "Its name. The preview and the confirmation come next.", "name of the Pod", true))
	case toPaste:
		m.push(dialog.NewPaste(v.node))
	case toCopy:
		return m.copyText(v.command)
	case toQuit:
		return tea.Quit
	}
	return nil
}

func (m *Model) clockNow() string {
	if m.st == nil || m.st.Report == nil {
		return ""
	}
	return wording.Clock(m.st.Report.AsOf.Time)
}
