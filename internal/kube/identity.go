package kube

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// WhoAmI is the user name that the API server knows this session by; "" where it
// does not tell (before Kubernetes 1.28, or forbidden).
func (c *Connection) WhoAmI(ctx context.Context) (string, error) {
	var review authenticationv1.SelfSubjectReview
	err := c.REST(authenticationv1.SchemeGroupVersion).Post().Resource("selfsubjectreviews").
		Body(&authenticationv1.SelfSubjectReview{}).Do(ctx).Into(&review)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", c.Explain("ask who you are", err)
	}
	return review.Status.UserInfo.Username, nil
}
