package probes

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

const (
	// componentMargin is how long after its term a leader election Lease may be
	// renewed late: for a slow API server, another candidate that takes over, and a
	// Lease that was read some seconds before the rest.
	componentMargin = 45 * time.Second
	// leaderTerm is the default of --leader-elect-lease-duration.
	// Source: component-base config/v1alpha1/defaults.go.
	leaderTerm = 15 * time.Second
	// relicAge is from which age on a Lease may be one that nobody uses any more: a
	// component of which leader election was switched off leaves its Lease behind.
	relicAge = 15 * time.Minute
)

// component is a part of the control plane that holds a leader election Lease.
type component struct {
	lease    string
	code     report.Code
	topic    report.StakeTopic
	meaning  string
	managers []string // that it writes as, in managedFields
	sources  []string // that its events come from
}

var (
	controllerManager = component{"kube-controller-manager", report.ControllerManagerDown, report.StakeControllerManager,
		"no rollout moves, no node turns Unknown and no Pod is evicted meanwhile", []string{"kube-controller-manager"},
		[]string{"daemonset-controller", "deployment-controller", "replicaset-controller", "statefulset-controller", "node-controller", "taint-eviction-controller", "job-controller", "cronjob-controller"}}
	scheduler = component{"kube-scheduler", report.SchedulerDown, report.StakeScheduler,
		"no new Pod is placed meanwhile", []string{"kube-scheduler"}, []string{"default-scheduler"}}
)

// leader is how a component stands by its leader election Lease.
type leader struct {
	known   bool // its Lease was read
	renewed time.Time
	age     time.Duration
	relic   string          // what shows that nobody uses that Lease any more, ""
	down    *report.Finding // nil while it renews
}

// leaderOf judges a component by its Lease. Where there is none, leader election may
// be off, or the component run where no Lease of this cluster tells of it: that says
// nothing.
func (c *Diagnosis) leaderOf(x component) leader {
	st, done := c.leaders[x.lease]
	if !done {
		st = c.readLeader(x)
		if c.leaders == nil {
			c.leaders = map[string]leader{}
		}
		c.leaders[x.lease] = st
	}
	return st
}

func (c *Diagnosis) readLeader(x component) leader {
	l := c.s.ControlPlaneLease(x.lease)
	st := leader{renewed: cluster.LeaseRenewed(l)}
	if st.renewed.IsZero() {
		return st
	}
	term := leaderTerm
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d > 0 {
		term = time.Duration(*d) * time.Second
	}
	st.known, st.age = true, c.componentsSeen().Sub(st.renewed)
	if st.age <= term+componentMargin {
		return st
	}
	if seen, what := c.activeAfter(x, st.renewed.Add(term), st.age); !seen.IsZero() {
		st.relic = "it was at work at " + stamp(seen) + " (" + what + ")"
		return st
	}
	st.down = &report.Finding{Code: x.code, Severity: x.code.Severity(false), Object: report.Object{Kind: "Lease", Namespace: cluster.ControlPlaneNamespace, Name: report.Clean(x.lease)},
		Since: report.At(st.renewed), Summary: report.Textf("%s has not renewed its Lease for %s: %s", x.lease, short(st.age), x.meaning),
		Evidence: []report.Evidence{{Source: "Lease.spec.renewTime", Value: report.Textf("renewed %s ago, for a term of %s, by %s", short(st.age), short(term), holder(l)), At: report.At(st.renewed)}}}
	return st
}

// componentStake says whether kube-controller-manager and kube-scheduler are alive.
func (c *Diagnosis) componentStake(k *stake) {
	for _, x := range []component{controllerManager, scheduler} {
		st := c.leaderOf(x)
		switch {
		case st.down != nil:
			f := *st.down
			f.Severity = x.code.Severity(c.isRoot(x.code))
			k.add(f)
			k.lines = append(k.lines, report.Stake{Topic: x.topic, State: report.StepAnomaly, Text: f.Summary, Brief: report.Textf("%s down", strings.TrimPrefix(x.lease, "kube-"))})
		case st.relic != "":
			k.say(x.topic, report.StepNotice, "", "%s: its Lease is %s old, yet %s: nobody seems to use that Lease any more", x.lease, short(st.age), st.relic)
		case !k.anything():
		case !st.known:
			k.say(x.topic, report.StepNone, "", "%s: no Lease of it was read, so whether it is alive is not known", x.lease)
		default:
			k.say(x.topic, report.StepOK, "", "%s renewed its Lease %s ago", x.lease, short(st.age))
		}
	}
}

func holder(l *coordinationv1.Lease) string {
	if h := l.Spec.HolderIdentity; h != nil && *h != "" {
		return *h
	}
	return "nobody: the last leader gave it up"
}

// isRoot tells whether a workload's verdict, or the incident's, rests on that code.
func (c *Diagnosis) isRoot(code report.Code) bool {
	for _, d := range c.daemonSets {
		if d.verdict.RootCause == code {
			return true
		}
	}
	for _, r := range c.replicated {
		if r.verdict.RootCause == code {
			return true
		}
	}
	return false
}

// componentsSeen is the moment against which the control plane's Leases are judged. Of
// files nobody knows when each was written, only that one Lease is older than another:
// that counts which was renewed last.
func (c *Diagnosis) componentsSeen() time.Time {
	if c.s.Source.Type != "files" {
		return c.leaseNow
	}
	var newest time.Time
	for _, l := range c.s.Leases {
		if t := cluster.LeaseRenewed(l); !t.After(c.s.AsOf) {
			newest = maxTime(newest, t)
		}
	}
	return newest
}

// activeAfter finds the latest sign that the component was at work after its term was
// over; zero without one, and where its Lease is too young to be a relic.
func (c *Diagnosis) activeAfter(x component, over time.Time, age time.Duration) (seen time.Time, what string) {
	if age <= relicAge {
		return seen, what
	}
	see := func(t time.Time, of string) {
		if t.After(over.Add(skew)) && !t.After(c.s.AsOf.Add(skew)) && t.After(seen) {
			seen, what = t, of
		}
	}
	fields := func(o metav1.Object, of string) {
		for _, f := range o.GetManagedFields() {
			for _, m := range x.managers {
				if f.Manager == m && f.Time != nil {
					see(f.Time.Time, of)
				}
			}
		}
	}
	for _, o := range c.s.DaemonSets {
		fields(o, "DaemonSet "+o.Namespace+"/"+o.Name)
	}
	for _, o := range c.s.Deployments {
		fields(o, "Deployment "+o.Namespace+"/"+o.Name)
	}
	for _, o := range c.s.ReplicaSets {
		fields(o, "ReplicaSet "+o.Namespace+"/"+o.Name)
	}
	for _, o := range c.s.Pods {
		fields(o, "Pod "+o.Namespace+"/"+o.Name)
	}
	for _, o := range c.s.Nodes {
		fields(o, "Node "+o.Name)
	}
	for _, e := range c.s.Events {
		for _, s := range x.sources {
			if cluster.EventSource(e) == s {
				see(cluster.EventLast(e), "event "+e.Reason)
			}
		}
	}
	return seen, what
}
