package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonReader splits a stream of JSON values into objects: single ones, one a
// line, one after the other, arrays, and Lists, whose items are taken one at a time.
type jsonReader struct {
	s    *stream
	t    *tracker
	dec  *json.Decoder
	list jsonList
}

// jsonList is a list that is being read.
type jsonList struct {
	open   bool
	kind   string
	indent string // of the items, as their last line shows it
	bare   []document
}

// json reads JSON that begins with line. It returns the rest where YAML follows,
// and nil at the end.
func (s *stream) json(in *lines, line []byte) *lines {
	j := &jsonReader{s: s}
	j.start(in, "", line)
	for s.l.ctx.Err() == nil {
		err := j.values()
		if err == nil || s.l.ctx.Err() != nil {
			return nil
		}
		rest, more := j.recover(err)
		if !more {
			return rest
		}
	}
	return nil
}

// start begins, or begins again, at line, as if prefix stood before it.
func (j *jsonReader) start(in *lines, prefix string, line []byte) {
	j.t = newTracker(io.MultiReader(strings.NewReader(prefix), bytes.NewReader(line), in.r), in.n)
	j.dec = json.NewDecoder(j.t)
}

// values reads until the end of the text, which gives nil, or an error.
func (j *jsonReader) values() error {
	for j.s.l.ctx.Err() == nil {
		tok, err := j.dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch tok {
		case json.Delim('{'):
			err = j.object()
		case json.Delim('['):
			if err = j.items(); err == nil && j.list.open {
				// The items of a list that was entered again; its tail follows.
				err = errListTail
			}
		default:
			j.s.problem(j.t.line(j.dec.InputOffset()), "is not a Kubernetes object: %.40q", fmt.Sprint(tok))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errListTail says that the decoder stands behind the items of a list.
var errListTail = errors.New("behind the items of a list")

// object reads an object whose "{" was read already.
func (j *jsonReader) object() error {
	line := j.t.line(j.dec.InputOffset())
	var whole bytes.Buffer
	whole.WriteByte('{')
	streamed := j.list.open
	for j.dec.More() {
		key, err := j.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if name == "items" && !streamed && !plainKind(j.list.kind) {
			tok, err := j.dec.Token()
			if err != nil {
				return err
			}
			if tok == json.Delim('[') {
				streamed, j.list.open = true, true
				if err := j.items(); err != nil {
					return err
				}
			} else if d, ok := tok.(json.Delim); ok {
				if err := j.skip(d); err != nil {
					return err
				}
			}
			continue
		}
		var value json.RawMessage
		if err := j.dec.Decode(&value); err != nil {
			return unexpected(err)
		}
		if name == "kind" {
			_ = json.Unmarshal(value, &j.list.kind) // a kind that is no string is no kind
		}
		if whole.Len() > 1 {
			whole.WriteByte(',')
		}
		quoted, _ := json.Marshal(name)
		whole.Write(quoted)
		whole.WriteByte(':')
		whole.Write(value)
	}
	if _, err := j.dec.Token(); err != nil {
		return unexpected(err)
	}
	whole.WriteByte('}')
	list := j.list
	j.list = jsonList{}
	if streamed {
		for _, d := range list.bare {
			d.list = list.kind
			j.s.emit(d)
		}
		j.s.l.emptyList(list.kind)
	} else {
		j.s.emit(document{file: j.s.file, dir: j.s.dir, line: line, raw: whole.Bytes()})
	}
	j.t.forget(j.dec.InputOffset())
	return nil
}

// plainKind tells whether kind is known not to be a list.
func plainKind(kind string) bool { return kind != "" && !strings.HasSuffix(kind, "List") }

// items reads the elements of an array whose "[" was read already, and its "]".
func (j *jsonReader) items() error {
	for j.dec.More() {
		if j.s.l.ctx.Err() != nil {
			return j.s.l.ctx.Err()
		}
		j.t.forget(j.dec.InputOffset())
		var raw json.RawMessage
		if err := j.dec.Decode(&raw); err != nil {
			return unexpected(err)
		}
		if i := bytes.LastIndexByte(raw, '\n'); i >= 0 {
			j.list.indent = string(raw[i+1 : len(raw)-1])
		}
		line := j.t.line(j.dec.InputOffset()) - bytes.Count(raw, []byte("\n"))
		d := document{file: j.s.file, dir: j.s.dir, line: line, raw: raw, head: peek(raw)}
		if j.list.open && d.head.Kind == "" {
			d.raw = bytes.Clone(raw)
			j.list.bare = append(j.list.bare, d)
			continue
		}
		j.s.emit(d)
	}
	_, err := j.dec.Token()
	return unexpected(err)
}

// skip passes the rest of a value that began with open.
func (j *jsonReader) skip(json.Delim) error {
	for depth := 1; depth > 0; {
		tok, err := j.dec.Token()
		if err != nil {
			return unexpected(err)
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// unexpected turns the end of the text within a value into the error for it.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// recover reports an error and goes on behind it: at the next item of the list,
// or at the next line that begins an object. more is false at the end of the
// text and, with rest, where YAML follows.
func (j *jsonReader) recover(err error) (rest *lines, more bool) {
	at := j.dec.InputOffset()
	line := j.t.line(at)
	buffered, readErr := io.ReadAll(j.dec.Buffered())
	if readErr != nil {
		buffered = nil
	}
	in := newLines(io.MultiReader(bytes.NewReader(buffered), j.t.src), line-1)
	switch {
	case errors.Is(err, errListTail):
		j.start(in, `{"":0`, nil)
		j.t.first++ // start takes the number of a line that was read
		return nil, true
	case errors.Is(err, io.ErrUnexpectedEOF):
		j.s.problem(j.t.line(j.t.read), "the file ends in the middle of an object: it is truncated, and that object was left out")
		j.giveUp()
		return nil, false
	case !isSyntax(err):
		j.s.problem(line, "cannot be read further: %s", plain(err))
		j.giveUp()
		return nil, false
	}
	inList := j.list.open
	if !inList && bytes.HasPrefix(bytes.TrimLeft(buffered, " \t\r\n"), []byte("---")) {
		return in, false
	}
	where, why := locate(buffered, err)
	j.s.problem(line+where, "is not valid JSON: %s", why)
	for first := true; ; first = false {
		text, err := in.next()
		if err != nil {
			j.giveUp()
			return nil, false
		}
		trimmed := strings.TrimRight(string(text), " \t\n")
		body := strings.TrimLeft(trimmed, " \t")
		indent := trimmed[:len(trimmed)-len(body)]
		switch {
		case first || in.n <= line+where:
			// The broken line itself.
		case inList && body == "{" && (indent == j.list.indent || j.list.indent == "" && len(indent) > 0 && len(indent) <= 8):
			j.start(in, "[", text)
			return nil, true
		case isSeparator(text):
			j.giveUp()
			return newLines(io.MultiReader(bytes.NewReader(text), in.r), in.n-1), false
		case indent == "" && strings.HasPrefix(body, "{"):
			j.giveUp()
			j.start(in, "", text)
			return nil, true
		}
	}
}

// giveUp ends a list that will not be read to its end. Items without a kind are
// lost with the kind of their list.
func (j *jsonReader) giveUp() {
	if n := len(j.list.bare); n > 0 && j.list.kind == "" {
		j.s.problem(j.list.bare[0].line, "%d objects have no kind, and the end of their list, which would name it, is missing", n)
	}
	for _, d := range j.list.bare {
		if d.list = j.list.kind; d.list != "" {
			j.s.emit(d)
		}
	}
	j.list = jsonList{}
}

func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax)
}

// locate finds how many lines into text, which begins with the value that did not
// parse, the error lies. The decoder's own offsets do not count what was read by token.
func locate(text []byte, err error) (lines int, why string) {
	why = err.Error()
	skip := len(text) - len(bytes.TrimLeft(text, " \t\r\n,:"))
	var syntax *json.SyntaxError
	if e := json.NewDecoder(bytes.NewReader(text[skip:])).Decode(new(json.RawMessage)); errors.As(e, &syntax) {
		end := min(int64(len(text)), int64(skip)+max(syntax.Offset-1, 0))
		return bytes.Count(text[:end], []byte("\n")), syntax.Error()
	}
	return bytes.Count(text[:skip], []byte("\n")), why
}
