package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// podTrouble is what is wrong with one Pod: one code, the most specific.
type podTrouble struct {
	code     report.Code
	since    time.Time
	summary  report.Text
	evidence []report.Evidence
	// ofNode tells that the node's own state is the reason (its network is not
	// ready, its kubelet is silent), so that the Pod is not to blame.
	ofNode bool
	// nodes are those to blame where the Pod itself is on none.
	nodes []*nodeState
	// parts is the scheduler's sentence taken apart, one reason a line.
	parts []report.Text
	fix   fix
}

// fix is what to do about a trouble, where its code alone does not say.
type fix struct {
	action report.RecommendedAction
	why    report.Text
}

// podTroubleOf says what is wrong with a Pod that is not Ready; nil for a healthy
// one and for one that has simply not had the time. Statuses come before events:
// they do not expire.
func (c *Diagnosis) podTroubleOf(p *corev1.Pod) *podTrouble {
	if t := c.terminating(p); t != nil {
		return t
	}
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	if t := c.failedPod(p); t != nil {
		return t
	}
	if p.Spec.NodeName == "" {
		return c.unscheduled(p)
	}
	if c.s.Node(p.Spec.NodeName) == nil && c.s.Read(cluster.Nodes) {
		return &podTrouble{code: report.PodOnMissingNode, since: p.CreationTimestamp.Time,
			summary:  report.Textf("is bound to node %s, which does not exist", p.Spec.NodeName),
			evidence: []report.Evidence{{Source: "Pod.spec.nodeName", Value: report.Clean(p.Spec.NodeName)}}, ofNode: true}
	}
	if cluster.PodReady(p) {
		if !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount >= fewRestarts }) {
			return nil
		}
		return c.containerTrouble(p)
	}
	for _, f := range []func(*corev1.Pod) *podTrouble{c.initTrouble, c.containerTrouble, c.sandboxOrVolume, c.probeTrouble} {
		if t := f(p); t != nil {
			return t
		}
	}
	return c.notReadyYet(p)
}

// terminating finds a Pod that is long past its grace period.
func (c *Diagnosis) terminating(p *corev1.Pod) *podTrouble {
	if p.DeletionTimestamp == nil || c.s.AsOf.Sub(p.DeletionTimestamp.Time) < 30*time.Second {
		return nil
	}
	requested := cluster.DeleteRequested(p)
	t := &podTrouble{code: report.StuckTerminating, since: requested,
		summary: report.Textf("Terminating since %s, %s past its grace period", stamp(requested), short(c.s.AsOf.Sub(p.DeletionTimestamp.Time))),
		evidence: []report.Evidence{{Source: "Pod.metadata.deletionTimestamp", Value: report.Textf("%s, grace period %s", p.DeletionTimestamp.UTC().Format(time.RFC3339),
			short(p.DeletionTimestamp.Sub(requested))), At: report.At(requested)}}}
	switch n := c.nodes[p.Spec.NodeName]; {
	case n == nil || !n.failing():
	case n.reachable():
		t.ofNode = true
		t.summary += report.Textf("; node %s is %s", n.name, readiness(n))
		if n.code == report.NodeNetworkNotReady && !p.Spec.HostNetwork {
			t.summary += ": a sandbox cannot be torn down while no network configuration is loaded"
		}
	default:
		t.ofNode = true
		t.summary += report.Textf("; node %s cannot be reached, so it will not end", n.name)
	}
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if (e.Reason == "FailedKillPod" || e.Reason == "ExceededGracePeriod") && (e.InvolvedObject.UID == "" || e.InvolvedObject.UID == p.UID) {
			t.evidence = append(t.evidence, eventEvidence(e))
		}
	}
	if _, ev := disruption(p); ev != nil {
		t.evidence = append(t.evidence, *ev) // who asked for its end
	}
	return t
}

