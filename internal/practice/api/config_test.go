package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

func TestCloseLeavesNoGoroutine(t *testing.T) {
	// Not parallel: other tests' goroutines would be counted.
	before := goleak.IgnoreCurrent()
	s := New(time.Now, 1)
	c := client(t, s.Config())
	if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range w.ResultChan() {
	}
	w.Stop()
	goleak.VerifyNone(t, before)
	if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "the practice API server is closed") {
		t.Errorf("a request after Close: %v", err)
	}
	s.Close() // a second time is harmless
	create(t, s, node("n1"))
}

func TestFaults(t *testing.T) {
	t.Parallel()
	list := func(t *testing.T, s *Server) error {
		_, err := client(t, s.Config()).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err
	}
	t.Run("an answer with a code", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		s.Fault(func(r *http.Request) *Fault { return &Fault{Status: http.StatusServiceUnavailable} })
		if err := list(t, s); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%v", err)
		}
		s.Fault(func(r *http.Request) *Fault {
			return &Fault{Status: http.StatusInternalServerError, Message: "no quorum"}
		})
		if err := list(t, s); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no quorum") {
			t.Errorf("%v", err)
		}
		s.Fault(func(r *http.Request) *Fault {
			if r.Method == http.MethodPost {
				return &Fault{Drop: true}
			}
			return nil
		})
		if err := list(t, s); err != nil {
			t.Errorf("a request that was let through: %v", err)
		}
	})
	t.Run("too many requests, then served", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := New(time.Now, 1)
			defer s.Close()
			var asked atomic.Int32
			s.Fault(func(*http.Request) *Fault {
				if asked.Add(1) < 3 {
					return &Fault{Status: http.StatusTooManyRequests, RetryAfter: 7 * time.Second}
				}
				return nil
			})
			start := time.Now()
			if err := list(t, s); err != nil || time.Since(start) != 14*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		})
	})
	t.Run("a broken connection", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		var once atomic.Bool
		s.Fault(func(*http.Request) *Fault { return &Fault{Drop: !once.Swap(true)} })
		transport := &http.Transport{DialContext: s.dial}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host+"/api/v1/nodes", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(req)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !utilnet.IsProbableEOF(err) && !strings.Contains(err.Error(), io.EOF.Error()) {
			t.Errorf("%v", err)
		}
	})
	t.Run("latency", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		gate, arrived := make(chan struct{}), make(chan struct{})
		s.Fault(func(*http.Request) *Fault { close(arrived); return &Fault{Wait: gate} })
		done := make(chan error, 1)
		go func() { done <- list(t, s) }()
		<-arrived
		select {
		case err := <-done:
			t.Errorf("answered before the gate opened: %v", err)
		default:
		}
		close(gate)
		if err := <-done; err != nil {
			t.Errorf("%v", err)
		}
	})
	t.Run("a client that gives up", func(t *testing.T) {
		t.Parallel()
		s, _ := newServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.Fault(func(*http.Request) *Fault { cancel(); return &Fault{Wait: make(chan struct{})} })
		if _, err := client(t, s.Config()).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("an answer nobody gave")
		}
	})
}
