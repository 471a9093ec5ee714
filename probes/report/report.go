// Package report is the vocabulary of what the program may conclude: verdicts,
// findings, severities, and the document that carries them. Screens, notes, text
// and JSON are renderings of a Report; none computes anything of its own. The
// package knows neither Kubernetes types nor terminals.
package report

import (
	"strings"
	"time"
)

// APIVersion and Kind identify the JSON document.
const (
	APIVersion = "rollcall/v1"
	Kind       = "Report"
)

// Time is a moment, written as RFC 3339 in UTC with seconds.
type Time struct{ time.Time }

// At is the moment t, or nil where t is zero: a time that is not known is null.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t.UTC()}
}

// MarshalJSON writes the moment, or null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(time.RFC3339) + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Time) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "null" || s == "" {
		t.Time = time.Time{}
		return nil
	}
	v, err := time.Parse(time.RFC3339, s)
	t.Time = v
	return err
}

// Report is everything concluded from one Snapshot.
type Report struct {
	APIVersion      string     `json:"apiVersion"`
	Kind            string     `json:"kind"`
	GeneratedAt     Time       `json:"generatedAt"` // wall clock
	AsOf            Time       `json:"asOf"`        // cluster clock
	Source          Source     `json:"source"`
	Nodes           NodeCounts `json:"nodes"`
	Workloads       []Workload `json:"workloads"` // the worst first
	Verdict         Verdict    `json:"verdict"`   // the incident's
	ClusterFindings []Finding  `json:"clusterFindings"`
	// AtStake is what failing nodes, or a rollout that breaks nodes, put at risk, and
	// what they do not; empty while no node fails. A topic may have several entries.
	AtStake []Stake `json:"atStake,omitempty"`
	// Recommendation is what the incident's verdict asks for: that of its workload
	// or, where nodes fail by themselves, what to do about the nodes.
	Recommendation Recommendation `json:"recommendation"`
	NotRead        []NotRead      `json:"notRead"`

	// Waiting names the kinds that are still being read. No number that rests
	// on them is final while it is not empty.
	Waiting []Text `json:"waiting,omitempty"`
	// Quiet counts the workloads that were looked at and left out because
	// there is nothing to say of them.
	Quiet int `json:"quiet"`
}

// Workload returns the entry of that identity, or nil.
func (r *Report) Workload(k WorkloadKey) *Workload {
	for i := range r.Workloads {
		if r.Workloads[i].Key() == k {
			return &r.Workloads[i]
		}
	}
	return nil
}

// Source says where the picture comes from. Type is cluster, files or practice.
type Source struct {
	Type    Text `json:"type"`
	Context Text `json:"context"`
	Server  Text `json:"server"`
	Version Text `json:"version"`
}

// NodeCounts counts Node objects. Ready, NotReady (Ready=False) and Unknown
// (Ready=Unknown or never posted) add up to Total; Cordoned overlaps them.
type NodeCounts struct {
	Total    int `json:"total"`
	Ready    int `json:"ready"`
	NotReady int `json:"notReady"`
	Unknown  int `json:"unknown"`
	Cordoned int `json:"cordoned"`
}

// NotRead is something that the conclusion had to do without.
type NotRead struct {
	Resource  Text `json:"resource"`
	Namespace Text `json:"namespace"`
	Reason    Text `json:"reason"` // Forbidden, Failed, Absent
}

// WorkloadKey identifies a workload: "DaemonSet/kube-system/calico-node".
type WorkloadKey struct {
	Kind, Namespace, Name Text
}

func (k WorkloadKey) String() string {
	return string(k.Kind) + "/" + string(k.Namespace) + "/" + string(k.Name)
}

// Workload is one DaemonSet, Deployment or StatefulSet.
type Workload struct {
	Kind           Text           `json:"kind"`
	Namespace      Text           `json:"namespace"`
	Name           Text           `json:"name"`
	UID            Text           `json:"uid,omitempty"`
	Rollout        Rollout        `json:"rollout"`
	Verdict        Verdict        `json:"verdict"`
	Findings       []Finding      `json:"findings"`
	Recommendation Recommendation `json:"recommendation"`
	Measures       *Measures      `json:"measures,omitempty"`
	Timeline       *Timeline      `json:"timeline,omitempty"`
	// Coverage is that of a DaemonSet: its counters explained, and its invariants.
	Coverage *Coverage `json:"coverage,omitempty"`
	// Owners are those who write this object besides whoever looks at it, who
	// matters most for a change by hand first. Only marks on the object itself count.
	Owners []Owner `json:"owners,omitempty"`
	// WritersKnown tells whether managedFields were read: without them somebody who
	// leaves no label or annotation is not seen.
	WritersKnown bool       `json:"writersKnown"`
	Preflight    *Preflight `json:"preflight,omitempty"` // of a preflight only
}

