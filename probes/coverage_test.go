package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// covered is a cluster of four workers and one agent with a Ready Pod on each, long ago.
type covered struct {
	o  cluster.Objects
	m  cluster.Meta
	ds *appsv1.DaemonSet
}

func newCovered(selector map[string]string) *covered {
	x := &covered{ds: plainDaemonSet("agent", selector, "10m"), m: cluster.Meta{AsOf: whatIfNow, Source: cluster.Source{Type: "cluster", Version: "v1.37.2"}, PodScope: cluster.PodScope{All: true}}}
	old := metav1.NewTime(whatIfNow.Add(-500 * time.Hour))
	x.ds.CreationTimestamp, x.ds.Generation = old, 1
	x.ds.Annotations = map[string]string{cluster.TemplateGenerationOnObject: "1"}
	x.ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	x.ds.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 4, CurrentNumberScheduled: 4, NumberReady: 4, NumberAvailable: 4, UpdatedNumberScheduled: 4}
	x.o.DaemonSets = []*appsv1.DaemonSet{x.ds}
	for i := range 4 {
		n := plainNode(fmt.Sprint("w", i+1), map[string]string{"pool": "general", corev1.LabelHostname: fmt.Sprint("w", i+1)})
		n.CreationTimestamp, n.Status.Conditions[0].LastTransitionTime = old, old
		x.o.Nodes = append(x.o.Nodes, n)
		p := ownedPod("DaemonSet", "agent", fmt.Sprint("agent-", i+1), n.Name, "10m")
		p.CreationTimestamp, p.Labels = old, map[string]string{cluster.TemplateGenerationLabel: "1"}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(old.Add(time.Minute))}}}
		x.o.Pods = append(x.o.Pods, p)
	}
	return x
}

func (x *covered) dropPod(i int) { x.o.Pods = append(x.o.Pods[:i:i], x.o.Pods[i+1:]...) }

func (x *covered) taint(i int, key string, effect corev1.TaintEffect) {
	x.o.Nodes[i].Spec.Taints = append(x.o.Nodes[i].Spec.Taints, corev1.Taint{Key: key, Effect: effect})
}

func (x *covered) status(f func(*appsv1.DaemonSetStatus)) { f(&x.ds.Status) }

