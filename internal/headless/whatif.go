package headless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// WhatIfFormats are the names that -o takes for a what-if.
var WhatIfFormats = []string{string(Text), string(JSON), string(YAML)}

// RenderWhatIf writes what a change of nodes would do to w, in one write.
func RenderWhatIf(w io.Writer, r *report.WhatIf, o Options) error {
	var b bytes.Buffer
	switch o.Format {
	case JSON:
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("writing the answer as JSON: %w", err)
		}
	case YAML:
		raw, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing the answer as YAML: %w", err)
		}
		b.Write(raw)
	case Text, "":
		writeWhatIf(&b, r, o)
	default:
		return fmt.Errorf("unknown output format %q: %s are known", o.Format, strings.Join(WhatIfFormats, ", "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeWhatIf(b *bytes.Buffer, r *report.WhatIf, o Options) {
	w := &writer{b: b, width: o.Width, colour: o.Colour, asOf: r.AsOf.Time}
	if w.width == 0 {
		w.width = 80
	}
	w.width = max(w.width, 40)
	w.line(w.head("WHAT IF") + w.strong(string(r.Change)))
	w.para("", "nothing was changed: this is what would follow")
	w.whatIfDaemonSets(r)
	for i := range r.Nodes {
		w.whatIfNode(&r.Nodes[i])
	}
	w.list("NOTES", "! ", r.Notes)
	w.list("MISSING", "? ", r.Missing)
	w.line("")
	at := "as of " + r.AsOf.UTC().Format("2006-01-02T15:04:05Z") + ", from " + string(r.Source.Type)
	if r.Source.Version != "" {
		at += ", Kubernetes " + string(r.Source.Version)
	}
	w.para("", at)
}

// effects say in a few words what becomes of a daemon Pod, behind a sign.
var effects = map[report.WhatIfEffect]string{
	report.PodAdded: "+ a Pod comes", report.PodRemoved: "- Pod goes", report.PodMisscheduled: "! Pod stays, misscheduled",
	report.PodRegained: "+ Pod counts again", report.PodEvictedOnce: "- Pod is evicted", report.PodEvictedOften: "! Pod is evicted again and again", report.NodeDropped: "- leaves DESIRED",
}

func (w *writer) whatIfDaemonSets(r *report.WhatIf) {
	if len(r.DaemonSets) == 0 {
		w.para("DAEMONS", fmt.Sprintf("none of %s gains or loses anything", counted(r.Unchanged, "DaemonSet")))
		return
	}
	heading := "DAEMONS"
	for _, d := range r.DaemonSets {
		w.para(heading, fmt.Sprintf("%s/%s: DESIRED %d, then %d", d.Namespace, d.Name, d.DesiredBefore, d.DesiredAfter))
		heading = ""
		for i, p := range d.Pods {
			if i == maxNames {
				w.hang(strings.Repeat(" ", margin), margin, fmt.Sprintf("and %d more", len(d.Pods)-i))
				break
			}
			s := effects[p.Effect] + " on " + string(p.Node)
			if p.Pod != "" {
				s += ", " + string(p.Pod)
			}
			if p.Why != "" {
				s += ": " + string(p.Why)
			}
			w.hang(strings.Repeat(" ", margin), margin, s)
		}
	}
	if r.Unchanged > 0 {
		w.para("", fmt.Sprintf("%d other DaemonSets: nothing changes", r.Unchanged))
	}
}

func (w *writer) whatIfNode(n *report.WhatIfNode) {
	s := string(n.Name) + ": "
	if len(n.Changes) == 0 {
		s += "nothing changes"
	} else {
		s += listed(n.Changes, maxNames)
	}
	w.para("NODE", s)
	if len(n.Adds) > 0 {
		w.para("", "asks for "+amounts(n.Adds))
	}
	if len(n.Frees) > 0 {
		w.para("", "frees "+amounts(n.Frees))
	}
	if len(n.Adds) > 0 {
		free := "free now: " + amounts(n.Free)
		if !n.PodsRead {
			free = "free now, at most: " + amounts(n.Free)
		}
		w.para("", free)
		sign := map[report.Holding]string{report.Holds: "+ fits: ", report.DoesNotHold: "- does not fit: ", report.NotKnown: "? whether it fits is not known: "}[n.Fits]
		w.hang(strings.Repeat(" ", margin), margin, sign+string(n.Why))
	}
	total := 0
	for _, e := range n.Evictions {
		total += e.Count
	}
	if total == 0 {
		return
	}
	w.para("", fmt.Sprintf("evicts %s of other workloads:", counted(total, "Pod")))
	for i, e := range n.Evictions {
		if i == maxNames {
			w.hang(strings.Repeat(" ", margin), margin, fmt.Sprintf("and those of %d more owners", len(n.Evictions)-i))
			break
		}
		when := "at once"
		if e.After > 0 {
			when = fmt.Sprintf("after %d s", e.After)
		}
		owner := string(e.Owner)
		if owner == "" {
			owner = "Pods of no workload"
		}
		w.hang(strings.Repeat(" ", margin), margin, fmt.Sprintf("- %s: %d %s (%s)", owner, e.Count, when, listed(e.Pods, 3)))
	}
}

func amounts(list []report.Amount) string {
	var parts []string
	for _, a := range list {
		parts = append(parts, string(a.Resource)+" "+string(a.Amount))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
