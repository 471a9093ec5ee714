package probes

// Probes are the probes by the name that a runbook's step uses. A new probe is one
// file and one line here.
var Probes = map[string]Probe{}
