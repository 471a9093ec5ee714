package capture_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

func TestMain(m *testing.M) {
	kube.QuietKlog(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// incident is a practice incident, so long after it began.
func incident(t *testing.T, name string, age time.Duration) (*practice.Cluster, *kube.Connection) {
	t.Helper()
	lab, err := practice.Start(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lab.Close)
	if err := lab.Step(practice.Epoch.Add(age)); err != nil {
		t.Fatal(err)
	}
	conn, err := kube.New(lab.Config(), kube.Options{Wall: lab.Now, ReadOnly: true, ReadOnlyWhy: "a capture only reads"})
	if err != nil {
		t.Fatal(err)
	}
	conn.Context = "arn:aws:eks:eu-1:1234:cluster/lab"
	if err := conn.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return lab, conn
}

func options(conn *kube.Connection, now func() time.Time) capture.Options {
	return capture.Options{Now: now, Context: conn.Context, ServerVersion: conn.Version(), Version: "test"}
}

func load(t *testing.T, path string) *cluster.Snapshot {
	t.Helper()
	s, stats, err := files.Load(t.Context(), []string{path}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(stats.Problems) > 0 || stats.Skipped > 0 {
		t.Errorf("the capture does not read as it should: %v, %d files skipped", stats.Problems, stats.Skipped)
	}
	return s
}

func TestACaptureGivesTheReportOfItsMoment(t *testing.T) {
	t.Parallel()
	for _, i := range practice.Incidents() {
		t.Run(i.Name, func(t *testing.T) {
			t.Parallel()
			lab, conn := incident(t, i.Name, 0)
			for _, age := range []time.Duration{2 * time.Minute, 5 * time.Minute} {
				if err := lab.Step(practice.Epoch.Add(age)); err != nil {
					t.Fatal(err)
				}
				snap, err := watch.New(watch.Config{Conn: conn, Now: lab.Now}).Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := probes.Diagnose(snap, probes.Options{}).Report
				for _, keepEnv := range []bool{false, true} {
					o := options(conn, lab.Now)
					o.KeepEnv = keepEnv
					got, err := capture.To(t.Context(), conn, filepath.Join(t.TempDir(), "x.tar.gz"), o)
					if err != nil {
						t.Fatal(err)
					}
					s := load(t, got.Path)
					if !s.AsOf.Equal(lab.Now()) || s.Source.Version != conn.Version() || s.Source.Context != conn.Context {
						t.Errorf("as of %s from %+v, the cluster is at %s", s.AsOf, s.Source, lab.Now())
					}
					diff(t, want, probes.Diagnose(s, probes.Options{}).Report, keepEnv)
				}
			}
		})
	}
}

// diff compares all of two reports but for where they come from, by which path the
// one who looks reaches the API server, how old a leader's Lease is (of files only
// which is older than another is known), what a live picture does not ask for while
// nothing fell lately and, where it was redacted, what the environment is.
func diff(t *testing.T, want, got *report.Report, keptEnv bool) {
	t.Helper()
	w, g := *want, *got // several are held against one
	want, got = &w, &g
	age := regexp.MustCompile(`(renewed its Lease) \d+s ago`)
	notAsked := map[report.StakeTopic]bool{}
	for _, s := range want.AtStake {
		notAsked[s.Topic] = strings.Contains(string(s.Text), "not asked for")
	}
	for _, r := range []*report.Report{want, got} {
		r.AtStake = slices.DeleteFunc(slices.Clone(r.AtStake), func(s report.Stake) bool { return s.Topic == report.StakeAPIPath || notAsked[s.Topic] })
		for i := range r.AtStake {
			r.AtStake[i].Text = report.Text(age.ReplaceAllString(string(r.AtStake[i].Text), "$1"))
		}
	}
	value := cmp.Transformer("value", func(s report.Text) string {
		if path, _, ok := strings.Cut(string(s), ".value: "); ok && strings.Contains(path, ".env[") && !keptEnv {
			return path
		}
		return string(s)
	})
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(report.Report{}, "Source"), cmpopts.EquateEmpty(), value); d != "" {
		t.Errorf("live and captured differ (- live, + captured):\n%s", d)
	}
}

func TestNarrowedToANamespaceItStillSeesTheNodes(t *testing.T) {
	t.Parallel()
	lab, conn := incident(t, practice.DefaultIncident, 4*time.Minute)
	snap, err := watch.New(watch.Config{Conn: conn, Now: lab.Now, Namespace: "kube-system"}).Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := options(conn, lab.Now)
	o.Namespace, o.KeepEnv = "kube-system", true
	got, err := capture.To(t.Context(), conn, filepath.Join(t.TempDir(), "x.tar.gz"), o)
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, got.Path)
	if s.PodScope.All || len(s.PodScope.Owners) == 0 || len(s.PodScope.Nodes) > 0 {
		t.Errorf("the Pods of other namespaces are unknown: %+v", s.PodScope)
	}
	for _, p := range s.Pods {
		if p.Namespace != "kube-system" {
			t.Fatalf("Pod %s/%s of another namespace", p.Namespace, p.Name)
		}
	}
	ns := probes.Options{Namespace: "kube-system"}
	live, captured := probes.Diagnose(snap, ns).Report, probes.Diagnose(s, ns).Report
	withoutStakes(live)
	withoutStakes(captured)
	diff(t, live, captured, true)
}

// withoutStakes leaves out what rests on the failing nodes: that is for the Pods of
// every namespace to tell, which the live snapshot reads and the capture does not.
func withoutStakes(r *report.Report) {
	r.AtStake = nil
	r.ClusterFindings = slices.DeleteFunc(r.ClusterFindings, func(f report.Finding) bool {
		return f.Code == report.EvictionPending || f.Code == report.ControlPlaneAtRisk
	})
}

func TestTheArchiveHoldsOneFileAKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("n1"))
	var out bytes.Buffer
	got, err := capture.Stream(t.Context(), w.connect(api.DefaultUser), &out, w.options())
	if err != nil {
		t.Fatal(err)
	}
	var listing strings.Builder
	for _, m := range members(t, out.Bytes()) {
		fmt.Fprintf(&listing, "%s %o %s\n", m.Name, m.Mode, m.ModTime.UTC().Format(time.RFC3339))
		if strings.HasSuffix(m.Name, capture.DocumentFile) {
			listing.Write(m.content)
		}
	}
	if got.Path != "" {
		t.Errorf("a stream has no path, %q", got.Path)
	}
	golden.RequireEqual(t, listing.String())
}

type archived struct {
	*tar.Header
	content []byte
}

// members are the files of an archive, in their order.
func members(t *testing.T, archive []byte) []archived {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var out []archived
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, archived{h, content})
	}
}
