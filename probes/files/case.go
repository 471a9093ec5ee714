package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// ownGroup is the API group of this program's own documents.
const ownGroup = "rollcall/"

const (
	objectsFile = "objects.yaml"
	answerFile  = "answer.yaml"
)

// Case is one field case on disk: a folder with objects.yaml (what kubectl would
// have shown), answer.yaml (what is right) and nothing else.
//
// objects.yaml is either plain kubectl output or a composition: a healthy base and
// what is different. A composition begins with a Case document; the documents that
// follow are generators or plain objects, which replace the base's of the same
// identity. Times in headers and generators are "10:21:04" on the case's day,
// "-26h" before its now, or RFC 3339 in full.
//
//	apiVersion: rollcall/v1
//	kind: Case
//	base: healthy-12            # probes/testdata/bases/healthy-12.yaml
//	now: "10:26:00"             # the moment of the case; heartbeats are fresh then
//	remove:                     # Kind/namespace/name or Kind/name, with * and ?
//	- Pod/shop/checkout-*
//	patch:                      # strategic merges, after everything was generated
//	- target: Node/worker-1
//	  merge: {metadata: {labels: {pool: blue}}}
//	---
//	apiVersion: rollcall/v1
//	kind: Daemon                # DaemonSet, ControllerRevisions, a Pod per eligible node
//	name: calico-node
//	revisions:
//	- {at: "-200h"}
//	- {at: "10:20:00", by: helm, change: {spec: {containers: [{name: calico-node, image: "registry.example/calico-node:v2"}]}}}
//	pods:
//	- {revision: 1}
//	- {nodes: [worker-1, worker-2], revision: 2, deleted: "10:20:05", created: "10:20:09", each: 40s,
//	   fail: {container: calico-node, reason: CrashLoopBackOff, exit: 1, restarts: 4}}
//	---
//	apiVersion: rollcall/v1
//	kind: NodeTrouble
//	nodes: [worker-1, worker-2]
//	ready: "False"
//	at: "10:20:21"
//	each: 40s
//	message: "container runtime network not ready: …"
//
// The generators are NodePool, Daemon, App (a Deployment), Serving (a Service),
// NodeTrouble and Occurrences (events); their fields stand at the types of those names. Status
// counts are worked out after removals and before patches.
type Case struct {
	ID       string
	Dir      string
	Snapshot *cluster.Snapshot
	Stats    Stats
	Answer   Answer
}

// Answer is what is right about a case. An empty field asks nothing.
type Answer struct {
	Link        string `json:"link"` // the public report behind the case
	About       string `json:"about"`
	AsOf        string `json:"asOf"`  // RFC 3339; default: as Load chooses
	Grace       string `json:"grace"` // node-monitor-grace-period, "50s"
	Attribution string `json:"attribution"`
	RootCause   string `json:"rootCause"`
	// Confidence is the least that is asked, AtMost the most that is allowed.
	Confidence     string   `json:"confidence"`
	AtMost         string   `json:"confidenceAtMost"`
	Workload       string   `json:"workload"` // DaemonSet/kube-system/calico-node
	Contributing   []string `json:"contributing"`
	Recommendation string   `json:"recommendation"`
	First          []string `json:"first"`
	Mode           string   `json:"mode"`  // A, B, C or D
	State          string   `json:"state"` // of the workload's rollout
	Findings       []Expect `json:"findings"`
	Absent         []Expect `json:"absent"`
	// Says are texts that must stand somewhere in the verdict, its reasons, the
	// recommendation or a finding; Silent must stand nowhere.
	Says   []string `json:"says"`
	Silent []string `json:"silent"`
	// Quiet asks that nothing is found above info: nobody would be woken.
	Quiet bool `json:"quiet"`
	// Workloads are other workloads' answers, by Kind/namespace/name. Attribution
	// "Healthy" is met by a workload that the report leaves out.
	Workloads map[string]WorkloadAnswer `json:"workloads"`
}

// WorkloadAnswer is what is right about one workload.
type WorkloadAnswer struct {
	Attribution string   `json:"attribution"`
	Not         []string `json:"not"` // attributions that would be wrong
	RootCause   string   `json:"rootCause"`
	State       string   `json:"state"`
}

// Expect is a finding that must, or must not, be there. In answer.yaml it is a
// code or a mapping.
type Expect struct {
	Code     string `json:"code"`
	Object   string `json:"object"`   // Kind/namespace/name or Kind/name, with * and ?
	Node     string `json:"node"`     // the node it is about
	Workload string `json:"workload"` // that lists it; "cluster" for the cluster's findings
	Severity string `json:"severity"`
	Says     string `json:"says"` // within its summary or evidence
}

// UnmarshalJSON reads a code alone, or a mapping.
func (e *Expect) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &e.Code)
	}
	type plain Expect
	return json.Unmarshal(b, (*plain)(e))
}

// LoadCase reads the case folder dir. Any problem at all in its files is an error:
// a case that is half read would test nothing.
func LoadCase(ctx context.Context, dir string) (*Case, error) {
	c := &Case{ID: filepath.Base(dir), Dir: dir}
	raw, err := os.ReadFile(filepath.Join(dir, answerFile))
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if err := yaml.UnmarshalStrict(raw, &c.Answer); err != nil {
		return nil, fmt.Errorf("case %s: %s: %w", c.ID, answerFile, err)
	}
	var o Options
	if c.Answer.AsOf != "" {
		if o.AsOf, err = time.Parse(time.RFC3339, c.Answer.AsOf); err != nil {
			return nil, fmt.Errorf("case %s: asOf: %w", c.ID, err)
		}
	}
	if c.Answer.Grace != "" {
		if o.Grace, err = time.ParseDuration(c.Answer.Grace); err != nil {
			return nil, fmt.Errorf("case %s: grace: %w", c.ID, err)
		}
	}
	c.Snapshot, c.Stats, err = Load(ctx, []string{filepath.Join(dir, objectsFile)}, o)
	if err == nil && len(c.Stats.Problems) > 0 {
		err = errors.New(c.Stats.Problems[0].String())
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return c, nil
}

// Cases lists the case folders below root, sorted.
func Cases(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() == answerFile {
			dirs = append(dirs, filepath.Dir(p))
		}
		return err
	})
	return dirs, err
}

var baseName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// findBase looks for testdata/bases/<name>.yaml beside the case's folder or above it.
func findBase(dir, name string) (string, error) {
	if !baseName.MatchString(name) {
		return "", fmt.Errorf("the base %q is not a plain name", name)
	}
	if dir == "" {
		return "", errors.New("a base is looked for beside a case's file: neither standard input nor an archive has a place")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		p := filepath.Join(d, "bases", name+".yaml")
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return "", fmt.Errorf("there is no base %q: bases/%s.yaml was looked for in %s and above", name, name, dir)
}
