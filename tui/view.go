package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/tui/draw"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
	"github.com/rollcall-k8s/rollcall/tui/page/connect"
	"github.com/rollcall-k8s/rollcall/tui/wording"
)

// The smallest terminal that the pages are made for, and from which size on the
// screen has room for what is not needed: a status line that is always there, and
// a whole frame around a practice cluster.
const (
	leastWidth, leastHeight = 60, 16
	roomyWidth, roomyHeight = 80, 24
)

// View draws the screen: never more lines or cells than the terminal has.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.frame(), "\n"))
	v.AltScreen = !m.o.NoAltScreen
	if !m.o.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	v.WindowTitle = "rollcall"
	return v
}

// frame is the screen as lines, exactly as many as the terminal has.
func (m *Model) frame() []string {
	if m.w <= 0 || m.h <= 0 {
		return nil
	}
	var lines []string
	if m.tooSmall() {
		lines = m.small()
	} else {
		lines = m.full()
	}
	return draw.Fill(lines, m.w, m.h)
}

func (m *Model) tooSmall() bool { return m.w < leastWidth || m.h < leastHeight }

// full is the header, the body and, below, what was said last and the keys.
func (m *Model) full() []string {
	w, h := m.w, m.h
	lines := m.header(w)
	lines = append(lines, m.banner(w)...)
	dialog := m.top()
	var low []string
	if dialog == nil {
		low = m.status(w)
		if len(low) == 0 && h >= roomyHeight {
			low = []string{""}
		}
		low = append(low, m.hints(w))
	} else if m.notice.bad {
		low = m.status(w) // it may be why this dialog is open
	}
	bw, bh, x, y := w, h-len(lines)-len(low)-1, 0, len(lines)+1
	if m.framed() {
		bw, bh, x = w-2, bh-1, 1
	}
	body := m.body(bw, bh)
	m.area = area{x, y, bw, bh}
	if dialog != nil {
		box := dialog.View(bw, bh, m.s)
		if len(box) > 0 {
			m.area = area{x + (bw-draw.Width(box[0]))/2, y + max(0, (bh-len(box))/2), draw.Width(box[0]), len(box)}
		}
		body = draw.Over(body, box, bw, m.s.Dim.Render)
	}
	switch {
	case m.framed():
		lines = append(lines, draw.Frame(m.practiceTitle(), body, w, m.s.PracticeBadge.Bold(false).Render)...)
	case m.practice():
		lines = append(lines, m.s.PracticeBadge.Render(draw.Rule("═", m.practiceTitle(), w)))
		lines = append(lines, body...)
	default:
		lines = append(lines, m.s.Rule.Render(draw.Rule("─", "", w)))
		lines = append(lines, body...)
	}
	return append(lines, low...)
}

// framed tells whether a frame says around the whole body that this is practice.
func (m *Model) framed() bool { return m.practice() && m.w >= roomyWidth && m.h >= roomyHeight }

func (m *Model) practice() bool { return m.st != nil && m.st.Identity.Practice }

func (m *Model) practiceTitle() string {
	if m.st.Identity.Incident == "" {
		return "PRACTICE"
	}
	return "PRACTICE " + string(m.st.Identity.Incident)
}

func (m *Model) body(w, h int) []string {
	switch m.page() {
	case keymap.OnTimeline:
		return m.timeline.View(w, h, m.s)
	case keymap.OnChecklist:
		return m.checklist.View(w, h, m.s)
	case keymap.OnTriage:
		return m.triage.View(w, h, m.s)
	}
	return connect.View(m.st, w, h, m.s)
}

// banner says that the picture is old, and why.
func (m *Model) banner(w int) []string {
	if m.page() == keymap.OnConnect || m.st.Link.Live {
		return nil
	}
	text := fmt.Sprintf("✗ API server not reachable for %s, showing %s; actions wait", wording.Duration(m.o.Clock.Now().Sub(m.lost)), m.clockNow())
	if why := string(m.st.Link.Why); why != "" && w > draw.Width(text)+20 {
		text += " (" + why + ")"
	}
	keys := m.s.Key.Render("r") + " retry "
	return []string{draw.Spread(" "+m.s.Bad.Render(draw.Fit(text, w-12)), keys, w)}
}

// noticeLines is how many lines an answer may take: why something was refused
// stands at its end.
const noticeLines = 3

