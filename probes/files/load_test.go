package files

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

const (
	nodeYAML = `apiVersion: v1
kind: Node
metadata:
  name: node-1
  creationTimestamp: "2026-07-01T00:00:00Z"
`
	podYAML = `apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  creationTimestamp: "2026-07-02T00:00:00Z"
spec:
  nodeName: node-1
`
	nodeJSON = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1","creationTimestamp":"2026-07-01T00:00:00Z"}}`
	podJSON  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","creationTimestamp":"2026-07-02T00:00:00Z"},"spec":{"nodeName":"node-1"}}`
)

// listYAML is what kubectl prints of several objects.
func listYAML(items ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nitems:\n")
	for _, i := range items {
		for n, line := range strings.Split(strings.TrimSuffix(i, "\n"), "\n") {
			prefix := "  "
			if n == 0 {
				prefix = "- "
			}
			b.WriteString(prefix + line + "\n")
		}
	}
	b.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return b.String()
}

// prettyJSON is the same as JSON, with kubectl's indentation.
func prettyJSON(items ...string) string {
	return "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n" + strings.Join(items, ",\n") + "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
}

func prettyNode(name string) string {
	return "        {\n            \"apiVersion\": \"v1\",\n            \"kind\": \"Node\",\n            \"metadata\": {\n                \"name\": \"" + name + "\",\n                \"creationTimestamp\": \"2026-07-01T00:00:00Z\"\n            }\n        }"
}

