package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Config says what is watched and how.
type Config struct {
	Conn *kube.Connection
	// Namespace is read alone of the namespaced kinds where all namespaces may not be
	// read. Where they may they are, whatever it says: a rollout that takes nodes down
	// does so from any of them.
	Namespace string
	// Type is that of the snapshots' Source, "cluster" where it is empty.
	Type string
	// NodeGrace is node-monitor-grace-period where the operator gave it.
	NodeGrace time.Duration
	// Now is cluster time; nil takes the connection's clock.
	Now func() time.Time
	// Tick is the longest time between two snapshots, so that ages move; 0 is a
	// second. Least is the shortest; 0 is a tenth. Both are wall time.
	Tick, Least time.Duration
	// LeaseEvery is how often Leases are polled, 0 is 10 s; Linger how long a
	// workload's Pods are still watched once suspicion has passed, 0 is 30 min. Both
	// are cluster time.
	LeaseEvery, Linger time.Duration
	Logger             *slog.Logger
}

func (c *Config) complete() {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.Tick, time.Second)
	set(&c.Least, 100*time.Millisecond)
	set(&c.LeaseEvery, 10*time.Second)
	set(&c.Linger, 30*time.Minute)
	if c.Type == "" {
		c.Type = "cluster"
	}
	if c.Now == nil {
		c.Now = c.Conn.Clock.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Workload names a DaemonSet, Deployment or StatefulSet.
type Workload struct{ Kind, Namespace, Name string }

// Source is a live snapshot. It is used in one of three ways: Run publishes
// snapshots until its context ends, Once returns one as soon as all is loaded,
// Settle returns one that shows a given resource version. Once it was closed, or
// Run or Once have returned, it is spent.
type Source struct {
	cfg  Config
	conn *kube.Connection

	base         []feeder // those of the whole run
	nodes        *feed[*corev1.Node]
	daemonSets   *feed[*appsv1.DaemonSet]
	deployments  *feed[*appsv1.Deployment]
	statefulSets *feed[*appsv1.StatefulSet]
	replicaSets  *feed[*appsv1.ReplicaSet]
	revisions    *feed[*appsv1.ControllerRevision]
	nodeEvents   *feed[*corev1.Event]
	follows      follows
	leases       *leases
	settings     *settings
	trim         *trimmer

	ctx     context.Context // of the feeds, nil before start
	cancel  context.CancelFunc
	running sync.WaitGroup
	past    *cluster.History

	bell  chan struct{} // rung when anything happened
	dirty atomic.Bool   // something that a snapshot shows has changed

	mu      sync.Mutex
	contact time.Time // cluster time of the last word from the API server
	lostErr error     // the connection was found dead and was not heard of since
	wants   []Workload
	// wantNodes are the nodes of which every Pod is read.
	wantNodes []string
	retry     bool
}

// New makes a source; nothing is read before it is used.
func New(cfg Config) *Source {
	cfg.complete()
	s := &Source{cfg: cfg, conn: cfg.Conn, bell: make(chan struct{}, 1), trim: newTrimmer(), cancel: func() {}}
	s.leases, s.settings = newLeases(s), newSettings(s)
	s.follows = newFollows(s)
	apps, core := appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	all := scope{or: cfg.Namespace}
	s.nodes = newFeed(s, core, cluster.Nodes, scope{}, &corev1.Node{}, s.trim.node)
	s.daemonSets = newFeed(s, apps, cluster.DaemonSets, all, &appsv1.DaemonSet{}, s.trim.daemonSet)
	s.deployments = newFeed(s, apps, cluster.Deployments, all, &appsv1.Deployment{}, s.trim.deployment)
	s.statefulSets = newFeed(s, apps, cluster.StatefulSets, all, &appsv1.StatefulSet{}, s.trim.statefulSet)
	s.replicaSets = newFeed(s, apps, cluster.ReplicaSets, all, &appsv1.ReplicaSet{}, s.trim.replicaSet)
	s.revisions = newFeed(s, apps, cluster.ControllerRevisions, all, &appsv1.ControllerRevision{}, s.trim.revision)
	// Node events live in default, whatever the Node's namespace.
	// Source: client-go tools/record/event.go, makeEvent.
	s.nodeEvents = newFeed(s, core, cluster.Events, scope{namespace: "default", fields: "involvedObject.kind=Node"}, &corev1.Event{}, s.trim.event)
	s.base = []feeder{s.nodes, s.daemonSets, s.deployments, s.statefulSets, s.replicaSets, s.revisions, s.nodeEvents}
	return s
}

// Want has the Pods and events of a workload read whether it is under suspicion or
// not: somebody looks at it. It may be called at any time.
func (s *Source) Want(w Workload) {
	s.mu.Lock()
	s.wants = append(s.wants, w)
	s.mu.Unlock()
	s.ring(true)
}

// WantNode has every Pod of a node read, whatever workload it belongs to. It may be
// called at any time.
func (s *Source) WantNode(name string) {
	s.mu.Lock()
	s.wantNodes = append(s.wantNodes, name)
	s.mu.Unlock()
	s.ring(true)
}

// Retry asks again now for what could not be read, instead of when its turn comes.
// It may be called at any time.
func (s *Source) Retry() {
	s.mu.Lock()
	s.retry = true
	s.mu.Unlock()
	s.ring(true)
}

// Close ends every watch and returns when nothing runs any more.
func (s *Source) Close() {
	s.cancel()
	s.running.Wait()
}

// start starts the feeds that run from beginning to end.
func (s *Source) start() {
	if s.ctx != nil {
		return
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, f := range s.base {
		f.start(s.ctx)
	}
}

// ring tells the loop that something happened; content where a snapshot would show it.
func (s *Source) ring(content bool) {
	if content {
		s.dirty.Store(true)
	}
	select {
	case s.bell <- struct{}{}:
	default: // it rings already
	}
}

// heard notes a word from the API server.
func (s *Source) heard() {
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contact, s.lostErr = now, nil
}

func (s *Source) lastHeard() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contact
}

// lost notes that the API server did not answer.
func (s *Source) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lostErr = err
}

// again restarts what is broken, if somebody asked for it.
func (s *Source) again() {
	s.mu.Lock()
	asked := s.retry
	s.retry = false
	s.mu.Unlock()
	if !asked {
		return
	}
	for _, f := range s.feeds() {
		if f.state().broken != nil {
			f.stop()
			f.start(s.ctx)
		}
	}
	s.leases.forgetPoll()
	s.settings.forgetPoll()
}

// feeds are all that run.
func (s *Source) feeds() []feeder { return append(s.follows.feeds(), s.base...) }

// refused is the error with which a run ends: neither nodes nor any workload may
// be read, so nothing can ever be said.
func (s *Source) refused() error {
	for _, f := range []feeder{s.nodes, s.daemonSets, s.deployments, s.statefulSets} {
		if f.state().refused != "Forbidden" {
			return nil
		}
	}
	return s.conn.Unreadable(s.nodes.state().broken, s.cfg.Namespace)
}
