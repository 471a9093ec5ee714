package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/dialog"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/checklist"
	"github.com/rollcall-k8s/rollcall/tui/page/connect"
	"github.com/rollcall-k8s/rollcall/tui/page/timeline"
	"github.com/rollcall-k8s/rollcall/tui/page/triage"
	"github.com/rollcall-k8s/rollcall/tui/style"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// Model is the root: it owns the size, the pages and the dialogs.
type Model struct {
	o    Options
	s    *style.Styles
	w, h int

	st        *incident.State // nil until the first
	triage    triage.Page
	checklist checklist.Page
	timeline  *timeline.Page // nil while closed

	stack    []dialog.Dialog
	confirm  *dialog.Confirm // of st.Dialog; above the stack
	answered int             // ID of the dialog that was confirmed or cancelled here
	awaiting bool            // a confirmation was sent and its progress not shown yet

	notice notice
	lost   time.Time // wall time at which the link was seen to be lost, zero while it lives
	area   area      // of the last View, for the mouse
}

// notice is the last answer to the operator.
type notice struct {
	text string
	bad  bool
	at   time.Time
}

// noticeTime is how long a notice stays at least, whatever is typed.
const noticeTime = 1500 * time.Millisecond

// area is where the body or a dialog's box stands on the screen.
type area struct{ x, y, w, h int }

// Messages of the model to itself.
type (
	listenMsg struct{} // a confirmation may listen now: draw it anew
	secondMsg struct{} // a second has passed while the link is lost
	copiedMsg struct {
		command string
		err     error
	}
)

// New is the screen before its first State.
func New(o Options) *Model {
	o.defaults()
	return &Model{o: o, s: style.New(o.Theme), answered: -1}
}

// Init needs nothing: the size and the first State come by themselves.
func (m *Model) Init() tea.Cmd { return nil }

// Update takes one message. Whatever reaches outside is in the command it returns
// or goes through Options.Send.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case StateMsg:
		return m, m.set(msg.State)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		return m, m.paste(msg.Content)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg)
	case tea.MouseClickMsg:
		return m, m.click(msg)
	case secondMsg:
		if !m.lost.IsZero() {
			return m, m.o.After(time.Second, secondMsg{})
		}
	case copiedMsg:
		m.copied(msg)
	case listenMsg:
	}
	return m, nil
}

// set takes a new picture of the incident.
func (m *Model) set(st *incident.State) tea.Cmd {
	if st == nil {
		return nil
	}
	old := m.st
	m.st = st
	if connect.NoPicture(st) && !connect.NoPicture(old) {
		m.stack, m.timeline = nil, nil // what they show is gone
	}
	m.triage.Set(st)
	m.checklist.Set(st)
	if m.timeline != nil {
		m.timeline.Set(m.timelineOf(m.timeline.Workload))
	}
	if st.Said != nil && (old == nil || old.Said == nil || *old.Said != *st.Said) {
		m.say(string(st.Said.Text), st.Said.Bad)
	}
	if (old == nil || old.Guide == nil) && st.Guide != nil {
		m.timeline = nil
	}
	var cmds []tea.Cmd
	if st.Link.Live || connect.NoPicture(st) {
		m.lost = time.Time{}
	} else if m.lost.IsZero() {
		m.lost = m.o.Clock.Now()
		cmds = append(cmds, m.o.After(time.Second, secondMsg{}))
	}
	m.open()
	cmds = append(cmds, m.ask(st.Dialog))
	if m.awaiting && st.Progress != nil && (wording.Running(st.Progress) || old == nil || old.Progress == nil || old.Progress.Phase != st.Progress.Phase) {
		m.awaiting = false
		m.push(m.progress())
	}
	return tea.Batch(cmds...)
}

// open asks for the checklist that the operator named at the start, once the
// workload is in the picture or its kind was read without it.
func (m *Model) open() {
	o := m.o.Open
	if o == nil || connect.NoPicture(m.st) {
		return
	}
	kind := report.Text(strings.ToLower(string(o.Workload.Kind)) + "s")
	if m.st.Report.Workload(o.Workload) == nil && slices.Contains(m.st.Report.Waiting, kind) {
		return
	}
	m.o.Open = nil
	m.triage.Select(o.Workload)
	m.o.Send(*o)
}

// ask opens, renews or closes the confirmation that the state asks for.
func (m *Model) ask(d *incident.Dialog) tea.Cmd {
	switch {
	case d == nil || d.ID == m.answered:
		m.confirm = nil
		return nil
	case m.confirm != nil && m.confirm.ID() == d.ID:
		m.confirm.Set(d)
	default:
		m.confirm = dialog.NewConfirm(d, m.st.Identity, m.o.Clock)
	}
	return m.listen()
}

// listen draws the confirmation anew when it begins to listen.
func (m *Model) listen() tea.Cmd {
	if m.confirm == nil {
		return nil
	}
	if d := m.confirm.Wait(); d > 0 {
		return m.o.After(d, listenMsg{})
	}
	return nil
}

func (m *Model) say(text string, bad bool) { m.notice = notice{text, bad, m.o.Clock.Now()} }

// top is the dialog that has the keys, nil where the page has them.
func (m *Model) top() dialog.Dialog {
	if m.confirm != nil {
		return m.confirm
	}
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return nil
}

func (m *Model) push(d dialog.Dialog) { m.stack = append(m.stack, d) }

func (m *Model) pop() {
	if n := len(m.stack); n > 0 {
		m.stack = m.stack[:n-1]
	}
}

// page is the scope of the page in sight.
func (m *Model) page() keymap.Scope {
	switch {
	case connect.NoPicture(m.st):
		return keymap.OnConnect
	case m.timeline != nil:
		return keymap.OnTimeline
	case m.st.Guide != nil:
		return keymap.OnChecklist
	}
	return keymap.OnTriage
}

