package files

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Daemon generates a DaemonSet, its ControllerRevisions and one Pod for each node
// that it counts (before any NodeTrouble), with its events. Defaults: namespace
// kube-system, one container named like it, RollingUpdate with maxUnavailable 1.
type Daemon struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Tolerates is "everything" for a toleration of every taint, as agents have;
	// other tolerations stand in the template.
	Tolerates      string              `json:"tolerates"`
	HostNetwork    bool                `json:"hostNetwork"`
	Template       json.RawMessage     `json:"template"` // strategic merge on the default one
	Strategy       string              `json:"strategy"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	MaxSurge       *intstr.IntOrString `json:"maxSurge"`
	MinReady       int32               `json:"minReadySeconds"`
	Revisions      []RevisionSpec      `json:"revisions"`
	Pods           []PodRule           `json:"pods"`
	// Status is set as it stands instead of being counted.
	Status *appsv1.DaemonSetStatus `json:"status"`
	// Observed is the generation that the controller has seen, default the current one.
	Observed int64           `json:"observedGeneration"`
	Patch    json.RawMessage `json:"patch"` // strategic merge on the DaemonSet
}

func (d *Daemon) fill() { d.Namespace = or(d.Namespace, metav1.NamespaceSystem) }

// autoTolerations are those that the controller adds.
// Source: pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations.
func autoTolerations(hostNetwork bool) []corev1.Toleration {
	var out []corev1.Toleration
	add := func(key string, effect corev1.TaintEffect) {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		add(key, corev1.TaintEffectNoSchedule)
	}
	if hostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return out
}

func (w *world) daemon(d *Daemon) error {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": d.Name}},
		Spec: corev1.PodSpec{
			HostNetwork: d.HostNetwork, ServiceAccountName: d.Name, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: d.Name, Image: "registry.example/" + d.Name + ":v1"}},
		},
	}
	switch d.Tolerates {
	case "":
	case "everything":
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	default:
		return fmt.Errorf("tolerates is %q: \"everything\" is known, others stand in the template", d.Tolerates)
	}
	if len(d.Template) > 0 {
		changed, err := merged(&template, d.Template)
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		template = *changed
	}
	revs, err := w.revisions(template, d.Revisions, d.Namespace+"/"+d.Name)
	if err != nil {
		return err
	}
	ds := d.object(revs)
	w.add("DaemonSet", cluster.DaemonSets, ds)
	for _, r := range revs {
		rev, err := controllerRevision(ds, r)
		if err != nil {
			return err
		}
		w.add("ControllerRevision", cluster.ControllerRevisions, rev)
	}
	if err := w.daemonPods(d, ds, revs); err != nil {
		return err
	}
	w.throttle(d)
	if len(d.Patch) > 0 {
		return w.patch("DaemonSet/"+d.Namespace+"/"+d.Name, d.Patch)
	}
	return nil
}

func (d *Daemon) object(revs []revision) *appsv1.DaemonSet {
	last := revs[len(revs)-1]
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name, UID: uid("DaemonSet", d.Namespace, d.Name),
			Labels:      map[string]string{"k8s-app": d.Name},
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: fmt.Sprint(len(revs))},
			Generation:  int64(len(revs)), CreationTimestamp: metav1.NewTime(revs[0].at),
			ManagedFields: []metav1.ManagedFieldsEntry{manages(last.by, "apps/v1", last.at)},
		},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": d.Name}},
			Template: last.template, MinReadySeconds: d.MinReady,
		},
	}
	for k, v := range d.Labels {
		ds.Labels[k] = v
	}
	for k, v := range d.Annotations {
		ds.Annotations[k] = v
	}
	limit := int32(10)
	ds.Spec.RevisionHistoryLimit = &limit
	ds.Spec.UpdateStrategy.Type = appsv1.DaemonSetUpdateStrategyType(or(d.Strategy, string(appsv1.RollingUpdateDaemonSetStrategyType)))
	if ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		one, none := intstr.FromInt32(1), intstr.FromInt32(0)
		roll := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: d.MaxUnavailable, MaxSurge: d.MaxSurge}
		if roll.MaxSurge == nil {
			roll.MaxSurge = &none
		}
		if roll.MaxUnavailable == nil {
			roll.MaxUnavailable = &one
			if d.MaxSurge != nil && d.MaxSurge.String() != "0" {
				roll.MaxUnavailable = &none
			}
		}
		ds.Spec.UpdateStrategy.RollingUpdate = roll
	}
	return ds
}

// controllerRevision stores a template as the controller does: as the patch that
// would put it back.
// Source: pkg/controller/daemon/update.go, getPatch.
func controllerRevision(ds *appsv1.DaemonSet, r revision) (*appsv1.ControllerRevision, error) {
	raw, err := json.Marshal(r.template)
	if err != nil {
		return nil, err
	}
	var template map[string]any
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	if raw, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}}); err != nil {
		return nil, err
	}
	labels := map[string]string{appsv1.ControllerRevisionHashLabelKey: r.hash}
	for k, v := range r.template.Labels {
		labels[k] = v
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: ds.Name + "-" + r.hash, Labels: labels, CreationTimestamp: metav1.NewTime(r.at.Add(time.Second)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Revision: r.number, Data: runtime.RawExtension{Raw: raw},
	}, nil
}

// counts tells whether the DaemonSet wants a Pod on the node with those taints.
func (w *world) counts(ds *appsv1.DaemonSet, n *corev1.Node, taints []corev1.Taint) (should, keeps bool) {
	if !cluster.Selected(n, &ds.Spec.Template) {
		return false, false
	}
	spec := &ds.Spec.Template.Spec
	tolerations := append(autoTolerations(spec.HostNetwork), spec.Tolerations...)
	return tolerated(taints, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		tolerated(taints, tolerations, corev1.TaintEffectNoExecute)
}

func (w *world) daemonPods(d *Daemon, ds *appsv1.DaemonSet, revs []revision) error {
	place := 0
	for _, n := range w.nodes {
		should, _ := w.counts(ds, n, w.was[n.Name])
		if !should {
			continue
		}
		rule, at := PodRule{}, place
		for _, r := range d.Pods {
			i, ok := r.means(w, n.Name)
			if !ok {
				continue
			}
			rule.overlay(r)
			if r.Created != "" || len(r.On) > 0 {
				at = i
			}
		}
		place++
		i, err := find(revs, rule.Revision)
		if err != nil {
			return err
		}
		t, err := w.timesOf(&rule, revs[i], at)
		if err != nil {
			return err
		}
		if joined := n.CreationTimestamp.Time; joined.After(t.created) {
			// The node came later: what is on it now decided about its first Pod.
			if should, _ := w.counts(ds, n, n.Spec.Taints); !should {
				continue
			}
			t.created, t.ready = joined.Add(3*time.Second), joined.Add(25*time.Second)
		}
		name := d.Name + "-" + suffix(5, d.Namespace, d.Name, n.Name, fmt.Sprint(revs[i].number))
		if rule.Gone {
			t.created = time.Time{} // events tell of the old Pod's end alone
		}
		w.replaceEvents(ds, n, d.Name+"-"+suffix(5, d.Namespace, d.Name, n.Name, "before"), name, t)
		if rule.Gone {
			continue
		}
		p := daemonPod(ds, n.Name, name, revs[i], i+1)
		if err := w.run(p, &rule, t); err != nil {
			return err
		}
		if len(rule.Patch) > 0 {
			if p, err = merged(p, rule.Patch); err != nil {
				return err
			}
		}
		w.add("Pod", cluster.Pods, p)
		if w.c.now.Sub(t.created) < eventTTL && rule.Pending == "" {
			w.scheduled(p, t.created)
		}
	}
	return nil
}

func daemonPod(ds *appsv1.DaemonSet, node, name string, r revision, generation int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *r.template.ObjectMeta.DeepCopy(), Spec: *r.template.Spec.DeepCopy()}
	p.Namespace, p.Name, p.GenerateName = ds.Namespace, name, ds.Name+"-"
	p.Labels[appsv1.ControllerRevisionHashLabelKey] = r.hash
	p.Labels["pod-template-generation"] = fmt.Sprint(generation)
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	p.Spec.NodeName = node
	p.Spec.Tolerations = append(p.Spec.Tolerations, autoTolerations(p.Spec.HostNetwork)...)
	if p.Spec.PriorityClassName == "system-node-critical" {
		priority := int32(2000001000)
		p.Spec.Priority = &priority
	}
	// The controller replaces whatever node affinity the template has.
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
	}}
	return p
}

// replaceEvents are what a replacement leaves behind, while events last.
func (w *world) replaceEvents(ds *appsv1.DaemonSet, n *corev1.Node, old, name string, t podTimes) {
	ref := corev1.ObjectReference{Kind: "DaemonSet", APIVersion: "apps/v1", Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID}
	if !t.deleted.IsZero() && w.c.now.Sub(t.deleted) < eventTTL {
		w.event(ref, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: "+old, "daemonset-controller", "", t.deleted)
		pod := corev1.ObjectReference{Kind: "Pod", Namespace: ds.Namespace, Name: old, UID: uid("Pod", ds.Namespace, old), FieldPath: "spec.containers{" + ds.Spec.Template.Spec.Containers[0].Name + "}"}
		w.event(pod, corev1.EventTypeNormal, "Killing", "Stopping container "+ds.Spec.Template.Spec.Containers[0].Name, "kubelet", n.Name, t.deleted)
	}
	if w.c.now.Sub(t.created) < eventTTL && !t.deleted.IsZero() {
		w.event(ref, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+name, "daemonset-controller", "", t.created)
	}
}

// countDaemon works out the status as the controller would.
// Source: pkg/controller/daemon/daemon_controller.go, updateDaemonSetStatus.
func (w *world) countDaemon(d *Daemon) {
	e := w.byKey[identity{string(cluster.DaemonSets), d.Namespace, d.Name}]
	if e == nil || e.object == nil {
		return
	}
	ds := e.object.(*appsv1.DaemonSet)
	if d.Status != nil {
		ds.Status = *d.Status
		return
	}
	s := appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation}
	if d.Observed != 0 {
		s.ObservedGeneration = d.Observed
	}
	hash := suffix(10, d.Namespace+"/"+d.Name, fmt.Sprint(w.newest(d)))
	pods := map[string]*corev1.Pod{}
	for _, o := range w.order {
		if p, ok := o.object.(*corev1.Pod); ok && metav1.IsControlledBy(p, ds) {
			if q := pods[cluster.TargetNode(p)]; q == nil || cluster.PodReady(p) && !cluster.PodReady(q) {
				pods[cluster.TargetNode(p)] = p
			}
		}
	}
	for _, o := range w.order {
		n, ok := o.object.(*corev1.Node)
		if !ok {
			continue
		}
		should, _ := w.counts(ds, n, n.Spec.Taints)
		p := pods[n.Name]
		switch {
		case should:
			s.DesiredNumberScheduled++
			if p == nil {
				break
			}
			s.CurrentNumberScheduled++
			if p.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
				s.UpdatedNumberScheduled++
			}
			if cluster.PodReady(p) {
				s.NumberReady++
				if cluster.PodAvailable(p, time.Duration(d.MinReady)*time.Second, w.c.now) {
					s.NumberAvailable++
				}
			}
		case p != nil:
			s.NumberMisscheduled++
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	ds.Status = s
}

// newest is the number of the newest revision.
func (w *world) newest(d *Daemon) int64 {
	n := int64(1)
	for i, r := range d.Revisions {
		if r.Number != 0 {
			n = r.Number
		} else if i > 0 {
			n++
		}
	}
	return n
}