func (x *covered) report(t *testing.T) (*report.Report, *report.Workload) {
	t.Helper()
	r := probes.Diagnose(cluster.New(x.o, x.m), probes.Options{All: true}).Report
	w := r.Workload(report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"})
	if w == nil || w.Coverage == nil {
		t.Fatal("the report has no coverage of the DaemonSet")
	}
	return r, w
}

func severities(w *report.Workload, code report.Code) string {
	var out []string
	for _, f := range w.Findings {
		if f.Code == code {
			out = append(out, string(f.Node)+" "+string(f.Severity))
		}
	}
	return strings.Join(out, ", ")
}

func TestGapsInTheCoverageAndWhatIsNone(t *testing.T) {
	t.Parallel()
	notReady := func(x *covered) {
		x.o.Nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastTransitionTime: metav1.NewTime(whatIfNow.Add(-time.Hour))}
		x.taint(0, cluster.TaintNotReady, "NoSchedule")
		x.taint(0, cluster.TaintNotReady, "NoExecute")
		x.status(func(s *appsv1.DaemonSetStatus) {
			s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled, s.NumberMisscheduled = 3, 3, 3, 3, 3, 1
		})
	}
	three := func(s *appsv1.DaemonSetStatus) {
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled = 3, 3, 3, 3, 3
	}
	zero := func(s *appsv1.DaemonSetStatus) { *s = appsv1.DaemonSetStatus{ObservedGeneration: 1} }
	for _, tt := range []struct {
		name        string
		selector    map[string]string
		change      func(*covered)
		attribution report.Attribution
		root        report.Code
		code        report.Code
		nodes       string // of that code, with severities
	}{
		{"all well", nil, func(*covered) {}, report.Healthy, "", report.NodeNotCovered, ""},
		{"eligible and without a Pod", nil, func(x *covered) {
			x.dropPod(0)
			x.status(func(s *appsv1.DaemonSetStatus) { s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable = 3, 3, 3 })
		}, report.CoverageGap, report.NodeNotCovered, report.NodeNotCovered, "w1 warning"},
		{"the status has seen a Pod that was not read", nil, func(x *covered) { x.dropPod(0) }, report.Healthy, "", report.NodeNotCovered, ""},
		{"just joined", nil, func(x *covered) {
			x.dropPod(0)
			x.o.Nodes[0].CreationTimestamp = metav1.NewTime(whatIfNow.Add(-20 * time.Second))
			x.status(three)
		}, report.Healthy, "", report.NodeNotCovered, ""},
		{"not Ready, and out of DESIRED", nil, notReady, report.Healthy, "", report.NodeNotCovered, ""},
		{"a taint on one node like the others", nil, func(x *covered) { x.dropPod(0); x.taint(0, "maintenance", "NoSchedule"); x.status(three) },
			report.CoverageGap, report.UntoleratedTaint, report.NodeNotCovered, "w1 warning"},
		{"a taint of a kind of nodes", nil, func(x *covered) {
			x.dropPod(0)
			x.taint(0, "dedicated", "NoSchedule")
			x.o.Nodes[0].Labels["pool"] = "db"
			x.status(three)
		}, report.Healthy, "", report.NodeNotCovered, "w1 info"},
		{"a node that an autoscaler takes away", nil, func(x *covered) {
			x.taint(0, "ToBeDeletedByClusterAutoscaler", "NoSchedule")
			x.status(func(s *appsv1.DaemonSetStatus) { three(s); s.NumberMisscheduled = 1 })
		}, report.Healthy, "", report.NodeMisscheduled, "w1 info"},
		{"a taint under a Pod", nil, func(x *covered) {
			x.taint(0, "maintenance", "NoSchedule")
			x.status(func(s *appsv1.DaemonSetStatus) { three(s); s.NumberMisscheduled = 1 })
		}, report.CoverageGap, report.NodeMisscheduled, report.NodeMisscheduled, "w1 warning"},
		{"a Pod that is being removed", nil, func(x *covered) {
			x.taint(0, "maintenance", "NoExecute")
			gone := metav1.NewTime(whatIfNow.Add(10 * time.Second))
			grace := int64(30)
			x.o.Pods[0].DeletionTimestamp, x.o.Pods[0].DeletionGracePeriodSeconds = &gone, &grace
			x.status(func(s *appsv1.DaemonSetStatus) { three(s); s.NumberMisscheduled = 1 })
		}, report.Healthy, "", report.NodeMisscheduled, "w1 info"},
		{"its label is misspelled", map[string]string{"pool": "general"}, func(x *covered) {
			x.dropPod(0)
			x.o.Nodes[0].Labels["pool"] = "genreal"
			x.status(three)
		}, report.CoverageGap, report.NodeNotCovered, report.NodeNotCovered, "w1 warning"},
		{"another pool", map[string]string{"pool": "general"}, func(x *covered) {
			x.dropPod(0)
			x.o.Nodes[0].Labels["pool"] = "web"
			x.status(three)
		}, report.Healthy, "", report.NodeNotCovered, "w1 info"},
		{"nothing like it, for long", map[string]string{"nvidia.com/gpu.present": "true"}, func(x *covered) { x.o.Pods = nil; x.status(zero) },
			report.Healthy, "", report.NoEligibleNodes, " info"},
		{"nothing like it, just made", map[string]string{"edge": "true"}, func(x *covered) {
			x.o.Pods = nil
			x.ds.CreationTimestamp = metav1.NewTime(whatIfNow.Add(-10 * time.Minute))
			x.status(zero)
		}, report.CoverageGap, report.NoEligibleNodes, report.NoEligibleNodes, " warning"},
		{"a slip in the value, for long", map[string]string{"pool": "genreal"}, func(x *covered) { x.o.Pods = nil; x.status(zero) },
			report.CoverageGap, report.NoEligibleNodes, report.NoEligibleNodes, " warning"},
		{"taints keep it off all that it selects", map[string]string{"pool": "general"}, func(x *covered) {
			x.o.Pods = nil
			for i := range 4 {
				x.taint(i, "dedicated", "NoSchedule")
			}
			x.status(zero)
		}, report.CoverageGap, report.UntoleratedTaint, report.NoEligibleNodes, " warning"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newCovered(tt.selector)
			tt.change(x)
			_, w := x.report(t)
			if w.Verdict.Attribution != tt.attribution || w.Verdict.RootCause != tt.root {
				t.Errorf("verdict %s / %s (%s), want %s / %s", w.Verdict.Attribution, w.Verdict.RootCause, w.Verdict.Summary, tt.attribution, tt.root)
			}
			if got := severities(w, tt.code); got != tt.nodes {
				t.Errorf("%s of %q, want %q", tt.code, got, tt.nodes)
			}
		})
	}
}

