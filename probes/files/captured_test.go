package files

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

const (
	captureJSON = `{"apiVersion":"rollcall/v1","kind":"Capture","capturedAt":"2026-07-03T10:26:00.5Z","context":"prod","serverVersion":"v1.37.2","newField":{"a":1},
"read":[{"resource":"nodes","objects":1},{"resource":"pods","objects":0},{"resource":"daemonsets","objects":1}],
"notRead":[{"resource":"configmaps","reason":"Forbidden"},{"resource":"leases","namespace":"kube-system","reason":"Failed","detail":"500"}]}` + "\n"
	narrowJSON = `{"apiVersion":"rollcall/v1","kind":"Capture","capturedAt":"2026-07-03T10:20:00Z","namespace":"shop","read":[{"resource":"pods","objects":1}],"notRead":[]}` + "\n"
	// Its Pods are counted, and the input holds none.
	busyDaemon = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"ds","namespace":"shop","uid":"u1","creationTimestamp":"2026-07-01T00:00:00Z"},"status":{"currentNumberScheduled":3}}` + "\n"
	leaseJSON  = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-1","namespace":"kube-node-lease"},"spec":{"renewTime":"2026-07-03T10:30:00.000000Z"}}` + "\n"
)

func readAll(t *testing.T, o Options, parts ...string) *cluster.Snapshot {
	t.Helper()
	o.Stdin = strings.NewReader(strings.Join(parts, ""))
	s, stats, err := Load(t.Context(), []string{"-"}, o)
	if err != nil || len(stats.Problems) > 0 {
		t.Fatalf("%v, %v", err, stats.Problems)
	}
	return s
}

func TestACaptureIsReadAtItsMoment(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 3, 10, 26, 0, 500_000_000, time.UTC)
	if s := readAll(t, Options{}, nodeJSON+"\n", leaseJSON, captureJSON); !s.AsOf.Equal(at) || s.Source.Context != "prod" || s.Source.Version != "v1.37.2" || s.Source.Type != "files" {
		t.Errorf("as of %s from %+v", s.AsOf, s.Source)
	}
	if s := readAll(t, Options{}, narrowJSON, captureJSON, nodeJSON); !s.AsOf.Equal(at) {
		t.Errorf("of two captures the later one counts, not %s", s.AsOf)
	}
	given := at.Add(time.Minute)
	if s := readAll(t, Options{AsOf: given}, captureJSON, nodeJSON); !s.AsOf.Equal(given) {
		t.Errorf("what was asked for wins, not %s", s.AsOf)
	}
}

func TestACaptureTellsNoneFromNotRead(t *testing.T) {
	t.Parallel()
	s := readAll(t, Options{}, captureJSON, nodeJSON+"\n", leaseJSON)
	if !s.Read(cluster.Pods) || !s.PodScope.All {
		t.Error("Pods were read, and there were none")
	}
	if s.Read(cluster.DaemonSets) {
		t.Error("the file of the DaemonSets is missing: they were not read")
	}
	for _, want := range []cluster.NotRead{
		{Resource: cluster.ConfigMaps, Reason: "Forbidden"}, {Resource: cluster.Services, Reason: "Absent"},
		{Resource: cluster.Leases, Namespace: "kube-system", Reason: "Failed", Detail: "500"},
	} {
		if !slices.Contains(s.NotRead, want) {
			t.Errorf("%+v is not among %+v", want, s.NotRead)
		}
	}
	// What a colleague adds was read, whatever the capture could not do.
	s = readAll(t, Options{}, captureJSON, nodeJSON+"\n", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
	if !s.Read(cluster.ConfigMaps) {
		t.Error("ConfigMaps were given beside the capture")
	}
}

func TestACaptureSaysWhosePodsWereRead(t *testing.T) {
	t.Parallel()
	if s := readAll(t, Options{}, busyDaemon, podJSON+"\n"); s.PodScope.All != true {
		t.Error("without a capture it is a guess, and shop has a Pod here")
	}
	if s := readAll(t, Options{}, captureJSON, busyDaemon); !s.PodScope.All || !s.PodsKnown("u1") {
		t.Errorf("all Pods were read, though none was there: %+v, %+v", s.PodScope, s.NotRead)
	}
	if s := readAll(t, Options{}, narrowJSON, busyDaemon, podJSON); s.PodScope.All || !s.PodsKnown("u1") {
		t.Errorf("those of one namespace's workloads were read, on no node all: %+v", s.PodScope)
	}
}

func TestACaptureThatSaysNothingIsAProblem(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"apiVersion":"rollcall/v1","kind":"Capture"}`:                      "does not say when",
		`{"apiVersion":"rollcall/v1","kind":"Capture","capturedAt":"today"}`: "is not a valid Capture",
	} {
		_, stats, err := Load(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(nodeJSON + "\n" + doc)})
		if err != nil || len(stats.Problems) != 1 || stats.Problems[0].Line != 2 || !strings.Contains(stats.Problems[0].Why, want) {
			t.Errorf("%v, %v", err, stats.Problems)
		}
	}
}
