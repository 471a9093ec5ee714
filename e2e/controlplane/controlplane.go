// Package controlplane runs a real control plane of Kubernetes on loopback: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, each a process of
// its own on a free port, with its files in a temporary folder. Several may run
// side by side. Nodes and kubelets it has none: that is package kubelet.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
)

// DefaultGrace is how long the node controller of Kubernetes waits for a
// heartbeat since v1.32: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go.
const DefaultGrace = 50 * time.Second

// Options are what the control planes of tests differ in.
type Options struct {
	// Grace is --node-monitor-grace-period; 0 leaves Kubernetes' default.
	Grace time.Duration
	// LeaderElection makes controller manager and scheduler hold their Leases in
	// kube-system, as they do in clusters.
	LeaderElection bool
	// ServiceAccounts leaves the admission plugin on that wants each Pod's service
	// account to exist.
	ServiceAccounts bool
	// Admission is an AdmissionConfiguration (apiserver.config.k8s.io/v1), "" for none.
	Admission string
	// Users are known to the API server beside Admin.
	Users []User
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Dir holds everything that it reads and writes.
	Dir string
	// URL is the API server's.
	URL string
	// Authority signed the API server's certificate, and is trusted for clients.
	Authority *Authority

	users     []User
	processes []*process // in the order in which they were started
}

// Start starts a control plane and returns when it is ready to work. Dir must be
// an empty folder. Whoever starts it stops it.
func Start(ctx context.Context, dir string, programs binaries.Set, o Options) (*ControlPlane, error) {
	c := &ControlPlane{Dir: dir, users: append([]User{{Name: Admin, Groups: []string{"system:masters"}}}, o.Users...)}
	if err := c.start(ctx, programs, o); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, programs binaries.Set, o Options) error {
	etcd, err := c.startEtcd(ctx, programs)
	if err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, programs, etcd, o); err != nil {
		return err
	}
	if err := c.grant(ctx); err != nil {
		return err
	}
	if err := c.startControllerManager(ctx, programs, o); err != nil {
		return err
	}
	return c.startScheduler(ctx, programs, o)
}

// Stop ends every process, the last started first, and returns when all have ended.
func (c *ControlPlane) Stop() {
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].stop(20 * time.Second)
	}
	c.processes = nil
}

// Logs is the end of what each process has said, for a test that failed.
func (c *ControlPlane) Logs() string {
	var b strings.Builder
	for _, p := range c.processes {
		fmt.Fprintf(&b, "--- %s\n%s\n", p.name, tail(p.log))
	}
	return b.String()
}

func (c *ControlPlane) startEtcd(ctx context.Context, programs binaries.Set) (url string, err error) {
	client, peer, err := twoPorts()
	if err != nil {
		return "", err
	}
	url, peerURL := "http://127.0.0.1:"+client, "http://127.0.0.1:"+peer
	p, err := c.run(programs.Etcd,
		"--name=e2e",
		"--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=e2e="+peerURL,
		"--unsafe-no-fsync",
	)
	if err != nil {
		return "", err
	}
	return url, p.ready(ctx, get(http.DefaultTransport, url+"/health"))
}

func (c *ControlPlane) startAPIServer(ctx context.Context, programs binaries.Set, etcd string, o Options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	c.URL = "https://" + net.JoinHostPort("127.0.0.1", port)
	if err := c.writeCredentials(); err != nil {
		return err
	}
	if err := c.write("audit-policy.yaml", []byte(auditPolicy)); err != nil {
		return err
	}
	args := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--token-auth-file=" + c.file("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-key-file=" + c.file("server.key"),
		"--service-account-signing-key-file=" + c.file("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--audit-policy-file=" + c.file("audit-policy.yaml"), "--audit-log-path=" + c.file(auditLog),
	}
	if !o.ServiceAccounts {
		// Pods need no mounted token here: nothing runs in them.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if o.Admission != "" {
		if err := c.write("admission.yaml", []byte(o.Admission)); err != nil {
			return err
		}
		args = append(args, "--admission-control-config-file="+c.file("admission.yaml"))
	}
	p, err := c.run(programs.APIServer, args...)
	if err != nil {
		return err
	}
	admin, err := rest.TransportFor(c.Config(Admin))
	if err != nil {
		return err
	}
	if err := p.ready(ctx, get(admin, c.URL+"/readyz")); err != nil {
		return err
	}
	// The API server makes these namespaces itself, a moment after it is ready.
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	return p.ready(ctx, func(ctx context.Context) error {
		for _, ns := range []string{"default", "kube-system", "kube-node-lease"} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *ControlPlane) startControllerManager(ctx context.Context, programs binaries.Set, o Options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + c.Kubeconfig(Admin),
		"--authentication-skip-lookup=true",
		"--bind-address=127.0.0.1", "--secure-port=" + port,
		"--service-account-private-key-file=" + c.file("server.key"),
		fmt.Sprintf("--leader-elect=%t", o.LeaderElection),
		// Nodes are looked at more often than the default of 5 s, so that tests wait less.
		"--node-monitor-period=2s",
		// The default of 20 requests a second for each controller is for clusters that
		// are not tested.
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
	if o.Grace > 0 {
		args = append(args, "--node-monitor-grace-period="+o.Grace.String())
	}
	p, err := c.run(programs.ControllerManager, args...)
	if err != nil {
		return err
	}
	return p.ready(ctx, c.healthz(port))
}

func (c *ControlPlane) startScheduler(ctx context.Context, programs binaries.Set, o Options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %s
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: %t
`, c.Kubeconfig(Admin), o.LeaderElection)
	if err := c.write("scheduler.yaml", []byte(config)); err != nil {
		return err
	}
	p, err := c.run(programs.Scheduler,
		"--config="+c.file("scheduler.yaml"),
		"--authentication-skip-lookup=true",
		"--bind-address=127.0.0.1", "--secure-port="+port,
	)
	if err != nil {
		return err
	}
	return p.ready(ctx, c.healthz(port))
}

// healthz asks a component whose certificate nobody signed.
func (c *ControlPlane) healthz(port string) func(context.Context) error {
	insecure, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return func(context.Context) error { return err }
	}
	return get(insecure, "https://127.0.0.1:"+port+"/healthz")
}

func (c *ControlPlane) run(program string, args ...string) (*process, error) {
	p, err := start(c.Dir, program, args...)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.Dir, name) }

func (c *ControlPlane) write(name string, data []byte) error {
	return os.WriteFile(c.file(name), data, 0o600)
}

// twoPorts finds two different free ports.
func twoPorts() (a, b string, err error) {
	if a, err = freePort(); err != nil {
		return "", "", err
	}
	for b = a; b == a && err == nil; {
		b, err = freePort()
	}
	return a, b, err
}

// get asks for a page and wants 200.
func get(transport http.RoundTripper, url string) func(context.Context) error {
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(url + " answers " + resp.Status)
		}
		return nil
	}
}

// unlessExists forgives that an object is there already.
func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