// initTrouble looks at init containers, sidecars excepted once they run.
func (c *Diagnosis) initTrouble(p *corev1.Pod) *podTrouble {
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 || s.State.Running != nil && s.RestartCount == 0 {
			continue
		}
		source := fmt.Sprintf("Pod.status.initContainerStatuses[%s]", s.Name)
		if t := waitingTrouble(c, p, s, source); t != nil && t.code != report.CrashLoop {
			return t
		}
		term := s.State.Terminated
		if term == nil {
			term = s.LastTerminationState.Terminated
		}
		if term == nil || term.ExitCode == 0 {
			continue
		}
		t := &podTrouble{code: report.InitContainerFailed, since: term.FinishedAt.Time,
			summary:  report.Textf("init container %s exits %d%s", s.Name, term.ExitCode, restarts(s)),
			evidence: []report.Evidence{terminated(report.Clean(source), term)}}
		if term.Reason == "OOMKilled" {
			t.code = report.OutOfMemory
			t.summary = report.Textf("init container %s was killed for exceeding its memory limit", s.Name)
		}
		return t
	}
	return nil
}

func (c *Diagnosis) containerTrouble(p *corev1.Pod) *podTrouble {
	var best *podTrouble
	for _, s := range p.Status.ContainerStatuses {
		if t := waitingTrouble(c, p, s, fmt.Sprintf("Pod.status.containerStatuses[%s]", s.Name)); t != nil {
			if best == nil || best.code == report.CrashLoop {
				best = t
			}
		}
	}
	return best
}

// fewRestarts is how many restarts of a container that is Ready ask for a second look.
const fewRestarts = 3

// loops tells whether a container that is Ready now has merely been started again: it has
// ended with an error time after time, and does not yet run for longer than it did before.
// Without a readiness probe each start of a crash loop counts as Ready.
// Source: pkg/kubelet/prober/prober_manager.go, UpdatePodStatus.
func loops(s corev1.ContainerStatus, last *corev1.ContainerStateTerminated, now time.Time) bool {
	ran := last.FinishedAt.Sub(last.StartedAt.Time)
	began := s.State.Running.StartedAt.Time
	return s.RestartCount >= fewRestarts && last.ExitCode != 0 && ran < 5*time.Minute && now.Sub(began) <= ran && began.Sub(last.FinishedAt.Time) < 6*time.Minute
}

// waitingTrouble reads one container's state: why it waits, and how it ended last.
func waitingTrouble(c *Diagnosis, p *corev1.Pod, s corev1.ContainerStatus, source string) *podTrouble {
	last := s.LastTerminationState.Terminated
	if s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
		last = s.State.Terminated
	}
	if w := s.State.Waiting; w != nil {
		ev := []report.Evidence{{Source: report.Clean(source), Value: report.Textf("waiting %s: %s", w.Reason, redact.Text(w.Message))}}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return c.imageTrouble(p, s, w, ev)
		case "CreateContainerConfigError":
			return &podTrouble{code: report.ContainerConfigMissing, since: p.CreationTimestamp.Time,
				summary: report.Textf("container %s cannot be configured: %s", s.Name, firstWords(w.Message, 160)), evidence: ev}
		case "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError":
			return &podTrouble{code: report.CrashLoop, since: p.CreationTimestamp.Time,
				summary: report.Textf("container %s cannot be started: %s", s.Name, firstWords(w.Message, 160)), evidence: ev}
		}
	}
	if last == nil {
		return nil
	}
	if s.State.Running != nil && s.Ready && !loops(s, last, c.s.AsOf) {
		return nil // it runs and does its work again
	}
	ev := []report.Evidence{terminated(report.Clean(source), last)}
	if n := c.nodes[p.Spec.NodeName]; n != nil && last.ExitCode == 255 && !n.rebootedAt.IsZero() && last.FinishedAt.Sub(n.rebootedAt).Abs() < 10*time.Minute {
		return &podTrouble{code: report.NodeRebooted, since: n.rebootedAt, ofNode: true, evidence: ev,
			summary: report.Textf("container %s ended when node %s was rebooted", s.Name, n.name)}
	}
	switch {
	case last.Reason == "OOMKilled":
		return &podTrouble{code: report.OutOfMemory, since: last.FinishedAt.Time,
			summary: report.Textf("container %s was killed for exceeding its memory limit%s%s", s.Name, memoryLimit(p, s.Name), restarts(s)), evidence: ev}
	case c.killedBy(p, s.Name, "Liveness") != nil:
		return c.killedBy(p, s.Name, "Liveness")
	case c.killedBy(p, s.Name, "Startup") != nil:
		return c.killedBy(p, s.Name, "Startup")
	case s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" || s.State.Terminated != nil || s.RestartCount > 1:
		msg := ""
		if m := firstWords(last.Message, 120); m != "" {
			msg = ": " + m
		}
		return &podTrouble{code: report.CrashLoop, since: last.FinishedAt.Time,
			summary: report.Textf("container %s exits %d%s%s", s.Name, last.ExitCode, restarts(s), msg), evidence: ev}
	}
	return nil
}

