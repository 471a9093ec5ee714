package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxConfigMaps bounds those whose metadata is read, one GET each.
const maxConfigMaps = 50

// TakesEffectInPlace tells whether an object of that kind changes how nodes or Pods
// behave without a rollout: settings, policies and webhooks, by the names that
// Kubernetes and the network agents give such kinds.
func TakesEffectInPlace(kind string) bool {
	return kind == "ConfigMap" || kind == "Secret" ||
		strings.HasSuffix(kind, "Policy") || strings.HasSuffix(kind, "Configuration") || strings.HasSuffix(kind, "Config")
}

// settingsWanted tells whether it is worth asking who changed settings: a node has
// failed within the day and fails still.
func (s *Snapshot) settingsWanted() bool { return s.nodesFail() && !s.firstTrouble().IsZero() }

// configMapsWanted are the ConfigMaps that the templates of suspects refer to, and
// those of DaemonSets on the host's network: they can take a node down although
// nothing was rolled out and all their Pods are Ready.
func (s *Snapshot) configMapsWanted(suspects []types.UID) []types.NamespacedName {
	var first, rest []types.NamespacedName
	see := func(uid types.UID, namespace string, spec *corev1.PodSpec, agent bool) {
		switch {
		case slices.Contains(suspects, uid):
			first = append(first, configMapsOf(namespace, spec)...)
		case agent && spec.HostNetwork:
			rest = append(rest, configMapsOf(namespace, spec)...)
		}
	}
	for _, o := range s.DaemonSets {
		see(o.UID, o.Namespace, &o.Spec.Template.Spec, true)
	}
	for _, o := range s.Deployments {
		see(o.UID, o.Namespace, &o.Spec.Template.Spec, false)
	}
	for _, o := range s.StatefulSets {
		see(o.UID, o.Namespace, &o.Spec.Template.Spec, false)
	}
	var out []types.NamespacedName
	seen := map[types.NamespacedName]bool{}
	for _, n := range slices.Concat(first, rest) {
		if !seen[n] && len(out) < maxConfigMaps {
			out, seen[n] = append(out, n), true
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// configMapsOf are the ConfigMaps that a Pod's volumes and environment come from.
func configMapsOf(namespace string, spec *corev1.PodSpec) []types.NamespacedName {
	var out []types.NamespacedName
	add := func(name string) {
		if name != "" {
			out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			add(v.ConfigMap.Name)
		}
		if v.Projected == nil {
			continue
		}
		for _, src := range v.Projected.Sources {
			if src.ConfigMap != nil {
				add(src.ConfigMap.Name)
			}
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for _, e := range list[i].EnvFrom {
				if e.ConfigMapRef != nil {
					add(e.ConfigMapRef.Name)
				}
			}
			for _, e := range list[i].Env {
				if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
					add(e.ValueFrom.ConfigMapKeyRef.Name)
				}
			}
		}
	}
	return out
}
