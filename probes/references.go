package probes

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Reference is an object that a Pod template refers to, and that must exist before
// its Pods can start.
type Reference struct {
	Kind      string // ConfigMap, Secret, ServiceAccount, PriorityClass, PersistentVolumeClaim, RuntimeClass
	Namespace string // "" for kinds of the cluster
	Name      string
	Pull      bool     // a Secret that images are pulled with: without it they are pulled without credentials
	Optional  bool     // the Pod starts without it
	Keys      []string // of a ConfigMap or Secret, that must be there; sorted
	Where     []string // places in the template, sorted
}

// Existence says whether a referenced object is there.
type Existence int

// What is known of it. The zero value asks the snapshot.
const (
	NotAsked Existence = iota
	Exists
	Missing
	Unknown // forbidden, or the question failed
)

// Answer is what somebody found out about a Reference by asking the API server.
type Answer struct {
	Existence Existence
	Why       report.Text // of Unknown
}

// References lists what the template refers to, by kind and name.
func References(namespace string, s *corev1.PodSpec) []Reference {
	x := references{namespace: namespace, at: map[string]int{}}
	if name := cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount); name != "" && name != "default" {
		x.add("ServiceAccount", name, "spec.serviceAccountName", false)
	}
	if name := s.PriorityClassName; name != "" && !strings.HasPrefix(name, "system-") {
		x.add("PriorityClass", name, "spec.priorityClassName", false)
	}
	if s.RuntimeClassName != nil {
		x.add("RuntimeClass", *s.RuntimeClassName, "spec.runtimeClassName", false)
	}
	for _, r := range s.ImagePullSecrets {
		if i := x.add("Secret", r.Name, "spec.imagePullSecrets", false); i >= 0 && len(x.list[i].Where) == 1 {
			x.list[i].Pull = true
		}
	}
	for _, v := range s.Volumes {
		x.volume(&v)
	}
	for _, ct := range allContainers(s) {
		x.container(&ct)
	}
	for i := range x.list {
		r := &x.list[i]
		slices.Sort(r.Keys)
		slices.Sort(r.Where)
		r.Keys, r.Where = slices.Compact(r.Keys), slices.Compact(r.Where)
	}
	slices.SortFunc(x.list, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return x.list
}

type references struct {
	namespace string
	list      []Reference
	at        map[string]int
}

// add notes a reference and returns its place in the list, -1 for one without a name.
func (x *references) add(kind, name, where string, optional bool, keys ...string) int {
	if name == "" {
		return -1
	}
	i, again := x.at[kind+"/"+name]
	if !again {
		i = len(x.list)
		x.at[kind+"/"+name] = i
		r := Reference{Kind: kind, Namespace: x.namespace, Name: name, Optional: true}
		if kind == "PriorityClass" || kind == "RuntimeClass" {
			r.Namespace = ""
		}
		x.list = append(x.list, r)
	}
	r := &x.list[i]
	r.Optional = r.Optional && optional
	r.Pull = false // it is needed for something else as well
	r.Where = append(r.Where, where)
	if !optional {
		r.Keys = append(r.Keys, keys...)
	}
	return i
}

func (x *references) volume(v *corev1.Volume) {
	where := "spec.volumes[" + v.Name + "]"
	keys := func(items []corev1.KeyToPath) []string {
		var out []string
		for _, k := range items {
			out = append(out, k.Key)
		}
		return out
	}
	if m := v.ConfigMap; m != nil {
		x.add("ConfigMap", m.Name, where, isTrue(m.Optional), keys(m.Items)...)
	}
	if m := v.Secret; m != nil {
		x.add("Secret", m.SecretName, where, isTrue(m.Optional), keys(m.Items)...)
	}
	if m := v.PersistentVolumeClaim; m != nil {
		x.add("PersistentVolumeClaim", m.ClaimName, where, false)
	}
	if m := v.CSI; m != nil && m.NodePublishSecretRef != nil {
		x.add("Secret", m.NodePublishSecretRef.Name, where, false)
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if m := p.ConfigMap; m != nil {
			x.add("ConfigMap", m.Name, where, isTrue(m.Optional), keys(m.Items)...)
		}
		if m := p.Secret; m != nil {
			x.add("Secret", m.Name, where, isTrue(m.Optional), keys(m.Items)...)
		}
	}
}

