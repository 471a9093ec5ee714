package sim

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
)

// Options say how a World is played.
type Options struct {
	// Seed of all chance.
	Seed int64
	// Timers; the zero value means Kubernetes' defaults.
	Timers Timers
	// Programs by image: what a container does once it runs. An image that is not
	// named here runs for ever and is ready two seconds after its start.
	Programs map[string]Program
}

// Timers are the settings of kubelets and of kube-controller-manager that decide
// when what is seen. A zero value means the default of Kubernetes 1.37.
type Timers struct {
	LeaseRenew    time.Duration // a quarter of the Lease's 40 s: 10 s
	StatusUpdate  time.Duration // how often a kubelet computes its node's status: 10 s
	StatusReport  time.Duration // how often it posts an unchanged one: 5 min
	RuntimePoll   time.Duration // how often it asks the runtime about the network: 5 s
	MonitorPeriod time.Duration // --node-monitor-period: 5 s
	Grace         time.Duration // --node-monitor-grace-period: 50 s
	Exact         bool          // no jitter, and every kubelet in step with the hour: for measuring
}

func (t Timers) withDefaults() Timers {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.LeaseRenew, 10*time.Second)
	set(&t.StatusUpdate, 10*time.Second)
	set(&t.StatusReport, 5*time.Minute)
	set(&t.RuntimePoll, 5*time.Second)
	set(&t.MonitorPeriod, 5*time.Second)
	set(&t.Grace, 50*time.Second)
	return t
}

// World is the cluster around an API server. It is used from one goroutine; the
// API server itself may be used from any.
type World struct {
	clock   *Clock
	store   *api.Server
	options Options
	timers  Timers

	tasks     taskHeap
	seq       uint64
	heartbeat int  // counts Starts and Stops: tickers of an earlier beat end
	beating   bool // between Start and Stop

	mirrors []func()
	seen    uint64 // the API server's revision that the mirrors show
	stale   bool

	nodes       *table[*corev1.Node]
	pods        *table[*corev1.Pod]
	daemonSets  *table[*appsv1.DaemonSet]
	revisions   *table[*appsv1.ControllerRevision]
	deployments *table[*appsv1.Deployment]
	replicaSets *table[*appsv1.ReplicaSet]
	leases      *table[*coordinationv1.Lease]
	services    *table[*corev1.Service]
	slices      *table[*discoveryv1.EndpointSlice]
	priorities  *table[*schedulingv1.PriorityClass]
	podsByNode  *index[*corev1.Pod]
	podsByOwner *index[*corev1.Pod]

	kubelets   map[string]*kubelet
	daemons    *daemonSetController
	nodeHealth *nodeLifecycle
	evictions  *taintEviction
	scheduler  *scheduler
	gc         *podGC
}

// New puts a World around an API server. The clock must be the server's own.
// Nodes are given a kubelet when they appear. Controllers act as soon as the World
// is stepped; heartbeats and all that watches them begin with Start.
func New(clock *Clock, store *api.Server, o Options) *World {
	w := &World{clock: clock, store: store, options: o, timers: o.Timers.withDefaults(), kubelets: map[string]*kubelet{}}
	w.nodes = newTable[*corev1.Node](w, corev1.SchemeGroupVersion.WithResource("nodes"))
	w.priorities = newTable[*schedulingv1.PriorityClass](w, schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"))
	w.daemonSets = newTable[*appsv1.DaemonSet](w, appsv1.SchemeGroupVersion.WithResource("daemonsets"))
	w.revisions = newTable[*appsv1.ControllerRevision](w, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"))
	w.deployments = newTable[*appsv1.Deployment](w, appsv1.SchemeGroupVersion.WithResource("deployments"))
	w.replicaSets = newTable[*appsv1.ReplicaSet](w, appsv1.SchemeGroupVersion.WithResource("replicasets"))
	w.pods = newTable[*corev1.Pod](w, corev1.SchemeGroupVersion.WithResource("pods"))
	w.leases = newTable[*coordinationv1.Lease](w, coordinationv1.SchemeGroupVersion.WithResource("leases"))
	w.services = newTable[*corev1.Service](w, corev1.SchemeGroupVersion.WithResource("services"))
	w.slices = newTable[*discoveryv1.EndpointSlice](w, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"))
	w.podsByNode = w.pods.indexBy(func(p *corev1.Pod) string { return p.Spec.NodeName })
	w.podsByOwner = w.pods.indexBy(func(p *corev1.Pod) string { return ownerUID(p) })

	w.nodes.watch(w.nodeChanged)
	w.pods.watch(w.podChanged)
	w.daemons = newDaemonSetController(w)
	newReplicaSetController(w)
	newDeploymentController(w)
	newEndpointSliceController(w)
	w.nodeHealth = newNodeLifecycle(w)
	w.evictions = newTaintEviction(w)
	w.scheduler = newScheduler(w)
	w.gc = newPodGC(w)
	w.catchUp()
	return w
}

// Step lets time pass until to, doing all that falls due meanwhile. What others
// wrote to the API server is noticed as it goes.
func (w *World) Step(to time.Time) {
	w.catchUp()
	for len(w.tasks) > 0 && !w.tasks[0].at.After(to) {
		t := heap.Pop(&w.tasks).(task)
		w.clock.set(t.at)
		w.catchUp()
		t.run()
	}
	w.clock.set(to)
	w.catchUp()
}

// Start begins the cluster's heartbeat: kubelets renew Leases and post status,
// the node controller watches them, leaders renew their Leases. A World that was
// stopped before resumes as after a restart of kube-controller-manager.
func (w *World) Start() {
	w.heartbeat++
	w.beating = true
	for _, n := range w.nodes.all() {
		w.kubelets[n.Name].beat()
	}
	w.nodeHealth.start()
	w.gc.start()
	w.lead(controllerManager)
	w.lead(schedulerManager)
}

// Stop holds the heartbeat. Controllers and containers go on; nobody renews a
// Lease and nobody misses one. With nothing else due, weeks pass in one Step.
func (w *World) Stop() {
	w.heartbeat++
	w.beating = false
}

// random is a source of chance of its own for one part of the World, so that one
// part's draws do not change another's.
func (w *World) random(part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part))
	return rand.New(rand.NewPCG(uint64(w.options.Seed), h.Sum64()))
}

func (w *World) now() time.Time { return w.clock.Now() }

func (w *World) nodeChanged(old, new *corev1.Node) {
	switch {
	case new == nil:
		w.kubelets[old.Name].die()
		delete(w.kubelets, old.Name)
	case old == nil:
		k := newKubelet(w, new)
		w.kubelets[new.Name] = k
		if w.beating {
			k.after(time.Second, k.beat)
		}
	}
}

func (w *World) podChanged(old, new *corev1.Pod) {
	p := new
	if p == nil {
		p = old
	}
	if k := w.kubelets[p.Spec.NodeName]; k != nil {
		k.notice(keyOf(p), p.UID)
	}
}

// ownerUID is the UID of the controller of an object, "" where it has none.
func ownerUID(o metav1.Object) (uid string) {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return string(ref.UID)
	}
	return ""
}

// between draws a duration from [low, high].
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}
