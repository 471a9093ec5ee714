package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is the user of the control plane's own components and of the tests.
const Admin = "admin"

// User is somebody whom the API server knows by a token.
type User struct {
	Name string
	// Groups are those that the token carries, such as system:masters.
	Groups []string
	// Rules are granted to the user in all namespaces. Everybody may ask what
	// they may do (system:basic-user) and which kinds there are (system:discovery).
	Rules []rbacv1.PolicyRule
}

// Reading lets a user read the given resources of one API group.
func Reading(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: resources,
		Verbs: []string{"get", "list", "watch"},
	}
}

func token(user string) string { return "token-of-" + user }

// Config reaches the API server as a user.
func (c *ControlPlane) Config(user string) *rest.Config {
	return &rest.Config{
		Host:            c.URL,
		BearerToken:     token(user),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.Authority.PEM},
		QPS:             -1, // the server's priority and fairness is the brake
	}
}

// Kubeconfig is the path of the user's kubeconfig.
func (c *ControlPlane) Kubeconfig(user string) string { return c.file(user + ".kubeconfig") }

// WriteKubeconfig writes one with other credentials, and returns its path. Its
// context is called e2e, as in those of the users.
func (c *ControlPlane) WriteKubeconfig(name string, auth clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: c.URL, CertificateAuthorityData: c.Authority.PEM}
	config.AuthInfos[name] = &auth
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: name}
	config.CurrentContext = "e2e"
	return c.Kubeconfig(name), clientcmd.WriteToFile(*config, c.Kubeconfig(name))
}

// writeCredentials makes certificates, the token file and a kubeconfig for every user.
func (c *ControlPlane) writeCredentials() error {
	var err error
	if c.Authority, err = NewAuthority(); err != nil {
		return err
	}
	cert, key, err := c.Authority.Issue("kube-apiserver", time.Now().Add(24*time.Hour))
	if err != nil {
		return err
	}
	var tokens bytes.Buffer
	for _, u := range c.users {
		_, _ = fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token(u.Name), u.Name, u.Name, strings.Join(u.Groups, ","))
	}
	for name, data := range map[string][]byte{"ca.crt": c.Authority.PEM, "server.crt": cert, "server.key": key, "tokens.csv": tokens.Bytes()} {
		if err := c.write(name, data); err != nil {
			return err
		}
	}
	for _, u := range c.users {
		if _, err := c.WriteKubeconfig(u.Name, clientcmdapi.AuthInfo{Token: token(u.Name)}); err != nil {
			return err
		}
	}
	return nil
}

// grant gives every user the rules it comes with.
func (c *ControlPlane) grant(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	for _, u := range c.users {
		if len(u.Rules) == 0 {
			continue
		}
		meta := metav1.ObjectMeta{Name: "e2e:" + u.Name}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: u.Rules}
		if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); unlessExists(err) != nil {
			return err
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.Name}},
		}
		if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); unlessExists(err) != nil {
			return err
		}
	}
	return nil
}