func (x *references) container(ct *corev1.Container) {
	where := "spec.containers[" + ct.Name + "].env"
	for _, e := range ct.EnvFrom {
		if r := e.ConfigMapRef; r != nil {
			x.add("ConfigMap", r.Name, where+"From", isTrue(r.Optional))
		}
		if r := e.SecretRef; r != nil {
			x.add("Secret", r.Name, where+"From", isTrue(r.Optional))
		}
	}
	for _, e := range ct.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			x.add("ConfigMap", r.Name, where+"["+e.Name+"]", isTrue(r.Optional), r.Key)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			x.add("Secret", r.Name, where+"["+e.Name+"]", isTrue(r.Optional), r.Key)
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// inSnapshot says what the snapshot tells of a reference. Where the input holds
// objects of that kind and namespace, one that is not among them is missing; a kind of
// which there is none was not read.
func (c *Diagnosis) inSnapshot(r *Reference) (Answer, int) {
	if r.Kind == "PriorityClass" {
		if !c.s.Read(cluster.PriorityClasses) {
			return Answer{Unknown, "PriorityClasses were not read"}, 0
		}
		for _, p := range c.s.PriorityClasses {
			if p.Name == r.Name {
				return Answer{Existence: Exists}, 0
			}
		}
		return Answer{Existence: Missing}, len(c.s.PriorityClasses)
	}
	n := 0
	for _, o := range c.s.Others {
		if o.Kind != r.Kind || o.Namespace != r.Namespace {
			continue
		}
		n++
		if o.Name == r.Name {
			return Answer{Existence: Exists}, n
		}
	}
	if n == 0 {
		where := ""
		if r.Namespace != "" {
			where = " of namespace " + r.Namespace
		}
		return Answer{Unknown, report.Textf("no %s%s was read", r.Kind, where)}, 0
	}
	return Answer{Existence: Missing}, n
}

// referenceRisks are references to what does not exist. What could not be found out
// goes to unknown.
func (p *planned) referenceRisks(answers map[string]Answer) (out []risk, unknown []report.Text) {
	unchecked := map[string][]string{}
	for _, r := range References(p.meta.Namespace, &p.template.Spec) {
		a, asked := answers[r.Key()]
		from := report.Text("the API server does not find it")
		if !asked || a.Existence == NotAsked {
			var n int
			a, n = p.c.inSnapshot(&r)
			from = report.Textf("not among the %d that were read", n)
		}
		switch {
		case a.Existence == Unknown:
			unknown = append(unknown, report.Textf("whether %s exists (%s)", r.title(), a.Why))
		case a.Existence == Missing && !r.Optional:
			out = append(out, *p.missing(&r, from))
		case a.Existence == Exists && len(r.Keys) > 0:
			unchecked[r.Kind] = append(unchecked[r.Kind], r.Name)
		}
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		if list := unchecked[kind]; len(list) > 0 {
			unknown = append(unknown, report.Textf("whether the keys that are asked for are in %s %s: its data is never read", kind, names(list, 6)))
		}
	}
	return out, unknown
}

// Key identifies the object: "ConfigMap/kube-system/calico-config".
func (r *Reference) Key() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

func (r *Reference) title() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// missing is the finding of a reference to nothing: what Pods that are made from now
// on would meet.
func (p *planned) missing(r *Reference, from report.Text) *risk {
	ev := []report.Evidence{p.field("spec.template."+r.Where[0], "%s", r.Name), {Source: report.Clean(r.title()), Value: from}}
	switch r.Kind {
	case "ServiceAccount":
		return breaks(report.ServiceAccountMissing, report.Textf("service account %s does not exist: no Pod can be created", r.Name), ev...)
	case "PriorityClass":
		return breaks(report.PriorityClassMissing, report.Textf("priority class %s does not exist: no Pod can be created", r.Name), ev...)
	case "RuntimeClass":
		return breaks(report.AdmissionDenied, report.Textf("runtime class %s does not exist: no Pod can be created", r.Name), ev...)
	case "PersistentVolumeClaim":
		return breaks(report.VolumeMountFailed, report.Textf("claim %s does not exist: Pods wait until it does", r.Name), ev...)
	}
	if r.Pull {
		return warning(report.ImagePullUnauthorized, report.Textf("pull secret %s does not exist: images are pulled without its credentials", r.Name), ev...)
	}
	return breaks(report.ContainerConfigMissing, report.Textf("%s %s does not exist: new Pods cannot start", r.Kind, r.Name), ev...)
}
