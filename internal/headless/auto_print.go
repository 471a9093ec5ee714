package headless

import (
	"fmt"
	"io"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
)

// printer writes what --auto does, for people, without colour. It remembers the
// first error, so that nobody has to ask after every line.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(indent int, format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(strings.Repeat("  ", indent)+fmt.Sprintf(format, args...), " "))
	}
}

func (p *printer) heading(format string, args ...any) {
	p.line(0, "")
	p.line(0, "== "+format, args...)
}

func (p *printer) verdict(r *report.Report) {
	v := r.Verdict
	p.heading("Verdict: %s (%s)", v.Attribution, v.Confidence)
	if v.Workload != "" {
		p.line(0, "workload    %s", v.Workload)
	}
	p.line(0, "root cause  %s", v.RootCause)
	if len(v.Contributing) > 0 {
		p.line(0, "chain       %s", join(v.Contributing))
	}
	p.line(0, "%s", v.Summary)
	for _, t := range v.For {
		p.line(1, "for      %s", t)
	}
	for _, t := range v.Against {
		p.line(1, "against  %s", t)
	}
	for _, t := range v.Missing {
		p.line(1, "missing  %s", t)
	}
}

func (p *printer) step(s runbook.StepView, of int) {
	p.heading("%s %d/%d %s", s.State.Mark(), s.Number, of, s.Title)
	if s.Result.Reason != "" {
		p.line(1, "%s", s.Result.Reason)
	}
	p.lines(s.Result.Lines)
	for _, f := range s.Result.Findings {
		where := ""
		if f.Node != "" {
			where = string(f.Node) + ": "
		}
		p.line(1, "%s [%s] %s%s", f.Code, f.Severity, where, f.Summary)
	}
}

func (p *printer) lines(lines []report.Line) {
	for _, l := range lines {
		p.line(1+l.Indent, "%s %s", l.State.Mark(), l.Text)
	}
}

// dialog prints a preview as the confirmation shows it.
func (p *printer) dialog(d action.Preview) {
	p.heading("%s", d.Title)
	permission := "not known"
	if d.Permission != nil {
		permission = map[bool]string{true: "yes", false: "no"}[*d.Permission]
	}
	p.line(1, "dry run %s   permission %s", withWhy(string(d.DryRun), d.DryRunWhy), withWhy(permission, d.PermissionWhy))
	for _, t := range d.Diff {
		p.line(1, "%s", t)
	}
	for _, t := range d.Prediction.Summary {
		p.line(1, "%s", t)
		if strings.HasPrefix(string(t), "CANNOT") {
			p.texts(2, d.Prediction.OutOfReach)
		}
		if strings.HasPrefix(string(t), "LOSES") {
			p.texts(2, d.Prediction.NeverBack)
		}
	}
	for _, t := range d.Prediction.Unknown {
		p.line(1, "? %s", t)
	}
	for _, t := range d.WatchOut {
		p.line(1, "WATCH OUT  %s", t)
	}
	if d.Blocked != "" {
		p.line(1, "BLOCKED    %s", d.Blocked)
	}
	p.line(1, "COMMAND    %s", d.Kubectl)
	p.line(1, "REVERSE    %s", d.Reverse)
	for _, t := range d.GiveBack {
		p.line(1, "GIVE BACK  %s", t)
	}
}

func withWhy(s string, why report.Text) string {
	if why == "" {
		return s
	}
	return fmt.Sprintf("%s (%s)", s, why)
}

func (p *printer) progress(at string, g incident.Progress) {
	p.line(0, "%s UTC  %s: %s", at, g.Title, g.Phase)
	p.lines(g.Lines)
	if g.Failed != "" {
		p.line(1, "%s %s", report.StepAnomaly.Mark(), g.Failed)
	}
}

func (p *printer) texts(indent int, texts []report.Text) {
	for _, t := range texts {
		p.line(indent, "%s", t)
	}
}

// left prints the nodes that nothing here mends, and what is still changed by hand.
func (p *printer) left(s *incident.State) {
	var left []report.Text
	if s.Recovery != nil {
		for _, l := range s.Recovery.Lines {
			if l.State == report.StepNotice {
				left = append(left, l.Text)
			}
		}
	}
	left = append(left, s.Left...)
	if len(left) == 0 {
		return
	}
	p.heading("Left by hand")
	for _, t := range left {
		p.line(1, "! %s", t)
	}
}

func (p *printer) result(what string, err error) {
	if err != nil {
		p.line(1, "%s not %s: %v", report.StepAnomaly.Mark(), what, err)
		return
	}
	p.line(1, "%s %s", report.StepOK.Mark(), what)
}

func join[T ~string](s []T) string {
	out := make([]string, len(s))
	for i, t := range s {
		out[i] = string(t)
	}
	return strings.Join(out, ", ")
}
