// Package connect is the page before there is a picture: what is being read, or
// why nothing can be and what to do about it.
package connect

import (
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// NoPicture tells whether nothing at all was read yet.
func NoPicture(st *incident.State) bool {
	return st == nil || st.Report == nil ||
		!st.Link.Live && len(st.Report.Waiting) > 0 && st.Report.Nodes.Total == 0 && len(st.Report.Workloads) == 0
}

// Failed tells whether the first read has failed, as far as the state says.
func Failed(st *incident.State) bool {
	return st != nil && NoPicture(st) && (st.Report != nil || st.Said != nil && st.Said.Bad)
}

// View is the body of the page: exactly h lines of at most w cells.
func View(st *incident.State, w, h int, s *style.Styles) []string {
	lines := []string{""}
	if st == nil {
		return draw.Fill(append(lines, " "+s.Mark(report.StepLooking)+" starting"), w, h)
	}
	id := st.Identity
	if !Failed(st) {
		lines = append(lines, draw.Hang(" "+s.Mark(report.StepLooking)+" ", "Reading "+name(id)+": waiting for the first picture of its nodes and workloads.", w-1, nil)...)
		lines = append(lines, "", s.Dim.Render(draw.Fit("   Nothing is shown as a number before it was read.", w)))
		return draw.Fill(lines, w, h)
	}
	lines = append(lines, draw.Hang(" "+s.Mark(report.StepAnomaly)+" ", "No picture of "+name(id), w-1, s.Bad.Render)...)
	lines = append(lines, "")
	why := st.Link.Why
	if st.Said != nil && st.Said.Bad {
		why = st.Said.Text
	}
	lines = append(lines, draw.Hang("   ", string(why), w-1, nil)...)
	lines = append(lines, "")
	for _, x := range [][2]string{{"context", string(id.Context)}, {"server", string(id.Server)}, {"user", string(id.User)}} {
		if x[1] != "" {
			lines = append(lines, draw.Fit("   "+s.Dim.Render(draw.Pad(x[0], 9))+x[1], w))
		}
	}
	lines = append(lines, "", draw.Fit("   "+s.Key.Render("r")+" tries again now. "+s.Key.Render("q")+" leaves.", w))
	return draw.Fill(lines, w, h)
}

func name(id incident.Identity) string {
	if id.Context != "" {
		return string(id.Context)
	}
	if id.Server != "" {
		return string(id.Server)
	}
	return "the cluster"
}