// Key is the workload's identity.
func (w *Workload) Key() WorkloadKey { return WorkloadKey{w.Kind, w.Namespace, w.Name} }

// RolloutState is where a rollout stands.
type RolloutState string

// The states of a rollout.
const (
	Complete    RolloutState = "Complete"
	Progressing RolloutState = "Progressing"
	Slow        RolloutState = "Slow"
	Stuck       RolloutState = "Stuck"
	Paused      RolloutState = "Paused"
	OnDelete    RolloutState = "OnDelete"
	NotObserved RolloutState = "NotObserved"
)

// Rollout is where a workload's update stands, by its own numbers.
type Rollout struct {
	State                  RolloutState `json:"state"`
	Strategy               Text         `json:"strategy"`
	MaxUnavailable         Text         `json:"maxUnavailable"` // as written
	MaxUnavailableResolved int          `json:"maxUnavailableResolved"`
	MaxSurge               Text         `json:"maxSurge"`
	MaxSurgeResolved       int          `json:"maxSurgeResolved"`
	MinReadySeconds        int          `json:"minReadySeconds"`
	Revision               *int64       `json:"revision"`
	PreviousRevision       *int64       `json:"previousRevision"`
	KnownGoodRevision      *int64       `json:"knownGoodRevision"`
	ChangedBy              *Text        `json:"changedBy"` // field manager; null where managedFields were not read
	Desired                int          `json:"desired"`
	Updated                int          `json:"updated"`
	Ready                  int          `json:"ready"`
	Available              int          `json:"available"`
	Misscheduled           int          `json:"misscheduled"`
	StartedAt              *Time        `json:"startedAt"`
	LastProgressAt         *Time        `json:"lastProgressAt"`
	Remaining              Text         `json:"remaining"` // a duration at the observed pace, "" where unknown
	Spreading              bool         `json:"spreading"`
	Brake                  Text         `json:"brake"`
	NotYetReached          int          `json:"notYetReached"`

	// Mode is the cascade mode that fits: A (delayed, Ready=Unknown), B
	// (Ready=False with the kubelet alive), C (removal breaks the node and no
	// Pod comes back), D (old Pods turn unready and are replaced at once).
	Mode Text `json:"mode,omitempty"`
	// Critical says why a broken Pod of this workload can take its node down;
	// empty where nothing of the kind was seen in the template.
	Critical []Text `json:"critical,omitempty"`
	// BudgetHolders are the Pods and nodes that use up maxUnavailable.
	BudgetHolders []BudgetHolder `json:"budgetHolders,omitempty"`
	// Revisions are the stored revisions, the newest first.
	Revisions []Revision `json:"revisions,omitempty"`
	// MayStillFall counts nodes updated so recently that they may still fall, until FallUntil.
	MayStillFall int   `json:"mayStillFall"`
	FallUntil    *Time `json:"fallUntil,omitempty"`
}

// BudgetHolder is one node that counts as unavailable for the update loop.
type BudgetHolder struct {
	Node Text `json:"node"`
	Pod  Text `json:"pod"` // "" where the node has no Pod
	Why  Text `json:"why"`
}

// Revision is one stored revision of a workload's template.
type Revision struct {
	Number    int64  `json:"number"`
	Name      Text   `json:"name"`
	CreatedAt *Time  `json:"createdAt"`
	Current   bool   `json:"current"`
	KnownGood bool   `json:"knownGood"`
	Pods      int    `json:"pods"`
	Healthy   int    `json:"healthy"` // Ready Pods on Ready nodes
	Images    []Text `json:"images,omitempty"`
	// SameAs is the number of a newer revision with semantically the same template, or 0.
	SameAs int64 `json:"sameAs,omitempty"`
	// Diff is what this revision changes against the current one, one field a line: "- " before, "+ " after.
	Diff []Text `json:"diff,omitempty"`
}

// Attribution is the verdict on a workload or an incident.
type Attribution string

// The attributions, in the order in which they stand in a report.
const (
	RolloutBreaksNodes     Attribution = "RolloutBreaksNodes"
	RolloutBreaksPods      Attribution = "RolloutBreaksPods"
	NodesFailIndependently Attribution = "NodesFailIndependently"
	NodesBlockRollout      Attribution = "NodesBlockRollout"
	ClusterBlocksPods      Attribution = "ClusterBlocksPods"
	ControllerStalled      Attribution = "ControllerStalled"
	CoverageGap            Attribution = "CoverageGap"
	Undetermined           Attribution = "Undetermined"
	WaitingForOperator     Attribution = "WaitingForOperator"
	Healthy                Attribution = "Healthy"
)

