package style

import (
	"charm.land/lipgloss/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Styles are the looks that pages, dialogs and components draw with.
type Styles struct {
	Text    lipgloss.Style // running text
	Dim     lipgloss.Style // what may be overlooked
	Strong  lipgloss.Style // names, titles
	Label   lipgloss.Style // CAUSE, DO NOW
	Key     lipgloss.Style // a key to press
	Rule    lipgloss.Style // lines and frames
	Cursor  lipgloss.Style // the selected row
	Match   lipgloss.Style // matched letters in a palette
	Code    lipgloss.Style // a command
	Added   lipgloss.Style // "+ " of a diff
	Removed lipgloss.Style // "- " of a diff

	Good    lipgloss.Style
	Notice  lipgloss.Style
	Bad     lipgloss.Style
	Unknown lipgloss.Style

	BadBadge      lipgloss.Style // SPREADING
	WriteBadge    lipgloss.Style // WRITE
	ReadBadge     lipgloss.Style // READ-ONLY
	PracticeBadge lipgloss.Style // PRACTICE
}

// New makes the styles of a theme; an unknown one is the default.
func New(t Theme) *Styles {
	tok, ok := themes[t]
	if !ok {
		tok = themes[Default]
	}
	plain := lipgloss.NewStyle()
	s := &Styles{
		Text:    plain,
		Dim:     plain.Faint(tok.faint),
		Strong:  plain.Bold(true),
		Label:   plain.Bold(true),
		Key:     plain.Bold(true).Foreground(tok.accent),
		Rule:    plain.Faint(tok.faint),
		Cursor:  plain.Bold(true),
		Match:   plain.Bold(true).Underline(true).Foreground(tok.accent),
		Code:    plain.Foreground(tok.accent),
		Added:   plain.Foreground(tok.good),
		Removed: plain.Foreground(tok.bad),

		Good:    plain.Foreground(tok.good),
		Notice:  plain.Foreground(tok.notice),
		Bad:     plain.Foreground(tok.bad).Bold(true),
		Unknown: plain.Foreground(tok.unknown),

		BadBadge:      plain.Foreground(tok.bad).Bold(true).Reverse(tok.reverseBad),
		WriteBadge:    plain.Foreground(tok.write).Bold(true),
		ReadBadge:     plain.Foreground(tok.good).Bold(true),
		PracticeBadge: plain.Foreground(tok.practice).Bold(true),
	}
	return s
}

// Of is the look of a state.
func (s *Styles) Of(st report.StepState) lipgloss.Style {
	switch st {
	case report.StepOK:
		return s.Good
	case report.StepNotice:
		return s.Notice
	case report.StepAnomaly:
		return s.Bad
	case report.StepUnknown:
		return s.Unknown
	}
	return s.Dim
}

// Mark is the mark of a state in its look.
func (s *Styles) Mark(st report.StepState) string { return s.Of(st).Render(st.Mark()) }

// SeverityState is the step state that a severity looks like.
func SeverityState(v report.Severity) report.StepState {
	switch v {
	case report.Critical:
		return report.StepAnomaly
	case report.Warning:
		return report.StepNotice
	}
	return report.StepNotYet
}
