package watch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

const (
	settingsEvery   = time.Minute // cluster time
	settingsTimeout = 10 * time.Second
	settingsWorkers = 4
	// settingsPerMinute is how many objects a minute are read anew: where there are
	// more, the time between two reads grows.
	settingsPerMinute = 2000
)

// settings is the metadata of what takes effect without a rollout. It is read once
// when nodes begin to fail and at most every minute while they do, and never
// watched: who changed what when is in the metadata however late it is read.
type settings struct {
	src *Source

	mu     sync.Mutex
	wanted time.Time // cluster time at which it last was wanted; zero for not at all
	active bool      // it is wanted now
	maps   []types.NamespacedName
	kinds  []cluster.SettingKind // those that the API server has, nil before it was asked
	known  map[setting]reading
	polled time.Time // cluster time at which the last read began
	read   time.Time // and of the last of which every request was answered
	failed error
	busy   bool
}

// setting is one read: a ConfigMap by its name, or all objects of a kind.
type setting struct {
	kind cluster.SettingKind
	name types.NamespacedName
}

// reading is what came of it.
type reading struct {
	objects []*metav1.PartialObjectMetadata
	refused string // NotRead's reason
	err     error  // of refused
}

var configMaps = cluster.SettingKind{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

func newSettings(s *Source) *settings { return &settings{src: s, known: map[setting]reading{}} }

// want notes what the last snapshot demands.
func (g *settings) want(d cluster.Demand, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active = d.Settings
	switch {
	case d.Settings:
		g.wanted, g.maps = now, d.ConfigMaps
	case !g.wanted.IsZero() && now.Sub(g.wanted) > g.src.cfg.Linger:
		g.wanted, g.maps, g.polled, g.read, g.failed = time.Time{}, nil, time.Time{}, time.Time{}, nil
		clear(g.known)
	}
}

// due tells whether there is something to read now.
func (g *settings) due(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.active {
		return false
	}
	age := now.Sub(g.polled)
	return g.polled.IsZero() || age < 0 || age >= g.every() || g.failed == nil && len(g.lacking()) > 0
}

// every is the time between two reads.
func (g *settings) every() time.Duration {
	if g.failed != nil && !answered(g.failed) {
		return g.src.cfg.LeaseEvery // nothing was asked of the API server that it has noticed
	}
	n := 0
	for _, r := range g.known {
		n += len(r.objects)
	}
	return settingsEvery * time.Duration(1+n/settingsPerMinute)
}

// lacking are the ConfigMaps that were not read since they are wanted.
func (g *settings) lacking() []setting {
	var out []setting
	for _, n := range g.maps {
		if s := (setting{configMaps, n}); !g.has(s) {
			out = append(out, s)
		}
	}
	return out
}

func (g *settings) has(s setting) bool { _, ok := g.known[s]; return ok }

// pollSoon reads in the background what is due.
func (g *settings) pollSoon(ctx context.Context, now time.Time) {
	if !g.due(now) {
		return
	}
	g.mu.Lock()
	begin := !g.busy
	g.busy = true
	g.mu.Unlock()
	if !begin {
		return
	}
	g.src.running.Go(func() {
		g.poll(ctx, now)
		g.mu.Lock()
		g.busy = false
		g.mu.Unlock()
		g.src.ring(true)
	})
}

// forgetPoll makes the next read due.
func (g *settings) forgetPoll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.polled, g.kinds = time.Time{}, nil
}

