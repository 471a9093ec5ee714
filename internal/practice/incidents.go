package practice

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// cniCascadeUnknown: the new agent becomes Ready and later cuts its host's network.
// Nodes turn Unknown, their Pods are marked, and the rollout brakes by itself, but
// not before some more nodes were updated that are still to fall.
func cniCascadeUnknown() Incident {
	return Incident{
		Name:    "cni-cascade-unknown",
		Title:   "Nodes turn Unknown a minute after their network agent was updated",
		Teaches: "Unknown nodes brake the rollout, late; no undo reaches them, and they hold the budget that the others need.",
		Verdict: "RolloutBreaksNodes", Culprit: "DaemonSet/kube-system/calico-node",
		programs: map[string]sim.Program{
			agentCNIV3: goodInstaller(),
			agentV3: goodAgent().With(sim.CutsNetwork(sim.Between(12*time.Second, 20*time.Second),
				"$TIME [WARNING][61] felix/route_table.go: Deleting unexpected route to default gateway on $NODE")),
		},
		build: func(s *stage) error {
			s.install()
			s.before(2 * time.Hour)
			s.wake()
			s.updateExporter(20 * time.Second)
			s.updateAgent(40*time.Second, func(ds *appsv1.DaemonSet) {
				image(ds, "install-cni", agentCNIV3)
				image(ds, agent, agentV3)
				env(ds, "FELIX_REMOVEEXTERNALROUTES", "true")
			})
			return s.err
		},
	}
}

// imageMissing: the new revision names an image that is not there.
func imageMissing() Incident {
	missing := registry("storage/csi-block", "v2.5.O") // a letter for a digit
	return Incident{
		Name:    "image-missing",
		Title:   "A storage agent's rollout stands still at its first node",
		Teaches: "A new Pod that never starts halts a DaemonSet's rollout by itself; the nodes are fine, the revision is not.",
		Verdict: "RolloutBreaksPods", Culprit: "DaemonSet/storage/csi-block-node",
		programs: map[string]sim.Program{missing: sim.ImageMissing(missing)},
		build: func(s *stage) error {
			s.install()
			s.before(2 * time.Hour)
			s.wake()
			s.updateExporter(20 * time.Second)
			s.upgrade(40*time.Second, "helm", "storage", "csi-block-node", func(ds *appsv1.DaemonSet) { image(ds, "driver", missing) })
			return s.err
		},
	}
}

// configBroken: the new revision's program cannot read its configuration and ends,
// again and again. Only its log says so.
func configBroken() Incident {
	next := registry("storage/csi-block", "v2.5.0")
	return Incident{
		Name:    "config-broken",
		Title:   "A storage agent crashes again and again after its update",
		Teaches: "Exit code 1 says nothing; the container's log says what. The nodes are fine, the revision is not.",
		Verdict: "RolloutBreaksPods", Culprit: "DaemonSet/storage/csi-block-node",
		programs: map[string]sim.Program{next: sim.Fails(sim.Between(1500*time.Millisecond, 2500*time.Millisecond), 1).Logging(
			sim.LogLine{Text: "$TIME level=info msg=\"csi-block v2.5.0 starting\" node=$NODE"},
			sim.LogLine{After: time.Second, Text: `$TIME level=error msg="cannot start" error="parsing /etc/csi-block/config.yaml: yaml: line 7: did not find expected key"`},
		)},
		build: func(s *stage) error {
			s.install()
			s.before(2 * time.Hour)
			s.wake()
			s.updateExporter(20 * time.Second)
			s.upgrade(40*time.Second, "helm", "storage", "csi-block-node", func(ds *appsv1.DaemonSet) { image(ds, "driver", next) })
			return s.err
		},
	}
}

// deadNodesBlock: three nodes are dead for days, and one may be unavailable: the
// rollout never starts.
func deadNodesBlock() Incident {
	next := registry("calico/node", "v3.29.4")
	return Incident{
		Name:    "dead-nodes-block",
		Title:   "A rollout that never starts",
		Teaches: "Nodes that died days ago hold the whole budget: the rollout is innocent, and deleting their Pods does not help.",
		Verdict: "NodesBlockRollout", Culprit: "DaemonSet/kube-system/calico-node",
		programs: map[string]sim.Program{next: goodAgent()},
		build: func(s *stage) error {
			s.install()
			s.change("helm", metav1.NamespaceSystem, agent, func(ds *appsv1.DaemonSet) {
				one := intstr.FromInt32(1)
				ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &one
			})
			s.lose(75*time.Hour, "worker-2", "worker-6")
			s.lose(52*time.Hour, "worker-7")
			s.wake()
			s.updateAgent(30*time.Second, func(ds *appsv1.DaemonSet) { image(ds, agent, next) })
			return s.err
		},
	}
}
