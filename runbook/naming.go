package runbook

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// ValuesOf names what the commands are about: the workload, one failing node with
// its Pod, the revisions, the way to the API server. What is not known stays "".
func ValuesOf(s *cluster.Snapshot, r *report.Report, target report.WorkloadKey) Values {
	v := Values{Kind: string(target.Kind), Namespace: string(target.Namespace), Name: string(target.Name)}
	v.APIHost, v.APIAddress = address(s, r)
	if w := r.Workload(target); w != nil {
		v.Revision, v.KnownGood = number(w.Rollout.Revision), number(w.Rollout.KnownGoodRevision)
		if v.KnownGood == "" {
			v.KnownGood = number(w.Recommendation.ToRevision)
		}
		v.Budget, v.WiderBudget = budgets(w)
		if t := w.Rollout.StartedAt; t != nil && !t.IsZero() {
			v.Since = t.Add(-time.Minute).UTC().Format("2006-01-02 15:04:05 UTC")
		}
		v.Node, v.LostNode, v.Pod = failing(w)
	}
	if o, template, selector := find(s, target); o != nil {
		v.Selector = metav1.FormatLabelSelector(selector)
		v.Release = o.GetLabels()["app.kubernetes.io/instance"]
		v.Container, v.InitContainer = containers(template.Spec, corev1.PodStatus{})
		if v.Pod == "" && v.Node != "" {
			v.Pod = podOn(s, o, v.Node)
		}
	}
	if p := s.Pod(v.Namespace, v.Pod); p != nil {
		v.Container, v.InitContainer = containers(p.Spec, p.Status)
		if v.Node == "" {
			v.Node = p.Spec.NodeName
		}
	}
	if v.Node == "" {
		v.Node = v.LostNode
	}
	return v
}

// budgets are maxUnavailable as JSON, as it is written and as it must be for the
// rest to move beside unreachable nodes, each of which holds one unit of it. Both
// are "" where that is no lever: only a DaemonSet without surge has it.
func budgets(w *report.Workload) (now, wider string) {
	r := w.Rollout
	if w.Kind != "DaemonSet" || r.MaxSurgeResolved > 0 || r.MaxUnavailable == "" {
		return "", ""
	}
	now = string(r.MaxUnavailable)
	if _, err := strconv.Atoi(now); err != nil {
		now = strconv.Quote(now)
	}
	if n := len(w.Recommendation.Unreachable); n > 0 {
		wider = strconv.Itoa(n + max(1, r.MaxUnavailableResolved))
	}
	return now, wider
}

// failing picks the node and the Pod to look at: the Pod that a finding names, the
// first broken node that the API reaches, the first that it does not.
func failing(w *report.Workload) (node, lost, pod string) {
	rec := w.Recommendation
	if len(rec.Unreachable) > 0 {
		lost = string(rec.Unreachable[0])
	}
	if rec.Pod != "" {
		for _, f := range w.Findings {
			if f.Object.Name == rec.Pod {
				return string(f.Node), lost, string(rec.Pod)
			}
		}
		if len(rec.Reachable) > 0 {
			return string(rec.Reachable[0]), lost, string(rec.Pod)
		}
	}
	for _, f := range w.Findings {
		if f.Code == report.StuckTerminating || slices.Contains(rec.Unreachable, f.Node) {
			continue // deleting it, or asking its kubelet, does nothing
		}
		if f.Code.IsPod() && f.Object.Kind == "Pod" {
			return string(f.Node), lost, string(f.Object.Name)
		}
	}
	if len(rec.Reachable) > 0 {
		node = string(rec.Reachable[0])
	} else if m := w.Measures; m != nil && len(m.After) > 0 {
		node = string(m.After[0])
	}
	return node, lost, ""
}

// find returns the workload's object, its template and its selector.
func find(s *cluster.Snapshot, k report.WorkloadKey) (metav1.Object, *corev1.PodTemplateSpec, *metav1.LabelSelector) {
	is := func(o metav1.Object) bool {
		return o.GetNamespace() == string(k.Namespace) && o.GetName() == string(k.Name)
	}
	switch k.Kind {
	case "DaemonSet":
		for _, o := range s.DaemonSets {
			if is(o) {
				return o, &o.Spec.Template, o.Spec.Selector
			}
		}
	case "Deployment":
		for _, o := range s.Deployments {
			if is(o) {
				return o, &o.Spec.Template, o.Spec.Selector
			}
		}
	case "StatefulSet":
		for _, o := range s.StatefulSets {
			if is(o) {
				return o, &o.Spec.Template, o.Spec.Selector
			}
		}
	}
	return nil, nil, nil
}

// podOn is the workload's youngest Pod on the node.
func podOn(s *cluster.Snapshot, owner metav1.Object, node string) string {
	var found *corev1.Pod
	for _, p := range s.PodsOn(node) {
		if metav1.IsControlledBy(p, owner) && (found == nil || found.CreationTimestamp.Before(&p.CreationTimestamp)) {
			found = p
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}

// containers picks the containers whose logs matter: the first that is not well,
// otherwise the first.
func containers(spec corev1.PodSpec, status corev1.PodStatus) (main, initial string) {
	pick := func(cs []corev1.Container, states []corev1.ContainerStatus, well func(corev1.ContainerStatus) bool) string {
		for _, c := range states {
			if !well(c) {
				return c.Name
			}
		}
		if len(cs) > 0 {
			return cs[0].Name
		}
		return ""
	}
	main = pick(spec.Containers, status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Ready })
	initial = pick(spec.InitContainers, status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Ready || c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	})
	return main, initial
}

// address is where the API server is reached.
func address(s *cluster.Snapshot, r *report.Report) (host, address string) {
	server := string(r.Source.Server)
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	port := "443"
	if u, err := url.Parse(server); err == nil {
		host = u.Hostname()
		port = cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme], port)
	}
	if s.APIHost != "" {
		host = s.APIHost
		if h, p, err := net.SplitHostPort(s.APIHost); err == nil {
			host, port = h, p
		}
	}
	if host == "" {
		return "", ""
	}
	return host, net.JoinHostPort(host, port)
}
