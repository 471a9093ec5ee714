package report

// WhatIfKind identifies the document that says what a change of nodes would do.
const WhatIfKind = "WhatIf"

// WhatIf is what a change of labels, taints or schedulability of nodes would do. The
// change was not made.
type WhatIf struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	GeneratedAt Time   `json:"generatedAt"` // wall clock
	AsOf        Time   `json:"asOf"`        // cluster clock
	Source      Source `json:"source"`
	Change      Text   `json:"change"` // as kubectl takes it
	// Nodes are those that the change is about.
	Nodes []WhatIfNode `json:"nodes"`
	// DaemonSets are those of which a Pod or a counter changes, Unchanged counts the others.
	DaemonSets []WhatIfDaemonSet `json:"daemonSets"`
	Unchanged  int               `json:"unchanged"`
	Notes      []Text            `json:"notes"`
	Missing    []Text            `json:"missing"` // what was not read, and what is not known for it
}

// WhatIfNode is what the change does to one node.
type WhatIfNode struct {
	Name    Text   `json:"name"`
	Changes []Text `json:"changes"` // empty where everything is so already
	// Adds and Frees are requests of Pods that come and go, Free what is free before,
	// as far as Pods were read: an upper bound where PodsRead is false.
	Adds     []Amount `json:"adds"`
	Frees    []Amount `json:"frees"`
	Free     []Amount `json:"free"`
	PodsRead bool     `json:"podsRead"`
	// Fits tells whether the Pods that come find room.
	Fits      Holding          `json:"fits"`
	Why       Text             `json:"why"`
	Evictions []WhatIfEviction `json:"evictions"` // of Pods that are no DaemonSet's
}

// Amount is a quantity of a resource, as Kubernetes writes it.
type Amount struct {
	Resource Text `json:"resource"`
	Amount   Text `json:"amount"`
}

// WhatIfEviction are the Pods of one owner that a NoExecute taint takes off a node.
type WhatIfEviction struct {
	Owner Text   `json:"owner"` // "" for Pods of no workload, which nothing makes again
	Count int    `json:"count"`
	Pods  []Text `json:"pods"`
	After int64  `json:"afterSeconds"` // 0: at once
}

// WhatIfDaemonSet is what the change does to one DaemonSet.
type WhatIfDaemonSet struct {
	Namespace     Text        `json:"namespace"`
	Name          Text        `json:"name"`
	DesiredBefore int         `json:"desiredBefore"`
	DesiredAfter  int         `json:"desiredAfter"`
	Pods          []WhatIfPod `json:"pods"`
}

// WhatIfEffect is what becomes of a daemon Pod.
type WhatIfEffect string

// The effects.
const (
	PodAdded        WhatIfEffect = "Added"
	PodRemoved      WhatIfEffect = "Removed"      // by the DaemonSet controller, at once
	PodMisscheduled WhatIfEffect = "Misscheduled" // stays, counts as misscheduled, does not come back once it ends
	PodRegained     WhatIfEffect = "Regained"     // counts as misscheduled now, and no longer then
	PodEvictedOnce  WhatIfEffect = "Evicted"      // by its own tolerations, although the present template's let it stay
	PodEvictedOften WhatIfEffect = "EvictedOften" // evicted after its tolerationSeconds, made again, evicted again
	NodeDropped     WhatIfEffect = "NodeDropped"  // leaves DESIRED; there is no Pod to lose
)

// WhatIfPod is one daemon Pod, there or to come.
type WhatIfPod struct {
	Node   Text         `json:"node"`
	Pod    Text         `json:"pod"` // "" for one to come, or where Pods were not read
	Effect WhatIfEffect `json:"effect"`
	Why    Text         `json:"why"`
	After  int64        `json:"afterSeconds,omitempty"` // of what is evicted; 0: at once
}
