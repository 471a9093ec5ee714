package files

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// CaptureKind is the kind of the document that says how a folder or archive of
// objects was captured.
const CaptureKind = "Capture"

// CaptureVersion is the apiVersion of a CaptureDocument.
const CaptureVersion = ownGroup + "v1"

// CaptureDocument stands beside the objects that were captured from a live cluster
// and says what they themselves cannot: when that was by the API server's clock,
// what was read though there was none of it, and what could not be read and why.
// Unknown fields, of a newer version of this program, are passed over.
type CaptureDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// CapturedAt is when the last object was read, by the API server's clock.
	CapturedAt    time.Time `json:"capturedAt"`
	Context       string    `json:"context"`       // of the kubeconfig, "" inside a cluster
	ServerVersion string    `json:"serverVersion"` // "v1.37.2"
	// CapturedBy is the version of this program.
	CapturedBy string `json:"capturedBy"`
	// Namespace is the one that workloads, Pods and what belongs to them were read
	// of; "" for all.
	Namespace string `json:"namespace"`
	// Environment is Redacted or Kept.
	Environment string            `json:"environment"`
	Read        []CapturedKind    `json:"read"`
	NotRead     []CapturedFailure `json:"notRead"`
}

// CapturedKind is a resource that was read.
type CapturedKind struct {
	Resource cluster.Resource `json:"resource"`
	Objects  int              `json:"objects"`
}

// CapturedFailure is a resource that could not be read, in one namespace or, with
// "", in all.
type CapturedFailure struct {
	Resource  cluster.Resource `json:"resource"`
	Namespace string           `json:"namespace"`
	Reason    string           `json:"reason"` // Forbidden, Failed, Absent
	Detail    string           `json:"detail,omitempty"`
}

// captured takes a CaptureDocument of the input.
func (l *loader) captured(d document) {
	var c CaptureDocument
	if err := kjson.Unmarshal(d.raw, &c); err != nil {
		l.problem(d.file, d.line, "is not a valid %s: %s", CaptureKind, err)
		return
	}
	if c.CapturedAt.IsZero() {
		l.problem(d.file, d.line, "is a %s that does not say when it was made", CaptureKind)
		return
	}
	l.captures = append(l.captures, c)
	for _, r := range c.Read {
		if r.Objects == 0 { // else its objects say so themselves, if they are there
			l.store.seen[r.Resource] = true
		}
	}
}

// capturedAt is the latest moment of the captures in the input, zero without any.
func (l *loader) capturedAt() time.Time {
	var at time.Time
	for _, c := range l.captures {
		if c.CapturedAt.After(at) {
			at = c.CapturedAt
		}
	}
	return at
}

// tell adds to the snapshot's Meta what the captures in the input say.
func (l *loader) tell(o *cluster.Objects, m *cluster.Meta) {
	if len(l.captures) == 0 {
		return
	}
	read, whole := false, false // the Pods of some namespace, of all
	why := map[cluster.Resource]CapturedFailure{}
	for _, c := range l.captures {
		m.Source.Context = or(m.Source.Context, c.Context)
		m.Source.Version = or(m.Source.Version, c.ServerVersion)
		for _, r := range c.Read {
			if r.Resource == cluster.Pods {
				read, whole = true, whole || c.Namespace == ""
			}
		}
		for _, f := range c.NotRead {
			if _, again := why[f.Resource]; !again || f.Namespace == "" {
				why[f.Resource] = f
			}
		}
	}
	if read && l.store.seen[cluster.Pods] {
		l.podsOf(whole, o, m)
	}
	for i, n := range m.NotRead {
		if f, known := why[n.Resource]; known && n.Namespace == "" {
			m.NotRead[i].Reason, m.NotRead[i].Detail = f.Reason, f.Detail
		}
	}
	for _, c := range l.captures {
		for _, f := range c.NotRead {
			if f.Namespace == "" && !slices.Contains(resources, f.Resource) {
				m.NotRead = append(m.NotRead, cluster.NotRead(f)) // of kinds whose metadata alone is kept
			}
			if f.Namespace != "" && l.store.seen[f.Resource] {
				m.NotRead = append(m.NotRead, cluster.NotRead(f))
			}
		}
	}
}

// podsOf says whose Pods the captures read, which without them is a guess: those
// of every workload, and of every node too unless one namespace was captured.
func (l *loader) podsOf(whole bool, o *cluster.Objects, m *cluster.Meta) {
	m.NotRead = slices.DeleteFunc(m.NotRead, func(n cluster.NotRead) bool { return n.Resource == cluster.Pods })
	m.PodScope = cluster.PodScope{All: whole}
	if whole {
		return
	}
	m.PodScope.Owners = map[types.UID]bool{}
	add := func(w metav1.Object) { m.PodScope.Owners[w.GetUID()] = true }
	all(o.DaemonSets, add)
	all(o.Deployments, add)
	all(o.StatefulSets, add)
}
