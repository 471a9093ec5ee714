package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/rollcall-k8s/rollcall/probes"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// answer is what `kubectl rollout status` comes to.
type answer string

const (
	done        answer = "done"         // it prints a success and exits 0
	waits       answer = "waits"        // it goes on watching
	notObserved answer = "not observed" // it goes on watching, for the controller
	refuses     answer = "refuses"      // an error: it cannot tell with this strategy
	timedOut    answer = "timed out"    // an error: the progress deadline is exceeded
)

// kubectlSays asks kubectl's own code about the object.
func kubectlSays(kind string, object any) (answer, string, error) {
	viewer, err := polymorphichelpers.StatusViewerFor(schema.GroupKind{Group: appsv1.GroupName, Kind: kind})
	if err != nil {
		return "", "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", "", err
	}
	text, ok, err := viewer.Status(&unstructured.Unstructured{Object: content}, 0)
	switch {
	case err != nil && strings.Contains(err.Error(), "only available for"):
		return refuses, err.Error(), nil
	case err != nil && strings.Contains(err.Error(), "progress deadline"):
		return timedOut, err.Error(), nil
	case err != nil:
		return "", "", err
	case ok:
		return done, text, nil
	case strings.Contains(text, "to be observed"):
		return notObserved, text, nil
	}
	return waits, text, nil
}

// agrees are the states that mean what kubectl answers.
var agrees = map[answer][]report.RolloutState{
	done:        {report.Complete},
	waits:       {report.Progressing, report.Slow, report.Stuck},
	notObserved: {report.NotObserved},
	timedOut:    {report.Stuck},
}

// view is one object as both look at it.
type view struct {
	snapshot *facts.Snapshot
	state    report.RolloutState
	kubectl  answer
	ds       *appsv1.DaemonSet
	deploy   *appsv1.Deployment
	sts      *appsv1.StatefulSet
}

// difference is a case in which the state is on purpose another than kubectl's
// answer: what kubectl does not see there, and how to know such a case.
type difference struct {
	why     string
	kubectl answer
	state   report.RolloutState
	holds   func(view) bool
}

var differences = []difference{
	{
		why:     "kubectl cannot tell with OnDelete; there are Pods of other revisions that nobody has deleted yet",
		kubectl: refuses, state: report.OnDelete,
		holds: func(v view) bool {
			return v.ds != nil && v.any(facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth)
		},
	},
	{
		why:     "kubectl cannot tell with OnDelete; no Pod of another revision is left, and a node in reach still waits for its own",
		kubectl: refuses, state: report.Progressing,
		holds: func(v view) bool {
			return v.ds != nil && !v.any(facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth) && v.any(facts.SlotNewUnavailable, facts.SlotEmpty, facts.SlotTerminating)
		},
	},
	{
		why:     "kubectl cannot tell with OnDelete; no Pod of another revision is left",
		kubectl: refuses, state: report.Complete,
		holds: func(v view) bool {
			return v.ds != nil && !v.any(facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth)
		},
	},
	{
		why:     "kubectl cannot tell with OnDelete; the controller has not seen the change",
		kubectl: refuses, state: report.NotObserved,
		holds: func(v view) bool { return v.ds != nil && v.ds.Generation > v.ds.Status.ObservedGeneration },
	},
	{
		why:     "the counters take the oldest Pod of a node, also one that ends: one to be replaced, or not available yet, stands behind it",
		kubectl: done, state: report.Progressing,
		holds: func(v view) bool {
			return v.ds != nil && v.wanted(v.behind, facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth, facts.SlotNewUnavailable)
		},
	},
	{
		why:     "the counters take the oldest Pod of a node, also one that ends: the new one behind it is available",
		kubectl: waits, state: report.Complete,
		holds: func(v view) bool {
			return v.ds != nil && v.wanted(v.behind, facts.SlotNewAvailable) && !v.wanted(nil, facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth, facts.SlotEmpty, facts.SlotNewUnavailable, facts.SlotTerminating)
		},
	},
	{
		why:     "a Pod of the current revision that is lost later, with its node or without it, does not reopen a rollout that had reached it",
		kubectl: waits, state: report.Complete,
		holds: func(v view) bool {
			return v.ds != nil && !v.wanted(nil, facts.SlotOldAvailable, facts.SlotOldUnavailable, facts.SlotBoth, facts.SlotEmpty) && v.wanted(v.onlyUpdated, facts.SlotTerminating, facts.SlotNewUnavailable)
		},
	},
	{
		why:     "it is paused: it goes on when it is resumed, not when one waits",
		kubectl: waits, state: report.Paused,
		holds: func(v view) bool { return v.deploy != nil && v.deploy.Spec.Paused },
	},
	{
		why:     "the controller has seen this revision complete: replicas that are added or lost later do not reopen a rollout",
		kubectl: waits, state: report.Complete,
		holds: func(v view) bool {
			return v.deploy != nil && v.deploy.Status.UpdatedReplicas == *v.deploy.Spec.Replicas && slices.ContainsFunc(v.deploy.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
				return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
			})
		},
	},
	{
		why:     "every replica of a StatefulSet that is not Ready was there before, or was added later: neither reopens a rollout",
		kubectl: waits, state: report.Complete,
		holds: func(v view) bool { return v.sts != nil && v.settled() },
	},
	{
		why:     "kubectl cannot tell with OnDelete; there are Pods of another revision that nobody has deleted yet",
		kubectl: refuses, state: report.OnDelete,
		holds: func(v view) bool { return v.sts != nil && v.sts.Status.UpdatedReplicas < *v.sts.Spec.Replicas },
	},
	{
		why:     "kubectl cannot tell with OnDelete; no Pod of another revision is left",
		kubectl: refuses, state: report.Complete,
		holds: func(v view) bool { return v.sts != nil && v.sts.Status.UpdatedReplicas == *v.sts.Spec.Replicas },
	},
}

