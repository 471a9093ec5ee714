package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// header is the Case document.
type header struct {
	typeMeta
	Base    string   `json:"base"`
	Day     string   `json:"day"` // 2006-01-02; default the base's
	Now     string   `json:"now"`
	Version string   `json:"version"` // of the API server
	Remove  []string `json:"remove"`
	Patch   []struct {
		Target string          `json:"target"`
		Merge  json.RawMessage `json:"merge"`
	} `json:"patch"`
}

// composition is a Case document with the documents that follow it in its file.
type composition struct {
	l      *loader
	file   *stream
	line   int
	header header
	docs   []composed
	day    time.Time
	now    time.Time
}

type composed struct {
	kind string
	document
}

// own takes a document of this program's own group.
func (l *loader) own(s *stream, d document, kind string) {
	switch {
	case kind == "Case" && l.compose == nil:
		c := &composition{l: l, file: s, line: d.line}
		if err := strict(d.raw, &c.header); err != nil {
			l.problem(d.file, d.line, "is not a valid Case: %s", err)
			return
		}
		l.compose = c
	case kind == "Case":
		l.problem(d.file, d.line, "is a second Case: one file holds one")
	case l.compose != nil && l.compose.file == s:
		l.compose.add(kind, d)
	case kind == CaptureKind:
		l.captured(d)
	case kind == "Report":
		l.problem(d.file, d.line, "is a report of this program, not what a cluster said")
	default:
		l.problem(d.file, d.line, "stands outside a Case: a Case document must come before it in its file")
	}
}

func (c *composition) add(kind string, d document) {
	d.raw = bytes.Clone(d.raw)
	c.docs = append(c.docs, composed{kind: kind, document: d})
}

// endOfFile expands the composition that the file held.
func (l *loader) endOfFile(s *stream) {
	c := l.compose
	if c == nil || c.file != s {
		return
	}
	l.compose = nil
	if err := c.expand(); err != nil {
		l.problem(s.file, c.line, "cannot be composed: %s", err)
	}
}

// strict decodes a document of this program's own; an unknown field is an error,
// since it is a slip of the case's author.
func strict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func (c *composition) expand() error {
	docs := c.docs
	h := c.header
	for depth, base := 0, h.Base; base != ""; depth++ {
		if depth == 4 {
			return fmt.Errorf("bases stand on bases too deep at %q", base)
		}
		b, err := c.readBase(base)
		if err != nil {
			return err
		}
		docs = append(b.docs, docs...)
		base = b.header.Base
		h.Day, h.Now, h.Version = or(h.Day, b.header.Day), or(h.Now, b.header.Now), or(h.Version, b.header.Version)
		h.Remove = append(b.header.Remove, h.Remove...)
		h.Patch = append(b.header.Patch, h.Patch...)
	}
	var err error
	if c.day, err = time.Parse(time.DateOnly, h.Day); err != nil {
		return fmt.Errorf("day: %w", err)
	}
	if c.now, err = c.when(h.Now); err != nil {
		return fmt.Errorf("now: %w", err)
	}
	w := newWorld(c)
	if err := w.read(docs); err != nil {
		return err
	}
	if err := w.build(); err != nil {
		return err
	}
	for _, target := range h.Remove {
		if w.remove(target) == 0 {
			return fmt.Errorf("remove: %s matches nothing", target)
		}
	}
	if err := w.count(); err != nil {
		return err
	}
	for _, p := range h.Patch {
		if err := w.patch(p.Target, c.clocks(p.Merge)); err != nil {
			return err
		}
	}
	for _, o := range w.order {
		if o.object != nil {
			c.l.store.put(o.identity, o.object)
			if o.resource != "" {
				c.l.store.seen[o.resource] = true
			}
		}
	}
	for r := range w.empty {
		c.l.store.seen[r] = true
	}
	c.l.version = or(c.l.version, h.Version)
	c.l.now = c.now
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readBase reads a base's documents.
func (c *composition) readBase(name string) (*composition, error) {
	file, err := findBase(c.file.dir, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := newLoader(c.l.ctx)
	s := &stream{file: file, dir: c.file.dir, l: l}
	s.emit = func(d document) { l.document(s, d) }
	s.yaml(newLines(f, 0))
	if len(l.stats.Problems) > 0 {
		return nil, fmt.Errorf("base: %s", l.stats.Problems[0])
	}
	if l.compose == nil {
		return nil, fmt.Errorf("the base %s does not begin with a Case document", file)
	}
	return l.compose, nil
}

var relative = regexp.MustCompile(`"@(?:now)?([^"]+)"|"@now"`)

// clocks writes out the times of plain objects and patches that are given
// relative to the case: "@10:21:04", "@now-2s", "@now".
func (c *composition) clocks(raw []byte) []byte {
	return relative.ReplaceAllFunc(raw, func(m []byte) []byte {
		text := strings.TrimPrefix(strings.Trim(string(m), `"@`), "now")
		t, err := c.when(or(text, "-0s"))
		if err != nil {
			return m // a text that only looks like a time
		}
		return []byte(t.UTC().Format(`"` + metav1.RFC3339Micro + `"`))
	})
}

// when reads a time of a composition.
func (c *composition) when(s string) (time.Time, error) {
	if strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		return c.now.Add(d), err
	}
	if t, err := time.Parse(time.TimeOnly, s); err == nil {
		return c.day.Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("%q is no time: write \"10:21:04\", \"-26h\" or RFC 3339", s)
	}
	return t, nil
}

// matches tells whether an object is meant by Kind/namespace/name or Kind/name.
func matches(target, kind, namespace, name string) bool {
	full := kind + "/" + name
	if namespace != "" {
		full = kind + "/" + namespace + "/" + name
	}
	ok, err := path.Match(target, full)
	return err == nil && ok
}

// remove takes the objects out that target means, and tells how many.
func (w *world) remove(target string) int {
	n := 0
	for _, o := range w.order {
		if o.object != nil && matches(target, o.kind, o.object.GetNamespace(), o.object.GetName()) {
			o.object = nil
			n++
		}
	}
	return n
}

// patch merges into every object that target means.
func (w *world) patch(target string, merge json.RawMessage) error {
	n := 0
	for _, o := range w.order {
		if o.object == nil || !matches(target, o.kind, o.object.GetNamespace(), o.object.GetName()) {
			continue
		}
		n++
		changed, err := merged(o.object, merge)
		if err != nil {
			return fmt.Errorf("patch %s: %w", target, err)
		}
		o.object = changed
	}
	if n == 0 {
		return fmt.Errorf("patch: %s matches nothing", target)
	}
	return nil
}

// merged is a copy of o with the strategic merge patch applied.
func merged[T any](o T, patch json.RawMessage) (T, error) {
	kind := reflect.TypeOf(o).Elem()
	changed, _ := reflect.New(kind).Interface().(T)
	raw, err := json.Marshal(o)
	if err != nil {
		return changed, err
	}
	if raw, err = strategicpatch.StrategicMergePatch(raw, patch, reflect.New(kind).Interface()); err != nil {
		return changed, err
	}
	return changed, json.Unmarshal(raw, changed)
}
