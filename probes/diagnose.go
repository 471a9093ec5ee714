// Package probes is what the cluster says: pure functions from a snapshot to
// findings. Nothing here has a clock but the snapshot's AsOf, does I/O or keeps
// state, so that live clusters, practice incidents and files are diagnosed by the
// very same code.
package probes

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Diagnosis is everything concluded from one snapshot: the Report, and the facts
// behind it that the probes of single steps read.
type Diagnosis struct {
	Report *report.Report

	s        *cluster.Snapshot
	options  Options
	grace    time.Duration // node-monitor-grace-period
	leaseNow time.Time     // what Leases are measured against
	// managerStarted is when the controller manager last began to watch the nodes anew,
	// zero where nothing tells of it.
	managerStarted time.Time
	going          []*corev1.Pod // see goingPods
	nodes          map[string]*nodeState
	nodeList       []*nodeState // by name
	daemonSets     []*daemonSet
	replicated     []*replicated // Deployments and StatefulSets
	// What was worked out about Pods without a node, so that it is done once.
	placements  map[string]*placement
	ledgers     map[string]*cluster.Ledger
	servings    map[string]*serving
	sets        map[types.UID]*appsv1.ReplicaSet
	nodesLooked int               // bounded by nodeLooks
	podsLooked  int               // bounded by podLooks
	leaders     map[string]leader // of the control plane's components
	stake       *stake

	clusterFacts
}

// Options narrow or widen a diagnosis.
type Options struct {
	// Namespace leaves out the workloads of other namespaces from the report;
	// they are looked at all the same, for they may be the cause.
	Namespace string
	All       bool // keep the workloads of which there is nothing to say
	// Keep are workloads that somebody looks at: they stay in the report whatever
	// there is to say of them.
	Keep []report.WorkloadKey
}

// Diagnose concludes what can be concluded from the snapshot.
func Diagnose(s *cluster.Snapshot, o Options) *Diagnosis {
	c := &Diagnosis{s: s, options: o}
	c.nodeStates()
	c.readDaemonSets()
	c.readReplicated()
	for _, d := range c.daemonSets {
		c.readCoverage(d)
	}
	c.readOverlaps()
	c.attribute()
	c.readStakes()
	c.buildReport()
	return c
}

// Probe answers the question of one runbook step about one workload.
type Probe func(c *Diagnosis, target report.WorkloadKey) report.Result