func TestAnAffinityIsHeldAgainstTheNodeLineByLine(t *testing.T) {
	t.Parallel()
	x := newCovered(nil)
	x.ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"genral", "other"}}}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "arch", Operator: corev1.NodeSelectorOpExists}}}}}}}
	x.o.Pods = nil
	x.status(func(s *appsv1.DaemonSetStatus) { *s = appsv1.DaemonSetStatus{ObservedGeneration: 1} })
	_, w := x.report(t)
	if w.Verdict.RootCause != report.NoEligibleNodes || w.Verdict.Confidence != report.High {
		t.Errorf("root cause %s, confidence %s", w.Verdict.RootCause, w.Verdict.Confidence)
	}
	for _, want := range []string{"nodeAffinity term 1 pool In (genral, other)", "nodeAffinity term 2 arch Exists", "4 nodes have pool=general"} {
		if !strings.Contains(string(w.Verdict.Summary), want) {
			t.Errorf("%q does not say %q", w.Verdict.Summary, want)
		}
	}
}

func TestAStatusIsContradictedOnlyOnceItHasHadTheTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*covered)
		state  report.CounterState
		stale  bool
	}{
		{"agrees", func(*covered) {}, report.CounterAgrees, false},
		{"contradicts", func(x *covered) { x.ds.Status.NumberMisscheduled = 1 }, report.CounterContradicts, true},
		{"a Pod changed seconds ago", func(x *covered) {
			x.ds.Status.NumberMisscheduled = 1
			x.o.Pods[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(whatIfNow.Add(-3 * time.Second))
		}, report.CounterSettling, false},
		{"a generation is not observed", func(x *covered) { x.ds.Status.NumberMisscheduled = 1; x.ds.Generation = 2 }, report.CounterSettling, false},
		{"Pods were not read", func(x *covered) {
			x.ds.Status.NumberMisscheduled = 1
			x.m.PodScope = cluster.PodScope{Owners: map[types.UID]bool{"another": true}}
		}, report.CounterUnknown, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newCovered(nil)
			tt.change(x)
			_, w := x.report(t)
			last := w.Coverage.Counters[len(w.Coverage.Counters)-1]
			if last.Name != "MISSCHEDULED" || last.State != tt.state || (severities(w, report.MisscheduledStatusStale) != "") != tt.stale {
				t.Errorf("%s is %s, stale finding %q; want %s", last.Name, last.State, severities(w, report.MisscheduledStatusStale), tt.state)
			}
			if w.Verdict.Attribution == report.CoverageGap {
				t.Errorf("a count in status alone is no gap: %s", w.Verdict.Summary)
			}
		})
	}
}

