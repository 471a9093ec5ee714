package probes_test

import (
	"encoding/json"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// TestCases holds the diagnosis against field cases: each folder under
// testdata/cases is what kubectl would have shown, and what is right about it.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, dir := range caseDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c, err := files.LoadCase(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			r := probes.Diagnose(c.Snapshot, probes.Options{}).Report
			all := probes.Diagnose(c.Snapshot, probes.Options{All: true}).Report
			k := checker{t, r, all}
			k.check(&c.Answer)
			if t.Failed() {
				short := *r
				short.ClusterFindings = nil
				for i := range short.Workloads {
					short.Workloads[i].Timeline = nil
				}
				raw, _ := json.MarshalIndent(short, "", " ")
				t.Logf("report: %s", raw)
			}
		})
	}
}

func caseDirs(t testing.TB) []string {
	t.Helper()
	dirs, err := files.Cases("testdata/cases")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases found: %v", err)
	}
	return dirs
}

type checker struct {
	*testing.T
	r, all *report.Report
}

func (k checker) equal(what, want string, got any) {
	k.Helper()
	if g := toString(got); want != "" && g != want {
		k.Errorf("%s: got %q, want %q", what, g, want)
	}
}

func toString(v any) string {
	raw, _ := json.Marshal(v)
	return strings.Trim(string(raw), `"`)
}

func (k checker) check(a *files.Answer) {
	v := &k.r.Verdict
	k.equal("attribution", a.Attribution, v.Attribution)
	k.equal("rootCause", a.RootCause, v.RootCause)
	if a.Confidence != "" && !v.Confidence.AtLeast(report.Confidence(a.Confidence)) {
		k.Errorf("confidence %s, want at least %s", v.Confidence, a.Confidence)
	}
	if a.AtMost != "" && !report.Confidence(a.AtMost).AtLeast(v.Confidence) {
		k.Errorf("confidence %s, want at most %s", v.Confidence, a.AtMost)
	}
	for _, code := range a.Contributing {
		if !slices.Contains(v.Contributing, report.Code(code)) {
			k.Errorf("contributing %v lacks %s", v.Contributing, code)
		}
	}
	if a.Workload != "" && v.Workload != "" {
		k.equal("verdict's workload", a.Workload, v.Workload)
	}
	if a.Workload != "" {
		w := k.workload(a.Workload)
		if w == nil {
			k.Errorf("workload %s does not exist", a.Workload)
			return
		}
		k.equal("state", a.State, w.Rollout.State)
		k.equal("mode", a.Mode, w.Rollout.Mode)
		k.equal("recommendation", a.Recommendation, w.Recommendation.Action)
		for _, first := range a.First {
			if !slices.Contains(w.Recommendation.First, report.RecommendedAction(first)) {
				k.Errorf("recommendation's first %v lacks %s", w.Recommendation.First, first)
			}
		}
	}
	for _, e := range a.Findings {
		if !k.found(e) {
			k.Errorf("finding missing: %+v", e)
		}
	}
	for _, e := range a.Absent {
		if k.found(e) {
			k.Errorf("finding that must not be there: %+v", e)
		}
	}
	raw, _ := json.Marshal(k.r)
	text := string(raw)
	for _, s := range a.Says {
		if !strings.Contains(text, s) {
			k.Errorf("nothing says %q", s)
		}
	}
	for _, s := range a.Silent {
		if strings.Contains(text, s) {
			k.Errorf("something says %q", s)
		}
	}
	for key, want := range a.Workloads {
		w := k.workload(key)
		if w == nil {
			k.Errorf("workload %s does not exist", key)
			continue
		}
		k.equal(key+": attribution", want.Attribution, w.Verdict.Attribution)
		k.equal(key+": rootCause", want.RootCause, w.Verdict.RootCause)
		k.equal(key+": state", want.State, w.Rollout.State)
		if slices.Contains(want.Not, string(w.Verdict.Attribution)) {
			k.Errorf("%s is %s", key, w.Verdict.Attribution)
		}
	}
	if a.Quiet {
		k.quiet()
	}
	k.evidence()
}