// status is the last answer to the operator, or what is under way.
func (m *Model) status(w int) []string {
	s := m.s
	if m.notice.text != "" && !(m.notice.bad && m.page() == keymap.OnConnect) {
		mark, look := "▪ ", s.Text
		if m.notice.bad {
			mark, look = "✗ ", s.Bad
		}
		lines := draw.Wrap(m.notice.text, w-4)
		if len(lines) > noticeLines {
			lines = lines[:noticeLines]
			lines[noticeLines-1] = draw.Fit(lines[noticeLines-1]+" …", w-4)
		}
		for i, l := range lines {
			lines[i] = " " + look.Render(mark+l)
			mark = "  "
		}
		return lines
	}
	if m.st == nil {
		return nil
	}
	var parts []string
	p := m.st.Progress
	if m.st.Recovery != nil && !wording.Running(p) {
		p = m.st.Recovery
	}
	if p != nil {
		b, _ := keymap.For(keymap.OnTriage, keymap.Progress)
		parts = append(parts, s.Key.Render(b.Shown())+" "+s.Mark(phaseState(p.Phase))+" "+string(p.Title)+": "+wording.Phase(p.Phase))
	}
	for _, l := range m.st.Left {
		parts = append(parts, s.Notice.Render("! "+string(l)))
	}
	if m.st.Unkept != "" {
		parts = append(parts, s.Bad.Render("✗ not on the disk: ")+string(m.st.Unkept))
	}
	if m.st.Notes > 0 {
		parts = append(parts, s.Dim.Render(wording.Count(m.st.Notes, "note")))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{draw.Fit(" "+strings.Join(parts, s.Dim.Render(" · ")), w)}
}

// hints are the keys that work here, the most needed first; help is always there.
func (m *Model) hints(w int) string {
	scope := m.page()
	if m.triage.Typing() != nil && scope == keymap.OnTriage {
		return draw.Fit(" "+m.s.Dim.Render("type to filter  ↑↓ move  ")+m.s.Key.Render("enter")+" guide  "+m.s.Key.Render("esc")+" all", w)
	}
	var parts []part
	for _, b := range keymap.Hints(scope) {
		if ok, _ := m.works(b.Command); !ok {
			continue
		}
		label := b.Label
		switch {
		case b.Command == keymap.Freeze && scope == keymap.OnTriage:
			label += " " + draw.Fit(string(m.freezes().Name), 24)
		case b.Command == keymap.Texts && m.checklist.Hidden():
			label = "show texts"
		}
		keep := 100 - b.Rank
		if b.Command == keymap.Help {
			keep = 200
		}
		parts = append(parts, part{m.s.Key.Render(b.Shown()) + " " + label, keep})
	}
	return " " + fitParts(parts, "  ", w-1)
}

// small is what is drawn where the pages have no room: the verdict and the key that
// stops it.
func (m *Model) small() []string {
	s := m.s
	lines := []string{s.Notice.Render(draw.Fit(fmt.Sprintf("%dx%d is too small, needs %dx%d", m.w, m.h, leastWidth, leastHeight), m.w))}
	if m.page() == keymap.OnConnect {
		return append(lines, draw.Fit("no picture yet", m.w))
	}
	if m.top() != nil {
		return append(lines, draw.Wrap("A dialog is open: make the terminal larger to read it, or esc closes it.", m.w)...)
	}
	x := m.freezes()
	if x != nil {
		lines = append(lines, draw.Fit(s.Strong.Render(string(x.Name)), m.w))
		badge := s.Of(wording.State(x.Verdict.Attribution)).Render(wording.Attribution(x.Verdict.Attribution))
		if x.Rollout.Spreading {
			badge = s.BadBadge.Render("SPREADING")
		}
		lines = append(lines, draw.Fit(badge, m.w))
		if ok, _ := m.works(keymap.Freeze); ok {
			lines = append(lines, draw.Fit(s.Key.Render("F")+" freeze", m.w))
		}
	} else {
		lines = append(lines, draw.Fit(s.Of(wording.State(m.st.Report.Verdict.Attribution)).Render(wording.Verdict(&m.st.Report.Verdict)), m.w))
	}
	mark := s.Good.Render("●") + " live "
	if !m.st.Link.Live {
		mark = s.Bad.Render("○") + " old "
	}
	lines = append(lines, draw.Fit(mark+m.clockNow(), m.w))
	return append(lines, draw.Wrap(string(m.st.Report.Verdict.Summary), m.w)...)
}
