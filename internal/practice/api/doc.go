// Package api is a small Kubernetes API server in memory. It carries the practice cluster and serves unit tests.
//
// It has two sides on one store:
//
//   - Go: Get, List, Create, Update, UpdateStatus, Patch, Bind, Delete, all synchronous. The simulated controllers and
//     kubelets use it.
//   - REST: Handler and Config speak the API server's protocol (JSON and protobuf, LIST, WATCH, patches, dry run, access
//     reviews, discovery), so that client-go, informers and kubectl meet what they meet on a real cluster.
//
// What it keeps of a real API server: resourceVersions and optimistic locking, UIDs, generation, defaults and validation
// of what an operator can get wrong, status subresources, managed fields, graceful deletion, finalizers, garbage
// collection of dependents, the lifetime of events, and the exact shape of errors. What it leaves out: custom resources,
// admission webhooks (they can be stored, nothing calls them), quotas, and every kind that resources.go does not name.
//
// Time is virtual (Clock) and names and UIDs are drawn from a seed, so a run can be repeated exactly. The package knows
// nothing of probes or runbooks.
package api
