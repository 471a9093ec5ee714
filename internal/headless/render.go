// Package headless says a report without a terminal's help: text that a person
// reads at a glance, Markdown for a ticket, YAML and JSON for programs. Every form
// is a rendering of one Report and computes nothing of its own. It also drives an
// incident without anybody at the keys.
package headless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Format is a form of output, by the name that -o takes.
type Format string

// The formats. JSONLine is one report a line, for a stream of them.
const (
	Text     Format = "text"
	JSON     Format = "json"
	YAML     Format = "yaml"
	Markdown Format = "markdown"
	JSONLine Format = "ndjson"
)

// Formats are the names that -o takes.
var Formats = []string{string(Text), string(JSON), string(YAML), string(Markdown)}

// ParseFormat reads the value of -o.
func ParseFormat(s string) (Format, error) {
	if slices.Contains(Formats, s) {
		return Format(s), nil
	}
	return "", fmt.Errorf("unknown output format %q: text, json, yaml and markdown are known", s)
}

// Options say how a report is rendered.
type Options struct {
	Format Format
	// Colour marks severities in text. It never carries a meaning of its own.
	Colour bool
	// Width is the line length of text in columns; 0 is 80.
	Width int
}

// Render writes the report to w, in one write.
func Render(w io.Writer, r *report.Report, o Options) error {
	var b bytes.Buffer
	switch o.Format {
	case JSON, JSONLine:
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if o.Format == JSON {
			enc.SetIndent("", "  ")
		}
		if err := enc.Encode(document(r)); err != nil {
			return fmt.Errorf("writing the report as JSON: %w", err)
		}
	case YAML:
		raw, err := yaml.Marshal(document(r))
		if err != nil {
			return fmt.Errorf("writing the report as YAML: %w", err)
		}
		b.Write(raw)
	case Markdown:
		writeMarkdown(&b, document(r))
	case Text, "":
		writeText(&b, document(r), o)
	default:
		return fmt.Errorf("unknown output format %q", o.Format)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// document is a copy of the report in which no list is null: a program that reads
// it need not tell an empty list from a missing one. The report itself is shared
// with others and stays as it is.
func document(in *report.Report) *report.Report {
	r := *in
	r.APIVersion, r.Kind = report.APIVersion, report.Kind
	r.Workloads = slices.Clone(list(r.Workloads))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		verdict(&w.Verdict)
		w.Findings = findings(w.Findings)
		c := &w.Recommendation
		c.First, c.Reachable, c.Unreachable = list(c.First), list(c.Reachable), list(c.Unreachable)
		if w.Measures != nil {
			m := *w.Measures
			for _, l := range []*[]report.Text{&m.After, &m.Before, &m.Late, &m.Old, &m.Healthy, &m.Pending, &m.Clean,
				&m.Unclear, &m.Suffering, &m.NewNodes, &m.Prevalent, &m.Replaced, &m.Explained} {
				*l = list(*l)
			}
			w.Measures = &m
		}
		if w.Timeline != nil {
			t := *w.Timeline
			t.Lanes = slices.Clone(list(t.Lanes))
			for j := range t.Lanes {
				t.Lanes[j].Marks = list(t.Lanes[j].Marks)
			}
			w.Timeline = &t
		}
	}
	verdict(&r.Verdict)
	c := &r.Recommendation
	c.First, c.Reachable, c.Unreachable = list(c.First), list(c.Reachable), list(c.Unreachable)
	r.ClusterFindings = findings(r.ClusterFindings)
	r.NotRead = list(r.NotRead)
	return &r
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func verdict(v *report.Verdict) {
	v.Contributing, v.For, v.Against, v.Missing = list(v.Contributing), list(v.For), list(v.Against), list(v.Missing)
}

func findings(in []report.Finding) []report.Finding {
	out := slices.Clone(list(in))
	for i := range out {
		out[i].Evidence = list(out[i].Evidence)
	}
	return out
}
