package controlplane

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// KwokManages is the annotation of the nodes that kwok plays.
const (
	KwokManages = "kwok.x-k8s.io/node"
	KwokValue   = "fake"
)

// stages are the files of kwok's that nodes with Leases and Pods that become Ready need.
var stages = []string{
	"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
}

// kwokPace lets it do more at a time than its defaults of four.
const kwokPace = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  nodePlayStageParallelism: 16
  podPlayStageParallelism: 32
  podsOnNodeSyncParallelism: 16
  nodeLeaseParallelism: 16
`

// leaseSeconds is how long the Leases of kwok's nodes last. It renews them four times
// as often. That is slower than kubelets do: 5,000 of them are 500 requests a second.
const leaseSeconds = "240"

// StartKwok lets kwok play the kubelets of all nodes that have its annotation, until
// the control plane stops. The grace period for nodes must be longer than a minute.
// folder is that of its stages.
func (c *ControlPlane) StartKwok(ctx context.Context, program, folder string) error {
	var config bytes.Buffer
	config.WriteString(kwokPace)
	for _, name := range stages {
		data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		config.WriteString("---\n")
		config.Write(data)
		config.WriteString("\n")
	}
	if err := c.write("stages.yaml", config.Bytes()); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", port)
	p, err := c.run(program,
		"--kubeconfig="+c.Kubeconfig(Admin),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector="+KwokManages+"="+KwokValue,
		"--node-lease-duration-seconds="+leaseSeconds,
		"--server-address="+address,
		"--config="+c.file("stages.yaml"),
	)
	if err != nil {
		return err
	}
	return p.ready(ctx, get(http.DefaultTransport, "http://"+address+"/healthz"))
}
