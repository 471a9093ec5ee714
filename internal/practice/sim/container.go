package sim

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's back-offs (kubelet.go).
const (
	firstBackoff   = 10 * time.Second
	longestBackoff = 5 * time.Minute
)

type containerPhase int

const (
	created containerPhase = iota // nothing was done yet
	waiting                       // pulling, or held back
	running
	terminated
)

// containerRun is one container of a Pod over all its lives.
type containerRun struct {
	pod     *podRun
	spec    *corev1.Container
	init    bool
	program Program

	phase           containerPhase
	reason, message string // why it waits
	life            int    // counts; what an earlier life queued is void
	starts          int
	ready           bool
	pulled          bool
	backoff         time.Duration // before the next restart
	pullBackoff     time.Duration
	startedAt       metav1.Time // by the node's clock
	log, oldLog     []loggedLine
	ended           *corev1.ContainerStateTerminated // the newest end
	last            *corev1.ContainerStateTerminated // the end before this life
}

type loggedLine struct {
	at   time.Time
	text string
}

func newContainerRun(r *podRun, spec *corev1.Container, init bool) *containerRun {
	program, known := r.k.w.options.Programs[spec.Image]
	if !known {
		program = Healthy(Between(2*time.Second, 6*time.Second), Exactly(2*time.Second))
	}
	c := &containerRun{pod: r, spec: spec, init: init, program: program, reason: "ContainerCreating"}
	if len(r.pod.Spec.InitContainers) > 0 {
		c.reason = "PodInitializing"
	}
	return c
}

// after queues something that this life of the container does.
func (c *containerRun) after(d time.Duration, run func()) {
	life := c.life
	c.pod.k.after(d, func() {
		if !c.pod.gone && c.life == life {
			run()
		}
	})
}

func (c *containerRun) event(kind, reason, format string, args ...any) {
	c.pod.k.event(refContainer(c.pod.pod, c.init, c.spec.Name), kind, reason, format, args...)
}

func (c *containerRun) succeeded() bool { return c.phase == terminated && c.ended.ExitCode == 0 }

