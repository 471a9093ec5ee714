package probes_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestPodsAreEvictedByTheirOwnTolerations(t *testing.T) {
	t.Parallel()
	s := newStakes()
	s.fell("worker-1", "Unknown", 2*time.Minute, true) // 10:24:00
	s.pod("shop", "web", "worker-1")
	s.pod("shop", "web", "worker-1")
	s.pod("shop", "web", "worker-2") // on a healthy node
	quick, long := int64(130), int64(3600)
	s.pod("shop", "cart", "worker-1").Spec.Tolerations[1].TolerationSeconds = &quick
	s.pod("shop", "batch", "worker-1").Spec.Tolerations[1].TolerationSeconds = &long
	// The first that matches counts, whatever comes after it.
	first := s.pod("shop", "firstwins", "worker-1")
	first.Spec.Tolerations = append([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, first.Spec.Tolerations...)
	s.pod("shop", "forever", "worker-1").Spec.Tolerations[1].TolerationSeconds = nil
	yes := true
	daemon := s.pod("kube-system", "agent", "worker-1")
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "ds", Controller: &yes}}
	daemon.Spec.Tolerations = nil // the controller adds what it needs
	static := s.pod("kube-system", "static", "worker-1")
	static.Annotations, static.Spec.Tolerations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, nil
	gone := ago(time.Minute)
	s.pod("shop", "leaving", "worker-1").DeletionTimestamp = &gone
	s.pod("shop", "done", "worker-1").Status.Phase = corev1.PodSucceeded

	r := s.report()
	f := findings(r, report.EvictionPending)
	if len(f) != 1 {
		t.Fatalf("%d findings: %v", len(f), f)
	}
	if f[0].Node != "worker-1" || f[0].Severity != report.Critical {
		t.Errorf("%+v", f[0])
	}
	mustSay(t, string(f[0].Summary), "4 Pods of worker-1 are evicted from 10:26:10 on: shop/web 2, shop/batch 1, shop/cart 1")
	mustSay(t, toString(f[0].Evidence), "node.kubernetes.io/unreachable:NoExecute", "tolerated for 130s", "tolerated for 3600s")
	l := r.Stake(report.StakeEvictions)
	if l == nil || l.At == nil || !l.At.Equal(stakeNow.Add(10*time.Second)) || l.Brief != "evictions from 10:26:10" {
		t.Errorf("%+v", l)
	}
}

func TestEvictionsThatDoNotComeAreNotAnnounced(t *testing.T) {
	t.Parallel()
	fall := func(s *stakes, status corev1.ConditionStatus, taint bool, names ...string) {
		for _, n := range names {
			s.fell(n, status, 2*time.Minute, taint)
			s.pod("shop", "web", n)
		}
	}
	for name, c := range map[string]struct {
		change func(s *stakes)
		found  int
		want   []string
	}{
		"tainted": {func(s *stakes) { fall(s, "False", true, "worker-1") }, 1, []string{"1 Pod is evicted from 10:29:00 on, from 1 node: shop/web 1"}},
		"the taint has not come yet": {func(s *stakes) { fall(s, "False", false, "worker-1", "worker-2") }, 0,
			[]string{"2 nodes have no NoExecute taint yet", "10s apart or more", "from 10:31:00 on at the earliest"}},
		"most of a small zone is down": {func(s *stakes) { fall(s, "False", false, "worker-1", "worker-3", "worker-5") }, 0,
			[]string{"3 nodes have no NoExecute taint and get none", "at most 50 nodes"}},
		"no zone has a Ready node": {func(s *stakes) {
			for _, n := range s.Nodes {
				s.fell(n.Name, "False", 2*time.Minute, true)
			}
			s.pod("shop", "web", "worker-1")
		}, 0, []string{"no zone has a Ready node", "nothing is evicted"}},
		"one zone is down, the other is not": {func(s *stakes) {
			fall(s, "Unknown", true, "control-1", "control-3", "worker-1", "worker-3", "worker-5")
		}, 5,
			[]string{"5 Pods are evicted from 10:29:00 on, from 5 nodes"}},
		"the Pods of the node were not read": {func(s *stakes) {
			s.fell("worker-1", "False", 2*time.Minute, true)
			s.PodScope = cluster.PodScope{}
		}, 0, []string{"Pods of those nodes were not read; ordinary Pods go 300 s after the taint, from 10:29:00 on: worker-1"}},
		"some of the Pods of the node were read": {func(s *stakes) {
			fall(s, "False", true, "worker-1")
			s.PodScope = cluster.PodScope{}
		}, 1, []string{"1 Pod is evicted", "Pods of those nodes were not read"}},
		"their time is past": {func(s *stakes) {
			s.fell("worker-1", "False", 20*time.Minute, true)
			s.pod("shop", "web", "worker-1")
		}, 0, []string{"1 Pod should have been evicted from 10:11:00 on and has not been told to go"}},
		"kube-controller-manager is down": {func(s *stakes) {
			fall(s, "False", true, "worker-1")
			s.lease("kube-system", "kube-controller-manager", 15, 10*time.Minute)
		}, 1, []string{"not before kube-controller-manager is back"}},
		"the node is taken away on purpose": {func(s *stakes) {
			fall(s, "False", true, "worker-1")
			s.Nodes[3].DeletionTimestamp = &s.Nodes[3].CreationTimestamp
			s.fell("worker-2", "False", time.Minute, true)
		}, 0, []string{"no Pod waits for its eviction"}},
		"the taint does not say since when": {func(s *stakes) {
			fall(s, "False", true, "worker-1")
			for i := range s.Nodes[3].Spec.Taints {
				s.Nodes[3].Spec.Taints[i].TimeAdded = nil
			}
		}, 0, []string{"does not say since when it is there"}},
		"a large zone, most of it down": {func(s *stakes) {
			for i := range 100 {
				n := fmt.Sprintf("big-%d", i)
				s.node(n, 0)
				if i < 80 {
					s.fell(n, "False", time.Minute, false)
				}
			}
		}, 0, []string{"80 nodes have no NoExecute taint yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStakes()
			c.change(s)
			r := s.report()
			if f := findings(r, report.EvictionPending); len(f) != c.found {
				t.Errorf("%d findings: %v", len(f), f)
			}
			mustSay(t, says(r, report.StakeEvictions), c.want...)
		})
	}
}