// Confidence is how sure a verdict is: no false precision.
type Confidence string

// The three degrees.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// AtLeast tells whether c is as sure as d.
func (c Confidence) AtLeast(d Confidence) bool { return c.rank() >= d.rank() }

func (c Confidence) rank() int {
	switch c {
	case High:
		return 3
	case Medium:
		return 2
	case Low:
		return 1
	}
	return 0
}

// Verdict is a conclusion with what speaks for and against it.
type Verdict struct {
	Attribution  Attribution `json:"attribution"`
	Workload     Text        `json:"workload,omitempty"` // the incident's verdict only: kind/namespace/name
	RootCause    Code        `json:"rootCause"`
	Contributing []Code      `json:"contributing"`
	Confidence   Confidence  `json:"confidence"`
	Summary      Text        `json:"summary"`
	For          []Text      `json:"for"`
	Against      []Text      `json:"against"`
	Missing      []Text      `json:"missing"`
}

// Finding is one thing that is so, with its evidence.
type Finding struct {
	Code     Code       `json:"code"`
	Severity Severity   `json:"severity"`
	Object   Object     `json:"object"`
	Node     Text       `json:"node,omitempty"`
	Since    *Time      `json:"since"`
	Summary  Text       `json:"summary"`
	Evidence []Evidence `json:"evidence"`
}

// Object names an object of the cluster.
type Object struct {
	Kind      Text `json:"kind"`
	Namespace Text `json:"namespace,omitempty"`
	Name      Text `json:"name"`
}

// Evidence is one value that was read, and where.
type Evidence struct {
	Source Text  `json:"source"`
	Value  Text  `json:"value"`
	At     *Time `json:"at"`
}

// RecommendedAction is what the report proposes to do.
type RecommendedAction string

// The recommendations.
const (
	ActionNone          RecommendedAction = "None"
	ActionWait          RecommendedAction = "Wait"
	ActionRollBack      RecommendedAction = "RollBack"
	ActionOnDelete      RecommendedAction = "SwitchToOnDelete"
	ActionDeletePod     RecommendedAction = "DeletePod"
	ActionFixNode       RecommendedAction = "FixNode"
	ActionFixWorkload   RecommendedAction = "FixWorkload"
	ActionFixCluster    RecommendedAction = "FixCluster"
	ActionChangeManager RecommendedAction = "ChangeManager"
	ActionInvestigate   RecommendedAction = "Investigate"
)

// Recommendation is the proposed action and what must come before it.
type Recommendation struct {
	Action     RecommendedAction   `json:"action"`
	ToRevision *int64              `json:"toRevision,omitempty"`
	Pod        Text                `json:"pod,omitempty"`
	Why        Text                `json:"why"`
	First      []RecommendedAction `json:"first"`
	// Reachable and Unreachable split the broken nodes by whether a change made
	// through the API server takes effect on them.
	Reachable   []Text `json:"reachable"`
	Unreachable []Text `json:"unreachable"`
	// WatchOut is what the action would do besides: one sentence each.
	WatchOut []Text `json:"watchOut,omitempty"`
}

// Measures are the counts behind an attribution: each node of the incident
// stands in exactly one class.
type Measures struct {
	After        []Text   `json:"after"`      // A: fell after its Pod was replaced
	Before       []Text   `json:"before"`     // B: fell first, replaced afterwards
	Late         []Text   `json:"late"`       // L: fell long after its Pod was replaced
	Old          []Text   `json:"old"`        // O: fell, still on the old revision
	Healthy      []Text   `json:"healthy"`    // H: new revision, Ready, had time to fall
	Pending      []Text   `json:"pending"`    // P: new revision, Ready, too fresh to tell
	Clean        []Text   `json:"clean"`      // C: old revision, Ready
	Unclear      []Text   `json:"unclear"`    // U: times are not known
	Suffering    []Text   `json:"suffering"`  // S: replaced because its old Pod was already unavailable
	NewNodes     []Text   `json:"newNodes"`   // N: joined after the rollout's start, or never Ready
	Prevalent    []Text   `json:"prevalent"`  // broken before the rollout's start
	Replaced     []Text   `json:"replaced"`   // post-treatment: Pod made after an undo
	Explained    []Text   `json:"explained"`  // drained for a reboot, being removed, shutting down
	Coverage     *float64 `json:"coverage"`   // A/(A+B+O+L)
	Attack       *float64 `json:"attack"`     // A/(A+H)
	Background   *float64 `json:"background"` // O/(O+C)
	Reverse      *float64 `json:"reverse"`    // B/(A+B)
	Difference   *float64 `json:"riskDifference"`
	Fisher       *float64 `json:"fisherP"` // one-sided
	Spread       *float64 `json:"spread"`
	Simultaneous *float64 `json:"simultaneous"`
	Points       int      `json:"points"`
	Items        []Text   `json:"items,omitempty"` // the evidence points, each with its reason
	Lags         []Lag    `json:"lags,omitempty"`
	Falsify      Text     `json:"falsify,omitempty"` // what would show the verdict to be wrong
}

