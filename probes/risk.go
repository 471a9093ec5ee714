package probes

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// planned is a workload as the rules of risk judge it: the live one, or what a
// manifest would make of it.
type planned struct {
	c        *Diagnosis
	key      report.WorkloadKey
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	before   *corev1.PodTemplateSpec // the live template, nil where the workload does not exist yet
	selector *metav1.LabelSelector
	ds       *appsv1.DaemonSet // as planned, with the live one's UID; nil for other kinds
	uid      types.UID         // of the live workload, "" without one
	d        *daemonSet        // the live DaemonSet as diagnosed, nil without one
	r        *replicated       // the live Deployment or StatefulSet, nil without one

	rolling        bool // Pods are replaced without anybody's doing
	recreate       bool // all at once, by a Deployment's Recreate
	replicas       int  // of Deployments and StatefulSets
	maxUnavailable report.Text
	maxSurge       report.Text
	unavailable    int // resolved for as many nodes or replicas
	surge          int
	minReady       time.Duration
	history        *int32
	nodes          []*corev1.Node // that a DaemonSet's Pods would run on
	critical       []report.Text  // why a broken Pod can take its node down
}

// risk is one thing that makes a rollout dangerous, by the rules of a preflight.
type risk struct {
	code     report.Code
	severity report.Severity
	summary  report.Text
	evidence []report.Evidence
}

// rule looks for one kind of risk; nil where there is none.
type rule func(p *planned) *risk

// settingRules look at the template and the strategy alone. They hold for any
// workload, whether it is about to change or not.
var settingRules = []rule{
	(*planned).autoUpdates, (*planned).budgetTooWide, (*planned).noReadinessProbe, (*planned).noMinReadySeconds,
	(*planned).noPriorityClass, (*planned).noResourceRequests, (*planned).toleratesEverything, (*planned).broadHostPath,
	(*planned).privileged, (*planned).hostPortBlocksSurge, (*planned).shortGracePeriod, (*planned).noRevisionHistory,
	(*planned).mutableImageTag,
}

