package refusal

import (
	"fmt"
	"strings"
	"testing"
)

// written shows what a sentence was taken apart into.
func written(s Scheduling) string {
	var out []string
	for _, r := range s.Reasons {
		text := fmt.Sprintf("%d %s", r.Count, r.Code)
		for _, extra := range []string{r.Resource, r.TaintKey, r.TaintValue, r.Claim} {
			if extra != "" {
				text += " " + extra
			}
		}
		if r.Elsewhere {
			text += " elsewhere"
		}
		if r.Code == "" {
			text += "(" + r.Text + ")"
		}
		out = append(out, text)
	}
	p := s.Preemption
	if p.Text != "" {
		text := "preemption"
		if p.Never {
			text += " never"
		}
		if p.Terminating {
			text += " terminating"
		}
		out = append(out, fmt.Sprintf("%s %d/%d", text, p.NoVictims, p.NotHelpful))
	}
	if s.Rest != "" {
		out = append(out, "rest "+s.Rest)
	}
	return fmt.Sprintf("%d: ", s.Nodes) + strings.Join(out, "; ")
}

// sentences are what schedulers of 1.30 to 1.37 say, and how each is read.
var sentences = []struct{ name, message, want string }{
	{"one resource", "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
		"3: 3 InsufficientResources cpu; preemption 3/0"},
	{"several resources of one node count more than once", "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
		"2: 2 InsufficientResources cpu; 2 InsufficientResources memory; preemption 2/0"},
	{"an extended resource with dots and a slash", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod..",
		"1: 1 InsufficientResources nvidia.com/gpu; preemption 1/0"},
	{"huge pages and storage", "0/2 nodes are available: 1 Insufficient ephemeral-storage, 1 Insufficient hugepages-2Mi.",
		"2: 1 InsufficientResources ephemeral-storage; 1 InsufficientResources hugepages-2Mi"},
	{"too many Pods", "0/5 nodes are available: 5 Too many pods. preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.",
		"5: 5 InsufficientResources pods; preemption 5/0"},
	{"a taint by name, until 1.34", "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient memory. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
		"3: 1 UntoleratedTaint node-role.kubernetes.io/control-plane; 2 InsufficientResources memory; preemption 2/1"},
	{"a taint with a value", "0/4 nodes are available: 4 node(s) had untolerated taint {dedicated: batch}. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
		"4: 4 UntoleratedTaint dedicated batch; preemption 0/4"},
	{"a taint without its name, since 1.35", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
		"3: 1 UntoleratedTaint; 2 NodeAffinityMismatch; preemption 0/3; rest no new claims to deallocate"},
	{"a reason with a comma of its own", "0/6 nodes are available: 1 node(s) had taint {dedicated: a}, that the pod didn't tolerate, 5 Insufficient cpu.",
		"6: 1 UntoleratedTaint dedicated a; 5 InsufficientResources cpu"},
	{"a cordon that shows as a taint", "0/2 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }, 1 node(s) were unschedulable.",
		"2: 1 NodesCordoned node.kubernetes.io/unschedulable; 1 NodesCordoned"},
	{"a daemon Pod, 1.31 to 1.37", "0/12 nodes are available: 1 Insufficient memory, 11 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/12 nodes are available: 1 No preemption victims found for incoming pod, 11 Preemption is not helpful for scheduling.",
		"12: 1 InsufficientResources memory; 11 NodeAffinityMismatch elsewhere; preemption 1/11"},
	{"a daemon Pod, 1.30", "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 2 node is filtered out by the prefilter result. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
		"3: 1 HostPortConflict; 2 NodeAffinityMismatch elsewhere; preemption 1/2"},
	{"volumes, until 1.32", "0/6 nodes are available: 2 node(s) had volume node affinity conflict, 4 node(s) exceed max volume count.",
		"6: 2 VolumeTopologyConflict; 4 VolumeTopologyConflict"},
	{"volumes, since", "0/6 nodes are available: 1 node(s) did not have enough free storage, 2 node(s) didn't match PersistentVolume's node affinity, 3 node(s) didn't find available persistent volumes to bind.",
		"6: 1 VolumeTopologyConflict; 2 VolumeTopologyConflict; 3 VolumeTopologyConflict"},
	{"a claim that does not exist, before any node was looked at", `0/3 nodes are available: persistentvolumeclaim "data-0" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`,
		"3: 0 VolumeTopologyConflict data-0; preemption 0/3"},
	{"unbound claims", "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
		"3: 0 VolumeTopologyConflict; preemption 0/3; rest not found"},
	{"spread and inter-Pod rules", "0/9 nodes are available: 1 node(s) didn't match pod affinity rules, 2 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't satisfy existing pods anti-affinity rules, 4 node(s) didn't match pod topology spread constraints (missing required label).",
		"9: 1 PodSpreadConflict; 2 PodSpreadConflict; 2 PodSpreadConflict; 4 PodSpreadConflict"},
	{"preemption that may not be", "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.",
		"1: 1 InsufficientResources cpu; preemption never 0/0"},
	{"preemption that waits", "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node.",
		"1: 1 InsufficientResources cpu; preemption terminating 0/0"},
	{"preemption with reasons of its own", "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 Insufficient cpu.",
		"3: 1 UntoleratedTaint node-role.kubernetes.io/control-plane; 2 InsufficientResources cpu; preemption 0/1; rest no new claims to deallocate"},
	{"devices", "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
		"2: 2 InsufficientResources devices; preemption 0/2; rest still not schedulable"},
	{"terms that exclude each other", "0/8 nodes are available: pod affinity terms conflict. preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling.",
		"8: 0 NodeAffinityMismatch; preemption 0/8"},
	{"the requested name and a plugin's own affinity", "0/2 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity, 1 node(s) didn't match the requested node name.",
		"2: 1 NodeAffinityMismatch; 1 NodeAffinityMismatch"},
	{"a reason that nobody knows stays as it is", "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match Pod's required features.",
		"4: 1 InsufficientResources cpu; 3 (node(s) didn't match Pod's required features)"},
	{"cut short", "0/40 nodes are available: 12 Insufficient cpu, 28 node(s) had untolerated ta",
		"40: 12 InsufficientResources cpu; 28 (node(s) had untolerated ta)"},
	{"no reason at all", "0/4 nodes are available.", "4: "},
	{"no node at all", "no nodes available to schedule pods", "0: rest no nodes available to schedule pods"},
	{"a count that cannot be true is no count", "0/2 nodes are available: 7 Insufficient cpu.", "2: 0 (7 Insufficient cpu)"},
}

