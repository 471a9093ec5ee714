package api

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Clock tells the cluster's time. It must never run backwards. It is called with the server's lock held: it must not call
// the server.
type Clock func() time.Time

// EventTTL is how long an Event lives after it was last written: kube-apiserver's default of --event-ttl.
const EventTTL = time.Hour

// Server is the API server. All methods may be called from any goroutine.
//
// Objects that it returns are shared: nobody ever changes them, the server included (a write stores a new object).
// Callers that want to change one take a DeepCopy first. They carry no TypeMeta, as with client-go's typed clients.
type Server struct {
	clock Clock

	mu          sync.Mutex // guards everything below
	revision    uint64
	names       *nameSource
	dryNames    *nameSource // so that a dry run does not change what the next real write is named
	collections map[groupResource]*collection
	dependents  map[types.UID]map[reference]bool // by owner
	foreground  map[types.UID]reference          // objects that wait for their dependents to go
	expiries    []expiry                         // of events, in the order of their time
	logs        LogSource
	denied      []Denial
	rejected    map[string]bool // bearer tokens answered with 401
	fault       func(*http.Request) *Fault
	version     string

	dialer dialer
}

// New makes a server with what every cluster has: the namespaces default, kube-system, kube-public and kube-node-lease
// and the priority classes system-node-critical and system-cluster-critical. The same seed and the same sequence of
// writes give the same names, UIDs and resourceVersions.
func New(clock Clock, seed int64) *Server {
	s := &Server{
		clock:       clock,
		names:       newNameSource(uint64(seed), 0),
		dryNames:    newNameSource(uint64(seed), 1),
		collections: map[groupResource]*collection{},
		dependents:  map[types.UID]map[reference]bool{},
		foreground:  map[types.UID]reference{},
		rejected:    map[string]bool{},
		version:     DefaultVersion,
	}
	for _, r := range resources {
		if r.storedAs == nil {
			s.collections[r.key()] = newCollection(r)
		}
	}
	s.bootstrap()
	return s
}

// ResourceVersion is the version of the newest write.
func (s *Server) ResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return formatRevision(s.revision)
}

// locked runs f with the lock held; a panic in f does not leave it locked.
func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// now is the cluster's time to the second, as the API server stamps it.
func (s *Server) now() time.Time { return s.clock().UTC().Truncate(time.Second) }

// nextRevision starts a write.
func (s *Server) nextRevision() uint64 {
	s.revision++
	return s.revision
}

func formatRevision(r uint64) string { return strconv.FormatUint(r, 10) }

func newNameSource(seed, stream uint64) *nameSource {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
		key[8+i] = byte(stream >> (8 * i))
	}
	return &nameSource{random: rand.NewChaCha8(key)}
}
