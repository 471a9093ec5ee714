package incident

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// The bounds of what is read at one request.
const (
	logLines   = 1000             // of each container
	logBytes   = 256 << 10        // of each container
	logTime    = 20 * time.Second // for each container: a node that is cut off does not answer
	mostRuns   = 16               // containers' runs of one Pod
	pasteBytes = 1 << 20
	mostHeard  = 200 // sources in a State; the journal has them all
)

// logRun is one life of a container whose log can be read; never says why there is none.
type logRun struct {
	container string
	previous  bool
	never     report.Text
}

// readLogs reads a Pod's logs beside the loop.
func (l *Loop) readLogs(i ReadLogs) *job {
	if l.cfg.Logs == nil || l.snap == nil {
		return l.refuse("there is no cluster to read logs from")
	}
	if i.Pod == "" {
		pods, _ := l.asked()
		if len(pods) == 0 {
			return l.refuse("no Pod is in question here whose logs could be read")
		}
		i.Namespace, i.Pod = string(pods[0].Namespace), string(pods[0].Name)
	}
	if i.Namespace == "" && l.open != nil {
		i.Namespace = string(l.open.Target().Namespace)
	}
	p := l.snap.Pod(i.Namespace, i.Pod)
	if p == nil {
		return l.refuse("Pod %s/%s is not in the picture: it is gone, or Pods of its workload are not read", i.Namespace, i.Pod)
	}
	name := p.Namespace + "/" + p.Name
	if l.reading[name] {
		return l.refuse("the logs of %s are being read", p.Name)
	}
	runs, why := runsOf(p, i)
	if why != "" {
		return l.refuse("%s", why)
	}
	l.reading[name] = true
	l.say("reading the logs of %s", p.Name)
	logs, options := l.cfg.Logs, l.readAs(false)
	return &job{
		work: func(ctx context.Context) any {
			var out []signs.Evidence
			for _, r := range runs {
				e := read(ctx, logs, p, r, options)
				out = append(out, e)
				if e.Failed != "" && !e.Never && !r.previous {
					break // the others would fail alike, each after as long a wait
				}
			}
			return out
		},
		finish: func(x any) *job {
			delete(l.reading, name)
			l.gather(report.Textf("logs of %s", p.Name), x.([]signs.Evidence))
			return nil
		},
	}
}

// readAs are the options of a reading now.
func (l *Loop) readAs(console bool) signs.Options {
	o := signs.Options{Console: console, Redact: session.Redact}
	if l.snap != nil {
		o.AsOf = l.snap.AsOf
	}
	return o
}

// runsOf lists what there is to read of a Pod, init containers first. A container
// that waits after a crash has the log of its last run as its current one
// (kubernetes: pkg/kubelet/kubelet_pods.go, validateContainerLogStatus).
func runsOf(p *corev1.Pod, i ReadLogs) (runs []logRun, why report.Text) {
	status := map[string]corev1.ContainerStatus{}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		status[s.Name] = s
	}
	var names []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		names = append(names, c.Name)
		s := status[c.Name]
		waiting := s.State.Running == nil && s.State.Terminated == nil
		switch {
		case i.Container != "":
			if c.Name == i.Container {
				runs = append(runs, logRun{container: c.Name, previous: i.Previous})
			}
		case waiting && s.LastTerminationState.Terminated == nil:
			why := "it is waiting"
			if s.State.Waiting != nil && s.State.Waiting.Reason != "" {
				why = s.State.Waiting.Reason
			}
			runs = append(runs, logRun{container: c.Name, never: report.Textf("it has not run yet (%s), so there is no log", why)})
		default:
			if !waiting && s.LastTerminationState.Terminated != nil {
				runs = append(runs, logRun{container: c.Name, previous: true})
			}
			runs = append(runs, logRun{container: c.Name})
		}
	}
	if len(runs) == 0 {
		return nil, report.Textf("Pod %s has no container %s; it has %s", p.Name, i.Container, strings.Join(names, ", "))
	}
	return runs[:min(len(runs), mostRuns)], ""
}

