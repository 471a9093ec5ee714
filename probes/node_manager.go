package probes

import (
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// managerStarted is when a controller manager last took over the nodes: all nodes are
// new to it, so it says RegisteredNode of each, those that joined long ago included.
// Zero where no such burst was seen. Few nodes never make a burst.
// Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, monitorNodeHealth.
func managerStarted(s *cluster.Snapshot) time.Time {
	const burst, least = 30 * time.Second, 3
	var at []time.Time
	for _, n := range s.Nodes {
		for _, e := range s.EventsOf("Node", "", n.Name) {
			if t := cluster.EventLast(e); e.Reason == "RegisteredNode" && t.Sub(n.CreationTimestamp.Time) > 10*time.Minute {
				at = append(at, t)
			}
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	for i := len(at) - 1; i >= 0; i-- {
		from := at[i].Add(-burst)
		n := 0
		for j := i; j >= 0 && !at[j].Before(from); j-- {
			n++
		}
		if n >= least && 2*n > len(s.Nodes) {
			return at[i-n+1]
		}
	}
	return time.Time{}
}

// silentFor is how long at most a node that was declared Unknown at a time had been
// silent: the grace period and one look of the controller, and as much again where the
// controller manager had just started, for it counts from when it first saw the node.
func (c *Diagnosis) silentFor(declared time.Time) time.Duration {
	d := c.grace + 10*time.Second
	if late := declared.Sub(c.managerStarted); !c.managerStarted.IsZero() && late >= 0 && late <= c.grace+30*time.Second {
		d += c.grace
	}
	return d
}
