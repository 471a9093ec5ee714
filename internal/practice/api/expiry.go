package api

import (
	"slices"
	"time"
)

// expiry is when an Event ends, unless it was written again meanwhile.
type expiry struct {
	at      time.Time
	key     string
	version string
}

func (s *Server) expireLater(k string, o object) {
	e := expiry{at: s.clock().Add(EventTTL), key: k, version: o.GetResourceVersion()}
	s.expiries = append(s.expiries, e) // in order: the clock does not run backwards
}

// expireEvents removes what has outlived EventTTL. Every operation calls it first, so nothing needs a timer.
func (s *Server) expireEvents() {
	if len(s.expiries) == 0 {
		return
	}
	now := s.clock()
	n := 0
	for n < len(s.expiries) && !s.expiries[n].at.After(now) {
		e := s.expiries[n]
		n++
		c := s.collections[storedEvents.key()]
		if o := c.objects[e.key]; o != nil && o.GetResourceVersion() == e.version {
			s.remove(c, e.key, o)
		}
	}
	s.expiries = slices.Delete(s.expiries, 0, n)
}
