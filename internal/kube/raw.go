package kube

import (
	"context"
	"io"
	"net/url"

	corev1 "k8s.io/api/core/v1"
)

// rawRetries is how often an answer that names a time to come back is waited for.
const rawRetries = 5

// Raw sends a GET of a path such as "/api/v1/nodes" and returns the body of the
// answer as it comes, in the form that accept names. An answer that is an error is
// returned as one, with the API server's status where it sent one. The caller
// closes the body; the request timeout bounds the time until it has been read.
func (c *Connection) Raw(ctx context.Context, path string, query url.Values, accept string) (io.ReadCloser, error) {
	r := c.REST(corev1.SchemeGroupVersion).Get().AbsPath(path).SetHeader("Accept", accept).MaxRetries(rawRetries)
	for name, values := range query {
		for _, v := range values {
			r.Param(name, v)
		}
	}
	return r.Stream(ctx)
}