func utf16Bytes(s string, order binary.ByteOrder, mark bool) []byte {
	var b bytes.Buffer
	if mark {
		_ = binary.Write(&b, order, uint16(0xfeff))
	}
	_ = binary.Write(&b, order, utf16.Encode([]rune(s)))
	return b.Bytes()
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func tarOf(members ...string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		_ = w.WriteHeader(&tar.Header{Name: members[i], Mode: 0o600, Size: int64(len(members[i+1])), Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(members[i+1]))
	}
	_ = w.Close()
	return out.Bytes()
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func names(s *cluster.Snapshot) string {
	var out []string
	for _, n := range s.Nodes {
		out = append(out, n.Name)
	}
	for _, p := range s.Pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestLoadReadsWhateverKubectlPrints(t *testing.T) {
	t.Parallel()
	both := "node-1 shop/web-1"
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"one object as YAML":            {[]byte(nodeYAML), "node-1"},
		"one object as JSON":            {[]byte(nodeJSON), "node-1"},
		"documents":                     {[]byte("---\n" + nodeYAML + "---\n" + podYAML + "...\n"), both},
		"documents with comments":       {[]byte("# a\n---\n# b\n---\n" + nodeYAML + "--- # c\n" + podYAML), both},
		"a document on the separator":   {[]byte("--- " + nodeJSON + "\n---\n" + podYAML), both},
		"YAML and JSON documents":       {[]byte(nodeYAML + "---\n" + podJSON + "\n"), both},
		"JSON and YAML documents":       {[]byte(nodeJSON + "\n---\n" + podYAML), both},
		"YAML in flow style":            {[]byte("{apiVersion: v1, kind: Node, metadata: {name: node-1, creationTimestamp: \"2026-07-01T00:00:00Z\"}}\n"), "node-1"},
		"a List as YAML":                {[]byte(listYAML(nodeYAML, podYAML)), both},
		"a List with indented items":    {[]byte(strings.ReplaceAll(strings.ReplaceAll(listYAML(nodeYAML, podYAML), "\n- ", "\n  - "), "\n  kind", "\n    kind")), ""},
		"a List as JSON":                {[]byte(prettyJSON(nodeJSON, podJSON)), both},
		"a List on one line":            {[]byte(`{"apiVersion":"v1","items":[` + nodeJSON + "," + podJSON + `],"kind":"List"}`), both},
		"a typed list, kind first":      {[]byte(`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"node-1","creationTimestamp":"2026-07-01T00:00:00Z"}}]}`), "node-1"},
		"a typed list, kind last":       {[]byte(`{"apiVersion":"v1","items":[{"metadata":{"name":"node-1","creationTimestamp":"2026-07-01T00:00:00Z"}}],"kind":"NodeList"}`), "node-1"},
		"a typed list as YAML":          {[]byte("apiVersion: v1\nitems:\n- metadata:\n    name: node-1\n    creationTimestamp: \"2026-07-01T00:00:00Z\"\nkind: NodeList\n"), "node-1"},
		"lists one after the other":     {[]byte(prettyJSON(nodeJSON) + prettyJSON(podJSON)), both},
		"one object a line":             {[]byte(nodeJSON + "\n" + podJSON + "\n"), both},
		"one after the other":           {[]byte(nodeJSON + podJSON), both},
		"a JSON array":                  {[]byte("[" + nodeJSON + ", " + podJSON + "]"), both},
		"a list within a list":          {[]byte(prettyJSON(prettyJSON(nodeJSON), podJSON)), both},
		"items in flow style":           {[]byte("apiVersion: v1\nkind: List\nitems: [" + nodeJSON + ", " + podJSON + "]\n"), both},
		"Windows line ends, YAML":       {[]byte(strings.ReplaceAll(listYAML(nodeYAML, podYAML), "\n", "\r\n")), both},
		"Windows line ends, documents":  {[]byte(strings.ReplaceAll(nodeYAML+"---\n"+podYAML, "\n", "\r\n")), both},
		"Windows line ends, JSON":       {[]byte(strings.ReplaceAll(prettyJSON(nodeJSON, podJSON), "\n", "\r\n")), both},
		"a byte order mark":             {[]byte("\ufeff" + listYAML(nodeYAML, podYAML)), both},
		"a byte order mark before JSON": {[]byte("\ufeff" + nodeJSON), "node-1"},
		"UTF-16, little endian":         {utf16Bytes(listYAML(nodeYAML, podYAML), binary.LittleEndian, true), both},
		"UTF-16, big endian":            {utf16Bytes(prettyJSON(nodeJSON, podJSON), binary.BigEndian, true), both},
		"UTF-16 without a mark":         {utf16Bytes(prettyJSON(nodeJSON, podJSON), binary.LittleEndian, false), both},
		"gzip":                          {gz([]byte(listYAML(nodeYAML, podYAML))), both},
		"gzip twice":                    {gz(gz([]byte(nodeJSON))), "node-1"},
		"tar":                           {tarOf("a/nodes.json", nodeJSON, "a/readme.txt", "no object", "a/pods.yaml", podYAML), both},
		"tar.gz":                        {gz(tarOf("nodes.json", nodeJSON, "shop/pods.yaml.gz", string(gz([]byte(podYAML))))), both},
		"a dump on standard output":     {[]byte(prettyJSON(nodeJSON) + "==== START logs for container a of pod shop/web-1 ====\n{\"level\": \"info\"\n--- x\n==== END logs for container a of pod shop/web-1 ====\n" + prettyJSON(podJSON)), both},
		"no line end at the end":        {[]byte(strings.TrimSuffix(nodeYAML, "\n")), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.want == "" {
				tt.content = []byte("apiVersion: v1\nkind: List\nitems:\n  - " + strings.ReplaceAll(strings.TrimSuffix(nodeYAML, "\n"), "\n", "\n    ") + "\n\n  # a comment\n  - " + strings.ReplaceAll(strings.TrimSuffix(podYAML, "\n"), "\n", "\n    ") + "\n")
				tt.want = both
			}
			s, stats, err := Load(context.Background(), []string{write(t, "input", tt.content)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(s); got != tt.want {
				t.Errorf("read %q, want %q", got, tt.want)
			}
			if len(stats.Problems) > 0 {
				t.Errorf("problems: %v", stats.Problems)
			}
		})
	}
}

func TestLoadSaysWhereAndGoesOn(t *testing.T) {
	t.Parallel()
	node2 := strings.ReplaceAll(nodeYAML, "node-1", "node-2")
	for name, tt := range map[string]struct {
		content string
		line    int
		why     string
		want    string
	}{
		"a broken document":         {nodeYAML + "---\nkind: Pod\n  bad: [\n---\n" + podYAML, 8, "not valid YAML", "node-1 shop/web-1"},
		"a broken item":             {listYAML(nodeYAML, "apiVersion: v1\nkind: Node\nmetadata: {name: x", podYAML), 0, "not valid YAML", "node-1 shop/web-1"},
		"a field of the wrong type": {nodeYAML + "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers: many\n---\n" + podYAML, 7, "not a valid Pod", "node-1 shop/web-1"},
		"no kind":                   {nodeYAML + "---\nfoo: bar\n", 7, "no kind", "node-1"},
		"no name":                   {nodeYAML + "---\napiVersion: v1\nkind: Pod\n", 7, "without a name", "node-1"},
		"a text":                    {nodeYAML + "---\nError from server\n", 7, "not a Kubernetes object", "node-1"},
		"an error of the server":    {nodeJSON + "\n" + `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden"}`, 2, "pods is forbidden", "node-1"},
		"a truncated list, YAML":    {strings.Split(listYAML(nodeYAML, node2, podYAML), "  spec")[0], 13, "truncated", "node-1 node-2"},
		"a truncated list, JSON":    {prettyJSON(nodeJSON, podJSON)[:250], 0, "truncated", "node-1"},
		"a truncated line":          {nodeJSON + "\n" + podJSON[:60], 2, "truncated", "node-1"},
		"a broken line":             {nodeJSON + "\n{\"a\": }\n" + podJSON + "\n", 2, "not valid JSON", "node-1 shop/web-1"},
		"a broken item, JSON":       {prettyJSON(prettyNode("node-1"), strings.Replace(prettyNode("node-2"), "\"name\":", "\"name\" \"x\":", 1), prettyNode("node-3")), 16, "not valid JSON", "node-1 node-3"},
		"a broken first item, JSON": {prettyJSON(strings.Replace(prettyNode("node-2"), "\"name\":", "\"name\" \"x\":", 1), prettyNode("node-3")), 8, "not valid JSON", "node-3"},
		"text between objects":      {nodeJSON + "\nCluster info dumped\n" + podJSON + "\n", 2, "not valid JSON", "node-1 shop/web-1"},
		"a report of our own":       {nodeYAML + "---\napiVersion: rollcall/v1\nkind: Report\n", 7, "report of this program", "node-1"},
		"a generator alone":         {nodeYAML + "---\napiVersion: rollcall/v1\nkind: Daemon\nname: x\n", 7, "outside a Case", "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, "input.yaml", []byte(tt.content))
			s, stats, err := Load(context.Background(), []string{file}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := names(s); got != tt.want {
				t.Errorf("read %q, want %q", got, tt.want)
			}
			if len(stats.Problems) != 1 {
				t.Fatalf("problems: %v, want one", stats.Problems)
			}
			p := stats.Problems[0]
			if p.File != file || !strings.Contains(p.Why, tt.why) || tt.line != 0 && p.Line != tt.line || p.Line == 0 {
				t.Errorf("problem %v, want line %d: …%s…", p, tt.line, tt.why)
			}
		})
	}
}

func TestLoadFailsWhereNothingIsReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		path string
		want string
	}{
		"no such file":    {filepath.Join(dir, "none.yaml"), "no such file"},
		"an empty file":   {write(t, "empty.yaml", nil), "no Kubernetes objects"},
		"an empty folder": {dir, "holds no .yaml"},
		"a picture":       {write(t, "a.png", []byte("\x89PNG\r\n\x1a\n\x00\x01")), "no Kubernetes objects"},
		"a zip archive":   {write(t, "a.zip", []byte("PK\x03\x04xx")), "unpack it"},
		"a cut gzip":      {write(t, "a.gz", gz([]byte(nodeYAML))[:12]), "ends early"},
		"Secrets alone":   {write(t, "s.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")), "Secrets"},
		"broken alone":    {write(t, "b.yaml", []byte("a: [")), "b.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(context.Background(), []string{tt.path}, Options{})
			if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want ErrNothing with %q", err, tt.want)
			}
		})
	}
}

