package cluster

// History is what the API forgets. It is a pure fold over the snapshots seen so
// far: the same snapshots give the same History, live, in a replay or from files.
type History struct{}

func (h *History) fold(s *Snapshot) *History { return h }