// quiet checks that nothing is found above info.
func (k checker) quiet() {
	see := func(f report.Finding) {
		if f.Severity != report.Info {
			k.Errorf("%s %s about %v, where nobody should be woken", f.Severity, f.Code, f.Object)
		}
	}
	for _, w := range k.all.Workloads {
		if a := w.Verdict.Attribution; a != report.Healthy && a != report.WaitingForOperator {
			k.Errorf("%s is %s, where nobody should be woken", w.Key(), a)
		}
		for _, f := range w.Findings {
			see(f)
		}
	}
	for _, f := range k.all.ClusterFindings {
		see(f)
	}
}

// evidence checks what holds for every report: known codes, each with evidence.
func (k checker) evidence() {
	see := func(f report.Finding) {
		if !f.Code.Known() {
			k.Errorf("unknown code %q", f.Code)
		}
		if len(f.Evidence) == 0 {
			k.Errorf("%s about %v carries no evidence", f.Code, f.Object)
		}
	}
	for _, w := range k.all.Workloads {
		for _, f := range w.Findings {
			see(f)
		}
		if w.Verdict.RootCause != "" && !w.Verdict.RootCause.Known() {
			k.Errorf("unknown root cause %q", w.Verdict.RootCause)
		}
	}
	for _, f := range k.all.ClusterFindings {
		see(f)
	}
}

func (k checker) workload(key string) *report.Workload {
	for i := range k.all.Workloads {
		if k.all.Workloads[i].Key().String() == key {
			return &k.all.Workloads[i]
		}
	}
	return nil
}

func (k checker) found(e files.Expect) bool {
	in := func(list []report.Finding) bool {
		return slices.ContainsFunc(list, func(f report.Finding) bool {
			if string(f.Code) != e.Code || e.Node != "" && string(f.Node) != e.Node || e.Severity != "" && string(f.Severity) != e.Severity {
				return false
			}
			if e.Object != "" {
				id := string(f.Object.Kind) + "/" + string(f.Object.Namespace) + "/" + string(f.Object.Name)
				if f.Object.Namespace == "" {
					id = string(f.Object.Kind) + "/" + string(f.Object.Name)
				}
				if ok, _ := path.Match(e.Object, id); !ok {
					return false
				}
			}
			return e.Says == "" || strings.Contains(toString(f), e.Says)
		})
	}
	if (e.Workload == "" || e.Workload == "cluster") && in(k.r.ClusterFindings) {
		return true
	}
	for i := range k.r.Workloads {
		w := &k.r.Workloads[i]
		if (e.Workload == "" || w.Key().String() == e.Workload) && in(w.Findings) {
			return true
		}
	}
	return false
}

// TestOrderOfInputNeverChangesTheReport shuffles every list of every case.
func TestOrderOfInputNeverChangesTheReport(t *testing.T) {
	t.Parallel()
	for _, dir := range caseDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c, err := files.LoadCase(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			want := probes.Diagnose(c.Snapshot, probes.Options{All: true}).Report
			rnd := rand.New(rand.NewPCG(1, 2))
			o := c.Snapshot.Objects
			shuffle(rnd, &o.Nodes)
			shuffle(rnd, &o.Pods)
			shuffle(rnd, &o.DaemonSets)
			shuffle(rnd, &o.Deployments)
			shuffle(rnd, &o.ReplicaSets)
			shuffle(rnd, &o.ControllerRevisions)
			shuffle(rnd, &o.Events)
			shuffle(rnd, &o.Leases)
			got := probes.Diagnose(cluster.New(o, c.Snapshot.Meta), probes.Options{All: true}).Report
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("the order of the input shows:\n%s", d)
			}
		})
	}
}

func shuffle[T any](r *rand.Rand, s *[]T) {
	c := slices.Clone(*s)
	r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
	*s = c
}
