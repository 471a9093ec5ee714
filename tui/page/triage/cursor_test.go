package triage

import (
	"testing"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
)

func listing(names ...string) *incident.State {
	r := &report.Report{}
	for _, n := range names {
		r.Workloads = append(r.Workloads, report.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: report.Text(n)})
	}
	return &incident.State{Report: r}
}

// The worst workload comes to the top as the picture fills. A cursor that nobody has
// moved must not stay on what happened to be first when the screen opened: what is
// acted on is under it.
func TestAnUntouchedCursorIsOnTheWorstWorkload(t *testing.T) {
	t.Parallel()
	p := &Page{}
	p.Set(listing("innocent"))
	p.Set(listing("worst", "innocent"))
	if got := p.Selected().Name; got != "worst" {
		t.Errorf("the cursor is on %s", got)
	}
}

func TestAMovedCursorStaysOnItsWorkload(t *testing.T) {
	t.Parallel()
	p := &Page{}
	p.Set(listing("a", "b", "c"))
	p.Move(keymap.Down)
	p.Set(listing("c", "a", "b"))
	if got := p.Selected().Name; got != "b" {
		t.Errorf("the cursor is on %s, not where it was put", got)
	}
	p.Set(listing("c", "a"))
	if p.Selected() == nil {
		t.Error("the cursor is nowhere once its workload is gone")
	}
}
