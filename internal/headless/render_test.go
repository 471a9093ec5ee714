package headless

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

func rendered(t *testing.T, r *report.Report, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoldenReports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r *report.Report
		o Options
	}{
		"text":         {sample(), Options{Format: Text}},
		"text-colour":  {sample(), Options{Format: Text, Colour: true}},
		"text-healthy": {quiet(), Options{Format: Text}},
		"markdown":     {sample(), Options{Format: Markdown}},
		"json":         {sample(), Options{Format: JSON}},
		"yaml":         {sample(), Options{Format: YAML}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.RequireEqual(t, rendered(t, tt.r, tt.o))
		})
	}
}

func TestTextFitsItsWidthWhateverTheNames(t *testing.T) {
	t.Parallel()
	long := sample()
	long.Workloads[0].Name = report.Text(strings.Repeat("long-name-", 25))
	long.Workloads[0].Findings[0].Evidence[0].Value = report.Text(strings.Repeat("x", 300))
	long.Recommendation.Reachable = nodes(strings.Repeat("node.", 40)+"internal", "b")
	long.Verdict.Summary = "日本語の要約はそれぞれ二桁の幅を取るので、折り返しは文字数ではなく幅で数えなければならない。日本語の要約はそれぞれ二桁の幅を取る"
	for _, width := range []int{0, 60, 80, 120} {
		for i, line := range strings.Split(rendered(t, long, Options{Format: Text, Width: width}), "\n") {
			most := width
			if width == 0 {
				most = 80
			}
			if w := ansi.StringWidth(line); w > most {
				t.Errorf("width %d: line %d takes %d columns: %s", width, i+1, w, line)
			}
		}
	}
}

func TestNamesAreNotBrokenAtHyphens(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Workloads[0].Measures.Clean = nodes("ip-10-0-1-1.example", "ip-10-0-1-2.example", "ip-10-0-1-3.example", "ip-10-0-1-4.example", "ip-10-0-1-5.example")
	out := rendered(t, r, Options{Format: Text})
	for _, name := range r.Workloads[0].Measures.Clean {
		if !strings.Contains(out, string(name)) {
			t.Errorf("%s was broken across lines", name)
		}
	}
}

func TestColourCarriesNoMeaningOfItsOwn(t *testing.T) {
	t.Parallel()
	plain, coloured := rendered(t, sample(), Options{Format: Text}), rendered(t, sample(), Options{Format: Text, Colour: true})
	if plain == coloured {
		t.Error("colour was asked for and there is none")
	}
	if diff := cmp.Diff(plain, ansi.Strip(coloured)); diff != "" {
		t.Errorf("without its colours the text differs: %s", diff)
	}
	if strings.Contains(plain, "\x1b") {
		t.Error("escape sequences where none were asked for")
	}
}

// findingsSample is the document that is promised to programs; values are of no
// account, names and types are.
const findingsSample = `{
  "apiVersion": "rollcall/v1", "kind": "Report", "generatedAt": "2026-07-03T10:26:00Z", "asOf": "2026-07-03T10:25:58Z",
  "source": {"type": "cluster", "context": "prod-eu-1", "server": "https://10.0.0.1:6443", "version": "v1.37.2"},
  "nodes": {"total": 12, "ready": 9, "notReady": 3, "unknown": 0, "cordoned": 0},
  "workloads": [{
      "kind": "DaemonSet", "namespace": "kube-system", "name": "calico-node",
      "rollout": {"state": "Stuck", "strategy": "RollingUpdate", "maxUnavailable": "25%", "maxUnavailableResolved": 3, "maxSurge": "0",
                  "revision": 7, "previousRevision": 6, "knownGoodRevision": 6, "changedBy": "helm",
                  "desired": 12, "updated": 3, "ready": 9, "available": 9, "startedAt": "x", "lastProgressAt": "x", "remaining": "",
                  "spreading": false, "brake": "3 of 3 unavailable Pods allowed", "notYetReached": 9},
      "verdict": {"attribution": "RolloutBreaksNodes", "rootCause": "InitContainerFailed", "contributing": ["NodeNetworkNotReady"], "confidence": "high",
                  "summary": "x", "for": ["x"], "against": ["x"], "missing": []},
      "findings": [{"code": "InitContainerFailed", "severity": "critical", "object": {"kind": "Pod", "namespace": "kube-system", "name": "x"},
         "node": "node-1", "since": "x", "summary": "x", "evidence": [{"source": "x", "value": "x", "at": "x"}]}],
      "recommendation": {"action": "RollBack", "toRevision": 6, "why": "x", "first": ["SwitchToOnDelete"], "reachable": ["node-1"], "unreachable": []}
  }],
  "verdict": {"attribution": "RolloutBreaksNodes", "workload": "DaemonSet/kube-system/calico-node", "rootCause": "InitContainerFailed", "confidence": "high", "summary": "x"},
  "clusterFindings": [{"code": "NodeNetworkNotReady", "severity": "warning", "object": {"kind": "Node", "name": "node-1"}, "node": "node-1", "since": "x", "summary": "x", "evidence": [{"source": "x", "value": "x", "at": "x"}]}],
  "notRead": [{"resource": "services", "namespace": "", "reason": "Forbidden"}]
}`

