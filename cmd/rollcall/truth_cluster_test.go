package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
	"github.com/rollcall-k8s/rollcall/internal/watch"
)

// truth is what really happens in a drawn cluster.
type truth string

const (
	breaksFalse   truth = "breaks-false"   // X becomes Ready, then breaks its node's CNI: Ready=False
	breaksUnknown truth = "breaks-unknown" // X becomes Ready, then cuts its node off: Ready=Unknown
	removalBreaks truth = "removal-breaks" // the end of X's old Pod breaks the node, and no new Pod comes
	podsFail      truth = "pods-fail"      // X's new Pods fail, nodes are fine
	initBreaks    truth = "init-breaks"    // X's init container removes the CNI configuration and fails
	healthyMoves  truth = "healthy-moves"  // X is fine
	nodesDie      truth = "nodes-die"      // X is fine, nodes die beside it
	deadNodesHold truth = "dead-nodes-hold"
	nothing       truth = "nothing"
	twoRollouts   truth = "two-rollouts" // X breaks nodes, Y rolls over the same ones and is innocent
	undone        truth = "undone"       // X broke nodes, was frozen and put back; bad Pods are left
	recovered     truth = "recovered"    // and those were replaced as well
)

var truths = []truth{breaksFalse, breaksUnknown, removalBreaks, podsFail, initBreaks, healthyMoves, nodesDie, deadNodesHold, nothing, twoRollouts, undone, recovered}

var truthEpoch = time.Date(2026, 3, 3, 2, 0, 0, 0, time.UTC)

// trial is one drawn cluster, and what is known of it from the inside.
type trial struct {
	seed  int64
	truth truth
	rng   *rand.Rand
	extra *rand.Rand // of what was added later, so that the rest of a seed's draw stays

	clock  *sim.Clock
	store  *api.Server
	world  *sim.World
	conn   *kube.Connection
	source *watch.Source

	nodes   []*corev1.Node
	sets    []*appsv1.DaemonSet
	x, y    *appsv1.DaemonSet // the harmful or only rollout, the innocent one; nil where there is none
	xStart  time.Time
	yStart  time.Time
	plan    []planned
	how     string // of the truth: its variant
	rootX   string // the code that X's new Pods fail with
	kernel  string // the only one on which X does harm, "" for all
	skewed  bool   // some nodes' clocks are wrong by up to 25 s
	offline map[string]time.Time
	struck  map[string]time.Time // by X: when
	died    map[string]time.Time // of itself: when
	before  map[string]bool      // dead from before
	goodX   string               // revision hash of X before its rollout
	record  *record
}

type planned struct {
	at time.Time
	do func(*trial) error
}

func (tr *trial) one(odds float64) bool { return tr.rng.Float64() < odds }

func (tr *trial) span(low, high time.Duration) time.Duration {
	return low + time.Duration(tr.rng.Int64N(int64(high-low)+1))
}

func pick[T any](tr *trial, from ...T) T { return from[tr.rng.IntN(len(from))] }

func newTrial(t *testing.T, seed int64, kind truth) *trial {
	t.Helper()
	tr := &trial{seed: seed, truth: kind, rng: rand.New(rand.NewPCG(uint64(seed), 77)), extra: rand.New(rand.NewPCG(uint64(seed), 99)), offline: map[string]time.Time{},
		struck: map[string]time.Time{}, died: map[string]time.Time{}, before: map[string]bool{}}
	if kind == "" {
		tr.truth = truths[int(seed)%len(truths)]
	}
	tr.clock = sim.NewClock(truthEpoch.Add(-6 * 24 * time.Hour))
	tr.store = api.New(tr.clock.Now, seed)
	programs := map[string]sim.Program{}
	tr.world = sim.New(tr.clock, tr.store, sim.Options{Seed: seed, Programs: programs})
	tr.drawNodes()
	tr.drawSets(programs)
	tr.settleIn(t)
	tr.setClocks()
	tr.layOut(programs)

	var err error
	tr.conn, err = kube.New(tr.store.Config(), kube.Options{Version: "test", Wall: tr.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.conn.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.source = watch.New(watch.Config{Conn: tr.conn, Type: "practice", Now: tr.clock.Now})
	t.Cleanup(func() { tr.source.Close(); tr.conn.Close(); tr.store.Close() })
	return tr
}

func (tr *trial) create(t *testing.T, manager string, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		if _, err := tr.store.Create(manager, o); err != nil {
			t.Fatalf("creating %T: %v", o, err)
		}
	}
}

const truthControlPlane = "node-role.kubernetes.io/control-plane"

func (tr *trial) drawNodes() {
	count := 6 + tr.rng.IntN(20)
	if tr.one(0.25) {
		count = 26 + tr.rng.IntN(35)
	}
	zones, planes := 1+tr.rng.IntN(4), pick(tr, 0, 0, 1, 3)
	newer := 0.0
	if tr.one(0.5) {
		newer = 0.1 + 0.5*tr.rng.Float64()
	}
	at := metav1.NewTime(truthEpoch.Add(-40 * 24 * time.Hour))
	for i := range count {
		name := fmt.Sprintf("node-%02d", i)
		room := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("8"), corev1.ResourceMemory: apiresource.MustParse("32Gi"),
			corev1.ResourcePods: apiresource.MustParse("110"), corev1.ResourceEphemeralStorage: apiresource.MustParse("100Gi")}
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+i%zones), corev1.LabelTopologyRegion: "region",
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "node.example.com/pool": pick(tr, "general", "general", "memory"),
			}},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.20.0.%d", i+10)}},
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status", LastHeartbeatTime: at, LastTransitionTime: at},
					{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "RouteCreated", LastHeartbeatTime: at, LastTransitionTime: at},
				},
				NodeInfo: corev1.NodeSystemInfo{BootID: fmt.Sprintf("boot-%d", i), KubeletVersion: "v1.37.2", KernelVersion: "6.8.0-52-generic",
					OSImage: "Ubuntu 24.04.2 LTS", ContainerRuntimeVersion: "containerd://2.1.4", OperatingSystem: "linux", Architecture: "amd64"},
			},
		}
		if tr.one(newer) {
			n.Status.NodeInfo.KernelVersion = "6.8.0-55-generic"
		}
		if i < planes {
			n.Labels[truthControlPlane] = ""
			n.Spec.Taints = []corev1.Taint{{Key: truthControlPlane, Effect: corev1.TaintEffectNoSchedule}}
		}
		tr.nodes = append(tr.nodes, n)
	}
}

