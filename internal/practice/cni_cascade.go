package practice

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// The dead node of these incidents, and what the bad release brings.
const deadNode = "worker-5"

var (
	agentV3    = registry("calico/node", "v3.30.0")
	agentCNIV3 = registry("calico/cni", "v3.30.0")
)

// cniCascade: the new agent becomes Ready and a few seconds later its config
// monitor replaces the node's CNI configuration by one that is not valid. The
// kubelet lives, so the node says Ready=False, and the agent's own Pod, on the host
// network, stays Ready: nothing brakes the rollout.
func cniCascade() Incident {
	return Incident{
		Name:    DefaultIncident,
		Title:   "Nodes go NotReady one after another while the network agent is updated",
		Teaches: "A rollout whose Pods all look Ready can take every node down: freeze first, roll the template back, prove it on one node, then the rest. A Helm release owns the agent: what was put back by hand lasts until its next upgrade.",
		Verdict: "RolloutBreaksNodes", Culprit: "DaemonSet/kube-system/calico-node",
		programs: map[string]sim.Program{
			agentCNIV3: goodInstaller(),
			agentV3: goodAgent().With(sim.BreaksCNI(sim.Between(3*time.Second, 9*time.Second),
				`$TIME [ERROR][61] cni-config-monitor/monitor.go: replaced /host/etc/cni/net.d/10-calico.conflist: plugin "calico-nft": unsupported cniVersion "1.2.0"`)),
		},
		build: func(s *stage) error {
			s.install()
			s.loseWorker()
			s.wake()
			s.updateExporter(20 * time.Second)
			s.updateAgent(40*time.Second, func(ds *appsv1.DaemonSet) {
				image(ds, "install-cni", agentCNIV3)
				image(ds, agent, agentV3)
				env(ds, "FELIX_NFTABLESMODE", "Enabled")
			})
			return s.err
		},
	}
}

// loseWorker takes a worker down the day before. Somebody took it out of
// monitoring, and left the rest as it was.
func (s *stage) loseWorker() {
	s.lose(22*time.Hour, deadNode)
	s.before(21 * time.Hour)
	s.relabel("kubectl-label", deadNode, func(l map[string]string) { delete(l, scraped) })
	s.before(21*time.Hour - 2*time.Minute)
	s.forceDelete(deadNode, "monitoring", labelled("node-exporter"))
}

// updateExporter is the innocent rollout: over the same nodes in the same minutes.
func (s *stage) updateExporter(at time.Duration) {
	s.upgrade(at, "argocd-controller", "monitoring", "node-exporter", func(ds *appsv1.DaemonSet) { image(ds, "node-exporter", exporterV2) })
}

// updateAgent is a Helm upgrade of the network agent.
func (s *stage) updateAgent(at time.Duration, edit func(*appsv1.DaemonSet)) {
	s.upgrade(at, "helm", metav1.NamespaceSystem, agent, edit)
}