func TestTheSchedulersSentenceIsTakenApart(t *testing.T) {
	t.Parallel()
	for _, tt := range sentences {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, ok := ParseScheduling(tt.message)
			if got := written(s); !ok || got != tt.want {
				t.Errorf("%v\ngot  %s\nwant %s", ok, got, tt.want)
			}
		})
	}
}

func TestOtherTextsAreNoSchedulersSentence(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", "0/", "0/x nodes are available: 1 Insufficient cpu.", "3/3 nodes are available", "0/99999999999 nodes are available: 1 Insufficient cpu.",
		"Scheduling is blocked due to non-empty scheduling gates", `running "VolumeBinding" filter plugin: context deadline exceeded`, "0/1 tasks in gang unschedulable"} {
		if s, ok := ParseScheduling(m); ok {
			t.Errorf("%q was read as %s", m, written(s))
		}
	}
}

func FuzzParseScheduling(f *testing.F) {
	for _, s := range sentences {
		f.Add(s.message)
	}
	f.Add("0/1 nodes are available: preemption: preemption: . , 1 , 1 1")
	f.Add("0/3 nodes are available: 1 a. 1 b, 2 c. preemption: 0/3 nodes are available: 3 d.")
	f.Add("0/1 nodes are available: \x00\xff{:}, 1 node(s) had untolerated taint {")
	f.Fuzz(func(t *testing.T, message string) {
		s, ok := ParseScheduling(message)
		if !ok {
			if s.Nodes != 0 || len(s.Reasons) > 0 {
				t.Errorf("what is not read says something: %+v", s)
			}
			return
		}
		for _, r := range s.Reasons {
			if r.Count < 0 || r.Count > s.Nodes || r.Text == "" {
				t.Errorf("a reason of %d nodes among %d: %q", r.Count, s.Nodes, r.Text)
			}
			if !strings.Contains(message, r.Text) || r.Code != "" && !r.Code.Known() {
				t.Errorf("%q with code %q is not from %q", r.Text, r.Code, message)
			}
		}
		if p := s.Preemption; p.NoVictims < 0 || p.NotHelpful < 0 {
			t.Errorf("preemption: %+v", p)
		}
		if s.Nodes < 0 || s.Nodes > 9999999 {
			t.Errorf("%d nodes", s.Nodes)
		}
	})
}
