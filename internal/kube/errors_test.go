package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// certificate makes a self-signed one for 127.0.0.1.
func certificate(t *testing.T, notBefore, notAfter time.Time, names ...string) (tls.Certificate, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: notBefore, NotAfter: notAfter,
		DNSNames: names, IsCA: true, BasicConstraintsValid: true,
	}
	if len(names) == 0 {
		tmpl.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	kp := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k})
	pair, err := tls.X509KeyPair(c, kp)
	if err != nil {
		t.Fatal(err)
	}
	return pair, c, kp
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	})
}

func versionHandler(w http.ResponseWriter, _ *http.Request) {
	w.Write([]byte(`{"major":"1","minor":"37","gitVersion":"v1.37.2"}`))
}

func TestFailedConnectionsAreExplainedInOneLine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	secure := func(h http.HandlerFunc, from, to time.Time, names ...string) (string, []byte) {
		pair, ca, _ := certificate(t, from, to, names...)
		srv := httptest.NewUnstartedServer(h)
		srv.Config.ErrorLog = quietLog
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL, ca
	}
	plain := func(h http.HandlerFunc) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "https://" + l.Addr().String()
	l.Close()

	expired, expiredCA := secure(versionHandler, now.Add(-2*time.Hour), now.Add(-time.Hour))
	future, futureCA := secure(versionHandler, now.Add(time.Hour), now.Add(2*time.Hour))
	foreign, _ := secure(versionHandler, now.Add(-time.Hour), now.Add(time.Hour))
	_, otherCA, _ := certificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	misnamed, misnamedCA := secure(versionHandler, now.Add(-time.Hour), now.Add(time.Hour), "api.example")
	_, oldCert, oldKey := certificate(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	unauthorized := func(w http.ResponseWriter, _ *http.Request) {
		status(w, 401, metav1.StatusReasonUnauthorized, "Unauthorized")
	}
	denied, deniedCA := secure(unauthorized, now.Add(-time.Hour), now.Add(time.Hour))

	for _, c := range []struct {
		name string
		cfg  rest.Config
		want []string
	}{
		{"refused", rest.Config{Host: refused}, []string{"connection refused", "API server runs"}},
		{"unknown name", rest.Config{Host: "https://api.example", Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}}
		}}, []string{"api.example cannot be resolved", "DNS"}},
		{"expired certificate", rest.Config{Host: expired, TLSClientConfig: rest.TLSClientConfig{CAData: expiredCA}}, []string{"certificate expired at ", now.Add(-time.Hour).UTC().Format("2006-01-02"), "renew"}},
		{"certificate of the future", rest.Config{Host: future, TLSClientConfig: rest.TLSClientConfig{CAData: futureCA}}, []string{"valid only from", "clock"}},
		{"unknown authority", rest.Config{Host: foreign, TLSClientConfig: rest.TLSClientConfig{CAData: otherCA}}, []string{"unknown authority", "--certificate-authority"}},
		{"another name", rest.Config{Host: misnamed, TLSClientConfig: rest.TLSClientConfig{CAData: misnamedCA}}, []string{"not for this name", "--tls-server-name"}},
		{"plain HTTP", rest.Config{Host: strings.Replace(plain(versionHandler), "http:", "https:", 1)}, []string{"does not speak TLS", "http://"}},
		{"401", rest.Config{Host: plain(unauthorized)}, []string{"401", "renew the token"}},
		{"401 of an old certificate", rest.Config{Host: denied, TLSClientConfig: rest.TLSClientConfig{CAData: deniedCA, CertData: oldCert, KeyData: oldKey}},
			[]string{"401", "client certificate expired at", "--context"}},
		{"403", rest.Config{Host: plain(func(w http.ResponseWriter, _ *http.Request) {
			status(w, 403, metav1.StatusReasonForbidden, `User "jane" cannot get path "/version"`)
		})}, []string{"forbidden", `User "jane"`, "auth can-i"}},
		{"no API server", rest.Config{Host: plain(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"hello":"world"}`)) })}, []string{"no Kubernetes API server"}},
		{"a web page", rest.Config{Host: plain(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`<html>`)) })}, []string{"no Kubernetes API server"}},
		{"500", rest.Config{Host: plain(func(w http.ResponseWriter, _ *http.Request) {
			status(w, 500, metav1.StatusReasonInternalError, "etcd\x1b[2J is\ndown")
		})}, []string{"answered 500: etcd is down"}},
		{"no answer", rest.Config{Host: "https://h", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}}, []string{"no answer in time", "VPN"}},
		{"missing plugin", rest.Config{Host: refused, ExecProvider: plugin("rollcall-no-such-plugin")}, []string{"credential plugin", "rollcall-no-such-plugin not found"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := New(&c.cfg, Options{})
			if err != nil {
				t.Fatal(err)
			}
			conn.Context = "prod"
			err = conn.Prime(t.Context())
			var e *ConnectError
			if !errors.As(err, &e) {
				t.Fatalf("got %T %v", err, err)
			}
			line := e.Error()
			for _, w := range append(c.want, conn.Server, `(context "prod")`) {
				if !strings.Contains(line, w) {
					t.Errorf("%q does not say %q", line, w)
				}
			}
			if strings.ContainsAny(line, "\n\r\x1b") || e.Next == "" {
				t.Errorf("not one clear line: %q", line)
			}
		})
	}
}

func TestPrimeDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	conn, err := New(&rest.Config{Host: srv.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A deadline that has passed: firstAnswer must honour one that it sets itself as well.
	ctx := context.WithValue(t.Context(), firstAnswerKey{}, time.Nanosecond)
	err = conn.REST(coreV1).Get().AbsPath("/version").Do(ctx).Error()
	if why, _ := conn.reason(err); why != "no answer in time" {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionThatIsClosedIsNotSaidAsEOF(t *testing.T) {
	t.Parallel()
	c := connect(t, func(http.ResponseWriter, *http.Request) {}, Options{})
	err := c.Explain("read nodes", &url.Error{Op: "Get", URL: c.Server, Err: io.EOF})
	if text := err.Error(); !strings.Contains(text, "closed before an answer came") || strings.Contains(text, "EOF") {
		t.Error(text)
	}
}

func TestAFileIsNotOnSomething(t *testing.T) {
	t.Parallel()
	if got := connectError("use kubeconfig", "/tmp/config", "it is empty", "name another", nil).Error(); got != "cannot use kubeconfig in /tmp/config: it is empty; name another" {
		t.Error(got)
	}
	if got := connectError("read nodes", "https://10.0.0.1", "refused", "look", nil).Error(); got != "cannot read nodes on https://10.0.0.1: refused; look" {
		t.Error(got)
	}
}
