package headless

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// writer lays text out in two columns: a heading in capitals, and what it is about.
type writer struct {
	b      *bytes.Buffer
	width  int
	colour bool
	asOf   time.Time
}

// margin is the width of the column of headings.
const margin = 10

// maxNames bounds lists of nodes and Pods in text; JSON has them all.
const maxNames = 8

func writeText(b *bytes.Buffer, r *report.Report, o Options) {
	w := &writer{b: b, width: o.Width, colour: o.Colour, asOf: r.AsOf.Time}
	if w.width == 0 {
		w.width = 80
	}
	w.width = max(w.width, 40)
	if m := preflightOf(r); m != nil {
		w.preflight(r, m)
		return
	}
	main := mainWorkload(r)
	w.verdict(r, main)
	w.do(r.Recommendation)
	w.nodes(r)
	w.stakes(r)
	if main != nil {
		w.rollout(r, main)
		w.owners(main)
		w.measures(main)
	}
	for i := range r.Workloads {
		w.workload(&r.Workloads[i], &r.Workloads[i] == main)
	}
	if len(r.ClusterFindings) > 0 {
		w.line("")
		w.line(w.strong("CLUSTER"))
		w.findings(r.ClusterFindings)
	}
	w.notRead(r)
	w.source(r)
}

// mainWorkload is the one that the incident's verdict is about, or the worst one.
func mainWorkload(r *report.Report) *report.Workload {
	for i := range r.Workloads {
		if r.Workloads[i].Key().String() == string(r.Verdict.Workload) {
			return &r.Workloads[i]
		}
	}
	if len(r.Workloads) > 0 && r.Workloads[0].Verdict.Attribution == r.Verdict.Attribution {
		return &r.Workloads[0]
	}
	return nil
}

func (w *writer) verdict(r *report.Report, main *report.Workload) {
	v := r.Verdict
	first := string(v.Attribution)
	if v.Confidence != "" {
		first += ", " + string(v.Confidence) + " confidence"
	}
	w.line(w.head("VERDICT") + w.strong(first))
	if len(r.Waiting) > 0 {
		w.para("", "not final: still reading "+listed(r.Waiting, maxNames))
	}
	switch {
	case v.Workload != "" && v.RootCause != "":
		w.para("", string(v.Workload)+", root cause "+string(v.RootCause))
	case v.Workload != "":
		w.para("", string(v.Workload))
	case v.RootCause != "":
		w.para("", "root cause "+string(v.RootCause))
	}
	w.para("", string(v.Summary))
	if len(v.Contributing) > 0 {
		w.para("", "with it: "+joinCodes(v.Contributing))
	}
	reasons := v
	if main != nil && main.Verdict.Attribution == v.Attribution && len(v.For)+len(v.Against)+len(v.Missing) == 0 {
		reasons = main.Verdict
	}
	w.list("WHY", "+ ", reasons.For)
	w.list("AGAINST", "- ", reasons.Against)
	w.list("MISSING", "? ", reasons.Missing)
}

// do says what to do now.
func (w *writer) do(c report.Recommendation) {
	if c.Action == "" || c.Action == report.ActionNone && c.Why == "" {
		return
	}
	heading, n := "DO NOW", 1
	for _, f := range c.First {
		w.para(heading, fmt.Sprintf("%d. %s", n, described(f)))
		heading = ""
		n++
	}
	action := string(c.Action)
	if c.ToRevision != nil {
		action += fmt.Sprintf(" to revision %d", *c.ToRevision)
	}
	if c.Pod != "" {
		action += " " + string(c.Pod)
	}
	if n > 1 {
		action = fmt.Sprintf("%d. %s", n, action)
	}
	if c.Why != "" {
		action += ": " + string(c.Why)
	}
	w.para(heading, action)
	w.names("reaches", c.Reachable)
	w.names("out of reach", c.Unreachable)
	for _, t := range c.WatchOut {
		w.para("", "! "+string(t))
	}
}

func (w *writer) nodes(r *report.Report) {
	n := r.Nodes
	if n.Total == 0 {
		return
	}
	s := fmt.Sprintf("%d: %d Ready, %d NotReady, %d Unknown", n.Total, n.Ready, n.NotReady, n.Unknown)
	if n.Cordoned > 0 {
		s += fmt.Sprintf(", %d cordoned", n.Cordoned)
	}
	w.para("NODES", s)
}

// stakes says what else the failing nodes take, and what could not be looked at; what
// is fine stands in the JSON.
func (w *writer) stakes(r *report.Report) {
	heading := "AT STAKE"
	for _, s := range stakesToTell(r) {
		w.para(heading, stakeMark(s)+string(s.Text))
		heading = ""
	}
}

// stakesToTell are those that are not fine, the worst first.
func stakesToTell(r *report.Report) []*report.Stake {
	var out []*report.Stake
	for _, state := range []report.StepState{report.StepAnomaly, report.StepNotice, report.StepUnknown} {
		for i := range r.AtStake {
			if r.AtStake[i].State == state {
				out = append(out, &r.AtStake[i])
			}
		}
	}
	return out
}

