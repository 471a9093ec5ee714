package files

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func loadCase(t *testing.T, dir string) *Case {
	t.Helper()
	c, err := LoadCase(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposedCaseIsAClusterAsKubectlWouldHaveShownIt(t *testing.T) {
	t.Parallel()
	s := loadCase(t, "../testdata/cases/cni-init-fails-budget-stops").Snapshot

	if got, want := s.AsOf, time.Date(2026, 7, 3, 10, 26, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("AsOf = %v, want the case's now, %v", got, want)
	}
	if len(s.Nodes) != 12 {
		t.Fatalf("%d nodes, want 12", len(s.Nodes))
	}
	for _, r := range resources {
		if !s.Read(r) && r != cluster.ConfigMaps {
			t.Errorf("%s counts as not read", r)
		}
	}
	for _, d := range s.DaemonSets {
		pods := s.PodsOf(d.UID)
		want := int32(12)
		if d.Name == "log-agent" {
			want = 9 // it does not tolerate not-ready: three nodes have left its count
		}
		if len(pods) != 12 || d.Status.DesiredNumberScheduled != want || d.Status.NumberMisscheduled != 12-want {
			t.Errorf("%s: %d Pods, %+v, want 12 and %d desired", d.Name, len(pods), d.Status, want)
		}
		if d.Name != "net-agent" {
			if d.Status.NumberReady != want || d.Status.UpdatedNumberScheduled != want || d.Status.NumberAvailable != want {
				t.Errorf("%s is not healthy: %+v", d.Name, d.Status)
			}
			continue
		}
		if d.Status.UpdatedNumberScheduled != 3 || d.Status.NumberReady != 9 || d.Status.NumberUnavailable != 3 {
			t.Errorf("net-agent: %+v", d.Status)
		}
		if revs := s.RevisionsOf(d.UID); len(revs) != 2 || revs[0].Revision != 7 || revs[1].Revision != 6 {
			t.Errorf("revisions of net-agent: %v", revs)
		}
		if n := len(s.EventsOf("DaemonSet", d.Namespace, d.Name)); n != 6 {
			t.Errorf("%d events of net-agent, want three deletions and three creations", n)
		}
	}
	n := s.Node("worker-5")
	ready := cluster.NodeCondition(n, corev1.NodeReady)
	if ready.Status != corev1.ConditionFalse || ready.LastTransitionTime.UTC().Format(time.TimeOnly) != "10:20:16" {
		t.Errorf("worker-5: %+v, want Ready=False since 10:20:16", ready)
	}
	if age := s.AsOf.Sub(s.NodeLease("worker-5").Spec.RenewTime.Time); age < 0 || age > 10*time.Second {
		t.Errorf("the Lease of worker-5 is %v old: its kubelet is alive", age)
	}
	for _, p := range s.PodsOn("worker-5") {
		if p.Labels["k8s-app"] != "net-agent" {
			continue
		}
		if p.Status.Phase != corev1.PodPending || cluster.PodReady(p) || p.Status.InitContainerStatuses[0].RestartCount != 5 {
			t.Errorf("net-agent on worker-5: %+v", p.Status)
		}
	}
}

func TestEveryCaseOnDiskLoads(t *testing.T) {
	t.Parallel()
	dirs, err := Cases("../testdata/cases")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("cases: %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			loadCase(t, dir)
		})
	}
}
