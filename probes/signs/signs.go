// Package signs reads what a container's log or a node's console said, and
// recognises the lines that are known to tell why a Pod or a node fails. It is
// pure: text in, signs out. What no sign knows is not interpreted.
package signs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Name is the stable name of a sign.
type Name string

// Options say what is read.
type Options struct {
	// Console: the text comes from a node's console, where the output of commands
	// such as ip route, ls or crictl ps tells something as a whole.
	Console bool
	// AsOf is the cluster's time of the reading. Many lines carry no year, and
	// whether a certificate has expired is asked of it. Zero: such lines have no time.
	AsOf time.Time
	// Redact hides what looks secret in a line; nil hides nothing.
	Redact func(string) string
}

// Reading is what was recognised in some lines.
type Reading struct {
	Lines int     `json:"lines"` // that were read
	Found []Found `json:"found,omitempty"`
	// Unknown are the last lines that call themselves an error and that no sign
	// explains, at most mostUnknown.
	Unknown []report.Text `json:"unknown,omitempty"`
}

// Found is one sign with the line that tells it.
type Found struct {
	Name  Name             `json:"name"`
	State report.StepState `json:"state"`           // Anomaly, Notice, or OK for good news
	About report.Text      `json:"about,omitempty"` // the address, path, process or image that it is about
	Means report.Text      `json:"means"`           // in plain words, for an incident such as this
	Do    report.Text      `json:"do"`              // what to do next
	Line  report.Text      `json:"line"`            // the first line that tells it: clean, bounded, without secrets
	Count int              `json:"count"`           // lines that tell it
	First *report.Time     `json:"first,omitempty"` // of the lines that carry a time
	Last  *report.Time     `json:"last,omitempty"`
}

// Headline is a sign in one line: its name, what it is about, how often and when.
func (f Found) Headline() report.Text {
	out := string(f.Name)
	if f.About != "" {
		out += " " + string(f.About)
	}
	if f.Count > 1 {
		out += fmt.Sprintf(", %d lines", f.Count)
	}
	if f.First != nil {
		first, last := f.First.UTC(), f.Last.UTC()
		out += ", " + first.Format("15:04:05")
		if last.Truncate(time.Second).After(first.Truncate(time.Second)) {
			out += " to " + last.Format("15:04:05")
		}
	}
	return report.Clean(out)
}

// Evidence is what one source said when it was read, kept with the incident.
type Evidence struct {
	From   Source      `json:"from"`
	At     report.Time `json:"at"`               // cluster time of the reading
	Cut    bool        `json:"cut,omitempty"`    // there was more, which was not read
	Failed report.Text `json:"failed,omitempty"` // why nothing was read
	Never  bool        `json:"never,omitempty"`  // the container has not run yet, so there is nothing to read
	Reading
}

// Source says where lines come from: a container's log, or with Pod "" a node's console.
type Source struct {
	Node      report.Text `json:"node,omitempty"`
	Namespace report.Text `json:"namespace,omitempty"`
	Pod       report.Text `json:"pod,omitempty"`
	Container report.Text `json:"container,omitempty"`
	Previous  bool        `json:"previous,omitempty"` // of the container's run before this one
}

// String names a source in a sentence.
func (s Source) String() string {
	if s.Pod == "" {
		return "console of " + string(s.Node)
	}
	out := "log of " + string(s.Container) + " in " + string(s.Pod)
	if s.Previous {
		out = "previous " + out
	}
	return out
}

// The bounds: a flood of lines must stay readable.
const (
	mostLine    = 300 // runes of an evidence line
	mostAbout   = 100 // runes of what a sign is about
	mostKinds   = 3   // things that one sign is about, each on its own; the rest is counted together
	mostUnknown = 3
)

// Read recognises known signs in lines. The gravest come first, then the more
// frequent ones.
func Read(lines []string, o Options) Reading {
	r := reader{o: o, at: map[key]int{}, kinds: map[Name]int{}}
	for _, raw := range lines {
		line := string(report.Clean(raw))
		if strings.TrimSpace(line) == "" {
			continue
		}
		r.out.Lines++
		if !notSpoken.MatchString(line) {
			r.line(line, leading.ReplaceAllString(line, ""))
		}
	}
	if o.Console {
		r.blocks(lines)
	}
	slices.SortStableFunc(r.out.Found, func(a, b Found) int {
		return cmp.Or(rank(a)-rank(b), b.Count-a.Count)
	})
	return r.out
}

// rank orders signs: what is wrong in the catalogue's order, what is worth
// knowing, good news.
func rank(f Found) int {
	i := slices.IndexFunc(catalogue, func(s sign) bool { return s.name == f.Name })
	switch f.State {
	case report.StepAnomaly:
		return i
	case report.StepNotice:
		return i + 1000
	}
	return i + 2000
}

type key struct {
	name  Name
	about string
}

