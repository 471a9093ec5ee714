package cluster

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func wrote(manager, fields string, at time.Time) metav1.ManagedFieldsEntry {
	t := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Time: &t, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhoWroteLabelsIsReadFromEntriesThatOwnNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	const labels = `{"f:metadata":{"f:labels":{"f:pool":{},"f:zone":{}}}}`
	for name, c := range map[string]struct {
		entry   metav1.ManagedFieldsEntry
		created time.Duration // before now
		want    bool
	}{
		"by hand":                 {wrote("kubectl-label", labels, now.Add(-time.Minute)), time.Hour, true},
		"by the kubelet":          {wrote("kubelet", labels, now.Add(-time.Minute)), time.Hour, false},
		"by a cloud's controller": {wrote("aws-cloud-controller-manager", labels, now.Add(-time.Minute)), time.Hour, false},
		"before the window":       {wrote("kubectl-label", labels, now.Add(-2*time.Hour)), 9 * time.Hour, false},
		"as the node joined":      {wrote("karpenter", labels, now.Add(-time.Minute)), 3 * time.Minute, false},
		"with an annotation":      {wrote("agent", `{"f:metadata":{"f:annotations":{"f:seen":{}},"f:labels":{"f:pool":{}}}}`, now.Add(-time.Minute)), time.Hour, false},
		"with a taint":            {wrote("kubectl-edit", `{"f:metadata":{"f:labels":{"f:pool":{}}},"f:spec":{"f:taints":{}}}`, now.Add(-time.Minute)), time.Hour, false},
		"only a taint":            {wrote("kubectl-taint", `{"f:spec":{"f:taints":{}}}`, now.Add(-time.Minute)), time.Hour, false},
		"no JSON":                 {wrote("kubectl-label", `{`, now.Add(-time.Minute)), time.Hour, false},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.NewTime(now.Add(-c.created)), ManagedFields: []metav1.ManagedFieldsEntry{c.entry}}}
		got := New(Objects{Nodes: []*corev1.Node{n}}, Meta{AsOf: now}).LabelWrites(n, now.Add(-time.Hour), now)
		if (len(got) == 1) != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want && (got[0].Manager != "kubectl-label" || !slices.Equal(got[0].Keys, []string{"pool", "zone"})) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

func TestALabelChangeIsSeenBetweenSnapshots(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 3, 10, 0, 0, 0, time.UTC)
	node := func(labels map[string]string, fields ...metav1.ManagedFieldsEntry) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels, ManagedFields: fields, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	}
	const owns = `{"f:metadata":{"f:labels":{"f:pool":{},"f:zone":{}}}}`
	var past *History
	at := now
	look := func(n *corev1.Node) []LabelWrite {
		at = at.Add(time.Second)
		s := New(Objects{Nodes: []*corev1.Node{n}}, Meta{AsOf: at, Past: past})
		past = s.History
		return s.LabelWrites(n, now, now.Add(time.Hour))
	}
	before := map[string]string{"pool": "a", "zone": "x", "kubernetes.io/os": "linux"}
	if got := look(node(before)); len(got) > 0 {
		t.Errorf("at first sight: %v", got)
	}
	if got := look(node(before)); len(got) > 0 {
		t.Errorf("nothing changed: %v", got)
	}
	// The manager owns two labels; which of them changed was watched.
	changed := map[string]string{"pool": "b", "zone": "x", "kubernetes.io/os": "linux"}
	got := look(node(changed, wrote("kubectl-label", owns, at)))
	if len(got) != 1 || got[0].Manager != "kubectl-label" || !slices.Equal(got[0].Keys, []string{"pool"}) {
		t.Errorf("a change: %+v", got)
	}
	// A removal leaves no trace in managedFields.
	at = at.Add(time.Minute)
	got = look(node(map[string]string{"pool": "b", "kubernetes.io/os": "linux"}, wrote("kubectl-label", `{"f:metadata":{"f:labels":{"f:pool":{}}}}`, now.Add(2*time.Second))))
	if len(got) != 2 || got[1].Manager != "" || !slices.Equal(got[1].Keys, []string{"zone"}) {
		t.Errorf("a removal: %+v", got)
	}
	// What the kubelet sets on its own node is no change by others.
	at = at.Add(time.Minute)
	got = look(node(map[string]string{"pool": "b", "kubernetes.io/os": "windows"}, wrote("kubelet", `{"f:metadata":{"f:labels":{"f:kubernetes.io/os":{}}}}`, at)))
	if len(got) != 2 || !slices.Equal(got[1].Keys, []string{"zone"}) {
		t.Errorf("the kubelet's own: %+v", got)
	}
	if at = at.Add(25 * time.Hour); len(look(node(before))) > 1 || len(past.Node("n1").LabelChanges) != 1 {
		t.Errorf("it is kept for ever: %+v", past.Node("n1").LabelChanges)
	}
}

func TestConfigMapsAreDemandedOfSuspectsAndOfAgentsOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	spec := func(host bool) corev1.PodSpec {
		ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
		return corev1.PodSpec{HostNetwork: host,
			Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("volume")}}},
				{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("projected")}}, {}}}}},
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "no"}}},
			},
			InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("from")}}, {}}}},
			Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", Value: "x"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{}},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("key")}}}}}},
		}
	}
	s := New(Objects{DaemonSets: nil}, Meta{})
	for name, c := range map[string]struct {
		host     bool
		suspects []types.UID
		want     int
	}{
		"a suspect": {false, []types.UID{"it"}, 4}, "an agent": {true, nil, 4}, "neither": {false, nil, 0},
	} {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "net", Name: "it", UID: "it"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec(c.host)}}}
		s.DaemonSets = append(s.DaemonSets[:0], d)
		got := s.configMapsWanted(c.suspects)
		if len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want > 0 && (got[0].Name != "from" || got[0].Namespace != "net") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
