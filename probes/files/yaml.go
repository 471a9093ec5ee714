package files

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// stream is one text that is being split into objects. Lists, which is what
// kubectl prints, are split by line into their items, so that a list of any
// length needs the memory of its longest item only and a broken item spoils
// nothing but itself.
type stream struct {
	file, dir string
	l         *loader
	emit      func(document)
}

// document is one object as JSON.
type document struct {
	file, dir string
	line      int
	raw       []byte
	list      string // kind of the list that it stood in, "" for none
	head      *head  // where it was looked at already
}

// documents splits text into objects and keeps them.
func (l *loader) documents(file, dir string, r io.Reader) {
	s := &stream{file: file, dir: dir, l: l}
	s.emit = func(d document) { l.document(s, d) }
	if l.take != nil {
		s.emit = l.take
	}
	s.yaml(newLines(r, 0))
	l.endOfFile(s)
}

func (s *stream) problem(line int, format string, args ...any) {
	s.l.problem(s.file, line, format, args...)
}

// chunk is a piece of YAML and the line that it starts on.
type chunk struct {
	line int
	text []byte
}

func (c *chunk) add(n int, line []byte) {
	if len(c.text) == 0 {
		c.line = n
	}
	c.text = append(c.text, line...)
}

// yaml reads a stream of YAML documents; a document that begins like JSON is
// handed to json, which comes back here at the next "---".
func (s *stream) yaml(in *lines) {
	for in != nil {
		in = s.yamlUntilJSON(in)
	}
}

func (s *stream) yamlUntilJSON(in *lines) *lines {
	d := yamlDocument{s: s}
	for s.l.ctx.Err() == nil {
		line, err := in.next()
		if err != nil {
			d.end(true)
			if !errors.Is(err, io.EOF) {
				s.problem(in.n+1, "cannot be read further: %s", plain(err))
			}
			return nil
		}
		switch {
		case isSeparator(line):
			d.end(false)
			d = yamlDocument{s: s}
			if rest := bytes.TrimSpace(line[3:]); len(rest) > 0 && rest[0] != '#' && line[0] == '-' {
				d.add(in.n, append([]byte("   "), line[3:]...))
			}
		case d.empty() && startsJSON(line):
			return s.json(in, line)
		case d.size()+len(line) > maxObject:
			s.problem(in.n, "%s", errTooLarge)
			return nil
		default:
			d.add(in.n, line)
		}
	}
	return nil
}

func isSeparator(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\n' || line[3] == '\t'
}

// startsJSON tells JSON from YAML in flow style, whose keys need no quotes.
func startsJSON(line []byte) bool {
	t := bytes.Trim(line, " \t\n")
	switch {
	case len(t) == 0 || t[0] != '{' && t[0] != '[':
		return false
	case len(t) == 1:
		return true
	}
	switch next := bytes.TrimLeft(t[1:], " \t"); next[0] {
	case '"', '}', ']':
		return true
	case '{':
		return t[0] == '[' && startsJSON(next)
	}
	return false
}

// yamlDocument collects one document, or the head of a list and its items.
type yamlDocument struct {
	s      *stream
	head   chunk
	item   chunk
	items  listState
	indent int // of the dashes
	had    int // items that were seen
	hold   []document
	bare   []document // items without a kind of their own, until the list's is known
}

type listState int

const (
	noList listState = iota
	listExpected
	inList
	listEnded
)

func (d *yamlDocument) empty() bool { return len(d.head.text) == 0 && d.items == noList }
func (d *yamlDocument) size() int   { return max(len(d.head.text), len(d.item.text)) }

func (d *yamlDocument) add(n int, line []byte) {
	trimmed := bytes.TrimLeft(line, " ")
	indent := len(line) - len(trimmed)
	blank := len(bytes.TrimSpace(trimmed)) == 0 || trimmed[0] == '#'
	if blank && d.empty() {
		return
	}
	dash := !blank && trimmed[0] == '-' && (len(trimmed) == 1 || trimmed[1] == ' ' || trimmed[1] == '\n')
	if d.items == listExpected && !blank {
		if dash {
			d.items, d.indent = inList, indent
		} else {
			d.items = listEnded
		}
	}
	switch {
	case d.items == inList && dash && indent == d.indent:
		d.flushItem()
		d.had++
		line = bytes.Clone(line)
		line[indent] = ' '
		d.item.add(n, line)
	case d.items == inList && (blank || indent > d.indent):
		d.item.add(n, line)
	case d.items == inList:
		d.flushItem()
		d.items = listEnded
		d.head.add(n, line)
	case d.items == noList && string(bytes.TrimRight(line, " \t\n")) == "items:":
		d.items = listExpected
	default:
		d.head.add(n, line)
	}
}

// flushItem emits the items that are whole and holds the newest one back: where
// the list turns out to be cut off, it is the one that was cut.
func (d *yamlDocument) flushItem() {
	for _, h := range d.hold {
		d.s.emit(h)
	}
	d.hold = d.hold[:0]
	if len(d.item.text) > 0 {
		if raw, ok := d.s.toJSON(d.item); ok {
			item := document{file: d.s.file, dir: d.s.dir, line: d.item.line, raw: raw, head: peek(raw)}
			if item.head.Kind == "" {
				d.bare = append(d.bare, item)
			} else {
				d.hold = append(d.hold, item)
			}
		}
	}
	d.item = chunk{}
}

// end finishes the document; last says that the text ends with it.
func (d *yamlDocument) end(last bool) {
	whole := d.items != inList
	if !whole {
		d.flushItem()
	}
	var head []byte
	if len(d.head.text) > 0 {
		var ok bool
		if head, ok = d.s.toJSON(d.head); !ok && d.had == 0 {
			return
		}
	}
	if d.had == 0 {
		if head != nil && string(head) != "null" {
			d.s.emit(document{file: d.s.file, dir: d.s.dir, line: d.head.line, raw: head})
		}
		return
	}
	kind := peek(head).Kind
	if last && !whole && kind == "" {
		// kubectl writes a list's kind after its items.
		for _, h := range d.hold {
			d.s.problem(h.line, "the list ends before it is complete: the file is truncated and its last object was left out")
		}
		return
	}
	for _, h := range append(d.bare, d.hold...) {
		h.list = kind
		d.s.emit(h)
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// toJSON parses one piece; an error is reported with its line in the file.
func (s *stream) toJSON(c chunk) ([]byte, bool) {
	raw, err := yaml.YAMLToJSON(c.text)
	if err == nil {
		return raw, true
	}
	line, why := c.line, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	if m := yamlLine.FindStringSubmatch(why); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line += n - 1
		}
		why = strings.TrimPrefix(why, m[0])
	}
	s.problem(line, "is not valid YAML: %s", why)
	return nil, false
}
