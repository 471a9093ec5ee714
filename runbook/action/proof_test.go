package action

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

const nodeGrace = 50 * time.Second

// step is one snapshot of a proof: what happens before it, and how the proof
// stands after it.
type step struct {
	after       time.Duration
	do          func(*world)
	holds, done bool
	says        string
}

func run(t *testing.T, w *world, observe func() Proof, steps []step) {
	t.Helper()
	for i, st := range steps {
		w.now = w.now.Add(st.after)
		if st.do != nil {
			st.do(w)
		}
		p := observe()
		if p.Holds != st.holds || p.Done != st.done || !strings.Contains(fmt.Sprint(p.Lines), st.says) {
			t.Fatalf("step %d: holds %v done %v, want %v %v %q\n%v", i+1, p.Holds, p.Done, st.holds, st.done, st.says, p.Lines)
		}
	}
}

func caughtUp(w *world) { w.ds.Status.ObservedGeneration = w.ds.Generation }

func TestFreezeIsProvedWhenTheControllerHasSeenItForTwoGracePeriods(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: Freeze, Workload: agent}).Plan, nodeGrace)
	run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
		{says: "not yet 3"},
		{after: time.Second, do: caughtUp, holds: true, says: "OnDelete"},
		{after: 99 * time.Second, holds: true},
		{after: time.Second, holds: true, done: true},
	})
}

func TestFreezeThatIsPutBackIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: Freeze, Workload: agent}).Plan, nodeGrace)
	run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
		{do: caughtUp, holds: true},
		{after: 10 * time.Second, do: func(w *world) {
			w.ds.Spec.UpdateStrategy.Type = "RollingUpdate"
			w.ds.Generation++
			caughtUp(w)
		}, says: "somebody put it back"},
		{after: 200 * time.Second, says: "somebody put it back"},
	})
	if p := v.Observe(w.snapshot()); p.Broke != 1 {
		t.Errorf("broke %d times", p.Broke)
	}
}

func TestProofOfAPictureFromBeforeTheChangeIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	stale := w.snapshot()
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: RollBack, Workload: agent, ToRevision: 1}).Plan, nodeGrace)
	if p := v.Observe(stale); p.Holds || !strings.Contains(fmt.Sprint(p.Lines), "not in the picture yet") {
		t.Errorf("%+v", p)
	}
}

func TestRollBackIsProvedByTheTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: RollBack, Workload: agent, ToRevision: 1}).Plan, nodeGrace)
	run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
		{do: caughtUp, holds: true, says: "the template is that of revision 1"},
		{after: 30 * time.Second, do: func(w *world) {
			w.ds.Spec.Template = template("agent:v2")
			w.ds.Generation++
			caughtUp(w)
		}, says: "somebody put it back"},
		{after: time.Second, do: func(w *world) { w.ds.Spec.Template = template("agent:v1"); w.ds.Generation++; caughtUp(w) }, holds: true},
		{after: 99 * time.Second, holds: true}, // counted from the last time, not the first
		{after: time.Second, holds: true, done: true},
	})
}

func TestDeletedPodIsProvedByItsSuccessorAndItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.setReady("node-01", corev1.ConditionFalse)
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}).Plan, nodeGrace)
	run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
		{says: "has no Pod"},
		{after: time.Second, do: func(w *world) { p := w.on("node-01", 2); p.UID = "new"; unready(p) }, says: "not Ready yet"},
		{after: time.Second, do: func(w *world) { p := w.on("node-01", 2); p.UID = "new" }, says: "node-01 is not Ready"},
		{after: time.Second, do: func(w *world) { w.setReady("node-01", corev1.ConditionTrue) }, holds: true},
		{after: 50 * time.Second, do: func(w *world) { w.setReady("node-01", corev1.ConditionFalse) }, says: "taint"},
		{after: time.Second, do: func(w *world) { w.setReady("node-01", corev1.ConditionTrue) }, holds: true},
		{after: 100 * time.Second, holds: true, done: true},
	})
}

func TestDeletedPodThatComesBackOfAnotherRevisionProvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	v := Verify(apply(t, &fakeAPI{w: w}, Request{Kind: DeletePod, Workload: agent, Pod: "agent-node-01-r2"}).Plan, nodeGrace)
	run(t, w, func() Proof { return v.Observe(w.snapshot()) }, []step{
		{do: func(w *world) { w.on("node-01", 1) }, says: "of another revision"},
		{after: 200 * time.Second, says: "of another revision"},
	})
}

