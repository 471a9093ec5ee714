package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// kubeconfig writes a kubeconfig with the contexts of two clusters.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	return file(t, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: prod-eu-1
clusters:
- {name: eu, cluster: {server: %q}}
- {name: us, cluster: {server: "https://us.example:6443"}}
users:
- {name: admin, user: {token: sesame}}
contexts:
- {name: prod-eu-1, context: {cluster: eu, user: admin, namespace: shop}}
- {name: staging-us, context: {cluster: us, user: admin}}
- {name: broken, context: {cluster: gone, user: admin}}
- {name: nobody, context: {cluster: eu, user: gone}}
`, server))
}

func file(t *testing.T, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKubeconfigIsLoadedAsKubectlLoadsIt(t *testing.T) {
	t.Parallel()
	p := kubeconfig(t, "https://eu.example:6443")
	for _, c := range []struct {
		name                     string
		args                     []string
		context, host, namespace string
		narrowed                 bool
	}{
		{"current context", nil, "prod-eu-1", "https://eu.example:6443", "shop", false},
		{"context given", []string{"--context", "staging-us"}, "staging-us", "https://us.example:6443", "default", false},
		{"namespace given", []string{"-n", "web"}, "prod-eu-1", "https://eu.example:6443", "web", true},
		{"namespace as kubectl writes it", []string{"-n", "ns/web"}, "prod-eu-1", "https://eu.example:6443", "web", true},
		{"server given, short", []string{"-s", "https://other:1"}, "prod-eu-1", "https://other:1", "shop", false},
		{"cluster given", []string{"--cluster", "us"}, "prod-eu-1", "https://us.example:6443", "shop", false},
		{"server of a context whose cluster is gone", []string{"--context", "broken", "--server", "https://other:1"}, "broken", "https://other:1", "default", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(t, append(c.args, "--kubeconfig", p)...).load()
			if err != nil {
				t.Fatal(err)
			}
			if got.context != c.context || got.config.Host != c.host || got.namespace != c.namespace || got.narrowed != c.narrowed {
				t.Errorf("got %q %q %q %v, want %q %q %q %v", got.context, got.config.Host, got.namespace, got.narrowed, c.context, c.host, c.namespace, c.narrowed)
			}
			if got.config.BearerToken != "sesame" {
				t.Error("the user's token was not taken")
			}
		})
	}
}

func TestConnectionFlagsReachTheConfiguration(t *testing.T) {
	t.Parallel()
	got, err := parse(t, "--kubeconfig", kubeconfig(t, "https://eu.example:6443"),
		"--as", "jane", "--as-group", "sre", "--as-group", "dev", "--as-uid", "7", "--token", "other",
		"--insecure-skip-tls-verify", "--tls-server-name", "api", "--request-timeout", "7s").load()
	if err != nil {
		t.Fatal(err)
	}
	c := got.config
	if c.Impersonate.UserName != "jane" || strings.Join(c.Impersonate.Groups, ",") != "sre,dev" || c.Impersonate.UID != "7" {
		t.Errorf("impersonation: %+v", c.Impersonate)
	}
	if c.BearerToken != "other" || !c.Insecure || c.ServerName != "api" || c.Timeout.Seconds() != 7 {
		t.Errorf("token %q, insecure %v, server name %q, timeout %v", c.BearerToken, c.Insecure, c.ServerName, c.Timeout)
	}
}

func TestUnusableKubeconfigIsExplainedInOneLine(t *testing.T) {
	t.Parallel()
	good := kubeconfig(t, "https://eu.example:6443")
	empty, garbage := file(t, ""), file(t, "clusters: [\n  {name: x\n")
	noCurrent := file(t, "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://a'}}]\ncontexts: [{name: one, context: {cluster: a}}]\n")
	missing := filepath.Join(t.TempDir(), "nope")
	directory := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"missing", []string{"--kubeconfig", missing}, []string{"read kubeconfig", missing, "no such file", "--kubeconfig"}},
		{"empty", []string{"--kubeconfig", empty}, []string{empty, "it is empty"}},
		{"malformed", []string{"--kubeconfig", garbage}, []string{garbage, "malformed", "line"}},
		{"a directory", []string{"--kubeconfig", directory}, []string{directory, "is a directory"}},
		{"unknown context", []string{"--kubeconfig", good, "--context", "prd-eu-1"}, []string{`context "prd-eu-1"`, good, `did you mean "prod-eu-1"?`}},
		{"unknown cluster", []string{"--kubeconfig", good, "--cluster", "eux"}, []string{`cluster "eux" (--cluster)`, `did you mean "eu"?`}},
		{"unknown user", []string{"--kubeconfig", good, "--user", "zzz"}, []string{`user "zzz" (--user)`, "there are: admin"}},
		{"context without its cluster", []string{"--kubeconfig", good, "--context", "broken"}, []string{`context "broken"`, `its cluster "gone" is not there`}},
		{"context without its user", []string{"--kubeconfig", good, "--context", "nobody"}, []string{`context "nobody"`, `its user "gone" is not there`, "admin"}},
		{"no current context", []string{"--kubeconfig", noCurrent}, []string{noCurrent, "no current-context", "--context: one"}},
		{"missing authority", []string{"--kubeconfig", good, "--certificate-authority", missing}, []string{good, missing}},
		{"bad timeout", []string{"--kubeconfig", good, "--request-timeout", "soon"}, []string{good, "timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, c.args...).load()
			var e *ConnectError
			if !errors.As(err, &e) {
				t.Fatalf("got %T %v, want a ConnectError", err, err)
			}
			line := e.Error()
			for _, w := range c.want {
				if !strings.Contains(line, w) {
					t.Errorf("%q does not say %q", line, w)
				}
			}
			if strings.ContainsAny(line, "\n\r") || e.Next == "" || e.Why == "" {
				t.Errorf("not one clear line: %q", line)
			}
			if strings.Contains(line, "sesame") {
				t.Errorf("the token shows in %q", line)
			}
		})
	}
}

func TestKubeconfigListSkipsMissingFilesAndMerges(t *testing.T) {
	p := kubeconfig(t, "https://eu.example:6443")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nope")+string(os.PathListSeparator)+p)
	got, err := parse(t).load()
	if err != nil {
		t.Fatal(err)
	}
	if got.config.Host != "https://eu.example:6443" {
		t.Errorf("host %q", got.config.Host)
	}
}

func TestNoKubeconfigAtAll(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "a")
	t.Setenv("KUBECONFIG", missing+string(os.PathListSeparator)+missing+"b")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := parse(t).load()
	var e *ConnectError
	if !errors.As(err, &e) || !strings.Contains(e.Error(), "not inside a cluster") || !strings.Contains(e.On, missing) {
		t.Fatalf("got %v", err)
	}
}

func TestNearestForgivesATypo(t *testing.T) {
	t.Parallel()
	names := []string{"prod-eu-1", "prod-us-1", "staging"}
	for typed, want := range map[string]string{
		"prd-eu-1": "prod-eu-1", "prod-ex-1": "prod-eu-1", "porduction": "", "stagign": "staging",
		"staging-2": "staging", "prod-us": "prod-us-1", "q": "",
	} {
		if got := nearest(typed, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestNothingIsNearWhatIsNoName(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"prod", strings.Repeat("prod-eu-1", 20_000)} {
		if got := nearest(typed, []string{"d", "staging"}); got != "" {
			t.Errorf("nearest of %d characters is %q", len(typed), got)
		}
	}
}