// poll reads all that is wanted, or what is lacking where the rest is not due.
func (g *settings) poll(ctx context.Context, now time.Time) {
	g.mu.Lock()
	age := now.Sub(g.polled)
	whole := g.polled.IsZero() || age < 0 || age >= g.every()
	work := g.lacking()
	kinds := g.kinds
	g.mu.Unlock()
	var broken error
	if whole {
		if kinds == nil {
			kinds, broken = g.discover(ctx)
		}
		work = nil
		for _, k := range kinds {
			work = append(work, setting{kind: k})
		}
		g.mu.Lock()
		g.polled = now
		for _, n := range g.maps {
			work = append(work, setting{configMaps, n})
		}
		g.mu.Unlock()
	}
	got := make([]reading, len(work))
	failed := make([]error, len(work))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(settingsWorkers, len(work)) {
		wg.Go(func() {
			for i := range next {
				got[i], failed[i] = g.get(ctx, work[i])
			}
		})
	}
	for i := range work {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if broken == nil && whole {
		g.kinds = kinds
	}
	for i, s := range work {
		switch {
		case failed[i] != nil:
			broken = failed[i]
		default:
			g.known[s] = got[i]
		}
	}
	if g.failed = broken; broken == nil {
		g.read = now
	}
}

// asMetadata asks for the metadata alone. There is no other form to fall back on:
// what a ConfigMap holds is nobody's business here.
const (
	asMetadata     = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// get does one read. The error is one that should not last.
func (g *settings) get(ctx context.Context, s setting) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	r := g.src.conn.REST(s.kind.GVR.GroupVersion()).Get().Resource(s.kind.GVR.Resource).MaxRetries(0)
	var list metav1.PartialObjectMetadataList
	var err error
	if s.name.Name != "" {
		var o metav1.PartialObjectMetadata
		err = r.Namespace(s.name.Namespace).Name(s.name.Name).SetHeader("Accept", asMetadata).Do(ctx).Into(&o)
		list.Items = append(list.Items, o)
	} else {
		// From the API server's memory: moments do not matter here.
		err = r.SetHeader("Accept", asMetadataList).Param("resourceVersion", "0").Do(ctx).Into(&list)
	}
	if err == nil || answered(err) {
		g.src.heard()
	}
	switch {
	case err == nil:
	case s.name.Name != "" && apierrors.IsNotFound(err):
		return reading{}, nil // there is none, which was read
	case refusal(err) != "":
		return reading{refused: refusal(err), err: err}, nil
	default:
		return reading{}, err
	}
	var out reading
	for i := range list.Items {
		o := &list.Items[i]
		o.TypeMeta = metav1.TypeMeta{APIVersion: s.kind.GVR.GroupVersion().String(), Kind: s.kind.Kind}
		g.src.trim.setting(o)
		out.objects = append(out.objects, o)
	}
	return out, nil
}

// list returns what was read and is wanted.
func (g *settings) list() []*metav1.PartialObjectMetadata {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*metav1.PartialObjectMetadata
	for s, r := range g.known {
		if s.name.Name == "" || slices.Contains(g.maps, s.name) {
			out = append(out, r.objects...)
		}
	}
	slices.SortFunc(out, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), byKey(a, b), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return out
}

// settingsState is how current the settings are.
type settingsState struct {
	asked   bool
	loading bool
	broken  error
	read    time.Time
	refused []cluster.NotRead
}

func (g *settings) state() settingsState {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := settingsState{asked: !g.wanted.IsZero(), broken: g.failed, read: g.read}
	st.loading = st.asked && g.read.IsZero()
	open := map[string]bool{} // namespaces of which a ConfigMap was read
	shut := map[string]reading{}
	for s, r := range g.known {
		switch {
		case s.name.Name == "" && r.refused != "":
			st.refused = append(st.refused, g.refusal(s.kind.Resource(), "", r))
		case s.name.Name != "" && r.refused != "":
			shut[s.name.Namespace] = r
		case s.name.Name != "":
			open[s.name.Namespace] = true
		}
	}
	for ns, r := range shut {
		if len(open) == 0 {
			ns = "" // none was read at all
		}
		if n := g.refusal(cluster.ConfigMaps, ns, r); !slices.Contains(st.refused, n) {
			st.refused = append(st.refused, n)
		}
	}
	return st
}

func (g *settings) refusal(r cluster.Resource, ns string, why reading) cluster.NotRead {
	return cluster.NotRead{Resource: r, Namespace: ns, Reason: why.refused, Detail: g.src.conn.Explain("read "+string(r), why.err).Why}
}
