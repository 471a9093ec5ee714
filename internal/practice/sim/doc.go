// Package sim plays everything of a Kubernetes cluster but its API server: the
// DaemonSet, ReplicaSet, Deployment and EndpointSlice controllers, the node
// lifecycle, taint eviction and Pod garbage collection, a scheduler in small, and
// the kubelets with the programs that run under them.
//
// It follows Kubernetes 1.37; where behaviour matters the source is named beside
// it. Time is virtual: a World holds a queue of what is due, Step runs it, nothing
// sleeps and nothing runs beside it. Chance (node order, jitter, how long a program
// takes) is drawn from a seed, so the same incident plays the same way again.
//
// It knows nothing of probes, runbooks or what an incident means.
package sim