type reader struct {
	o     Options
	out   Reading
	at    map[key]int // index in out.Found
	kinds map[Name]int
}

// line looks for every sign in one clean line; text is what the program wrote, without
// the time that the API server put before it.
func (r *reader) line(line, text string) {
	lower := strings.ToLower(text)
	hits := map[*sign]string{}
	for i := range catalogue {
		s := &catalogue[i]
		if s.console && !r.o.Console || !containsAny(lower, s.words) {
			continue
		}
		if about, ok := s.in(text); ok {
			hits[s] = about
		}
	}
	explained := map[Name]bool{}
	for s := range hits {
		for _, n := range s.over {
			explained[n] = true
		}
	}
	told := false
	for i := range catalogue { // in its order, which a map has not
		s := &catalogue[i]
		about, ok := hits[s]
		if !ok || explained[s.name] || s.weak && told {
			continue
		}
		told = true
		r.found(s, about, text, lineTime(line, r.o.AsOf))
	}
	if !told && len(hits) == 0 && complains.MatchString(text) {
		r.out.Unknown = append(r.out.Unknown, r.shown(text, 0))
		if n := len(r.out.Unknown) - mostUnknown; n > 0 {
			r.out.Unknown = slices.Delete(r.out.Unknown, 0, n)
		}
	}
}

// found counts a sign.
func (r *reader) found(s *sign, about, line string, t time.Time) {
	about = bounded(r.redact(strings.TrimRight(quotes.Replace(about), `\:;,.()`)), mostAbout)
	k := key{s.name, about}
	i, ok := r.at[k]
	if !ok && r.kinds[s.name] >= mostKinds {
		k.about = "others" // counted together
		i, ok = r.at[k]
	}
	if !ok {
		i = len(r.out.Found)
		r.at[k] = i
		r.kinds[s.name]++
		focus := 0
		if m := s.place(line); m != nil {
			focus = m[0]
		}
		r.out.Found = append(r.out.Found, Found{Name: s.name, State: s.state, About: report.Clean(k.about), Means: s.means, Do: s.do, Line: r.shown(line, focus)})
	}
	f := &r.out.Found[i]
	f.Count++
	if t.IsZero() {
		return
	}
	if f.First == nil || t.Before(f.First.Time) {
		f.First = report.At(t)
	}
	if f.Last == nil || t.After(f.Last.Time) {
		f.Last = report.At(t)
	}
}

// quotes stand around names in many lines, and before quotes that are quoted.
var quotes = strings.NewReplacer(`\`, "", `"`, "", "'", "")

func (r *reader) redact(s string) string {
	if r.o.Redact == nil {
		return s
	}
	return r.o.Redact(s)
}

// shown is a line as evidence. Secrets are hidden in the whole line before it is
// cut; of a long one the beginning stays, for its time, and what the sign is in.
func (r *reader) shown(line string, focus int) report.Text {
	mark := line[focus:]
	clean := r.redact(line)
	runes := []rune(clean)
	if len(runes) <= mostLine {
		return report.Clean(clean)
	}
	// Where the line still has the mark, the window is put around it.
	at := strings.Index(clean, mark[:min(len(mark), 12)])
	if at < 0 {
		at = 0
	}
	from := len([]rune(clean[:at]))
	if from < mostLine-80 {
		return report.Clean(bounded(clean, mostLine))
	}
	const head = 60
	start := from - 80
	end := min(len(runes), start+mostLine-head)
	out := string(runes[:head]) + " … " + string(runes[start:end])
	if end < len(runes) {
		out += "…"
	}
	return report.Clean(out)
}

func bounded(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

var (
	// leading is the time that the API server puts before each line of a log.
	leading = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) `)
	// notSpoken are lines that hold words of signs without reporting anything: output
	// of tests, a program's list of its flags, comments, and the prompt of a shell
	// with the command that was typed.
	notSpoken = regexp.MustCompile(`^(?:\S+Z )?\s*(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|FAIL|SKIP)|ok\s+\S+\s+\(?[\d.c]|# |[$>] |\[?[\w.-]+@[\w.-]+[^$#%]{0,80}[$#%] |.{0,80}\bFLAG: --)`)
	// denied is what stands before words that are not meant.
	denied = regexp.MustCompile(`(?i)\b(?:no|not|never|without|0|zero|if|when|until|ignor(?:e|es|ed|ing)|retry(?:ing|able)?(?: on)?|retry[-_]on|e\.g\.)[\s:="'(]*$`)
	// complains are lines that their program calls an error.
	complains = regexp.MustCompile(`^E\d{4} |\blevel=(?:error|fatal)\b|"level":\s*"(?:error|fatal)"|\[(?:ERROR|FATAL|CRITICAL|emerg|alert|crit|error)\]|^(?:ERROR|FATAL|CRITICAL)\b|^[Ee]rror: |: E\d{4} `)
)