func terminated(source report.Text, t *corev1.ContainerStateTerminated) report.Evidence {
	return report.Evidence{Source: source, Value: report.Textf("terminated exitCode=%d reason=%s %s", t.ExitCode, t.Reason, firstWords(t.Message, 200)), At: report.At(t.FinishedAt.Time)}
}

func restarts(s corev1.ContainerStatus) string {
	if s.RestartCount == 0 {
		return ""
	}
	return ", restarted " + times(int(s.RestartCount))
}

func memoryLimit(p *corev1.Pod, name string) string {
	for _, ct := range append(append([]corev1.Container{}, p.Spec.InitContainers...), p.Spec.Containers...) {
		if l, ok := ct.Resources.Limits[corev1.ResourceMemory]; ok && ct.Name == name {
			return " of " + l.String()
		}
	}
	return ""
}

// killedBy finds the kubelet's word that a probe is why a container was restarted.
func (c *Diagnosis) killedBy(p *corev1.Pod, container, probe string) *podTrouble {
	var killed, unhealthy *corev1.Event
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if e.InvolvedObject.UID != "" && e.InvolvedObject.UID != p.UID {
			continue
		}
		if path := e.InvolvedObject.FieldPath; path != "" && !strings.Contains(path, "{"+container+"}") {
			continue
		}
		switch {
		case e.Reason == "Killing" && strings.Contains(e.Message, "failed "+strings.ToLower(probe)+" probe"):
			killed = e
		case e.Reason == "Unhealthy" && strings.HasPrefix(e.Message, probe+" probe"):
			unhealthy = e
		}
	}
	if killed == nil {
		return nil
	}
	code := report.LivenessKilled
	if probe == "Startup" {
		code = report.StartupProbeFailing
	}
	t := &podTrouble{code: code, since: cluster.EventOnset(killed),
		summary:  report.Textf("container %s is restarted by its %s probe", container, strings.ToLower(probe)),
		evidence: []report.Evidence{eventEvidence(killed)}}
	if unhealthy != nil {
		t.evidence = append(t.evidence, eventEvidence(unhealthy))
	}
	return t
}

func eventEvidence(e *corev1.Event) report.Evidence {
	n := ""
	if e.Count > 1 {
		n = fmt.Sprintf(" (%d times)", e.Count)
	}
	return report.Evidence{Source: report.Textf("Event %s of %s", e.Reason, cluster.EventSource(e)), Value: report.Textf("%s%s", redact.Text(e.Message), n), At: report.At(cluster.EventLast(e))}
}

// imageTrouble says why an image cannot be had. The waiting message or, where it
// only says back-off, the kubelet's event carries the registry's words.
func (c *Diagnosis) imageTrouble(p *corev1.Pod, s corev1.ContainerStatus, w *corev1.ContainerStateWaiting, ev []report.Evidence) *podTrouble {
	words := w.Message
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if e.Reason == "Failed" && strings.Contains(e.Message, "Failed to pull image") && strings.Contains(e.Message, s.Image) {
			words += "\n" + e.Message
			ev = append(ev, eventEvidence(e))
		}
	}
	t := &podTrouble{code: imageCode(w.Reason, words), since: p.CreationTimestamp.Time, evidence: ev}
	why := map[report.Code]string{
		report.ImageNotFound: "does not exist in the registry", report.ImagePullUnauthorized: "may not be pulled: the registry refuses the credentials",
		report.RegistryUnreachable: "cannot be pulled: the registry does not answer", report.ImagePullFailed: "cannot be pulled",
	}[t.code]
	t.summary = report.Textf("image %s of container %s %s", s.Image, s.Name, why)
	return t
}

func imageCode(reason, words string) report.Code {
	l := strings.ToLower(words)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(l, p) {
				return true
			}
		}
		return false
	}
	switch {
	case reason == "RegistryUnavailable", has("no such host", "i/o timeout", "connection refused", "connection reset", "no route to host", "network is unreachable",
		"tls handshake timeout", "deadline exceeded", "503 service unavailable", "502 bad gateway", "client.timeout", "temporary failure in name resolution", "server misbehaving"):
		return report.RegistryUnreachable
	case has("unauthorized", "authentication required", "401", "403 forbidden", "denied", "no basic auth credentials", "insufficient_scope", "authorization failed", "forbidden"):
		if has("repository does not exist or may require", "not found") && !has("unauthorized", "authorization failed", "401") {
			return report.ImageNotFound
		}
		return report.ImagePullUnauthorized
	case has("not found", "manifest unknown", "name unknown", "does not exist", "404"):
		return report.ImageNotFound
	}
	return report.ImagePullFailed
}

