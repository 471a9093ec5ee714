package files

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// RevisionSpec is one revision of a generated workload's template.
type RevisionSpec struct {
	Number int64           `json:"number"` // default one more than the one before
	At     string          `json:"at"`
	By     string          `json:"by"`     // field manager
	Change json.RawMessage `json:"change"` // strategic merge on the template before it
}

// PodRule says how some Pods of a generated workload differ from healthy ones of
// its newest revision. Of several rules that mean a Pod, each sets what it names.
type PodRule struct {
	On       []string `json:"nodes"`    // nodes, with * and ?; of a Daemon; default all
	Count    int      `json:"count"`    // replicas, of an App: those that no earlier rule took; default all
	Revision int64    `json:"revision"` // default the newest
	Deleted  string   `json:"deleted"`  // when the Pod before it was told to go: events, where not expired
	Created  string   `json:"created"`  // default 30 s after its revision, Pod by Pod
	Each     string   `json:"each"`     // how much later than its neighbour
	Ready    string   `json:"ready"`    // when it turned Ready; default 12 s after created
	// Fail is what keeps the Pod from being Ready.
	Fail *Failure `json:"fail"`
	// Unready says since when its readiness probe fails; the container runs.
	Unready string `json:"unready"`
	// Pending is the scheduler's message: the Pod is not bound to its node.
	Pending     string          `json:"pending"`
	Terminating string          `json:"terminating"` // when its deletion was asked for
	Gone        bool            `json:"gone"`        // there is no Pod
	Node        string          `json:"node"`        // of an App's Pods
	Patch       json.RawMessage `json:"patch"`       // strategic merge on each Pod
}

// Failure is a container that does not run.
type Failure struct {
	Container string `json:"container"` // default the first; an init container's name holds the Pod in Init
	Reason    string `json:"reason"`    // of the waiting state: CrashLoopBackOff, ImagePullBackOff, CreateContainerConfigError
	Message   string `json:"message"`
	Exit      int32  `json:"exit"` // of the last run; 0 for none
	ExitAs    string `json:"exitAs"`
	ExitSays  string `json:"exitSays"` // its termination message
	Restarts  int32  `json:"restarts"`
	At        string `json:"at"` // when it last ended; default 5 s after created, restarts later
}

// revision is a RevisionSpec worked out.
type revision struct {
	number   int64
	at       time.Time
	by       string
	template corev1.PodTemplateSpec
	hash     string
}

// revisions works the templates out, each from the one before.
func (w *world) revisions(template corev1.PodTemplateSpec, specs []RevisionSpec, name string) ([]revision, error) {
	if len(specs) == 0 {
		specs = []RevisionSpec{{At: "-720h", By: "kubectl-client-side-apply"}}
	}
	var out []revision
	for i, s := range specs {
		at, err := w.c.when(s.At)
		if err != nil {
			return nil, fmt.Errorf("revision %d: at: %w", i+1, err)
		}
		if len(s.Change) > 0 {
			changed, err := merged(&template, s.Change)
			if err != nil {
				return nil, fmt.Errorf("revision %d: change: %w", i+1, err)
			}
			template = *changed
		}
		n := s.Number
		if n == 0 {
			n = 1
			if i > 0 {
				n = out[i-1].number + 1
			}
		}
		out = append(out, revision{number: n, at: at, by: or(s.By, "kubectl-client-side-apply"), template: *template.DeepCopy(), hash: suffix(10, name, fmt.Sprint(n))})
	}
	return out, nil
}

func find(revs []revision, n int64) (int, error) {
	if n == 0 {
		return len(revs) - 1, nil
	}
	for i := range revs {
		if revs[i].number == n {
			return i, nil
		}
	}
	return 0, fmt.Errorf("pods: there is no revision %d", n)
}

// overlay sets in r what o names.
func (r *PodRule) overlay(o PodRule) {
	set := func(into *string, v string) { *into = or(v, *into) }
	if o.Revision != 0 {
		r.Revision = o.Revision
	}
	set(&r.Deleted, o.Deleted)
	set(&r.Created, o.Created)
	set(&r.Each, o.Each)
	set(&r.Ready, o.Ready)
	set(&r.Unready, o.Unready)
	set(&r.Pending, o.Pending)
	set(&r.Terminating, o.Terminating)
	set(&r.Node, o.Node)
	if o.Fail != nil {
		r.Fail = o.Fail
	}
	r.Gone = r.Gone || o.Gone
	if len(o.Patch) > 0 {
		r.Patch = o.Patch
	}
}