func TestRecoveryCountsEveryNodeInReachAndListsTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(6)
	w.tolerateAll()
	w.setReady("node-01", corev1.ConditionFalse)
	w.setReady("node-05", corev1.ConditionUnknown)
	w.setReady("node-06", corev1.ConditionFalse)
	r := Recover(agent, w.snapshot(), []report.Text{"node-06"}, nodeGrace)
	run(t, w, func() Proof { return r.Observe(w.snapshot()) }, []step{
		{says: "3 of 4 nodes in reach"},
		{after: time.Second, do: func(w *world) { w.setReady("node-01", corev1.ConditionTrue) }, holds: true, says: "node-05 is out of reach: the API cannot act on it: listed, not counted"},
		// A node that is lost afterwards is no excuse.
		{after: time.Second, do: func(w *world) { w.setReady("node-02", corev1.ConditionUnknown) }, says: "node-02 is not Ready: Ready=Unknown"},
		{after: time.Second, do: func(w *world) { w.setReady("node-02", corev1.ConditionTrue) }, holds: true},
		// One that comes back counts again, with what it runs.
		{after: time.Second, do: func(w *world) { w.setReady("node-05", corev1.ConditionTrue); w.on("node-05", 1) }, says: "node-05: agent-node-05-r1 is of another revision"},
		{after: time.Second, do: func(w *world) { w.on("node-05", 2) }, holds: true, says: "5 of 5 nodes in reach"},
		{after: 100 * time.Second, holds: true, done: true},
	})
	if got := fmt.Sprint(r.Excused(w.snapshot())); got != "[node-06 was broken before the rollout]" {
		t.Errorf("excused: %s", got)
	}
}

func TestRecoveryExcusesNodesThatTheBadRevisionTookInTheMeantime(t *testing.T) {
	t.Parallel()
	w := newWorld(4)
	w.tolerateAll()
	w.on("node-01", 1) // still the bad one, and not fallen yet
	r := Recover(agent, w.snapshot(), nil, nodeGrace)
	run(t, w, func() Proof { return r.Observe(w.snapshot()) }, []step{
		{says: "node-01: agent-node-01-r1 is of another revision"},
		{after: time.Second, do: func(w *world) { w.setReady("node-01", corev1.ConditionUnknown) }, holds: true,
			says: "node-01 is out of reach: it was lost before its Pod was replaced: listed, not counted"},
		{after: 100 * time.Second, holds: true, done: true},
	})
}

func TestRecoveryWantsAFreshHeartbeatWhereItIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.lease("node-01", w.now.Add(-70*time.Second)) // Ready=True still, and past the grace period
	r := Recover(agent, w.snapshot(), nil, nodeGrace)
	run(t, w, func() Proof { return r.Observe(w.snapshot()) }, []step{
		{says: "node-01 has not renewed its Lease for 1m10s"},
		{after: time.Second, do: func(w *world) { w.leases = nil; w.lease("node-01", w.now) }, holds: true},
	})
}

// A node that DESIRED no longer counts, because it is tainted, is still one that
// must come back.
func TestRecoveryCountsNodesThatDesiredForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.remove("node-01")
	w.setReady("node-01", corev1.ConditionFalse)
	r := Recover(agent, w.snapshot(), nil, nodeGrace)
	if p := r.Observe(w.snapshot()); p.Holds || !strings.Contains(fmt.Sprint(p.Lines), "node-01 has no Pod") {
		t.Errorf("%+v", p)
	}
}

func TestALaterActionOnTheSameLeverReplacesTheProof(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	api := &fakeAPI{w: w}
	frozen := apply(t, api, Request{Kind: Freeze, Workload: agent})
	caughtUp(w)
	back := prepare(t, api, Request{Kind: RollBack, Workload: agent, ToRevision: 1})
	thaw := prepare(t, api, Request{Kind: Unfreeze, Workload: agent})
	v := Verify(frozen.Plan, nodeGrace)
	if v.Replaces(back.Plan) || !v.Replaces(thaw.Plan) {
		t.Errorf("a roll back replaces a freeze: %v, an unfreeze: %v", v.Replaces(back.Plan), v.Replaces(thaw.Plan))
	}
}
