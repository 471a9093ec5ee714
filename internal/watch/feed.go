package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// scope is what a feed reads of its resource.
type scope struct {
	namespace string // "" for all
	labels    string
	fields    string
	// or is the namespace that is read alone where all may not be; "" for none.
	or string
}

// narrower is the scope to go on with where this one is forbidden.
func (s scope) narrower(err error) (scope, bool) {
	if s.namespace != "" || s.or == "" || !apierrors.IsForbidden(err) {
		return s, false
	}
	s.namespace = s.or
	return s, true
}

// feed reads one resource in one scope: a store and the reflector that fills it.
type feed[T interface {
	metav1.Object
	runtime.Object
}] struct {
	src      *Source
	gv       schema.GroupVersion
	resource cluster.Resource
	example  T
	store    store[T]

	mu       sync.Mutex
	scope    scope
	listErr  error
	watchErr error
	since    time.Time // cluster time of the last word from the API server before it broke

	cancel context.CancelFunc
	ended  chan struct{}
}

// feeder is a feed of any kind.
type feeder interface {
	start(ctx context.Context)
	stop()
	state() state
	reached(rv string) bool
}

// state is how current a feed is.
type state struct {
	resource cluster.Resource
	scope    scope
	loading  bool
	broken   error
	since    time.Time // of broken
	refused  string    // NotRead's reason: it was never read and asking again will not help soon
}

func newFeed[T interface {
	metav1.Object
	runtime.Object
}](s *Source, gv schema.GroupVersion, r cluster.Resource, sc scope, example T, trim func(T)) *feed[T] {
	f := &feed[T]{src: s, gv: gv, resource: r, scope: sc, example: example}
	f.store.trim = trim
	f.store.changed = func(content bool) {
		s.heard()
		s.ring(content)
	}
	return f
}

// start lets the reflector run until stop or the end of ctx. A feed that was
// stopped can be started again and keeps what it holds until it is read anew.
func (f *feed[T]) start(ctx context.Context) {
	before := f.ended
	ctx, f.cancel = context.WithCancel(ctx)
	f.ended = make(chan struct{})
	ended := f.ended
	r := cache.NewReflectorWithOptions(f.listWatch(), f.example, &f.store, cache.ReflectorOptions{
		Name:            "rollcall",
		TypeDescription: string(f.resource),
		// Quicker than client-go's, for someone looks at the screen: half a second to ten.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second},
	})
	f.src.running.Go(func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		r.RunWithContext(ctx)
	})
}

func (f *feed[T]) stop() { f.cancel() }

// listWatch reads through the connection's clients and notes what comes of it.
func (f *feed[T]) listWatch() *cache.ListWatch {
	lists, watches := f.src.conn.REST(f.gv), f.src.conn.Streaming(f.gv)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			sc := f.reads()
			o.LabelSelector, o.FieldSelector = sc.labels, sc.fields
			read := func() (runtime.Object, error) {
				return lists.Get().Namespace(sc.namespace).Resource(string(f.resource)).
					VersionedParams(&o, metav1.ParameterCodec).MaxRetries(retries).Do(ctx).Get()
			}
			list, err := read()
			if narrow, ok := sc.narrower(err); ok {
				sc = f.narrow(narrow)
				list, err = read()
			}
			f.listed(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			sc := f.reads()
			o.LabelSelector, o.FieldSelector, o.Watch = sc.labels, sc.fields, true
			var sent error
			w, err := watches.Get().Namespace(sc.namespace).Resource(string(f.resource)).
				VersionedParams(&o, metav1.ParameterCodec).MaxRetries(retries).
				Watch(kube.WithOutcome(ctx, func(err error) { sent = err }))
			initial := o.SendInitialEvents != nil
			switch {
			case err == nil && sent == nil:
				f.watched(ctx, nil)
				return w, nil
			case err == nil: // no answer came, and client-go hides that
				f.watched(ctx, sent)
				if !initial {
					return nil, errLost
				}
				err = sent
			case !initial: // else a list follows and says what is wrong
				f.watched(ctx, err)
				return nil, err
			}
			// What would make the reflector try this again, instead of going on to the
			// list, is hidden from it: it waits for that without looking at ctx.
			return nil, errors.New(err.Error())
		},
	}
}

// retries is how often one request is sent again by itself, at the pace that the
// API server names; the reflector's own back-off comes on top.
const retries = 2

// errLost makes the reflector go on from where its watch ended, as it does when an
// API server refuses the connection, instead of reading everything anew.
var errLost = fmt.Errorf("the connection was lost: %w", syscall.ECONNREFUSED)

func (f *feed[T]) listed(ctx context.Context, err error) {
	f.note(ctx, err, func() { f.listErr = err })
}

func (f *feed[T]) watched(ctx context.Context, err error) {
	f.note(ctx, err, func() {
		f.watchErr = err
		if err == nil {
			f.listErr = nil
		}
	})
}

func (f *feed[T]) note(ctx context.Context, err error, set func()) {
	if ctx.Err() != nil {
		return // the program ends this, the API server did not
	}
	if err == nil || answered(err) {
		f.src.heard()
	}
	since := f.src.lastHeard()
	f.mu.Lock()
	if f.listErr == nil && f.watchErr == nil {
		f.since = since
	}
	set()
	f.mu.Unlock()
	f.src.ring(true)
}

// reads is the scope that is read now.
func (f *feed[T]) reads() scope {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scope
}

func (f *feed[T]) narrow(to scope) scope {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scope = to
	return to
}

func (f *feed[T]) reached(rv string) bool { return f.store.reached(rv) }

func (f *feed[T]) state() state {
	loaded := f.store.reached("")
	f.mu.Lock()
	defer f.mu.Unlock()
	st := state{resource: f.resource, scope: f.scope, loading: !loaded, since: f.since, broken: f.listErr}
	if f.watchErr != nil {
		st.broken = f.watchErr
	}
	if !loaded {
		st.refused = refusal(f.listErr)
	}
	return st
}

// refusal is the reason of a NotRead where an error says that a resource will not
// be read, "" where it is worth waiting: the network, an overloaded API server,
// credentials that may be renewed.
func refusal(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil || !errors.As(err, &status):
		return ""
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "Absent"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotAcceptable(err):
		return "Failed"
	}
	return ""
}

// answered tells whether an error is an answer of the API server, bad as it may be.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
