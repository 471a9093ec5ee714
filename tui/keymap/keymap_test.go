package keymap

import "testing"

var scopes = map[string]Scope{
	"triage": OnTriage, "checklist": OnChecklist, "timeline": OnTimeline, "connect": OnConnect,
	"confirm": InConfirm, "reader": InReader, "menu": InMenu, "typing": Typing, "typed": InTyped, "pasting": Pasting,
}

func TestAKeyMeansOneThingInAScope(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		seen := map[string]Command{}
		for _, b := range In(s) {
			for _, k := range b.Keys {
				if was, ok := seen[k]; ok {
					t.Errorf("%s: %q means %s and %s", name, k, was, b.Command)
				}
				seen[k] = b.Command
				if got := Resolve(s, k); got != b.Command {
					t.Errorf("%s: %q resolves to %s, not %s", name, k, got, b.Command)
				}
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s has no key", name)
		}
	}
}

func TestWhereTextIsTypedPrintableKeysAreText(t *testing.T) {
	t.Parallel()
	for _, s := range []Scope{Typing, InTyped, Pasting} {
		for _, b := range In(s) {
			for _, k := range b.Keys {
				if len([]rune(k)) == 1 {
					t.Errorf("%q is %s where text is typed", k, b.Command)
				}
			}
		}
	}
}

func TestEveryBindingIsExplained(t *testing.T) {
	t.Parallel()
	for _, b := range Table {
		if b.Help == "" || b.Scopes == 0 || len(b.Keys) == 0 || b.Shown() == "" {
			t.Errorf("%s is not explained or works nowhere", b.Command)
		}
		if b.Rank > 0 && b.Label == "" {
			t.Errorf("%s stands in the hint line without a label", b.Command)
		}
	}
}

func TestEveryPageHasHelpFreezeAndAWayOut(t *testing.T) {
	t.Parallel()
	for _, s := range []Scope{OnTriage, OnChecklist, OnTimeline} {
		for _, c := range []Command{Help, Freeze, Quit, Find} {
			if _, ok := For(s, c); !ok {
				t.Errorf("scope %b has no key for %s", s, c)
			}
		}
	}
	if Resolve(InConfirm, "esc") != Cancel || Resolve(InTyped, "esc") != Cancel || Resolve(InConfirm, "n") != None {
		t.Error("esc does not cancel a confirmation")
	}
}