// read reads one log and what it tells.
func read(ctx context.Context, logs action.Logs, p *corev1.Pod, r logRun, o signs.Options) signs.Evidence {
	e := signs.Evidence{At: report.Time{Time: o.AsOf}, Failed: r.never, From: signs.Source{
		Node: report.Clean(p.Spec.NodeName), Namespace: report.Clean(p.Namespace), Pod: report.Clean(p.Name), Container: report.Clean(r.container), Previous: r.previous,
	}}
	if r.never != "" {
		e.Never = true
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	log, err := logs.Logs(ctx, action.LogRequest{Namespace: p.Namespace, Pod: p.Name, Container: r.container, Previous: r.previous, Lines: logLines, Bytes: logBytes})
	if err != nil {
		e.Failed = failedLog(err)
		return e
	}
	lines := make([]string, len(log.Lines))
	for i, t := range log.Lines {
		lines[i] = string(t)
	}
	e.Reading, e.Cut = signs.Read(lines, o), log.Cut || len(lines) >= logLines
	return e
}

// failedLog is why a log could not be read, in one line with what to do.
func failedLog(err error) report.Text {
	next := "if its node is cut off, read it at the node's console with crictl logs and paste it"
	switch {
	case errors.Is(err, action.ErrForbidden):
		next = "ask for the right to get pods/log"
	case errors.Is(err, context.Canceled):
		next = "ask again"
	}
	return report.Textf("%s; %s", session.Redact(err.Error()), next)
}

// pasteConsole reads what a node's console printed.
func (l *Loop) pasteConsole(i PasteConsole) *job {
	node := report.Clean(i.Node)
	switch {
	case strings.TrimSpace(string(report.Clean(i.Text))) == "":
		return l.refuse("nothing was pasted")
	case node == "":
		return l.refuse("name the node whose console this is from")
	case l.snap != nil && l.snap.Node(i.Node) == nil:
		return l.refuse("there is no node %s in the picture; / finds nodes by a part of their name", node)
	}
	e := signs.Evidence{From: signs.Source{Node: node}}
	text := i.Text
	if len(text) > pasteBytes {
		text, e.Cut = text[len(text)-pasteBytes:], true
	}
	o := l.readAs(true)
	e.At = report.Time{Time: o.AsOf}
	return &job{
		work: func(context.Context) any {
			e.Reading = signs.Read(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), o)
			return []signs.Evidence{e}
		},
		finish: func(x any) *job {
			l.gather(report.Textf("console of %s", node), x.([]signs.Evidence))
			return nil
		},
	}
}

// gather keeps what was read and says what came of it.
func (l *Loop) gather(what report.Text, all []signs.Evidence) {
	var names []string
	lines, failed := 0, report.Text("")
	for _, e := range all {
		l.remembered(e)
		l.keep(session.EvidenceRead, told(e), e)
		lines += e.Lines
		if e.Failed != "" && !e.Never {
			failed = e.Failed
		}
		for _, f := range e.Found {
			if !slices.Contains(names, string(f.Name)) {
				names = append(names, string(f.Name))
			}
		}
	}
	l.look()
	switch {
	case len(names) > 0:
		l.say("%s: %s", what, strings.Join(names, ", "))
	case failed != "":
		l.refuse("%s: %s", what, failed)
	case lines == 0:
		l.say("%s: there is nothing to read", what)
	default:
		l.say("%s: no known sign in %s", what, count(lines, "line"))
	}
}

// remembered puts a source in the place of an older reading of it.
func (l *Loop) remembered(e signs.Evidence) {
	out := make([]signs.Evidence, 0, len(l.heard)+1) // a published State keeps the old one
	for _, h := range l.heard {
		if h.From != e.From {
			out = append(out, h)
		}
	}
	out = append(out, e)
	l.heard = out[max(0, len(out)-mostHeard):]
}

// told is a reading in one line, for the journal.
func told(e signs.Evidence) report.Text {
	switch {
	case e.Failed != "":
		return report.Textf("%s: %s", e.From, e.Failed)
	case len(e.Found) == 0:
		return report.Textf("%s: no known sign in %s", e.From, count(e.Lines, "line"))
	}
	var out []string
	for _, f := range e.Found {
		out = append(out, string(f.Headline()))
	}
	return report.Textf("%s: %s", e.From, strings.Join(out, "; "))
}