// means tells whether the rule is about the node, and as which of the nodes it names.
func (r *PodRule) means(w *world, node string) (int, bool) {
	if len(r.On) == 0 {
		for i, n := range w.nodes {
			if n.Name == node {
				return i, true
			}
		}
		return 0, false
	}
	place := 0
	for _, p := range r.On {
		for _, n := range w.nodes {
			if ok, _ := path.Match(p, n.Name); ok {
				if n.Name == node {
					return place, true
				}
				place++
			}
		}
	}
	return 0, false
}

// times are the moments of one Pod.
type podTimes struct{ deleted, created, ready time.Time }

// timesOf reads a rule's times; place is how many neighbours come before this Pod.
func (w *world) timesOf(r *PodRule, rev revision, place int) (t podTimes, err error) {
	each := 30 * time.Second
	if r.Each != "" {
		if each, err = span(r.Each); err != nil {
			return t, err
		}
	} else if r.Created != "" {
		each = 0
	}
	shift := time.Duration(place) * each
	t.created = rev.at.Add(30*time.Second + shift)
	if r.Created != "" {
		if t.created, err = w.c.when(r.Created); err != nil {
			return t, err
		}
		t.created = t.created.Add(shift)
	}
	if r.Deleted != "" {
		if t.deleted, err = w.c.when(r.Deleted); err != nil {
			return t, err
		}
		t.deleted = t.deleted.Add(shift)
	}
	t.ready = t.created.Add(12 * time.Second)
	if r.Ready != "" {
		if t.ready, err = w.c.when(r.Ready); err != nil {
			return t, err
		}
		t.ready = t.ready.Add(shift)
	}
	return t, nil
}

// run gives a Pod the status that a kubelet would have reported under the rule.
func (w *world) run(p *corev1.Pod, r *PodRule, t podTimes) error {
	at := metav1.NewTime(t.created)
	p.CreationTimestamp = at
	node := w.byKey[identity{string(cluster.Nodes), "", p.Spec.NodeName}]
	if r.Pending != "" {
		p.Spec.NodeName = ""
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: r.Pending, LastTransitionTime: at,
		}}}
		return nil
	}
	started := metav1.NewTime(t.created.Add(time.Second))
	p.Status.Phase, p.Status.StartTime, p.Status.QOSClass = corev1.PodRunning, &started, corev1.PodQOSBurstable
	if node != nil && node.object != nil {
		p.Status.HostIP = node.object.(*corev1.Node).Status.Addresses[0].Address
		p.Status.PodIP = p.Status.HostIP
		if !p.Spec.HostNetwork {
			p.Status.PodIP = "10.244.1." + fmt.Sprint(2+len(w.order)%250)
		}
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
	containers := corev1.ConditionTrue
	for _, c := range p.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: started, FinishedAt: metav1.NewTime(t.created.Add(3 * time.Second))}},
		})
	}
	yes := true
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: &yes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(t.created.Add(4 * time.Second))}},
		})
	}
	since := metav1.NewTime(t.ready)
	if boot, ok := w.boots[p.Spec.NodeName]; ok && boot.After(t.created) {
		since = metav1.NewTime(boot.Add(14 * time.Second))
		for i := range p.Status.ContainerStatuses {
			c := &p.Status.ContainerStatuses[i]
			c.RestartCount++
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 255, Reason: "Unknown", StartedAt: c.State.Running.StartedAt, FinishedAt: metav1.NewTime(boot),
			}
			c.State.Running.StartedAt = metav1.NewTime(boot.Add(4 * time.Second))
		}
	}
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t.created.Add(3 * time.Second))}
	reason, message := "", ""
	if r.Fail != nil {
		if err := w.fail(p, r.Fail, t, &initialized); err != nil {
			return err
		}
		containers, since = corev1.ConditionFalse, started
	}
	if r.Unready != "" {
		u, err := w.c.when(r.Unready)
		if err != nil {
			return err
		}
		containers, since = corev1.ConditionFalse, metav1.NewTime(u)
		p.Status.ContainerStatuses[0].Ready = false
		e := w.event(podReference(p, p.Spec.Containers[0].Name), corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet", p.Spec.NodeName, u)
		e.LastTimestamp, e.Count = metav1.NewTime(u.Add(w.c.now.Sub(u)*9/10).Truncate(time.Second)), 1+int32(w.c.now.Sub(u)/(10*time.Second))
	}
	if containers == corev1.ConditionFalse {
		var names []string
		for _, s := range p.Status.ContainerStatuses {
			if !s.Ready {
				names = append(names, s.Name)
			}
		}
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", names)
	}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t.created.Add(2 * time.Second))},
		initialized,
		{Type: corev1.PodReady, Status: containers, Reason: reason, Message: message, LastTransitionTime: since},
		{Type: corev1.ContainersReady, Status: containers, Reason: reason, Message: message, LastTransitionTime: since},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at},
	}
	if r.Terminating != "" {
		asked, err := w.c.when(r.Terminating)
		if err != nil {
			return err
		}
		grace := int64(30)
		if p.Spec.TerminationGracePeriodSeconds != nil {
			grace = *p.Spec.TerminationGracePeriodSeconds
		}
		gone := metav1.NewTime(asked.Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &gone, &grace
	}
	w.loseNode(p)
	return nil
}

