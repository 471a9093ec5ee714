package kube

import (
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are the connection flags, named and shortened as kubectl's are, and
// --read-only.
type Flags struct {
	Kubeconfig string
	ReadOnly   bool
	Overrides  clientcmd.ConfigOverrides
}

// Bind registers the flags.
func (f *Flags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for requests to the API server")
	fs.BoolVar(&f.ReadOnly, "read-only", false, "Refuse every request that is not a read, dry runs included")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.Description = "Look at the workloads of this namespace only"
	names.ClusterOverrideFlags.APIServer.ShortName = "s" // as kubectl has it; clientcmd leaves it out
	clientcmd.BindOverrideFlags(&f.Overrides, fs, names)
}

// rules are kubectl's: --kubeconfig, else the list in KUBECONFIG, else ~/.kube/config.
func (f *Flags) rules() *clientcmd.ClientConfigLoadingRules {
	r := clientcmd.NewDefaultClientConfigLoadingRules()
	r.ExplicitPath = f.Kubeconfig
	r.WarnIfAllMissing = false // said in a clear line of our own
	r.MigrationRules = nil     // a reader does not move files
	return r
}

// sources lists the files that the rules look at, in their order.
func sources(r *clientcmd.ClientConfigLoadingRules) []string {
	if r.ExplicitPath != "" {
		return []string{r.ExplicitPath}
	}
	var out []string
	for _, p := range r.Precedence {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !os.IsNotExist(err)
}
