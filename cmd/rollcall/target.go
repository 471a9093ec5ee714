package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// workloadTypes are the names of the kinds that have rollouts, as kubectl takes them.
var workloadTypes = map[string]string{
	"ds": "DaemonSet", "daemonset": "DaemonSet", "daemonsets": "DaemonSet", "daemonset.apps": "DaemonSet", "daemonsets.apps": "DaemonSet",
	"deploy": "Deployment", "deployment": "Deployment", "deployments": "Deployment", "deployment.apps": "Deployment", "deployments.apps": "Deployment",
	"sts": "StatefulSet", "statefulset": "StatefulSet", "statefulsets": "StatefulSet", "statefulset.apps": "StatefulSet", "statefulsets.apps": "StatefulSet",
}

// target is a workload as it was typed.
type target struct {
	kind, name string
}

func (t target) String() string { return t.kind + "/" + t.name }

// key is the workload's identity in a namespace.
func (t target) key(namespace string) report.WorkloadKey {
	return report.WorkloadKey{Kind: report.Text(t.kind), Namespace: report.Clean(namespace), Name: report.Clean(t.name)}
}

func knownType(s string) bool { _, ok := workloadTypes[strings.ToLower(s)]; return ok }

// parseTarget reads TYPE/NAME, or TYPE NAME as kubectl takes it too.
func parseTarget(args []string) (target, error) {
	typ, name, slash := strings.Cut(args[0], "/")
	switch {
	case len(args) == 2 && !slash:
		name = args[1]
	case len(args) > 1:
		return target{}, usagef("one workload at a time: %s", strings.Join(args, " "))
	}
	kind, ok := workloadTypes[strings.ToLower(typ)]
	switch {
	case !ok && noRollouts[strings.ToLower(typ)]:
		return target{}, usagef("%s have no rollout of their own: name the DaemonSet, Deployment or StatefulSet, as in ds/calico-node", plural(typ))
	case !ok:
		text := fmt.Sprintf("unknown type %q in %q", typ, strings.Join(args, " "))
		names := []string{"ds", "deploy", "sts", "daemonset", "deployment", "statefulset"}
		if near := nearest(strings.ToLower(typ), names); near != "" {
			return target{}, usagef("%s; did you mean %s/%s?", text, near, or(name, "NAME"))
		}
		return target{}, usagef("%s; ds, deploy and sts are known", text)
	case name == "" || strings.Contains(name, "/"):
		return target{}, usagef("%q names no workload; write %s/NAME, and the namespace with -n", strings.Join(args, " "), typ)
	}
	return target{kind: kind, name: name}, nil
}

var noRollouts = map[string]bool{
	"po": true, "pod": true, "pods": true, "no": true, "node": true, "nodes": true, "rs": true, "replicaset": true, "replicasets": true,
	"job": true, "jobs": true, "cj": true, "cronjob": true, "cronjobs": true, "svc": true, "service": true, "services": true,
}

func plural(typ string) string {
	switch t := strings.ToLower(typ); t {
	case "po", "pod":
		return "Pods"
	case "no", "node":
		return "nodes"
	case "rs", "replicaset":
		return "ReplicaSets"
	case "svc", "service":
		return "Services"
	case "cj", "cronjob":
		return "CronJobs"
	case "job":
		return "Jobs"
	default:
		return t
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// nearest is the name that was probably meant, or "". The measure is the one by
// which cobra suggests commands.
func nearest(typed string, names []string) string {
	if typed == "" {
		return "" // every name begins with it
	}
	c := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		c.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	found := c.SuggestionsFor(typed)
	slices.SortStableFunc(found, func(a, b string) int { return gap(a, typed) - gap(b, typed) })
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// gap orders suggestions: of those near enough, the one of the most similar length.
func gap(a, b string) int {
	if len(a) > len(b) {
		return len(a) - len(b)
	}
	return len(b) - len(a)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

func completeTarget(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"ds/", "deploy/", "sts/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