// shape reports where got lacks what the sample has, or has it of another type.
func shape(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %T, want a mapping", path, got)
			return
		}
		for k, v := range want {
			if _, ok := m[k]; !ok {
				t.Errorf("%s.%s is missing", path, k)
				continue
			}
			shape(t, path+"."+k, v, m[k])
		}
	case []any:
		l, ok := got.([]any)
		if !ok {
			t.Errorf("%s is %T, want a list", path, got)
		} else if len(want) > 0 && len(l) > 0 {
			shape(t, path+"[0]", want[0], l[0])
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			t.Errorf("%s is %T, want %T", path, got, want)
		}
	}
}

func decoded(t *testing.T, raw string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJSONHasTheShapeThatIsPromised(t *testing.T) {
	t.Parallel()
	shape(t, "report", decoded(t, findingsSample), decoded(t, rendered(t, sample(), Options{Format: JSON})))
}

func TestListsAreNeverNullInJSON(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Workloads = append(r.Workloads, report.Workload{Measures: &report.Measures{}, Timeline: &report.Timeline{Lanes: []report.Lane{{}}}, Findings: []report.Finding{{}}})
	r.ClusterFindings = append(r.ClusterFindings, report.Finding{})
	for _, in := range []*report.Report{r, quiet(), {}} {
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for k, e := range v {
					walk(path+"."+k, e)
				}
			case []any:
				for _, e := range v {
					walk(path+"[]", e)
				}
			case nil:
				for _, allowed := range []string{"evision", "changedBy", ".startedAt", ".lastProgressAt", ".since", ".at", "At", "asOf", "coverage", "attack", "background", "reverse", "riskDifference", "fisherP", "spread", "simultaneous", ".from", ".to"} {
					if strings.HasSuffix(path, allowed) {
						return
					}
				}
				t.Errorf("%s is null", path)
			}
		}
		walk("", decoded(t, rendered(t, in, Options{Format: JSON})))
	}
}

func TestYAMLSaysTheSameAsJSON(t *testing.T) {
	t.Parallel()
	raw, err := yaml.YAMLToJSON([]byte(rendered(t, sample(), Options{Format: YAML})))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, rendered(t, sample(), Options{Format: JSON})), decoded(t, string(raw))); diff != "" {
		t.Error(diff)
	}
}

func TestAStreamOfReportsHasOneOnALine(t *testing.T) {
	t.Parallel()
	out := rendered(t, sample(), Options{Format: JSONLine})
	if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
		t.Errorf("%d line ends", strings.Count(out, "\n"))
	}
	if diff := cmp.Diff(decoded(t, rendered(t, sample(), Options{Format: JSON})), decoded(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestRenderingLeavesTheReportAsItIs(t *testing.T) {
	t.Parallel()
	r := sample()
	for _, f := range []Format{Text, JSON, YAML, Markdown, JSONLine} {
		rendered(t, r, Options{Format: f})
	}
	if diff := cmp.Diff(sample(), r); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdownMakesNothingOfHostileText(t *testing.T) {
	t.Parallel()
	r := sample()
	hostile := report.Clean("`rm` **bold** [link](https://evil.example) <img src=x> | cell | # head @everyone ~~x~~ \\ &amp;")
	r.Workloads[0].Findings[0].Summary = hostile
	r.Verdict.Summary = hostile
	r.Workloads[0].Verdict.For = []report.Text{hostile}
	out := rendered(t, r, Options{Format: Markdown})
	for _, bad := range []string{"<img", "**bold**", "[link]", "@everyone", "~~x~~", " | cell", "`rm`"} {
		for _, line := range strings.Split(out, "\n") {
			if i := strings.Index(line, bad); i >= 0 && (i == 0 || line[i-1] != '\\') {
				t.Errorf("%q is alive in: %s", bad, line)
			}
		}
	}
}

func TestAReportThatIsNotCompleteSaysSo(t *testing.T) {
	t.Parallel()
	r := quiet()
	r.Waiting = nodes("pods", "events")
	for _, f := range []Format{Text, Markdown} {
		if out := rendered(t, r, Options{Format: f}); !strings.Contains(strings.ToLower(out), "not final") || !strings.Contains(out, "pods, events") {
			t.Errorf("%s does not say what it still waits for:\n%s", f, out)
		}
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for _, s := range Formats {
		if f, err := ParseFormat(s); err != nil || string(f) != s {
			t.Errorf("%s: %v, %v", s, f, err)
		}
	}
	for _, s := range []string{"", "xml", "JSON", "ndjson"} {
		if _, err := ParseFormat(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken pipe")

func TestRenderReportsAFailedWrite(t *testing.T) {
	t.Parallel()
	if err := Render(broken{}, sample(), Options{Format: JSON}); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}