// traits of a DaemonSet.
type traits struct {
	host, privileged, cni, tolerant, probe bool
}

func image(name string, version int) string {
	return fmt.Sprintf("registry.example/%s:v%d", name, version)
}

func (tr *trial) daemonSet(name string, f traits) *appsv1.DaemonSet {
	app := map[string]string{"app.kubernetes.io/name": name}
	grace := int64(pick(tr, 5, 10, 30))
	c := corev1.Container{Name: "agent", Image: image(name, 1), Env: []corev1.EnvVar{{Name: "LEVEL", Value: "info"}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("50m"), corev1.ResourceMemory: apiresource.MustParse("64Mi")}}}
	spec := corev1.PodSpec{HostNetwork: f.host, TerminationGracePeriodSeconds: &grace}
	if f.privileged {
		yes := true
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	}
	if f.probe {
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/ready"}}}}
	}
	if f.cni {
		spec.Volumes = []corev1.Volume{{Name: "net", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "net", MountPath: "/host/etc/cni/net.d"}}
		spec.InitContainers = []corev1.Container{{Name: "install", Image: image(name+"-install", 1), VolumeMounts: c.VolumeMounts}}
	}
	if f.tolerant {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	spec.Containers = []corev1.Container{c}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: pick(tr, "kube-system", "monitoring"), Name: name, Labels: app},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: app}, MinReadySeconds: int32(pick(tr, 0, 0, 0, 5, 20)),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: spec}}}
	tr.strategy(ds)
	return ds
}

// strategy draws how it rolls; a budget that nodes which are dead from before
// would use up is no budget, so it is drawn above them.
func (tr *trial) strategy(ds *appsv1.DaemonSet) {
	dead := len(tr.before)
	unavailable, surge := intstr.FromInt32(int32(dead+1+tr.rng.IntN(4))), intstr.FromInt32(0)
	switch {
	case tr.one(0.25):
		percent := 10 + tr.rng.IntN(30)
		for percent*(len(tr.nodes)/2) < 100*(dead+1) && percent < 90 {
			percent += 5
		}
		unavailable = intstr.FromString(fmt.Sprintf("%d%%", percent))
	case tr.one(0.12):
		unavailable, surge = surge, unavailable
	}
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable, MaxSurge: &surge}}
}

// well are the programs of a DaemonSet whose every version does what it should.
func (tr *trial) well(programs map[string]sim.Program, ds *appsv1.DaemonSet, version int) {
	pull := tr.span(2*time.Second, 10*time.Second)
	ready := tr.span(2*time.Second, 15*time.Second)
	p := sim.Healthy(sim.Between(pull, pull+4*time.Second), sim.Between(ready, ready+5*time.Second))
	p.StopsIn = sim.Between(time.Second, 3*time.Second)
	programs[image(ds.Name, version)] = p
	programs[image(ds.Name+"-install", version)] = sim.Init(sim.Between(2*time.Second, 4*time.Second), sim.Between(time.Second, 2*time.Second)).
		With(sim.WritesCNI(sim.Exactly(500*time.Millisecond), "wrote the configuration"))
}

func (tr *trial) breaks() bool {
	switch tr.truth {
	case breaksFalse, breaksUnknown, removalBreaks, initBreaks, twoRollouts, undone, recovered:
		return true
	}
	return false
}

