package capture_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/internal/practice/api"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
)

// Every secret of the cluster below is a canary, followed by where it is kept.
const canary = "canary7x"

var (
	canaries = regexp.MustCompile(canary + `[a-z-]+`)
	// encoded is how a canary begins in the data of a Secret.
	encoded = "Y2FuYXJ5N3"
)

func annotated(name, where string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"data":"` + canary + `-applied-` + where + `"}`,
		"example.com/note":                 canary + "-note-" + where,
		"kubernetes.io/change-cause":       "kubectl set env ds/x TOKEN=" + canary + "-cause-" + where,
		"meta.helm.sh/release-name":        "calico",
		"argocd.argoproj.io/tracking-id":   "https://me:" + canary + "-tracking-" + where + "@git.example/x",
	}}
}

// leakyTemplate hides a canary wherever a template can hold one.
func leakyTemplate(where string) corev1.PodTemplateSpec {
	c := func(name string) corev1.Container {
		s := canary + "-" + where + "-" + name + "-"
		return corev1.Container{
			Name: name, Image: "registry.example/app:v1",
			Env: []corev1.EnvVar{
				{Name: "DB_PASSWORD", Value: s + "env"}, {Name: "HARMLESS", Value: s + "plainenv"},
				{Name: "REF", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "the-secret"}, Key: "k"}}},
			},
			Command: []string{"/bin/app", "--token=" + s + "flag", "--password", s + "next", "--set=auth.password=" + s + "nested"},
			Args: []string{"-c", "export API_KEY=" + s + "export; curl -H 'Authorization: Bearer " + s + "bearer' -u me:" + s + "curl https://me:" + s + "url@h.example/?access_token=" + s + "query",
				`--config={"clientSecret": "` + s + `json", "password":"a,b` + s + `comma"}`},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/live?token=" + s + "path",
				HTTPHeaders: []corev1.HTTPHeader{{Name: "X", Value: s + "header"}}}}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"redis-cli", "--pass", s + "probe"}}}},
			Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "SECRET='" + s + "hook' bye"}}}},
		}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: annotated("", "template-"+where).Annotations},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{c("init")}, Containers: []corev1.Container{c("main")},
			Volumes: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"k": canary + "-csi-" + where}}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: annotated("", "claim-"+where)}}}},
			},
		},
	}
}

// leaky is a cluster full of canaries.
func leaky(t *testing.T) *world {
	t.Helper()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	w := newWorld(t,
		&corev1.Secret{ObjectMeta: annotated(canary+"-secretname", "secret"), Data: map[string][]byte{"password": []byte(canary + "-secret")}},
		&corev1.ConfigMap{ObjectMeta: annotated("config", "configmap"), Data: map[string]string{"app.conf": canary + "-configmap"}, BinaryData: map[string][]byte{"b": []byte(canary + "-binary")}},
		&corev1.Service{ObjectMeta: annotated("svc", "service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: annotated("", "node").Annotations}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: annotated("", "namespace").Annotations}},
		&appsv1.DaemonSet{ObjectMeta: annotated("ds", "ds"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: leakyTemplate("ds")}},
		&appsv1.Deployment{ObjectMeta: annotated("deploy", "deploy"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: leakyTemplate("deploy")}},
		&appsv1.ReplicaSet{ObjectMeta: annotated("rs", "rs"), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: leakyTemplate("rs")}},
		&appsv1.StatefulSet{ObjectMeta: annotated("sts", "sts"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: leakyTemplate("sts"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: annotated("data", "claims")}}}},
		&corev1.Event{ObjectMeta: annotated("e", "event"), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
			Message: "exec app --token=" + canary + "-event: failed; GET https://me:" + canary + "-eventurl@h.example"},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook", Annotations: annotated("", "webhook").Annotations}},
	)
	pod := &corev1.Pod{ObjectMeta: annotated("p", "pod"), Spec: leakyTemplate("pod").Spec}
	w.add(pod)
	pod.Status = corev1.PodStatus{Message: "password=" + canary + "-podmessage", ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "refused: Bearer " + canary + "-terminated"}}}}}
	if _, err := w.UpdateStatus("kubelet", pod); err != nil {
		t.Fatal(err)
	}
	template, err := json.Marshal(map[string]any{"spec": map[string]any{"template": leakyTemplate("ds")}})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	owned := annotated("ds-1", "revision")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "1", Controller: &yes}}
	foreign := annotated("vm-1", "foreign")
	foreign.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "vm", UID: "2", Controller: &yes}}
	w.add(&appsv1.ControllerRevision{ObjectMeta: owned, Data: runtime.RawExtension{Raw: template}, Revision: 1},
		&appsv1.ControllerRevision{ObjectMeta: foreign, Data: runtime.RawExtension{Raw: []byte(`{"spec":{"userData":"` + canary + `-foreign"}}`)}, Revision: 1},
		&appsv1.ControllerRevision{ObjectMeta: annotated("orphan-1", "orphan"), Data: runtime.RawExtension{Raw: template}, Revision: 1})
	return w
}

// found are the canaries in everything that a capture consists of.
func found(t *testing.T, w *world, keepEnv bool) []string {
	t.Helper()
	o := w.options()
	o.KeepEnv = keepEnv
	var out bytes.Buffer
	if _, err := capture.Stream(t.Context(), w.connect(api.DefaultUser), &out, o); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members(t, out.Bytes()) {
		if bytes.Contains(m.content, []byte(encoded)) {
			t.Errorf("%s holds the data of a Secret", m.Name)
		}
		for _, c := range canaries.FindAllString(string(m.content), -1) {
			got = append(got, filepath.Base(m.Name)+": "+c)
		}
	}
	slices.Sort(got)
	return slices.Compact(got)
}

func TestNothingSecretIsInACapture(t *testing.T) {
	t.Parallel()
	w := leaky(t)
	if got := found(t, w, false); len(got) > 0 {
		t.Errorf("%d secrets leak:\n%s", len(got), strings.Join(got, "\n"))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if strings.Contains(s, "secrets") {
			t.Errorf("Secrets were asked for: %s", s)
		}
	}
}

func TestWithTheEnvironmentKeptTheRestIsStillHidden(t *testing.T) {
	t.Parallel()
	got := found(t, leaky(t), true)
	kept := map[string]bool{}
	for _, g := range got {
		_, c, _ := strings.Cut(g, ": "+canary+"-")
		parts := strings.Split(c, "-")
		kept[parts[len(parts)-1]] = true
		for _, never := range []string{"secret", "configmap", "binary", "applied", "note", "cause", "tracking", "foreign", "event", "podmessage", "terminated", "orphan"} {
			if parts[0] == never {
				t.Errorf("leaks with --keep-env: %s", g)
			}
		}
	}
	for _, k := range []string{"env", "plainenv", "flag", "next", "nested", "bearer", "header", "hook", "path"} {
		if !kept[k] {
			t.Errorf("%s was not kept, though it was asked for", k)
		}
	}
}
