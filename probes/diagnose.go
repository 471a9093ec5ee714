// Package probes is what the cluster says: pure functions from a snapshot to
// findings. Nothing here has a clock but the snapshot's AsOf, does I/O or keeps
// state, so that live clusters, practice incidents and files are diagnosed by the
// very same code.
package probes

import (
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Diagnosis is everything concluded from one snapshot.
type Diagnosis struct {
	Snapshot *cluster.Snapshot
	Report   *report.Report
}

// Options narrow or widen a diagnosis.
type Options struct {
	Namespace string // "" for all
	All       bool   // keep the workloads of which there is nothing to say
}

// Diagnose concludes what can be concluded from the snapshot.
func Diagnose(s *cluster.Snapshot, o Options) *Diagnosis {
	return &Diagnosis{Snapshot: s, Report: &report.Report{APIVersion: report.APIVersion, Kind: report.Kind, AsOf: report.Time{Time: s.AsOf}}}
}

// Probe answers the question of one runbook step about one workload.
type Probe func(d *Diagnosis, target report.WorkloadKey) report.Result

// Probes are the probes by the name that a runbook's step uses. A new probe is
// one file and one line here.
var Probes = map[string]Probe{}