func TestACutArchiveKeepsWhatCameBefore(t *testing.T) {
	t.Parallel()
	// Random bytes do not compress: the cut lies within the second member.
	noise := strings.Repeat("# ", 10) + fmt.Sprintf("%x", gz([]byte(strings.Repeat(podYAML, 50))))
	packed := gz(tarOf("nodes.json", nodeJSON, "pods.yaml", "# "+noise+"\n"+podYAML))
	s, stats, err := Load(context.Background(), []string{write(t, "dump.tar.gz", packed[:len(packed)-40])}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(s); !strings.HasPrefix(got, "node-1") || len(stats.Problems) == 0 {
		t.Errorf("read %q with problems %v, want node-1 and a problem", got, stats.Problems)
	}
}

func TestSecretsAreNeverKept(t *testing.T) {
	t.Parallel()
	const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n  namespace: shop\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{\"data\":{\"k\":\"aHVudGVyMg==\"}}'\ndata: {k: aHVudGVyMg==}\n"
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: conf\n  namespace: shop\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: aHVudGVyMg==, owner: me}\ndata: {k: aHVudGVyMg==}\n"
	s, stats, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(listYAML(nodeYAML, secret, configMap)))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Secrets != 1 || len(s.Others) != 1 || s.Others[0].Kind != "ConfigMap" || s.Others[0].Annotations["owner"] != "me" {
		t.Errorf("%d Secrets passed over, others %+v", stats.Secrets, s.Others)
	}
	if text := fmt.Sprintf("%+v", s.Others[0]); strings.Contains(text, "aHVudGVyMg") {
		t.Errorf("data was kept: %s", text)
	}
}