func (tr *trial) drawSets(programs map[string]sim.Program) {
	// Dead ones are drawn first: budgets depend on them.
	dead := tr.rng.IntN(4)
	if tr.truth == deadNodesHold {
		dead = 1 + tr.rng.IntN(3)
	} else if tr.one(0.5) {
		dead = 0
	}
	for range dead {
		tr.before[tr.nodes[tr.rng.IntN(len(tr.nodes))].Name] = true
	}
	names := []string{"net-agent", "log-agent", "csi-node", "node-exporter", "proxy", "scanner", "dns-cache", "gpu-plugin"}
	for i, name := range names[:2+tr.rng.IntN(7)] {
		f := traits{host: tr.one(0.5), privileged: tr.one(0.4), cni: tr.one(0.15), tolerant: tr.one(0.6), probe: tr.one(0.7)}
		if i == 0 && (tr.breaks() || tr.one(0.5)) {
			f = traits{host: true, privileged: true, cni: tr.truth != breaksUnknown || tr.one(0.5), tolerant: tr.truth != removalBreaks && tr.one(0.9), probe: tr.one(0.8)}
		}
		if tr.truth == initBreaks && i == 0 {
			f.tolerant = true
		}
		ds := tr.daemonSet(name, f)
		if i > 1 && tr.one(0.15) {
			ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		}
		tr.sets = append(tr.sets, ds)
		for v := 1; v <= 3; v++ {
			tr.well(programs, ds, v)
		}
	}
	if tr.truth == removalBreaks {
		tr.removal(programs)
	}
}

// settleIn lives through the past: installation, an earlier change of some
// DaemonSets, nodes that died.
func (tr *trial) settleIn(t *testing.T) {
	t.Helper()
	for _, n := range tr.nodes {
		tr.create(t, "kubelet", n)
	}
	for _, ns := range []string{"monitoring", "shop"} {
		tr.create(t, "kubectl-create", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	for _, ds := range tr.sets {
		tr.create(t, "helm", ds)
	}
	for i := range 1 + tr.rng.IntN(3) {
		tr.create(t, "kubectl-client-side-apply", truthDeployment(fmt.Sprintf("app-%d", i), int32(1+tr.rng.IntN(6))))
	}
	tr.world.Step(truthEpoch.Add(-5 * 24 * time.Hour))
	for i, ds := range tr.sets {
		if i == 0 || tr.one(0.5) {
			tr.change(t, "helm", ds, 2)
		}
	}
	tr.world.Step(truthEpoch.Add(-4 * 24 * time.Hour))
	lost := truthEpoch.Add(-tr.span(3*time.Hour, 70*time.Hour))
	if len(tr.before) > 0 {
		tr.world.Step(lost.Add(-15 * time.Second))
		tr.world.Start()
		tr.world.Step(lost)
		for _, n := range tr.nodes {
			if tr.before[n.Name] {
				tr.world.Host(n.Name).Die()
				tr.offline[n.Name] = lost
			}
		}
		tr.world.Step(lost.Add(7 * time.Minute))
		tr.world.Stop()
	}
	tr.world.Step(truthEpoch.Add(-20 * time.Minute))
	tr.world.Start()
	tr.world.Step(truthEpoch.Add(-time.Minute))
}

func truthDeployment(name string, replicas int32) *appsv1.Deployment {
	app := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: app},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Image: image(name, 1),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("200m"), corev1.ResourceMemory: apiresource.MustParse("256Mi")}},
			}}}}}}
}

func (tr *trial) edit(manager string, ds *appsv1.DaemonSet, edit func(*appsv1.DaemonSet)) error {
	o, err := api.GetOf[*appsv1.DaemonSet](tr.store, ds.Namespace, ds.Name)
	if err != nil {
		return err
	}
	o = o.DeepCopy()
	edit(o)
	_, err = tr.store.Update(manager, o)
	return err
}

// change puts a version of the images into the template.
func (tr *trial) change(t *testing.T, manager string, ds *appsv1.DaemonSet, version int) {
	t.Helper()
	if err := tr.edit(manager, ds, func(o *appsv1.DaemonSet) { setVersion(o, version) }); err != nil {
		t.Fatal(err)
	}
}

func setVersion(o *appsv1.DaemonSet, version int) {
	spec := &o.Spec.Template.Spec
	for i := range spec.InitContainers {
		spec.InitContainers[i].Image = image(o.Name+"-install", version)
	}
	spec.Containers[0].Image = image(o.Name, version)
}

// setClocks puts the clocks of some nodes wrong, in some clusters.
func (tr *trial) setClocks() {
	if tr.extra.Float64() > 0.15 {
		return
	}
	tr.skewed = true
	for _, n := range tr.nodes {
		if tr.extra.Float64() < 0.3 {
			tr.world.Host(n.Name).SetClock(time.Duration(tr.extra.Int64N(int64(50*time.Second))) - 25*time.Second)
		}
	}
}
