package incident

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// guideKey is one walk: a workload may have been looked at with two runbooks.
type guideKey struct {
	workload report.WorkloadKey
	book     string
}

// openWorkload opens a checklist, at the place where it was left.
func (l *Loop) openWorkload(i OpenWorkload) *job {
	if l.diag == nil {
		return l.refuse("%s cannot be opened yet: nothing was read so far", i.Workload)
	}
	if !exists(l.snap, i.Workload) {
		return l.refuse("%s was not found in the cluster; / finds workloads by a part of their name", i.Workload)
	}
	b := l.book(i)
	if b == nil {
		return l.refuse("there is no runbook %q", i.Runbook)
	}
	g := l.guide(i.Workload, b)
	l.open = g
	if l.cfg.Want != nil {
		l.cfg.Want(i.Workload)
	}
	l.keep(WorkloadOpened, report.Textf("opened %q for %s", b.Title, i.Workload), OpenWorkload{i.Workload, b.ID})
	l.walk(g, g.Enter())
	l.look()
	return nil
}

func (l *Loop) book(i OpenWorkload) *runbook.Book {
	if i.Runbook != "" {
		n := slices.IndexFunc(l.cfg.Books, func(b *runbook.Book) bool { return b.ID == i.Runbook })
		if n < 0 {
			return nil
		}
		return l.cfg.Books[n]
	}
	b, _ := runbook.Choose(l.cfg.Books, runbook.FactsOf(l.diag.Report, i.Workload))
	return b
}

func (l *Loop) guide(k report.WorkloadKey, b *runbook.Book) *runbook.Guide {
	key := guideKey{k, b.ID}
	g, ok := l.guides[key]
	if !ok {
		g = runbook.New(b, k, runbook.Values{})
		l.guides[key] = g
	}
	return g
}

// look lets every step of the open checklist look at the last snapshot: a step
// keeps watching after it was passed.
func (l *Loop) look() {
	g := l.open
	if g == nil || l.diag == nil {
		return
	}
	at := l.diag.Report.AsOf
	g.SetValues(runbook.ValuesOf(l.snap, l.diag.Report, g.Target()))
	l.walk(g, g.Know(runbook.FactsOf(l.diag.Report, g.Target()), at))
	for _, step := range g.Book().Steps {
		r := report.Result{State: report.StepUnknown, Reason: report.Textf("no probe is called %q", step.Probe)}
		if probe, ok := l.probes[step.Probe]; ok {
			r = l.hear(step.Probe, probe(l.diag, g.Target()))
		}
		l.walk(g, g.Observe(step.ID, r, at))
	}
}

// walk keeps what a guide did.
func (l *Loop) walk(g *runbook.Guide, events []runbook.Event) {
	for _, e := range events {
		l.keep(session.Kind(e.Kind), e.Text, walked{e, g.Target(), g.Book().ID})
	}
}

// step moves in the open checklist.
func (l *Loop) step(i Intent) *job {
	g := l.open
	if g == nil {
		return l.refuse("no checklist is open: open a workload first")
	}
	var events []runbook.Event
	var err error
	switch i := i.(type) {
	case NextStep:
		events = g.Next()
		if len(events) == 0 {
			l.say("this was the last step")
		}
	case PreviousStep:
		events = g.Previous()
	case GoToStep:
		events, err = g.GoTo(i.Step)
	case SkipStep:
		events = g.Skip(i.Why)
	}
	if err != nil {
		return l.refuse("%v", err)
	}
	l.walk(g, events)
	return nil
}

// exists tells whether the workload is in the snapshot.
func exists(s *cluster.Snapshot, k report.WorkloadKey) bool { return object(s, k) != nil }

func object(s *cluster.Snapshot, k report.WorkloadKey) metav1.Object {
	switch k.Kind {
	case "DaemonSet":
		return named(s.DaemonSets, k)
	case "Deployment":
		return named(s.Deployments, k)
	case "StatefulSet":
		return named(s.StatefulSets, k)
	}
	return nil
}

func named[T metav1.Object](all []T, k report.WorkloadKey) metav1.Object {
	for _, o := range all {
		if o.GetNamespace() == string(k.Namespace) && o.GetName() == string(k.Name) {
			return o
		}
	}
	return nil
}
