package sim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
)

// A rollout over forty nodes: each deletes a Pod and, ten seconds later, creates one.
func TestEventsOfALargeRolloutAreCombinedAndThenDropped(t *testing.T) {
	t.Parallel()
	clock := NewClock(epoch)
	w := New(clock, api.New(clock.Now, 1), Options{})
	r := w.newRecorder("daemonset-controller", "")
	about := corev1.ObjectReference{Kind: "DaemonSet", APIVersion: "apps/v1", Namespace: "default", Name: "agent", UID: "1"}
	revision := func() int {
		n, err := strconv.Atoi(w.store.ResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	dropped, firstLoss := 0, 0
	for node := 1; node <= 40; node++ {
		for _, reason := range []string{"SuccessfulDelete", "SuccessfulCreate"} {
			w.Step(clock.Now().Add(10 * time.Second))
			before := revision()
			r.event(about, corev1.EventTypeNormal, reason, "%s", fmt.Sprintf("pod agent-%02d", node))
			if revision() > before {
				continue
			}
			dropped++
			if firstLoss == 0 {
				firstLoss = node
			}
		}
	}
	single := 0
	for _, o := range w.store.List(eventsResource, "", nil) {
		if e := o.(*corev1.Event); !strings.HasPrefix(e.Message, "(combined from similar events): ") {
			single++
		}
	}
	if combined := 80 - dropped - single; single != 18 || combined != 9 || dropped != 53 || firstLoss != 13 {
		t.Errorf("of 80 events %d were written singly, %d combined and %d dropped, the first at node %d; want 18, 9, 53 and 13", single, combined, dropped, firstLoss)
	}
}

func TestRepeatedEventIsCounted(t *testing.T) {
	t.Parallel()
	clock := NewClock(epoch)
	w := New(clock, api.New(clock.Now, 1), Options{})
	r := w.newRecorder("kubelet", "node-1")
	about := corev1.ObjectReference{Kind: "Node", Name: "node-1"}
	for i := range 3 {
		w.Step(epoch.Add(time.Duration(i) * time.Minute))
		r.event(about, corev1.EventTypeWarning, "Complaint", "again")
	}
	events := w.store.List(eventsResource, "default", nil)
	if len(events) != 1 {
		t.Fatalf("%d events in default", len(events))
	}
	e := events[0].(*corev1.Event)
	if e.Count != 3 || !e.FirstTimestamp.Time.Equal(epoch) || !e.LastTimestamp.Time.Equal(epoch.Add(2*time.Minute)) || e.ReportingInstance != "node-1" {
		t.Errorf("it is %+v", e)
	}
	// Not heard of for an hour, it is gone; the next one starts anew.
	w.Step(epoch.Add(2*time.Minute + time.Hour))
	r.event(about, corev1.EventTypeWarning, "Complaint", "again")
	if n := len(w.store.List(eventsResource, "default", nil)); n != 1 {
		t.Errorf("%d events after the hour", n)
	}
}