func TestOtherKindsAreCountedAndTheirMetadataKept(t *testing.T) {
	t.Parallel()
	policy := "apiVersion: policy.example/v1\nkind: NetworkRule\nmetadata: {name: a, creationTimestamp: \"2026-07-02T00:00:00Z\"}\nspec: {deep: [1, 2]}\n"
	s, stats, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(nodeYAML+"---\n"+policy))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.MetadataOnly["NetworkRule"] != 1 || len(s.Others) != 1 || s.Others[0].APIVersion != "policy.example/v1" || s.Others[0].Name != "a" {
		t.Errorf("counted %v, kept %+v", stats.MetadataOnly, s.Others)
	}
}

func TestFieldsOfNewerServersArePassedOver(t *testing.T) {
	t.Parallel()
	newer := strings.Replace(podYAML, "spec:\n", "spec:\n  quantumScheduling: {qubits: 3}\n", 1)
	s, stats, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(newer))}, Options{})
	if err != nil || len(stats.Problems) > 0 || len(s.Pods) != 1 || s.Pods[0].Spec.NodeName != "node-1" {
		t.Errorf("%v, problems %v", err, stats.Problems)
	}
}

func TestTheNewestCopyOfAnObjectStays(t *testing.T) {
	t.Parallel()
	pod := func(version, node string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: a, resourceVersion: %q, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nspec: {nodeName: %s}\n", version, node)
	}
	for name, tt := range map[string]struct{ first, second, want string }{
		"newer last":      {pod("9", "old"), pod("10", "new"), "new"},
		"newer first":     {pod("10", "new"), pod("9", "old"), "new"},
		"equal: the last": {pod("9", "old"), pod("9", "new"), "new"},
		"no versions":     {pod("", "old"), pod("", "new"), "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, stats, err := Load(context.Background(), []string{write(t, "1.yaml", []byte(tt.first)), write(t, "2.yaml", []byte(tt.second))}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Pods) != 1 || s.Pods[0].Spec.NodeName != tt.want || stats.Duplicates != 1 {
				t.Errorf("%d Pods, on %s, %d duplicates; want one on %s", len(s.Pods), s.Pods[0].Spec.NodeName, stats.Duplicates, tt.want)
			}
		})
	}
}

func TestEventsOfBothAPIsAreOne(t *testing.T) {
	t.Parallel()
	const event = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"p.1","namespace":"a","creationTimestamp":"2026-07-01T00:00:00Z"},
