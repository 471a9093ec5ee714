package practice

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// The images of the base cluster.
var (
	agentV1     = registry("calico/node", "v3.29.1")
	agentV2     = registry("calico/node", "v3.29.3")
	agentCNIV1  = registry("calico/cni", "v3.29.1")
	agentCNIV2  = registry("calico/cni", "v3.29.3")
	proxy       = registry("kube-proxy", "v1.37.2")
	csiDriver   = registry("storage/csi-block", "v2.4.0")
	dns         = registry("coredns/coredns", "v1.12.4")
	exporterV1  = registry("monitoring/node-exporter", "v1.8.2")
	exporterV2  = registry("monitoring/node-exporter", "v1.9.1")
	frontend    = registry("shop/frontend", "2026.2.17")
	cart        = registry("shop/cart", "2026.2.11")
	catalog     = registry("shop/catalog", "2026.2.14")
	reports     = registry("shop/reports", "2026.1.30")
	etcd        = registry("etcd", "v3.6.4")
	apiServer   = registry("kube-apiserver", "v1.37.2")
	controllers = registry("kube-controller-manager", "v1.37.2")
	scheduling  = registry("kube-scheduler", "v1.37.2")
)

func basePrograms() map[string]sim.Program {
	sec := time.Second
	pull := sim.Between(4*sec, 9*sec)
	web := func(ready time.Duration) sim.Program {
		return sim.Healthy(pull, sim.Between(ready, 2*ready)).Logging(
			sim.LogLine{After: sec / 2, Text: `{"time":"$TIME","level":"INFO","msg":"listening","pod":"$POD"}`})
	}
	return map[string]sim.Program{
		agentV1: goodAgent(), agentV2: goodAgent(), agentCNIV1: goodInstaller(), agentCNIV2: goodInstaller(),
		proxy: sim.Healthy(pull, sim.Exactly(sec)), csiDriver: sim.Healthy(pull, sim.Between(2*sec, 4*sec)),
		dns: web(2 * sec), frontend: web(4 * sec), cart: web(3 * sec), catalog: web(3 * sec),
		exporterV1: web(2 * sec), exporterV2: web(2 * sec),
		// Leaks, and is killed for it every few days. Everybody knows.
		reports: sim.OOM(sim.Between(70*time.Hour, 100*time.Hour)),
		etcd:    sim.Healthy(pull, sim.Exactly(5*sec)), apiServer: sim.Healthy(pull, sim.Exactly(8*sec)),
		controllers: sim.Healthy(pull, sim.Exactly(4*sec)), scheduling: sim.Healthy(pull, sim.Exactly(4*sec)),
	}
}

// install builds the cluster and lets it live until a week before Epoch: nodes,
// control plane, network agent and its history, neighbours.
func (s *stage) install() {
	list := nodes()
	s.installNodes(list)
	s.create("kubectl-create", namespace("monitoring"), namespace("storage"), namespace("shop"))
	for _, n := range s.registered(controlPlanes) {
		s.create("kubelet", staticPod(n, "etcd", etcd, 2381), staticPod(n, "kube-apiserver", apiServer, 6443),
			staticPod(n, "kube-controller-manager", controllers, 10257), staticPod(n, "kube-scheduler", scheduling, 10259))
	}
	s.create("kubeadm", kubeProxy())
	s.create("helm", networkAgent())
	s.before(history - time.Hour)
	s.create("kubeadm", coreDNS(), dnsService())
	s.create("helm", csiNode())
	s.create("argocd-controller", nodeExporter())
	s.before(30 * 24 * time.Hour)
	s.create("argocd-controller",
		deployment("shop", "frontend", frontend, 6, 8080, requests("250m", "256Mi")), service("shop", "frontend", 8080),
		deployment("shop", "cart", cart, 3, 8080, requests("500m", "512Mi")), service("shop", "cart", 8080),
		deployment("shop", "catalog", catalog, 3, 8080, requests("500m", "512Mi")), service("shop", "catalog", 8080),
		reporting())
	// The agent's revisions: installed, tuned, updated, tuned again. The last one has proved itself for a week.
	s.before(24 * 24 * time.Hour)
	s.change("helm", metav1.NamespaceSystem, agent, func(ds *appsv1.DaemonSet) { env(ds, "FELIX_LOGSEVERITYSCREEN", "Warning") })
	s.before(16 * 24 * time.Hour)
	s.change("helm", metav1.NamespaceSystem, agent, func(ds *appsv1.DaemonSet) {
		image(ds, "install-cni", agentCNIV2)
		image(ds, agent, agentV2)
	})
	s.before(7 * 24 * time.Hour)
	s.change("helm", metav1.NamespaceSystem, agent, func(ds *appsv1.DaemonSet) { env(ds, "FELIX_PROMETHEUSMETRICSENABLED", "true") })
	s.before(6 * 24 * time.Hour)
}

