package incident

import (
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// link tells whether the picture is being kept up to date. Nodes are what every
// conclusion rests on: while they are not being updated, nothing is.
func (l *Loop) link() Link {
	if l.snap == nil {
		return Link{Why: first(l.dead, "nothing was read yet")}
	}
	k := Link{Live: l.dead == "", Since: l.snap.AsOf, Why: l.dead}
	if len(l.snap.Freshness) == 0 {
		return k
	}
	k.Since = k.Since.AddDate(-100, 0, 0)
	broken, all := "", true
	for _, r := range resources(l.snap) {
		f := l.snap.Freshness[r]
		if f.Since.After(k.Since) {
			k.Since = f.Since
		}
		if f.Broken == "" {
			all = false
		} else if broken == "" || r == cluster.Nodes {
			broken = f.Broken
		}
	}
	if broken != "" && (all || l.snap.Freshness[cluster.Nodes].Broken != "") {
		k.Live, k.Why = false, first(l.dead, report.Clean(broken))
	}
	return k
}

// noteLink keeps when the picture stopped being updated, and when it was again.
func (l *Loop) noteLink() {
	switch k := l.link(); {
	case !k.Live && !l.lost:
		l.lost = true
		l.keep(session.ConnectionLost, report.Textf("connection lost: %s", k.Why), nil)
	case k.Live && l.lost:
		l.lost = false
		l.keep(session.ConnectionRestored, "the picture is being updated again", nil)
	}
}

// resources lists the kinds with a known freshness in a fixed order.
func resources(s *cluster.Snapshot) []cluster.Resource {
	var out []cluster.Resource
	for _, r := range []cluster.Resource{cluster.Nodes, cluster.DaemonSets, cluster.Pods, cluster.ControllerRevisions, cluster.Deployments,
		cluster.ReplicaSets, cluster.StatefulSets, cluster.Events, cluster.Leases} {
		if _, ok := s.Freshness[r]; ok {
			out = append(out, r)
		}
	}
	return out
}

func first(texts ...report.Text) report.Text {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