func TestTheFourInvariants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*covered)
		want   string // coverage resources tolerance availability
	}{
		{"all hold", func(*covered) {}, "holds holds holds holds"},
		{"one node has none, and no room", func(x *covered) {
			x.dropPod(0)
			x.o.Pods = append(x.o.Pods, ownedPod("ReplicaSet", "big", "big-1", "w1", "1"))
		}, "does not hold does not hold holds holds"},
		{"two Pods on one node", func(x *covered) {
			p := x.o.Pods[0].DeepCopy()
			p.Name, p.UID = "agent-more", "agent-more"
			x.o.Pods = append(x.o.Pods, p)
		}, "does not hold holds holds holds"},
		{"an old and a new Pod while a surge is at work", func(x *covered) {
			one, zero := intstr.FromInt32(1), intstr.FromInt32(0)
			x.ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &one, MaxUnavailable: &zero}}
			p := x.o.Pods[0].DeepCopy()
			p.Name, p.UID = "agent-old", "agent-old"
			p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "old"}
			x.o.Pods = append(x.o.Pods, p)
		}, "holds holds holds holds"},
		{"no node is eligible, by a slip", func(x *covered) {
			x.ds.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostnam": "w1"}
			x.o.Pods = nil
		}, "does not hold unknown holds unknown"},
		{"one is not available", func(x *covered) { x.o.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse }, "holds holds holds does not hold"},
		{"a node needs it and it does not come back", func(x *covered) { x.ds.Spec.Template.Spec.PriorityClassName = "system-node-critical" }, "holds holds does not hold holds"},
		{"its Pods were not read", func(x *covered) {
			x.m.PodScope = cluster.PodScope{Owners: map[types.UID]bool{"another": true}}
			x.ds.Status.NumberReady, x.ds.Status.NumberAvailable, x.ds.Status.NumberUnavailable = 3, 3, 1
		}, "unknown unknown holds unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newCovered(nil)
			tt.change(x)
			_, w := x.report(t)
			var got []string
			for _, i := range w.Coverage.Invariants {
				got = append(got, string(i.Holds))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s, want %s: %+v", s, tt.want, w.Coverage.Invariants)
			}
		})
	}
}

func TestTheStepOfCoverageNamesNodeAndReason(t *testing.T) {
	t.Parallel()
	x := newCovered(nil)
	x.dropPod(0)
	x.taint(0, "maintenance", "NoSchedule")
	x.o.Nodes[0].Spec.Unschedulable = true
	x.taint(0, corev1.TaintNodeUnschedulable, "NoSchedule")
	x.ds.Status.DesiredNumberScheduled, x.ds.Status.CurrentNumberScheduled = 3, 3
	c := probes.Diagnose(cluster.New(x.o, x.m), probes.Options{})
	got := probes.Probes["coverage"](c, report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "agent"})
	var all []string
	for _, l := range got.Lines {
		all = append(all, string(l.Text))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"3 of 4 nodes eligible", "w1 has no Pod", "taint maintenance:NoSchedule: not tolerated", "a cordon: every daemon Pod tolerates it"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q:\n%s", want, text)
		}
	}
	if got.State != report.StepAnomaly {
		t.Errorf("state %s, want an anomaly", got.State)
	}
}

func TestAStartUpTaintIsItsAgentsToRemove(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key, agent string
		readyFor         time.Duration
		root             report.Code
	}{
		{"named after the agent", "node.cilium.io/agent-not-ready", "cilium", time.Hour, report.UntoleratedTaint},
		{"of a storage driver", "ebs.csi.aws.com/agent-not-ready", "ebs-csi-node", time.Hour, report.UntoleratedTaint},
		{"Ready for seconds", "node.cilium.io/agent-not-ready", "cilium", 10 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newCovered(nil)
			x.dropPod(0)
			x.taint(0, tt.key, "NoSchedule")
			x.ds.Status.DesiredNumberScheduled, x.ds.Status.CurrentNumberScheduled = 3, 3
			agent := plainDaemonSet(tt.agent, nil, "10m", corev1.Toleration{Operator: corev1.TolerationOpExists})
			agent.CreationTimestamp = metav1.NewTime(whatIfNow.Add(-400 * time.Hour))
			x.o.DaemonSets = append(x.o.DaemonSets, agent)
			for _, n := range x.o.Nodes {
				p := ownedPod("DaemonSet", tt.agent, tt.agent+"-"+n.Name, n.Name, "10m")
				p.CreationTimestamp = metav1.NewTime(whatIfNow.Add(-tt.readyFor))
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(whatIfNow.Add(-tt.readyFor))}}}
				x.o.Pods = append(x.o.Pods, p)
			}
			_, w := x.report(t)
			if w.Verdict.RootCause != tt.root || tt.root != "" && !strings.Contains(string(w.Verdict.Summary), tt.agent+" should have removed it") {
				t.Errorf("%s / %s: %s", w.Verdict.Attribution, w.Verdict.RootCause, w.Verdict.Summary)
			}
		})
	}
}
