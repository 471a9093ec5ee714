package headless

import (
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// nodesBehind bounds the nodes shown behind one counter in text; JSON has more.
const nodesBehind = 2

// coverageFacts are the sentences about a DaemonSet's nodes, in text and Markdown
// alike: who is eligible, the counters with what is behind them.
func coverageFacts(v *report.Coverage) []string {
	if v.Reason != "" {
		return []string{"not known: " + string(v.Reason)}
	}
	s := fmt.Sprintf("%d of %d nodes eligible", v.Eligible, v.Nodes)
	for i, e := range v.Excluded {
		if i == 3 {
			s += fmt.Sprintf("; and %d more reasons", len(v.Excluded)-i)
			break
		}
		s += fmt.Sprintf("; %d not: %s", e.Count, e.Why)
	}
	facts := []string{s}
	var parts []string
	for _, c := range v.Counters {
		part := fmt.Sprintf("%s=%d", c.Name, c.Status)
		if c.Computed != nil && *c.Computed != c.Status {
			part += fmt.Sprintf(" (as it is now: %d)", *c.Computed)
		}
		parts = append(parts, part)
	}
	s = strings.Join(parts, ", ")
	if disagrees(v, report.CounterSettling) {
		s += "; " + string(v.Settling)
	}
	if disagrees(v, report.CounterContradicts) {
		s += "; the status contradicts the nodes and Pods"
	}
	facts = append(facts, s)
	for _, c := range v.Counters {
		for i, n := range c.Behind {
			if more := len(c.Behind) - i + c.More; i == nodesBehind && more > 1 {
				facts = append(facts, fmt.Sprintf("%s: and %d more nodes", c.Name, more))
				break
			}
			facts = append(facts, fmt.Sprintf("%s: %s: %s", c.Name, place(n), n.Why))
		}
	}
	return facts
}

func place(n report.CounterNode) string {
	if n.Pod == "" {
		return string(n.Node)
	}
	return string(n.Node) + ", " + string(n.Pod)
}

func disagrees(v *report.Coverage, s report.CounterState) bool {
	for _, c := range v.Counters {
		if c.State == s {
			return true
		}
	}
	return false
}

// invariantLines are the four invariants, each behind a sign: + holds, - does not, ? is not known.
func invariantLines(v *report.Coverage) []string {
	var out []string
	for _, x := range v.Invariants {
		sign := "? "
		switch x.Holds {
		case report.Holds:
			sign = "+ "
		case report.DoesNotHold:
			sign = "- "
		}
		out = append(out, fmt.Sprintf("%s%s %s: %s", sign, x.Name, x.Holds, x.Why))
	}
	return out
}

// coverage writes a DaemonSet's coverage below its verdict.
func (w *writer) coverage(v *report.Coverage) {
	if v == nil {
		return
	}
	for _, s := range append(coverageFacts(v), invariantLines(v)...) {
		w.hang("  ", 2, s)
	}
}
