package action

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever happens to the object between preview and confirmation, the plan takes
// effect on exactly the object and generation that were looked at, or on nothing.
func TestApplyConflictsWheneverTheObjectMoved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3)
		w.ds.Generation = rapid.Int64Range(1, 1<<53).Draw(t, "generation")
		w.ds.Status.ObservedGeneration = w.ds.Generation
		api := &fakeAPI{w: w}
		kind := rapid.SampledFrom([]Kind{Freeze, RollBack}).Draw(t, "kind")
		p, err := Prepare(context.Background(), api, w.snapshot(), Request{Kind: kind, Workload: agent, ToRevision: 1})
		if err != nil || p.Blocked != "" {
			t.Fatalf("preview: %v %s", err, p.Blocked)
		}
		moved := false
		if rapid.Bool().Draw(t, "generation moves") {
			w.ds.Generation += rapid.Int64Range(1, 5).Draw(t, "by")
			moved = true
		}
		if rapid.Bool().Draw(t, "made anew") {
			w.ds.UID = "another"
			moved = true
		}
		// A status write moves the resourceVersion only, and must not conflict.
		w.ds.ResourceVersion = rapid.StringMatching(`[0-9]{1,6}`).Draw(t, "resourceVersion")
		before := w.ds.DeepCopy()
		o, err := Apply(context.Background(), api, p.Plan)
		switch {
		case moved && !errors.Is(err, ErrConflict):
			t.Fatalf("moved, and the error is %v", err)
		case moved && (w.ds.Spec.UpdateStrategy.Type != before.Spec.UpdateStrategy.Type || w.ds.Generation != before.Generation || o.Err == ""):
			t.Fatalf("moved, and something was changed or nothing said: %+v", o)
		case !moved && (err != nil || w.ds.Generation != before.Generation+1 || o.Err != ""):
			t.Fatalf("stood still, and the outcome is %v %q, generation %d", err, o.Err, w.ds.Generation)
		}
	})
}

func TestDeletionTakesOnlyThePodThatWasLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	api := &fakeAPI{w: w}
	p := prepare(t, api, Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"})
	w.pods[0].UID = "its-successor-of-the-same-name"
	_, err := Apply(t.Context(), api, p.Plan)
	if !errors.Is(err, ErrConflict) || len(w.pods) != 2 {
		t.Errorf("error %v, %d Pods left", err, len(w.pods))
	}
}

func TestPreviewIsWorkedOutAnewWhereTheObjectMovesUnderIt(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	once := false
	api := &fakeAPI{w: w}
	api.before = func(call string) {
		if call == "dry-run patch" && !once {
			once = true
			w.ds.Generation++
			w.ds.Status.ObservedGeneration++
		}
	}
	p := prepare(t, api, Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	if p.Generation != w.ds.Generation || p.DryRun != DryRunAccepted {
		t.Errorf("planned on generation %d, the object has %d; dry run %s", p.Generation, w.ds.Generation, p.DryRun)
	}
}

func TestPreviewGivesUpOnAnObjectThatNeverStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	api := &fakeAPI{w: w}
	api.before = func(call string) {
		if call == "dry-run patch" {
			w.ds.Generation++
			w.ds.Status.ObservedGeneration++
		}
	}
	_, err := Prepare(t.Context(), api, w.snapshot(), Request{Kind: Freeze, Workload: agent})
	if !errors.Is(err, ErrConflict) {
		t.Errorf("error %v", err)
	}
}

func TestApplySaysThatAnUnansweredRequestMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	api := &fakeAPI{w: w}
	p := prepare(t, api, Request{Kind: Freeze, Workload: agent})
	api.fail = map[string]error{"patch": fmt.Errorf("dial: %w", ErrUnreachable)}
	o, err := Apply(t.Context(), api, p.Plan)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(string(o.Err), "whether it took effect is not known") {
		t.Errorf("%v %q", err, o.Err)
	}
}

func TestEndOfTheContextIsNoRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	ctx, cancel := context.WithCancel(t.Context())
	api := &fakeAPI{w: w, before: func(call string) {
		if call == "dry-run patch" {
			cancel()
		}
	}}
	if _, err := Prepare(ctx, api, w.snapshot(), Request{Kind: Freeze, Workload: agent}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// The journal keeps Before and After: never a template, whose environment may
// carry secrets.
func TestBeforeAndAfterCarryNoTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	api := &fakeAPI{w: w}
	for _, r := range []Request{{Kind: Freeze, Workload: agent}, {Kind: RollBack, Workload: agent, ToRevision: 1}, {Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}} {
		p := prepare(t, api, r)
		if both := string(p.Before) + string(p.After); strings.Contains(both, "containers") || strings.Contains(both, "agent:v") || len(p.Before) == 0 || len(p.After) == 0 {
			t.Errorf("%s keeps %s", r.Kind, both)
		}
	}
}
