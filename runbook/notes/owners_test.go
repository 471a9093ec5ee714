package notes

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-k8s/rollcall/runbook/session"
)

func entryOf(seq int, kind session.Kind, data any) session.Entry {
	at := time.Date(2026, 7, 3, 2, 10, seq, 0, time.UTC)
	return session.Entry{Seq: seq, Wall: at, Cluster: &at, Kind: kind, Data: session.Data(data)}
}

func TestOwnersThatMustBeGivenBackStandAmongWhatIsLeft(t *testing.T) {
	t.Parallel()
	const (
		owner  = "Flux Kustomization infra/cni"
		resume = "flux resume kustomization cni -n infra"
		owed   = owner + ": mend what it applies; where it was suspended, then give it back: " + resume
	)
	hold := entryOf(1, session.CommandCopied, session.Held{Owner: owner, GiveBack: resume})
	rollBack := session.Action{ID: 1, Kind: "RollBack", Title: "Roll back", Object: "DaemonSet/kube-system/agent", GiveBack: []string{owed}}
	back := entryOf(4, session.CommandCopied, session.Held{Owner: owner, GiveBack: resume, Returned: true})
	confirmed, applied := entryOf(2, session.ActionConfirmed, rollBack), entryOf(3, session.ActionApplied, rollBack)
	for name, tc := range map[string]struct {
		entries []session.Entry
		left    []string
	}{
		"held":                    {[]session.Entry{hold}, []string{owner + " was to be suspended"}},
		"held and given back":     {[]session.Entry{hold, back}, nil},
		"rolled back":             {[]session.Entry{confirmed, applied}, []string{owed}},
		"held, then rolled back":  {[]session.Entry{hold, confirmed, applied}, []string{owner + " was to be suspended"}},
		"a roll back that failed": {[]session.Entry{confirmed, entryOf(3, session.ActionFailed, rollBack)}, nil},
	} {
		d := Build(Input{Entries: tc.entries})
		if len(d.Left) != len(tc.left) {
			t.Errorf("%s: left %+v, want %q", name, d.Left, tc.left)
			continue
		}
		for i, want := range tc.left {
			if l := d.Left[i]; !strings.HasPrefix(string(l.Text), want) || !strings.Contains(string(l.Text+l.Reverse), resume) {
				t.Errorf("%s: left %+v, want %q", name, l, want)
			}
		}
	}
	if text := Build(Input{Entries: []session.Entry{confirmed, applied}}).Markdown(); !strings.Contains(text, "To be given back: "+owner) {
		t.Errorf("the action does not say what it owes:\n%s", text)
	}
}