// registered are the first nodes of the cluster, as stored.
func (s *stage) registered(n int) []*corev1.Node {
	var out []*corev1.Node
	for _, o := range s.store.List(corev1.SchemeGroupVersion.WithResource("nodes"), "", nil)[:n] {
		out = append(out, o.(*corev1.Node))
	}
	return out
}

func kubeProxy() *appsv1.DaemonSet {
	return daemonSet(metav1.NamespaceSystem, "kube-proxy", 1, corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-node-critical", Tolerations: everything,
		NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
		Containers: []corev1.Container{{
			Name: "kube-proxy", Image: proxy, SecurityContext: privileged(), Resources: requests("50m", "64Mi"),
			VolumeMounts: []corev1.VolumeMount{mount("xtables-lock", "/run/xtables.lock"), mount("lib-modules", "/lib/modules")},
		}},
		Volumes: []corev1.Volume{
			hostPath("xtables-lock", "/run/xtables.lock", corev1.HostPathFileOrCreate), hostPath("lib-modules", "/lib/modules", ""),
		},
	})
}

func csiNode() *appsv1.DaemonSet {
	ds := daemonSet("storage", "csi-block-node", 1, corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-node-critical", TerminationGracePeriodSeconds: seconds(30),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		Containers: []corev1.Container{{
			Name: "driver", Image: csiDriver, SecurityContext: privileged(), Resources: requests("50m", "96Mi"),
			ReadinessProbe: execProbe(10, "/csi-block", "probe"),
			VolumeMounts:   []corev1.VolumeMount{mount("plugin", "/csi"), mount("kubelet", "/var/lib/kubelet")},
		}},
		Volumes: []corev1.Volume{
			hostPath("plugin", "/var/lib/kubelet/plugins/block.example.com", corev1.HostPathDirectoryOrCreate),
			hostPath("kubelet", "/var/lib/kubelet", corev1.HostPathDirectory),
		},
	})
	releasedBy(ds, "csi-block")
	return ds
}

func coreDNS() *appsv1.Deployment {
	d := deployment(metav1.NamespaceSystem, "coredns", dns, 2, 8181, requests("100m", "70Mi"))
	d.Labels["k8s-app"] = "kube-dns"
	d.Spec.Template.Labels["k8s-app"] = "kube-dns"
	d.Spec.Template.Spec.PriorityClassName = "system-cluster-critical"
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{
		{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists},
		{Key: controlPlane, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	return d
}

func dnsService() *corev1.Service {
	s := service(metav1.NamespaceSystem, "kube-dns", 53)
	s.Spec.Selector = map[string]string{"k8s-app": "kube-dns"}
	return s
}

func reporting() *appsv1.Deployment {
	d := deployment("shop", "reports", reports, 1, 8080, requests("200m", "400Mi"))
	c := &d.Spec.Template.Spec.Containers[0]
	c.ReadinessProbe = nil
	c.Resources.Limits = c.Resources.Requests.DeepCopy()
	return d
}

// nodeExporter runs on every node that is scraped, whatever its state.
func nodeExporter() *appsv1.DaemonSet {
	ds := daemonSet("monitoring", "node-exporter", 1, corev1.PodSpec{
		HostNetwork: true, HostPID: true, Tolerations: everything, NodeSelector: map[string]string{scraped: "true"},
		TerminationGracePeriodSeconds: seconds(30),
		Containers: []corev1.Container{{
			Name: "node-exporter", Image: exporterV1, Resources: requests("50m", "48Mi"), ReadinessProbe: httpProbe("/", 9100),
			Args:         []string{"--path.rootfs=/host", "--web.listen-address=:9100"},
			Ports:        []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9100, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "root", MountPath: "/host", ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{hostPath("root", "/", "")},
	})
	ds.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "monitoring:apps/DaemonSet:monitoring/node-exporter"}
	return ds
}
