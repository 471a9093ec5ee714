package action

import (
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// NodeGrace is node-monitor-grace-period: what the operator gave, else the default
// of the server's version, 50 s from 1.32 on and 40 s before. Only the flags of
// the running controller manager are authoritative.
// Source: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go.
func NodeGrace(s *cluster.Snapshot) time.Duration {
	if s.NodeGrace > 0 {
		return s.NodeGrace
	}
	if v, err := version.ParseGeneric(s.Source.Version); err == nil && v.LessThan(version.MustParseGeneric("1.32.0")) {
		return 40 * time.Second
	}
	return 50 * time.Second
}
