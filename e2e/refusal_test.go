package e2e

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
)

// What cannot be answered is one clear line on standard error and exit code 2.
func TestWhatCannotBeAnsweredIsOneLineAndExitCode2(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{}, kubelet.Options{}, named(1, nil)...)

	write := func(name string, auth clientcmdapi.AuthInfo) string {
		t.Helper()
		path, err := c.WriteKubeconfig(name, auth)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	cert, key, err := c.Authority.Issue("late", yesterday)
	if err != nil {
		t.Fatal(err)
	}

	cases := []struct {
		name       string
		kubeconfig string
		args       []string
		want       []string
	}{
		{"connection refused", c.Kubeconfig(operator), []string{"--server", "https://" + closedAddress(t)}, []string{"refused"}},
		{"unknown token", write("unknown", clientcmdapi.AuthInfo{Token: "no-such-token"}), nil, []string{"401"}},
		{"nodes and workloads forbidden", c.Kubeconfig(nobody), nil, []string{"forbidden"}},
		{"expired client certificate", write("late", clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}), nil, []string{"certificate", "expired"}},
		{"expired server certificate", c.Kubeconfig(operator), []string{"--server", expiredServer(t, c.Authority, yesterday)}, []string{"certificate", "expired"}},
		{"unknown context", c.Kubeconfig(operator), []string{"--context", "e3e"}, []string{"e3e", "e2e"}},
		{"no such kubeconfig", c.Dir + "/none", nil, []string{c.Dir + "/none"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, tc.kubeconfig, append([]string{"triage", "-o", "json"}, tc.args...)...)
			if res.code != 2 {
				t.Errorf("exit code %d, want 2", res.code)
			}
			if res.stdout != "" {
				t.Errorf("standard output is not empty: %s", res.stdout)
			}
			if line, rest, _ := strings.Cut(res.stderr, "\n"); line == "" || rest != "" {
				t.Errorf("standard error is not one line:\n%s", res.stderr)
			}
			for _, w := range tc.want {
				if !strings.Contains(res.stderr, w) {
					t.Errorf("the line does not say %q: %s", w, res.stderr)
				}
			}
			if strings.Contains(res.stderr, "token-of-") || strings.Contains(res.stderr, "no-such-token") {
				t.Errorf("the line holds a token: %s", res.stderr)
			}
		})
	}
}

// What may not be read besides is said, and the run goes on.
func TestWhoMayNotReadNodesGetsAReportThatSaysSo(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{}, kubelet.Options{}, named(2, nil)...)
	c.deploy(t, agent)
	r, _ := c.triage(t, podsOnly)
	for _, n := range r.NotRead {
		if n.Resource == "nodes" && n.Reason == "Forbidden" {
			return
		}
	}
	t.Errorf("notRead does not name the nodes: %v", r.NotRead)
}

// closedAddress is one on which nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// expiredServer is a server whose certificate, signed by the cluster's authority,
// has expired.
func expiredServer(t *testing.T, a *controlplane.Authority, notAfter time.Time) string {
	t.Helper()
	cert, key, err := a.Issue("kube-apiserver", notAfter)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a request reached the server with the expired certificate: %s", r.URL)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that the client breaks off
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