func stakeMark(s *report.Stake) string {
	switch s.State {
	case report.StepAnomaly:
		return "! "
	case report.StepUnknown:
		return "? "
	}
	return "- "
}

// rollout names the workload where the verdict names none: that nodes fail by themselves
// says nothing of whose rollout this is.
func (w *writer) rollout(r *report.Report, m *report.Workload) {
	for i, s := range rolloutFacts(&m.Rollout, w.clock) {
		heading := ""
		if i == 0 {
			heading = "ROLLOUT"
			if r.Verdict.Workload == "" {
				s = m.Key().String() + ": " + s
			}
		}
		w.para(heading, s)
	}
}

// rolloutFacts are the sentences about a rollout, in text and Markdown alike.
func rolloutFacts(o *report.Rollout, clock func(*report.Time) string) []string {
	if o.State == "" {
		return nil
	}
	s := string(o.State)
	if o.Revision != nil {
		s += fmt.Sprintf(", revision %d", *o.Revision)
		if o.PreviousRevision != nil {
			s += fmt.Sprintf(" after %d", *o.PreviousRevision)
		}
	}
	if o.ChangedBy != nil && *o.ChangedBy != "" {
		s += ", changed by " + string(*o.ChangedBy)
	}
	if o.StartedAt != nil {
		s += ", started " + clock(o.StartedAt)
	}
	if o.LastProgressAt != nil {
		s += ", last progress " + clock(o.LastProgressAt)
	}
	facts := []string{s, fmt.Sprintf("%d of %d updated, %d ready, %d available", o.Updated, o.Desired, o.Ready, o.Available)}
	if o.Misscheduled > 0 {
		facts[1] += fmt.Sprintf(", %d misscheduled", o.Misscheduled)
	}
	if o.Strategy != "" {
		s = string(o.Strategy)
		if o.MaxUnavailable != "" {
			s += fmt.Sprintf(", maxUnavailable %s", o.MaxUnavailable)
			if fmt.Sprint(o.MaxUnavailableResolved) != string(o.MaxUnavailable) {
				s += fmt.Sprintf(" (%d)", o.MaxUnavailableResolved)
			}
		}
		if o.MaxSurge != "" && o.MaxSurge != "0" {
			s += fmt.Sprintf(", maxSurge %s", o.MaxSurge)
			if fmt.Sprint(o.MaxSurgeResolved) != string(o.MaxSurge) {
				s += fmt.Sprintf(" (%d)", o.MaxSurgeResolved)
			}
		}
		if o.MinReadySeconds > 0 {
			s += fmt.Sprintf(", minReadySeconds %d", o.MinReadySeconds)
		}
		facts = append(facts, s)
	}
	switch {
	case o.Spreading && o.Brake == "":
		facts = append(facts, fmt.Sprintf("SPREADING: no brake, %s not reached yet", counted(o.NotYetReached, "node")))
	case o.Spreading:
		facts = append(facts, fmt.Sprintf("SPREADING: %s not reached yet; %s", counted(o.NotYetReached, "node"), o.Brake))
	case o.Brake != "":
		facts = append(facts, fmt.Sprintf("brake: %s; %s not reached yet", o.Brake, counted(o.NotYetReached, "node")))
	}
	if o.MayStillFall > 0 {
		s = fmt.Sprintf("updated so recently that they may still fall: %s", counted(o.MayStillFall, "node"))
		if o.FallUntil != nil {
			s += ", until " + clock(o.FallUntil)
		}
		facts = append(facts, s)
	}
	if o.Mode != "" {
		facts = append(facts, "cascade mode "+string(o.Mode)+modes[o.Mode])
	}
	if o.KnownGoodRevision != nil {
		facts = append(facts, fmt.Sprintf("known good: revision %d", *o.KnownGoodRevision))
	}
	if o.Remaining != "" {
		facts = append(facts, "remaining at this pace: "+string(o.Remaining))
	}
	for i, h := range o.BudgetHolders {
		if i == maxNames {
			facts = append(facts, fmt.Sprintf("and %d more hold the budget", len(o.BudgetHolders)-i))
			break
		}
		facts = append(facts, fmt.Sprintf("holds the budget: %s, %s", or(h.Node, h.Pod), h.Why))
	}
	return facts
}

// modes say in a few words how a rollout takes nodes down one after another.
var modes = map[report.Text]string{
	"A": ": nodes stop answering some time after their Pod was replaced",
	"B": ": nodes say themselves that they are not ready, while their Pods stay Ready",
	"C": ": what the old Pod takes with it breaks the node, and no new Pod comes",
	"D": ": old Pods turn unready and are replaced at once, beyond the budget",
}

// described is an action with what it does.
func described(a report.RecommendedAction) string {
	switch a {
	case report.ActionOnDelete:
		return string(a) + ": freeze the rollout, so that no further Pod is replaced"
	case report.ActionChangeManager:
		return string(a) + ": suspend whoever owns the template, or it comes back"
	case report.ActionDeletePod:
		return string(a) + ": let one Pod be made again, and see it work"
	}
	return string(a)
}