// Lag is the time from a Pod's replacement until its node's trouble began.
type Lag struct {
	Node Text `json:"node"`
	Kind Text `json:"kind"` // False or Unknown: never mixed in one statistic
	// FromSeconds and ToSeconds bound the lag; both ends are uncertain by how their times are known.
	FromSeconds float64 `json:"fromSeconds"`
	ToSeconds   float64 `json:"toSeconds"`
}

// Timeline is what happened, one lane a node.
type Timeline struct {
	From  Time   `json:"from"`
	To    Time   `json:"to"`
	Lanes []Lane `json:"lanes"`           // by first trouble
	Lines []Mark `json:"lines,omitempty"` // moments that concern every lane
}

// Lane is one node's history.
type Lane struct {
	Node  Text   `json:"node"`
	Class Text   `json:"class"`         // a key of Measures
	Pod   Text   `json:"pod,omitempty"` // that the change made and that is still there
	Marks []Mark `json:"marks"`
}

// Mark is one thing that happened, at a moment or, where the time is only known
// as an interval, between At and Until.
type Mark struct {
	Kind   MarkKind `json:"kind"`
	At     Time     `json:"at"`
	Until  *Time    `json:"until,omitempty"`
	Text   Text     `json:"text"`
	Source Text     `json:"source"`
}

// MarkKind says what happened.
type MarkKind string

// The kinds of marks.
const (
	MarkPodDeleted   MarkKind = "PodDeleted"
	MarkPodCreated   MarkKind = "PodCreated"
	MarkPodReady     MarkKind = "PodReady"
	MarkNodeReady    MarkKind = "NodeReady"
	MarkNodeFailing  MarkKind = "NodeFailing" // the onset, before it was visible
	MarkNodeNotReady MarkKind = "NodeNotReady"
	MarkNodeUnknown  MarkKind = "NodeUnknown"
	MarkTainted      MarkKind = "Tainted"
	MarkRolloutStart MarkKind = "RolloutStarted"
	MarkAction       MarkKind = "Action"
	MarkNote         MarkKind = "Note"
	MarkRebooted     MarkKind = "Rebooted"
)

// StepState is what a look at one step of a runbook showed.
type StepState string

// The states of a step.
const (
	StepNotYet  StepState = "NotYet"
	StepLooking StepState = "Looking"
	StepOK      StepState = "OK"      // nothing wrong
	StepNotice  StepState = "Notice"  // worth knowing
	StepAnomaly StepState = "Anomaly" // wrong
	StepSkipped StepState = "Skipped"
	StepUnknown StepState = "Unknown" // could not look; Reason says why
	StepNone    StepState = ""        // of a line only: a detail, neither good nor bad
)

// Mark is the state as one character, the same everywhere. The characters are one
// cell wide on every terminal and differ without any colour.
func (s StepState) Mark() string {
	switch s {
	case StepLooking:
		return "◌"
	case StepOK:
		return "✓"
	case StepNotice:
		return "!"
	case StepAnomaly:
		return "✗"
	case StepSkipped:
		return "–"
	case StepUnknown:
		return "?"
	}
	return "·"
}

// Result is what a probe answers to the question of a step.
type Result struct {
	State    StepState `json:"state"`
	Reason   Text      `json:"reason,omitempty"` // why it could not look
	Lines    []Line    `json:"lines,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	Timeline *Timeline `json:"timeline,omitempty"`
	// Answered names parts of the step's question that are answered here although
	// no probe looks at them: what was read on request.
	Answered []string `json:"answered,omitempty"`
	// Commands are those that the probe knows with everything filled in; they stand
	// before the runbook's own.
	Commands []Command `json:"commands,omitempty"`
}

// Line is one statement of a Result, the most important first.
type Line struct {
	State  StepState `json:"state"`
	Text   Text      `json:"text"`
	Indent int       `json:"indent,omitempty"`
}
