package tui

import (
	"testing"

	"github.com/rollcall-k8s/rollcall/tui/internal/tuitest"
	"github.com/rollcall-k8s/rollcall/tui/style"

	tea "charm.land/bubbletea/v2"
)

func BenchmarkView(b *testing.B) {
	for name, keys := range map[string][]string{"triage": nil, "timeline": {"t"}} {
		b.Run(name, func(b *testing.B) {
			m := New(Options{Theme: style.Default})
			m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
			m.Update(StateMsg{tuitest.Cascade()})
			for _, k := range keys {
				m.Update(keyOf(k))
			}
			b.ReportAllocs()
			for b.Loop() {
				m.View()
			}
		})
	}
}
