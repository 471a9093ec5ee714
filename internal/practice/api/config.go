package api

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// host is the name of the server in URLs. No name service knows it: the dialer never looks.
const host = "http://practice-cluster"

// errClosed is what dialing a closed server gives.
var errClosed = errors.New("the practice API server is closed")

// dialer connects clients to the server inside the process: no port is opened.
type dialer struct {
	mu      sync.Mutex
	http    *http.Server
	accept  chan net.Conn
	done    chan struct{} // closed by Close
	closed  bool
	running sync.WaitGroup // the accept loop and one for each connection
	open    map[net.Conn]bool
}

// Config reaches the server as DefaultUser, without client-side rate limits.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: host, Dial: s.dial, QPS: -1}
}

// ConfigFor reaches the server as another user.
func (s *Server) ConfigFor(user string) *rest.Config {
	c := s.Config()
	c.BearerToken = user
	return c
}

func (s *Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := &s.dialer
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, errClosed
	}
	if d.http == nil {
		d.start(s.Handler())
	}
	accept, done := d.accept, d.done
	d.mu.Unlock()
	client, server := net.Pipe()
	select {
	case accept <- server:
		return client, nil
	case <-done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start runs the HTTP server, at the first dial: a server that is only used from Go costs no goroutine.
func (d *dialer) start(h http.Handler) {
	d.accept, d.done, d.open = make(chan net.Conn), make(chan struct{}), map[net.Conn]bool{}
	d.http = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ConnState: d.follow}
	d.running.Go(func() { _ = d.http.Serve(d) }) // ends with http.ErrServerClosed
}

// follow counts connections, so that Close can wait for them.
func (d *dialer) follow(c net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateNew:
		d.running.Add(1)
		d.open[c] = true
		if d.closed {
			_ = c.Close() // accepted while Close ran
		}
	case http.StateClosed, http.StateHijacked:
		if d.open[c] {
			delete(d.open, c)
			d.running.Done()
		}
	}
}

// Accept, Close and Addr make the dialer the HTTP server's listener.
func (d *dialer) Accept() (net.Conn, error) {
	select {
	case c := <-d.accept:
		return c, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

func (d *dialer) Close() error   { return nil }
func (d *dialer) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "practice-cluster" }

// Disconnect breaks every open connection, watches included, as a restart of an API server does. Clients may dial again.
func (s *Server) Disconnect() {
	d := &s.dialer
	d.mu.Lock()
	conns := make([]net.Conn, 0, len(d.open))
	for c := range d.open {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // a pipe's Close cannot fail
	}
}

// Close ends every connection and returns when no goroutine of the server is left. The Go side keeps working.
func (s *Server) Close() {
	d := &s.dialer
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.closed = true
	running := d.http
	if running != nil {
		close(d.done)
	}
	d.mu.Unlock()
	if running != nil {
		_ = running.Close() // the listener's Close cannot fail
		d.running.Wait()
	}
}
