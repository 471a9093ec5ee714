package notes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// row says how the timeline calls an entry, "" where it leaves it out.
var row = map[session.Kind]string{
	session.SessionStarted: "Session", session.SessionResumed: "Session", session.SessionEnded: "Session",
	session.ConnectionLost: "Connection", session.ConnectionRestored: "Connection",
	session.StepEntered: "Step", session.StepResult: "Found", session.StepSkipped: "Skipped",
	session.VerdictChanged: "Verdict", session.Note: "Note",
	session.ActionConfirmed: "Action", session.ActionApplied: "Action", session.ActionFailed: "Action", session.ActionVerified: "Action",
	session.EvidenceRead: "Evidence", session.NotesWritten: "Session",
}

// what says in words what an entry without a text of its own tells.
var what = map[session.Kind]string{
	session.SessionStarted: "session started", session.SessionResumed: "session resumed", session.SessionEnded: "session ended",
	session.ConnectionLost: "connection to the API server lost", session.ConnectionRestored: "connection to the API server restored",
	session.ActionConfirmed: "confirmed", session.ActionApplied: "accepted by the API server", session.ActionFailed: "failed", session.ActionVerified: "verified",
}

// onOneClock gives entries that were kept before the cluster's time was known that
// time as well, by how far this machine's clock is off: a laptop hours ahead would
// put the beginning at the end.
func onOneClock(in []session.Entry) []session.Entry {
	i := slices.IndexFunc(in, func(e session.Entry) bool { return e.Cluster != nil })
	if i < 0 {
		return in
	}
	out := slices.Clone(in)
	first := in[i]
	for j := range out[:i] {
		at := first.Cluster.Add(out[j].Wall.Sub(first.Wall))
		out[j].Cluster = &at
	}
	return out
}

// timeline puts what was done and seen beside what happened to the nodes.
func timeline(in Input) []Moment {
	out := marks(in)
	for _, e := range in.Entries {
		kind := row[e.Kind]
		if kind == "" {
			continue
		}
		out = append(out, Moment{At: report.Time{Time: e.At().UTC()}, Kind: kind, Text: entryText(e)})
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return a.At.Compare(b.At.Time) })
	return out
}

func entryText(e session.Entry) report.Text {
	text := e.Text
	var a session.Action
	switch e.Kind {
	case session.ActionConfirmed, session.ActionApplied, session.ActionFailed, session.ActionVerified:
		if e.Decode(&a) == nil && a.Title != "" {
			text = a.Title + ": " + what[e.Kind]
			if a.Error != "" {
				text += ": " + a.Error
			}
		}
	case session.NotesWritten:
		if !strings.HasPrefix(text, "notes written") { // as in journals of earlier versions
			text = strings.TrimSpace("notes written " + text)
		}
	}
	return clean(cmp.Or(text, what[e.Kind], string(e.Kind)))
}

var nodeMark = map[report.MarkKind]string{
	report.MarkRolloutStart: "Rollout", report.MarkNodeNotReady: "Node", report.MarkNodeUnknown: "Node", report.MarkNodeReady: "Node", report.MarkRebooted: "Node",
}

// marks are the moments of the cluster itself, from the fuller of the timelines.
func marks(in Input) []Moment {
	var t *report.Timeline
	for _, r := range []*report.Report{in.Worst, in.Report} {
		if w := workload(r, in.Target); w != nil && w.Timeline != nil && (t == nil || len(w.Timeline.Lanes) >= len(t.Lanes)) {
			t = w.Timeline
		}
	}
	if t == nil {
		return nil
	}
	var out []Moment
	add := func(m report.Mark, node report.Text) {
		if kind := nodeMark[m.Kind]; kind != "" {
			text := cmp.Or(string(m.Text), string(m.Kind))
			if node != "" && !strings.Contains(text, string(node)) {
				text = string(node) + ": " + text
			}
			out = append(out, Moment{At: report.Time{Time: m.At.UTC()}, Kind: kind, Text: clean(text)})
		}
	}
	for _, m := range t.Lines {
		add(m, "")
	}
	for _, l := range t.Lanes {
		for _, m := range l.Marks {
			add(m, l.Node)
		}
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return a.At.Compare(b.At.Time) })
	if n := len(out) - maxRows; n > 0 {
		last := out[maxRows-1].At
		out = append(out[:maxRows], Moment{At: last, Kind: "Node", Text: report.Textf("(%d later changes of nodes are left out)", n)})
	}
	return out
}
