package sim

// Name is the node's name.
func (h *Host) Name() string { return h.k.name }
