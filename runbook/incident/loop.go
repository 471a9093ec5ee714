package incident

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/probes/signs"
	"github.com/rollcall-k8s/rollcall/runbook"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// Config is what a Loop works with.
type Config struct {
	Source   Source      // used by Run only
	API      action.API  // nil where nothing can be changed, as with files
	Logs     action.Logs // nil where there are none to read
	Clock    Clock       // wall time
	Journal  Journal     // nil keeps none
	Books    []*runbook.Book
	Identity Identity
	// Identify is asked for the identity of every state, where it is only known once
	// the source has connected; nil: Identity holds.
	Identify func() Identity
	Options  probes.Options
	// WriteNotes renders the incident notes of a state and says where it put them;
	// path "" asks for the default place. worst is the report at the incident's
	// height, nil without one. It is called away from the loop.
	WriteNotes func(path string, st *State, worst *report.Report) (written string, err error)
	// Want tells the source that somebody looks at a workload; may be nil.
	Want func(report.WorkloadKey)
	// Retry has a source that runs try again at once; may be nil.
	Retry func()
	// Earlier are the entries of a journal that is being resumed, the oldest first.
	Earlier []session.Entry
	Program string // version of this program, for the journal
}

// patience is how long a verdict on a picture that is still being read is kept out
// of the journal: the first ones come of halves, and the notes would tell of a
// cluster that was healthy. A kind that never loads must not hide it for good.
const patience = 30 * time.Second

// Loop is the state of one incident. Observe and Handle are its synchronous core:
// they are not safe for concurrent use, and do slow work before they return. Run
// calls them off the screen's goroutine and does the slow work beside them.
type Loop struct {
	cfg      Config
	diagnose func(*cluster.Snapshot, probes.Options) *probes.Diagnosis
	probes   map[string]probes.Probe
	pods     func(*probes.Diagnosis, report.WorkloadKey) []probes.AskedPod
	consoles func(*probes.Diagnosis) []string

	seq   int
	snap  *cluster.Snapshot
	diag  *probes.Diagnosis
	began time.Time // cluster time of the first snapshot

	guides map[guideKey]*runbook.Guide
	open   *runbook.Guide

	dialog       *Dialog
	dialogs      int                // the last dialog's ID
	giveUp       context.CancelFunc // of the dialog's preview, nil without one
	dialogAction int                // the dialog's action's ID in the journal
	actions      int                // the last action's ID in the journal
	applying     bool
	lost         bool // the link was not live when it was last looked at

	watches  []*watch
	last     *watch
	progress *Progress // of an action that did not come to a watch
	recovery *recovery
	mended   *report.WorkloadKey // by an earlier session: its recovery is to be proved anew

	verdict verdictMark
	worst   *report.Report // at the incident's height
	said    *Said
	trouble report.Text // what the journal cannot keep
	dead    report.Text // why the source ended
	done    []report.Text
	notes   int
	frozen  map[report.WorkloadKey]string // updateStrategy as it was before our freeze
	changed []changed                     // workloads whose template was put back by hand
	held    []session.Held                // owners of whom a command that holds them was copied

	heard   []signs.Evidence // what logs and consoles said
	reading map[string]bool  // Pods whose logs are being read
}

