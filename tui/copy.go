package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
)

// copy copies the step's command, or asks which one.
func (m *Model) copy() tea.Cmd {
	s := m.checklist.Step()
	if len(s.Commands) == 1 {
		return m.copyText(string(s.Commands[0]))
	}
	var es []dialog.Entry
	for i, c := range s.Commands {
		e := dialog.Entry{Label: string(c), Value: toCopy{string(c)}}
		if i < len(s.Says) && s.Says[i] != "" {
			e.Label, e.Detail = string(s.Says[i]), string(c)
		}
		es = append(es, e)
	}
	m.push(dialog.NewMenu("Copy which command", es))
	return nil
}

// copyText gives the text to the system's clipboard and, by OSC 52, to the
// terminal, which may be on another machine than this program.
func (m *Model) copyText(text string) tea.Cmd {
	m.o.Send(incident.Copied{Command: text})
	write := m.o.Clipboard
	return tea.Batch(tea.SetClipboard(text), func() tea.Msg { return copiedMsg{text, write(text)} })
}

// copied says which clipboard took it. A terminal does not answer to OSC 52, so
// of that it can only be said that it was sent.
func (m *Model) copied(c copiedMsg) {
	if c.err == nil {
		m.say("copied to the system clipboard, and sent to the terminal (OSC 52)", false)
		return
	}
	why, _, _ := strings.Cut(string(report.Clean(c.err.Error())), ".")
	m.say("sent to the terminal (OSC 52); system clipboard: "+why, false)
}
