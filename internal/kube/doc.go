// Package kube reaches a cluster: kubeconfig, the HTTP client with its read-only
// gate, access reviews, logs and the API server's clock. It hands out REST clients
// and answers; it reads no kind on its own account and concludes nothing.
package kube
