package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// pageSize is kubectl's own.
	pageSize = 500
	// tries is how often one page is asked for where no answer came or the API server
	// had an error of its own.
	tries = 3

	asJSON = "application/json"
	// asMetadata asks for the metadata of the objects alone: the rest does not leave
	// the API server.
	asMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// part reads one part of a resource into the list, page by page. Of an error
// nothing is taken back.
func (c *capture) part(k kind, p part, to *list) error {
	next := ""
	for {
		token, err := c.page(k, p, next, to)
		var status apierrors.APIStatus
		switch {
		case err == nil && token == "":
			return nil
		case err == nil:
			next = token
		case apierrors.IsResourceExpired(err) && errors.As(err, &status) && status.Status().Continue != "" && status.Status().Continue != next:
			// The version that the first page showed is gone, as after five minutes: the
			// API server offers the rest as it is now.
			next = status.Status().Continue
		default:
			return err
		}
	}
}

// page reads one page, again where it did not come whole.
func (c *capture) page(k kind, p part, token string, to *list) (next string, err error) {
	size, objects := to.size, to.objects
	for try := 1; ; try++ {
		next, err = c.once(k, p, token, to)
		if err == nil || to.err != nil || c.ctx.Err() != nil || try == tries || !transient(err) {
			return next, err
		}
		before := to.marked
		to.marked.size, to.marked.objects = size, objects
		if err := to.rollback(); err != nil {
			return "", err
		}
		to.marked = before
		if err := c.o.pause(c.ctx, time.Duration(try)*time.Second); err != nil {
			return "", err
		}
	}
}

// transient tells whether it is worth asking again.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer, or not a whole one
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// once sends one request and writes what comes.
func (c *capture) once(k kind, p part, token string, to *list) (next string, err error) {
	query, accept := url.Values{}, asJSON
	if p.name == "" {
		query.Set("limit", strconv.Itoa(pageSize))
		switch {
		case token != "":
			query.Set("continue", token)
		case k.cached:
			query.Set("resourceVersion", "0")
		}
		if p.fields != "" {
			query.Set("fieldSelector", p.fields)
		}
		if k.metadata {
			accept = asMetadata
		}
	}
	body, err := c.from.Raw(c.ctx, k.path(p), query, accept)
	switch {
	case p.name != "" && apierrors.IsNotFound(err):
		return "", nil // there is none, which was read
	case err != nil:
		return "", err
	}
	defer body.Close()
	add := func(raw []byte) error {
		o, err := object(raw)
		if err != nil {
			return err
		}
		return to.add(c.redactor.object(k, o))
	}
	if p.name != "" {
		raw, err := io.ReadAll(body)
		if err != nil {
			return "", err
		}
		return "", add(raw)
	}
	return items(body, add)
}

// object decodes one object. Numbers stay as they were written.
func object(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("the API server's answer is no object")
	}
	return o, nil
}

// items calls add with each item of a list, which is never held as a whole, and
// returns the token of the page after it, "" where it is the last.
func items(body io.Reader, add func(raw []byte) error) (next string, err error) {
	d := json.NewDecoder(body)
	if err := delim(d, '{'); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "metadata":
			var meta struct {
				Continue string `json:"continue"`
			}
			if err := d.Decode(&meta); err != nil {
				return "", err
			}
			next = meta.Continue
		case "items":
			if err := each(d, add); err != nil {
				return "", err
			}
		default:
			var passed json.RawMessage
			if err := d.Decode(&passed); err != nil {
				return "", err
			}
		}
	}
	return next, delim(d, '}')
}

func each(d *json.Decoder, add func(raw []byte) error) error {
	t, err := d.Token()
	if t == nil && err == nil {
		return nil // null: an empty list of some servers
	}
	if t != json.Delim('[') {
		return fmt.Errorf("the API server's answer is no list: %w", orEnd(err))
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := add(raw); err != nil {
			return err
		}
	}
	return delim(d, ']')
}

func delim(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if t == want {
		return nil
	}
	return fmt.Errorf("the API server's answer is no list: %w", orEnd(err))
}

func orEnd(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
