// Package refusal takes apart what the scheduler and the API server say when they
// refuse a Pod. Text in, codes, names and numbers out; it reads nothing else and
// draws no conclusion from it. The sentences are those of Kubernetes 1.30 to 1.37.
package refusal

import (
	"strconv"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Scheduling is the scheduler's sentence on a Pod that it cannot place.
//
//	0/N nodes are available: COUNT REASON, COUNT REASON. preemption: WHY NOT
//
// Source: pkg/scheduler/framework/types.go, FitError.Error.
type Scheduling struct {
	Nodes int // in the cluster; the sentence says that none of them will do
	// Reasons are what stands against the nodes, in the order of the sentence. Counts
	// may add up to more than Nodes: one node may lack several resources.
	Reasons    []Reason
	Preemption Preemption
	// Rest is what the sentence says besides, "" for nothing.
	Rest string
}

// Reason is one item of the sentence.
type Reason struct {
	// Count is the number of nodes that it holds for; 0 means that it is about the Pod
	// itself, before any node was looked at.
	Count int
	Text  string
	Code  report.Code // "" for a reason that is not known
	// Resource is the one that is insufficient: "cpu", "pods", "example.com/nic"; "" otherwise.
	Resource string
	// TaintKey and TaintValue name the taint that is not tolerated. Since 1.35 the
	// sentence does not: "" says nothing then.
	TaintKey, TaintValue string
	// Elsewhere tells that the nodes were never candidates: the Pod is pinned to others.
	Elsewhere bool
	// Claim is the PersistentVolumeClaim that it is about, where it is named.
	Claim string
}

// Preemption is why evicting other Pods would not make room.
type Preemption struct {
	Text string // "" where the sentence says nothing of it
	// Never tells of preemptionPolicy Never, Terminating of a victim that is on its way out.
	Never, Terminating bool
	// NoVictims counts nodes on which no Pod of lower priority could make room,
	// NotHelpful those where evicting Pods would not change the reason.
	NoVictims, NotHelpful int
}

const (
	zeroOf    = "0/"
	available = " nodes are available"
	preempts  = "preemption: "
	// maxMessage is more than what Kubernetes lets a message be (1,024 bytes in an
	// event, 32 KiB in a condition).
	maxMessage = 64 << 10
)

// ParseScheduling takes the sentence apart. It reports false for any other text, the
// sentences of other schedulers among them. A sentence that was cut short is read as
// far as it goes.
func ParseScheduling(message string) (Scheduling, bool) {
	message = strings.TrimSpace(message)
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	if message == "no nodes available to schedule pods" {
		return Scheduling{Rest: message}, true
	}
	nodes, rest, ok := header(message)
	if !ok {
		return Scheduling{}, false
	}
	s := Scheduling{Nodes: nodes}
	body := rest
	if i := preemptionAt(rest); i >= 0 {
		body = rest[:i]
		s.Preemption = preemption(rest[i+len(preempts):])
	}
	body, s.Rest = afterList(body, s.Preemption.Text != "")
	s.Reasons = items(body, nodes)
	return s, true
}

// header reads "0/N nodes are available" and what separates it from the list.
func header(s string) (nodes int, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, zeroOf)
	if !ok {
		return 0, "", false
	}
	number, rest, ok := strings.Cut(s, available)
	if !ok {
		return 0, "", false
	}
	nodes, ok = count(number)
	return nodes, strings.TrimPrefix(rest, ":"), ok
}

// count reads a number of nodes. No cluster has ten million.
func count(s string) (int, bool) {
	if s == "" || len(s) > 7 || strings.TrimLeft(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// preemptionAt finds where the part about preemption begins, -1 without one.
func preemptionAt(s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], preempts)
		if i < 0 {
			return -1
		}
		i += from
		if i == 0 || s[i-1] == ' ' {
			return i
		}
		from = i + len(preempts)
	}
}

// afterList parts the list from a sentence that follows it: what a plugin that ran
// before preemption had to say ("no new claims to deallocate, ").
func afterList(s string, preemption bool) (list, rest string) {
	s = strings.TrimSpace(s)
	if preemption {
		s = strings.TrimSuffix(s, ",")
	}
	// The full stop that ends the list is the last one with a blank after it: names in
	// the list have theirs between letters.
	if i := strings.LastIndex(s, ". "); i >= 0 && !startsItem(s[i+2:]) {
		list, rest = s[:i], strings.TrimRight(s[i+2:], ". ")
	} else {
		list = s
	}
	return strings.TrimRight(list, ". "), rest
}

func startsItem(s string) bool {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	return digits > 0 && digits < len(s) && s[digits] == ' '
}

// items splits the list at a comma that a number follows: reasons of their own may
// have commas. A list without numbers is what the scheduler found before it looked at
// any node.
func items(list string, nodes int) []Reason {
	if list == "" {
		return nil
	}
	var parts []string
	start := 0
	for i := 0; i+2 < len(list); i++ {
		if list[i] == ',' && list[i+1] == ' ' && counted(list[i+2:], nodes) {
			parts = append(parts, list[start:i])
			start = i + 2
		}
	}
	parts = append(parts, list[start:])
	out := make([]Reason, 0, len(parts))
	for _, p := range parts {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		number, text, _ := strings.Cut(p, " ")
		r := Reason{Text: p}
		if n, ok := count(number); ok && n > 0 && n <= nodes && text != "" {
			r.Count, r.Text = n, text
		}
		classify(&r)
		out = append(out, r)
	}
	return out
}