// loop is the update loop of the DaemonSet's present revision.
func (v view) loop() facts.UpdateLoop {
	return v.snapshot.UpdateLoop(v.ds, &v.ds.Spec.Template, v.updated)
}

func (v view) updated(p *corev1.Pod) bool {
	current := v.snapshot.CurrentRevision(v.ds)
	return current != nil && p.Labels[facts.RevisionHash] == current.Labels[facts.RevisionHash]
}

// settled tells whether a StatefulSet has one revision in force and no Pod of
// another, and no Pod that still comes up was made by the revision's first rollout:
// within two minutes after the revision itself, or in order after another one.
func (v view) settled() bool {
	st := v.sts.Status
	if st.UpdateRevision != st.CurrentRevision && (v.sts.Spec.UpdateStrategy.RollingUpdate == nil || *v.sts.Spec.UpdateStrategy.RollingUpdate.Partition == 0) {
		return false
	}
	return !slices.ContainsFunc(v.snapshot.PodsOf(v.sts.UID), func(p *corev1.Pod) bool {
		cond := facts.PodCondition(p, corev1.PodReady)
		if cond == nil || cond.Status == corev1.ConditionTrue || cond.LastTransitionTime.Sub(p.CreationTimestamp.Time) > 10*time.Second {
			return false // it is Ready, or was
		}
		last := time.Time{}
		for _, rev := range v.snapshot.RevisionsOf(v.sts.UID) {
			if rev.Name == st.UpdateRevision {
				last = rev.CreationTimestamp.Time
			}
		}
		for _, other := range v.snapshot.PodsOf(v.sts.UID) {
			if r := facts.PodCondition(other, corev1.PodReady); r != nil && r.Status == corev1.ConditionTrue && r.LastTransitionTime.Time.Before(p.CreationTimestamp.Time) && r.LastTransitionTime.After(last) {
				last = r.LastTransitionTime.Time
			}
		}
		return p.CreationTimestamp.Sub(last) <= 2*time.Minute && len(v.snapshot.RevisionsOf(v.sts.UID)) < 2
	})
}

// any tells whether a node is in one of the states.
func (v view) any(states ...facts.SlotState) bool {
	return slices.ContainsFunc(v.loop().Slots, func(s facts.Slot) bool { return slices.Contains(states, s.State) })
}

// wanted tells the same of the nodes that DESIRED counts, where the condition holds
// as well; nil is no condition.
func (v view) wanted(also func(facts.Slot) bool, states ...facts.SlotState) bool {
	return slices.ContainsFunc(v.loop().Slots, func(s facts.Slot) bool {
		return s.ShouldRun && slices.Contains(states, s.State) && (also == nil || also(s))
	})
}

// behind tells whether a Pod that ends is older than the live one of the node.
func (v view) behind(s facts.Slot) bool {
	return slices.ContainsFunc(s.Terminating, func(p *corev1.Pod) bool { return byAge(p, s.Pod()) < 0 })
}

func (v view) onlyUpdated(s facts.Slot) bool {
	return !slices.ContainsFunc(s.Terminating, func(p *corev1.Pod) bool { return !v.updated(p) })
}

// statuses compares what is said of every workload of a snapshot.
type statuses struct {
	mu       sync.Mutex
	compared map[string]int // "kubectl's answer / our state", and the differences by their reason
}

func (c *statuses) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compared == nil {
		c.compared = map[string]int{}
	}
	c.compared[what]++
}

// compare lists the workloads of which kubectl and the report say different things
// for no reason that is known.
func (c *statuses) compare(s *facts.Snapshot) (wrong []string) {
	r := probes.Diagnose(s, probes.Options{All: true}).Report
	look := func(kind, namespace, name string, object any, v view) {
		w := r.Workload(report.WorkloadKey{Kind: report.Clean(kind), Namespace: report.Clean(namespace), Name: report.Clean(name)})
		if w == nil {
			wrong = append(wrong, fmt.Sprintf("the report has no %s %s/%s", kind, namespace, name))
			return
		}
		said, text, err := kubectlSays(kind, object)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("kubectl on %s %s/%s: %v", kind, namespace, name, err))
			return
		}
		v.snapshot, v.state, v.kubectl = s, w.Rollout.State, said
		for _, ok := range agrees[said] {
			if ok == v.state {
				c.count(fmt.Sprintf("%s: kubectl %s, %s", kind, said, v.state))
				return
			}
		}
		for _, d := range differences {
			if d.kubectl == said && d.state == v.state && d.holds(v) {
				c.count(fmt.Sprintf("%s: kubectl %s, %s: %s", kind, said, v.state, d.why))
				return
			}
		}
		wrong = append(wrong, fmt.Sprintf("%s %s/%s is %s, and kubectl %s: %s", kind, namespace, name, v.state, said, strings.TrimSpace(text)))
	}
	for _, o := range s.DaemonSets {
		look("DaemonSet", o.Namespace, o.Name, o, view{ds: o})
	}
	for _, o := range s.Deployments {
		look("Deployment", o.Namespace, o.Name, o, view{deploy: o})
	}
	for _, o := range s.StatefulSets {
		look("StatefulSet", o.Namespace, o.Name, o, view{sts: o})
	}
	return wrong
}
