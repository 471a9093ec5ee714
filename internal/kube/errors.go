package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// ConnectError says in one line why a cluster cannot be reached or read. Its parts
// are safe to show.
type ConnectError struct {
	Tried string // "read the version"
	On    string // `https://10.0.0.1:6443 (context "prod")`
	Why   string // "connection refused"
	Next  string // what to do about it
	Err   error  // the cause, may be nil
}

func (e *ConnectError) Error() string {
	where := "on" // a server
	if !strings.Contains(e.On, "://") {
		where = "in" // a file
	}
	return fmt.Sprintf("cannot %s %s %s: %s; %s", e.Tried, where, e.On, e.Why, e.Next)
}

func (e *ConnectError) Unwrap() error { return e.Err }

func connectError(tried, on, why, next string, err error) *ConnectError {
	clean := func(s string) string { return string(report.Clean(s)) }
	return &ConnectError{Tried: clean(tried), On: clean(on), Why: clean(why), Next: clean(next), Err: err}
}

// Explain says in one line why a request to the cluster failed. A *ConnectError
// stays as it is.
func (c *Connection) Explain(tried string, err error) *ConnectError {
	var done *ConnectError
	if errors.As(err, &done) {
		return done
	}
	why, next := c.reason(err)
	return connectError(tried, c.On(), why, next, err)
}

// On names the cluster in an error: the server and the context.
func (c *Connection) On() string {
	if c.Context == "" {
		return c.Server
	}
	return fmt.Sprintf("%s (context %q)", c.Server, c.Context)
}

// reason tells why a request failed and what to do about it.
func (c *Connection) reason(err error) (why, next string) {
	host := c.Server
	var (
		expired  x509.CertificateInvalidError
		unknown  x509.UnknownAuthorityError
		mismatch x509.HostnameError
		alert    tls.AlertError
		record   tls.RecordHeaderError
		dns      *net.DNSError
		network  net.Error
	)
	switch {
	case strings.Contains(err.Error(), "getting credentials: "):
		_, cause, _ := strings.Cut(err.Error(), "getting credentials: ")
		cause, _, _ = strings.Cut(cause, "\n")
		return "the kubeconfig's credential plugin failed: " + cause, "run the plugin's login, or its command by hand"
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		if now := c.wall(); expired.Cert != nil && now.Before(expired.Cert.NotBefore) {
			return fmt.Sprintf("the server's certificate is valid only from %s, and this computer's clock says %s", date(expired.Cert.NotBefore), date(now)), "set the clock of this computer"
		}
		when := ""
		if expired.Cert != nil {
			when = " at " + date(expired.Cert.NotAfter)
		}
		return "the server's certificate expired" + when, "renew it on the control plane (`kubeadm certs renew apiserver`), or check this computer's clock"
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an unknown authority", "check certificate-authority in the kubeconfig, or give --certificate-authority; the address may also lead to another cluster or a proxy"
	case errors.As(err, &mismatch):
		return "the server's certificate is not for this name: " + rootCause(mismatch), "check --server, or give the name in the certificate with --tls-server-name"
	case errors.As(err, &expired):
		return "the server's certificate is not valid: " + rootCause(expired), "check certificate-authority in the kubeconfig"
	case errors.As(err, &alert):
		return "the server refused the TLS connection: " + alert.Error(), c.renewCredentials()
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS", "check the address and its scheme: http:// or https://"
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s cannot be resolved", dns.Name), "check the address in the kubeconfig, the VPN and DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "check that the API server runs and that the address in the kubeconfig is right"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed before an answer came", "check the load balancer or proxy in front of the API server, and its own log"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it", "check the network and the VPN"
	case apierrors.IsUnauthorized(err):
		return c.unauthorized(), c.renewCredentials()
	case apierrors.IsForbidden(err):
		return "forbidden: " + message(err), "ask for a role that may read it: `kubectl auth can-i --list` shows what you may"
	case apierrors.IsTooManyRequests(err):
		return "the API server is overloaded (429)", "wait; it is asked again, at the pace that it names"
	case apierrors.IsNotFound(err):
		return "not found: " + message(err), fmt.Sprintf("check that %s is a Kubernetes API server and the address has its path", host)
	case errors.Is(err, context.Canceled):
		return "given up", "start again"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &network) && network.Timeout(), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return "no answer in time", "check the network, the VPN and the load balancer before the API server; --request-timeout gives it longer"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("the API server answered %d: %s", status.Status().Code, message(err)), "look at the API server's own log"
	}
	return rootCause(err), "check the network and the address in the kubeconfig"
}

// unauthorized says what is wrong with the credentials, as far as it can be seen from here.
func (c *Connection) unauthorized() string {
	if t := c.certificateExpiry(); !t.IsZero() && t.Before(c.wall()) {
		return fmt.Sprintf("the API server does not accept the credentials (401): the client certificate expired at %s", date(t))
	}
	return "the API server does not accept the credentials (401)"
}

func (c *Connection) renewCredentials() string {
	if c.config.ExecProvider != nil {
		return "log in again with the kubeconfig's credential plugin"
	}
	return "renew the token or client certificate in the kubeconfig, or choose another --user or --context"
}

// certificateExpiry is when the client certificate ends, zero where there is none.
func (c *Connection) certificateExpiry() time.Time {
	pair, err := tls.X509KeyPair(pemOf(c.config.CertData, c.config.CertFile), pemOf(c.config.KeyData, c.config.KeyFile))
	if err != nil {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

func pemOf(data []byte, file string) []byte {
	if len(data) == 0 && file != "" {
		data, _ = os.ReadFile(file) // unreadable: there is no date to tell
	}
	return data
}

// message is the API server's own sentence.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}

// rootCause is the last part of a chain of errors, without the URL that net/http
// puts in front of it.
func rootCause(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return err.Error()
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Unreadable is the error of a session that may read neither nodes nor any
// workload, in one namespace or, with "", in all.
func (c *Connection) Unreadable(err error, namespace string) *ConnectError {
	what, next := "read nodes and workloads", "ask for a role that may list and watch them"
	if namespace == "" {
		next += ", or name a namespace that you may read with -n"
	} else {
		what += " of namespace " + namespace
	}
	why, _ := c.reason(err)
	return connectError(what, c.On(), why, next+"; `kubectl auth can-i --list` shows what you may", err)
}
