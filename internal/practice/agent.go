package practice

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// agent is the cluster's network agent: a DaemonSet in kube-system and its main
// container.
const agent = "calico-node"

// networkAgent is what installs the CNI configuration and programs the routes of
// every node: host network, privileged, with the host's network paths, on all nodes
// whatever their taints.
func networkAgent() *appsv1.DaemonSet {
	ds := daemonSet(metav1.NamespaceSystem, agent, 2, corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-node-critical", Tolerations: everything,
		NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},
		TerminationGracePeriodSeconds: seconds(10),
		InitContainers: []corev1.Container{{
			Name: "install-cni", Image: agentCNIV1, Command: []string{"/opt/cni/bin/install"}, SecurityContext: privileged(),
			Env:          []corev1.EnvVar{{Name: "CNI_CONF_NAME", Value: "10-calico.conflist"}},
			VolumeMounts: []corev1.VolumeMount{mount("cni-bin-dir", "/host/opt/cni/bin"), mount("cni-net-dir", "/host/etc/cni/net.d")},
		}},
		Containers: []corev1.Container{{
			Name: agent, Image: agentV1, SecurityContext: privileged(), Resources: requests("250m", "128Mi"),
			Env: []corev1.EnvVar{
				{Name: "CALICO_NETWORKING_BACKEND", Value: "bird"}, {Name: "CLUSTER_TYPE", Value: "k8s,bgp"},
				{Name: "DATASTORE_TYPE", Value: "kubernetes"}, {Name: "FELIX_LOGSEVERITYSCREEN", Value: "Info"}, {Name: "IP", Value: "autodetect"},
			},
			LivenessProbe:  execProbe(10, "/bin/calico-node", "-felix-live", "-bird-live"),
			ReadinessProbe: execProbe(10, "/bin/calico-node", "-felix-ready", "-bird-ready"),
			VolumeMounts: []corev1.VolumeMount{
				mount("lib-modules", "/lib/modules"), mount("xtables-lock", "/run/xtables.lock"), mount("var-run-calico", "/var/run/calico"),
				mount("var-lib-calico", "/var/lib/calico"), mount("cni-net-dir", "/host/etc/cni/net.d"),
			},
		}},
		Volumes: []corev1.Volume{
			hostPath("lib-modules", "/lib/modules", ""), hostPath("xtables-lock", "/run/xtables.lock", corev1.HostPathFileOrCreate),
			hostPath("var-run-calico", "/var/run/calico", corev1.HostPathDirectoryOrCreate),
			hostPath("var-lib-calico", "/var/lib/calico", corev1.HostPathDirectoryOrCreate),
			hostPath("cni-bin-dir", "/opt/cni/bin", corev1.HostPathDirectoryOrCreate), hostPath("cni-net-dir", "/etc/cni/net.d", ""),
		},
	})
	ds.Spec.Template.Labels["k8s-app"] = agent
	releasedBy(ds, "calico")
	return ds
}

// goodInstaller is the init container that writes the node's CNI configuration.
func goodInstaller() sim.Program {
	return sim.Init(sim.Between(5*time.Second, 9*time.Second), sim.Between(1500*time.Millisecond, 2500*time.Millisecond)).
		With(sim.WritesCNI(sim.Between(500*time.Millisecond, 1200*time.Millisecond), "$TIME [INFO][1] cni-installer/<nil> <nil>: Wrote /host/etc/cni/net.d/10-calico.conflist")).
		Logging(sim.LogLine{Text: "$TIME [INFO][1] cni-installer/<nil> <nil>: Running as a Kubernetes pod on $NODE"})
}

// goodAgent is the agent itself; with old images it starts within ten seconds or
// so, with new ones within half a minute.
func goodAgent() sim.Program {
	return sim.Program{
		Pull: sim.Between(8*time.Second, 13*time.Second), ReadyAfter: sim.Between(8*time.Second, 12*time.Second),
		StopsIn: sim.Between(1200*time.Millisecond, 2400*time.Millisecond),
	}.Logging(
		sim.LogLine{Text: "$TIME [INFO][9] startup/startup.go: Using IPv4 address from environment on $NODE"},
		sim.LogLine{After: 2 * time.Second, Text: "$TIME [INFO][57] felix/daemon.go: Felix starting up"},
		sim.LogLine{After: 5 * time.Second, Text: "bird: Graceful restart started"},
		sim.LogLine{After: 7 * time.Second, Text: "bird: Graceful restart done"},
	)
}
