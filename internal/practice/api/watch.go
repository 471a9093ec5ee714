package api

import (
	"bytes"
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watchEvent is one event in the form that was asked for.
type watchEvent struct {
	kind   watch.EventType
	object runtime.Object
}

// watcher turns the changes of a collection into one client's events.
type watcher struct {
	resource  *resource
	selection selection
	accepted  accepted
	bookmarks bool
	now       Clock
}

func (s *Server) serveWatch(w http.ResponseWriter, req *http.Request, q *request) error {
	a, err := negotiate(req, true)
	if err != nil {
		return err
	}
	opts, err := readListOptions(req)
	if err != nil {
		return err
	}
	sel, err := selectionOf(opts, q)
	if err != nil {
		return err
	}
	ctx := req.Context()
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*opts.TimeoutSeconds)*time.Second)
		defer cancel()
	}
	watcher := &watcher{resource: q.resource, selection: sel, accepted: a, bookmarks: opts.AllowWatchBookmarks, now: s.clock}
	var initial []watchEvent
	var cursor int
	s.locked(func() { initial, cursor, err = s.startWatch(watcher, opts) })
	if apierrors.IsBadRequest(err) {
		return err
	}
	out := newEventWriter(w, a)
	if err != nil {
		// As the watch cache does: the stream begins and holds one error.
		out.send(watchEvent{watch.Error, statusOf(err)})
		return nil
	}
	if !out.send(initial...) {
		return nil
	}
	c := s.collections[q.resource.stored().key()]
	for {
		var changes []change
		var changed <-chan struct{}
		s.locked(func() {
			changes, err = c.from(cursor)
			changed = c.changed
		})
		if err != nil {
			out.send(watchEvent{watch.Error, statusOf(err)})
			return nil
		}
		cursor += len(changes)
		if !out.send(watcher.events(changes)...) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// startWatch gives the events to begin with and the position to go on from. Which they are depends on the resourceVersion
// and sendInitialEvents (kubernetes.io/docs: API concepts, "Semantics for watch"; KEP 3157).
func (s *Server) startWatch(w *watcher, opts *internalversion.ListOptions) ([]watchEvent, int, error) {
	s.expireEvents()
	c := s.collections[w.resource.stored().key()]
	version := uint64(0)
	if opts.ResourceVersion != "" {
		var err error
		if version, err = parseRevision(opts.ResourceVersion); err != nil {
			return nil, 0, err
		}
	}
	if opts.SendInitialEvents == nil && version > 0 || opts.SendInitialEvents != nil && !*opts.SendInitialEvents {
		if version == 0 {
			return nil, c.end(), nil
		}
		if version > s.revision {
			return nil, 0, errFuture(version, s.revision)
		}
		cursor, err := c.cursor(version)
		return nil, cursor, err
	}
	if version > s.revision {
		return nil, 0, errFuture(version, s.revision)
	}
	var events []watchEvent
	for _, k := range c.within(w.selection.namespace) {
		if o := c.objects[k]; w.selection.matches(o) {
			events = append(events, w.event(watch.Added, o))
		}
	}
	if opts.SendInitialEvents != nil && w.bookmarks {
		events = append(events, w.bookmark(s.revision, map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
	}
	return events, c.end(), nil
}

// events are the changes as the selection sees them: an object that enters it is added, one that leaves it is deleted
// (apiserver: pkg/storage/cacher/cache_watcher.go).
func (w *watcher) events(changes []change) []watchEvent {
	var out []watchEvent
	for _, c := range changes {
		if c.event == watch.Bookmark {
			if w.bookmarks {
				out = append(out, w.bookmark(c.revision, nil))
			}
			continue
		}
		is := c.event != watch.Deleted && w.selection.matches(c.object)
		was := c.previous != nil && w.selection.matches(c.previous)
		switch {
		case is && was:
			out = append(out, w.event(watch.Modified, c.object))
		case is:
			out = append(out, w.event(watch.Added, c.object))
		case was && c.event == watch.Deleted:
			out = append(out, w.event(watch.Deleted, c.object))
		case was:
			// It left the selection: the client gets it as it last knew it, at the version of the change.
			last := withKind(w.resource.stored(), c.previous)
			last.SetResourceVersion(formatRevision(c.revision))
			out = append(out, w.event(watch.Deleted, last))
		}
	}
	return out
}

func (w *watcher) event(kind watch.EventType, o object) watchEvent {
	return watchEvent{kind, w.resource.shown(w.resource.view(o), w.accepted, w.now())}
}

func (w *watcher) bookmark(revision uint64, annotations map[string]string) watchEvent {
	o := emptyOf(w.resource)
	o.SetResourceVersion(formatRevision(revision))
	o.SetAnnotations(annotations)
	if w.accepted.as == "Table" {
		return watchEvent{watch.Bookmark, w.resource.table(nil, metav1.ListMeta{ResourceVersion: o.GetResourceVersion()}, w.accepted.include, w.now())}
	}
	return watchEvent{watch.Bookmark, w.resource.shown(o, w.accepted, w.now())}
}

// eventWriter writes a stream of events.
type eventWriter struct {
	response http.ResponseWriter
	accepted accepted
	buffer   bytes.Buffer
}

func newEventWriter(w http.ResponseWriter, a accepted) *eventWriter {
	mediaType := a.serializer.MediaType
	if mediaType != runtime.ContentTypeJSON {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	e := &eventWriter{response: w, accepted: a}
	e.flush()
	return e
}

// send writes events and says whether the client is still there.
func (e *eventWriter) send(events ...watchEvent) bool {
	if len(events) == 0 {
		return true
	}
	stream := e.accepted.serializer.StreamSerializer
	frames := stream.Framer.NewFrameWriter(e.response)
	for _, event := range events {
		e.buffer.Reset()
		if err := e.accepted.serializer.Serializer.Encode(event.object, &e.buffer); err != nil {
			return false
		}
		wire := &metav1.WatchEvent{Type: string(event.kind), Object: runtime.RawExtension{Raw: e.buffer.Bytes()}}
		if err := stream.Encode(wire, frames); err != nil {
			return false
		}
	}
	return e.flush()
}

func (e *eventWriter) flush() bool { return http.NewResponseController(e.response).Flush() == nil }