// loseNode turns the Pod Ready=False as the node controller does where the node's
// Ready is Unknown; the containers' own condition stays.
// Source: pkg/controller/util/node/controller_utils.go, MarkPodsNotReady.
func (w *world) loseNode(p *corev1.Pod) {
	e := w.byKey[identity{string(cluster.Nodes), "", p.Spec.NodeName}]
	if e == nil || e.object == nil {
		return
	}
	c := cluster.NodeCondition(e.object.(*corev1.Node), corev1.NodeReady)
	ready := cluster.PodCondition(p, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionUnknown || ready == nil || ready.Status != corev1.ConditionTrue {
		return
	}
	if c.LastTransitionTime.Time.After(p.CreationTimestamp.Time) {
		ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, c.LastTransitionTime
		if w.c.now.Sub(c.LastTransitionTime.Time) < eventTTL {
			w.event(podReference(p, ""), corev1.EventTypeWarning, "NodeNotReady", "Node is not ready", "node-controller", "", c.LastTransitionTime.Time)
		}
	}
}

// fail makes one container wait.
func (w *world) fail(p *corev1.Pod, f *Failure, t podTimes, initialized *corev1.PodCondition) error {
	last := t.created.Add(time.Duration(f.Restarts+1) * 5 * time.Second)
	if f.At != "" {
		var err error
		if last, err = w.c.when(f.At); err != nil {
			return err
		}
	}
	if last.After(w.c.now) {
		last = w.c.now
	}
	var s *corev1.ContainerStatus
	init := false
	for i := range p.Status.InitContainerStatuses {
		if p.Status.InitContainerStatuses[i].Name == f.Container {
			s, init = &p.Status.InitContainerStatuses[i], true
			// Those after it have not begun.
			for j := i + 1; j < len(p.Status.InitContainerStatuses); j++ {
				p.Status.InitContainerStatuses[j].Ready = false
				p.Status.InitContainerStatuses[j].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
			}
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		if init {
			no := false
			c.Ready, c.Started, c.ImageID = false, &no, ""
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		} else if s == nil && (f.Container == "" || c.Name == f.Container) {
			s = c
		}
	}
	if s == nil {
		return fmt.Errorf("fail: there is no container %s", f.Container)
	}
	no := false
	s.Ready, s.Started, s.RestartCount = false, &no, f.Restarts
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}}
	if f.Exit != 0 {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: f.Exit, Reason: or(f.ExitAs, "Error"), Message: f.ExitSays,
			StartedAt: metav1.NewTime(last.Add(-2 * time.Second)), FinishedAt: metav1.NewTime(last),
		}
	}
	w.failEvents(p, s, init, f, t)
	if init {
		p.Status.Phase = corev1.PodPending
		initialized.Status, initialized.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		initialized.Message = fmt.Sprintf("containers with incomplete status: [%s]", f.Container)
		initialized.LastTransitionTime = metav1.NewTime(t.created.Add(time.Second))
	} else if f.Exit == 0 && len(p.Status.ContainerStatuses) == 1 {
		p.Status.Phase = corev1.PodPending // it never ran
	}
	return nil
}

// manages is the entry of whoever wrote the template last.
func manages(manager, apiVersion string, at time.Time) metav1.ManagedFieldsEntry {
	t := metav1.NewTime(at)
	op := metav1.ManagedFieldsOperationUpdate
	if manager == "argocd-controller" || manager == "kustomize-controller" {
		op = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: op, APIVersion: apiVersion, Time: &t, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{}}}}`),
	}
}
