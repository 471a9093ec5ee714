package files

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// App generates a Deployment, a ReplicaSet for each revision and its Pods, on the
// schedulable nodes in turn. Defaults: namespace default, 2 replicas, 25% and 25%.
type App struct {
	Name           string              `json:"name"`
	Namespace      string              `json:"namespace"`
	Labels         map[string]string   `json:"labels"`
	Annotations    map[string]string   `json:"annotations"`
	Replicas       int32               `json:"replicas"`
	Template       json.RawMessage     `json:"template"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	MaxSurge       *intstr.IntOrString `json:"maxSurge"`
	Paused         bool                `json:"paused"`
	Revisions      []RevisionSpec      `json:"revisions"`
	Pods           []PodRule           `json:"pods"`
	// Progress is the Progressing condition; default NewReplicaSetAvailable.
	Progress struct {
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
		At      string `json:"at"`
	} `json:"progress"`
	Patch json.RawMessage `json:"patch"` // strategic merge on the Deployment
}

func (a *App) fill() {
	a.Namespace = or(a.Namespace, metav1.NamespaceDefault)
	if a.Replicas == 0 {
		a.Replicas = 2
	}
}

func (w *world) app(a *App) error {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": a.Name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: a.Name, Image: "registry.example/" + a.Name + ":v1"}},
		},
	}
	if len(a.Template) > 0 {
		changed, err := merged(&template, a.Template)
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		template = *changed
	}
	revs, err := w.revisions(template, a.Revisions, a.Namespace+"/"+a.Name)
	if err != nil {
		return err
	}
	d := a.object(revs)
	w.add("Deployment", cluster.Deployments, d)
	sets := make([]*appsv1.ReplicaSet, len(revs))
	for i, r := range revs {
		sets[i] = replicaSet(d, r)
		w.add("ReplicaSet", cluster.ReplicaSets, sets[i])
	}
	if err := w.appPods(a, sets, revs); err != nil {
		return err
	}
	if len(a.Patch) > 0 {
		return w.patch("Deployment/"+a.Namespace+"/"+a.Name, a.Patch)
	}
	return nil
}

func (a *App) object(revs []revision) *appsv1.Deployment {
	last := revs[len(revs)-1]
	quarter, deadline := intstr.FromString("25%"), int32(600)
	roll := &appsv1.RollingUpdateDeployment{MaxUnavailable: a.MaxUnavailable, MaxSurge: a.MaxSurge}
	if roll.MaxUnavailable == nil {
		roll.MaxUnavailable = &quarter
	}
	if roll.MaxSurge == nil {
		roll.MaxSurge = &quarter
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: a.Name, UID: uid("Deployment", a.Namespace, a.Name), Labels: map[string]string{"app": a.Name},
			Annotations: map[string]string{revisionAnnotation: fmt.Sprint(last.number)},
			Generation:  int64(len(revs)), CreationTimestamp: metav1.NewTime(revs[0].at),
			ManagedFields: []metav1.ManagedFieldsEntry{manages(last.by, "apps/v1", last.at)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &a.Replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}}, Template: last.template,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: roll},
			Paused:   a.Paused, ProgressDeadlineSeconds: &deadline,
		},
	}
	for k, v := range a.Labels {
		d.Labels[k] = v
	}
	for k, v := range a.Annotations {
		d.Annotations[k] = v
	}
	return d
}

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
)

func replicaSet(d *appsv1.Deployment, r revision) *appsv1.ReplicaSet {
	template := *r.template.DeepCopy()
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = r.hash
	name := d.Name + "-" + r.hash
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: name, UID: uid("ReplicaSet", d.Namespace, name), Labels: template.Labels, Generation: 1,
			Annotations:       map[string]string{revisionAnnotation: fmt.Sprint(r.number), desiredAnnotation: fmt.Sprint(*d.Spec.Replicas)},
			CreationTimestamp: metav1.NewTime(r.at.Add(time.Second)),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.Name, appsv1.DefaultDeploymentUniqueLabelKey: r.hash}}, Template: template},
	}
}

func (w *world) appPods(a *App, sets []*appsv1.ReplicaSet, revs []revision) error {
	var nodes []*corev1.Node
	for _, n := range w.nodes {
		if tolerated(w.was[n.Name], nil, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return fmt.Errorf("no node takes its Pods")
	}
	rules := a.Pods
	if len(rules) == 0 {
		rules = []PodRule{{}}
	}
	made := 0
	for _, r := range rules {
		count := r.Count
		if count == 0 {
			count = max(int(a.Replicas)-made, 0)
		}
		i, err := find(revs, r.Revision)
		if err != nil {
			return err
		}
		if made+count > most {
			return fmt.Errorf("%d Pods are too many", made+count)
		}
		for n := range count {
			t, err := w.timesOf(&r, revs[i], n)
			if err != nil {
				return err
			}
			p := &corev1.Pod{ObjectMeta: *sets[i].Spec.Template.ObjectMeta.DeepCopy(), Spec: *revs[i].template.Spec.DeepCopy()}
			p.Namespace, p.GenerateName = a.Namespace, sets[i].Name+"-"
			p.Name = p.GenerateName + suffix(5, p.GenerateName, fmt.Sprint(made))
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sets[i], appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			p.Spec.NodeName = or(r.Node, nodes[made%len(nodes)].Name)
			seconds := int64(300)
			for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
			}
			if err := w.run(p, &r, t); err != nil {
				return err
			}
			if len(r.Patch) > 0 {
				if p, err = merged(p, r.Patch); err != nil {
					return err
				}
			}
			*sets[i].Spec.Replicas++
			made++
			if r.Gone {
				continue
			}
			w.add("Pod", cluster.Pods, p)
			if err := w.evict(p, r, nodes[(made-1)%len(nodes)+1:], nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// evict does to a Pod without a toleration of its own what happens on a node that
// was not Ready for five minutes: it is told to go, stays Terminating where no
// kubelet hears of it (or where the network cannot be taken down), and another
// takes its place elsewhere.
// Source: pkg/controller/tainteviction/taint_eviction.go.
func (w *world) evict(p *corev1.Pod, r PodRule, after, all []*corev1.Node) error {
	e := w.byKey[identity{string(cluster.Nodes), "", p.Spec.NodeName}]
	if e == nil || p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
		return nil
	}
	var asked time.Time
	for _, t := range e.object.(*corev1.Node).Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded != nil && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) {
			asked = t.TimeAdded.Add(5 * time.Minute)
		}
	}
	if asked.IsZero() || asked.After(w.c.now) || asked.Before(p.CreationTimestamp.Time) {
		return nil
	}
	gone, grace := metav1.NewTime(asked.Add(30*time.Second)), int64(30)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &gone, &grace
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
		Message: "Taint manager: deleting due to NoExecute taint", LastTransitionTime: metav1.NewTime(asked),
	})
	if w.c.now.Sub(asked) < eventTTL {
		ref := podReference(p, "")
		ref.UID = ""
		w.event(ref, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod "+p.Namespace+"/"+p.Name, "taint-eviction-controller", "", asked)
	}
	for _, n := range append(append([]*corev1.Node(nil), after...), all...) {
		now := w.byKey[identity{string(cluster.Nodes), "", n.Name}].object.(*corev1.Node)
		if n.Name == p.Spec.NodeName || !tolerated(now.Spec.Taints, p.Spec.Tolerations[:0], corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) {
			continue
		}
		q := &corev1.Pod{ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: *p.Spec.DeepCopy()}
		q.Name, q.UID, q.DeletionTimestamp, q.DeletionGracePeriodSeconds = p.GenerateName+suffix(5, p.Name, "again"), "", nil, nil
		q.Spec.NodeName = n.Name
		r.Terminating, r.Unready = "", ""
		if err := w.run(q, &r, podTimes{created: asked.Add(time.Second), ready: asked.Add(14 * time.Second)}); err != nil {
			return err
		}
		w.add("Pod", cluster.Pods, q)
		return nil
	}
	return nil
}

// count works out every generated workload's status and every generated Service's
// endpoints, after removals.
func (w *world) count() error {
	for _, d := range w.daemons {
		w.countDaemon(d)
	}
	for _, a := range w.apps {
		if err := w.countApp(a); err != nil {
			return fmt.Errorf("App %s/%s: %w", a.Namespace, a.Name, err)
		}
	}
	for _, s := range w.serving {
		w.countServing(s)
	}
	return nil
}

func (w *world) countApp(a *App) error {
	e := w.byKey[identity{string(cluster.Deployments), a.Namespace, a.Name}]
	if e == nil || e.object == nil {
		return nil
	}
	d := e.object.(*appsv1.Deployment)
	s := appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	for _, o := range w.order {
		r, ok := o.object.(*appsv1.ReplicaSet)
		if !ok || !metav1.IsControlledBy(r, d) {
			continue
		}
		r.Status = appsv1.ReplicaSetStatus{ObservedGeneration: r.Generation}
		for _, o := range w.order {
			if p, ok := o.object.(*corev1.Pod); ok && metav1.IsControlledBy(p, r) && p.DeletionTimestamp == nil {
				r.Status.Replicas++
				r.Status.FullyLabeledReplicas++
				if cluster.PodReady(p) {
					r.Status.ReadyReplicas++
					r.Status.AvailableReplicas++
				}
			}
		}
		s.Replicas += r.Status.Replicas
		s.ReadyReplicas += r.Status.ReadyReplicas
		s.AvailableReplicas += r.Status.AvailableReplicas
		if r.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			s.UpdatedReplicas = r.Status.Replicas
		}
	}
	s.UnavailableReplicas = max(*d.Spec.Replicas-s.AvailableReplicas, 0)
	at := d.CreationTimestamp.Time
	if n := len(a.Revisions); n > 0 {
		at, _ = w.c.when(a.Revisions[n-1].At) // it was read before
	}
	at = at.Add(time.Minute)
	if a.Progress.At != "" {
		var err error
		if at, err = w.c.when(a.Progress.At); err != nil {
			return fmt.Errorf("progress: %w", err)
		}
	}
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."}
	floor := 0 // Recreate keeps nothing available
	if ru := d.Spec.Strategy.RollingUpdate; ru != nil {
		var err error
		if floor, err = intstr.GetScaledValueFromIntOrPercent(ru.MaxUnavailable, int(*d.Spec.Replicas), false); err != nil {
			return err
		}
	}
	if int(s.AvailableReplicas) < int(*d.Spec.Replicas)-floor {
		available.Status, available.Reason, available.Message = corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	}
	s.Conditions = []appsv1.DeploymentCondition{available, {
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionStatus(or(a.Progress.Status, "True")), Reason: or(a.Progress.Reason, "NewReplicaSetAvailable"),
		Message: or(a.Progress.Message, "ReplicaSet has successfully progressed."),
	}}
	for i := range s.Conditions {
		s.Conditions[i].LastUpdateTime, s.Conditions[i].LastTransitionTime = metav1.NewTime(at), metav1.NewTime(at)
	}
	d.Status = s
	return nil
}
