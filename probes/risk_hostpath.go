package probes

import (
	"path"
	"slices"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// broadPaths are folders of a node of which a Pod that writes into them can spoil
// more than its own part.
var broadPaths = []string{
	"/", "/bin", "/boot", "/dev", "/etc", "/etc/kubernetes", "/etc/kubernetes/manifests", "/etc/systemd", "/etc/systemd/system", "/home", "/lib", "/lib64", "/opt",
	"/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var", "/var/lib", "/var/lib/containerd", "/var/lib/containers", "/var/lib/docker",
	"/var/lib/etcd", "/var/lib/kubelet", "/var/lib/kubelet/pods", "/var/log", "/var/run",
}

// runtimeSockets are the container runtimes' own: who may connect rules the node,
// however the socket is mounted.
var runtimeSockets = []string{"containerd.sock", "crio.sock", "docker.sock", "cri-dockerd.sock", "dockershim.sock"}

// broadHostPath names the folders of the node that the Pods get whole. Mounted so that
// they can only be read they show much and spoil nothing.
func (p *planned) broadHostPath() *risk {
	out := &risk{code: report.BroadHostPath, severity: report.Info}
	var written, read []string
	for _, v := range p.template.Spec.Volumes {
		if v.HostPath == nil || !mounted(p, v.Name) {
			continue
		}
		clean := path.Clean("/" + strings.TrimPrefix(v.HostPath.Path, "/"))
		socket := slices.Contains(runtimeSockets, path.Base(clean))
		if !socket && !slices.Contains(broadPaths, clean) {
			continue
		}
		how := "can be written"
		if onlyRead(&p.template.Spec, v.Name) && !socket {
			how = "read only"
			read = append(read, clean)
		} else {
			written = append(written, clean)
			out.severity = report.Warning
		}
		if socket {
			how = "the container runtime's socket"
		}
		out.evidence = append(out.evidence, p.field("spec.template.spec.volumes["+v.Name+"].hostPath", "%s: %s", v.HostPath.Path, how))
	}
	switch {
	case len(written) > 0 && len(read) > 0:
		out.summary = report.Textf("mounts %s of the node, and %s to read", names(written, 6), names(read, 4))
	case len(written) > 0:
		out.summary = report.Textf("mounts %s of the node: what it spoils there takes more with it than itself", names(written, 6))
	case len(read) > 0:
		out.summary = report.Textf("mounts %s of the node, to read only", names(read, 6))
	default:
		return nil
	}
	return out
}

func mounted(p *planned, volume string) bool {
	for _, c := range allContainers(&p.template.Spec) {
		for _, m := range c.VolumeMounts {
			if m.Name == volume {
				return true
			}
		}
	}
	return false
}
