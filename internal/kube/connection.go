package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	contentTypes = "application/vnd.kubernetes.protobuf,application/json"
	// requestTimeout bounds a request that is no watch, where --request-timeout does
	// not: the API server's own limit (its --request-timeout).
	requestTimeout = time.Minute
	// primeTimeout bounds the wait for the first answer; an API server that is alive
	// answers /version from memory.
	primeTimeout = 10 * time.Second
)

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme,
		authorizationv1.AddToScheme, authenticationv1.AddToScheme,
		admissionv1.AddToScheme, discoveryv1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // the same kind registered twice
		}
	}
	return serializer.NewCodecFactory(scheme)
}()

// Options are what a connection is made with.
type Options struct {
	Version  string           // of rollcall, for the user agent; "" is "dev"
	Logger   *slog.Logger     // for API warnings and plugins; nil discards
	Wall     func() time.Time // nil is time.Now
	ReadOnly bool             // for New; Open works it out
	// ReadOnlyWhy says who made it read-only.
	ReadOnlyWhy string
}

// Connection is one API server under one identity. All its clients share one
// transport: the read-only gate, the credentials, the clock.
type Connection struct {
	Context   string // of the kubeconfig, "" inside a cluster
	Server    string // URL
	Namespace string // of the context, or of --namespace
	Narrowed  bool   // --namespace was given

	ReadOnly    bool
	ReadOnlyWhy string // "--read-only", "ROLLCALL_READ_ONLY" or the rule that matched

	Clock *Clock

	config  *rest.Config
	wall    func() time.Time
	logger  *slog.Logger
	request *http.Client // bounded by the request timeout
	stream  *http.Client // unbounded: watches

	mu      sync.Mutex
	clients map[clientKey]*rest.RESTClient
	version string
}

type clientKey struct {
	gv     schema.GroupVersion
	stream bool
}

// Open makes the connection that flags, environment and settings ask for. It sends
// nothing: see Prime. Errors are a *ConnectError, or say which setting is wrong.
func Open(f *Flags, o Options) (*Connection, error) {
	settings, err := LoadSettings(SettingsPath())
	if err != nil {
		return nil, err
	}
	t, err := f.load()
	if err != nil {
		return nil, err
	}
	if o.ReadOnly, o.ReadOnlyWhy, err = readOnly(f.ReadOnly, os.Getenv(ReadOnlyVariable), settings, t.context); err != nil {
		return nil, err
	}
	c, err := New(t.config, o)
	if err != nil {
		return nil, f.unusable(sources(f.rules()), t.context, err)
	}
	c.Context, c.Namespace, c.Narrowed = t.context, t.namespace, t.narrowed
	return c, nil
}

// New makes a connection of a client configuration, which it copies.
func New(cfg *rest.Config, o Options) (*Connection, error) {
	cfg = rest.CopyConfig(cfg)
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	cfg.UserAgent = "rollcall/" + o.Version
	// API priority and fairness is the server's brake; a client-side limit would only
	// queue the first screen. 429 and Retry-After are honoured by every request.
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = contentTypes
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, warnings{o.Logger}

	c := &Connection{
		Server: cfg.Host, ReadOnly: o.ReadOnly, ReadOnlyWhy: o.ReadOnlyWhy,
		Clock: NewClock(o.Wall), config: cfg, wall: o.Wall, logger: o.Logger,
		clients: map[clientKey]*rest.RESTClient{},
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	c.Server = base.String()
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = requestTimeout
	}
	cfg.Timeout = 0
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return clockTripper{c.Clock, firstAnswer{rt}} })
	err = withPluginPipe(cfg, o.Logger, func() error {
		c.stream, err = rest.HTTPClientFor(cfg)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.stream == http.DefaultClient {
		c.stream = &http.Client{Transport: http.DefaultTransport} // nothing of the program's own may bypass the gate
	}
	c.stream.Transport = gate{readOnly: c.ReadOnly, why: c.ReadOnlyWhy, base: strings.TrimSuffix(base.EscapedPath(), "/"), next: c.stream.Transport}
	c.request = &http.Client{Transport: c.stream.Transport, Timeout: timeout}
	return c, nil
}

// REST is the client of a group and version for everything but watches.
func (c *Connection) REST(gv schema.GroupVersion) rest.Interface {
	return c.client(clientKey{gv: gv})
}

// Streaming is the client for watches: no timeout cuts them.
func (c *Connection) Streaming(gv schema.GroupVersion) rest.Interface {
	return c.client(clientKey{gv: gv, stream: true})
}

func (c *Connection) client(k clientKey) *rest.RESTClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.clients[k]; r != nil {
		return r
	}
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion = &k.gv
	cfg.APIPath = "/apis"
	if k.gv.Group == "" {
		cfg.APIPath = "/api"
	}
	h := c.request
	if k.stream {
		h = c.stream
	}
	r, err := rest.RESTClientForConfigAndClient(cfg, h)
	if err != nil {
		panic(fmt.Sprintf("kube: client for %v: %v", k.gv, err)) // New has validated all of it
	}
	c.clients[k] = r
	return r
}

// Prime asks for the server's version: the first answer also sets the clock, and
// is the moment for a credential plugin to prompt. From then on standard input and
// the terminal are not available to it. The error is a *ConnectError.
func (c *Connection) Prime(ctx context.Context) error {
	defer silencePlugins(c.config)
	raw, err := rawJSON(context.WithValue(ctx, firstAnswerKey{}, primeTimeout), c.REST(corev1.SchemeGroupVersion).Get().AbsPath("/version"))
	if err != nil {
		return c.Explain("connect to the API server", err)
	}
	var v version.Info
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return connectError("connect to the API server", c.On(), "what answers there is no Kubernetes API server", "check the address in the kubeconfig", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = v.GitVersion
	return nil
}

// Version is that of the API server, "v1.37.2"; "" before Prime.
func (c *Connection) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Host is the host name or address at which the API server is reached.
func (c *Connection) Host() string {
	u, err := url.Parse(c.Server)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Close drops idle connections.
func (c *Connection) Close() { utilnet.CloseIdleConnectionsFor(c.stream.Transport) }

// firstAnswer bounds the time from sending a request to its whole answer, for
// requests whose context asks for it. It lies beneath the credentials, so that a
// person at a plugin's prompt is not hurried.
type firstAnswer struct{ next http.RoundTripper }

type firstAnswerKey struct{}

func (t firstAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	d, ok := r.Context().Value(firstAnswerKey{}).(time.Duration)
	if !ok {
		return t.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), d)
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return resp, err
	}
	resp.Body = cancelOnClose{resp.Body, cancel}
	return resp, nil
}

type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

func (t firstAnswer) WrappedRoundTripper() http.RoundTripper { return t.next }

// warnings sends the API server's warnings to the log, never to the terminal.
type warnings struct{ logger *slog.Logger }

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if code == 299 && text != "" {
		w.logger.WarnContext(ctx, "API server warning", "text", string(report.Clean(text)))
	}
}