// sandboxOrVolume reads the kubelet's events of a Pod that has no container yet.
func (c *Diagnosis) sandboxOrVolume(p *corev1.Pod) *podTrouble {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil {
			return nil
		}
	}
	var found *podTrouble
	over := c.pastSandbox(p)
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if e.InvolvedObject.UID != "" && e.InvolvedObject.UID != p.UID || cluster.EventLast(e).Before(over) {
			continue
		}
		t := &podTrouble{since: cluster.EventOnset(e), evidence: []report.Evidence{eventEvidence(e)}}
		switch e.Reason {
		case "FailedCreatePodSandBox":
			t.code, t.summary = report.SandboxFailed, report.Textf("its sandbox cannot be created: %s", firstWords(strings.TrimPrefix(e.Message, "Failed to create pod sandbox: "), 200))
			if agent := c.agentOn(p.Spec.NodeName); agent != "" {
				t.summary += report.Textf("; the network agent there: %s", agent)
			}
		case "NetworkNotReady":
			if n := c.s.Node(p.Spec.NodeName); n != nil {
				if cond := cluster.NodeCondition(n, corev1.NodeReady); cond != nil && cond.Status == corev1.ConditionTrue && !cond.LastTransitionTime.Time.Before(cluster.EventLast(e)) {
					continue // the node has said since that its network is there
				}
			}
			t.code, t.summary, t.ofNode = report.SandboxFailed, "waits for the node's network", true
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
			t.code, t.summary = report.VolumeMountFailed, report.Textf("a volume cannot be mounted: %s", firstWords(e.Message, 200))
			if configMissing(e.Message) {
				t.code = report.ContainerConfigMissing
			} else if e.Reason == "FailedMount" && e.Count <= 1 && e.Series == nil && c.s.AsOf.Sub(p.CreationTimestamp.Time) < time.Minute {
				continue // tried again within seconds: a kubelet's caches lag behind a new Pod
			}
		default:
			continue
		}
		found = t
	}
	return found
}

// pastSandbox is when a Pod that has no container yet was last seen beyond its volumes
// and its sandbox, which come first: its condition says so, or its image is pulled. The
// zero time where nothing says so.
// Source: pkg/kubelet/kubelet.go, SyncPod, and kuberuntime_manager.go, SyncPod.
func (c *Diagnosis) pastSandbox(p *corev1.Pod) time.Time {
	var at time.Time
	for i := range p.Status.Conditions {
		if cond := &p.Status.Conditions[i]; cond.Type == corev1.PodReadyToStartContainers && cond.Status == corev1.ConditionTrue {
			at = cond.LastTransitionTime.Time
		}
	}
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		switch e.Reason {
		case "Pulling", "Pulled", "Created", "Started":
			if last := cluster.EventLast(e); (e.InvolvedObject.UID == "" || e.InvolvedObject.UID == p.UID) && last.After(at) {
				at = last
			}
		}
	}
	return at
}

// agentOn describes the network agent's Pod on a node, "" where none was read.
func (c *Diagnosis) agentOn(node string) string {
	for _, p := range c.s.PodsOn(node) {
		if !networkAgent(&p.Spec) {
			continue
		}
		state := "Ready"
		if !cluster.PodReady(p) {
			state = "not Ready"
		}
		return fmt.Sprintf("%s/%s, %s", p.Namespace, p.Name, state)
	}
	return ""
}

// configMissing tells whether a mount fails because a ConfigMap or Secret is absent.
func configMissing(m string) bool {
	return (strings.Contains(m, "configmap \"") || strings.Contains(m, "secret \"") || strings.Contains(m, "references non-existent")) &&
		(strings.Contains(m, "not found") || strings.Contains(m, "non-existent"))
}

