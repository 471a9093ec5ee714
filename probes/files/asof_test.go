package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// at is a moment of the day that the inputs below are about.
func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-07-03T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// beating is a node whose kubelet last wrote at that moment, in its heartbeat.
func beating(name, clock string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, creationTimestamp: "2026-07-01T00:00:00Z"}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %[1]s, namespace: kube-node-lease, creationTimestamp: "2026-07-01T00:00:00Z"}
spec: {renewTime: "2026-07-03T%[2]s.000000Z"}
`, name, clock)
}

func TestAsOfIsTheLatestMomentThatTheInputVouchesFor(t *testing.T) {
	t.Parallel()
	three := beating("a", "10:00:00") + beating("b", "10:00:04") + beating("c", "10:00:09")
	pod := func(fields string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop, creationTimestamp: \"2026-07-01T00:00:00Z\"" + fields + "}\nspec: {nodeName: a}\n"
	}
	event := func(source, host, clock string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Event\nmetadata: {name: e, namespace: default, creationTimestamp: \"2026-07-01T00:00:00Z\"}\ninvolvedObject: {kind: Node, name: a}\nsource: {component: %q, host: %q}\nlastTimestamp: \"2026-07-03T%sZ\"\n", source, host, clock)
	}
	for name, tt := range map[string]struct {
		input string
		want  string
	}{
		"more than half of the nodes":                        {three, "10:00:04"},
		"half of the nodes is not enough":                    {beating("a", "10:00:00") + beating("b", "10:00:09"), "10:00:00"},
		"one clock is hours ahead":                           {three + beating("d", "18:00:00") + beating("e", "10:00:05"), "10:00:05"},
		"one node alone":                                     {beating("a", "10:00:00"), "10:00:00"},
		"a creation":                                         {three + strings.Replace(pod(""), "2026-07-01T00:00:00Z", "2026-07-03T10:30:00Z", 1), "10:30:00"},
		"a deletion, minus its grace":                        {three + pod(`, deletionTimestamp: "2026-07-03T10:30:30Z", deletionGracePeriodSeconds: 30`), "10:30:00"},
		"managed fields":                                     {three + pod(`, managedFields: [{manager: m, operation: Update, time: "2026-07-03T10:31:00Z"}]`), "10:31:00"},
		"a Lease of the control plane":                       {three + "---\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: kube-scheduler, namespace: kube-system, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nspec: {renewTime: \"2026-07-03T10:32:00.000000Z\"}\n", "10:32:00"},
		"a Lease of somebody else's":                         {three + "---\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: x, namespace: shop, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nspec: {renewTime: \"2026-07-03T10:32:00.000000Z\"}\n", "10:00:04"},
		"a controller's event":                               {three + event("node-controller", "", "10:33:00"), "10:33:00"},
		"the scheduler's event":                              {three + event("default-scheduler", "", "10:33:00"), "10:33:00"},
		"a kubelet's event counts for its node":              {three + event("kubelet", "a", "10:33:00"), "10:00:09"},
		"an event of a program on some node counts for none": {three + event("my-agent", "", "10:33:00"), "10:00:04"},
		"a kubelet's condition":                              {three + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nstatus: {conditions: [{type: Ready, status: \"True\", lastHeartbeatTime: \"2026-07-03T10:34:00Z\", lastTransitionTime: \"2026-07-03T09:00:00Z\"}]}\n", "10:00:09"},
		"the node controller's condition":                    {three + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: \"2026-07-01T00:00:00Z\"}\nstatus: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, lastTransitionTime: \"2026-07-03T10:35:00Z\"}]}\n", "10:35:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := Load(context.Background(), []string{write(t, "a.yaml", []byte(tt.input))}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !s.AsOf.Equal(at(tt.want)) {
				t.Errorf("AsOf %s, want %s", s.AsOf.Format(time.TimeOnly), tt.want)
			}
		})
	}
}

func TestAsOfThatIsGivenWins(t *testing.T) {
	t.Parallel()
	file := write(t, "a.yaml", []byte(beating("a", "10:00:00")))
	s, _, err := Load(context.Background(), []string{file}, Options{AsOf: at("09:00:00"), Grace: 40 * time.Second})
	if err != nil || !s.AsOf.Equal(at("09:00:00")) || s.NodeGrace != 40*time.Second {
		t.Errorf("AsOf %v, grace %v, %v", s.AsOf, s.NodeGrace, err)
	}
}

func TestInputWithoutATimeAsksForOne(t *testing.T) {
	t.Parallel()
	file := write(t, "a.yaml", []byte("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"))
	if _, _, err := Load(context.Background(), []string{file}, Options{}); !errors.Is(err, ErrNoTime) {
		t.Errorf("error %v, want ErrNoTime", err)
	}
	if _, _, err := Load(context.Background(), []string{file}, Options{AsOf: at("09:00:00")}); err != nil {
		t.Error(err)
	}
}