func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if m.o.Clock.Now().Sub(m.notice.at) > noticeTime {
		m.notice = notice{}
	}
	if d := m.top(); d != nil {
		c := keymap.Resolve(d.Scope(), k.String())
		if m.tooSmall() && c != keymap.Cancel {
			return nil // nobody can read what it asks
		}
		return m.took(d.Key(k, c))
	}
	scope := m.page()
	if f := m.triage.Typing(); f != nil && scope == keymap.OnTriage {
		switch c := keymap.Resolve(keymap.Typing, k.String()); c {
		case keymap.Cancel:
			m.triage.Filter(false)
		case keymap.Accept:
			return m.do(keymap.Guide)
		case keymap.None:
			f.Key(k)
			m.triage.Filtered()
		default:
			m.triage.Move(c)
		}
		return nil
	}
	return m.do(keymap.Resolve(scope, k.String()))
}

// took handles what came of the dialog on top.
func (m *Model) took(r dialog.Result) tea.Cmd {
	switch r := r.(type) {
	case nil:
		return m.listen()
	case dialog.Confirmed:
		m.answered, m.confirm, m.awaiting = r.ID, nil, true
		m.stack = nil
		m.o.Send(incident.Confirm{Dialog: r.ID, Typed: r.Typed})
	case dialog.Cancelled:
		m.answered, m.confirm = r.ID, nil
		m.say("cancelled: nothing was changed", false)
		m.o.Send(incident.Cancel{})
	case dialog.Closed:
		m.pop()
	case dialog.Chosen:
		m.pop()
		return m.chosen(r.Value)
	case dialog.Entered:
		m.pop()
		m.entered(r)
	case dialog.Pasted:
		m.pop()
		m.o.Send(incident.PasteConsole{Node: string(r.Node), Text: r.Text})
	}
	return nil
}

// paste is text for a field. Nothing else takes it: pasted text is never a key.
func (m *Model) paste(text string) tea.Cmd {
	if d := m.top(); d != nil {
		d.Paste(text)
		return m.listen()
	}
	if f := m.triage.Typing(); f != nil && m.page() == keymap.OnTriage {
		f.Paste(text)
		m.triage.Filtered()
	}
	return nil
}

func (m *Model) wheel(e tea.MouseWheelMsg) tea.Cmd {
	n, c := 3, keymap.Down
	switch e.Button {
	case tea.MouseWheelUp:
		n, c = -3, keymap.Up
	case tea.MouseWheelDown:
	default:
		return nil
	}
	if d := m.top(); d != nil {
		d.Wheel(n)
		return nil
	}
	for range 3 {
		m.move(c)
	}
	return nil
}

func (m *Model) click(e tea.MouseClickMsg) tea.Cmd {
	x, y := e.X-m.area.x, e.Y-m.area.y
	if e.Button != tea.MouseLeft || x < 0 || y < 0 || x >= m.area.w || y >= m.area.h {
		return nil
	}
	if d := m.top(); d != nil {
		return m.took(d.Click(y))
	}
	switch m.page() {
	case keymap.OnTriage:
		if m.triage.Click(y) {
			return m.do(keymap.Guide)
		}
	case keymap.OnChecklist:
		if id := m.checklist.Click(x, y); id != "" {
			m.o.Send(incident.GoToStep{Step: id})
		}
	case keymap.OnTimeline:
		m.timeline.Click(y)
	}
	return nil
}

// move gives a movement to the page in sight; false where the command is none.
func (m *Model) move(c keymap.Command) bool {
	switch m.page() {
	case keymap.OnTriage:
		return m.triage.Move(c)
	case keymap.OnChecklist:
		return m.checklist.Move(c)
	case keymap.OnTimeline:
		return m.timeline.Do(c)
	}
	return false
}

// workload is what the page in sight is about, nil where there is none.
func (m *Model) workload() *report.Workload {
	if m.st == nil || m.st.Report == nil {
		return nil
	}
	switch {
	case m.timeline != nil:
		return m.st.Report.Workload(m.timeline.Workload)
	case m.st.Guide != nil:
		return m.st.Report.Workload(m.st.Guide.Target)
	}
	return m.triage.Selected()
}

// freezes is the workload that F freezes. On triage it is the one that the verdict
// tells to freeze, wherever the cursor stands; else the selected one.
func (m *Model) freezes() *report.Workload {
	if m.page() == keymap.OnTriage {
		if w := wording.Worst(m.st.Report); w != nil && urgent(w) {
			return w
		}
	}
	return m.workload()
}

func urgent(w *report.Workload) bool {
	if w.Rollout.Spreading || w.Recommendation.Action == report.ActionOnDelete {
		return true
	}
	for _, a := range w.Recommendation.First {
		if a == report.ActionOnDelete {
			return true
		}
	}
	return false
}

func (m *Model) timelineOf(k report.WorkloadKey) *report.Timeline {
	if m.st == nil || m.st.Report == nil {
		return nil
	}
	if s := m.checklist.Step(); s != nil && m.st.Guide.Target == k && s.Result.Timeline != nil {
		return s.Result.Timeline
	}
	if w := m.st.Report.Workload(k); w != nil && w.Timeline != nil && len(w.Timeline.Lanes) > 0 {
		return w.Timeline
	}
	return nil
}

// trouble tells whether the connection page shows a failure.
func (m *Model) trouble() bool { return connect.Failed(m.st) }

// running tells whether an action still needs the program.
func (m *Model) running() bool {
	return m.st != nil && (wording.Running(m.st.Progress) || wording.Running(m.st.Recovery))
}
