package probes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// incidentSpan is how long ago a node may have fallen to be of the incident: one
// that was down all night is not what somebody was woken for.
const incidentSpan = 12 * time.Hour

// stake is what else rests on the nodes of the incident.
type stake struct {
	affected []*nodeState    // failing nodes that the incident is about, by name
	on       map[string]bool // those by name
	next     map[string]bool // nodes that a rollout which breaks nodes has not reached
	rollouts []*daemonSet    // that have not reached them
	findings []report.Finding
	lines    []report.Stake
}

func (k *stake) add(f report.Finding) { k.findings = append(k.findings, f) }

func (k *stake) say(t report.StakeTopic, state report.StepState, brief report.Text, format string, args ...any) {
	k.lines = append(k.lines, report.Stake{Topic: t, State: state, Brief: brief, Text: report.Textf(format, args...)})
}

// readStakes works out what is at stake. It is asked while nodes fail or a rollout
// that breaks them goes on; the Leases of the control plane's components, and a
// cluster DNS of which nothing is left, count at any time.
func (c *Diagnosis) readStakes() {
	k := &stake{on: map[string]bool{}, next: map[string]bool{}}
	c.stake = k
	k.affected = c.affectedNodes()
	for _, n := range k.affected {
		k.on[n.name] = true
	}
	c.nextInLine(k)
	c.controlPlaneStake(k)
	c.componentStake(k)
	x := c.endpointIndex()
	c.apiPathStake(k, x)
	c.dnsStake(k, x)
	c.serviceStake(k, x)
	c.webhookStake(k, x)
	c.evictionStake(k)
	sortStakes(k.lines)
}

// anything tells whether nodes fail, or are about to.
func (k *stake) anything() bool { return len(k.affected)+len(k.next) > 0 }

// affectedNodes are the failing nodes that the incident is about: not those that are
// taken away on purpose, and not those that have been down since days while others
// fell now.
func (c *Diagnosis) affectedNodes() []*nodeState {
	var all, recent []*nodeState
	for _, n := range c.nodeList {
		if !n.failing() || n.removal != "" {
			continue
		}
		all = append(all, n)
		if !c.downForLong(n) {
			recent = append(recent, n)
		}
	}
	if len(recent) > 0 {
		return recent
	}
	return all
}

// downForLong tells whether the node fell longer ago than any incident of now.
func (c *Diagnosis) downForLong(n *nodeState) bool {
	e := n.current()
	return e != nil && !e.onset.IsZero() && c.s.AsOf.Sub(e.onset.From) >= incidentSpan
}

// standing is a node's readiness with, for one that fell long ago, for how long.
func (c *Diagnosis) standing(n *nodeState) string {
	s := readiness(n)
	if c.downForLong(n) {
		s += ", down for " + short(c.s.AsOf.Sub(n.current().shown))
	}
	return s
}

// nextInLine finds the nodes that a spreading rollout has not reached: one that
// breaks nodes, or of which that cannot be told yet while nodes that it reached fail.
func (c *Diagnosis) nextInLine(k *stake) {
	for _, d := range c.daemonSets {
		if !d.rollout.Spreading || !d.broke() && !(d.undetermined() && d.analysis.lasts()) {
			continue
		}
		found := false
		for i := range d.loop.Slots {
			s := &d.loop.Slots[i]
			if n := c.nodes[s.Node]; n != nil && s.Old != nil && !n.failing() {
				k.next[n.name], found = true, true
			}
		}
		if found {
			k.rollouts = append(k.rollouts, d)
		}
	}
}

// unread says why a kind is not in the picture; "" where it is.
func (c *Diagnosis) unread(r cluster.Resource) string {
	if c.s.Read(r) {
		return ""
	}
	why := "being read"
	for _, n := range c.s.NotRead {
		if n.Resource != r || n.Namespace != "" {
			continue
		}
		switch n.Reason {
		case cluster.NotAsked:
			why = "not asked for: no node fell within 12 hours"
		case "Absent":
			why = "absent from what was read"
		default:
			why = strings.ToLower(n.Reason)
		}
	}
	return string(r) + " (" + why + ")"
}

// stakeOrder is the order of topics in a report.
var stakeOrder = []report.StakeTopic{report.StakeControlPlane, report.StakeAPIPath, report.StakeControllerManager, report.StakeScheduler,
	report.StakeDNS, report.StakeServices, report.StakeWebhooks, report.StakeEvictions}

func sortStakes(list []report.Stake) {
	slices.SortStableFunc(list, func(a, b report.Stake) int {
		return cmp.Compare(slices.Index(stakeOrder, a.Topic), slices.Index(stakeOrder, b.Topic))
	})
}
