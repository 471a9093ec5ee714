// Package watch keeps a live snapshot of a cluster: reflectors fill stores, and
// what they hold becomes a cluster.Snapshot at most ten times a second. It reads
// politely: one LIST and WATCH per kind and selector, Pods and their events of
// workloads under suspicion only, Leases of at most fifty nodes, other kinds while
// something asks for them. It knows what to
// read, never what it means: that is asked of the snapshot itself (Demand).
package watch