// New returns a loop that has seen nothing yet, or stands where a journal ends.
func New(cfg Config) *Loop {
	l := &Loop{cfg: cfg, diagnose: probes.Diagnose, probes: probes.Probes, pods: (*probes.Diagnosis).PodsInQuestion, consoles: (*probes.Diagnosis).ConsoleNodes,
		reading: map[string]bool{}, guides: map[guideKey]*runbook.Guide{}, frozen: map[report.WorkloadKey]string{}}
	if l.cfg.Clock == nil {
		l.cfg.Clock = wall{}
	}
	if len(cfg.Earlier) > 0 {
		l.replay(cfg.Earlier)
	} else {
		l.keep(session.SessionStarted, report.Textf("session on %s", cfg.Identity.Context), l.started())
	}
	return l
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// Observe takes the next snapshot: it is diagnosed, every step of the open
// checklist looks at it, and so does every proof that is running.
func (l *Loop) Observe(s *cluster.Snapshot) *State {
	l.snap, l.dead = s, ""
	o := l.cfg.Options
	if l.open != nil {
		o.Keep = append(slices.Clone(o.Keep), l.open.View().Target)
	}
	l.diag = l.diagnose(s, o)
	l.diag.Report.GeneratedAt = report.Time{Time: l.cfg.Clock.Now().UTC()}
	l.noteLink()
	if l.began.IsZero() {
		l.began = s.AsOf
	}
	if len(l.diag.Report.Waiting) == 0 || s.AsOf.Sub(l.began) > patience {
		l.noteVerdict()
		l.noteWorst()
	}
	l.startOver()
	l.look()
	l.prove()
	return l.State()
}

// Handle does what an intent means and returns the state afterwards.
func (l *Loop) Handle(ctx context.Context, i Intent) *State {
	for j := l.take(i); j != nil; {
		j = j.finish(j.work(j.within(ctx)))
	}
	return l.State()
}

// Report is the report of the last snapshot, nil before the first.
func (l *Loop) Report() *report.Report {
	if l.diag == nil {
		return nil
	}
	return l.diag.Report
}

// noteWorst keeps the report at the incident's height: nodes that a rollout broke
// weigh most, then how many there are.
func (l *Loop) noteWorst() {
	weigh := func(r *report.Report) (int, int) {
		w := 0
		switch r.Verdict.Attribution {
		case report.Healthy, report.WaitingForOperator:
		case report.RolloutBreaksNodes:
			w = 2
		default:
			w = 1
		}
		return w, r.Nodes.NotReady + r.Nodes.Unknown
	}
	r := l.diag.Report
	w, down := weigh(r)
	if w == 0 {
		return
	}
	if l.worst != nil {
		if v, d := weigh(l.worst); v > w || v == w && d >= down {
			return
		}
	}
	l.worst = r
}

// Worst is the report at the incident's height, nil while there was none.
func (l *Loop) Worst() *report.Report { return l.worst }

func (l *Loop) identity() Identity {
	if l.cfg.Identify != nil {
		return l.cfg.Identify()
	}
	return l.cfg.Identity
}

// State is what a screen shows now.
func (l *Loop) State() *State {
	l.seq++
	st := &State{
		Seq: l.seq, Report: l.Report(), Said: l.said, Link: l.link(), Identity: l.identity(),
		Done: l.done[:len(l.done):len(l.done)], Notes: l.notes, Left: l.left(),
	}
	if l.cfg.Journal != nil {
		st.Session = l.cfg.Journal.Path()
	}
	st.Unkept = l.trouble
	if l.open != nil {
		v := l.open.View()
		st.Guide = &v
	}
	st.Evidence = l.heard[:len(l.heard):len(l.heard)]
	st.Pods, st.Consoles = l.asked()
	if l.dialog != nil {
		d := *l.dialog
		st.Dialog = &d
	}
	switch {
	case l.progress != nil:
		p := *l.progress
		st.Progress = &p
	case l.last != nil:
		p := l.last.shown
		st.Progress = &p
	}
	if l.recovery != nil {
		p := l.recovery.shown
		st.Recovery = &p
	}
	return st
}

// job is slow work. It runs away from the loop, knows nothing of it, and hands
// back what is to be done in the loop, which may be more work.
type job struct {
	ctx    context.Context // nil, or one that the loop can end
	work   func(context.Context) any
	finish func(any) *job
}

// within joins the job's own context with the caller's.
func (j *job) within(ctx context.Context) context.Context {
	if j.ctx == nil {
		return ctx
	}
	joined, cancel := context.WithCancel(ctx)
	context.AfterFunc(j.ctx, cancel)
	return joined
}

func (l *Loop) say(format string, args ...any) {
	l.said = &Said{At: l.cfg.Clock.Now(), Text: report.Textf(format, args...)}
}

func (l *Loop) refuse(format string, args ...any) *job {
	l.said = &Said{At: l.cfg.Clock.Now(), Bad: true, Text: report.Textf(format, args...)}
	return nil
}

// verdictMark is what of a verdict is worth an entry when it changes.
type verdictMark struct {
	Attribution report.Attribution `json:"attribution"`
	Workload    report.Text        `json:"workload,omitempty"`
	RootCause   report.Code        `json:"rootCause,omitempty"`
	Confidence  report.Confidence  `json:"confidence,omitempty"`
}

func (m verdictMark) String() string {
	if m.Attribution == "" {
		return "no verdict yet"
	}
	out := string(m.Attribution)
	if m.Workload != "" {
		out = fmt.Sprintf("%s %s", m.Workload, out)
	}
	if m.Confidence != "" {
		out = fmt.Sprintf("%s (%s)", out, m.Confidence)
	}
	if m.RootCause != "" {
		out += ", root cause " + string(m.RootCause)
	}
	return out
}

func (l *Loop) noteVerdict() {
	v := l.diag.Report.Verdict
	now := verdictMark{v.Attribution, v.Workload, v.RootCause, v.Confidence}
	if now == l.verdict {
		return
	}
	text := report.Textf("verdict: %s; %s", now, v.Summary)
	if l.verdict.Attribution != "" {
		text = report.Textf("verdict: %s, was %s; %s", now, l.verdict, v.Summary)
	}
	l.verdict = now
	at := l.diag.Report.AsOf
	l.keep(session.VerdictChanged, text, judged{runbook.Event{Kind: runbook.VerdictChanged, Text: text, At: &at}, now})
}