// settingRisks are the risks of the template and the strategy.
func (p *planned) settingRisks() []risk {
	var out []risk
	for _, f := range settingRules {
		if r := f(p); r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// finding is a risk as a preflight reports it.
func (p *planned) finding(r *risk) report.Finding {
	return report.Finding{Code: r.code, Severity: r.severity, Object: p.object(), Summary: r.summary, Evidence: r.evidence}
}

func (p *planned) object() report.Object {
	return report.Object{Kind: p.key.Kind, Namespace: p.key.Namespace, Name: p.key.Name}
}

// warning is a risk that a preflight warns of.
func warning(code report.Code, summary report.Text, evidence ...report.Evidence) *risk {
	return &risk{code: code, severity: report.Warning, summary: summary, evidence: evidence}
}

// breaks is a risk that would break something at once.
func breaks(code report.Code, summary report.Text, evidence ...report.Evidence) *risk {
	return &risk{code: code, severity: report.Critical, summary: summary, evidence: evidence}
}

// field is the value of a field of the workload, as evidence.
func (p *planned) field(path string, format string, args ...any) report.Evidence {
	return report.Evidence{Source: report.Textf("%s.%s", p.key.Kind, path), Value: report.Textf(format, args...)}
}

// planDaemonSet is a DaemonSet as the rules see it. live is the one that exists
// already, nil where none does.
func (c *Diagnosis) planDaemonSet(ds *appsv1.DaemonSet, live *daemonSet) *planned {
	p := &planned{c: c, key: report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Clean(ds.Namespace), Name: report.Clean(ds.Name)},
		meta: &ds.ObjectMeta, template: &ds.Spec.Template, selector: ds.Spec.Selector, d: live, history: ds.Spec.RevisionHistoryLimit}
	p.ds = ds
	if live != nil {
		p.before, p.uid = &live.ds.Spec.Template, live.ds.UID
		if ds != live.ds {
			p.ds = ds.DeepCopy()
			p.ds.UID = live.ds.UID
		}
	}
	runs := cluster.RuleOf(p.template)
	for _, n := range c.s.Nodes {
		if should, _ := runs.ShouldRun(n); should {
			p.nodes = append(p.nodes, n)
		}
	}
	p.rolling = ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	if p.rolling {
		p.maxUnavailable, p.maxSurge = "1", "0"
		if ru := ds.Spec.UpdateStrategy.RollingUpdate; ru != nil {
			if ru.MaxUnavailable != nil {
				p.maxUnavailable = report.Clean(ru.MaxUnavailable.String())
			}
			if ru.MaxSurge != nil {
				p.maxSurge = report.Clean(ru.MaxSurge.String())
			}
		}
		p.unavailable, p.surge = cluster.Budget(ds, p.desired())
	}
	p.minReady = cluster.MinReady(ds)
	p.critical = nodeCritical(p.template)
	return p
}

// desired is how many nodes a DaemonSet's Pods would run on: by the nodes, or by its
// status where they were not read.
func (p *planned) desired() int {
	if !p.c.s.Read(cluster.Nodes) && p.d != nil {
		return int(p.d.ds.Status.DesiredNumberScheduled)
	}
	return len(p.nodes)
}

// planDeployment is a Deployment as the rules see it.
func (c *Diagnosis) planDeployment(d *appsv1.Deployment, live *replicated) *planned {
	p := &planned{c: c, key: report.WorkloadKey{Kind: "Deployment", Namespace: report.Clean(d.Namespace), Name: report.Clean(d.Name)},
		meta: &d.ObjectMeta, template: &d.Spec.Template, selector: d.Spec.Selector, replicas: replicas(d.Spec.Replicas), history: d.Spec.RevisionHistoryLimit,
		rolling: !d.Spec.Paused, recreate: d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType, minReady: time.Duration(d.Spec.MinReadySeconds) * time.Second}
	p.knownAs(live)
	if ru := d.Spec.Strategy.RollingUpdate; ru != nil && !p.recreate {
		p.maxUnavailable, p.unavailable = resolved(ru.MaxUnavailable, p.replicas, false)
		p.maxSurge, p.surge = resolved(ru.MaxSurge, p.replicas, true)
		if p.unavailable == 0 && p.surge == 0 {
			p.unavailable = 1
		}
	}
	p.critical = nodeCritical(p.template)
	return p
}

// planStatefulSet is a StatefulSet as the rules see it.
func (c *Diagnosis) planStatefulSet(s *appsv1.StatefulSet, live *replicated) *planned {
	p := &planned{c: c, key: report.WorkloadKey{Kind: "StatefulSet", Namespace: report.Clean(s.Namespace), Name: report.Clean(s.Name)},
		meta: &s.ObjectMeta, template: &s.Spec.Template, selector: s.Spec.Selector, replicas: replicas(s.Spec.Replicas), history: s.Spec.RevisionHistoryLimit,
		rolling: s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType, minReady: time.Duration(s.Spec.MinReadySeconds) * time.Second}
	p.knownAs(live)
	p.maxUnavailable, p.unavailable = "1", 1
	p.critical = nodeCritical(p.template)
	return p
}

func (p *planned) knownAs(live *replicated) {
	if live != nil {
		p.r, p.before, p.uid = live, live.template, live.uid
	}
}

// isDaemonSet tells whether the Pods are tied to nodes.
func (p *planned) isDaemonSet() bool { return p.key.Kind == "DaemonSet" }

// changes tells whether the template is another one than the live one's, so that
// Pods would be replaced.
func (p *planned) changes() bool {
	return p.before == nil || p.before != p.template && !cluster.SameTemplate(p.before, p.template)
}

// allContainers are the init containers and the containers of a template.
func allContainers(s *corev1.PodSpec) []corev1.Container {
	return slices.Concat(s.InitContainers, s.Containers)
}

// running are the containers that run as long as the Pod does: containers, and init
// containers that are restarted, which is what sidecars are.
func running(s *corev1.PodSpec) []corev1.Container {
	var out []corev1.Container
	for _, c := range s.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return append(out, s.Containers...)
}

// nodeCritical lists why a broken Pod of the template can take its node down. Being on
// the host's network or in its process namespace alone is what every exporter is; and a
// path of the node that is only read cannot be spoilt.
func nodeCritical(t *corev1.PodTemplateSpec) []report.Text {
	writable := t.DeepCopy()
	writable.Spec.Volumes = slices.DeleteFunc(writable.Spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && onlyRead(&t.Spec, v.Name)
	})
	all := criticality(writable)
	for _, why := range all {
		if why != "hostNetwork" && why != "hostPID" {
			return all
		}
	}
	return nil
}

// onlyRead tells whether a volume is mounted, and nowhere so that it can be written.
func onlyRead(s *corev1.PodSpec, volume string) bool {
	mounted := false
	for _, c := range allContainers(s) {
		for _, m := range c.VolumeMounts {
			if m.Name == volume {
				mounted = true
				if !m.ReadOnly {
					return false
				}
			}
		}
	}
	return mounted
}
