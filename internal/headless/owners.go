package headless

import "github.com/rollcall-k8s/rollcall/probes/report"

// ownerFact is one line about who owns a workload, in text and Markdown alike.
type ownerFact struct {
	text   string
	detail bool // of the owner above it
}

// ownerFacts say who owns a workload, how that is known, what it does to a change by
// hand and, where such a change is proposed, how it is held and given back. None of a
// workload that nobody needs to touch and nobody owns.
func ownerFacts(m *report.Workload) []ownerFact {
	var facts []ownerFact
	touched := changesTemplate(&m.Recommendation)
	for i := range m.Owners {
		o := &m.Owners[i]
		s := string(o.Name()) + " " + string(o.Does) + " (" + string(o.Certainty)
		if len(o.Evidence) > 0 {
			s += ": " + string(o.Evidence[0].Source)
		}
		facts = append(facts, ownerFact{text: s + ")"})
		if !touched {
			continue
		}
		for _, part := range []struct {
			label string
			list  []report.Command
		}{{"hold it: ", o.Hold}, {"instead: ", o.Instead}, {"give it back: ", o.GiveBack}} {
			for _, c := range part.list {
				facts = append(facts, ownerFact{part.label + c.String(), true})
			}
		}
		for _, t := range o.Beware {
			facts = append(facts, ownerFact{"beware: " + string(t), true})
		}
	}
	trouble := m.Verdict.Attribution != report.Healthy && m.Verdict.Attribution != ""
	switch {
	case !m.WritersKnown && (trouble || len(facts) > 0):
		facts = append(facts, ownerFact{text: "who writes it is not known for certain: managedFields were not read"})
	case len(facts) == 0 && trouble:
		facts = append(facts, ownerFact{text: "nobody who leaves a label, an annotation, an owner reference or writes of their own"})
	}
	return facts
}

// changesTemplate tells whether what is proposed changes the object that its owner
// would put back: only then is it of use how the owner is held.
func changesTemplate(r *report.Recommendation) bool {
	switch r.Action {
	case report.ActionRollBack, report.ActionOnDelete, report.ActionFixWorkload, report.ActionChangeManager:
		return true
	}
	return len(r.First) > 0
}

func (w *writer) owners(m *report.Workload) {
	heading := "OWNER"
	for _, f := range ownerFacts(m) {
		text := f.text
		if f.detail {
			text = "  " + text
		}
		w.para(heading, text)
		heading = ""
	}
}
