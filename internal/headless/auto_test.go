package headless_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/runbook/library"
	"github.com/rollcall-k8s/rollcall/runbook/session"
)

// played is a practice cluster with a live snapshot of it.
type played struct {
	*practice.Cluster
	source *watch.Source
}

func (p played) Settle(ctx context.Context) (*cluster.Snapshot, error) {
	return p.source.Settle(ctx, p.Bookmark())
}

// auto plays an incident as the program does. It returns what it printed, and what
// kinds of entries the journal has.
func auto(t *testing.T, a headless.Auto, o kube.Options) (out string, kinds []session.Kind, err error) {
	t.Helper()
	c, err := practice.Start(a.Lesson.Incident, a.Lesson.Seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	conn, err := kube.New(c.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	source := watch.New(watch.Config{Conn: conn, Type: "practice", Now: c.Now})
	t.Cleanup(source.Close)
	books, err := library.Load(slices.Collect(maps.Keys(probes.Probes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	journal := &kept{}
	var b bytes.Buffer
	a.Practice, a.Out = played{c, source}, &b
	a.Loop = incident.New(incident.Config{API: conn.API(), Logs: conn, Clock: c, Books: books, Journal: journal, Want: func(k report.WorkloadKey) {
		source.Want(watch.Workload{Kind: string(k.Kind), Namespace: string(k.Namespace), Name: string(k.Name)})
	}})
	a.Notes = func() (string, error) { return "the notes of this incident", nil }
	err = a.Run(t.Context())
	for _, e := range journal.entries {
		kinds = append(kinds, e.Kind)
	}
	return b.String(), kinds, err
}

type kept struct{ entries []session.Entry }

func (k *kept) Append(e session.Entry) error { k.entries = append(k.entries, e); return nil }
func (k *kept) Path() string                 { return "" }

func cascade(format string) headless.Auto {
	return headless.Auto{Format: format, Lesson: headless.Lesson{Incident: "cni-cascade", Seed: 1, Attribution: report.RolloutBreaksNodes,
		Workload: report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}}}
}

func TestAutoMastersTheCNICascadeTheSameWayTwice(t *testing.T) {
	t.Parallel()
	out, kinds, err := auto(t, cascade("text"), kube.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	at := 0
	for _, want := range []string{ // in this order
		"4 nodes have fallen", "RolloutBreaksNodes", "1/11", "4/11", "RolloutSpreading [critical]", "6/11",
		"CNIConfigInvalid /host/etc/cni/net.d/10-calico.conflist", `unsupported cniVersion "1.2.0"`, "9/11", "owner: Helm release kube-system/calico", "SwitchToOnDelete, then RollBack",
		"confirmed: Freeze DaemonSet calico-node", "confirmed: Roll back DaemonSet calico-node", "confirmed: Delete Pod calico-node-", "Verified",
		"confirmed: Delete Pod calico-node-", "Recovery of calico-node: Verified", "11 of 11 nodes in reach Ready", "10/11", "11/11",
		"Left by hand", "worker-5 is out of reach", "frozen (OnDelete)", "Helm release kube-system/calico still has its own template", "the notes of this incident", "✓ diagnosed", "✓ recovered",
	} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or stands in the wrong place:\n%s", want, out)
		}
		at += i
	}
	for _, k := range []session.Kind{session.StepEntered, session.VerdictChanged, session.ActionConfirmed, session.ActionApplied, session.ActionVerified, session.EvidenceRead, incident.RecoveryChanged} {
		if !slices.Contains(kinds, k) {
			t.Errorf("the journal has no %s", k)
		}
	}
	again, _, err := auto(t, cascade("text"), kube.Options{})
	if err != nil || again != out {
		t.Errorf("the same seed plays another way (%v):\n%s", err, cmp.Diff(out, again))
	}
}

func TestAutoPrintsTheReportFromBeforeTheFirstActionAsJSON(t *testing.T) {
	t.Parallel()
	// Read-only: the gate lets nothing through, so the incident is not mastered.
	out, kinds, err := auto(t, cascade("json"), kube.Options{ReadOnly: true, ReadOnlyWhy: "--read-only"})
	if !errors.Is(err, headless.ErrNotMastered) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("error %v", err)
	}
	if slices.Contains(kinds, session.ActionConfirmed) || !slices.Contains(kinds, session.EvidenceRead) {
		t.Errorf("something was confirmed, or a log, which only is read, was not: %v", kinds)
	}
	var r report.Report
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if d.More() {
		t.Error("more than one document")
	}
	w := r.Workload(cascade("").Lesson.Workload)
	if r.Verdict.Attribution != report.RolloutBreaksNodes || w == nil || w.Rollout.Strategy != "RollingUpdate" || !w.Rollout.Spreading || r.Source.Type != "practice" {
		t.Errorf("not the report from before the first action:\n%s", out)
	}
	if !r.GeneratedAt.Equal(r.AsOf.Time) {
		t.Errorf("generatedAt %s is not the virtual time %s", r.GeneratedAt, r.AsOf)
	}
}

func TestAutoLeavesNodesToAPersonWhereNoRolloutIsToBlame(t *testing.T) {
	t.Parallel()
	a := headless.Auto{Format: "text", Lesson: headless.Lesson{Incident: "dead-nodes-block", Seed: 1, Attribution: report.RolloutBreaksNodes}}
	out, kinds, err := auto(t, a, kube.Options{})
	if slices.Contains(kinds, session.ActionPreviewed) || !strings.Contains(out, "FixNode is for a person to do") {
		t.Errorf("journal %v:\n%s", kinds, out)
	}
	// The lesson given here is a wrong one: what it says decides.
	if !errors.Is(err, headless.ErrNotMastered) || !strings.Contains(err.Error(), "the verdict is NodesBlockRollout, the incident is RolloutBreaksNodes") {
		t.Errorf("error %v", err)
	}
}

func TestAutoSaysOfAContainerThatNeverRanThatThereIsNoLog(t *testing.T) {
	t.Parallel()
	a := headless.Auto{Format: "text", Lesson: headless.Lesson{Incident: "image-missing", Seed: 1, Attribution: report.RolloutBreaksPods}}
	out, _, err := auto(t, a, kube.Options{})
	if err != nil || !strings.Contains(out, "it has not run yet (ImagePullBackOff), so there is no log") || strings.Contains(out, "What do its logs say? Not looked at") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestAutoFindsInTheLogWhyAContainerCrashes(t *testing.T) {
	t.Parallel()
	a := headless.Auto{Format: "text", Lesson: headless.Lesson{Incident: "config-broken", Seed: 1, Attribution: report.RolloutBreaksPods}}
	out, kinds, err := auto(t, a, kube.Options{})
	if err != nil || !strings.Contains(out, "ConfigSyntaxError /etc/csi-block/config.yaml") || strings.Contains(out, "csi-block v2.5.0 starting") || !slices.Contains(kinds, session.EvidenceRead) {
		t.Errorf("%v, journal %v:\n%s", err, kinds, out)
	}
}

func TestAutoRefusesAnUnknownFormat(t *testing.T) {
	t.Parallel()
	a := headless.Auto{Format: "yaml"}
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"yaml"`) {
		t.Errorf("error %v", err)
	}
}