// pull makes sure that the image is there.
func (c *containerRun) pull() {
	k, image := c.pod.k, c.spec.Image
	c.phase = waiting
	switch {
	case k.images[image] && c.spec.ImagePullPolicy != corev1.PullAlways:
		c.event(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine and can be accessed by the pod", image)
		c.create()
	case c.program.PullError != "":
		c.event(corev1.EventTypeNormal, "Pulling", "Pulling image %q", image)
		c.after(between(c.pod.rng, 300*time.Millisecond, 1500*time.Millisecond), c.pullFailed)
	default:
		c.event(corev1.EventTypeNormal, "Pulling", "Pulling image %q", image)
		took := c.program.Pull.draw(c.pod.rng)
		c.after(took, func() {
			k.images[image], k.imagesNew = true, true
			took = took.Truncate(time.Millisecond)
			c.event(corev1.EventTypeNormal, "Pulled", "Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.", image, took, took, imageSize(image))
			c.create()
		})
	}
}

func (c *containerRun) pullFailed() {
	image := c.spec.Image
	c.event(corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", image, c.program.PullError)
	c.event(corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
	c.waits("ErrImagePull", c.program.PullError)
	c.pullBackoff = min(max(2*c.pullBackoff, firstBackoff), longestBackoff)
	c.after(between(c.pod.rng, time.Second, 3*time.Second), func() {
		c.event(corev1.EventTypeNormal, "BackOff", "Back-off pulling image %q", image)
		c.event(corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
		c.waits("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, c.program.PullError))
		c.remind(c.pullBackoff, "BackOff", corev1.EventTypeNormal, fmt.Sprintf("Back-off pulling image %q", image))
		c.after(c.pullBackoff, c.pull)
	})
}

// remind repeats an event at every sync of the Pod while a back-off lasts.
func (c *containerRun) remind(wait time.Duration, reason, kind, message string) {
	const every = 13 * time.Second
	if wait <= every {
		return
	}
	c.after(every, func() {
		if c.phase == waiting {
			c.event(kind, reason, "%s", message)
			c.remind(wait-every, reason, kind, message)
		}
	})
}

func (c *containerRun) waits(reason, message string) {
	c.phase, c.reason, c.message = waiting, reason, message
	c.pod.changed()
}

func (c *containerRun) create() {
	c.pulled = true
	c.after(between(c.pod.rng, 100*time.Millisecond, 300*time.Millisecond), func() {
		c.event(corev1.EventTypeNormal, "Created", "Container created")
		c.start()
	})
}

func (c *containerRun) start() {
	c.life++
	c.starts++
	c.phase, c.startedAt = running, metav1.NewTime(c.pod.k.now())
	c.last = c.ended
	c.oldLog, c.log = c.log, nil
	for _, l := range c.program.Log {
		c.log = append(c.log, loggedLine{c.startedAt.Add(l.After), c.expand(l.Text)})
	}
	c.event(corev1.EventTypeNormal, "Started", "Container started")
	c.effects(Started)
	if c.init || c.program.RunsFor.Max > 0 || c.program.ExitCode != 0 {
		c.after(c.program.RunsFor.draw(c.pod.rng), c.exit)
	}
	switch {
	case c.init:
	case c.spec.ReadinessProbe == nil:
		c.becomeReady()
	case c.program.ProbeError != "":
		c.probeFails()
	default:
		c.after(c.program.ReadyAfter.draw(c.pod.rng), c.becomeReady)
	}
	c.pod.changed()
}

func (c *containerRun) becomeReady() {
	c.ready = true
	c.effects(BecameReady)
	c.pod.changed()
}

// probeFails tells of a readiness probe that fails, at each of its periods.
func (c *containerRun) probeFails() {
	period := 10 * time.Second
	if s := c.spec.ReadinessProbe.PeriodSeconds; s > 0 {
		period = time.Duration(s) * time.Second
	}
	c.after(period, func() {
		if c.program.ProbeError != "" {
			c.event(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: %s", c.program.ProbeError)
			c.probeFails()
		}
	})
}

func (c *containerRun) effects(at Moment) {
	for _, e := range c.program.Effects {
		if e.At != at {
			continue
		}
		act := func() {
			if e.Log != "" {
				c.log = append(c.log, loggedLine{c.pod.k.now(), c.expand(e.Log)})
			}
			e.Do(&Host{c.pod.k})
		}
		if wait := e.After.draw(c.pod.rng); wait > 0 {
			c.after(wait, act)
		} else {
			act()
		}
	}
}

func (c *containerRun) expand(text string) string {
	return strings.NewReplacer("$NODE", c.pod.k.name, "$POD", c.pod.pod.Name).Replace(text)
}

// exit is the program's own end.
func (c *containerRun) exit() {
	reason, code := "Completed", c.program.ExitCode
	if code != 0 {
		reason = "Error"
	}
	if c.program.OutOfMemory {
		reason = "OOMKilled"
	}
	c.end(code, reason)
	if c.succeeded() && c.init {
		c.after(between(c.pod.rng, 100*time.Millisecond, 500*time.Millisecond), c.pod.next)
		return
	}
	// The first restart is at once, the later ones after a growing back-off.
	c.after(time.Second, func() {
		wait := c.backoff
		c.backoff = min(max(2*c.backoff, firstBackoff), longestBackoff)
		if wait == 0 {
			c.pull()
			return
		}
		pod := fmt.Sprintf("%s_%s(%s)", c.pod.pod.Name, c.pod.pod.Namespace, c.pod.pod.UID)
		again := fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.spec.Name, pod)
		c.event(corev1.EventTypeWarning, "BackOff", "%s", again)
		c.waits("CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container=%s pod=%s", wait, c.spec.Name, pod))
		c.remind(wait, "BackOff", corev1.EventTypeWarning, again)
		c.after(wait, c.pull)
	})
}

func (c *containerRun) end(code int32, reason string) {
	if c.pod.k.now().Sub(c.startedAt.Time) > 2*longestBackoff {
		c.backoff = 0
	}
	c.life++
	c.phase, c.ready = terminated, false
	now := c.pod.k.now()
	c.ended = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: c.startedAt, FinishedAt: metav1.NewTime(now), ContainerID: c.id(),
	}
	// Lines of a future that does not come.
	c.log = slices.DeleteFunc(c.log, func(l loggedLine) bool { return l.at.After(now) })
	c.pod.changed()
}

// tellToEnd sends the signal to end; it returns how long that takes at most.
func (c *containerRun) tellToEnd(grace time.Duration) time.Duration {
	c.effects(ToldToEnd)
	wait := c.program.StopsIn.draw(c.pod.rng)
	code, reason := int32(0), "Completed"
	if wait > grace {
		wait, code, reason = grace, 137, "Error"
	}
	c.life++
	life := c.life
	c.pod.k.after(wait, func() {
		if c.life == life && !c.pod.gone {
			c.end(code, reason)
		}
	})
	return wait
}

func (c *containerRun) id() string {
	return "containerd://" + hexID(string(c.pod.pod.UID)+c.spec.Name, c.starts)
}

func hexID(of string, n int) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s/%d", of, n)))
}

func (c *containerRun) status() corev1.ContainerStatus {
	started := c.phase == running
	s := corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, Ready: c.ready, RestartCount: int32(max(c.starts-1, 0)), Started: &started}
	if c.pulled {
		s.ImageID = imageID(c.spec.Image)
	}
	if c.starts > 0 {
		s.ContainerID = c.id()
	}
	switch c.phase {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: c.startedAt}
		if c.last != nil {
			s.LastTerminationState.Terminated = c.last.DeepCopy()
		}
	case terminated:
		s.State.Terminated = c.ended.DeepCopy()
		if c.init && c.ended.ExitCode == 0 {
			s.Ready = true
		}
		if c.last != nil {
			s.LastTerminationState.Terminated = c.last.DeepCopy()
		}
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
		if c.ended != nil {
			s.LastTerminationState.Terminated = c.ended.DeepCopy()
		}
	}
	return s
}