// probeTrouble finds a running Pod whose own readiness fails. Ready=False that the
// node controller set, with ContainersReady still True, is the node's doing.
func (c *Diagnosis) probeTrouble(p *corev1.Pod) *podTrouble {
	ready, containers := cluster.PodCondition(p, corev1.PodReady), cluster.PodCondition(p, corev1.ContainersReady)
	if ready == nil {
		return nil
	}
	node := c.nodes[p.Spec.NodeName]
	if containers != nil && containers.Status == corev1.ConditionTrue {
		if ready.Reason == "ReadinessGatesNotReady" {
			return &podTrouble{code: report.ReadinessGateWaiting, since: ready.LastTransitionTime.Time, summary: report.Textf("waits for a readiness gate: %s", firstWords(ready.Message, 160)),
				evidence: []report.Evidence{{Source: "Pod.status.conditions[Ready]", Value: report.Textf("%s: %s", ready.Reason, redact.Text(ready.Message)), At: report.At(ready.LastTransitionTime.Time)}}}
		}
		if node != nil && node.failing() {
			return &podTrouble{code: node.code, since: ready.LastTransitionTime.Time, summary: report.Textf("was marked not Ready because node %s fell", node.name), ofNode: true,
				evidence: []report.Evidence{{Source: "Pod.status.conditions[Ready]", Value: "False, while ContainersReady is True", At: report.At(ready.LastTransitionTime.Time)}}}
		}
		return nil
	}
	running, begun := false, p.CreationTimestamp.Time
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil && !s.Ready {
			running = true
			begun = maxTime(begun, s.State.Running.StartedAt.Time)
		}
	}
	if !running || node != nil && node.ready == corev1.ConditionUnknown && ready.LastTransitionTime.After(node.node.CreationTimestamp.Time) && unknownSince(node, ready.LastTransitionTime.Time) {
		return nil
	}
	t := &podTrouble{code: report.ReadinessFailing, since: ready.LastTransitionTime.Time, summary: "runs, and its readiness probe fails",
		evidence: []report.Evidence{{Source: "Pod.status.conditions[Ready]", Value: report.Textf("False %s: %s", ready.Reason, redact.Text(ready.Message)), At: report.At(ready.LastTransitionTime.Time)}}}
	for _, e := range c.s.EventsOf("Pod", p.Namespace, p.Name) {
		if e.Reason == "Unhealthy" && strings.HasPrefix(e.Message, "Readiness probe") {
			t.evidence = append(t.evidence, eventEvidence(e))
			t.summary = report.Textf("runs, and its readiness probe fails: %s", firstWords(strings.TrimPrefix(strings.TrimPrefix(e.Message, "Readiness probe "), "failed: "), 160))
		}
	}
	if c.s.AsOf.Sub(begun) < startAllowance(&p.Spec) && (len(t.evidence) == 1 || c.s.AsOf.Sub(begun) < time.Minute) {
		return nil // it is starting, for the first time or again
	}
	return t
}

// unknownSince tells whether a time coincides with the moment a node was found silent.
func unknownSince(n *nodeState, t time.Time) bool {
	e := n.current()
	return e != nil && t.Sub(e.shown).Abs() <= 10*time.Second
}

// notReadyYet is the last resort: not Ready for longer than a start may take,
// and nothing says why.
func (c *Diagnosis) notReadyYet(p *corev1.Pod) *podTrouble {
	if node := c.nodes[p.Spec.NodeName]; node != nil && node.failing() {
		return &podTrouble{code: node.code, since: p.CreationTimestamp.Time, ofNode: true, summary: report.Textf("is not Ready on node %s, which fails", node.name),
			evidence: []report.Evidence{{Source: "Pod.spec.nodeName", Value: report.Clean(node.name)}}}
	}
	return nil
}

// startAllowance is how long a Pod may take to become Ready by its own settings,
// from creation: image and containers 60 s, and what its probes grant.
func startAllowance(s *corev1.PodSpec) time.Duration {
	var most time.Duration
	for _, ct := range s.Containers {
		var d time.Duration
		for _, p := range []*corev1.Probe{ct.StartupProbe, ct.ReadinessProbe} {
			if p == nil {
				continue
			}
			period, failures := max(p.PeriodSeconds, 1), max(p.FailureThreshold, 1)
			if p == ct.ReadinessProbe {
				failures = max(p.SuccessThreshold, 1)
			}
			d += time.Duration(p.InitialDelaySeconds+period*failures) * time.Second
		}
		most = max(most, d)
	}
	return most + time.Minute
}
