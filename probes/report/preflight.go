package report

// Preflight is what a preflight says of a workload besides its findings: whether it
// passes, what the change is, what it costs and how it would go.
type Preflight struct {
	Pass   bool     `json:"pass"`
	FailOn Severity `json:"failOn"` // the severity from which on a finding fails it
	// Template says what was judged: "live", or where the manifest stands ("new.yaml:3").
	Template Text `json:"template"`
	New      bool `json:"new"` // the workload does not exist yet

	Nodes  int    `json:"nodes"`            // that would run a Pod of a DaemonSet; replicas of other kinds
	Gained []Text `json:"gained,omitempty"` // nodes that would run one and run none now
	Lost   int    `json:"lost"`             // nodes that would not run one any more

	Requests      Text `json:"requests"`      // of one Pod: "cpu 250m, memory 256Mi"
	TotalRequests Text `json:"totalRequests"` // of all of them
	QoSClass      Text `json:"qosClass"`

	AtOnce     int  `json:"atOnce"`     // Pods that are replaced at the same time; 0 where nothing moves by itself
	TimePerPod Text `json:"timePerPod"` // "" where nothing moves by itself
	Duration   Text `json:"duration"`
	TimeSource Text `json:"timeSource,omitempty"` // how TimePerPod is known
	Guard      Text `json:"guard"`                // what would stop a rollout that breaks nodes; "" without one

	Changes    []Text `json:"changes"`    // of the template, one field a line: "- " before, "+ " after
	DryRun     []Text `json:"dryRun"`     // what the API server says, one object a line
	Canary     []Text `json:"canary"`     // how to begin small, step by step
	NotChecked []Text `json:"notChecked"` // what could not be found out, and why
}
