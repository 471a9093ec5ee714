// Package kubelet stands in for the kubelets of a test cluster. It speaks to the
// API server only: it registers nodes and renews their Leases, reports their
// status, takes the Pods bound to them from ContainerCreating to Ready, ends
// those that are deleted, and writes the events that a kubelet writes. No
// container runs. What an image does to its node is scripted, so that a rollout
// can break the nodes it reaches, in the two ways in which network agents do.
//
// One fleet plays all nodes: one watch, one queue, a few workers.
package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Effect is what a container does to its node some time after it became Ready.
type Effect int

// The effects.
const (
	// Harmless is what an image does that is not in the script.
	Harmless Effect = iota
	// BreaksNetwork takes the node's CNI configuration away: the node says
	// Ready=False, its kubelet lives, its Lease goes on, the Pods that run stay
	// Ready, and no new Pod without the host's network starts.
	BreaksNetwork
	// RepairsNetwork puts the CNI configuration back.
	RepairsNetwork
	// CutsOff takes the node's way to the API server: nothing of it changes any
	// more, until the node controller calls it Unknown.
	CutsOff
)

// Image is what a container of one image does.
type Image struct {
	Effect Effect
	// After is the time from Ready until the effect.
	After time.Duration
}

// Options are the fleet's script and pace; zero means the default.
type Options struct {
	Images    map[string]Image // by name, as Pods name them
	Starting  time.Duration    // from seeing a Pod until it is Ready: 1 s
	Stopping  time.Duration    // from seeing a deletion until the containers have stopped: 500 ms, at most the Pod's grace period
	Heartbeat time.Duration    // between renewals of a node's Lease: 10 s, as kubelets do
}

// workers bounds the requests that the fleet has in flight.
const workers = 4

// Fleet plays the kubelets of the nodes that have joined.
type Fleet struct {
	options Options
	client  kubernetes.Interface
	pods    corelisters.PodLister
	watch   informers.SharedInformerFactory
	queue   workqueue.TypedRateLimitingInterface[item]

	mu    sync.Mutex
	nodes map[string]*node
	seen  map[types.UID]*life
}

// item is one thing to look at: a Pod, or with Namespace "" a node.
type item struct{ types.NamespacedName }

// New makes a fleet without nodes.
func New(config *rest.Config, o Options) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.UserAgent = "kubelet"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for value, def := range map[*time.Duration]time.Duration{
		&o.Starting: time.Second, &o.Stopping: 500 * time.Millisecond, &o.Heartbeat: 10 * time.Second,
	} {
		if *value == 0 {
			*value = def
		}
	}
	f := &Fleet{
		options: o, client: client,
		nodes: map[string]*node{}, seen: map[types.UID]*life{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](50*time.Millisecond, 2*time.Second)),
	}
	f.watch = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	pods := f.watch.Core().V1().Pods()
	f.pods = pods.Lister()
	_, err = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.podChanged,
		UpdateFunc: func(_, pod any) { f.podChanged(pod) },
		DeleteFunc: f.podGone,
	})
	return f, err
}

// Run plays the kubelets until the context ends, and returns when nothing of the
// fleet runs any more.
func (f *Fleet) Run(ctx context.Context) {
	f.watch.Start(ctx.Done())
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for f.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	f.queue.ShutDown()
	running.Wait()
	f.watch.Shutdown()
}

// Join registers nodes. Their kubelets begin at once.
func (f *Fleet) Join(ctx context.Context, nodes ...Node) error {
	for _, n := range nodes {
		object, err := f.client.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("registering node %s: %w", n.Name, err)
		}
		f.mu.Lock()
		f.nodes[n.Name] = &node{name: n.Name, uid: object.UID, offers: n.Allocatable}
		f.mu.Unlock()
		f.lookAtNode(n.Name, 0)
	}
	return nil
}

// CutOff takes the node's way to the API server, as if it had lost its power.
func (f *Fleet) CutOff(name string) { f.affect(name, CutsOff) }

// Restore gives a node that was cut off its way back.
func (f *Fleet) Restore(name string) {
	f.mu.Lock()
	if n := f.nodes[name]; n != nil {
		n.cutOff, n.posted = false, ""
	}
	f.mu.Unlock()
	f.lookAtNode(name, 0)
	pods, _ := f.pods.List(labels.Everything()) // a lister's memory does not fail
	for _, p := range pods {
		f.podChanged(p)
	}
}

// affect does to a node what an image, or a test, does.
func (f *Fleet) affect(name string, e Effect) {
	f.mu.Lock()
	if n := f.nodes[name]; n != nil {
		switch e {
		case BreaksNetwork:
			n.noNetwork = true
		case RepairsNetwork:
			n.noNetwork = false
		case CutsOff:
			n.cutOff = true
		}
	}
	f.mu.Unlock()
	f.lookAtNode(name, 0)
}

// reachable tells whether the node is the fleet's and can act.
func (f *Fleet) reachable(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	return n != nil && !n.cutOff
}

func (f *Fleet) lookAtNode(name string, after time.Duration) {
	f.queue.AddAfter(item{types.NamespacedName{Name: name}}, after)
}

func (f *Fleet) podChanged(object any) {
	pod := object.(*corev1.Pod)
	f.queue.Add(item{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}})
}

func (f *Fleet) podGone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	f.mu.Lock()
	delete(f.seen, object.(*corev1.Pod).UID)
	f.mu.Unlock()
}

// next does one item of the queue, and tells whether there will be another.
func (f *Fleet) next(ctx context.Context) bool {
	it, shutdown := f.queue.Get()
	if shutdown {
		return false
	}
	defer f.queue.Done(it)
	var again time.Duration
	var err error
	if it.Namespace == "" {
		again, err = f.syncNode(ctx, it.Name)
	} else {
		again, err = f.syncPod(ctx, it.NamespacedName)
	}
	switch {
	case apierrors.IsNotFound(err): // it is gone: nothing more to do
		f.queue.Forget(it)
	case err != nil: // a conflict, or the API server does not answer: again with what is then known
		f.queue.AddRateLimited(it)
	default:
		f.queue.Forget(it)
		if again > 0 {
			f.queue.AddAfter(it, again)
		}
	}
	return true
}
