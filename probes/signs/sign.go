package signs

import (
	"regexp"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// sign is one row of the catalogue.
type sign struct {
	name  Name
	state report.StepState
	means report.Text
	do    report.Text
	// words: a line without any of them, in lower case, cannot have the sign. It
	// spares nearly every line the expressions.
	words []string
	match []*regexp.Regexp // the first that matches; a group in it is what the sign is about
	about func(line string) string
	not   *regexp.Regexp // a line with this has the words and not the sign
	over  []Name         // signs that this one explains where both are in a line
	// weak: counts only in a line that no other sign explains.
	weak bool
	// console: only the output of a command at a console has it.
	console bool
}

// in tells whether a line has the sign, and what it is about.
func (s *sign) in(line string) (about string, ok bool) {
	if s.not != nil && s.not.MatchString(line) {
		return "", false
	}
	for _, re := range s.match {
		m := re.FindStringSubmatchIndex(line)
		if m == nil || denied.MatchString(line[:m[0]]) {
			continue
		}
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] >= 0 && m[g] < m[g+1] {
				return line[m[g]:m[g+1]], true
			}
		}
		if s.about != nil {
			return s.about(line), true
		}
		return "", true
	}
	return "", false
}

// place is where in a line the sign stands, nil where it does not.
func (s *sign) place(line string) []int {
	for _, re := range s.match {
		if m := re.FindStringIndex(line); m != nil {
			return m
		}
	}
	return nil
}

var addresses = []*regexp.Regexp{
	regexp.MustCompile(`\blookup ([\w.-]+)`),
	regexp.MustCompile(`\bdial (?:tcp|udp)[46]? (?:[^\s>]+->)?(\[[0-9a-fA-F:%]+\]:\d+|[\w.-]+:\d+)`),
	regexp.MustCompile(`->(\[[0-9a-fA-F:%]+\]:\d+|[\w.-]+:\d+)`),
	regexp.MustCompile(`\bupstream: "\w+://([^/"]+)`),
	regexp.MustCompile(`\b[Cc]onnect(?:ion)? to (\[?[\w.:-]+\]? port \d+|[\w.-]+:\d+)`),
	regexp.MustCompile(`\bdial unix (\S+?):? `),
	regexp.MustCompile(`https?://([\w.-]+(?::\d+)?)`),
	regexp.MustCompile(`\bFrom [\w.:-]+ .*[Uu]nreachable`),
}

// address is whom a network error is about.
func address(line string) string {
	for _, re := range addresses {
		if m := re.FindStringSubmatch(line); len(m) > 1 && m[1] != "" {
			return strings.Replace(m[1], " port ", ":", 1)
		}
	}
	return ""
}

// path is the last absolute path before an error about a file.
var beforeError = regexp.MustCompile(`(/[^\s:"'\\]*)["'\\]*:? ?(?:connect: |failed \(\d+: )?(?i:no such file|permission denied|operation not permitted|read-only file system|no space left)`)

func path(line string) string {
	if m := beforeError.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

func all(expressions ...string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, e := range expressions {
		out = append(out, regexp.MustCompile(e))
	}
	return out
}
