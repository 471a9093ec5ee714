package dialog

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui/component/field"
	"github.com/rollcall-k8s/rollcall/tui/component/pager"
	"github.com/rollcall-k8s/rollcall/tui/keymap"
)

// Quiet is how long no key may have been pressed before a confirmation listens:
// keys that were meant for the page beneath, typed ahead or held down, must not
// confirm what has just appeared.
const Quiet = 500 * time.Millisecond

// Confirm shows what an action will do and asks for it. It listens only after the
// keyboard was quiet; a paste never confirms; every way out but the one is a cancel.
type Confirm struct {
	d     *incident.Dialog
	id    incident.Identity
	clock incident.Clock
	quiet time.Time // since when no key was pressed
	typed *field.Field
	wrong bool // what was typed is not the word
	pager pager.Pager
}

// NewConfirm is the confirmation of d.
func NewConfirm(d *incident.Dialog, id incident.Identity, clock incident.Clock) *Confirm {
	c := &Confirm{d: d, id: id, clock: clock, quiet: clock.Now()}
	if d.Preview.Grade == action.Typed {
		c.typed = field.New("", 256)
	}
	return c
}

// ID is the ID of the action's dialog.
func (c *Confirm) ID() int { return c.d.ID }

// Set takes a newer state of the same dialog. Where what it says has changed from
// waiting to a preview, it must be quiet anew: nobody has read it yet.
func (c *Confirm) Set(d *incident.Dialog) {
	if c.d.Loading != d.Loading || c.d.Preview.Blocked != d.Preview.Blocked {
		c.quiet = c.clock.Now()
	}
	c.d = d
	if d.Preview.Grade == action.Typed && c.typed == nil {
		c.typed = field.New("", 256)
	}
}

// Wait is how long the keyboard must still be quiet, 0 where the dialog listens.
func (c *Confirm) Wait() time.Duration {
	return max(0, Quiet-c.clock.Now().Sub(c.quiet))
}

func (c *Confirm) blocked() bool { return c.d.Preview.Blocked != "" }

func (c *Confirm) listens() bool { return !c.d.Loading && !c.blocked() && c.Wait() == 0 }

// Scope is that of one key, or that of a typed word.
func (c *Confirm) Scope() keymap.Scope {
	if c.typed != nil && !c.blocked() {
		return keymap.InTyped
	}
	return keymap.InConfirm
}

// Key takes a key press.
func (c *Confirm) Key(k tea.KeyPressMsg, cmd keymap.Command) Result {
	if cmd == keymap.Cancel {
		return Cancelled{c.d.ID}
	}
	if c.pager.Overflows() && scroll(&c.pager, cmd) {
		return nil
	}
	if c.Wait() > 0 || c.d.Loading {
		c.quiet = c.clock.Now()
		return nil
	}
	switch {
	case c.blocked():
		return Cancelled{c.d.ID}
	case c.typed == nil && cmd == keymap.Confirm && !k.IsRepeat:
		return Confirmed{ID: c.d.ID}
	case c.typed == nil:
		return Cancelled{c.d.ID}
	case cmd == keymap.Accept:
		if v := strings.TrimSpace(c.typed.Value()); v == string(c.d.Preview.Word) && v != "" {
			return Confirmed{ID: c.d.ID, Typed: v}
		}
		c.wrong = true
	default:
		c.wrong = false
		c.typed.Key(k)
	}
	return nil
}

// Paste does nothing but make it be quiet anew: a paste never confirms.
func (c *Confirm) Paste(string) { c.quiet = c.clock.Now() }

// Wheel scrolls.
func (c *Confirm) Wheel(n int) { c.pager.Move(n) }

// Click does nothing: a confirmation is a key's.
func (c *Confirm) Click(int) Result { return nil }

func permission(p *bool) (string, report.StepState) {
	switch {
	case p == nil:
		return "permission unknown", report.StepUnknown
	case *p:
		return "permission yes", report.StepOK
	}
	return "permission no", report.StepAnomaly
}

func dryRun(d action.DryRun) report.StepState {
	switch d {
	case action.DryRunAccepted:
		return report.StepOK
	case action.DryRunRefused, action.DryRunFailed:
		return report.StepAnomaly
	}
	return report.StepUnknown
}