// counted tells whether an item with a number that can be true begins here.
func counted(s string, nodes int) bool {
	if !startsItem(s) {
		return false
	}
	number, _, _ := strings.Cut(s[:min(len(s), 9)], " ")
	n, ok := count(number)
	return ok && n > 0 && n <= nodes
}

func preemption(s string) Preemption {
	p := Preemption{Text: strings.TrimRight(strings.TrimSpace(s), ". ")}
	p.Never = strings.Contains(s, "preemptionPolicy=Never")
	p.Terminating = strings.Contains(s, "terminating pod on the nominated node")
	nodes, rest, ok := header(strings.TrimSpace(s))
	if !ok {
		return p
	}
	list, _ := afterList(rest, false)
	for _, r := range items(list, nodes) {
		switch {
		case strings.HasPrefix(r.Text, "No preemption victims found"):
			p.NoVictims += r.Count
		case strings.HasPrefix(r.Text, "Preemption is not helpful"):
			p.NotHelpful += r.Count
		}
	}
	return p
}

// known are the reasons by what they say, the more telling first.
// Source: the Filter plugins below pkg/scheduler/framework/plugins.
var known = []struct {
	text string
	code report.Code
}{
	{"Too many pods", report.InsufficientResources},
	{"were unschedulable", report.NodesCordoned},
	{"untolerated taint", report.UntoleratedTaint},
	{"that the pod didn't tolerate", report.UntoleratedTaint},
	{"free ports for the requested pod ports", report.HostPortConflict},
	{"topology spread constraints", report.PodSpreadConflict},
	{"anti-affinity rules", report.PodSpreadConflict},
	{"pod affinity rules", report.PodSpreadConflict},
	{"PersistentVolume's node affinity", report.VolumeTopologyConflict},
	{"volume node affinity conflict", report.VolumeTopologyConflict}, // until 1.32
	{"no available volume zone", report.VolumeTopologyConflict},
	{"max volume count", report.VolumeTopologyConflict},
	{"available persistent volumes to bind", report.VolumeTopologyConflict},
	{"enough free storage", report.VolumeTopologyConflict},
	{"bound to non-existent pv(s)", report.VolumeTopologyConflict},
	{"no available disk", report.VolumeTopologyConflict},
	{"ReadWriteOncePod", report.VolumeTopologyConflict},
	{"CSI driver is not installed on the node", report.VolumeTopologyConflict},
	{"unbound immediate PersistentVolumeClaims", report.VolumeTopologyConflict},
	{"node affinity", report.NodeAffinityMismatch},
	{"node selector", report.NodeAffinityMismatch},
	{"requested node name", report.NodeAffinityMismatch},
	{"affinity terms conflict", report.NodeAffinityMismatch},
	{"[NodeAffinity]", report.NodeAffinityMismatch},
	{"plugin NodeAffinity", report.NodeAffinityMismatch},
	{"filtered out by the prefilter result", report.NodeAffinityMismatch}, // until 1.30
	{"cannot allocate all claims", report.InsufficientResources},
	{"resourceclaim not available on the node", report.InsufficientResources},
}

// taintUnschedulable is how a cordon shows where the taint is met before the field.
const taintUnschedulable = "node.kubernetes.io/unschedulable"

func classify(r *Reason) {
	if name, ok := strings.CutPrefix(r.Text, "Insufficient "); ok && name != "" {
		r.Code, r.Resource = report.InsufficientResources, name
		return
	}
	if claim, ok := claimOf(r.Text); ok {
		r.Code, r.Claim = report.VolumeTopologyConflict, claim
		return
	}
	for _, k := range known {
		if strings.Contains(r.Text, k.text) {
			r.Code = k.code
			break
		}
	}
	switch r.Code {
	case report.InsufficientResources:
		r.Resource = "devices"
		if strings.Contains(r.Text, "Too many pods") {
			r.Resource = "pods"
		}
	case report.UntoleratedTaint:
		r.TaintKey, r.TaintValue = taint(r.Text)
		if r.TaintKey == taintUnschedulable {
			r.Code = report.NodesCordoned
		}
	case report.NodeAffinityMismatch:
		r.Elsewhere = strings.Contains(r.Text, "didn't satisfy plugin(s)") || strings.Contains(r.Text, "filtered out by the prefilter result")
	}
}

// taint reads "{key: value}".
func taint(s string) (key, value string) {
	_, s, ok := strings.Cut(s, "{")
	if !ok {
		return "", ""
	}
	s, _, _ = strings.Cut(s, "}")
	key, value, _ = strings.Cut(s, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value)
}

// claimOf reads `persistentvolumeclaim "data-0" not found` and its like.
func claimOf(s string) (string, bool) {
	_, s, ok := strings.Cut(s, "persistentvolumeclaim \"")
	if !ok {
		return "", false
	}
	name, _, _ := strings.Cut(s, "\"")
	return name, true
}
