package api

import (
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what goes wrong with one request. The zero value lets it pass.
type Fault struct {
	// Wait holds the request back until the channel is closed, before anything else happens.
	Wait <-chan struct{}
	// Drop breaks the connection without an answer.
	Drop bool
	// Status answers with this code and does not serve the request: 429, 500, 503, or any other.
	Status int
	// RetryAfter goes with Status, in whole seconds.
	RetryAfter time.Duration
	// Message goes with Status; "" is the API server's usual one.
	Message string
}

// Fault lets tests break requests. decide is called for each request, from its goroutine; nil as an answer, or as
// decide, lets requests pass.
func (s *Server) Fault(decide func(*http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = decide
}

// applyFault says whether the request was answered.
func (s *Server) applyFault(w http.ResponseWriter, req *http.Request) bool {
	s.mu.Lock()
	decide := s.fault
	s.mu.Unlock()
	if decide == nil {
		return false
	}
	f := decide(req)
	if f == nil {
		return false
	}
	if f.Wait != nil {
		select {
		case <-f.Wait:
		case <-req.Context().Done():
			return true
		}
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return false
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	if f.Status == http.StatusTooManyRequests {
		// API priority and fairness answers in plain text (apiserver: pkg/server/filters/priority-and-fairness.go).
		message := "Too many requests, please try again later."
		if f.Message != "" {
			message = f.Message
		}
		http.Error(w, message, f.Status)
		return true
	}
	writeError(w, req, &apierrors.StatusError{ErrStatus: f.status()})
	return true
}

func (f *Fault) status() metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(f.Status), Message: f.Message}
	usual := http.StatusText(f.Status)
	switch f.Status {
	case http.StatusInternalServerError:
		status.Reason, usual = metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: request timed out"
	case http.StatusServiceUnavailable:
		status.Reason, usual = metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"
	case http.StatusGatewayTimeout:
		status.Reason, usual = metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout"
	case http.StatusUnauthorized:
		status.Reason, usual = metav1.StatusReasonUnauthorized, "Unauthorized"
	case http.StatusForbidden:
		status.Reason, usual = metav1.StatusReasonForbidden, "forbidden"
	}
	if status.Message == "" {
		status.Message = usual
	}
	return status
}
