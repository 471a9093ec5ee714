package tui

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// The probes of the steps that what is read on request belongs to.
const (
	podProbe     = "new-pod"
	consoleProbe = "node-console"
)

// asks tells whether the open step is answered by that probe.
func (m *Model) asks(probe string) bool {
	s := m.checklist.Step()
	return s != nil && s.Probe == probe
}

// logs reads the logs of the Pod in question, or asks of which.
func (m *Model) logs() {
	if es := m.podsToRead(); len(es) == 1 {
		m.chosen(es[0].Value)
	} else {
		first := 0
		for i, p := range m.st.Pods {
			if !p.Read {
				first = i
				break
			}
		}
		m.push(dialog.NewMenu("Read the logs of which Pod (all its containers)", es, first))
	}
}

func (m *Model) podsToRead() []dialog.Entry {
	var es []dialog.Entry
	for _, p := range m.st.Pods {
		mark := m.s.Mark(report.StepNotYet)
		if p.Read {
			mark = m.s.Mark(report.StepOK)
		}
		es = append(es, dialog.Entry{Kind: "logs", Label: string(p.Name), Mark: mark, Detail: string(p.Node) + ": " + string(p.Why),
			Value: incident.ReadLogs{Namespace: string(p.Namespace), Pod: string(p.Name)}})
	}
	return es
}

// paste opens the editor for a console's output, or asks of which node it is.
func (m *Model) pasteConsole() {
	if es := m.consoles(); len(es) == 1 {
		m.chosen(es[0].Value)
	} else {
		m.push(dialog.NewMenu("Paste the console of which node", es))
	}
}

func (m *Model) consoles() []dialog.Entry {
	heard := map[report.Text]bool{}
	for _, e := range m.st.Evidence {
		if e.From.Pod == "" {
			heard[e.From.Node] = true
		}
	}
	var es []dialog.Entry
	for _, n := range m.st.Consoles {
		e := dialog.Entry{Kind: "console", Label: string(n), Mark: m.s.Mark(report.StepNotYet), Detail: "the API does not reach it", Value: toPaste{n}}
		if heard[n] {
			e.Mark, e.Detail = m.s.Mark(report.StepOK), "was pasted before"
		}
		es = append(es, e)
	}
	return es
}

// heard lists what logs and consoles said, with what each sign means.
func heard(all []signs.Evidence, w int, s *style.Styles) []string {
	var lines []string
	for _, e := range all {
		lines = append(lines, draw.Hang("", e.From.String(), w, s.Strong.Render)...)
		switch {
		case e.Failed != "":
			lines = append(lines, draw.Hang(s.Mark(report.StepUnknown)+" ", string(e.Failed), w, nil)...)
		case len(e.Found) == 0:
			lines = append(lines, draw.Hang(s.Mark(report.StepOK)+" ", "no known sign in "+wording.Count(e.Lines, "line"), w, nil)...)
		}
		for _, f := range e.Found {
			lines = append(lines, draw.Hang(s.Mark(f.State)+" ", string(f.Headline()), w, s.Strong.Render)...)
			lines = append(lines, draw.Hang("    ", string(f.Line), w, s.Code.Render)...)
			lines = append(lines, draw.Hang("  ", string(f.Means), w, nil)...)
			lines = append(lines, draw.Hang("  ", string(f.Do), w, nil)...)
		}
		for _, t := range e.Unknown {
			lines = append(lines, draw.Hang("  not known: ", string(t), w, s.Code.Render)...)
		}
	}
	return lines
}

// heardAbout is what was heard of a node and of the Pods on it.
func (m *Model) heardAbout(node report.Text) []signs.Evidence {
	var out []signs.Evidence
	for _, e := range m.st.Evidence {
		if e.From.Node == node {
			out = append(out, e)
		}
	}
	return out
}
