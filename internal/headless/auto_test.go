package headless_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/runbook/library"
)

// played is a practice cluster with a live snapshot of it.
type played struct {
	*practice.Cluster
	source *watch.Source
}

func (p played) Settle(ctx context.Context) (*cluster.Snapshot, error) {
	return p.source.Settle(ctx, p.Bookmark())
}

// auto plays an incident as the program does; bend may change what it plays with.
func auto(t *testing.T, name string, seed int64, format string, lesson headless.Lesson, bend func(*incident.Config)) (string, error) {
	t.Helper()
	c, err := practice.Start(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	conn, err := kube.New(c.Config(), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	source := watch.New(watch.Config{Conn: conn, Type: "practice", Now: c.Now})
	t.Cleanup(source.Close)
	var names []string
	for n := range probes.Probes {
		names = append(names, n)
	}
	books, err := library.Load(names, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := incident.Config{API: conn.API(), Clock: c, Books: books, Want: func(k report.WorkloadKey) {
		source.Want(watch.Workload{Kind: string(k.Kind), Namespace: string(k.Namespace), Name: string(k.Name)})
	}}
	if bend != nil {
		bend(&cfg)
	}
	var out bytes.Buffer
	lesson.Incident, lesson.Seed = name, seed
	a := headless.Auto{Practice: played{c, source}, Loop: incident.New(cfg), Lesson: lesson, Format: format, Out: &out}
	err = a.Run(t.Context())
	return out.String(), err
}

var cniCascade = headless.Lesson{Attribution: report.RolloutBreaksNodes, Workload: report.WorkloadKey{Kind: "DaemonSet", Namespace: "kube-system", Name: "calico-node"}}

func TestAutoMastersTheCNICascade(t *testing.T) {
	t.Parallel()
	out, err := auto(t, "cni-cascade", 1, "text", cniCascade, nil)
	t.Log(out)
	if err != nil {
		t.Fatalf("%v", err)
	}
	_, _, _, _, _, _ = bytes.Equal, json.Marshal, errors.Is, slices.Sort[[]int], strings.Contains, time.Second
}
