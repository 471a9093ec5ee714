package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// target is where a connection goes and on whose word.
type target struct {
	config    *rest.Config
	context   string
	namespace string
	narrowed  bool // --namespace was given
}

const (
	findKubeconfig = "give one with --kubeconfig or KUBECONFIG, or try `rollcall practice`, which needs no cluster"
	listContexts   = "`kubectl config get-contexts` lists the contexts"
)

// load reads the kubeconfig, or the in-cluster configuration where there is none.
// It sends nothing. Every error is a *ConnectError.
func (f *Flags) load() (target, error) {
	rules := f.rules()
	files := sources(rules)
	raw, err := rules.Load()
	if err != nil {
		return target{}, unloadable(files, err)
	}
	deferred := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.Overrides)
	t := target{context: raw.CurrentContext}
	if f.Overrides.CurrentContext != "" {
		t.context = f.Overrides.CurrentContext
	}
	if err := f.check(raw, t.context, files); err != nil {
		return target{}, err
	}
	if t.config, err = deferred.ClientConfig(); err != nil {
		return target{}, f.unusable(files, t.context, err)
	}
	if t.namespace, t.narrowed, err = deferred.Namespace(); err != nil {
		return target{}, f.unusable(files, t.context, err)
	}
	return t, nil
}

// check finds names that do not exist before clientcmd does, to name the nearest.
func (f *Flags) check(raw *api.Config, context string, files []string) error {
	on := strings.Join(files, ", ")
	given := f.Overrides.ClusterInfo.Server != "" || f.Overrides.Context.Cluster != ""
	if context == "" && len(raw.Contexts) > 0 && !given {
		return connectError("use kubeconfig", on, "it has no current-context", fmt.Sprintf("choose one with --context: %s", some(keys(raw.Contexts))), nil)
	}
	for _, n := range []struct {
		what, name, from string
		names            []string
		demanded         bool
	}{
		{"context", context, "", keys(raw.Contexts), context != ""},
		{"cluster", f.Overrides.Context.Cluster, " (--cluster)", keys(raw.Clusters), f.Overrides.Context.Cluster != ""},
		{"user", f.Overrides.Context.AuthInfo, " (--user)", keys(raw.AuthInfos), f.Overrides.Context.AuthInfo != ""},
	} {
		if !n.demanded || slices.Contains(n.names, n.name) {
			continue
		}
		return connectError(fmt.Sprintf("use %s %q%s", n.what, n.name, n.from), on, fmt.Sprintf("there is no such %s", n.what), suggest(n.what, n.name, n.names), nil)
	}
	// A context of the file that points nowhere.
	if c := raw.Contexts[context]; c != nil {
		if c.Cluster != "" && raw.Clusters[c.Cluster] == nil && !given {
			return connectError(fmt.Sprintf("use context %q", context), on, fmt.Sprintf("its cluster %q is not there", c.Cluster), suggest("cluster", c.Cluster, keys(raw.Clusters)), nil)
		}
		if c.AuthInfo != "" && raw.AuthInfos[c.AuthInfo] == nil && f.Overrides.Context.AuthInfo == "" {
			return connectError(fmt.Sprintf("use context %q", context), on, fmt.Sprintf("its user %q is not there", c.AuthInfo), suggest("user", c.AuthInfo, keys(raw.AuthInfos)), nil)
		}
	}
	return nil
}

// unloadable explains why a kubeconfig could not be read or parsed.
func unloadable(files []string, err error) error {
	for _, p := range files {
		_, e := os.ReadFile(p)
		switch {
		case e == nil:
			if _, e := clientcmd.LoadFromFile(p); e != nil {
				return connectError("read kubeconfig", p, "it is malformed: "+e.Error(), "correct the file; `kubectl config view` checks it", err)
			}
		case errors.Is(e, fs.ErrNotExist):
			if len(files) == 1 {
				return connectError("read kubeconfig", p, "there is no such file", findKubeconfig, err)
			}
		case errors.Is(e, fs.ErrPermission):
			return connectError("read kubeconfig", p, "you may not read it", "check its owner and mode: `ls -l` it", err)
		default:
			return connectError("read kubeconfig", p, rootCause(e), findKubeconfig, err)
		}
	}
	return connectError("read kubeconfig", strings.Join(files, ", "), rootCause(err), findKubeconfig, err)
}

// unusable explains why a kubeconfig that could be read names no cluster.
func (f *Flags) unusable(files []string, context string, err error) error {
	on := strings.Join(files, ", ")
	if clientcmd.IsEmptyConfig(err) {
		there := slices.DeleteFunc(slices.Clone(files), func(p string) bool { return !exists(p) })
		if len(there) == 0 {
			return connectError("find a kubeconfig", on, "there is none, and this is not inside a cluster", findKubeconfig, err)
		}
		return connectError("use kubeconfig", strings.Join(there, ", "), "it is empty: it names no cluster", findKubeconfig, err)
	}
	if context != "" {
		on = fmt.Sprintf("context %q of %s", context, on)
	}
	why := strings.TrimPrefix(rootCause(err), "invalid configuration: ")
	return connectError("use kubeconfig", on, why, "correct the kubeconfig or the flags; "+listContexts, err)
}

// suggest names what was probably meant.
func suggest(what, name string, names []string) string {
	switch near := nearest(name, names); {
	case near != "":
		return fmt.Sprintf("did you mean %q?", near)
	case len(names) == 0:
		return fmt.Sprintf("the kubeconfig has no %s at all; %s", what, findKubeconfig)
	default:
		return fmt.Sprintf("there are: %s", some(names))
	}
}

// some lists the first few names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