func or(a, b report.Text) report.Text {
	if a != "" {
		return a
	}
	return b
}

func (w *writer) notRead(r *report.Report) {
	if len(r.NotRead) == 0 {
		return
	}
	w.line("")
	by := map[string][]report.Text{}
	var order []string
	for _, n := range r.NotRead {
		name := n.Resource
		if n.Namespace != "" {
			name += " in " + n.Namespace
		}
		k := string(n.Reason)
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], name)
	}
	heading := "NOT READ"
	for _, k := range order {
		w.para(heading, strings.ToLower(k)+": "+listed(by[k], len(by[k])))
		heading = ""
	}
}

func (w *writer) source(r *report.Report) {
	s := "as of " + r.AsOf.UTC().Format(time.RFC3339) + ", from " + string(r.Source.Type)
	if r.Source.Context != "" {
		s += ", context " + string(r.Source.Context)
	}
	if r.Source.Version != "" {
		s += ", Kubernetes " + string(r.Source.Version)
	}
	if r.Quiet > 0 {
		s += fmt.Sprintf("; %d more workloads: nothing to say", r.Quiet)
	}
	w.line("")
	w.para("", s)
}

// line writes one line as it is.
func (w *writer) line(s string) {
	w.b.WriteString(strings.TrimRight(s, " "))
	w.b.WriteByte('\n')
}

func (w *writer) head(s string) string {
	return w.strong(s) + strings.Repeat(" ", max(margin-ansi.StringWidth(s), 1))
}

// para writes text beside a heading, wrapped; a text that begins with a mark of
// two columns hangs under it.
func (w *writer) para(heading, text string) {
	if text == "" {
		return
	}
	w.hang(w.head(heading), margin, text)
}

func (w *writer) hang(prefix string, indent int, text string) {
	under := indent
	if len(text) > 2 && text[1] == ' ' && strings.ContainsRune("+-?!", rune(text[0])) {
		under += 2
	}
	for i, l := range wrap(text, w.width-indent, w.width-under) {
		if i > 0 {
			prefix = strings.Repeat(" ", under)
		}
		w.line(prefix + l)
	}
}

// wrap breaks text into lines: at spaces, and within a word only where it is
// longer than a line. Names are full of hyphens and stay whole, so that they can
// be copied.
func wrap(text string, first, rest int) []string {
	text = strings.ReplaceAll(text, "-", whole)
	lines := strings.Split(ansi.Wrap(text, first, ""), "\n")
	if len(lines) > 1 && first != rest {
		tail := strings.TrimSpace(strings.TrimPrefix(text, lines[0]))
		lines = append(lines[:1], strings.Split(ansi.Wrap(tail, rest, ""), "\n")...)
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], whole, "-")
	}
	return lines
}

// whole stands for a hyphen while lines are broken: a character of one column
// that is no place to break at and, being private, in no text of a cluster's.
const whole = "\ue02d"

func (w *writer) list(heading, mark string, texts []report.Text) {
	for _, t := range texts {
		w.para(heading, mark+string(t))
		heading = ""
	}
}

func (w *writer) names(label string, names []report.Text) {
	if len(names) > 0 {
		w.para("", fmt.Sprintf("%s (%d): %s", label, len(names), listed(names, maxNames)))
	}
}

// listed lists at most n names and counts the rest.
func listed(names []report.Text, n int) string {
	var b strings.Builder
	for i, name := range names {
		if i == n && len(names) > n+1 {
			fmt.Fprintf(&b, " and %d more", len(names)-n)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

func joinCodes(codes []report.Code) string {
	names := make([]report.Text, len(codes))
	for i, c := range codes {
		names[i] = report.Text(c)
	}
	return listed(names, len(names))
}

// clock writes a moment as shortly as it can be told from others: without its
// date where it is the report's own.
func (w *writer) clock(t *report.Time) string { return clock(t, w.asOf) }

func clock(t *report.Time, asOf time.Time) string {
	if t == nil || t.IsZero() {
		return "at an unknown time"
	}
	u, now := t.UTC(), asOf.UTC()
	if u.YearDay() == now.YearDay() && u.Year() == now.Year() {
		return u.Format(time.TimeOnly)
	}
	return u.Format("2006-01-02 15:04:05")
}

func (w *writer) strong(s string) string {
	if !w.colour || s == "" {
		return s
	}
	return ansi.NewStyle().Bold().Styled(s)
}

// grade writes a severity; its colour says nothing that the word does not.
func (w *writer) grade(s report.Severity) string {
	word := fmt.Sprintf("%-8s", s)
	if !w.colour {
		return word
	}
	style := ansi.NewStyle()
	switch s {
	case report.Critical:
		style = style.Bold().ForegroundColor(ansi.Red)
	case report.Warning:
		style = style.ForegroundColor(ansi.Yellow)
	default:
		return word
	}
	return style.Styled(word)
}