"eventTime":"2026-07-01T00:00:00.000000Z","series":{"count":4,"lastObservedTime":"2026-07-01T00:05:00.000000Z"},"reportingController":"default-scheduler","reportingInstance":"s-1",
"reason":"FailedScheduling","regarding":{"kind":"Pod","namespace":"a","name":"p","uid":"u"},"note":"0/3 nodes are available","type":"Warning"}`
	s, _, err := Load(context.Background(), []string{write(t, "e.json", []byte(event))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := s.EventsOf("Pod", "a", "p")
	if len(got) != 1 || got[0].Message != "0/3 nodes are available" || got[0].Series.Count != 4 || cluster.EventSource(got[0]) != "default-scheduler" {
		t.Fatalf("events: %+v", got)
	}
	if want := time.Date(2026, 7, 1, 0, 5, 0, 0, time.UTC); !s.AsOf.Equal(want) {
		t.Errorf("AsOf %v, want the scheduler's %v", s.AsOf, want)
	}
}

func TestFoldersArchivesAndStandardInputTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"nodes.json": prettyJSON(nodeJSON), "kube-system/pods.json": prettyJSON(podJSON), "kube-system/web-1/logs.txt": "not: [an object",
		".git/config.yaml": "a: [", "answer.yaml": "attribution: Healthy\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := strings.NewReader(strings.ReplaceAll(nodeYAML, "node-1", "node-2"))
	s, stats, err := Load(context.Background(), []string{dir, "-"}, Options{Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(s); got != "node-1 node-2 shop/web-1" || len(stats.Problems) > 0 || stats.Files != 3 || stats.Skipped != 2 {
		t.Errorf("read %q, %+v", got, stats)
	}
	if _, stats, err = Load(context.Background(), []string{"-"}, Options{}); err == nil {
		t.Errorf("no standard input, but no error: %+v", stats)
	}
}

func TestAbsentKindsWereNotReadAndEmptyListsWere(t *testing.T) {
	t.Parallel()
	s, _, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(listYAML(nodeYAML)+"---\napiVersion: apps/v1\nitems: []\nkind: DaemonSetList\n"))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[cluster.Resource]bool{cluster.Nodes: true, cluster.DaemonSets: true, cluster.Pods: false, cluster.Events: false, cluster.Leases: false} {
		if s.Read(r) != want {
			t.Errorf("Read(%s) = %v, want %v", r, !want, want)
		}
	}
	for _, n := range s.NotRead {
		if n.Reason != "Absent" {
			t.Errorf("%s: reason %s", n.Resource, n.Reason)
		}
	}
	if s.PodScope.All || s.AllLeases || s.Source.Type != "files" {
		t.Errorf("scope %+v, leases %v, source %+v", s.PodScope, s.AllLeases, s.Source)
	}
}

func TestPodsOfNamespacesThatWereNotReadAreUnknown(t *testing.T) {
	t.Parallel()
	ds := func(ns string, n int) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: %s, uid: %s, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nstatus: {currentNumberScheduled: %d, desiredNumberScheduled: %d, numberMisscheduled: 0, numberReady: 0}\n", ns, ns, n, n)
	}
	s, _, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(listYAML(podYAML, ds("shop", 1), ds("logging", 3), ds("idle", 0))))}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !s.PodsKnown("shop") || s.PodsKnown("logging") || !s.PodsKnown("idle") {
		t.Errorf("known: shop %v, logging %v, idle %v", s.PodsKnown("shop"), s.PodsKnown("logging"), s.PodsKnown("idle"))
	}
	s, _, err = Load(context.Background(), []string{write(t, "a.yaml", []byte(listYAML(podYAML, ds("shop", 1))))}, Options{})
	if err != nil || !s.PodScope.All {
		t.Errorf("all Pods are there, but the scope is %+v (%v)", s.PodScope, err)
	}
}

func TestServerVersionIsTakenFromKubectlVersion(t *testing.T) {
	t.Parallel()
	s, _, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(nodeYAML+"---\nclientVersion: {gitVersion: v1.36.0}\nserverVersion: {gitVersion: v1.37.2}\n"))}, Options{})
	if err != nil || s.Source.Version != "v1.37.2" {
		t.Errorf("version %q, %v", s.Source.Version, err)
	}
}

func TestLoadCanBeInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Load(ctx, []string{write(t, "a.yaml", []byte(nodeYAML))}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
