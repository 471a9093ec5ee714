package report

// Coverage says which nodes should have a DaemonSet's Pod and which have one, worked
// out from nodes and Pods without its status, and what the status makes of it.
type Coverage struct {
	// Reason says why nothing could be worked out, "" where it could.
	Reason Text `json:"reason,omitempty"`
	// Nodes counts all nodes, Eligible those that should run a Pod now.
	Nodes    int `json:"nodes"`
	Eligible int `json:"eligible"`
	// Settling says why the status may differ from what is seen without being wrong:
	// something changed seconds ago, or a generation is not observed yet.
	Settling Text `json:"settling,omitempty"`
	// Excluded groups the nodes that should run none, by the reason.
	Excluded   []Excluded  `json:"excluded"`
	Counters   []Counter   `json:"counters"`
	Invariants []Invariant `json:"invariants"`
}

// Excluded is one reason why nodes are not eligible.
type Excluded struct {
	Why   Text   `json:"why"`
	Count int    `json:"count"`
	Nodes []Text `json:"nodes"` // the first of them
	// Deliberate tells that the author's own selector or a taint of a kind of nodes
	// explains it.
	Deliberate bool `json:"deliberate"`
}

// CounterState compares a counter in status with what is computed.
type CounterState string

// The states of a counter.
const (
	CounterAgrees      CounterState = "agrees"
	CounterSettling    CounterState = "settling" // differs, and may do so for a moment
	CounterContradicts CounterState = "contradicts"
	CounterUnknown     CounterState = "unknown" // could not be computed
)

// Counter is one counter of a DaemonSet, by the name of kubectl's column.
type Counter struct {
	Name     Text         `json:"name"`
	Status   int          `json:"status"`
	Computed *int         `json:"computed"` // null where it could not be computed
	State    CounterState `json:"state"`
	// Behind are the nodes that make the difference to DESIRED, or that MISSCHEDULED counts.
	Behind []CounterNode `json:"behind"`
	More   int           `json:"more,omitempty"` // nodes beyond those listed
}

// CounterNode is a node and its Pod behind a counter.
type CounterNode struct {
	Node Text `json:"node"`
	Pod  Text `json:"pod,omitempty"`
	Why  Text `json:"why"`
}

// Holding tells whether an invariant holds.
type Holding string

// The answers.
const (
	Holds       Holding = "holds"
	DoesNotHold Holding = "does not hold"
	NotKnown    Holding = "unknown"
)

// Invariant is one of the four that a DaemonSet must keep: coverage, resources,
// tolerance, availability.
type Invariant struct {
	Name  Text    `json:"name"`
	Holds Holding `json:"holds"`
	Why   Text    `json:"why"`
}
